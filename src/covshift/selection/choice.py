"""From a bench of candidates to the weights of a vote and an assessment of it."""

import warnings
import zlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.measures.labeled_scores import r2
from covshift.predictors.objectives import ACCURACY
from covshift.selection.assessment import MAX_RISK, MIN_GAIN, Assessment, LabeledRows, assess
from covshift.selection.bench import Bench, Output, make_scene
from covshift.selection.expected_gains import expected_gains, number_voters
from covshift.selection.label_tasks import NumberTask
from covshift.selection.leaderboard import ScoreTable, score_table
from covshift.selection.rehearsals import (
    SOURCE_CV,
    SOURCE_DOMAINS,
    kinds_of,
    predicted_score,
    rehearse,
)
from covshift.selection.vote import combine_with_labels, vote_weights
from covshift.solvers.threads import one_blas_thread

ScoreKind: TypeAlias = Literal["rehearsals", "source CV"]
# Target rows whose labels are known: rows, domains, class numbers or numbers.
Labeled: TypeAlias = tuple[FloatArray, Any, Any]


class NoRankedCandidateWarning(UserWarning):
    """Every candidate is degenerate on the target, and the first is used all the same."""


class Choice(NamedTuple):
    """Scores, the gains expected from them, the weights of the vote, the plain model.

    ``assessment`` is None without a target, and where the plain model could not be fitted.
    """

    table: ScoreTable
    gains: FloatArray
    weights: FloatArray  # of the vote, recommended or not
    plain: int  # number of the best unadapted candidate
    score_kind: ScoreKind
    assessment: Assessment | None

    @property
    def recommended(self) -> FloatArray:
        """Weights of the recommended model: those of the vote, or the plain model alone."""
        if self.assessment is None or self.assessment.action != "keep":
            return self.weights
        weights: FloatArray = np.eye(len(self.weights))[self.plain]
        return weights


def choose(
    bench: Bench,
    score_kind: ScoreKind,
    *,
    n_members: int,
    objective: str = ACCURACY,
    reweighed: bool = False,
    max_risk: float = MAX_RISK,
    min_gain: float = MIN_GAIN,
    labeled: Labeled | None = None,
    time_budget: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Choice:
    """Score the candidates of a bench, weigh those that vote, and assess the vote.

    ``objective`` and ``reweighed`` are of the assessment: the metric is that of the bench.
    """
    deadline = None if time_budget is None else monotonic() + time_budget
    kinds = kinds_of(bench) if score_kind == "rehearsals" else (SOURCE_CV,)
    with one_blas_thread():  # threads for the small products of the scores cost more than they give
        table = score_table(bench, kinds, deadline=deadline, progress=progress)
        _check_some_allowed(table)
        plain = choose_plain(bench, table)
        gains = expected_gains(bench, table.scores, table.allowed, plain)
        known = None
        if labeled is not None and len(labeled[2]):
            outputs, codes = _run_labeled(bench, labeled), labeled[2]
            known = LabeledRows(
                bench.calibrated(outputs),
                codes,
                held_out_weights(bench, outputs, codes, gains, table.allowed, n_members, plain),
            )
            gains = weigh_labels(bench, outputs, codes, gains, table.allowed)
        voters = table.allowed
        if bench.problem.values is not None and known is None:
            voters = number_voters(bench, table.scores, voters, plain)
        weights = vote_weights(gains, voters, n_members, plain)
        assessment = None
        if score_kind == "rehearsals" and _can_predict(bench, plain):
            assessment = assess(
                bench, table, weights, plain,
                objective=objective, reweighed=reweighed, max_risk=max_risk, min_gain=min_gain,
                labeled=known,
            )  # fmt: skip
    return Choice(table, gains, weights, plain, score_kind, assessment)


def _run_labeled(bench: Bench, labeled: Labeled) -> list[Output]:
    """Return outputs of labeled target rows by candidates that are fitted without their labels."""
    X, domain, _ = labeled
    scene = make_scene(*bench.problem[:5], test=(X, domain), values=bench.problem.values)
    name = f"labeled {zlib.crc32(np.ascontiguousarray(X).tobytes())}"
    return bench.run({name: scene})[name]


def weigh_labels(
    bench: Bench, outputs: Sequence[Output], truth: Any, gains: FloatArray, allowed: BoolArray
) -> FloatArray:
    """Return the gains to choose by: expected ones combined with scores on labeled rows."""
    task = bench.task
    if not isinstance(task, NumberTask):
        return combine_with_labels(gains, bench.score(outputs, truth), len(truth), allowed)
    # Gains are in units of R², whatever is asked for: so are the scores that they meet.
    P = bench.calibrated(outputs)
    scores = np.array([np.nan if one is None else r2(truth, one[:, 0]) for one in P])
    variances = np.array([np.nan if one is None else task.variance(one, truth) for one in P])
    return combine_with_labels(gains, scores, len(truth), allowed, variances)


def held_out_weights(
    bench: Bench,
    outputs: Sequence[Output],
    codes: Any,
    gains: FloatArray,
    allowed: BoolArray,
    n_members: int,
    plain: int,
) -> FloatArray:
    """Return, for each row, the choice of weights by the other half of the labels.

    The vote is scored with these: the labels that choose a vote would flatter it.
    """
    half = np.arange(len(codes)) % 2
    weights = np.empty((len(codes), len(outputs)))
    for number in (0, 1):
        others = np.flatnonzero(half != number)
        some = [
            one if one.logits is None else one._replace(logits=one.logits[others])
            for one in outputs
        ]
        of_half = gains
        if len(others):
            of_half = weigh_labels(bench, some, codes[others], gains, allowed)
        weights[half == number] = vote_weights(of_half, allowed, n_members, plain)
    return weights


def _can_predict(bench: Bench, number: int) -> bool:
    """Return whether a candidate has outputs of the target and of all left-out source rows."""
    left_out = bench.probabilities_left_out()[number]
    return bench.target[number].logits is not None and left_out is not None


def choose_plain(bench: Bench, table: ScoreTable) -> int:
    """Choose the plain model: the best unadapted candidate by validation on the source.

    On left-out domains if there are several, else on left-out rows. Ties go to the earlier
    candidate; one that may not be ranked is taken only if no other is left.
    """
    plain = [number for number, one in enumerate(bench.candidates) if not one.adapts]
    allowed = [number for number in plain if table.reasons[number] is None]
    fitted = [number for number in plain if table.outputs[number].logits is not None]
    numbers = np.array(allowed or fitted or plain)
    for kind in (SOURCE_DOMAINS, SOURCE_CV):
        # Members are calibrated on left-out rows in any case.
        if len(numbers) > 1 and (kind == SOURCE_CV or kind in table.scores):
            scores = rehearse(bench, kind, predicted_score(bench))[numbers]
            if not np.isnan(scores).all():
                return int(numbers[np.nanargmax(scores)])
    return int(numbers[0])


def _check_some_allowed(table: ScoreTable) -> None:
    if table.allowed.any():
        return
    pairs = list(zip(table.candidates, table.reasons, strict=True))[:3]
    told = "; ".join(f"{one.name}: {reason}" for one, reason in pairs)
    if all(output.logits is None for output in table.outputs):
        raise ValueError(f"No candidate could be fitted. {told}")
    warnings.warn(
        f"No candidate can be scored, so the first one is used. {told}",
        NoRankedCandidateWarning,
        stacklevel=5,
    )
