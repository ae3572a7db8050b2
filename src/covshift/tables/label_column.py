"""The label column of the training table -> labels, or why it cannot be one.

Words that differ only in case, as ``Yes`` and ``yes`` do, are one class. Single letters are not:
``A`` and ``a`` may be two.

A number that is a quantity, not a class, is recognized before anything is fitted. A regression
predicts it; with ``bins`` it becomes classes, ranges with about as many training rows each.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from covshift.base import check_option
from covshift.domains import Labels
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.tables.columns import MISSING, Kind, column_kind, column_numbers, column_text
from covshift.tables.messages import TableError, listed, quoted

# More different numbers than this are a quantity, unless whole and each in many rows.
MAX_NUMERIC_CLASSES = 20
MIN_ROWS_PER_CLASS = 10
# More different whole numbers than this are counts, however many rows each has.
MAX_COUNT_CLASSES = 100
# The one place that says what to do with a numeric label.
INSTEAD_OF_A_QUANTITY = (
    "Use --task regression to predict the number, --bins 4 to predict four ranges of it, or name "
    "another column with --label."
)
FEW_NUMBERS = 5  # different whole numbers of a regression's label, which may be classes
MIN_BINS, MAX_BINS = 2, 50
CLASSIFICATION, REGRESSION = TASKS = ("classification", "regression")


def check_task(task: str, bins: int | None) -> None:
    """Refuse an unknown task of a label, and ranges of a number that is to be predicted itself."""
    check_option("task", task, TASKS)
    if task == REGRESSION and bins is not None:
        raise TableError(
            "--bins makes classes of a numeric label, and --task regression predicts the number: "
            "use one of them."
        )


def read_labels(
    column: Any,
    task: str,
    notes: list[str],
    missing: Sequence[str] = MISSING,
    edges: FloatArray | None = None,
    exact: bool = False,
) -> tuple[Labels, IntArray]:
    """Return the labels of the rows that have one, and the positions of these rows.

    Classes are text, truth values or whole numbers; other numbers become text. Numbers are taken
    for a quantity, and refused as classes, if there are more than 20 different ones, and some are
    not whole, or they have fewer than ten rows each on average, or they are more than 100. Labels
    of a regression are finite numbers.
    ``edges``: where numbers are cut into ranges, which become the classes. ``exact``: words that
    differ in case are different classes.
    """
    name, kind = listed([column.name]), column_kind(column)
    if task == REGRESSION and kind != "number":
        raise TableError(_not_a_number(name, kind, column, missing))
    if kind == "date":
        raise TableError(f"The label {name} holds dates; classes or numbers are needed.")
    if kind == "text":
        values = column_text(column, missing).to_numpy(zero_copy_only=False)
        known = np.array([value is not None for value in values], dtype=bool)
    else:
        values = column_numbers(column)
        known = ~np.isnan(values)
        n_infinite = 0 if known.all() else _count_infinite(column)
        if n_infinite:
            notes.append(f"The label {name} is infinite in {n_infinite} rows: read as missing.")
    rows = np.flatnonzero(known)
    if not len(rows):
        raise TableError(f"No row of the training table has a label in {name}.")
    if len(rows) < len(values):
        n_dropped = len(values) - len(rows)
        notes.append(f"{n_dropped} of {len(values)} training rows have no label and are left out.")
    if kind == "text" and not exact:
        values = _one_case(column.name, values, notes)
    if task == REGRESSION:
        return _as_quantity(name, values[rows], notes), rows
    if edges is not None:
        labels = _cut_labels(values[rows], edges.tolist())
        ranges = listed(_range_names(edges.tolist()), MAX_BINS)
        notes.append(f"The label {name} is cut into {len(edges) + 1} ranges: {ranges}.")
    else:
        labels = _as_classes(name, kind, values[rows])
        if kind == "number" and (n_numbers := len(np.unique(labels))) > MAX_NUMERIC_CLASSES:
            notes.append(
                f"The label {name} has {n_numbers} different whole numbers, which are used as "
                "classes. To predict the number: --task regression."
            )
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) == 1:
        raise TableError(
            f"The label {name} has one class only, {listed(classes)}; two are needed to learn."
        )
    if (rare := classes[counts == 1]).size:
        notes.append(f"Classes with a single row: {listed(rare)}.")
    return labels, rows


def _one_case(name: str, values: Any, notes: list[str]) -> Any:
    """Return classes, those that differ only in case as the most frequent of them."""
    spellings: dict[str, Counter[str]] = {}
    for value in values:
        if value is not None:
            spellings.setdefault(_folded(value), Counter())[value] += 1
    usual: dict[str, str] = {}
    for counts in spellings.values():
        first, *others = sorted(counts, key=lambda text: (-counts[text], text))
        usual |= dict.fromkeys(others, first)
        if others:
            notes.append(
                f"Read {listed(others)} as the class {listed([first])}. If they are different "
                f"classes: --as {quoted(f'{name}=text')}."
            )
    return np.array([usual.get(value, value) for value in values], dtype=object)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFC", text)  # models of earlier versions have classes in any form
    return text.casefold() if len(text) > 1 else text


def as_written(labels: Labels, texts: Sequence[str | None]) -> Labels:
    """Return labels as cells of their column are written, so that predictions can be, too.

    Whole numbers stay numbers where they are written plainly (``-1``, ``12``). So does everything
    if a class is written in two ways, as ``1`` and ``1.0``.
    """
    spellings = set(zip(labels.tolist(), texts, strict=True))
    plain = labels.dtype.kind == "i" and all(str(value) == text for value, text in spellings)
    if plain or len(spellings) > len({value for value, _ in spellings}):
        return labels
    return np.array(texts, dtype=str)


def label_kind(classes: Any, edges: Sequence[float] = ()) -> Kind:
    """Return the kind of column that labels came from; ``classes`` None: they are numbers."""
    if classes is None or len(edges):
        return "number"
    kinds: dict[str, Kind] = {"b": "boolean", "i": "number", "u": "number", "f": "number"}
    return kinds.get(classes.dtype.kind, "text")


def read_known_labels(
    column: Any,
    classes: Any,
    missing: Sequence[str] = MISSING,
    edges: Sequence[float] = (),
) -> tuple[Labels, BoolArray]:
    """Return a column of a later file as labels, and which cells hold one.

    Parameters
    ----------
    column : Series
        Of the kind that `label_kind` says.
    classes : ndarray or None
        Classes of the training table, whose spelling is used; None: the labels are numbers.
    missing : sequence of str
        Texts that stand for nothing.
    edges : sequence of float
        Where numbers are cut into the ranges that are the classes; empty: nowhere.

    Returns
    -------
    labels : ndarray
        Where a cell holds none, any value.
    known : ndarray of bool
    """
    kind = label_kind(classes, edges)
    if kind == "text":
        texts = match_spellings(column_text(column, missing).to_pylist(), classes.tolist())
        known = np.array([text is not None for text in texts], dtype=bool)
        return np.array([text or "" for text in texts], dtype=str), known
    numbers = column_numbers(column)
    known = ~np.isnan(numbers)
    if len(edges):
        return _cut_labels(numbers, edges), known
    values = np.where(known, numbers, 0)
    if classes is None:
        return values, known
    if kind == "boolean":
        return values != 0, known
    whole = bool(np.all(values == np.floor(values)) and np.abs(values).max(initial=0) < 2**53)
    return (values.astype(np.int64) if whole else values), known


def match_spellings(texts: Sequence[str | None], classes: Sequence[str]) -> list[str | None]:
    """Return a label's texts as classes of the same value are written: ``0.5`` for ``0.50``.

    Words differ in more than case, unless two classes do not.
    """
    known = set(classes)
    by_value = {_value(name): name for name in classes}
    if len(by_value) < len(known):
        return list(texts)
    return [
        text if text is None or text in known else by_value.get(_value(text), text)
        for text in texts
    ]


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return _folded(text)


def _not_a_number(name: str, kind: str, column: Any, missing: Sequence[str]) -> str:
    """Say why a label cannot be that of a regression, and what to do."""
    if kind == "date":
        held = "dates"
    elif kind == "boolean":
        held = "true and false"
    else:
        texts = column_text(column, missing).to_pylist()
        first = next(((i, text) for i, text in enumerate(texts) if text is not None), None)
        if first is None:
            return f"No row of the training table has a label in {name}."
        held = f"text (first: {listed([first[1]])}, row {first[0] + 1})"
    told = f"The label {name} holds {held}, and --task regression needs numbers."
    n_numbers = int((~np.isnan(column_numbers(column))).sum()) if kind == "text" else 0
    if n_numbers:
        option = f"--as {quoted(f'{column.name}=number')}"
        return f"{told} To leave out all but the {n_numbers:,} rows that have one: {option}."
    return f"{told} Leave --task out to predict classes, or name another column with --label."


def _count_infinite(column: Any) -> int:
    """Return how many numbers of a frame's column are infinite; `column_numbers` drops them."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return int(np.isinf(values).sum())


