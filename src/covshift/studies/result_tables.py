"""Reports of studies: records -> one frame -> groups, figures, verdicts -> tables.

A study says which columns of the frame make a group, with what a group is compared, and which
columns its tables show; `covshift.report.document` makes a document of the tables. Frames are
those of pandas, which is imported when a report is made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import t as t_distribution

from covshift.measures import mean_and_standard_error
from covshift.report.document import (
    Column,
    Evidence,
    Section,
    Table,
    make_cell,
    make_column,
    make_evidence,
    make_section,
    make_table,
)
from covshift.studies.store import Record

Frame: TypeAlias = Any  # pandas.DataFrame
Verdict: TypeAlias = Literal["helps", "harms", "unclear"]

VERDICT_LEVEL = 0.05  # chance of calling a difference where there is none, for each verdict
CLEAR = 0.01  # difference from which a unit counts as helped or harmed
# Accuracies on 500 rows come in such steps: a few equal differences prove no smaller spread.
STEP = 1 / 500


# Records -> frames


def import_pandas() -> ModuleType:
    """Return pandas, which tables of results need, or raise an error that names the extra."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'Reports of studies need pandas, which is not installed: pip install "covshift[cli]"'
        ) from error
    return pandas


def make_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Frame:
    """Return a table of results as a frame that keeps values; None where a row has none."""
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    filled = [{name: row.get(name) for name in names} for row in rows]
    return import_pandas().DataFrame(filled, columns=names, dtype=object)


def tidy(records: Iterable[Record], **defaults: Any) -> Frame:
    """Return a frame with one row for each trial that did not fail.

    Columns are the names of settings and results, a setting before a result of the same name,
    and ``seed``, ``seconds`` (of its task) and ``trial`` (the start of its key).

    Parameters
    ----------
    records : iterable of Record
        Records.
    **defaults : object
        Values of columns where a trial has none; they are there even without any trial.

    Returns
    -------
    pandas.DataFrame
    """
    rows = []
    for record in records:
        if record.result is not None:
            trial = record.trial
            own = {"seed": trial.seed, "seconds": record.seconds, "trial": trial.key[:12]}
            rows.append({**defaults, **record.result, **trial.settings, **own})
    return make_frame(rows, list(defaults))


def group_rows(frame: Frame, by: Sequence[str]) -> dict[tuple[Any, ...], Frame]:
    """Group a table of results: the rows of each group by shared values, in their order."""
    return dict(iter(frame.groupby(list(by), sort=False))) if len(frame) else {}


def values(frame: Frame | None, name: str) -> list[Any]:
    """Return what a group of a table of results has under a name; nothing of rows without."""
    if frame is None or name not in frame:
        return []
    return [value for value in frame[name] if value is not None]


# Figures and differences


class Figure(NamedTuple):
    """A figure with its standard error, None where there is none."""

    mean: float
    standard_error: float | None = None


def estimate(numbers: Sequence[float]) -> Figure | None:
    """Return a figure of a table of results: the mean and its standard error.

    A single number has no error; of none nothing is returned.
    """
    if not numbers:
        return None
    if len(numbers) == 1:
        return Figure(numbers[0])
    return Figure(*mean_and_standard_error(numbers))


