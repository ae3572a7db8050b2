"""Files that hold a table in another form, turned into one that is read batch by batch.

- a zip archive with one file in it: that file;
- an Excel workbook (xlsx): its sheet as CSV, dates in ISO 8601 (the extra ``excel``);
- a query of a DuckDB database: its rows as Parquet (the extra ``duckdb``).

The converted file lies in a temporary folder, which is removed with the object that stands for it.
"""

import csv
import datetime
import os
import shutil
import tempfile
import weakref
import zipfile
from pathlib import Path
from typing import Any

from covshift.tables.errors import TableError, listed, one_line, refused_as, table_error

MAX_BYTES = 64 << 30  # of what an archive unpacks to
COPY_BYTES = 1 << 20
QUERIES = ("select ", "select\n", "with ", "from ")  # a query begins with one of these
SHEET_MARK = "#"  # between a workbook and the name of its sheet
NOT_TABLES = ("__MACOSX/", ".")  # what macOS and others put beside


class ConvertedFile:
    """A table in a temporary folder.

    Attributes
    ----------
    path : the file that is read.
    notes : what was decided, in plain sentences.
    """

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="covshift-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder, "table")
        self.notes: list[str] = []


def unzip(path: Path) -> ConvertedFile:
    """Return the one file of a zip archive."""
    converted = ConvertedFile()
    kinds = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError)
    advice = "is a zip archive that cannot be unpacked."
    with refused_as(path, advice, *kinds), zipfile.ZipFile(path) as archive:
        members = [
            one
            for one in archive.infolist()
            if not one.is_dir()
            and not one.filename.startswith(NOT_TABLES)
            and not Path(one.filename).name.startswith(".")
        ]
        if len(members) != 1:
            names = listed([one.filename for one in members])
            inside = f"holds {len(members)} files ({names})" if members else "holds no file"
            raise table_error(
                path, f"is a zip archive that {inside}; unpack it and name the table inside."
            )
        (member,) = members
        n_copied = 0
        with archive.open(member) as source, converted.path.open("wb") as sink:
            while block := source.read(COPY_BYTES):
                n_copied += len(block)
                if n_copied > MAX_BYTES:
                    raise table_error(path, "unpacks to more than 64 GiB; unpack it yourself.")
                sink.write(block)
    converted.notes = [f"Read {listed([member.filename])} inside the archive."]
    return converted


def read_workbook(path: Path, sheet: str | None = None) -> ConvertedFile:
    """Return a sheet of an Excel workbook as CSV: the one named, else the first with cells."""
    try:
        import openpyxl
    except ImportError:
        raise table_error(
            path,
            "is an Excel workbook, which needs openpyxl: pip install 'covshift[excel]', or save "
            "the sheet as CSV.",
        ) from None
    kinds = (zipfile.BadZipFile, KeyError, TypeError, AttributeError, ValueError, SyntaxError)
    advice = "is damaged or not a whole workbook; save it again."
    # By its content: openpyxl itself would go by the name.
    with refused_as(path, advice, *kinds), path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            names = [one.title for one in book.worksheets]
            if sheet is not None and sheet not in names:
                raise table_error(path, f"has no sheet {listed([sheet])}; it has {listed(names)}.")
            for name in [sheet] if sheet is not None else names:
                converted = ConvertedFile()
                if _write_sheet(book[name], converted.path):
                    break
            else:
                raise table_error(path, "has no cells in any sheet.")
        finally:
            book.close()
    others = [one for one in names if one != name]
    if others:
        converted.notes = [
            f"Read the sheet {listed([name])}; the workbook also has {listed(others)}. To read "
            f"another one: FILE{SHEET_MARK}SHEET."
        ]
    return converted


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """Return the file and the sheet that ``book.xlsx#Sheet 2`` names."""
    text = os.fspath(path)
    file, mark, sheet = text.rpartition(f".xlsx{SHEET_MARK}")
    if not mark or path.exists():
        return path, None
    return Path(f"{file}.xlsx"), sheet


def _write_sheet(sheet: Any, path: Path) -> bool:
    """Write the cells of a sheet that are in use; return whether there are any."""
    rows = ([_shown(cell) for cell in row] for row in sheet.iter_rows(values_only=True))
    found = False
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for row in rows:
            if not found and not any(row):  # a title or a logo may have stood above
                continue
            found = True
            writer.writerow(row)
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def run_query(database: Path, query: str) -> ConvertedFile:
    """Return the rows of a query as Parquet; the database is opened for reading only."""
    try:
        import duckdb
    except ImportError:
        raise TableError(
            "--sql needs duckdb, which is not installed: pip install 'covshift[duckdb]'."
        ) from None
    converted = ConvertedFile()
    with refused_as(database, "no such file; check --db.", ValueError):
        database.stat()
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            found = connection.sql(query)
            if found is None:
                raise table_error(database, "the query of --sql gives no rows; use a SELECT.")
            found.write_parquet(str(converted.path))
    except duckdb.Error as error:
        raise table_error(database, f"the query fails: {one_line(error, 300)}") from None
    return converted


def query_file(database: Path, query: str) -> Path:
    """Return a file with the rows of a query, which stays until the process ends.

    A word that is not a query is the name of a table.
    """
    if not query.lstrip().lower().startswith(QUERIES):
        query = f'SELECT * FROM "{query}"' if '"' not in query else query
    _results.append(run_query(database, query))
    return _results[-1].path


_results: list[ConvertedFile] = []
