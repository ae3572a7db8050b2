"""Two tables, one with labels and one without -> rows, labels and domains.

The training table decides: its columns, less the label, the domain and the ignored ones, are
the features, in its order and of its kinds. Every decision is a note, a plain sentence.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from covshift.domains import Labels, StackedDomains, stack_domains
from covshift.kernels.array_types import BoolArray, IntArray
from covshift.row_checks import largest_magnitude
from covshift.tables.column_choice import choose_features, note_suspects
from covshift.tables.columns import (
    MISSING,
    MISSING_DOMAIN,
    UNUSABLE,
    Kind,
    as_frame,
    column_days,
    column_kind,
    column_numbers,
    column_text,
    column_truth,
    to_dates,
)
from covshift.tables.label_column import CLASSIFICATION, check_task, find_edges, read_labels
from covshift.tables.messages import TableError, listed, quoted
from covshift.tables.schema import TableSchema
from covshift.tables.table_words import say_repeated
from covshift.tables.text_layout import plain_name

# --- Two tables matched ---

# Purpose of a column that a parameter names.
ROLES = {
    "label": "for the label",
    "domain": "for the domain",
    "ignore": "to ignore",
    "keep": "to use",
}


# To detect new rows that are training rows.
MIN_COMPARED, MAX_COMPARED = 10, 500  # rows
MAX_COMPARED_COLUMNS = 50
MIN_REPEATED = 0.5


@dataclass(frozen=True)
class MatchedTables:
    """Rows of a training table and of a new one, with the same columns.

    Attributes
    ----------
    X_train, X_new : pandas frames with the columns ``names``.
    y : labels of the training rows.
    source_domain, target_domain : one integer per row, ``>= 0`` and ``< 0``.
    domain_names : integer -> name.
    label : name of the label column.
    kinds : column -> kind, in order.
    train_rows : positions in the training table of the rows that have a label.
    notes : what was decided, in plain sentences.
    decimal : decimal sign of the training file.
    spellings, missing : how cells are written, as in `TableSchema`.
    label_edges : where a numeric label was cut into ranges; empty: it was not.
    new_rows : positions in the new table of the rows of ``X_new``; None: all of them.
    domain : name of the domain column, or None.
    task : "classification", or "regression": the labels are numbers.
    labeled_rows, new_labels : positions in ``X_new`` of rows whose labels are known, and these
        labels (`covshift.tables.label_files`); None: there are none.
    """

    X_train: Any
    y: Labels
    source_domain: IntArray
    X_new: Any
    target_domain: IntArray
    domain_names: dict[int, str]
    label: str
    kinds: dict[str, Kind]
    train_rows: IntArray
    notes: list[str] = field(default_factory=list)
    decimal: str = "."
    new_rows: IntArray | None = None
    spellings: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    label_edges: tuple[float, ...] = ()
    domain: str | None = None
    labeled_rows: IntArray | None = None
    new_labels: Labels | None = None
    task: str = "classification"

    @property
    def classes(self) -> Labels | None:
        """Classes of the training rows, in order; None: the labels are numbers."""
        return None if self.task == "regression" else np.unique(self.y)

    @property
    def schema(self) -> TableSchema:
        """The features as a schema: with it later files are read as these were."""
        spellings = {name: one for name, one in self.spellings.items() if name in self.kinds}
        return TableSchema(self.kinds, self.decimal, spellings, self.missing)

    @property
    def names(self) -> list[str]:
        """Columns used as features."""
        return list(self.kinds)

    def stack(self) -> StackedDomains:
        """Return ``X, y, sample_domain`` for ``fit``: rows ordered by domain, sources first.

        ``label_mask`` says which labels of new rows are known.
        """
        sources = {
            self.domain_names[number]: (
                self.X_train[self.source_domain == number],
                self.y[self.source_domain == number],
            )
            for number in range(int(self.source_domain.max()) + 1)
        }
        targets = {
            self.domain_names[number]: self.X_new[self.target_domain == number]
            for number in range(-1, int(self.target_domain.min()) - 1, -1)
        }
        stacked = stack_domains(sources, target=targets)
        if self.labeled_rows is None or stacked.y is None:
            return stacked
        y = stacked.y.copy()
        y[len(self.y) + self._places(self.labeled_rows)] = self.new_labels
        return replace(stacked, y=y)

    @property
    def label_mask(self) -> BoolArray | None:
        """Which rows of ``stack`` have a known label; None: those of the training table."""
        if self.labeled_rows is None:
            return None
        known = np.arange(len(self.y) + len(self.X_new)) < len(self.y)
        known[len(self.y) + self._places(self.labeled_rows)] = True
        return known

    def _places(self, rows: IntArray) -> IntArray:
        """Return the positions of rows of ``X_new`` among the target rows of ``stack``."""
        order = np.argsort(-self.target_domain, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        found: IntArray = places[rows]
        return found


def match_tables(
    train: Any,
    new: Any,
    *,
    label: str,
    domain: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    task: str = "classification",
    bins: int | None = None,
) -> MatchedTables:
    """Match a table with labels and a table without.

    Parameters
    ----------
    train, new : frame
        From `read_table`, or any pandas or polars frame.
    label : str
        Label column of ``train``. One of ``new`` is never read. Words that differ only in case are
        one class, with a note.
    domain : str or None
        Column that names the site, user or sensor of each row; the finest unit.
    ignore : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to keep that the rules of `covshift.tables.column_choice` would leave out.
    task : {"classification", "regression"}
        Kind of the labels.
    bins : int or None, default=None
        Cut a numeric label into this number of ranges, which are the classes.

    Returns
    -------
    MatchedTables

    Raises
    ------
    TableError
        If the tables cannot be used; the message says what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from covshift.tables import match_tables
    >>> train = pd.DataFrame(
    ...     {
    ...         "age": [30, 40, 50, 60, 70],
    ...         "site": ["A", "A", "B", "B", "B"],
    ...         "ill": ["no", "yes", "no", "yes", None],
    ...     }
    ... )
    >>> new = pd.DataFrame({"site": ["C", "A"], "age": [35, 45], "ill": ["?", "?"]})
    >>> matched = match_tables(train, new, label="ill", domain="site")
    >>> X, y, sample_domain = matched.stack()
    >>> y.tolist(), sample_domain.tolist()
    (['no', 'yes', 'no', 'yes', '', ''], [0, 0, 1, 1, -1, -2])
    >>> for note in matched.notes:
    ...     print(note)
    1 of 5 training rows have no label and are left out.
    The new table has a column 'ill' too: it is not read.
    Domain 'A' is in both tables: its new rows are a target of their own, 'A (new)'.
    """
    check_task(task, bins)
    train, new = _named_frame(train, "training"), _named_frame(new, "new")
    label, domain = plain_name(label), None if domain is None else plain_name(domain)
    ignore, keep = names_given("ignore", ignore), names_given("keep", keep)
    check_columns(train, label, domain, ignore, keep)
    return match_frames(train, new, list(new.columns), label, domain, ignore, keep, task, bins=bins)


def match_frames(
    train: Any,
    new: Any,
    new_names: list[str],
    label: str,
    domain: str | None,
    ignore: Sequence[str],
    keep: Sequence[str],
    task: str,
    missing: Sequence[str] = MISSING,
    bins: int | None = None,
    suspects: bool = True,
    exact_labels: bool = False,
) -> MatchedTables:
    """Match frames; ``new_names`` are all columns of the new table, read or not.

    ``suspects``: whether to name columns that may mislead.
    """
    notes: list[str] = []
    edges = find_edges(train[label], bins)
    y, train_rows = read_labels(train[label], task, notes, missing, edges, exact_labels)
    train = train.iloc[train_rows].reset_index(drop=True)
    new = new.reset_index(drop=True)
    if label in new_names:
        notes.append(f"The new table has a column {listed([label])} too: it is not read.")
    source_domain, target_domain, domain_names = code_domains(train, new, domain, notes, missing)
    if domain is not None and task == CLASSIFICATION:
        notes.extend(_one_class_note(y, source_domain, label, domain))

    left_out = {label, *ignore} | ({domain} if domain else set())
    candidates = [name for name in train.columns if name not in left_out]
    _note_unmatched(candidates, [name for name in new_names if name not in left_out], notes)
    candidates = [name for name in candidates if name in new.columns]
    kinds = choose_features(train[candidates], new, keep, notes)
    for which, frame, rows in (("training", train, train_rows), ("new", new, range(len(new)))):
        _check_magnitudes(frame, kinds, which, rows)
    if suspects:
        note_suspects(train, y, kinds, notes, task)
    columns: dict[str, Any] = {}
    for name, kind in list(kinds.items()):
        converted = _convert_column(new[name], kind)
        if converted is None:
            notes.append(
                f"Ignored {listed([name])}: it holds {kind}s in the training table and "
                f"{column_kind(new[name])} in the new one."
            )
            del kinds[name]
            continue
        columns[name], note = converted
        notes.extend(note)
        if kind == "text":
            notes.extend(_unseen_note(train[name], columns[name]))
    if not kinds:
        raise TableError(
            "No column is left to learn from: the two tables share none that varies. "
            "Check the names of the columns, or keep some by name."
        )
    X_train = train[list(kinds)]
    # At once: a frame that grows column by column takes time with the square of their number.
    X_new = pd.DataFrame(columns, index=new.index)[list(kinds)]
    notes.extend(_repeated_note(X_train, X_new, kinds))
    return MatchedTables(
        X_train,
        y,
        source_domain,
        X_new,
        target_domain,
        domain_names,
        label,
        kinds,
        train_rows,
        notes,
        label_edges=() if edges is None else tuple(edges.tolist()),
        domain=domain,
        task=task,
    )


def _check_magnitudes(frame: Any, kinds: Mapping[str, Kind], which: str, rows: Any) -> None:
    """Refuse numbers whose squares overflow, before anything is computed from them.

    ``rows``: numbers of the rows in their table, from 0; those without a label are left out.
    """
    limit = largest_magnitude(np.float64)
    for name in (name for name, kind in kinds.items() if kind == "number"):
        if column_kind(frame[name]) != "number":
            continue
        values = column_numbers(frame[name])
        # Not the absolute values: a copy of each column would take memory.
        largest = max(np.fmax.reduce(values, initial=0.0), -np.fmin.reduce(values, initial=0.0))
        if largest > limit:
            row = rows[int(np.nanargmax(np.abs(values)))] + 1
            raise TableError(
                f"Column {listed([name])} of the {which} table holds magnitudes up to "
                f"{largest:.1e} (row {row}); above {limit:.0e} they overflow once squared. "
                f"Correct such values, or leave the column out: --ignore {quoted(name)}."
            )


def _repeated_note(train: Any, new: Any, kinds: Mapping[str, Kind]) -> list[str]:
    """Return a note if most new rows are training rows, and these do not repeat each other."""
    if len(new) < MIN_COMPARED:
        return []
    some, others = (
        one.iloc[np.linspace(0, len(one) - 1, min(len(one), MAX_COMPARED)).astype(int)]
        for one in (new, train)
    )
    share, by_chance = _share_found(some, train, kinds, 1), _share_found(others, train, kinds, 2)
    if share < MIN_REPEATED or by_chance > share / 2:
        return []
    return [say_repeated(share)]


def _share_found(rows: Any, table: Any, kinds: Mapping[str, Kind], least: int) -> float:
    """Return the share of some rows that a table has, each ``least`` times or more."""
    # Numbers first: they are compared fastest and leave the fewest rows to look at.
    names = sorted(kinds, key=lambda name: kinds[name] != "number")[:MAX_COMPARED_COLUMNS]

    def cells(frame: Any, name: str, places: Any) -> Any:
        column = frame[name].iloc[places]
        if kinds[name] == "number":  # durations among them
            return pd.Series(column_numbers(column))
        if kinds[name] == "date":  # as text, a time would be there or not, as other rows have one
            return pd.Series(column_days(column))
        return column.astype(str)

    left, everywhere = np.arange(len(table)), np.arange(len(rows))
    for name in names:
        left = left[cells(table, name, left).isin(cells(rows, name, everywhere)).to_numpy()]
    found, wanted = (
        list(zip(*(map(str, cells(frame, name, places).tolist()) for name in names), strict=True))
        for frame, places in ((table, left), (rows, everywhere))
    )
    counts = Counter(found)
    return float(np.mean([counts[row] >= least for row in wanted]))


def _named_frame(X: Any, which: str) -> Any:
    frame = as_frame(X)
    names = [plain_name(str(name)) for name in frame.columns]
    if len(set(names)) < len(names):
        raise TableError(f"The {which} table has columns with the same name; rename them.")
    if not len(frame):
        raise TableError(f"The {which} table has no rows.")
    return frame.set_axis(names, axis="columns")


def names_given(parameter: str, names: Any) -> tuple[str, ...]:
    """Return plain names of columns to match; one text would be taken apart into letters."""
    if isinstance(names, str):
        raise TableError(f"{parameter} must be a list of names, got the text {names!r}.")
    return tuple(map(plain_name, names))


def check_columns(
    train: Any,
    label: str,
    domain: str | None,
    ignore: Sequence[str],
    keep: Sequence[str],
    unusable: Sequence[str] = (),
) -> None:
    """Raise unless the training table to match has the columns named, each in one role.

    ``unusable`` are columns of the file that were not read, since their types are none of ours.
    """
    named = {"label": [label], "domain": [domain] if domain else [], "ignore": ignore, "keep": keep}
    for role, names in named.items():
        for name in names:
            if name in unusable and role == "ignore":
                continue
            if name in unusable:
                raise TableError(
                    f"The column {listed([name])} {ROLES[role]} holds {UNUSABLE}; write plain "
                    "values, or name another column."
                )
            if name not in train.columns:
                close = difflib.get_close_matches(str(name), train.columns, n=1)
                hint = (
                    f"; is it {listed(close)}?" if close else f"; it has {listed(train.columns)}."
                )
                raise TableError(
                    f"The training table has no column {listed([name])} {ROLES[role]}{hint}"
                )
    if label == domain or label in ignore or domain in ignore:
        raise TableError("A column can be the label, the domain or ignored, not two of them.")
    if not set(train.columns) - {label, domain, *ignore}:
        raise TableError(
            "The training table has no column to learn from: all of its columns are the label, "
            "the domain or ignored."
        )


def _one_class_note(y: Any, source_domain: IntArray, label: str, domain: str) -> list[str]:
    """Return a note if no domain has rows of two classes; domains of a row or two do not count."""
    codes = np.unique(y, return_inverse=True)[1]
    pairs = len(np.unique(np.stack([source_domain, codes]), axis=1).T)
    n_domains = len(np.unique(source_domain))
    if n_domains < 2 or pairs > n_domains or n_domains > len(codes) // 3:
        return []
    return [
        f"Each value of {listed([domain])} has one class of {listed([label])} only: differences "
        "between the classes cannot be separated from differences between the domains."
    ]


def _note_unmatched(train_names: list[str], new_names: list[str], notes: list[str]) -> None:
    only_train = [name for name in train_names if name not in new_names]
    only_new = [name for name in new_names if name not in train_names]
    folded = {"".join(name.split()).casefold(): name for name in only_new}
    for which, names in (("training", only_train), ("new", only_new)):
        if names:
            notes.append(f"Ignored {listed(names)}: only the {which} table has it.")
    for name in only_train:
        if (twin := folded.get("".join(name.split()).casefold())) is not None:
            notes.append(
                f"Is {listed([twin])} of the new table {listed([name])} of the training table? "
                "Rename it."
            )


# --- The domain column of both tables -> the integers of the domain contract ---
#
# Sources are 0, 1, ... and targets -1, -2, ..., as they come. A domain that is in both tables is a
# source in the one and a target of its own in the other: its new rows need not be distributed as
# those of the training table.


NEW = " (new)"  # added to the name of a domain that is in both tables


def code_domains(
    train: Any,
    new: Any,
    domain: str | None,
    notes: list[str],
    missing: Sequence[str] = MISSING,
) -> tuple[IntArray, IntArray, dict[int, str]]:
    """Match domains: return that of each training and new row, and the name of each domain."""
    sources = np.zeros(len(train), dtype=np.int64)
    targets = np.full(len(new), -1, dtype=np.int64)
    if domain is None:
        return sources, targets, {0: "training", -1: "new"}
    sources, source_names = _number(train[domain], missing)
    names = dict(enumerate(source_names))
    if len(source_names) > max(2, len(train) // 2):
        notes.append(
            f"The domain column {listed([domain])} has {len(source_names)} values in {len(train)} "
            "training rows: too few rows of each to use them as domains."
        )
    if domain not in new.columns:
        notes.append(f"The new table has no column {listed([domain])}: its rows are one domain.")
        return sources, targets, {**names, -1: _free_name("new", source_names)}
    positions, target_names = _number(new[domain], missing)
    both = [name for name in target_names if name in source_names]
    if both:
        whose = "Domain" if len(both) == 1 else "Domains"
        verb = "is" if len(both) == 1 else "are"
        first = _free_name(both[0] + NEW, source_names)
        notes.append(
            f"{whose} {listed(both)} {verb} in both tables: its new rows are a target of their "
            f"own, {listed([first])}."
        )
    for i, name in enumerate(target_names):
        new_name = name + NEW if name in both else name
        names[-1 - i] = _free_name(new_name, list(names.values()))
    return sources, -1 - positions, names


def _number(column: Any, missing: Sequence[str]) -> tuple[IntArray, list[str]]:
    """Return each row's position among the distinct values, and these, as they come."""
    encoded = column_text(column, missing).fill_null(MISSING_DOMAIN).dictionary_encode()
    positions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return positions, encoded.dictionary.to_pylist()


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += NEW
    return name


