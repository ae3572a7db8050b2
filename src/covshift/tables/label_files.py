"""Rows of the new table to label, as a file, and its labels once somebody has filled them in."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from covshift.domains import Labels
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.output_files import same_file
from covshift.tables.columns import Kind
from covshift.tables.label_column import label_kind, read_known_labels
from covshift.tables.matching import MatchedTables
from covshift.tables.messages import TableError, listed, table_error
from covshift.tables.reading import open_table, read_table
from covshift.tables.schema import TableSchema
from covshift.tables.table_models import TableClassifier
from covshift.tables.writing import write_table

if TYPE_CHECKING:
    from covshift.diagnosis import Diagnosis

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
    spelling = tables.spellings.get(tables.label, "")
    of = _Label(tables.label, tables.classes, tables.label_edges, tables.missing, spelling)
    numbers, labels, notes = _read_labels(path, of, **options)
    rows = _find_rows(tables, numbers)
    if (rows < 0).any():
        raise table_error(
            path,
            f"row {numbers[rows < 0][0]:g} is not a row of the new table as it was read. Give the "
            "same tables and options as to diagnose --to-label.",
        )
    return NewLabels(rows, labels, notes)


def read_batch_labels(
    model: TableClassifier, batch: Any, path: Any, notes: list[str], **options: Any
) -> dict[int, Any]:
    """Read a file of labels of some rows of a batch, for a model that knows its label column.

    Parameters
    ----------
    model : TableClassifier
        Whose classes are read.
    batch : path
        The rows.
    path : path
        As in `read_new_labels`; or the batch itself, if it has a label column by now.
    notes : list of str
        Gets those of reading.
    **options
        Of the batch: ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict of int to label
        By the number of the row in the batch, from 0. Classes that the model does not know are
        among them.
    """
    if model.label_ is None:
        raise TableError("The model does not know its label column: make it with covshift adapt.")
    of = _Label(model.label_, model.classes_, model.label_edges_, model.schema_.missing)
    if same_file(path, batch):
        numbers, labels, read = _read_labels(path, of, numbered=False, **options)
    else:
        numbers, labels, read = _read_labels(path, of)
    notes += read
    rows = numbers.astype(np.int64) - 1
    if (rows < 0).any() or (rows + 1 != numbers).any():
        odd = numbers[(rows < 0) | (rows + 1 != numbers)][0]
        raise table_error(path, f"row {odd:g} is not a row of the batch; the first one is 1.")
    return dict(zip(rows.tolist(), labels.tolist(), strict=True))


class _Label(NamedTuple):
    """A label column: its name, its classes, where numbers are cut, and texts for no value."""

    name: str
    classes: Any
    edges: Sequence[float]
    missing: Sequence[str]
    spelling: str = ""  # unit of the label


def _read_labels(
    path: Any, of: _Label, *, numbered: bool = True, **options: Any
) -> tuple[FloatArray, Labels, list[str]]:
    """Return the numbers of the labeled rows of a file, their labels, and notes of reading."""
    kinds: dict[str, Kind] = {ROW: "number"} if numbered else {}
    kinds[of.name] = label_kind(of.classes, of.edges)
    schema = TableSchema(kinds, spellings={of.name: of.spelling} if of.spelling else {})
    table = read_table(path, schema=schema, allow_absent=True, **options)
    if numbered and ROW not in table.frame:
        raise table_error(
            path,
            f"has no column {ROW!r}, which says which row of NEW each label is for. Fill in a file "
            "that covshift diagnose --to-label or covshift label wrote.",
        )
    if of.name not in table.frame:
        raise table_error(path, f"has no column {of.name!r}, the label. Add or rename it.")
    column = table.frame[of.name]
    labels, known = read_known_labels(column, of.classes, of.missing, of.edges)
    if not known.any():
        raise table_error(path, f"no row has a label yet: fill in the column {of.name!r}.")
    if numbered:
        numbers = table.frame[ROW].to_numpy(dtype=np.float64)[known]
    else:
        numbers = 1.0 + np.flatnonzero(known)
    if np.isnan(numbers).any():
        raise table_error(path, f"a labeled row has no number in the column {ROW!r}; put it back.")
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        twice = distinct[counts > 1][0]
        raise table_error(path, f"row {twice:g} has several labels; keep one.")
    return numbers, labels[known], list(table.notes)


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
    """Return the positions in ``X_new`` of rows by their numbers; -1: not in the table."""
    whole = np.where(numbers == np.floor(numbers), numbers, 0).astype(np.int64) - 1
    all_rows = np.arange(len(tables.X_new)) if tables.new_rows is None else tables.new_rows
    places = np.minimum(np.searchsorted(all_rows, whole), len(all_rows) - 1)
    found: IntArray = np.where(all_rows[places] == whole, places, -1)
    return found


def rows_to_label(diagnosis: "Diagnosis", tables: MatchedTables, n_rows: int) -> list[int]:
    """Return rows of the new table to label, drawn at random; the first row of the table is 1."""
    asked = diagnosis.rows_to_label(n_rows) - len(tables.X_train)
    rows = np.argsort(-tables.target_domain, kind="stable")[asked]
    if tables.new_rows is not None:  # a sample was read
        rows = tables.new_rows[rows]
    return [int(row) + 1 for row in rows]


def write_rows_to_label(
    out: Any,
    new_path: Any,
    rows: Sequence[int],
    label: str,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Write rows of a table unchanged, with their numbers and an empty label.

    Parameters
    ----------
    out : path
        As in `write_table`.
    new_path : path
        The new table.
    rows : sequence of int
        From `rows_to_label`; so are they ordered.
    label : str
        Name of the column to fill in.
    columns : sequence of str or None, default=None
        Columns to repeat. None: all.
    **options
        ``separator`` and ``decimal``, as in `open_table`.
    """
    names = open_table(new_path, **options).schema.kinds if columns is None else columns
    # As text, so that cells come out as they went in.
    reader = open_table(new_path, schema=TableSchema(dict.fromkeys(names, "text")), **options)
    found = pd.concat(_with_row_numbers(reader, rows)).set_index(ROW).loc[list(rows)].reset_index()
    found = found.drop(columns=label, errors="ignore")
    found.insert(1, label, pd.array([pd.NA] * len(found), dtype="string"))
    write_table(out, [found])


def _with_row_numbers(reader: Any, rows: Sequence[int]) -> Iterator[Any]:
    start = 1
    for frame in reader:
        numbered = frame.drop(columns=ROW, errors="ignore")
        numbered.insert(0, ROW, np.arange(start, start + len(frame)))
        yield numbered[numbered[ROW].isin(rows)]
        start += len(frame)
