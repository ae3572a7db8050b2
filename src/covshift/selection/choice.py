"""From a bench of candidates to the weights of a vote, with the reasons."""

import warnings
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.selection.bench import Bench
from covshift.selection.problem import make_scene
from covshift.selection.score_table import (
    UNTRAINED,
    ScoreTable,
    score_table,
    untrained_score,
)
from covshift.selection.scorers import SCORERS
from covshift.selection.vote import combine_with_labels, vote_weights
from covshift.solvers.blas_threads import one_blas_thread

ScoreKind: TypeAlias = Literal["untrained", "source CV"]
# Target rows whose labels are known: rows, domains, class numbers.
Labelled: TypeAlias = tuple[FloatArray, IntArray, IntArray]


class NoRankedCandidateWarning(UserWarning):
    """Every candidate is degenerate on the target, and the first is used all the same."""


class Choice(NamedTuple):
    """Scores, the number made of them, the weights of the vote, the plain model, and why."""

    table: ScoreTable
    combined: FloatArray
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
    with one_blas_thread():  # threads for the small products of the scores cost more than they give
        table = score_table(bench, _score_names(score_kind), deadline=deadline, progress=progress)
    _check_some_allowed(table)
    combined = _combine(table, score_kind)
    if labelled is not None and len(labelled[2]):
        X, domain, codes = labelled
        scene = make_scene(*bench.problem[:5], test=(X, domain))
        scores = bench.score(bench.run({"labelled": scene})["labelled"], codes)
        combined = combine_with_labels(combined, scores, len(codes), table.allowed)
    weights = vote_weights(combined, table.allowed, n_members)
    weights, decision = guard_weights(table, combined, weights, guard)
    return Choice(table, combined, weights, choose_plain(bench, table), score_kind, decision)


def choose_plain(bench: Bench, table: ScoreTable) -> int:
    """Return the best unadapted candidate by validation on the source.

    On left-out domains if there are several, else on left-out rows. Ties go to the earlier
    candidate; one that may not be ranked is taken only if no other is left.
    """
    plain = [number for number, one in enumerate(bench.candidates) if not one.adapts]
    allowed = [number for number in plain if table.reasons[number] is None]
    fitted = [number for number in plain if table.outputs[number].logits is not None]
    numbers = allowed or fitted or plain
    if len(numbers) == 1:
        return numbers[0]
    with one_blas_thread():
        scores = _validate_plain(bench.with_candidates(numbers), table, numbers)
    return numbers[int(np.nanargmax(np.where(np.isnan(scores), -np.inf, scores)))]


def _validate_plain(bench: Bench, table: ScoreTable, numbers: Sequence[int]) -> FloatArray:
    """Scores of some candidates, those of a table where it has them."""
    for name in ("source domains", "source CV"):
        if name in table.scores:
            scores = table.scores[name][np.array(numbers)]
        elif name == "source domains" and len(bench.problem.source_domains) < 2:
            continue
        else:
            scores = SCORERS[name](bench)
        if not np.isnan(scores).all():
            return scores
    return np.zeros(len(numbers))


def guard_weights(
    table: ScoreTable, combined: FloatArray, weights: FloatArray, guard: float
) -> tuple[FloatArray, str]:
    """Weights after the guard, which adapts nothing for a small lead, and the reason in words."""
    names = [one.name for one in table.candidates]
    adapts = np.array([one.adapts for one in table.candidates])
    members = np.flatnonzero(weights)
    if not table.allowed.any():
        return weights, f"No candidate may be ranked, so {names[members[0]]} is used."
    decision = f"{len(members)} of {table.allowed.sum()} candidates vote"
    plain = np.where(adapts | ~table.allowed | np.isnan(combined), -np.inf, combined)
    if guard <= 0 or np.isneginf(plain).all() or not adapts[members].any():
        return weights, f"{decision}, led by {names[weights.argmax()]}."
    best = int(plain.argmax())
    lead = float(weights @ np.where(weights > 0, combined, 0.0)) - combined[best]
    if lead >= guard:
        return weights, f"{decision}: they lead the best unadapted one by {lead:.3f}."
    alone = np.zeros(len(weights))
    alone[best] = 1.0
    return alone, (
        f"No adaptation: {names[best]} is used, since the vote would lead it by {lead:.3f}, less "
        f"than the guard's {guard:.3f}."
    )


def _score_names(score_kind: ScoreKind) -> list[str]:
    if score_kind == "untrained":
        return list(UNTRAINED)
    return ["source CV"]


def _combine(table: ScoreTable, score_kind: ScoreKind) -> FloatArray:
    if score_kind == "untrained":
        return untrained_score(table)
    return table.scores.get("source CV", np.zeros(len(table.candidates)))


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
