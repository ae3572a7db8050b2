"""The label column of the training table -> labels, or why it cannot be one.

Words that differ only in case, as ``Yes`` and ``yes`` do, are one class. Single letters are not:
``A`` and ``a`` may be two.

A number that is a quantity, not a class, is recognised before anything is fitted. With ``bins`` it
becomes classes, ranges with about as many training rows each.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from covshift.domains import Labels
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.tables.cells import MISSING, Kind
from covshift.tables.columns import column_kind, column_numbers, column_text
from covshift.tables.errors import TableError, listed
from covshift.tables.schema_finding import quoted

# More different numbers than this are a quantity, unless whole and each in many rows.
MAX_NUMERIC_CLASSES = 20
MIN_ROWS_PER_CLASS = 10
# More different whole numbers than this are counts, however many rows each has.
MAX_COUNT_CLASSES = 100
# The one place that says what to do with a numeric label. Once the commands can fit regressions,
# --task regression is named here, first.
INSTEAD_OF_A_QUANTITY = (
    "The commands do not support a numeric label yet: use --bins 4 to predict four ranges of it, "
    "or name another column with --label."
)
MIN_BINS, MAX_BINS = 2, 50


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
    not whole, or they have fewer than ten rows each on average, or they are more than 100.
    ``edges``: where numbers are cut into ranges, which become the classes. ``exact``: words that
    differ in case are different classes.
    """
    name, kind = listed([column.name]), column_kind(column)
    if kind == "date":
        raise TableError(f"The label {name} holds dates; classes or numbers are needed.")
    if kind == "text":
        values = column_text(column, missing).to_numpy(zero_copy_only=False)
        known = np.array([value is not None for value in values], dtype=bool)
    else:
        values = column_numbers(column)
        known = ~np.isnan(values)
    rows = np.flatnonzero(known)
    if not len(rows):
        raise TableError(f"No row of the training table has a label in {name}.")
    if len(rows) < len(values):
        n_dropped = len(values) - len(rows)
        notes.append(f"{n_dropped} of {len(values)} training rows have no label and are left out.")
    if kind == "text" and not exact:
        values = _one_case(column.name, values, notes)
    if task == "regression":
        return _as_quantity(name, kind, values[rows]), rows
    if edges is not None:
        labels = cut_labels(values[rows], edges.tolist())
        ranges = listed(range_names(edges.tolist()), MAX_BINS)
        notes.append(f"The label {name} is cut into {len(edges) + 1} ranges: {ranges}.")
    else:
        labels = _as_classes(name, kind, values[rows])
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
    return text.casefold() if len(text) > 1 else text


def as_written(labels: Labels, texts: Sequence[str | None]) -> Labels:
    """Return labels as their cells are written, so that predictions can be written so too.

    Whole numbers stay numbers where they are written plainly (``-1``, ``12``). So does everything
    if a class is written in two ways, as ``1`` and ``1.0``.
    """
    spellings = set(zip(labels.tolist(), texts, strict=True))
    plain = labels.dtype.kind == "i" and all(str(value) == text for value, text in spellings)
    if plain or len(spellings) > len({value for value, _ in spellings}):
        return labels
    return np.array(texts, dtype=str)


def class_kind(classes: Any) -> Kind:
    """Return the kind of column that classes came from."""
    kinds: dict[str, Kind] = {"b": "boolean", "i": "number", "u": "number", "f": "number"}
    return kinds.get(classes.dtype.kind, "text")


def read_known_labels(
    column: Any, classes: Any, missing: Sequence[str] = MISSING
) -> tuple[Labels, BoolArray]:
    """Return a column of `class_kind` as these classes are written, and which cells hold one."""
    kind = class_kind(classes)
    if kind == "text":
        texts = match_spellings(column_text(column, missing).to_pylist(), classes.tolist())
        known = np.array([text is not None for text in texts], dtype=bool)
        return np.array([text or "" for text in texts], dtype=str), known
    numbers = column_numbers(column)
    known = ~np.isnan(numbers)
    values = np.where(known, numbers, 0)
    if kind == "boolean":
        return values != 0, known
    whole = bool(np.all(values == np.floor(values)) and np.abs(values).max(initial=0) < 2**53)
    return (values.astype(np.int64) if whole else values), known


def match_spellings(texts: Sequence[str | None], classes: Sequence[str]) -> list[str | None]:
    """Return texts as the classes of the same value are written: ``0.5`` for ``0.50``.

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


def _as_quantity(name: str, kind: str, values: Any) -> Labels:
    if kind == "text":
        raise TableError(
            f"The label {name} holds text ({listed(values[:1])}); a regression needs numbers."
        )
    return np.asarray(values, dtype=np.float64)


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


def range_names(edges: Sequence[float]) -> list[str]:
    """Return the names of the ranges between edges, numbered, so that names sort as values do."""
    shown = [f"{edge:.6g}" for edge in edges]
    names = [
        f"up to {shown[0]}",
        *(f"{low} to {high}" for low, high in pairwise(shown)),
        f"above {shown[-1]}",
    ]
    width = len(str(len(names)))
    return [f"{i + 1:0{width}d}: {text}" for i, text in enumerate(names)]


def cut_labels(values: FloatArray, edges: Sequence[float]) -> Labels:
    """Return the range that each number is in; an edge belongs to the range below it."""
    names = np.array(range_names(edges), dtype=str)
    return names[np.searchsorted(np.asarray(edges), values, side="left")]


def _as_classes(name: str, kind: str, values: Any) -> Labels:
    n_rows, n_classes = len(values), len(set(values.tolist()))
    if kind == "text":
        if n_rows >= 20 and n_classes > n_rows / 2:
            raise TableError(
                f"The label {name} has {n_classes} different texts in {n_rows} rows: these are "
                "no classes. Name another column."
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
