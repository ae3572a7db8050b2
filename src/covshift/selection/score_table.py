"""All scores of all candidates, and which of them may be ranked."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate
from covshift.selection.disqualification import disqualify
from covshift.selection.metrics import METRICS, NUMBER_METRICS
from covshift.selection.outputs import Output
from covshift.selection.rehearsals import SOURCE_DOMAINS, rehearse


class ScoreTable(NamedTuple):
    """Scores by kind of rehearsal, one number for each candidate, and why some are not ranked."""

    candidates: Sequence[Candidate]
    scores: Mapping[str, FloatArray]
    reasons: Sequence[str | None]
    outputs: Sequence[Output]
    skipped: Sequence[str]  # kinds for which there was no time

    @property
    def allowed(self) -> BoolArray:
        """Candidates that may be ranked."""
        return np.array([reason is None for reason in self.reasons])


def score_table(
    bench: Bench,
    kinds: Sequence[str],
    *,
    deadline: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> ScoreTable:
    """Rehearse by kinds; those due after the deadline (`time.monotonic`) are skipped.

    ``progress`` is told the name, number and count of the kinds as they begin.
    """
    outputs = bench.target
    problem = bench.problem
    n_classes = problem.n_classes if problem.values is None else 1
    reasons = disqualify(outputs, len(problem.X_source), n_classes)
    if len(problem.source_domains) < 2:
        kinds = [kind for kind in kinds if kind != SOURCE_DOMAINS]
    scores: dict[str, FloatArray] = {}
    skipped = []
    for number, kind in enumerate(kinds):
        if progress is not None:
            progress(kind, number, len(kinds))
        if deadline is not None and monotonic() > deadline:
            skipped.append(kind)
        else:
            scores[kind] = rehearse(bench, kind)
    _check_objective(bench, scores)
    return ScoreTable(bench.candidates, scores, reasons, outputs, skipped)


def _check_objective(bench: Bench, scores: Mapping[str, FloatArray]) -> None:
    """Raise where a user's own objective gives nothing to compare candidates by."""
    own = bench.metric not in (*METRICS.values(), *NUMBER_METRICS.values())
    if own and scores and all(np.isnan(one).all() for one in scores.values()):
        raise ValueError(
            "The objective gave NaN for every candidate, so that they cannot be compared. It must "
            "return a number, larger for better predictions."
        )
