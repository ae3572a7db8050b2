"""Which columns can be learned from, and the columns of the new table in the same kinds.

Left out, unless kept by name, and always with a note:

- constant: one value in the training rows that have a label;
- empty in these, or in the new table;
- identifiers: text of which nine in ten values or more are different, in 20 rows or more; whole
  numbers that are all different and nearly all consecutive (a counter for each site, or one with
  gaps), or grow from row to row; whole numbers that are all different under a name like ``id``,
  ``customer_id``, ``RowNumber``, ``uuid``, ``key``;
- free text: five words a cell or more, of which half or more are different;
- a repetition: the same values as an earlier column in all rows of both tables;
- dates that go round no cycle and have no other date beside them (`covshift.tables.dates`).

A name like an identifier's alone is only noted. A column of other kind in the new table is read
as the training table's kind; if more than half of its values do not fit, it is left out.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from covshift.domains import Labels
from covshift.kernels.array_types import FloatArray
from covshift.tables.columns import (
    Kind,
    column_categories,
    column_days,
    column_kind,
    column_numbers,
    column_text,
)
from covshift.tables.dates import describe_use, find_cycles, find_pairs
from covshift.tables.messages import listed, quoted

MIN_ROWS_TO_JUDGE = 20
SHARE_OF_DIFFERENT_TEXTS = 0.9
SHARE_OF_STEPS = 0.95  # of steps of size one that make a counter
FREE_TEXT_WORDS, FREE_TEXT_SHARE = 5, 0.5
IDENTIFIER_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uid|uuid|guid|key|index|row|rownames|identifier"
    r"|(row|record|line|case|serial|sequence|obs|observation)[ _.-]?(number|num|no|nr|id))$",
    re.IGNORECASE,
)
CAMEL_CASE_NAME = re.compile(r"[a-z](Id|ID)$|^(row|record|line|case)(Number|Num|No|Nr|Index)$")
EMPTY = "the new table has no value in it"
EMPTY_IN_TRAINING = "the training table has no value in it"
NOTHING_THERE = (EMPTY, EMPTY_IN_TRAINING)
REPEATS = "it repeats {}"
# Reasons that --use overrules, with the words of the note.
CONSTANT = "it is constant in the training table"
MANY_TEXTS = "it looks like an identifier (almost every value is unique)"
COUNTER = "it looks like a row number (whole numbers one after the other)"
GROWING = "it looks like a row number (whole numbers that increase from row to row)"
NAMED_IDENTIFIER = "it looks like an identifier (every value is unique, and its name says so)"
FREE_TEXT = "it holds free text"
ONLY_A_CLOCK = (
    "its dates span too few days for a weekly or yearly cycle, and a date alone only says when a "
    "row was recorded"
)


def choose_features(train: Any, new: Any, keep: Sequence[str], notes: list[str]) -> dict[str, Kind]:
    """Return the kinds of the columns to learn from; say which are left out."""
    kinds: dict[str, Kind] = {}
    reasons: dict[str, list[str]] = {}
    named = []
    for name in train.columns:
        kind = column_kind(train[name])
        reason = _reason_to_leave_out(name, kind, train[name], new[name])
        if reason is None or (name in keep and reason != EMPTY):
            kinds[name] = kind
            if reason is None and _is_identifier_name(name):
                named.append(name)
        else:
            reasons.setdefault(reason, []).append(name)
    for name, first in _repetitions(train[list(kinds)], new).items():
        if name not in keep:
            del kinds[name]
            reasons.setdefault(REPEATS.format(listed([first])), []).append(name)
    said = _use_dates(train, kinds, keep, reasons)
    for reason, names in reasons.items():
        use = "" if reason in NOTHING_THERE else f" To use it: --use {quoted(','.join(names))}."
        notes.append(f"Ignored {listed(names)}: {reason}.{use}")
    notes.extend(said)
    if named:
        notes.append(
            f"Kept {listed(named)}, though named like an identifier. If it is one: "
            f"--ignore {quoted(','.join(named))}."
        )
    return kinds


def _is_identifier_name(name: str) -> bool:
    """Return whether a name is one that identifiers have."""
    return bool(IDENTIFIER_NAME.search(name) or CAMEL_CASE_NAME.search(name))


def _reason_to_leave_out(name: str, kind: Kind, train: Any, new: Any) -> str | None:
    filled = train.dropna()
    values = _plain_values(filled, kind)
    n_different = len(np.unique(values)) if kind != "text" else len(set(values))
    if n_different == 0:
        return EMPTY_IN_TRAINING
    if n_different == 1 and len(filled) == len(train):
        return CONSTANT
    if not new.notna().any():
        return EMPTY
    if len(filled) < MIN_ROWS_TO_JUDGE or kind in ("boolean", "date"):
        return None
    if kind == "text":
        words = np.mean([len(value.split()) for value in values])
        if words >= FREE_TEXT_WORDS and n_different >= FREE_TEXT_SHARE * len(filled):
            return FREE_TEXT
        return MANY_TEXTS if n_different >= SHARE_OF_DIFFERENT_TEXTS * len(filled) else None
    if n_different < len(filled) or not np.all(values == np.floor(values)):
        return None
    if np.mean(np.diff(np.sort(values)) == 1) >= SHARE_OF_STEPS:
        return COUNTER
    if np.all(np.diff(values) > 0):
        return GROWING
    return NAMED_IDENTIFIER if _is_identifier_name(name) else None


def _repetitions(train: Any, new: Any) -> dict[str, str]:
    """Return columns that repeat an earlier one in all rows, and that one."""
    seen: dict[tuple[Any, ...], str] = {}
    found: dict[str, str] = {}
    for name in train.columns:
        hashes = tuple(
            int(pd.util.hash_pandas_object(frame[name].astype(object), index=False).sum())
            for frame in (train, new)
        )
        first = seen.setdefault(hashes, name)
        if first != name and all(_equal(frame[first], frame[name]) for frame in (train, new)):
            found[name] = first
    return found


def _equal(first: Any, second: Any) -> bool:
    if column_kind(first) != column_kind(second):
        return False
    return bool(column_text(first).equals(column_text(second)))


def _use_dates(
    train: Any, kinds: dict[str, Kind], keep: Sequence[str], reasons: dict[str, list[str]]
) -> list[str]:
    """Leave out dates that give no feature, unless kept; say what the others are used as."""
    days: dict[str, FloatArray] = {
        name: column_days(train[name]) for name, kind in kinds.items() if kind == "date"
    }
    pairs = find_pairs(days)
    notes = []
    for name, values in days.items():
        uses = describe_use(find_cycles(values))
        others = [b if a == name else a for a, b in pairs if name in (a, b)]
        if others:
            distance = f"the days between it and {listed(others)}"
            uses = f"{uses}, {distance}" if uses else distance
        if uses:
            notes.append(
                f"Used the dates in {listed([name])} as: {uses}. A date as a number would only "
                "separate old rows from new rows. To use it nevertheless: --as "
                f"{quoted(f'{name}=days')}."
            )
        elif name not in keep:
            del kinds[name]
            reasons.setdefault(ONLY_A_CLOCK, []).append(name)
    return notes


def _plain_values(column: Any, kind: Kind) -> Any:
    if kind == "text":
        return [value for value in column_text(column).to_pylist() if value is not None]
    values = column_days(column) if kind == "date" else column_numbers(column)
    return values[~np.isnan(values)]


# --- Columns that are kept and may mislead: named, with the option that leaves them out ---
#
# - a column that alone predicts the label almost perfectly on rows it was not learned from: it may
#   be known only after the outcome;
# - a number such as -999, outside of all others, that may stand for a missing value;
# - text with more values than get a feature;
# - texts that differ only in case.


GIVEAWAY_ACCURACY = 0.97  # balanced, on held-out rows
GIVEAWAY_R2 = 0.98  # R² from which one column gives away a numeric label
MIN_ROWS_OF_NUMBERS = 40
GIVEAWAY_ROWS = 2000  # looked at, at most
MIN_ROWS_OF_A_CLASS = 10
MAX_SEARCHED_COLUMNS = 500  # of a wide table, only the first ones are examined
# Numbers that programs and people write for "missing".
SENTINELS = tuple(sign * int("9" * n) for n in range(1, 8) for sign in (-1, 1))
MIN_SENTINELS = 2
MAX_SEARCHED_TEXTS = 1000  # of a column, compared for differences in case only
MAX_CATEGORIES = 30  # with a feature each, as in `TableEncoder`


def note_suspects(
    frame: Any, y: Labels, kinds: dict[str, Kind], notes: list[str], task: str = "classification"
) -> None:
    """Add notes on the choice of columns: which of the training table may mislead.

    Parameters
    ----------
    frame : pandas frame
        Training rows that have a label.
    y : array of classes or numbers
        Their labels.
    kinds : dict
        Columns that are used, and their kinds.
    notes : list of str
        Gets a sentence for each finding.
    task : {"classification", "regression"}
        Kind of the labels.
    """
    for name, kind in kinds.items():
        if kind == "number":
            notes += _sentinel_note(name, column_numbers(frame[name]))
    for name, kind in kinds.items():
        if kind == "text":
            notes += _case_note(name, frame[name].value_counts())
            n_texts = frame[name].nunique()
            if n_texts > 2 * MAX_CATEGORIES:
                notes.append(
                    f"Column {listed([name])} has {n_texts:,} different texts: the "
                    f"{MAX_CATEGORIES} most frequent are used, the others are one category. To "
                    f"leave it out: --ignore {quoted(name)}."
                )
    find = _find_number_giveaways if task == "regression" else _find_giveaways
    measure = "R²" if task == "regression" else "balanced accuracy"
    found = find(frame, y, kinds)
    for name, score in found.items():
        notes.append(
            f"Column {listed([name])} alone predicts the label with {measure} {score:.3f} on "
            f"held-out rows. If it is known only after the outcome: --ignore {quoted(name)}."
        )
    if len(found) > 1:
        notes.append(f"To leave all of these out: --ignore {quoted(','.join(found))}.")


def _find_giveaways(frame: Any, y: Labels, kinds: dict[str, Kind]) -> dict[str, float]:
    """Return columns that alone predict classes almost perfectly, with balanced accuracies.

    A tree of depth 5 learns from one column at a time; two folds.
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() < MIN_ROWS_OF_A_CLASS or len(classes) > MAX_CATEGORIES:
        return {}
    rows = np.random.default_rng(0).permutation(len(codes))[:GIVEAWAY_ROWS]
    codes = codes[rows]
    if np.bincount(codes, minlength=len(classes)).min() < 2:
        return {}
    folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(rows, codes))
    tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=2, random_state=0)
    found = {}
    for name in list(kinds)[:MAX_SEARCHED_COLUMNS]:
        x = _as_numbers(frame[name].iloc[rows], kinds[name], codes, folds)
        predicted = cross_val_predict(tree, x, codes, cv=folds)
        accuracy = float(balanced_accuracy_score(codes, predicted))
        if accuracy >= GIVEAWAY_ACCURACY:
            found[name] = accuracy
    return found