class Difference(NamedTuple):
    """Mean difference over units, its 95 % interval, and the units clearly helped and harmed."""

    mean: float
    low: float | None
    high: float | None
    helped: int
    harmed: int

    @property
    def verdict(self) -> Verdict:
        """Meaning of the interval."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "unclear"
        return "helps" if self.low > 0 else "harms"


def compare_pairs(differences: Sequence[float], step: float = 0.0) -> Difference | None:
    """Return the mean of paired results with an interval by Student's t; None without any.

    Pairing takes out what the draws of the data add to the spread of both. Units that share
    their domains are taken as independent: the interval is narrower than one over new domains.

    Parameters
    ----------
    differences : sequence of float
        Of each unit, such as a draw or a pair of domains.
    step : float, default=0
        Step in which differences come: the smallest spread that they can prove.

    Returns
    -------
    Difference or None
    """
    if len(differences) == 0:
        return None
    numbers = np.array(differences)
    helped, harmed = int((numbers > CLEAR).sum()), int((numbers < -CLEAR).sum())
    if len(numbers) < 2:
        return Difference(float(numbers[0]), None, None, helped, harmed)
    mean, error = mean_and_standard_error(numbers)
    error = max(error, step / sqrt(len(numbers)))
    width = float(t_distribution.ppf(1 - VERDICT_LEVEL / 2, len(numbers) - 1)) * error
    return Difference(mean, mean - width, mean + width, helped, harmed)


def verdict_of(difference: Difference | None) -> Verdict:
    """Return the verdict of a difference; unclear where there is none."""
    return "unclear" if difference is None else difference.verdict


class Summary(NamedTuple):
    """A group of trials: its score on each unit, and the difference to its baseline."""

    key: tuple[Any, ...]  # the values that its trials share
    trials: Frame
    by_unit: dict[Any, float]
    difference: Difference | None

    @property
    def score(self) -> Figure | None:
        """Mean over the units."""
        return estimate(list(self.by_unit.values()))

    @property
    def id(self) -> str:
        """Name of the evidence behind its figures."""
        return "|".join(map(str, self.key))


def unit_means(frame: Frame, units: Sequence[str], name: str) -> dict[Any, float]:
    """Return the mean of one result over the trials of each unit that have it."""
    if name not in frame:
        return {}
    found = group_rows(frame[frame[name].notna()], units)
    return {unit: float(np.mean(list(rows[name]))) for unit, rows in found.items()}


def summarize(
    frame: Frame,
    by: Sequence[str],
    units: Sequence[str],
    score: str,
    baseline: Callable[[str, Frame], str | None],
    step: float = 0.0,
) -> list[Summary]:
    """Summarize the trials of each group, and compare it with its baseline unit by unit.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each trial.
    by : sequence of str
        Columns that make a group; one of them is ``"system"``.
    units : sequence of str
        Columns that make a unit, such as a pair of domains: trials of one are averaged.
    score : str
        Column of the score.
    baseline : callable
        ``baseline(system, trials)``: the system to compare with in the same place; None: none.
    step : float, default=0
        See `compare_pairs`.

    Returns
    -------
    list of Summary
        In the order of the rows.
    """
    groups = group_rows(frame, by)
    scores = {key: unit_means(trials, units, score) for key, trials in groups.items()}
    place = list(by).index("system")
    found = []
    for key, trials in groups.items():
        other = baseline(key[place], trials)
        others = scores.get((*key[:place], other, *key[place + 1 :]), {})
        shared = [value - others[unit] for unit, value in scores[key].items() if unit in others]
        found.append(Summary(key, trials, scores[key], compare_pairs(shared, step)))
    return found


# Cells and tables


def figure_text(figure: Figure | None, digits: int = 3) -> str:
    """Return, for a table of results, mean and standard error as text."""
    if figure is None:
        return "?"
    text = f"{figure.mean:.{digits}f}"
    if figure.standard_error is None:
        return text
    return f"{text} ± {figure.standard_error:.{digits}f}"


def figure_cell(figure: Figure | None, digits: int = 3, evidence: str | None = None) -> Any:
    """Return a cell that shows mean and standard error; none without a figure."""
    if figure is None:
        return None
    return make_cell(figure_text(figure, digits), value=figure.mean, evidence=evidence)


def score_cell(one: Summary) -> Any:
    """Return a cell that shows the score of a group."""
    return figure_cell(one.score, evidence=one.id)


def difference_cell(one: Summary) -> Any:
    """Return a cell that shows the difference of a group to its baseline, marked by its verdict."""
    if one.difference is None:
        return None
    mean = one.difference.mean
    return make_cell(f"{mean:+.3f}", value=mean, mark=one.difference.verdict)


def interval_text(one: Summary) -> str | None:
    """Return, for a table of results, the 95 % interval of that difference as text."""
    if one.difference is None:
        return None
    _, low, high, _, _ = one.difference
    return "" if low is None else f"{low:+.3f} to {high:+.3f}"


class Shown(NamedTuple):
    """A column of a table, and what makes its cells of the rows."""

    column: Column
    cell: Callable[[Any], Any]


def text_column(
    key: str, label: str | None = None, cell: Callable[[Any], Any] | None = None, help: str = ""
) -> Shown:
    """Return a column of texts of a table of results; a cell is by default the row's value.

    The value is that under the key.
    """
    return Shown(make_column(key, label, help=help), cell or (lambda row: row[key]))


def number_column(
    key: str,
    label: str | None = None,
    cell: Callable[[Any], Any] | None = None,
    help: str = "",
    digits: int | None = None,
) -> Shown:
    """Return a column of numbers of a table of results, or of cells that sort by one."""
    column = make_column(key, label, numeric=True, help=help, digits=digits)
    return Shown(column, cell or (lambda row: row[key]))


def build_table(table_id: str, caption: str, columns: Sequence[Shown], rows: Any) -> Table:
    """Return the table of some rows: those of a frame, or anything that the columns take."""
    return make_table(table_id, caption, [one.column for one in columns], _cells(columns, rows))


def build_section(
    section_id: str,
    title: str,
    caption: str,
    columns: Sequence[Shown],
    rows: Any,
    paragraphs: Sequence[str] = (),
) -> Section:
    """Return a section of one table, which has the section's name."""
    table = build_table(section_id, caption, columns, rows)
    return make_section(section_id, title, paragraphs=paragraphs, tables=[table])


def build_evidence(title: str, columns: Sequence[Shown], rows: Any) -> Evidence:
    """Return the trials behind a figure, as `build_table` returns a table."""
    return make_evidence(title, [one.column for one in columns], _cells(columns, rows))


def _cells(columns: Sequence[Shown], rows: Any) -> list[dict[str, Any]]:
    if hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    return [{one.column["key"]: one.cell(row) for one in columns} for row in rows]
