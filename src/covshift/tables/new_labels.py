"""Labels of some rows of the new table, in a file that somebody has filled in."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from covshift.domains import Labels
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.tables.cells import Kind
from covshift.tables.errors import listed, table_error
from covshift.tables.labels import label_kind, read_known_labels
from covshift.tables.matching import MatchedTables
from covshift.tables.reading import read_table
from covshift.tables.schema import TableSchema

ROW = "row_to_label"  # column with the number of a row in the new table; the first is 1


class NewLabels(NamedTuple):
    """Positions of rows in ``MatchedTables.X_new``, their labels, and notes of reading."""

    rows: IntArray
    labels: Labels
    notes: list[str]


def read_new_labels(tables: MatchedTables, path: Any, **options: Any) -> NewLabels:
    """Read the labels that a file of ``covshift diagnose --to-label`` has been filled in with.

    Parameters
    ----------
    tables : MatchedTables
        With the new table that the numbers of rows are of.
    path : path
        Table with the numbers of rows (``row_to_label``) and their labels; rows without a label
        are left alone.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    NewLabels
        Labels that no training row has are among them.

    Raises
    ------
    TableError
        If no row has a label, or a number is not that of a row of the new table.
    """
    classes, edges = tables.classes, tables.label_edges
    spelling = tables.spellings.get(tables.label, "")
    kinds: dict[str, Kind] = {ROW: "number", tables.label: label_kind(classes, edges)}
    schema = TableSchema(kinds, spellings={tables.label: spelling} if spelling else {})
    table = read_table(path, schema=schema, **options)
    column = table.frame[tables.label]
    labels, known = read_known_labels(column, classes, tables.missing, edges)
    if not known.any():
        raise table_error(path, f"no row has a label yet: fill in the column {tables.label!r}.")
    numbers = table.frame[ROW].to_numpy(dtype=np.float64)[known]
    if np.isnan(numbers).any():
        raise table_error(path, f"a labeled row has no number in the column {ROW!r}; put it back.")
    rows = _find_rows(tables, numbers)
    if (rows < 0).any():
        raise table_error(
            path,
            f"row {numbers[rows < 0][0]:g} is not a row of the new table as it was read. Give the "
            "same tables and options as when the rows were asked for.",
        )
    distinct, counts = np.unique(rows, return_counts=True)
    if len(distinct) < len(rows):
        twice = numbers[rows == distinct[counts > 1][0]][0]
        raise table_error(path, f"row {twice:g} has several labels; keep one.")
    return NewLabels(rows, labels[known], list(table.notes))


def with_new_labels(tables: MatchedTables, path: Any, **options: Any) -> MatchedTables:
    """Return the tables with known labels of new rows, to fit and to assess models with.

    Parameters
    ----------
    tables, path, **options
        As in `read_new_labels`.

    Returns
    -------
    MatchedTables

    Raises
    ------
    TableError
        As in `read_new_labels`, and if a label is not a class of the training table.
    """
    rows, labels, notes = read_new_labels(tables, path, **options)
    classes = tables.classes
    strangers: Any = [] if classes is None else np.setdiff1d(labels, classes)
    if len(strangers):
        raise table_error(
            path,
            f"no training row has the label {listed(strangers)}. The classes are "
            f"{listed(classes)}: correct the label, or leave it empty.",
        )
    notes = [f"{len(rows)} labels of new rows are used.", *notes]
    return replace(tables, labeled_rows=rows, new_labels=labels, notes=[*tables.notes, *notes])


def _find_rows(tables: MatchedTables, numbers: FloatArray) -> IntArray:
    """Positions in ``X_new`` of rows by their numbers; -1: there is no such row."""
    whole = np.where(numbers == np.floor(numbers), numbers, 0).astype(np.int64) - 1
    all_rows = np.arange(len(tables.X_new)) if tables.new_rows is None else tables.new_rows
    places = np.minimum(np.searchsorted(all_rows, whole), len(all_rows) - 1)
    found: IntArray = np.where(all_rows[places] == whole, places, -1)
    return found
