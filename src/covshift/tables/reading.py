"""From a file to arrays: opening a table, and reading it in batches of columns of known kinds.

The path of a cell, each step in the module that is named after it:

1. `file_formats`: what a file is, by its first bytes. Archives and workbooks are converted.
2. `text_files`, `arrow_files`, `recordings`: a source of batches, which are columns of Arrow. Text
   is cut into cells by pyarrow; `text_layout` finds the separator and the names.
3. `schema_detection`, only where no schema is given: the kinds of the columns, from all rows.
4. `columns`: what cells mean, as numbers, truth values, dates or text.
5. `TableReader`, here: counts what cannot be read, leaves out empty rows at the end, and yields
   batches or frames.

Without a schema the file is read twice: once for the kinds, once for the values, so that the
last row may be text without the first million having been numbers. With a schema, that of the
training table, it is read once.

A source has ``names`` (no two alike), ``row_names`` (columns that only number or name the rows),
``nameless``, ``notes``, ``typed`` (whether its columns have types, in ``types``) and ``examined``
(whether all of it was examined for another encoding). ``read`` yields its batches, from the first,
and ``share_read`` says how far that is. Memory is bounded by the size of a batch.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from covshift.base import check_count
from covshift.kernels.array_types import IntArray
from covshift.tables.arrow_files import ArrowBatches, FolderBatches, parquet_files
from covshift.tables.columns import (
    PLACEHOLDERS,
    READ_TYPES,
    UNUSABLE,
    NumberStyle,
    arrow_kind,
    as_kind,
    as_text,
    guess_number_style,
    plain_column,
    to_frame,
    trim,
    without_unit,
)
from covshift.tables.dates import is_days
from covshift.tables.file_formats import (
    ConvertedFile,
    identify_file,
    read_workbook,
    split_part,
    unzip,
)
from covshift.tables.messages import TableError, listed, one_line, table_error
from covshift.tables.schema import Intake, TableSchema
from covshift.tables.schema_detection import find_schema, text_columns
from covshift.tables.table_words import say_sampled
from covshift.tables.text_files import TextBatches
from covshift.tables.text_layout import GivenLayout

CHUNK_BYTES = 4 << 20  # more gains no speed and takes memory
AS_WRITTEN = "\0as written"  # no name of a column in a file


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
) -> "TableReader":
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
        Decimal sign of numbers; None: detected (`covshift.tables.columns`).
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
    given = GivenLayout(separator, header, skip_rows, encoding)
    if schema is None:
        # The columns are found by reading all rows: the text is examined by the way.
        batches = open_batches(path, given, chunk_bytes, examine_all=False)
        try:
            return TableReader(batches, None, style, allow_absent, intake)
        except TableError:
            # The first pass may have failed because the rest of the file is not as its beginning:
            # then the file is opened again with all of it examined, and read as what it is.
            if batches.examined:
                raise
    batches = open_batches(path, given, chunk_bytes)
    return TableReader(batches, schema, style, allow_absent, intake)


def open_batches(
    path: Any, given: GivenLayout, chunk_bytes: int, *, examine_all: bool = True
) -> Any:
    """Return the source of batches by which the table at a path is read.

    Nothing else asks what the path names.

    Without ``examine_all`` the first reading of a long text may end in an error, since only the
    beginning of the text was examined: ``examined`` says so, and it must be opened again.
    """
    if hasattr(path, "open_batches"):  # a `RecordingTable`, whose module imports this one
        return path.open_batches(given)
    path = Path(path)
    if os.path.isdir(path) and (files := parquet_files(path)):
        return FolderBatches(path, files)
    file, part = split_part(path)
    kind = identify_file(file)
    if kind in ("zip", "xlsx"):
        converted = unzip(file, part) if kind == "zip" else read_workbook(file, part)
        return _open_converted(converted, path, given, chunk_bytes, examine_all)
    if kind in ("text", "gzip"):
        return TextBatches(path, kind == "gzip", given, chunk_bytes, examine_all)
    return ArrowBatches(path, kind)


def _open_converted(
    converted: ConvertedFile, path: Path, given: GivenLayout, chunk_bytes: int, examine_all: bool
) -> Any:
    """Return the batches of a converted file, which speak of the file that the user named."""
    try:
        batches = open_batches(converted.path, given, chunk_bytes, examine_all=examine_all)
    except TableError as error:
        raise table_error(path, error.reason or str(error)) from None
    # Files stay as long as their batches: a workbook in an archive is converted twice.
    batches.converted = [converted, *getattr(batches, "converted", [])]
    batches.path = path
    batches.notes = [*converted.notes, *batches.notes]
    return batches


class TableReader:
    """Frames of a table, one after the other; made by `covshift.tables.open_table`.

    Attributes
    ----------
    schema : `TableSchema` of the frames.
    other_names : columns of the file that are not in the schema.
    unusable_names : columns of the file whose types are none of ours.
    notes : what was decided so far, in plain sentences; complete once all frames were read.
    n_rows : rows read so far.
    spelled : a column whose cells are also given as they are written, as a column ``AS_WRITTEN``
        behind the others; None: no such column.
    """

    spelled: str | None = None

    def __init__(
        self,
        batches: Any,
        schema: TableSchema | None,
        style: NumberStyle | None,
        absent: bool,
        intake: Intake | None = None,
    ):
        self._batches = batches
        self._style = style
        self._fixed_notes = list(batches.notes)
        self._unreadable: Counter[str] = Counter()
        self._first_unreadable: dict[str, str] = {}
        self._filled: Counter[str] = Counter()
        self._n_dropped = 0
        self._uneven: frozenset[str] = frozenset()
        self.n_rows = 0
        if schema is None:
            found = find_schema(batches, style, intake or Intake())
            self.schema, self._style, self._uneven = found.schema, found.style, found.uneven
            self._fixed_notes += found.notes
        else:
            self.schema = self._take_schema(schema, absent)

        # Columns that are left alone have reasons of their own: a type that cannot be used, no
        # name, names of rows; the rest is not in the schema.
        types = batches.types if batches.typed else []
        self.unusable_names = [
            batches.names[i] for i, kind in enumerate(types) if arrow_kind(kind) is None
        ]
        self.other_names = [
            name
            for i, name in enumerate(batches.names)
            if name not in self.schema.kinds
            and name not in batches.row_names
            and i not in batches.nameless
            and name not in self.unusable_names
        ]

    @property
    def text_names(self) -> list[str]:
        """Columns that the file holds as text: all of a text file."""
        return text_columns(self._batches)

    @property
    def share_read(self) -> float | None:
        """Share of the file that was read so far; None: unknown."""
        share: float | None = self._batches.share_read
        return share

    @property
    def notes(self) -> list[str]:
        """Decisions so far, in plain sentences."""
        notes = list(self._fixed_notes)
        if self._style == "comma":
            notes.append("Numbers are read with a decimal comma, as in '1.234,5'.")
        for name, count in (+self._unreadable).items():
            kind = self.schema.kinds[name]
            first = self._first_unreadable.get(name)
            shown = f" (first: {listed([first])})" if first else ""
            spelling = self.schema.spellings.get(name, "")
            unit = kind == "number" and spelling and not is_days(spelling)
            what = f"{kind}s with the unit {listed([spelling])}" if unit else f"{kind}s"
            notes.append(
                f"Column {listed([name])}: {count:,} cells are not {what}{shown} and are read as "
                f"missing.{self._other_sign(name, first)}"
            )
        if n_repeated := getattr(self._batches, "n_repeated", 0):
            rows = "1 row repeats" if n_repeated == 1 else f"{n_repeated:,} rows repeat"
            left_out = "it is" if n_repeated == 1 else "they are"
            notes.append(f"{rows} the names of the columns: {left_out} left out.")
        if self._n_dropped:
            notes.append(f"{self._n_dropped} empty rows at the end are left out.")
        return notes

    def _other_sign(self, name: str, first: str | None) -> str:
        """Say so if an unreadable cell is a number with the decimal sign of the other style."""
        if first is None or self.schema.kinds[name] != "number":
            return ""
        ours, other = ("comma", "point") if self._style == "comma" else ("point", "comma")
        unit = self.schema.spellings.get(name, "")
        if as_kind(pa.array([first]), "number", cast(NumberStyle, other), unit).null_count:
            return ""
        return (
            f" They have a decimal {other}, and the file is read with a decimal {ours}: write all "
            "of its numbers alike, or choose with --decimal."
        )

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
        self._first_unreadable.clear()
        self._filled.clear()
        self.n_rows = self._n_dropped = 0
        empty: list[Any] = []  # rows that are left out if nothing follows
        # Spreadsheets write empty rows below a table. Whether rows are at its end is known only
        # when nothing follows, so that they wait here.
        for batch in self._batches.read(self._types_to_parse(), self.schema.missing):
            n_filled = _last_filled_row(batch)
            if n_filled:
                for piece in (*empty, batch.slice(0, n_filled)):
                    self.n_rows += piece.num_rows
                    yield self._to_kinds(piece)
                empty = []
            if n_filled < batch.num_rows:
                empty.append(batch.slice(n_filled))
        self._n_dropped = sum(piece.num_rows for piece in empty)
        if self._n_dropped and not self.n_rows:
            wanted = listed(self.schema.kinds, 3)
            raise table_error(
                self._batches.path,
                f"has no rows below its names that hold a value in {wanted}: {self._n_dropped:,} "
                "are empty there. Export it again.",
            )
        if not self.n_rows:
            raise table_error(self._batches.path, "has column names, but no rows below them.")

    def _to_kinds(self, batch: Any) -> Any:
        if self._style is None:
            self._style = self._guess_number_style(batch)
        arrays = []
        for name, kind in self.schema.kinds.items():
            column = plain_column(batch.column(name))
            spelling = self.schema.spellings.get(name, "")
            values = as_kind(column, kind, self._style, spelling, self.schema.missing)
            # More missing values than before: cells that do not fit their kind. Only then they are
            # searched.
            if kind != "text" and values.null_count > column.null_count:
                self._count_unreadable(name, as_text(column), values)
            self._filled[name] += len(values) - values.null_count
            arrays.append(values)
        names = list(self.schema.kinds)
        if self.spelled is not None:
            texts = as_text(plain_column(batch.column(self.spelled)))
            arrays.append(trim(texts, self.schema.missing))
            names.append(AS_WRITTEN)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _count_unreadable(self, name: str, texts: Any, values: Any) -> None:
        filled = trim(texts, (*self.schema.missing, *PLACEHOLDERS)).is_valid()
        lost = pa.compute.and_(filled, values.is_null())
        if self.schema.kinds[name] == "number":  # numbers that are named as missing, as -999
            numbers = as_kind(texts, "number", self._style or "point")
            lost = pa.compute.and_(lost, numbers.is_null())
        cells = pa.compute.drop_null(texts.filter(lost))
        self._unreadable[name] += len(cells)
        if len(cells):
            self._first_unreadable.setdefault(name, cells[0].as_py())

    def _types_to_parse(self) -> dict[str, Any] | None:
        """Return types that cells can be read as while they are cut, or None."""
        # pyarrow reads numbers with a point only.
        if self._style == "comma" or (self._style is None and self.schema.decimal == ","):
            return None
        return {
            name: READ_TYPES[kind]
            for name, kind in self.schema.kinds.items()
            # Cells that are not written plainly are text: at the first such cell of another column
            # everything would be read again.
            if name not in self.schema.spellings and name not in self._uneven
            and name != self.spelled
        }  # fmt: skip

    def _guess_number_style(self, batch: Any) -> NumberStyle:
        """Return the style of the numbers that came as text; none came so if all are plain."""
        spellings = self.schema.spellings
        texts = [
            without_unit(batch.column(name), spellings.get(name, ""))
            for name, kind in self.schema.kinds.items()
            if kind == "number" and pa.types.is_string(batch.column(name).type)
            and not is_days(spellings.get(name, ""))
        ]  # fmt: skip
        usual = self.schema.decimal == "," and bool(texts)
        return guess_number_style(texts, "comma" if usual else "point")

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
            folded = {name.casefold() for name in schema.kinds}
            advice = (
                "Names differ only in case: write them alike."
                if folded & {name.casefold() for name in self._batches.names}
                else "If these are not names, or the separator is wrong, use --separator."
            )
            raise table_error(
                self._batches.path,
                f"has none of the columns to read ({listed(schema.kinds, 3)}); its first row, read "
                f"as names, is {listed(self._batches.names, 3)}. {advice}",
            )
        if self._batches.typed:
            types = dict(zip(self._batches.names, self._batches.types, strict=True))
            unusable = [name for name in kept.kinds if arrow_kind(types[name]) is None]
            if unusable:
                raise table_error(
                    self._batches.path,
                    f"column {listed(unusable)} holds {UNUSABLE}; write plain values.",
                )
        return kept


def _last_filled_row(batch: Any) -> int:
    """Return the number of rows up to the last one with a cell that holds something."""
    n_rows = batch.num_rows
    while n_rows and not any(column[n_rows - 1].is_valid for column in batch.columns):
        n_rows -= 1
    return n_rows


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
    max_rows: int | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Table:
    r"""Read a table into memory.

    Parameters
    ----------
    path : path
        As in `open_table`.
    max_rows : int or None, default=None
        Rows to keep: if there are more, that many are drawn at random while the file is read, in
        bounded memory, and a note says so. None: all.
    progress : callable or None, default=None
        Gets the number of rows read so far.
    **options
        ``schema``, ``separator``, ``decimal``, ``header``, ``skip_rows``, ``encoding``, ``intake``
        and ``allow_absent``, as in `open_table`.

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
    return read_rows(open_table(path, **options), max_rows, progress)


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
        notes = [*notes, say_sampled(len(rows), reader.n_rows)]
    return Table(frame, reader.schema, notes, rows)


