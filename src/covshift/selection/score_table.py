"""All scores of all candidates, and the one number made of them."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate
from covshift.selection.disqualification import disqualify
from covshift.selection.outputs import Output
from covshift.selection.scorers import SCORERS

# Scores by name, with their weights in the mean. Weights learned on made-up tasks were not better
# on real ones (docs/results/real-tasks.md).
UNTRAINED = {"what explains": 2.0, "source CV": 1.0}


class ScoreTable(NamedTuple):
    """Scores by name, one number for each candidate, and why some may not be ranked."""

    candidates: Sequence[Candidate]
    scores: Mapping[str, FloatArray]
    reasons: Sequence[str | None]
    outputs: Sequence[Output]
    skipped: Sequence[str]  # scores for which there was no time

    @property
    def allowed(self) -> BoolArray:
        """Candidates that may be ranked."""
        return np.array([reason is None for reason in self.reasons])


def score_table(
    bench: Bench,
    names: Sequence[str],
    *,
    deadline: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> ScoreTable:
    """Compute scores by name; those due after the deadline (`time.monotonic`) are skipped.

    ``progress`` is told the name, number and count of the scores as they begin.
    """
    outputs = bench.target
    problem = bench.problem
    reasons = disqualify(outputs, len(problem.X_source), problem.n_classes)
    scores: dict[str, FloatArray] = {}
    skipped = []
    for number, name in enumerate(names):
        if progress is not None:
            progress(name, number, len(names))
        if deadline is not None and monotonic() > deadline:
            skipped.append(name)
        else:
            scores[name] = SCORERS[name](bench)
    return ScoreTable(bench.candidates, scores, reasons, outputs, skipped)


def untrained_score(table: ScoreTable) -> FloatArray:
    """Weighted mean of scores in units of the metric; 0 for all where none can tell."""
    used = {name: weight for name, weight in UNTRAINED.items() if _tells(table.scores.get(name))}
    if not used:
        return np.zeros(len(table.candidates))
    columns = np.array([table.scores[name] for name in used])
    weights = np.array(list(used.values()))[:, None] * ~np.isnan(columns)
    totals = (weights * np.nan_to_num(columns)).sum(axis=0)
    sums = weights.sum(axis=0)
    mean: FloatArray = np.divide(totals, sums, out=np.full(len(totals), np.nan), where=sums > 0)
    return mean


def _tells(scores: FloatArray | None) -> bool:
    return scores is not None and not np.isnan(scores).all()
