"""Format of a file, detected from its first bytes, not its name; other forms are converted."""

import csv
import datetime
import os
import re
import shutil
import stat
import tempfile
import weakref
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from covshift.tables.messages import TableError, listed, one_line, refused_as, table_error

Format = Literal["text", "gzip", "parquet", "arrow file", "arrow stream", "zip", "xlsx"]

TABLES: dict[bytes, Format] = {
    b"\x1f\x8b": "gzip",
    b"PAR1": "parquet",
    b"ARROW1": "arrow file",
    b"\xff\xff\xff\xff": "arrow stream",
}
# Other files that users give instead of a table, and advice.
OTHERS: dict[bytes, str] = {
    b"\xd0\xcf\x11\xe0": "is an old spreadsheet (xls); save the sheet as CSV",
    b"BZh": "is compressed with bzip2; decompress it first, or use gzip",
    b"\xfd7zXZ": "is compressed with xz; decompress it first, or use gzip",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it first, or use gzip",
    b"7z\xbc\xaf": "is a 7z archive; unpack it and name the table inside",
    b"%PDF": "is a PDF; export the table as CSV",
    b"FEA1": "is of Feather's first version; write it again with a newer pyarrow",
    b"SQLite format 3": "is an SQLite database; export the table as CSV",
    b"\x89HDF": "is an HDF5 file; export the table as CSV or Parquet",
    b"\x80\x04": "is a Python pickle, which is never loaded; write the table as CSV or Parquet",
    b"\x80\x05": "is a Python pickle, which is never loaded; write the table as CSV or Parquet",
    b"\x93NUMPY": "is a NumPy array; write it as a table with named columns",
    b"$FL2": "is an SPSS file; export the table as CSV",
    b"RDX": "is R's own format; write the table with write.csv",
}
MARKUP = (b"<!doctype", b"<html", b"<head", b"<body", b"<table", b"<?xml")
JSON = re.compile(rb"\{\s*\"|\[\s*[\[{]")
ARFF = re.compile(rb"^@relation\s", re.IGNORECASE | re.MULTILINE)  # comments may stand above
HEAD_BYTES = 64


def identify_file(path: Path) -> Format:
    """Return what kind of table a file holds; raise `TableError` if none."""
    with refused_as(path, "cannot be read.", ValueError):  # a name with a zero character
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise table_error(path, "is not a regular file; save the table to a file first.")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    if not head:
        raise table_error(path, "is empty; a table needs a row of names and rows below.")
    for magic, kind in TABLES.items():
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        return _identify_archive(path)
    refuse_other_formats(path, head)
    return "text"


def refuse_other_formats(path: Path, head: bytes) -> None:
    """Refuse files whose first bytes show another format than text with cells."""
    for magic, advice in OTHERS.items():
        if head.startswith(magic):
            raise table_error(path, f"{advice}.")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if JSON.match(text):
        raise table_error(path, "is JSON, not a table; write the table as CSV or Parquet.")
    if ARFF.search(text):
        raise table_error(path, "is a Weka file (ARFF); save it as CSV.")
    if text.lower().startswith(MARKUP):
        raise table_error(path, "is a page (HTML or XML), not a table; export the table as CSV.")


def _identify_archive(path: Path) -> Format:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        names = []
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    if "content.xml" in names:
        raise table_error(path, "is a spreadsheet (ods); save the sheet as CSV or xlsx.")
    if "schema.json" in names:
        raise table_error(path, "is a model file; name a table here.")
    return "zip"


