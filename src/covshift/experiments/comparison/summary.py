"""What the trials of the comparison say: systems over pairs of domains."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.stats import t as t_distribution

from covshift.experiments.comparison.recipes import (
    BEST_UNADAPTED,
    COMPONENTS,
    NONE,
    NONE_ON_COMPONENTS,
)
from covshift.experiments.paper import Figure
from covshift.experiments.store import Record
from covshift.experiments.synthetic.summary import Verdict, estimate
from covshift.measures import mean_and_standard_error

LEVEL = 0.05
CLEAR = 0.01  # of balanced accuracy, beyond which a pair counts as helped or harmed

Pair: TypeAlias = tuple[str, str]


class Difference(NamedTuple):
    """Mean difference to no adaptation over pairs, its 95 % interval, and pairs by its sign."""

    mean: float
    low: float | None
    high: float | None
    helped: int
    harmed: int

    @property
    def verdict(self) -> Verdict:
        """What the interval says."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "unclear"
        return "helps" if self.low > 0 else "harms"


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


def compare_pairs(differences: Sequence[float]) -> Difference | None:
    """Mean of the differences of pairs, with an interval by Student's t over the pairs.

    Pairs share their domains, which the interval does not know: it is narrower than one over new
    domains would be.
    """
    if not differences:
        return None
    values = np.array(differences)
    helped, harmed = int((values > CLEAR).sum()), int((values < -CLEAR).sum())
    if len(values) < 2:
        return Difference(float(values[0]), None, None, helped, harmed)
    mean, error = mean_and_standard_error(values)
    width = float(t_distribution.ppf(1 - LEVEL / 2, len(values) - 1)) * error
    return Difference(mean, mean - width, mean + width, helped, harmed)
