r"""Objectives of models, and how the probabilities of a classifier become classes.

Let :math:`p_k(x)` be the probability of class k, made for rows with class shares :math:`\pi_k`. The
class with the largest :math:`p_k(x)` maximizes the expected accuracy. The class with the largest
:math:`p_k(x) / \pi_k` maximizes the expected balanced accuracy, the mean of the recalls: a row of
class k adds :math:`1 / (K n \pi_k)` to that mean if it is predicted correctly.
"""

from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray

ACCURACY, BALANCED_ACCURACY = OBJECTIVES = ("accuracy", "balanced_accuracy")
# Of a number as label.
R2, MAE = REGRESSION_OBJECTIVES = ("r2", "mae")
WORDS = {
    ACCURACY: "accuracy, the share of rows predicted correctly",
    BALANCED_ACCURACY: "balanced accuracy, the mean of the recalls of the classes",
    R2: "R², the share of the label's variance that predictions explain",
    MAE: "mean absolute error, in units of the label",
}
# As in a table's heading or within a sentence.
NAMES = {
    ACCURACY: "accuracy",
    BALANCED_ACCURACY: "balanced accuracy",
    R2: "R²",
    MAE: "mean absolute error",
}
# A class with less than this part of an equal share makes the two objectives differ visibly.
UNBALANCED = 0.5


def decide_classes(P: FloatArray, objective: Any, shares: FloatArray) -> IntArray:
    """Return the class numbers (n,) of rows with probabilities P (n, K) made for ``shares`` (K,).

    Any objective but "balanced_accuracy", a user's function included, takes the most probable
    class.
    """
    if is_balanced(objective):
        P = np.divide(P, shares, out=np.zeros_like(P), where=shares > 0)
    decided: IntArray = P.argmax(axis=1)
    return decided


def is_balanced(objective: Any) -> bool:
    """Return whether the objective is balanced accuracy; a user's function is not."""
    return isinstance(objective, str) and objective == BALANCED_ACCURACY


def describe_objective(objective: Any) -> str | None:
    """Return the name of an objective; None: the estimator decides in its own way."""
    if objective is None or isinstance(objective, str):
        return objective
    return getattr(objective, "__name__", "a function")


def class_shares(codes: IntArray, n_classes: int, weights: FloatArray | None = None) -> FloatArray:
    """Return the shares (K,) of classes among rows, by number or by weight."""
    counts = np.bincount(codes, weights=weights, minlength=n_classes)
    shares: FloatArray = counts / counts.sum()
    return shares


def is_unbalanced(shares: FloatArray) -> bool:
    """Return whether a class has less than half of an equal share."""
    return bool(np.min(shares) < UNBALANCED / len(shares))
