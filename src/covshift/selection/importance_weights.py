r"""Shifts that weighing the source rows would explain, and how much they leave unexplained.

Two explanations move no row, they only make some rows more frequent:

- **class shares**: the target is the source with other shares of the classes. The shares are
  estimated by expectation and maximization (`covshift.kernels.probabilities`) from the calibrated
  probabilities of the first unadapted candidate. Of a number, the classes are groups by its
  quantiles, and their probabilities those of a normal distribution about the prediction, as wide as
  the errors on left-out source rows;
- **weights**: the target is the source weighed by a function of the features
  (`covshift.weights.ClassifierWeights`).

A classifier measures the shift that an explanation leaves. It separates source rows, drawn by the
weights, from target rows: an AUC of .5 leaves nothing. Where class shares leave little, adapters
that make domains alike are the wrong cure: they undo a difference that should be there. No data
can prove it: a movement of the rows may look the same.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.array_types import FloatArray
from covshift.kernels.probabilities import shares_from_probabilities
from covshift.measures import classifier_two_sample_test
from covshift.selection.bench import MIN_ROLE_ROWS, Bench
from covshift.selection.label_tasks import NumberTask
from covshift.warning_filters import ignored_warnings
from covshift.weights import ClassifierWeights, UnreliableWeightsWarning


def class_share_weights(bench: Bench) -> FloatArray:
    """Importance weight of each source row: its class's share in the target over the source's.

    The target's shares are estimated.

    NaN where no unadapted candidate could be fitted.
    """
    problem = bench.problem
    n_rows, n_classes = len(problem.codes), problem.n_classes
    left_out = bench.outputs_left_out()
    for number, one in enumerate(bench.candidates):
        on_source, on_target = left_out[number], bench.target[number].logits
        if not one.adapts and on_source is not None and on_target is not None:
            shares = np.bincount(problem.codes, minlength=n_classes) / n_rows
            present = shares > 0
            P = _class_probabilities(bench, number, on_source, on_target)[:, present]
            ratios = np.zeros(n_classes)
            ratios[present] = shares_from_probabilities(P, shares[present]) / shares[present]
            weights: FloatArray = ratios[problem.codes]
            return weights
    return np.full(n_rows, np.nan)


def _class_probabilities(
    bench: Bench, number: int, on_source: FloatArray, on_target: FloatArray
) -> FloatArray:
    """Return the probabilities of the classes of target rows, or of the groups of a number."""
    task = bench.task
    if not isinstance(task, NumberTask):
        return task.apply(on_target, bench.scalings[number])
    errors = bench.problem.truth - task.apply(on_source)[:, 0]
    deviation = float(np.sqrt(np.mean(errors**2)))
    return task.group_probabilities(task.apply(on_target)[:, 0], deviation)


def importance_weights(bench: Bench) -> FloatArray:
    """Importance weights: how much more often rows like a source row are found in the target.

    NaN: too few rows.
    """
    problem = bench.problem
    if min(len(problem.X_source), len(problem.X_target)) < MIN_ROLE_ROWS:
        return np.full(len(problem.X_source), np.nan)
    domain = np.concatenate([np.zeros(len(problem.X_source)), np.full(len(problem.X_target), -1.0)])
    estimator = ClassifierWeights(random_state=bench.rng("weights"))
    # These scores are known to suffer where few rows carry the weight.
    with ignored_warnings(UnreliableWeightsWarning, ConvergenceWarning):
        estimator.fit(np.concatenate([problem.X_source, problem.X_target]), sample_domain=domain)
    weights: FloatArray = estimator.weights_
    return weights


def left_unexplained(bench: Bench, weights: FloatArray) -> float:
    """Return what importance weights leave unexplained: the AUC of source and target, or NaN."""
    X, X_target = bench.problem.X_source, bench.problem.X_target
    if not weights.sum() > 0 or min(len(X), len(X_target)) < MIN_ROLE_ROWS:
        return np.nan
    rng = bench.rng("left unexplained")
    drawn = rng.choice(len(X), size=len(X), p=weights / weights.sum())
    test = classifier_two_sample_test(X[drawn], X_target, random_state=rng, n_importance_repeats=0)
    return float(test.statistic)
