"""From a bench of candidates to the weights of a vote, with the reasons."""

import warnings
from collections.abc import Callable
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.selection.bench import Bench
from covshift.selection.gains import expected_gains
from covshift.selection.problem import make_scene
from covshift.selection.rehearsals import (
    KINDS,
    SOURCE_CV,
    SOURCE_DOMAINS,
    predicted_score,
    rehearse,
)
from covshift.selection.score_table import ScoreTable, score_table
from covshift.selection.vote import combine_with_labels, vote_weights
from covshift.solvers.blas_threads import one_blas_thread

ScoreKind: TypeAlias = Literal["rehearsals", "source CV"]
# Target rows whose labels are known: rows, domains, class numbers.
Labelled: TypeAlias = tuple[FloatArray, IntArray, IntArray]


class NoRankedCandidateWarning(UserWarning):
    """Every candidate is degenerate on the target, and the first is used all the same."""


class Choice(NamedTuple):
    """Scores, the gains expected from them, the weights of the vote, the plain model, and why."""

    table: ScoreTable
    gains: FloatArray
    weights: FloatArray
    plain: int  # number of the best unadapted candidate
    score_kind: ScoreKind
    decision: str


def choose(
    bench: Bench,
    score_kind: ScoreKind,
    *,
    n_members: int,
    guard: float = 0.0,
    labelled: Labelled | None = None,
    time_budget: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Choice:
    """Score the candidates of a bench, and weigh those that are to vote."""
    deadline = None if time_budget is None else monotonic() + time_budget
    kinds = KINDS if score_kind == "rehearsals" else (SOURCE_CV,)
    with one_blas_thread():  # threads for the small products of the scores cost more than they give
        table = score_table(bench, kinds, deadline=deadline, progress=progress)
        _check_some_allowed(table)
        plain = choose_plain(bench, table)
        gains = expected_gains(bench, table.scores, table.allowed, plain)
    if labelled is not None and len(labelled[2]):
        X, domain, codes = labelled
        scene = make_scene(*bench.problem[:5], test=(X, domain))
        scores = bench.score(bench.run({"labelled": scene})["labelled"], codes)
        gains = combine_with_labels(gains, scores, len(codes), table.allowed)
    weights = vote_weights(gains, table.allowed, n_members)
    weights, decision = guard_weights(table, gains, weights, guard)
    return Choice(table, gains, weights, plain, score_kind, decision)


def choose_plain(bench: Bench, table: ScoreTable) -> int:
    """Return the best unadapted candidate by validation on the source.

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


def guard_weights(
    table: ScoreTable, gains: FloatArray, weights: FloatArray, guard: float
) -> tuple[FloatArray, str]:
    """Weights after the guard, which adapts nothing for a small lead, and the reason in words."""
    names = [one.name for one in table.candidates]
    adapts = np.array([one.adapts for one in table.candidates])
    members = np.flatnonzero(weights)
    if not table.allowed.any():
        return weights, f"No candidate may be ranked, so {names[members[0]]} is used."
    decision = f"{len(members)} of {table.allowed.sum()} candidates vote"
    plain = np.where(adapts | ~table.allowed | np.isnan(gains), -np.inf, gains)
    if guard <= 0 or np.isneginf(plain).all() or not adapts[members].any():
        return weights, f"{decision}, led by {names[weights.argmax()]}."
    best = int(plain.argmax())
    lead = float(weights @ np.where(weights > 0, gains, 0.0)) - gains[best]
    if lead >= guard:
        return weights, f"{decision}; expected gain over the best unadapted one: {lead:+.3f}."
    alone = np.zeros(len(weights))
    alone[best] = 1.0
    return alone, (
        f"No adaptation: {names[best]} is used. The expected gain of a vote, {lead:+.3f}, is less "
        f"than the guard of {guard:.3f}."
    )


def _check_some_allowed(table: ScoreTable) -> None:
    if table.allowed.any():
        return
    pairs = list(zip(table.candidates, table.reasons, strict=True))[:3]
    told = "; ".join(f"{one.name}: {reason}" for one, reason in pairs)
    if all(output.logits is None for output in table.outputs):
        raise ValueError(f"No candidate could be fitted. {told}")
    warnings.warn(
        f"No candidate may be ranked, so the first is used. {told}",
        NoRankedCandidateWarning,
        stacklevel=4,
    )
