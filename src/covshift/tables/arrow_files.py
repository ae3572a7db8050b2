"""Parquet and Arrow files, and folders of Parquet files, as sources of batches.

`covshift.tables.reading` says what a source has.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from covshift.solvers.threads import read_ahead
from covshift.tables.file_formats import (
    Format,
    check_unchanged,
    file_state,
    identify_file,
)
from covshift.tables.messages import listed, one_line, refused_as, table_error
from covshift.tables.text_layout import is_row_names, names_of_header, plain_name

ROWS_PER_BATCH = 1 << 15
# Read ahead of each column of a Parquet file: a thousand columns take 64 MB.
COLUMN_BUFFER_BYTES = 1 << 16


class ArrowBatches:
    """Parquet and Arrow (Feather) files, whose columns have types."""

    typed = examined = True
    separator = ""

    def __init__(self, path: Path, kind: Format):
        self.path = self._file = path
        self.kind = kind
        self._state = file_state(path)
        self._n_read = 0
        with refused_as(path, self._advice, pa.ArrowException, UnicodeError, ValueError):
            with self._open() as source:
                schema = source.schema if kind != "parquet" else source.schema_arrow
                # Arrow files do not say how many rows they have.
                self.n_total = source.metadata.num_rows if kind == "parquet" else None
            header = tuple(plain_name(str(field.name)) for field in schema)
        self.types = [field.type for field in schema]
        self.names, self.nameless, self.notes = names_of_header(header)
        self.row_names = [
            self.names[i] for i, name in enumerate(header) if name and is_row_names(i, name)
        ]

    @property
    def _advice(self) -> str:
        name = "Parquet" if self.kind == "parquet" else "Arrow"
        return f"is damaged, or is not a complete {name} file; write it again."

    def _open(self) -> Any:
        if self.kind == "parquet":
            # By default all of the file is brought into memory before its first rows come, and
            # without buffers of the columns all of a row group.
            return pa.parquet.ParquetFile(
                self._file, pre_buffer=False, buffer_size=COLUMN_BUFFER_BYTES
            )
        source = pa.OSFile(str(self._file), "r")
        return pa.ipc.open_file(source) if self.kind == "arrow file" else pa.ipc.open_stream(source)

    @property
    def share_read(self) -> float | None:
        """Share of the rows that were read in this pass; None: unknown."""
        return self._n_read / self.n_total if self.n_total else None

    def read(
        self, types: dict[str, Any] | None = None, missing: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield batches; ``types`` and ``missing`` are for text, here columns have types."""
        yield from read_ahead(self._read())
        check_unchanged(self._file, self._state, self.path)

    def _read(self) -> Iterator[Any]:
        kinds = (pa.ArrowException, UnicodeError, ValueError)
        self._n_read = 0
        with refused_as(self.path, self._advice, *kinds), self._open() as source:
            for batch in self._batches(source):
                for start in range(0, batch.num_rows, ROWS_PER_BATCH):
                    piece = batch.slice(start, ROWS_PER_BATCH)
                    piece.validate(full=True)  # a damaged file could crash what reads it
                    self._n_read += piece.num_rows
                    yield pa.RecordBatch.from_arrays(piece.columns, names=self.names)

    def _batches(self, source: Any) -> Iterator[Any]:
        if self.kind == "parquet":
            yield from source.iter_batches(ROWS_PER_BATCH, use_threads=False)
        elif self.kind == "arrow file":
            yield from map(source.get_batch, range(source.num_record_batches))
        else:
            yield from source


def parquet_files(folder: Path) -> list[Path]:
    """Return a folder's Parquet files, which Arrow reads, ``part.10`` after ``part.9``."""
    with refused_as(folder, "cannot be read.", ValueError):
        files = [
            path
            for path in folder.iterdir()
            # Spark, Dask and file systems write other files, whose names begin with these.
            if path.suffix in (".parquet", ".pq") and not path.name.startswith(("_", "."))
        ]
    return sorted(files, key=_by_numbers)


def _by_numbers(path: Path) -> list[Any]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


class FolderBatches:
    """Parquet files with the same columns."""

    typed = examined = True
    separator = ""

    def __init__(self, path: Path, files: list[Path]):
        self.path = path
        for file in files:
            if (kind := identify_file(file)) != "parquet":
                raise table_error(file, f"has the name of a Parquet file but is {kind}.")
        self._files = files
        first = ArrowBatches(files[0], "parquet")
        self.names, self.types, self.nameless = first.names, first.types, first.nameless
        self.row_names = first.row_names
        number = "1 Parquet file" if len(files) == 1 else f"{len(files):,} Parquet files"
        self._part: Any = None
        self._n_done = 0
        self.notes = [*first.notes, f"The folder holds {number}, read as one table."]

    @property
    def share_read(self) -> float | None:
        """Share of the files that were read in this pass."""
        within = (self._part and self._part.share_read) or 0.0
        return (self._n_done + float(within)) / len(self._files)

    def read(
        self, types: dict[str, Any] | None = None, missing: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield batches of all files; one whose columns differ is refused when its turn comes."""
        for n_done, file in enumerate(self._files):
            self._n_done = n_done
            self._part = part = ArrowBatches(file, "parquet")
            if part.names != self.names or part.types != self.types:
                differ = [
                    ours
                    for ours, theirs in zip(
                        zip(self.names, self.types, strict=True),
                        zip(part.names, part.types, strict=True),
                        strict=False,
                    )
                    if ours != theirs
                ]
                names = listed([name for name, _ in differ]) if differ else "their number"
                raise table_error(
                    file,
                    f"has other columns, or other types, than {one_line(self._files[0].name)} "
                    f"({names}); write all files of a folder alike.",
                )
            yield from part.read()
