"""What the trials of the comparison say: systems over pairs of domains."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from covshift.studies.comparison.recipes import BEST_UNADAPTED, COMPONENTS, NONE, NONE_ON_COMPONENTS
from covshift.studies.report import Difference, Figure, compare_pairs, estimate
from covshift.studies.store import Record

Pair: TypeAlias = tuple[str, str]


class SystemSummary(NamedTuple):
    """One system on one collection."""

    name: str
    records: list[Record]
    score: Figure | None
    difference: Difference | None
    without_target: Figure | None
    by_pair: dict[Pair, float]


def summarise(records: Iterable[Record], collection: str) -> list[SystemSummary]:
    """Summaries of all systems on one collection, in the order of the records."""
    by_system: dict[str, list[Record]] = {}
    for record in records:
        settings = record.trial.settings
        if settings["collection"] == collection and record.result is not None:
            by_system.setdefault(settings["system"], []).append(record)
    scores = {name: pair_means(found, "score") for name, found in by_system.items()}
    summaries = []
    for name, found in by_system.items():
        baseline = scores.get(_baseline(name, found), {})
        own = scores[name]
        differences = [own[pair] - baseline[pair] for pair in own if pair in baseline]
        if name in (NONE, NONE_ON_COMPONENTS):
            differences = []
        summaries.append(
            SystemSummary(
                name,
                found,
                estimate(list(own.values())),
                compare_pairs(differences),
                estimate(list(pair_means(found, "without_target").values())),
                own,
            )
        )
    # The best model without adapting is computed first, and shown after those it is like.
    order = [NONE, NONE_ON_COMPONENTS, BEST_UNADAPTED]
    return sorted(
        summaries, key=lambda one: order.index(one.name) if one.name in order else len(order)
    )


def _baseline(name: str, records: Sequence[Record]) -> str:
    """The system without an adapter that sees the same."""
    if name == BEST_UNADAPTED:
        return NONE
    sees = records[0].trial.settings["recipe"]["sees"]
    return NONE_ON_COMPONENTS if sees == COMPONENTS else NONE


def pair_means(records: Iterable[Record], name: str) -> dict[Pair, float]:
    """Mean of one result over the seeds of each pair, where there is such a result."""
    found: dict[Pair, list[float]] = {}
    for record in records:
        settings, result = record.trial.settings, record.result or {}
        if name in result:
            found.setdefault((settings["source"], settings["target"]), []).append(result[name])
    return {pair: float(np.mean(values)) for pair, values in found.items()}
