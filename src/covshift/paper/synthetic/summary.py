"""What the trials of the synthetic study say, cell by cell."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from covshift.measures import percentage_change
from covshift.paper.synthetic.printed import (
    NOT_REPRODUCED,
    PRINTED_ACCURACY,
    REBUILT_ACCURACY,
    REBUILT_WITHOUT_CHANGE,
)
from covshift.studies.report import Figure, Verdict, estimate, paired_verdict
from covshift.studies.store import Record

Agreement: TypeAlias = Literal["agrees", "differs", "not reproduced"]

LARGEST_DIFFERENCE = 3  # standard errors of the difference, within which two figures agree


class Cell(NamedTuple):
    """What the trials of one cell of a table have in common."""

    data_set: str
    system: str
    reading: str | None = None
    variant: str = "reconstructed"
    without_crossing: bool = False


Trials: TypeAlias = dict[Cell, list[Record]]


def gather(records: Iterable[Record]) -> Trials:
    """Records of trials that did not fail, by cell, in the order of their seeds."""
    cells: Trials = {}
    for record in records:
        if record.result is not None:
            settings = record.trial.settings
            cell = Cell(**{name: settings[name] for name in Cell._fields if name in settings})
            cells.setdefault(cell, []).append(record)
    return {cell: sorted(found, key=lambda one: one.trial.seed) for cell, found in cells.items()}


def values(records: Sequence[Record], name: str) -> list[float]:
    """One result of each trial: a stored one, or a change in per cent made of two."""
    if name == "change":
        return _changes(records, "without", "with")
    if name == "mmd_change":
        return _changes(records, "mmd_before", "mmd_after")
    results: list[dict[str, Any]] = [record.result or {} for record in records]
    return [result[name] for result in results if name in result]


def agree(ours: Figure, other: Figure) -> bool:
    """Whether two figures are within three standard errors of their difference."""
    error = np.hypot(ours.standard_error or 0.0, other.standard_error or 0.0)
    return bool(abs(ours.mean - other.mean) <= LARGEST_DIFFERENCE * error)


def agreement_with_paper(cell: Cell, records: Sequence[Record]) -> Agreement | None:
    """Whether the accuracy with adaptation agrees with the printed one."""
    ours = estimate(values(records, "with"))
    printed = PRINTED_ACCURACY.get((cell.data_set, cell.system))
    if ours is None or printed is None:
        return None
    if (cell.data_set, cell.system) in NOT_REPRODUCED:
        return "not reproduced"
    return _agreement(ours, printed[1])


def agreement_with_rebuild(cell: Cell, records: Sequence[Record]) -> Agreement | None:
    """Whether the accuracy with adaptation agrees with that of the independent rebuild."""
    with_, without = values(records, "with"), values(records, "without")
    ours = estimate(with_)
    if ours is None:
        return None
    if cell.system in REBUILT_WITHOUT_CHANGE:
        return "agrees" if with_ == without else "differs"
    rebuilt = REBUILT_ACCURACY.get((cell.data_set, cell.system))
    return None if rebuilt is None else _agreement(ours, rebuilt)


def verdict(records: Sequence[Record]) -> Verdict:
    """Whether adapting is better or worse than not adapting, or neither for sure.

    A t-test of the differences within each trial: pairing takes out what the draws of the data
    add to the spread of both.
    """
    return paired_verdict(np.subtract(values(records, "with"), values(records, "without")))


def _agreement(ours: Figure, other: Figure) -> Agreement | None:
    """None for a single trial: it varies by more than the error of anybody's mean."""
    if ours.standard_error is None:
        return None
    return "agrees" if agree(ours, other) else "differs"


def _changes(records: Sequence[Record], before: str, after: str) -> list[float]:
    results: list[dict[str, Any]] = [record.result or {} for record in records]
    return [
        float(percentage_change(result[before], result[after]))
        for result in results
        if before in result and after in result
    ]