def file_state(path: Path) -> tuple[int, int]:
    """Return what changes when somebody writes to a file of any format: its size and its time."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def check_unchanged(path: Path, state: tuple[int, int], shown: Path) -> None:
    """Raise if a file, of any format, is not as it was before: what was read may be a mixture."""
    try:
        changed = file_state(path) != state
    except FileNotFoundError:  # what was open could be read to its end
        changed = False
    if changed:
        raise table_error(
            shown, "changed while it was read; run the command again when nothing writes to it."
        )


# --- Files that hold a table in another form, turned into one that is read batch by batch ---
#
# - a zip archive: the one file in it, or the one table among its files, or the one named;
# - an Excel workbook (xlsx): a sheet as CSV, dates in ISO 8601 (the extra `excel`);
# - a query of a DuckDB database: its rows as Parquet (the extra `duckdb`).
#
# The converted file lies in a temporary folder, which is removed with the object that stands for
# it.


MAX_BYTES = 64 << 30  # size of an unpacked archive, at most
COPY_BYTES = 1 << 20
QUERIES = ("select ", "select\n", "with ", "from ")  # a query begins with one of these
PART_MARK = "#"  # between a workbook and its sheet, an archive and the file in it
WITH_PARTS = (".xlsx", ".zip")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".xlsx", ".parquet", ".pq", ".feather", ".arrow", ".gz")
# Texts of a sheet that are numbers with a decimal comma, or with a point.
DECIMALS = {",": re.compile(r"\s*[+-]?\d+,\d+\s*"), ".": re.compile(r"\s*[+-]?\d+\.\d+\s*")}
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


def unzip(path: Path, name: str | None = None) -> ConvertedFile:
    """Return a file of a zip archive: the one named, else the only one, or the only table."""
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
        names = [one.filename for one in members]
        if name is not None and name not in names:
            raise table_error(path, f"has no file {listed([name])}; it has {listed(names)}.")
        tables = [one for one in members if one.filename.lower().endswith(TABLE_SUFFIXES)]
        found = [one for one in members if one.filename == name] or (
            members if len(members) == 1 else tables
        )
        if len(found) != 1:
            inside = f"holds {len(members)} files ({listed(names)})" if members else "holds no file"
            advice = f"Name one: FILE{PART_MARK}NAME." if members else "Name another file."
            raise table_error(path, f"is a zip archive that {inside}. {advice}")
        (member,) = found
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
    advice = "is damaged, or is not a complete workbook; save it again."
    # By its content: openpyxl itself would go by the name.
    with refused_as(path, advice, *kinds), path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            names = [one.title for one in book.worksheets]
            if sheet is not None and sheet not in names:
                raise table_error(path, f"has no sheet {listed([sheet])}; it has {listed(names)}.")
            found: dict[int, tuple[str, ConvertedFile]] = {}
            for name in [sheet] if sheet is not None else names:
                converted = ConvertedFile()
                n_cells = min(_write_sheet(book[name], converted.path), 2)
                found.setdefault(n_cells, (name, converted))
                if n_cells == 2:
                    break
            # A sheet of one column is a note to the reader, unless there is no other.
            name, converted = found.get(2) or found.get(1) or ("", ConvertedFile())
            if not name:
                raise table_error(path, "has no cells in any sheet.")
        finally:
            book.close()
    others = [one for one in names if one != name]
    if others:
        converted.notes = [
            f"Read the sheet {listed([name])}; the workbook also has {listed(others)}. To read "
            f"another one: FILE{PART_MARK}SHEET."
        ]
    return converted


def split_part(path: Path) -> tuple[Path, str | None]:
    """Return the file and what ``book.xlsx#Sheet 2`` or ``data.zip#train.csv`` names in it."""
    text = os.fspath(path)
    for suffix in WITH_PARTS:
        file, mark, part = text.rpartition(f"{suffix}{PART_MARK}")
        if mark and not path.exists():
            return Path(f"{file}{suffix}"), part
    return path, None


def _write_sheet(sheet: Any, path: Path) -> int:
    """Write the cells of a sheet that are in use; return how many the fullest row has.

    Where texts are numbers with a decimal comma, numbers are written with one too: a file has one
    decimal sign.
    """
    decimals: Counter[str] = Counter()
    n_cells = _write_rows(sheet, path, ".", decimals)
    if decimals[","] and not decimals["."]:
        _write_rows(sheet, path, ",", decimals)
    return n_cells


def _write_rows(sheet: Any, path: Path, decimal: str, decimals: Counter[str]) -> int:
    """Write the rows; count texts that are numbers, by their decimal sign."""
    n_most = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for row in sheet.iter_rows(values_only=True):
            n_filled = sum(cell is not None for cell in row)
            if not n_most and not n_filled:  # empty rows above
                continue
            n_most = max(n_most, n_filled)
            writer.writerow([_shown(cell, decimal) for cell in row])
            for cell in row:
                if isinstance(cell, str):
                    decimals.update(sign for sign, one in DECIMALS.items() if one.fullmatch(cell))
    return n_most


def _shown(value: Any, decimal: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        return str(value).replace(".", decimal)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _run_query(database: Path, query: str) -> ConvertedFile:
    """Return the rows of a query as Parquet; the database is opened for reading only."""
    try:
        import duckdb
    except ImportError:
        raise TableError(
            "--db needs duckdb, which is not installed: pip install 'covshift[duckdb]'."
        ) from None
    converted = ConvertedFile()
    with refused_as(database, "no such file; check --db.", ValueError):
        database.stat()
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            found = connection.sql(query)
            if found is None:
                raise table_error(database, "the query gives no rows; use a SELECT.")
            found.write_parquet(str(converted.path))
    except duckdb.Error as error:
        raise table_error(database, f"the query fails: {one_line(error, 300)}") from None
    return converted


def query_file(database: Path, query: str) -> Path:
    """Return a file of Parquet with the rows of a query, which stays until the process ends.

    A word that is not a query is the name of a table.
    """
    if not query.lstrip().lower().startswith(QUERIES):
        query = f'SELECT * FROM "{query}"' if '"' not in query else query
    _results.append(_run_query(database, query))
    return _results[-1].path


_results: list[ConvertedFile] = []