def _as_quantity(name: str, values: Any, notes: list[str]) -> Labels:
    labels: FloatArray = np.asarray(values, dtype=np.float64)
    distinct = np.unique(labels)
    if len(distinct) == 1:
        raise TableError(
            f"The label {name} is {distinct[0]:g} in all rows that have one; a regression needs "
            "different numbers."
        )
    if len(distinct) <= FEW_NUMBERS < len(labels) and bool(np.all(distinct == distinct.round())):
        notes.append(
            f"The label {name} has {len(distinct)} different numbers: to predict them as classes, "
            "leave --task out."
        )
    return labels


def find_edges(column: Any, bins: int | None) -> FloatArray | None:
    """Return where a numeric label is cut into ranges with about as many rows each, or None."""
    if bins is None:
        return None
    name = listed([column.name])
    if not MIN_BINS <= bins <= MAX_BINS:
        raise TableError(f"--bins must be from {MIN_BINS} to {MAX_BINS}, got {bins}.")
    if column_kind(column) != "number":
        raise TableError(f"The label {name} holds no numbers; leave --bins out.")
    values = column_numbers(column)
    values = values[~np.isnan(values)]
    if not len(values):
        raise TableError(f"No row of the training table has a label in {name}.")
    edges: FloatArray = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    edges = edges[edges < values.max()]
    if not len(edges):
        raise TableError(f"The label {name} has too few different numbers for --bins {bins}.")
    return edges