def _find_number_giveaways(frame: Any, y: Labels, kinds: dict[str, Kind]) -> dict[str, float]:
    """Return columns that alone predict a number almost perfectly, with R².

    A tree learns from one column at a time, without a limit of depth: where the label is a function
    of the column, the nearest row seen tells it. Two folds. Texts are left alone: few of them
    cannot tell numbers so well.
    """
    rows = np.random.default_rng(0).permutation(len(y))[:GIVEAWAY_ROWS]
    if len(rows) < MIN_ROWS_OF_NUMBERS:
        return {}
    values = y[rows]
    tree = DecisionTreeRegressor(random_state=0)
    folds = KFold(2, shuffle=True, random_state=0)
    found = {}
    for name in list(kinds)[:MAX_SEARCHED_COLUMNS]:
        if kinds[name] == "text":
            continue
        x = _as_numbers(frame[name].iloc[rows], kinds[name], None, None)
        score = float(r2_score(values, cross_val_predict(tree, x, values, cv=folds)))
        if score >= GIVEAWAY_R2:
            found[name] = score
    return found


LARGEST_OF_TREES = float(np.finfo(np.float32).max)  # scikit-learn's trees take float32


def _as_numbers(column: Any, kind: Kind, codes: Any, folds: Any) -> FloatArray:
    """Return one column for a tree: text as the mean label code of its rows of the other fold."""
    if kind == "date":
        return np.nan_to_num(column_days(column), nan=-1e9)[:, None]
    if kind != "text":
        numbers = np.nan_to_num(column_numbers(column), nan=-1e9)[:, None]
        return numbers / max(1.0, float(np.abs(numbers).max()) / LARGEST_OF_TREES)
    texts, places = column_categories(column)
    n_classes = int(codes.max()) + 1
    shares = np.zeros((len(column), n_classes))
    for learned, _ in folds:
        # Of the rows learned from, so that those held out are told what was known of them.
        counts = pd.crosstab(places[learned], codes[learned])
        counts = counts.reindex(index=range(len(texts)), columns=range(n_classes), fill_value=0)
        table = counts.to_numpy(dtype=float)
        held_out = np.setdiff1d(np.arange(len(column)), learned)
        sums = table.sum(axis=1, keepdims=True)
        table = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
        shares[held_out] = table[places[held_out]]
    return shares