def _convert_column(column: Any, kind: Kind) -> tuple[Any, list[str]] | None:
    """Return a column of the new table as the training table's kind, with notes.

    None: more than half of its values do not fit.
    """
    found = column_kind(column)
    n_filled = int(column.notna().sum())
    if kind == "text":
        text = column if found == kind else column_text(column).to_pandas()
        return text.astype(pd.StringDtype("pyarrow")), []
    if found == kind:
        return column, []
    if kind == "date":
        if found != "text":
            return None
        values = to_dates(column_text(column)).to_pandas()
    else:
        values = pd.Series(column_truth(column) if kind == "boolean" else column_numbers(column))
    n_lost = n_filled - int(values.notna().sum())
    if n_lost > n_filled / 2:
        return None
    note = (
        f"Column {listed([column.name])}: {n_lost} new values are not {kind}s and are read as "
        "missing."
    )
    return values, [note] if n_lost else []


def _unseen_note(train: Any, new: Any) -> list[str]:
    """Return a note on categories that only the new table has, if it has some."""
    known = set(column_text(train).unique().to_pylist())
    counts = column_text(new).value_counts().to_pylist()
    unseen = {c["values"]: c["counts"] for c in counts if c["values"] not in known}
    unseen.pop(None, None)
    if not unseen:
        return []
    n_rows = sum(unseen.values())
    who = "1 new row has a value" if n_rows == 1 else f"{n_rows} new rows have values"
    return [
        f"Column {listed([train.name])}: {who} that no training row has: "
        f"{listed(sorted(unseen), 3)}.{case_hint(unseen, known)}"
    ]


def case_hint(unseen: Iterable[str], known: Iterable[str | None]) -> str:
    """Return a sentence, where tables are matched, on new texts that differ only in case."""
    folded = {text.casefold(): text for text in known if text is not None}
    new = next((text for text in sorted(unseen) if text.casefold() in folded), None)
    if new is None:
        return ""
    old = folded[new.casefold()]
    return f" {listed([new])} differs from {listed([old])} only in case: write them alike."
