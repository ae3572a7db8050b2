"""Reading a user's file, whole or chunk by chunk, with the kinds of its columns fixed first.

Without a schema the file is read twice: once for the kinds, once for the values, so that the
last row may be text without the first million having been numbers. With a schema, that of the
training table, it is read once. pyarrow cuts the text into cells; `covshift.tables.cells` says
what they mean.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covshift.base import check_count, check_option
from covshift.kernels.arrays import IntArray
from covshift.tables.arrow_columns import (
    READ_TYPES,
    arrow_kind,
    as_kind,
    as_text,
    plain_column,
    to_frame,
)
from covshift.tables.batches import open_batches
from covshift.tables.cells import NumberStyle, guess_style, trim
from covshift.tables.errors import TableError, listed, table_error
from covshift.tables.extra import pyarrow as pa
from covshift.tables.folders import FolderBatches, parquet_files
from covshift.tables.row_sample import sample_frames, sample_note
from covshift.tables.schema import TableSchema
from covshift.tables.schema_finding import find_schema

CHUNK_BYTES = 4 << 20  # more gains no speed and takes memory


@dataclass(frozen=True)
class Table:
    """A table in memory.

    Attributes
    ----------
    frame : pandas frame: float64, boolean, datetime64[us] and string columns.
    schema : `TableSchema` of these columns.
    notes : what was decided while reading, in plain sentences.
    rows : numbers of the rows in the file, from 0; None: all of them.
    """

    frame: Any
    schema: TableSchema
    notes: list[str]
    rows: IntArray | None = None


def read_table(
    path: str | os.PathLike[str],
    *,
    schema: TableSchema | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    allow_absent: bool = False,
    max_rows: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    r"""Read a table into memory.

    Parameters
    ----------
    path, schema, separator, decimal, allow_absent
        As in `open_table`.
    max_rows : int or None, default=None
        Rows to keep: if there are more, that many are drawn at random while the file is read, in
        bounded memory, and a note says so. None: all.
    progress : callable or None, default=None
        Gets the number of rows read so far.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the file holds no table; the message says what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from covshift.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sales.csv")
    ...     _ = path.write_text("city;price\nRome;1.234,5\nOslo;NA\n")
    ...     table = read_table(path)
    >>> table.frame["price"].tolist()
    [1234.5, nan]
    >>> for note in table.notes:
    ...     print(note)
    Cells are separated by semicolon.
    Numbers are read with a decimal comma, as in '1.234,5'.
    """
    reader = open_table(
        path, schema=schema, separator=separator, decimal=decimal, allow_absent=allow_absent
    )
    return read_rows(reader, max_rows, progress)


def read_rows(
    reader: "TableReader",
    max_rows: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    """Read all rows of an open table, or a sample of them; arguments as in `read_table`."""
    if max_rows is not None:
        check_count("max_rows", max_rows, minimum=1)
    frame, rows = sample_frames(reader, max_rows or sys.maxsize, progress=progress)
    notes = reader.notes
    if rows is not None:
        notes = [*notes, sample_note(len(rows), reader.n_rows)]
    return Table(frame, reader.schema, notes, rows)


def open_table(
    path: str | os.PathLike[str],
    *,
    schema: TableSchema | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    allow_absent: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> "TableReader":
    """Open a table for reading chunk by chunk, in bounded memory.

    Parameters
    ----------
    path : path
        CSV, TSV or other separated text, such text under gzip, Parquet, or Arrow (Feather); or a
        folder of Parquet files with the same columns, read in the order of their names.
    schema : TableSchema or None
        Columns to read and their kinds; others are left alone. Cells that do not fit are missing
        values, counted in the notes. None: all columns, of the kinds that all their cells have.
    separator : str or None
        One character between cells; None: found out.
    decimal : {".", ","} or None
        Decimal sign of numbers; None: found out (`covshift.tables.cells`).
    allow_absent : bool, default=False
        Whether columns of ``schema`` may be absent from the file; then they are from the
        frames too.
    chunk_bytes : int
        Size of a chunk in the file, about; 1 MiB at least.

    Returns
    -------
    TableReader
        Iterate it for pandas frames.

    Raises
    ------
    TableError
        If the file holds no table; the message says what to do.
    """
    if separator is not None and (len(separator) != 1 or separator in '"\r\n\0'):
        raise TableError(f"separator must be one character, no quote or line break: {separator!r}.")
    check_option("decimal", decimal, (".", ",", None))
    check_count("chunk_bytes", chunk_bytes, minimum=1)
    style: NumberStyle | None = {".": "point", ",": "comma", None: None}[decimal]  # type: ignore
    files = parquet_files(Path(path)) if os.path.isdir(path) else []
    if files:
        batches: Any = FolderBatches(Path(path), files)
    else:
        batches = open_batches(Path(path), separator=separator, chunk_bytes=chunk_bytes)
    return TableReader(batches, schema, style, allow_absent)


class TableReader:
    """Frames of a table, one after the other; made by `open_table`.

    Attributes
    ----------
    schema : `TableSchema` of the frames.
    other_names : columns of the file that the schema has not.
    notes : what was decided so far, in plain sentences; complete once all frames were read.
    n_rows : rows read so far.
    """

    def __init__(
        self, batches: Any, schema: TableSchema | None, style: NumberStyle | None, absent: bool
    ):
        self._batches = batches
        self._style = style
        self._fixed_notes = list(batches.notes)
        self._unreadable: Counter[str] = Counter()
        self._filled: Counter[str] = Counter()
        self._n_dropped = 0
        self.n_rows = 0
        if schema is None:
            self.schema, self._style, notes = find_schema(batches, style)
            self._fixed_notes += notes
        else:
            self.schema = self._take_schema(schema, absent)

        self.other_names = [
            name
            for i, name in enumerate(batches.names)
            if name not in self.schema.kinds
            and name not in batches.row_names
            and i not in batches.nameless
        ]

    @property
    def notes(self) -> list[str]:
        """What was decided so far, in plain sentences."""
        notes = list(self._fixed_notes)
        if self._style == "comma":
            notes.append("Numbers are read with a decimal comma, as in '1.234,5'.")
        for name, count in (+self._unreadable).items():
            kind = self.schema.kinds[name]
            notes.append(
                f"Column {listed([name])}: {count} cells are no {kind}s and are read as missing."
            )
        if self._n_dropped:
            notes.append(f"{self._n_dropped} empty rows at the end are left out.")
        return notes

    @property
    def empty_names(self) -> list[str]:
        """Columns in which no row read so far has a value."""
        return [name for name in self.schema.kinds if self.n_rows and not self._filled[name]]

    def __iter__(self) -> Iterator[Any]:
        return map(to_frame, self.batches())

    def batches(self) -> Iterator[Any]:
        """Yield the table in batches of Arrow, text as such or as categories.

        For what needs no frames: they take as long to make as features.
        """
        self._unreadable.clear()
        self._filled.clear()
        self.n_rows = self._n_dropped = 0
        empty: list[Any] = []  # rows that are left out if nothing follows
        for batch in self._batches.read(self._fast_types()):
            n_filled = _last_filled_row(batch)
            if n_filled:
                for piece in (*empty, batch.slice(0, n_filled)):
                    self.n_rows += piece.num_rows
                    yield self._to_kinds(piece)
                empty = []
            if n_filled < batch.num_rows:
                empty.append(batch.slice(n_filled))
        self._n_dropped = sum(piece.num_rows for piece in empty)
        if not self.n_rows:
            raise table_error(self._batches.path, "has names of columns and no rows below them.")

    def _to_kinds(self, batch: Any) -> Any:
        if self._style is None:
            self._style = self._guess_style(batch)
        arrays = []
        for name, kind in self.schema.kinds.items():
            column = plain_column(batch.column(name))
            values = as_kind(column, kind, self._style)
            if kind != "text" and values.null_count > column.null_count:
                n_missing = trim(as_text(column)).null_count
                self._unreadable[name] += values.null_count - n_missing
            self._filled[name] += len(values) - values.null_count
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, names=list(self.schema.kinds))

    def _fast_types(self) -> dict[str, Any] | None:
        """Return types that cells can be read as while they are cut, or None."""
        if self._style == "comma" or (self._style is None and self.schema.decimal == ","):
            return None
        return {name: READ_TYPES[kind] for name, kind in self.schema.kinds.items()}

    def _guess_style(self, batch: Any) -> NumberStyle:
        """Return the style of the numbers that came as text; none came so if all are plain."""
        columns = [batch.column(n) for n, kind in self.schema.kinds.items() if kind == "number"]
        texts = [column for column in columns if pa.types.is_string(column.type)]
        usual = self.schema.decimal == "," and bool(texts)
        return guess_style(texts, "comma" if usual else "point")

    def _take_schema(self, schema: TableSchema, allow_absent: bool) -> TableSchema:
        absent = [name for name in schema.kinds if name not in self._batches.names]
        if absent and not allow_absent:
            others = [name for name in self._batches.names if name not in schema.kinds]
            hint = f"; it has {listed(others)} instead" if others else ""
            raise table_error(
                self._batches.path, f"has no column {listed(absent)}{hint}. Add or rename it."
            )
        kept = schema.without(absent)
        if not kept.kinds:
            raise table_error(
                self._batches.path,
                f"has none of the columns that are wanted ({listed(schema.kinds, 3)}); its first "
                f"row is read as {listed(self._batches.names, 3)}. Is that a row of names, and the "
                "separator found right? Else name it (--separator).",
            )
        if self._batches.typed:
            types = dict(zip(self._batches.names, self._batches.types, strict=True))
            unusable = [name for name in kept.kinds if arrow_kind(types[name]) is None]
            if unusable:
                raise table_error(
                    self._batches.path,
                    f"column {listed(unusable)} holds lists, records or bytes; write plain values.",
                )
        return kept


def _last_filled_row(batch: Any) -> int:
    """Return the number of rows up to the last one with a cell that holds something."""
    n_rows = batch.num_rows
    while n_rows and not any(column[n_rows - 1].is_valid for column in batch.columns):
        n_rows -= 1
    return n_rows
