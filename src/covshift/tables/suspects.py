"""Columns that are kept and may mislead: they are named, with the option that leaves them out.

- a column that alone predicts the label almost perfectly on rows it was not learned from: it may
  be known only after the outcome;
- a number such as -999, outside of all others, that may stand for a missing value;
- text with more values than get a feature;
- texts that differ only in case.
"""

from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from covshift.domains import Labels
from covshift.kernels.arrays import FloatArray
from covshift.tables.cells import Kind
from covshift.tables.columns import column_categories, column_days, column_numbers
from covshift.tables.errors import listed
from covshift.tables.extra import pandas as pd
from covshift.tables.schema import quoted

GIVEAWAY_ACCURACY = 0.97  # balanced, on held-out rows
GIVEAWAY_R2 = 0.98  # R² from which one column gives away a numeric label
MIN_ROWS_OF_NUMBERS = 40
GIVEAWAY_ROWS = 2000  # looked at, at most
MIN_ROWS_OF_A_CLASS = 10
MAX_COLUMNS = 500  # of a wide table, only the first ones are examined
# Numbers that programs and people write for "missing".
SENTINELS = tuple(sign * int("9" * n) for n in range(1, 8) for sign in (-1, 1))
MIN_SENTINELS = 2
MAX_TEXTS = 1000  # of a column, compared for differences in case only
MAX_CATEGORIES = 30  # with a feature each, as in `TableEncoder`


def note_suspects(
    frame: Any, y: Labels, kinds: dict[str, Kind], notes: list[str], task: str = "classification"
) -> None:
    """Add notes about columns of the training table that may mislead.

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
    find = find_number_giveaways if task == "regression" else find_giveaways
    measure = "R²" if task == "regression" else "balanced accuracy"
    found = find(frame, y, kinds)
    for name, score in found.items():
        notes.append(
            f"Column {listed([name])} alone predicts the label with {measure} {score:.3f} on "
            f"held-out rows. If it is known only after the outcome: --ignore {quoted(name)}."
        )
    if len(found) > 1:
        notes.append(f"To leave all of these out: --ignore {quoted(','.join(found))}.")


def find_giveaways(frame: Any, y: Labels, kinds: dict[str, Kind]) -> dict[str, float]:
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
    for name in list(kinds)[:MAX_COLUMNS]:
        x = _as_numbers(frame[name].iloc[rows], kinds[name], codes, folds)
        predicted = cross_val_predict(tree, x, codes, cv=folds)
        accuracy = float(balanced_accuracy_score(codes, predicted))
        if accuracy >= GIVEAWAY_ACCURACY:
            found[name] = accuracy
    return found


def find_number_giveaways(frame: Any, y: Labels, kinds: dict[str, Kind]) -> dict[str, float]:
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
    for name in list(kinds)[:MAX_COLUMNS]:
        if kinds[name] == "text":
            continue
        x = _as_numbers(frame[name].iloc[rows], kinds[name], None, None)
        score = float(r2_score(values, cross_val_predict(tree, x, values, cv=folds)))
        if score >= GIVEAWAY_R2:
            found[name] = score
    return found


def _as_numbers(column: Any, kind: Kind, codes: Any, folds: Any) -> FloatArray:
    """Return one column for a tree: text as the mean label code of its rows of the other fold."""
    if kind == "date":
        return np.nan_to_num(column_days(column), nan=-1e9)[:, None]
    if kind != "text":
        return np.nan_to_num(column_numbers(column), nan=-1e9)[:, None]
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
    if len(counts) > MAX_TEXTS:
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
