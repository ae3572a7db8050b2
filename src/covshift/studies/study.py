"""A study: trials to run, and what to make of their records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from covshift.studies.store import Record
from covshift.studies.trial import TaskFunction, Trial

Facts: TypeAlias = Sequence[tuple[str, str]]


class TextTable(NamedTuple):
    """A table for a terminal: rows of text in groups, and a note below."""

    headings: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    note: str


@dataclass(frozen=True)
class Study:
    """A study that `covshift.cli.study.run_study` can run and show.

    Attributes
    ----------
    name : str
        As the user knows it.
    tasks : sequence of sequences of Trial
        Tasks to run, as `run_experiment` takes them.
    function : callable
        Function that runs a task, as `run_experiment` takes it.
    run_settings : mapping of str to plain data
        Settings of the run, to be recorded beside the results.
    document : callable
        ``document(records, facts)``: the report as `covshift.report.document` builds it; facts
        are pairs of a name and a text, e.g. the command and the date.
    table : callable, default=None
        ``table(records)``: what to print at the end.
    """

    name: str
    tasks: Sequence[Sequence[Trial]]
    function: TaskFunction
    run_settings: Mapping[str, Any]
    document: Callable[[Sequence[Record], Facts], Any]
    table: Callable[[Sequence[Record]], TextTable] | None = None
