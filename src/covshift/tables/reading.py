"""Reading a user's file, whole or chunk by chunk, with the kinds of its columns fixed first.

Without a schema the file is read twice: once for the kinds, once for the values, so that the
last row may be text without the first million having been numbers. With a schema, that of the
training table, it is read once. pyarrow cuts the text into cells; `covshift.tables.cells` says
what they mean.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covshift.base import check_count
from covshift.kernels.arrays import IntArray
from covshift.tables.batches import FolderBatches, open_batches, parquet_files
from covshift.tables.cells import NumberStyle
from covshift.tables.errors import TableError, one_line
from covshift.tables.recordings import RecordingBatches, RecordingTable
from covshift.tables.schema import Intake, TableSchema
from covshift.tables.table_reader import TableReader, sample_frames, sample_note
from covshift.tables.text_layout import GivenLayout

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
    header: bool = True,
    skip_rows: int | None = None,
    encoding: str | None = None,
    intake: Intake | None = None,
    allow_absent: bool = False,
    max_rows: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Table:
    r"""Read a table into memory.

    Parameters
    ----------
    path, schema, separator, decimal, header, skip_rows, encoding, intake, allow_absent
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
        path,
        schema=schema,
        separator=separator,
        decimal=decimal,
        header=header,
        skip_rows=skip_rows,
        encoding=encoding,
        intake=intake,
        allow_absent=allow_absent,
    )
    return read_rows(reader, max_rows, progress)


def read_rows(
    reader: TableReader,
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
    header: bool = True,
    skip_rows: int | None = None,
    encoding: str | None = None,
    intake: Intake | None = None,
    allow_absent: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> TableReader:
    """Open a table for reading chunk by chunk, in bounded memory.

    Parameters
    ----------
    path : path
        CSV, TSV or other separated text, Parquet, Arrow (Feather) or an Excel workbook; such text
        under gzip, or any of these in a zip archive; or a folder of Parquet files with the same
        columns, read in the order of their names; or a ``RecordingTable``, whose windows are read.
        ``book.xlsx#Sheet 2`` and ``data.zip#train.csv`` name what is read inside.
    schema : TableSchema or None
        Columns to read and their kinds; others are left alone. Cells that do not fit are missing
        values, counted in the notes. None: all columns, of the kinds that all their cells have.
    separator : str or None
        One character between cells; None: detected.
    decimal : {".", ","} or None
        Decimal sign of numbers; None: detected (`covshift.tables.cells`).
    header : bool, default=True
        Whether the first row of a text file holds the names of the columns. If not, they are
        "column 1", "column 2", ...
    skip_rows : int or None, default=None
        Lines of a text file above the names of the columns; None: detected.
    encoding : str or None, default=None
        Encoding of a text file, such as "cp1251"; None: detected.
    intake : Intake or None, default=None
        Known facts about the cells, not to be guessed; for files without ``schema``.
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
    if decimal not in (".", ",", None):
        raise TableError(f"decimal must be one of '.' and ',', got {one_line(decimal)!r}.")
    check_count("chunk_bytes", chunk_bytes, minimum=1)
    if skip_rows is not None and skip_rows < 0:
        raise TableError(f"--skip-rows must be 0 or more, got {skip_rows}.")
    style: NumberStyle | None = {".": "point", ",": "comma", None: None}[decimal]  # type: ignore
    files = parquet_files(Path(path)) if os.path.isdir(path) else []
    batches: Any
    if isinstance(path, RecordingTable):
        batches = RecordingBatches(path, separator=separator, header=header)
        return TableReader(batches, schema, style, allow_absent, intake)
    if files:
        return TableReader(FolderBatches(Path(path), files), schema, style, allow_absent, intake)
    given = GivenLayout(separator, header, skip_rows, encoding)
    if schema is None:
        # The columns are found by reading all rows: the text is examined by the way.
        batches = open_batches(Path(path), given, chunk_bytes, examine_all=False)
        try:
            return TableReader(batches, schema, style, allow_absent, intake)
        except TableError:
            if batches.examined:
                raise
    batches = open_batches(Path(path), given, chunk_bytes)
    return TableReader(batches, schema, style, allow_absent, intake)
