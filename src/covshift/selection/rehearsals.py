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
"""

from collections.abc import Callable, Iterator

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.predictors.objective import decide_classes
from covshift.selection.bench import Bench
from covshift.selection.explanations import class_share_weights
from covshift.selection.metrics import METRICS, accuracy, balanced_accuracy
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
KINDS = (SOURCE_CV, MOVED, CLASS_SHARES, SOURCE_DOMAINS)

Credit = Callable[[FloatArray, IntArray], float]  # of probabilities (n, K) and class numbers (n,)


def rehearse(bench: Bench, kind: str, credit: Credit | None = None) -> FloatArray:
    """Return the mean score of each candidate over the rehearsals of a kind; NaN: none could run.

    Parameters
    ----------
    bench : Bench
        Candidates and rows.
    kind : {"source CV", "moved", "class shares", "source domains"}
        See the module.
    credit : callable, default=None
        Score of probabilities and true class numbers. None: `mean_probability`.
    """
    credit = credit or mean_probability(bench)
    if kind == SOURCE_CV:
        return _score(bench.probabilities_left_out(), bench.problem.codes, credit)
    played = dict(pseudo_targets(bench, kind))
    outputs = bench.run({name: one.scene for name, one in played.items()})
    scores = [
        _score(bench.calibrated(outputs[name]), one.codes, credit) for name, one in played.items()
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
    if kind == CLASS_SHARES:
        name, weights = "resampled: class shares", class_share_weights(bench)
        played = resampled(problem, bench.rng(name), weights)
    else:
        name = "source domains"
        played = source_domains(problem, bench.rng(name))
    for number, one in enumerate(played):
        yield f"{name} {number}", one


def _score(P: list[FloatArray | None], codes: IntArray, credit: Credit) -> FloatArray:
    return np.array([np.nan if one is None else credit(one, codes) for one in P])


def mean_probability(bench: Bench) -> Credit:
    """Return the score of the bench's objective: the mean probability of the true class.

    A user's own metric is taken of the predicted classes.
    """
    if bench.metric is accuracy:
        return lambda P, codes: float(P[np.arange(len(codes)), codes].mean())
    if bench.metric is not balanced_accuracy:
        return predicted_score(bench)
    shares = bench.problem.class_shares

    def credit(P: FloatArray, codes: IntArray) -> float:
        balanced = np.divide(P, shares, out=np.zeros_like(P), where=shares > 0)
        totals = np.maximum(balanced.sum(axis=1), np.finfo(np.float64).tiny)
        of_true = balanced[np.arange(len(codes)), codes] / totals
        counts = np.bincount(codes)
        return float(np.mean(np.bincount(codes, of_true)[counts > 0] / counts[counts > 0]))

    return credit


def predicted_score(bench: Bench) -> Credit:
    """Return the score of predicted classes: the bench's metric."""
    return lambda P, codes: bench.metric(codes, decide(bench, P))


def decide(bench: Bench, P: FloatArray) -> IntArray:
    """Return the class numbers (n,) that the bench's objective chooses for probabilities (n, K)."""
    names = [name for name, metric in METRICS.items() if metric is bench.metric]
    return decide_classes(P, names[0] if names else None, bench.problem.class_shares)
