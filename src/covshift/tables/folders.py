"""A folder of Parquet files as one table, its rows those of the files one after the other."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from covshift.tables.batches import ArrowBatches
from covshift.tables.errors import listed, one_line, refused_as, table_error
from covshift.tables.file_formats import identify_file


def parquet_files(folder: Path) -> list[Path]:
    """Parquet files of a folder in the order of their names, ``part.10`` after ``part.9``."""
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
    """Parquet files with the same columns; see `covshift.tables.batches`."""

    typed = True
    separator = ""

    def __init__(self, path: Path, files: list[Path]):
        self.path = path
        for file in files:
            if (kind := identify_file(file)) != "parquet":
                raise table_error(file, f"is named like a Parquet file and is {kind}.")
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
