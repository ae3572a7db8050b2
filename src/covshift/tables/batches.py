"""Files as batches of Arrow columns: text cut into cells, Parquet and Arrow as they are.

Each source has ``names`` (no two alike), ``row_names`` (columns that only number or name the
rows), ``nameless`` and ``notes``; ``read`` yields its batches, from the first. Memory is bounded
by the size of a batch.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from covshift.tables.cells import MISSING
from covshift.tables.errors import TableError, one_line, refused_as, table_error
from covshift.tables.extra import pyarrow as pa
from covshift.tables.file_formats import Format, identify_file
from covshift.tables.text_files import DAMAGED_GZIP, GZIP_ERRORS, examine_text
from covshift.tables.text_layout import (
    SEPARATOR_NAMES,
    SEPARATORS,
    column_names,
    find_layout,
    is_row_names,
)

SAMPLE_BYTES = 1 << 20
ROWS_PER_BATCH = 1 << 15


def open_batches(path: Path, *, separator: str | None, chunk_bytes: int) -> Any:
    """Return the source of batches that fits what the file is."""
    kind = identify_file(path)
    if kind in ("text", "gzip"):
        return TextBatches(path, kind == "gzip", separator, chunk_bytes)
    return ArrowBatches(path, kind)


class TextBatches:
    """CSV, TSV and their kin; every column is text."""

    typed = False

    def __init__(self, path: Path, compressed: bool, separator: str | None, chunk_bytes: int):
        self.path = path
        self.file = examine_text(path, compressed=compressed)
        stream = self.file.open()
        try:
            sample = stream.read(SAMPLE_BYTES)
            complete = not stream.read(1)
        finally:
            stream.close()
        # A character may be cut at the end of the sample.
        text = sample.decode("utf-8", errors="strict" if complete else "ignore")
        try:
            layout = find_layout(text, complete=complete, separator=separator)
        except TableError as error:
            raise table_error(path, str(error)) from None
        self.separator = layout.separator
        self.header_bytes = len(text[: layout.header_length].encode("utf-8"))
        self.chunk_bytes = max(chunk_bytes, SAMPLE_BYTES)
        self.names, self.nameless, self.notes = column_names(layout.names)
        self.row_names = [
            self.names[i] for i, name in enumerate(layout.names) if is_row_names(i, name)
        ]
        if len(self.row_names) == len(self.names):
            self.row_names = []
        if self.file.encoding in ("cp1252", "latin-1"):
            shown = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}[self.file.encoding]
            self.notes.append(f"The text is not UTF-8: it is read as {shown}.")
        if separator is None and self.separator in SEPARATORS[:3] and len(self.names) > 1:
            self.notes.append(f"Cells are separated by {SEPARATOR_NAMES[self.separator]}.")

    def read(self, types: dict[str, Any] | None = None) -> Iterator[Any]:
        """Yield batches with columns of these types of Arrow, the others as text.

        From the first batch on that holds a cell of another type, all columns come as text.
        """
        n_read = 0
        if types is not None:
            try:
                for batch in self._read(types):
                    n_read += 1
                    yield batch
                return
            except TableError:
                if self._refused_row is not None:
                    raise
        # The same blocks again: those already given are skipped.
        yield from itertools.islice(self._read({}), n_read, None)

    def _read(self, types: dict[str, Any]) -> Iterator[Any]:
        advice = DAMAGED_GZIP if self.file.compressed else "cannot be read as a table; check it."
        last = None
        self._refused_row: Any = None
        stream = self.file.open()
        try:
            with refused_as(self.path, advice, *GZIP_ERRORS, UnicodeError, pa.ArrowException):
                stream.read(self.header_bytes)
                first = stream.read(1)
                if not first:
                    return
                stream.give_back(first)
                for batch in self._parse(stream, types):
                    last = batch
                    yield batch
        except TableError as error:
            if self._refused_row is not None:
                raise self._ragged_error(self._refused_row) from None
            if "straddling" in str(error):
                limit = self.chunk_bytes >> 20
                raise table_error(
                    self.path, f"a row is longer than {limit} MiB; is a quote left open?"
                ) from None
            raise
        finally:
            stream.close()
        if last is not None and last.num_rows and self.file.n_quotes % 2:
            self._check_last_row(last)

    def _parse(self, stream: Any, types: dict[str, Any]) -> Iterator[Any]:
        return iter(
            pa.csv.open_csv(
                pa.PythonFile(stream, mode="r"),
                # One thread: rows are then numbered, and batches come one at a time.
                read_options=pa.csv.ReadOptions(
                    column_names=self.names, block_size=self.chunk_bytes, use_threads=False
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.separator,
                    # Without quotes no cell holds a line break, and cutting is simpler.
                    quote_char='"' if self.file.n_quotes else False,
                    newlines_in_values=bool(self.file.n_quotes),
                    # In a table of one column an empty line is a row.
                    ignore_empty_lines=len(self.names) > 1,
                    invalid_row_handler=self._refuse_row,
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()) | types,
                    null_values=list(MISSING),
                    strings_can_be_null=True,
                ),
            )
        )

    def _refuse_row(self, row: Any) -> str:
        self._refused_row = row  # an exception raised here would not get through
        return "error"

    def _ragged_error(self, row: Any) -> TableError:
        number = "a row" if row.number is None else f"row {row.number + 1}"
        return table_error(
            self.path,
            f"{number} has {row.actual_columns} cells where the first row has "
            f"{row.expected_columns} ('{one_line(row.text)}'): put cells that hold the separator "
            "in quotes, or name the separator.",
        )

    def _check_last_row(self, batch: Any) -> None:
        """Refuse a quote that was opened and never closed: it would swallow rows unseen."""
        cells = [column[-1].as_py() for column in batch.columns]
        if any(isinstance(cell, str) and "\n" in cell for cell in cells):
            raise table_error(
                self.path, "a quote is opened and not closed before the end; close or remove it."
            )


class ArrowBatches:
    """Parquet and Arrow (Feather) files, whose columns have types."""

    typed = True
    separator = ""

    def __init__(self, path: Path, kind: Format):
        self.path = path
        self.kind = kind
        with refused_as(path, self._advice, pa.ArrowException, UnicodeError, ValueError):
            with self._open() as source:
                schema = source.schema if kind != "parquet" else source.schema_arrow
            header = tuple(" ".join(str(field.name).split()) for field in schema)
        self.types = [field.type for field in schema]
        self.names, self.nameless, self.notes = column_names(header)
        self.row_names = [
            self.names[i] for i, name in enumerate(header) if name and is_row_names(i, name)
        ]

    @property
    def _advice(self) -> str:
        name = "Parquet" if self.kind == "parquet" else "Arrow"
        return f"is damaged or no whole {name} file; write it again."

    def _open(self) -> Any:
        if self.kind == "parquet":
            return pa.parquet.ParquetFile(self.path)
        source = pa.OSFile(str(self.path), "r")
        return pa.ipc.open_file(source) if self.kind == "arrow file" else pa.ipc.open_stream(source)

    def read(self, types: dict[str, Any] | None = None) -> Iterator[Any]:
        """Yield batches; ``types`` is for text, here columns have theirs."""
        kinds = (pa.ArrowException, UnicodeError, ValueError)
        with refused_as(self.path, self._advice, *kinds), self._open() as source:
            for batch in self._batches(source):
                for start in range(0, batch.num_rows, ROWS_PER_BATCH):
                    piece = batch.slice(start, ROWS_PER_BATCH)
                    piece.validate(full=True)  # a damaged file could crash what reads it
                    yield pa.RecordBatch.from_arrays(piece.columns, names=self.names)

    def _batches(self, source: Any) -> Iterator[Any]:
        if self.kind == "parquet":
            yield from source.iter_batches(ROWS_PER_BATCH, use_threads=False)
        elif self.kind == "arrow file":
            yield from map(source.get_batch, range(source.num_record_batches))
        else:
            yield from source