def _range_names(edges: Sequence[float]) -> list[str]:
    """Return the names of a label's ranges between edges, numbered to sort as values do."""
    shown = [f"{edge:.6g}" for edge in edges]
    names = [
        f"up to {shown[0]}",
        *(f"{low} to {high}" for low, high in pairwise(shown)),
        f"above {shown[-1]}",
    ]
    width = len(str(len(names)))
    return [f"{i + 1:0{width}d}: {text}" for i, text in enumerate(names)]


def _cut_labels(values: FloatArray, edges: Sequence[float]) -> Labels:
    """Return the range that each label is in; an edge belongs to the range below it."""
    names = np.array(_range_names(edges), dtype=str)
    return names[np.searchsorted(np.asarray(edges), values, side="left")]


def _as_classes(name: str, kind: str, values: Any) -> Labels:
    n_rows, n_classes = len(values), len(set(values.tolist()))
    if kind == "text":
        if n_rows >= 20 and n_classes > n_rows / 2:
            raise TableError(
                f"The label {name} has {n_classes} different texts in {n_rows} rows: these are "
                "not classes. Name another column."
            )
        return np.array(values.tolist(), dtype=str)
    if kind == "boolean":
        return np.asarray(values != 0)
    whole = bool(np.all(values == np.floor(values)))
    many = n_classes > MAX_NUMERIC_CLASSES
    crowded = n_rows < MIN_ROWS_PER_CLASS * n_classes or n_classes > MAX_COUNT_CLASSES
    if many and (not whole or crowded):
        raise TableError(
            f"The label {name} is a number ({n_classes:,} different values in {n_rows:,} rows, "
            f"{values.min():g} to {values.max():g}), not a class. {INSTEAD_OF_A_QUANTITY}"
        )
    if whole and np.abs(values).max() < 2**53:
        return values.astype(np.int64)
    # scikit-learn takes no fractions as classes
    return np.array([repr(value).removesuffix(".0") for value in values.tolist()])