# --- Rows drawn from a table while it is read, in memory that its length does not change ---
#
# Every row gets a random number and the rows with the smallest are kept: a sample in which all rows
# are equally likely, whatever their order in the file.


# Numbers and words of a table that are held in memory: some 160 MB, and copies of them.
MAX_CELLS = 20_000_000


def default_rows(n_columns: int) -> int:
    """Return the largest number of rows read of a table with this number of columns, by default."""
    return max(1, MAX_CELLS // max(1, n_columns))


def sample_frames(
    reader: Any,
    max_rows: int,
    *,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> tuple[Any, IntArray | None]:
    """Return at most ``max_rows`` rows of a `TableReader`, in their order, and their numbers.

    Numbers are None where all rows are returned. ``progress`` gets the number of rows read.
    """
    rng = np.random.default_rng(seed)
    frames: list[Any] = []
    keys: list[Any] = []
    numbers: list[Any] = []
    limit, n_held, n_read = np.inf, 0, 0
    for frame in reader:
        # A number for every row, used or not: which rows are drawn does not depend on the chunks.
        drawn = rng.random(len(frame))
        rows = np.flatnonzero(drawn < limit)
        frames.append(frame if len(rows) == len(frame) else frame.iloc[rows])
        keys.append(drawn[rows])
        numbers.append(n_read + rows)
        n_read += len(frame)
        n_held += len(rows)
        # Thinned when twice as many are held as are wanted: a sort for each chunk would take
        # longer, and all rows more memory.
        if n_held > 2 * max_rows:
            limit = _thin(frames, keys, numbers, max_rows)
            n_held = max_rows
        if progress is not None:
            progress(n_read)
    if n_held > max_rows:
        _thin(frames, keys, numbers, max_rows)
    table = pd.concat(frames, ignore_index=True)
    return table, None if len(table) == n_read else np.concatenate(numbers)


def _thin(frames: list[Any], keys: list[Any], numbers: list[Any], max_rows: int) -> float:
    """Keep the rows with the smallest keys; return the largest of these."""
    every = np.concatenate(keys)
    limit = float(np.partition(every, max_rows - 1)[max_rows - 1])
    for index, own in enumerate(keys):
        kept = np.flatnonzero(own <= limit)
        # A copy: a view would hold on to all rows of the frame.
        frames[index] = frames[index].iloc[kept].copy()
        keys[index], numbers[index] = own[kept], numbers[index][kept]
    frames[:] = [pd.concat(frames, ignore_index=True)]
    keys[:], numbers[:] = [np.concatenate(keys)], [np.concatenate(numbers)]
    return limit


def read_most(reader: TableReader) -> Table:
    """Return all rows of a reader, or a sample if they are more than 20 million cells."""
    return read_rows(reader, default_rows(len(reader.schema.kinds)))
