"""Two files, or one that is split, -> matched tables, with notes on the columns that moved.

`read_pair` opens both files (`covshift.tables.reading`), the second by the kinds of the first, and
matches them (`covshift.tables.matching`).
"""

import difflib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.measures import classifier_two_sample_test
from covshift.tables.columns import MISSING, column_days, column_kind, column_numbers, domain_texts
from covshift.tables.dates import is_days
from covshift.tables.encoder import TableEncoder
from covshift.tables.label_column import CLASSIFICATION, REGRESSION, as_written, check_task
from covshift.tables.matching import MatchedTables, check_columns, match_frames, names_given
from covshift.tables.messages import TableError, listed, one_line, quoted
from covshift.tables.reading import (
    AS_WRITTEN,
    Table,
    TableReader,
    default_rows,
    open_table,
    read_rows,
)
from covshift.tables.recordings import RecordingTable
from covshift.tables.schema import Intake
from covshift.tables.text_layout import plain_name
from covshift.warning_filters import ignored_warnings


@dataclass(frozen=True)
class Split:
    """How one table becomes training rows and target rows.

    Attributes
    ----------
    target_domain : names of the domains that are the target.
    time : column by which rows are split; a date or a number.
    train_before : rows before this date, or number, are training rows; or the share of the rows,
        the earliest ones, that are.
    """

    target_domain: Sequence[str] = ()
    time: str | None = None
    train_before: str | None = None

    def __post_init__(self) -> None:
        # As the names and cells of files are read, with which these are compared.
        names = tuple(normalize("NFC", name) for name in self.target_domain)
        object.__setattr__(self, "target_domain", names)
        if self.time is not None:
            object.__setattr__(self, "time", plain_name(self.time))
        if (self.time is None) != (self.train_before is None):
            raise TableError("--time COLUMN and --train-before DATE belong together.")
        if bool(self.target_domain) == (self.time is not None):
            raise TableError(
                "One table needs a split: --target-domain NAME with --domain COLUMN, or --time "
                "COLUMN with --train-before DATE. Otherwise name a second table."
            )

    def target_rows(
        self,
        frame: Any,
        domain: str | None,
        notes: list[str],
        missing: Sequence[str] = MISSING,
    ) -> BoolArray:
        """Return which rows are the target; add notes."""
        if self.time is not None:
            found = self._later_rows(frame, notes)
        else:
            found = self._rows_of_domains(frame, domain, missing)
        if found.all() or not found.any():
            raise TableError(
                f"The split leaves {int((~found).sum())} training rows and {int(found.sum())} "
                "target rows; both are needed."
            )
        notes.append(
            f"The table was split into {int((~found).sum()):,} training rows and "
            f"{int(found.sum()):,} target rows, whose labels are not read."
        )
        return found

    def _rows_of_domains(self, frame: Any, domain: str | None, missing: Sequence[str]) -> BoolArray:
        if domain is None:
            raise TableError("--target-domain needs --domain COLUMN, the column that holds it.")
        names = np.array(domain_texts(frame[domain], missing), dtype=object)
        known = sorted(set(names))
        for name in self.target_domain:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"is it {listed(close)}?" if close else f"it has {listed(known)}."
                raise TableError(
                    f"Column {listed([domain])} has no domain {listed([name])}; {hint}"
                )
        return np.isin(names, list(self.target_domain))

    def _later_rows(self, frame: Any, notes: list[str]) -> BoolArray:
        assert self.time is not None
        assert self.train_before is not None
        name = listed([self.time])
        if self.time not in frame.columns:
            raise TableError(f"--time: the table has no column {name}.")
        kind = column_kind(frame[self.time])
        if kind not in ("date", "number"):
            raise TableError(f"--time: column {name} holds {kind}, not dates or numbers.")
        read = column_days if kind == "date" else column_numbers
        times = read(frame[self.time])
        known = times[~np.isnan(times)]
        if not len(known):
            raise TableError(f"--time: column {name} has no values.")
        if len(known) < len(times):
            n_unknown = len(times) - len(known)
            notes.append(f"{n_unknown:,} rows have no value in {name}: they are training rows.")
        later = np.zeros(len(times), dtype=bool)
        later[~np.isnan(times)] = known >= self._threshold(known, kind)
        return later

    def _threshold(self, times: Any, kind: str) -> float:
        assert self.train_before is not None
        share = _as_number(self.train_before)
        if share is not None and 0 < share < 1:
            # The first time that is not among the earliest rows; rows of one time stay together.
            return float(np.sort(times)[min(int(np.ceil(share * len(times))), len(times) - 1)])
        if kind == "number":
            if share is None:
                raise TableError(
                    f"--train-before: {listed([self.train_before])} is not a number, and column "
                    f"{listed([self.time])} holds numbers."
                )
            return share
        try:
            date = pd.Timestamp(self.train_before)
        except ValueError:
            date = pd.NaT
        if pd.isna(date):
            raise TableError(
                f"--train-before: {listed([self.train_before])} is not a date, as 2024-05-31 is, "
                "nor a share of the rows between 0 and 1."
            )
        if date.tzinfo is not None:
            date = date.tz_convert("UTC").tz_localize(None)
        return float((date - pd.Timestamp(0)) / pd.Timedelta(days=1))


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


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
    intake: Intake | None = None,
    max_rows: int | None = None,
    progress: Callable[[str, float | None], object] | None = None,
    **options: Any,
) -> MatchedTables:
    """Read two files and match them; the second is read with the column kinds of the first.

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
    intake : Intake or None, default=None
        Known facts about the cells, as in `open_table`.
    max_rows : int or None, default=None
        Rows of each file to keep: if there are more, that many are drawn at random while it is
        read, and a note says so. None: as many as make 20 million cells.
    progress : callable or None, default=None
        Gets a line that says how far reading is, and the share of the file (None: unknown).
    **options
        ``separator``, ``decimal``, ``header``, ``skip_rows`` and ``encoding``, as in `open_table`,
        for both files.

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
    label, domain = plain_name(label), None if domain is None else plain_name(domain)
    ignore, keep = names_given("ignore", ignore), names_given("keep", keep)
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
    check_columns(table.frame, label, domain, ignore, keep, first.unusable_names)
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
    return replace(matched, notes=[*matched.notes, *_note_moved_columns(matched)])


def _is_same_file(first: Any, second: Any) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, TypeError):  # a part of a file, or recordings
        return False


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


# --- Which columns separate training rows from new rows, and which of them are clocks ---
#
# A classifier separates the rows with all columns; without the column that separates them best
# alone; without the best two; and so on. The columns that account for the difference are those
# without which half of what lies above chance is gone.
#
# A clock is a column whose values only grow: new rows lie beyond all training rows, whatever else
# they are. A number is taken for one if nearly all new values lie beyond the training rows on one
# side, and it grows along the training file, holds days, or has a name like `year`. So is a date
# that is among the columns that account for the difference.


MAX_COMPARED_ROWS = 1000  # drawn from each table


MIN_COMPARED_ROWS = 20
MIN_AUC = 0.75  # below this AUC there is little to explain
MAX_NAMED_COLUMNS = 3  # columns named as the explanation
MAX_COMPARED_FEATURES = 2000  # no explanation is sought above this
SHARE_BEYOND = 0.95
GROWTH = 0.95  # rank correlation of a column with the row's number
CLOCK_NAME = re.compile(
    r"(^|[^a-z])(year|yr|month|week|quarter|date|day|time|timestamp|epoch|unixtime|datetime|"
    r"version|build|batch|sequence|seq|created|updated|modified|ts)s?$|_at$",
    re.IGNORECASE,
)


def _note_moved_columns(tables: MatchedTables, seed: int = 0) -> list[str]:
    """Return sentences on the columns that separate the rows of two tables.

    Parameters
    ----------
    tables : MatchedTables
        From `match_tables`.
    seed : int, default=0
        Of the rows drawn and of the folds.

    Returns
    -------
    list of str
        Empty where the rows are hardly separated, or no few columns account for it.
    """
    n_rows = min(len(tables.X_train), len(tables.X_new))
    if n_rows < MIN_COMPARED_ROWS:
        return []
    rng = np.random.default_rng(seed)
    encoder = TableEncoder().fit(tables.X_train, schema=tables.schema)
    owners = np.array(encoder.columns_of_features(), dtype=object)
    if len(owners) > MAX_COMPARED_FEATURES:
        return []
    A, B = (
        encoder.transform(frame.iloc[np.sort(rng.permutation(len(frame))[:MAX_COMPARED_ROWS])])
        for frame in (tables.X_train, tables.X_new)
    )
    auc = _rows_auc(A, B, seed)
    if auc < MIN_AUC:
        return []
    alone = {
        name: _column_auc(A[:, owners == name], B[:, owners == name])
        for name in dict.fromkeys(owners)
    }
    ranked = sorted(alone, key=lambda name: -alone[name])
    top, without = _top_columns(A, B, owners, ranked, auc, seed)
    clocks = [name for name in ranked if name in tables.kinds and _is_clock(name, tables, top)]
    notes = []
    if top:
        each = ", ".join(f"{listed([name])} (AUC {alone[name]:.2f} alone)" for name in top)
        rest = "these are all columns" if len(top) > 1 else "it is the only column"
        if without is not None:
            rest = f"without {'them' if len(top) > 1 else 'it'} the AUC is {without:.2f}"
        notes.append(
            f"A classifier separates training rows from new rows with AUC {auc:.2f}, mostly by "
            f"{each}; {rest}."
        )
    if clocks:
        notes.append(
            f"{listed(clocks)} {'look like clocks' if len(clocks) > 1 else 'looks like a clock'}: "
            "the new rows lie beyond the training rows because they are later. To leave "
            f"{'them' if len(clocks) > 1 else 'it'} out: --ignore {quoted(','.join(clocks))}."
        )
    return notes


def _top_columns(
    A: FloatArray, B: FloatArray, owners: Any, ranked: list[str], auc: float, seed: int
) -> tuple[list[str], float | None]:
    """Return the fewest columns that account for the difference, and the AUC without them."""
    enough = 0.5 + (auc - 0.5) / 2
    for n_columns in range(1, MAX_NAMED_COLUMNS + 1):
        top = ranked[:n_columns]
        others = ~np.isin(owners, top)
        if not others.any():
            return (top, None) if len(ranked) > 1 or n_columns == 1 else ([], None)
        without = _rows_auc(A[:, others], B[:, others], seed)
        if without <= enough:
            return top, without
    return [], None


def _rows_auc(A: FloatArray, B: FloatArray, seed: int) -> float:
    with ignored_warnings(ConvergenceWarning):  # of rows that are easily separated
        test = classifier_two_sample_test(A, B, cv=3, random_state=seed, n_importance_repeats=0)
    return float(test.statistic)


def _column_auc(A: FloatArray, B: FloatArray) -> float:
    """Return the AUC of one column: of its number, or of the best linear score of its features."""
    both = np.concatenate([A, B])
    if both.shape[1] > 1:
        side = np.repeat([-1.0, 1.0], [len(A), len(B)])
        centered = both - both.mean(axis=0)
        scores = centered @ np.linalg.lstsq(centered, side, rcond=None)[0]
    else:
        scores = both[:, 0]
    ranks = rankdata(scores)
    n, k = len(A), len(B)
    auc = (ranks[n:].sum() - k * (k + 1) / 2) / (n * k)
    return float(max(auc, 1 - auc))


def _is_clock(name: str, tables: MatchedTables, top: list[str]) -> bool:
    if tables.kinds[name] == "date":
        return name in top
    if tables.kinds[name] != "number":
        return False
    old = column_numbers(tables.X_train[name])
    new = column_numbers(tables.X_new[name])
    order = np.flatnonzero(~np.isnan(old))
    new = new[~np.isnan(new)]
    if len(order) < MIN_COMPARED_ROWS or not len(new):
        return False
    beyond = max((new > old[order].max()).mean(), (new < old[order].min()).mean())
    if beyond < SHARE_BEYOND:
        return False
    if is_days(tables.spellings.get(name, "")) or CLOCK_NAME.search(name):
        return True
    if np.ptp(old[order]) == 0:  # a correlation is not defined
        return False
    return bool(abs(spearmanr(tables.train_rows[order], old[order]).statistic) >= GROWTH)
