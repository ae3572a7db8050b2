"""Two files -> matched tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from covshift.base import check_option
from covshift.tables.errors import one_line
from covshift.tables.file_formats import identify_file
from covshift.tables.labels import as_written
from covshift.tables.matching import MatchedTables, check_columns, match_frames, names_given
from covshift.tables.reading import Table, open_table, read_rows, read_table
from covshift.tables.row_sample import default_rows
from covshift.tables.schema import TableSchema
from covshift.tables.table_reader import TableReader


def read_pair(
    train_path: Any,
    new_path: Any,
    *,
    label: str,
    domain: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    task: str = "classification",
    separator: str | None = None,
    decimal: str | None = None,
    max_rows: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> MatchedTables:
    """Read two files and match them; the kinds of the first are those of the second.

    Classes stay as they are written: ``0.50`` is the text "0.50", and only plain whole numbers are
    numbers. Text like ``01`` in a column that is text in training stays as it is written, and the
    label column of the new file is not even read.

    Parameters
    ----------
    train_path, new_path : path
        Files, as in `open_table`.
    label, domain, ignore, keep, task
        As in `match_tables`.
    separator, decimal
        As in `open_table`, for both files.
    max_rows : int or None, default=None
        Rows of each file to keep: if there are more, that many are drawn at random while it is
        read, and a note says so. None: as many as make 20 million cells.
    progress : callable or None, default=None
        Gets a line that says how far reading is.

    Returns
    -------
    MatchedTables
        Its notes begin with those of reading, each with the name of its file.

    Raises
    ------
    TableError
        If the files cannot be read or used; the message says what to do.
    """
    check_option("task", task, ("classification", "regression"))
    ignore, keep = names_given("ignore", ignore), names_given("keep", keep)
    options: dict[str, Any] = {"separator": separator, "decimal": decimal}
    first = open_table(train_path, **options)
    table = _read(first, train_path, max_rows, progress)
    check_columns(table.frame, label, domain, ignore, keep)
    schema = table.schema.without([label, *ignore])
    if domain is not None:  # sites 1 and 2 in training do not make site C of the new file nameless
        schema = TableSchema({**schema.kinds, domain: "text"}, schema.decimal)
    reader = open_table(new_path, schema=schema, allow_absent=True, **options)
    new = _read(reader, new_path, max_rows, progress)
    names = [*new.frame.columns, *reader.other_names]
    matched = match_frames(table.frame, new.frame, names, label, domain, ignore, keep, task)
    read = [
        f"{one_line(Path(path).name)}: {note}"
        for path, notes in ((train_path, table.notes), (new_path, new.notes))
        for note in notes
    ]
    matched = replace(
        matched,
        notes=read + matched.notes,
        decimal=table.schema.decimal,
        train_rows=matched.train_rows if table.rows is None else table.rows[matched.train_rows],
        new_rows=new.rows,
    )
    numeric = task == "classification" and table.schema.kinds[label] != "text"
    in_text = not Path(train_path).is_dir() and identify_file(Path(train_path)) in ("text", "gzip")
    if numeric and in_text:
        spelled = TableSchema({label: "text"}, table.schema.decimal)
        cells = read_table(train_path, schema=spelled, separator=separator).frame[label]
        texts = cells.iloc[matched.train_rows].tolist()
        matched = replace(matched, y=as_written(matched.y, texts))
    return matched


def _read(
    reader: TableReader, path: Any, max_rows: int | None, progress: Callable[[str], object] | None
) -> Table:
    name = one_line(Path(path).name)

    def tell(n_rows: int) -> None:
        if progress is not None:
            progress(f"reading {name}: {n_rows:,} rows")

    return read_rows(reader, max_rows or default_rows(len(reader.schema.kinds)), tell)
