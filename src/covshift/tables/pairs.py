"""Two files -> matched tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from covshift.base import check_option
from covshift.tables.errors import one_line
from covshift.tables.extra import pandas as pd
from covshift.tables.file_formats import identify_file
from covshift.tables.labels import as_written
from covshift.tables.matching import MatchedTables, check_columns, match_frames, names_given
from covshift.tables.reading import open_table, read_table
from covshift.tables.schema import TableSchema


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
    table = read_table(train_path, separator=separator, decimal=decimal)
    check_columns(table.frame, label, domain, ignore, keep)
    schema = table.schema.without([label, *ignore])
    if domain is not None:  # sites 1 and 2 in training do not make site C of the new file nameless
        schema = TableSchema({**schema.kinds, domain: "text"}, schema.decimal)
    reader = open_table(
        new_path,
        schema=schema,
        separator=separator,
        decimal=decimal,
        allow_absent=True,
    )
    new = pd.concat(list(reader), ignore_index=True)
    names = [*new.columns, *reader.other_names]
    matched = match_frames(table.frame, new, names, label, domain, ignore, keep, task)
    read = [
        f"{one_line(Path(path).name)}: {note}"
        for path, notes in ((train_path, table.notes), (new_path, reader.notes))
        for note in notes
    ]
    numeric = task == "classification" and table.schema.kinds[label] != "text"
    if numeric and identify_file(Path(train_path)) in ("text", "gzip"):
        spelled = TableSchema({label: "text"}, table.schema.decimal)
        cells = read_table(train_path, schema=spelled, separator=separator).frame[label]
        texts = cells.iloc[matched.train_rows].tolist()
        matched = replace(matched, y=as_written(matched.y, texts))
    return replace(matched, notes=read + matched.notes, decimal=table.schema.decimal)
