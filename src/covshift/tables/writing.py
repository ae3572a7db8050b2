"""Writing tables of results: CSV, TSV or Parquet by the name, chunk by chunk, atomically.

A spreadsheet program takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula and
runs it. In CSV and TSV a text cell, or a name, that begins with one of these, a tab or a carriage
return gets an apostrophe in front, which such programs show as text; text that is a plain number,
``-5``, stays. Numbers, dates and truth values are never touched, nor is anything in Parquet.
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from covshift.base import check_option
from covshift.output_files import prepare_folder, write_whole
from covshift.tables.columns import from_start
from covshift.tables.messages import refused_as, table_error

SEPARATOR_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
# RE2: a formula's first character, unless the whole cell is a number.
FORMULA = r"^[=+\-@\t\r]"
PLAIN_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def check_output(
    path: str | os.PathLike[str],
    *,
    inputs: Iterable[Any] = (),
    any_name: bool = False,
    min_free_bytes: int = 0,
) -> Path:
    """Try the writing of an output before anything is computed; return it as a path.

    Parameters
    ----------
    path : path
        File to write, its folder made if missing; its name says the format.
    inputs : paths
        Files that must not be overwritten.
    any_name : bool, default=False
        Whether the name is free: the file is not a table.
    min_free_bytes : int, default=0
        Room that must be free.

    Raises
    ------
    TableError
        If nothing can be written there; the message says what to do.
    """
    path = Path(path)
    if not any_name:
        _suffix(path)
    with refused_as(path, "cannot be written.", ValueError):  # a name with a NUL, say
        is_folder, is_odd = path.is_dir(), path.exists() and not path.is_file()
    if is_folder:
        raise table_error(path, "is a folder; name a file in it.")
    if is_odd:
        raise table_error(path, "is not an ordinary file; name another one to write.")
    if any(os.path.realpath(path) == os.path.realpath(os.fspath(other)) for other in inputs):
        raise table_error(path, "is read too; name another file to write.")
    with refused_as(path, "cannot be written."):
        try:
            # Of a link, the folder that it points into: the file is written there.
            prepare_folder(Path(os.path.realpath(path)).parent, min_free_bytes)
        except PermissionError:
            raise table_error(path, "cannot be written; check the folder's permissions.") from None
    return path


def write_table(
    path: str | os.PathLike[str], frames: Iterable[Any], *, escape_formulas: bool = True
) -> int:
    """Write frames with the same columns one below the other.

    The file appears under its name when it is whole: an error, or the end of the process,
    leaves what was there before.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, both also with ``.gz``, or ``.parquet``.
    frames : iterable of pandas frames
        Taken one at a time.
    escape_formulas : bool, default=True
        Whether text that a spreadsheet program would run gets an apostrophe (CSV and TSV).

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    TableError
        If it cannot be written; the message says what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from covshift.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "predictions.csv")
    ...     frame = pd.DataFrame({"score": [-0.5], "label": ["=cmd()"]})
    ...     n_rows = write_table(path, [frame])
    ...     print(path.read_text(), end="")
    "score","label"
    -0.5,"'=cmd()"
    """
    check_option("escape_formulas", escape_formulas, (True, False))
    path = Path(path)
    suffix = _suffix(path)
    n_rows = 0

    def write(file: IO[bytes]) -> None:
        nonlocal n_rows
        with _compressed(file, suffix) as sink, ExitStack() as abandoned:
            writer = None
            for frame in frames:
                table = pa.Table.from_pandas(frame, preserve_index=False)
                table = table.replace_schema_metadata(None)
                if suffix != ".parquet" and escape_formulas:
                    table = _without_formulas(table)
                if writer is None:
                    schema = table.schema
                    writer = _open_writer(sink, schema, suffix)
                    abandoned.callback(_close_quietly, writer)
                if table.column_names != schema.names:
                    raise table_error(path, "frames must have the same columns.")
                writer.write_table(table.cast(schema))
                n_rows += len(table)
            if writer is None:
                raise table_error(path, "there are no rows to write.")
            abandoned.pop_all()
            writer.close()

    with _only_write_errors(path):
        write_whole(path, write)
    return n_rows


@contextmanager
def _only_write_errors(path: Path) -> Iterator[None]:
    with refused_as(path, "cannot be written.", pa.ArrowException):
        try:
            yield
        except FileNotFoundError:
            raise table_error(path, "its folder is not there; make it first.") from None
        except PermissionError:
            raise table_error(path, "cannot be written; check the folder's permissions.") from None


def _close_quietly(writer: Any) -> None:
    """Close after an error; another one, of the same full disk, would hide the first."""
    with suppress(Exception):
        writer.close()


@contextmanager
def _compressed(file: IO[bytes], suffix: str) -> Iterator[Any]:
    if not suffix.endswith(".gz"):
        yield file
        return
    # No name and no time inside: the same rows give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as sink:
        yield sink


def _open_writer(sink: Any, schema: Any, suffix: str) -> Any:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(sink, schema)
    options = pa.csv.WriteOptions(delimiter=SEPARATOR_BY_SUFFIX[suffix.removesuffix(".gz")])
    return pa.csv.CSVWriter(sink, schema, write_options=options)


def _without_formulas(table: Any) -> Any:
    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = pa.compute.cast(column, column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = _escape(pa.compute.cast(column, pa.string()))
        columns.append(column)
    names = _escape(pa.array([str(name) for name in table.column_names])).to_pylist()
    return pa.table(columns, names=names)


def _escape(texts: Any) -> Any:
    # Each different text once: words repeat, and mostly there is nothing to do.
    suspects = pa.compute.match_substring_regex(pa.compute.unique(texts), FORMULA)
    if not pa.compute.any(suspects).as_py():
        return texts
    formula = pa.compute.match_substring_regex(texts, FORMULA)
    number = pa.compute.match_substring_regex(texts, PLAIN_NUMBER)
    risky = pa.compute.and_not(formula, number)
    quoted = pa.compute.binary_join_element_wise("'", texts, "")
    return pa.compute.if_else(risky, quoted, from_start(texts))


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return suffix
    raise table_error(path, f"name an output that ends in one of {', '.join(SUFFIXES)}.")
