"""Two files -> matched tables."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray
from covshift.tables.errors import TableError, listed, one_line
from covshift.tables.labels import CLASSIFICATION, REGRESSION, as_written, check_task
from covshift.tables.matching import MatchedTables, check_columns, match_frames, names_given
from covshift.tables.moved_columns import note_moved_columns
from covshift.tables.reading import Table, open_table, read_rows
from covshift.tables.recordings import RecordingTable
from covshift.tables.row_sample import default_rows
from covshift.tables.schema import Intake, quoted
from covshift.tables.splits import Split
from covshift.tables.table_reader import AS_WRITTEN, TableReader


def read_pair(
    train_path: Any,
    new_path: Any = None,
    *,
    label: str,
    split: Split | None = None,
    domain: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    task: str = "classification",
    bins: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    skip_rows: int | None = None,
    encoding: str | None = None,
    intake: Intake | None = None,
    max_rows: int | None = None,
    progress: Callable[[str, float | None], object] | None = None,
) -> MatchedTables:
    """Read two files and match them; the kinds of the first are those of the second.

    Classes stay as they are written: ``0.50`` is the text "0.50", and only plain whole numbers are
    numbers. Text like ``01`` in a column that is text in training stays as it is written, and the
    label column of the new file is not even read.

    Parameters
    ----------
    train_path, new_path : path
        Files, as in `open_table`. Without the second, the first is split.
    split : Split or None, default=None
        Which rows of a single file are the target.
    label, domain, ignore, keep, task, bins
        As in `match_tables`.
    separator, decimal, header, skip_rows, encoding
        As in `open_table`, for both files.
    intake : Intake or None, default=None
        Known facts about the cells, as in `open_table`.
    max_rows : int or None, default=None
        Rows of each file to keep: if there are more, that many are drawn at random while it is
        read, and a note says so. None: as many as make 20 million cells.
    progress : callable or None, default=None
        Gets a line that says how far reading is, and the share of the file (None: unknown).

    Returns
    -------
    MatchedTables
        Its notes begin with those of reading, each with the name of its file.

    Raises
    ------
    TableError
        If the files cannot be read or used; the message says what to do.
    """
    check_task(task, bins)
    label, domain = _as_in_files(label), None if domain is None else _as_in_files(domain)
    ignore, keep = (
        tuple(map(_as_in_files, names_given(role, names)))
        for role, names in (("ignore", ignore), ("keep", keep))
    )
    options: dict[str, Any] = {
        "separator": separator, "header": header, "skip_rows": skip_rows, "encoding": encoding,
        "decimal": decimal,
    }  # fmt: skip
    intake = intake or Intake()
    if domain is not None:  # a site's name is not read as a date or number
        intake = replace(intake, names=(domain,))
    if (
        isinstance(train_path, RecordingTable)
        and (task == REGRESSION or bins is not None)
        and label not in intake.kinds
        and train_path.holds_numbers(label)
    ):
        intake = replace(intake, kinds={**intake.kinds, label: "number"})
    first = open_table(train_path, intake=intake, **options)
    numeric = task == CLASSIFICATION and bins is None and first.schema.kinds.get(label) != "text"
    if numeric and label in first.text_names:
        first.spelled = label
    table = _read(first, train_path, max_rows, progress)
    texts = table.frame.pop(AS_WRITTEN) if first.spelled is not None else None
    check_columns(table.frame, label, domain, ignore, keep)
    if split is not None:
        if new_path is not None:
            raise TableError("A split is of one table; leave the second one out.")
        table, new, ignore, target = _split(table, split, label, domain, (ignore, keep))
        texts = None if texts is None else texts[~target]
        names = list(new.frame.columns)
    elif new_path is None:
        raise TableError(
            "A second table is needed, or a split of the first: --target-domain NAME with --domain "
            "COLUMN, or --time COLUMN with --train-before DATE."
        )
    else:
        schema = table.schema.without([label, *ignore])
        if domain is not None:  # sites 1 and 2 do not make site C of the new file nameless
            schema = schema.with_kinds({**schema.kinds, domain: "text"})
        reader = open_table(new_path, schema=schema, allow_absent=True, **options)
        new = _read(reader, new_path, max_rows, progress)
        names = [*new.frame.columns, *reader.other_names]
    same = new_path is not None and _is_same_file(train_path, new_path)
    matched = match_frames(
        table.frame, new.frame, names, label, domain, ignore, keep, task, table.schema.missing,
        bins, exact_labels=label in intake.kinds,
        # Spectra are measured before any outcome, however well one frequency predicts it.
        suspects=not isinstance(train_path, RecordingTable),
    )  # fmt: skip
    if texts is not None:
        written = texts.iloc[matched.train_rows].tolist()
        matched = replace(matched, y=as_written(matched.y, written))
    read = [
        f"{one_line(Path(path).name)}: {note}"
        for path, notes in ((train_path, table.notes), (new_path or train_path, new.notes))
        for note in notes
    ]
    matched = replace(
        matched,
        notes=read + matched.notes,
        decimal=table.schema.decimal,
        spellings=table.schema.spellings,
        missing=table.schema.missing,
        train_rows=matched.train_rows if table.rows is None else table.rows[matched.train_rows],
        new_rows=new.rows,
    )
    if same:
        matched = replace(
            matched,
            notes=[*matched.notes, "Both tables are the same file: no row of it can have moved."],
        )
    return replace(matched, notes=[*matched.notes, *note_moved_columns(matched)])


def _is_same_file(first: Any, second: Any) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, TypeError):  # a part of a file, or recordings
        return False


def _as_in_files(name: str) -> str:
    """Return the name of a column with single spaces, as names in files are read."""
    return " ".join(name.split())


def _split(
    table: Table,
    split: Split,
    label: str,
    domain: str | None,
    columns: tuple[Sequence[str], Sequence[str]],
) -> tuple[Table, Table, Sequence[str], BoolArray]:
    """Return the training rows and the target rows, what to ignore, and which are the target."""
    ignore, keep = columns
    notes: list[str] = []
    target = split.target_rows(table.frame, domain, notes, table.schema.missing)
    free = split.time is not None and split.time not in (*ignore, *keep, label, domain)
    if split.time is not None and free and table.schema.kinds[split.time] == "number":
        ignore = (*ignore, split.time)
        notes.append(
            f"Ignored {listed([split.time])}: the rows are split by it. To use it: "
            f"--use {quoted(split.time)}."
        )
    rows = np.arange(len(table.frame)) if table.rows is None else table.rows
    train = replace(table, frame=table.frame[~target].reset_index(drop=True), rows=rows[~target])
    frame = table.frame[target].drop(columns=label).reset_index(drop=True)
    return train, Table(frame, table.schema, notes, rows[target]), ignore, target


def _read(
    reader: TableReader, path: Any, max_rows: int | None, progress: Callable[..., object] | None
) -> Table:
    name = one_line(Path(path).name)

    def tell(n_rows: int) -> None:
        if progress is not None:
            progress(f"reading {name}: {n_rows:,} rows", reader.share_read)

    return read_rows(reader, max_rows or default_rows(len(reader.schema.kinds)), tell)