def _case_note(name: str, counts: Any) -> list[str]:
    """Say which texts differ only in case: the first two, most frequent first."""
    if len(counts) > MAX_SEARCHED_TEXTS:
        return []
    first: dict[str, str] = {}
    for text in map(str, counts.index):
        other = first.setdefault(text.casefold(), text)
        if other != text:
            return [
                f"Column {listed([name])} has texts that differ only in case ({listed([other])}, "
                f"{listed([text])}): they are different categories. Write them alike if they mean "
                "the same."
            ]
    return []


def _sentinel_note(name: str, values: FloatArray) -> list[str]:
    values = values[~np.isnan(values)]
    for sentinel in SENTINELS:
        here = values == sentinel
        n_cells = int(here.sum())
        rest = values[~here]
        if n_cells < MIN_SENTINELS or len(rest) < n_cells:
            continue
        low, high = rest.min(), rest.max()
        if sentinel < 0:
            outside = low >= 0 or low - sentinel > high - low
            outside = outside and low > sentinel and (sentinel <= -9)
        else:
            outside = sentinel >= 99 and sentinel - high > high - low and high > low
        if outside:
            where = "below" if sentinel < 0 else "above"
            return [
                f"Column {listed([name])} has {n_cells:,} cells {sentinel}, {where} all others "
                f"({low:g} to {high:g}). If they are missing: --missing={sentinel}."
            ]
    return []
