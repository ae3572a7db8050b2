r"""Score candidates where source rows play the target, so that their labels are known.

Four kinds of rehearsal, each with an assumption of its own:

==============  ==================================================================================
source CV       source rows left out: the target is like the source
moved           half of the source, moved by the shift seen in the rows (mean and covariance;
                quantiles): the target is the source, moved
class shares    half of the source, its classes drawn with the shares estimated for the target:
                only class proportions differ
source domains  one source domain at a time: the next shift is like those between source domains
==============  ==================================================================================

The score is the mean probability of the true class, which is the accuracy of a prediction drawn
from the probabilities. It ranks candidates by fewer rows than the share of correct predictions
does, because a row near the boundary counts for a part. For balanced accuracy, probabilities are
those for equal class proportions, and classes weigh the same. Probabilities are calibrated on
source rows left out (`covshift.kernels.vector_scaling`).

Where the label is a number, its shares are those of groups between its quantiles ("label shares"),
and the score is that of `covshift.selection.label_tasks`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.selection.bench import Bench
from covshift.selection.explanations import class_share_weights
from covshift.selection.pseudo_targets import (
    PseudoTarget,
    move_gaussian,
    move_quantiles,
    moved,
    resampled,
    source_domains,
)

SOURCE_CV, MOVED = "source CV", "moved"
CLASS_SHARES, SOURCE_DOMAINS = "class shares", "source domains"
LABEL_SHARES = "label shares"  # what class shares are of a number: those of its quantile groups
KINDS = (SOURCE_CV, MOVED, CLASS_SHARES, SOURCE_DOMAINS)
NUMBER_KINDS = (SOURCE_CV, MOVED, LABEL_SHARES, SOURCE_DOMAINS)

# Of probabilities (n, K) and class numbers (n,), or of predictions (n, 1) and numbers (n,).
Credit = Callable[[FloatArray, Any], float]


def rehearse(bench: Bench, kind: str, credit: Credit | None = None) -> FloatArray:
    """Return the mean score of each candidate over the rehearsals of a kind; NaN: none could run.

    Parameters
    ----------
    bench : Bench
        Candidates and rows.
    kind : {"source CV", "moved", "class shares", "label shares", "source domains"}
        See the module.
    credit : callable, default=None
        Score of probabilities and true class numbers. None: `mean_probability`.
    """
    credit = credit or mean_probability(bench)
    if kind == SOURCE_CV:
        return _score(bench.probabilities_left_out(), bench.problem.truth, credit)
    played = dict(pseudo_targets(bench, kind))
    outputs = bench.run({name: one.scene for name, one in played.items()})
    scores = [
        _score(bench.calibrated(outputs[name]), one.truth, credit) for name, one in played.items()
    ]
    return np.mean(scores, axis=0) if scores else np.full(len(bench.candidates), np.nan)


def pseudo_targets(bench: Bench, kind: str) -> Iterator[tuple[str, PseudoTarget]]:
    """Names and scenes of a kind. One half is moved in each way: both would cost twice as much."""
    problem = bench.problem
    if kind == MOVED:
        for name, move, half in (
            ("moved: Gaussian", move_gaussian, 0),
            ("moved: quantiles", move_quantiles, 1),
        ):
            for one in moved(problem, bench.rng(name), move, halves=(half,)):
                yield f"{name} {half}", one
        return
    if kind in (CLASS_SHARES, LABEL_SHARES):
        name, weights = "resampled: class shares", class_share_weights(bench)
        played = resampled(problem, bench.rng(name), weights)
    else:
        name = "source domains"
        played = source_domains(problem, bench.rng(name))
    for number, one in enumerate(played):
        yield f"{name} {number}", one


def _score(P: list[FloatArray | None], truth: Any, credit: Credit) -> FloatArray:
    return np.array([np.nan if one is None else credit(one, truth) for one in P])


def mean_probability(bench: Bench) -> Credit:
    """Return the score of the bench's objective that ranks: see `covshift.selection.label_tasks`.

    A user's own metric is taken of the predicted labels.
    """
    shares = bench.problem.class_shares
    return lambda P, truth: bench.task.credit(P, truth, bench.metric, shares)


def predicted_score(bench: Bench) -> Credit:
    """Return the score of predicted labels: the bench's metric."""
    return lambda P, truth: bench.metric(truth, decide(bench, P))


def decide(bench: Bench, P: FloatArray) -> Any:
    """Return the class numbers (n,) that the bench's objective chooses for probabilities (n, K).

    Where the label is a number: the predictions.
    """
    return bench.task.decide(P, bench.metric, bench.problem.class_shares)


def kinds_of(bench: Bench) -> tuple[str, ...]:
    """Return the kinds of rehearsals of a bench, by what its label is."""
    return KINDS if bench.problem.values is None else NUMBER_KINDS
