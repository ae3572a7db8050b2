"""Format of a file, detected from its first bytes, not its name."""

import os
import re
import stat
import zipfile
from pathlib import Path
from typing import Literal

from covshift.tables.errors import refused_as, table_error

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
    """Raise if the first bytes are those of something else than text with cells."""
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
    """Return what changes when somebody writes to a file: its size and its time."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def check_unchanged(path: Path, state: tuple[int, int], shown: Path) -> None:
    """Raise if a file is not as it was before it was read: part of it was read, or a mixture."""
    try:
        changed = file_state(path) != state
    except FileNotFoundError:  # what was open could be read to its end
        changed = False
    if changed:
        raise table_error(
            shown, "changed while it was read; run the command again when nothing writes to it."
        )
