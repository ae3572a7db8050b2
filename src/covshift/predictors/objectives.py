r"""Objectives of models, their metrics, and how the probabilities of a classifier become classes.

Let :math:`p_k(x)` be the probability of class k, made for rows with class shares :math:`\pi_k`. The
class with the largest :math:`p_k(x)` maximizes the expected accuracy. The class with the largest
:math:`p_k(x) / \pi_k` maximizes the expected balanced accuracy, the mean of the recalls: a row of
class k adds :math:`1 / (K n \pi_k)` to that mean if it is predicted correctly.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.measures.labeled_scores import accuracy, balanced_accuracy, negative_mae, r2

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


def decide_classes(P: FloatArray, objective: Any, shares: FloatArray) -> IntArray:
    """Decide for an objective the class numbers (n,) of rows with probabilities P (n, K).

    P is made for ``shares`` (K,).

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


def name_objective(objective: Any) -> str:
    """Return what an objective is called in a sentence."""
    name = str(describe_objective(objective))
    return NAMES.get(name, name)


# --- Metrics: scores of predicted class numbers, and of predicted numbers ---


# Of true and predicted class numbers, or of true and predicted numbers; larger is better.
Metric: TypeAlias = Callable[[Any, Any], float]


METRICS: dict[str, Metric] = {
    ACCURACY: accuracy,
    BALANCED_ACCURACY: balanced_accuracy,
}
NUMBER_METRICS: dict[str, Metric] = {R2: r2, MAE: negative_mae}


def metric_of_objective(objective: Any, classes: Any) -> Metric:
    """Return the metric of an objective; a user's function of labels is one of class numbers."""
    if callable(objective):
        return _of_numbers(objective, classes)
    if isinstance(objective, str) and objective in METRICS:
        return METRICS[objective]
    raise ValueError(
        f"objective must be one of {', '.join(map(repr, METRICS))} or a function of true and "
        f"predicted labels, got {objective!r}."
    )


def number_metric_of_objective(
    objective: Any, restore: Callable[[FloatArray], FloatArray]
) -> Metric:
    """Return the metric of an objective for numbers in units of the source.

    Parameters
    ----------
    objective : {"r2", "mae"}, str, scorer or callable
        A name of scikit-learn's scorers, or one of these; or a function of true and predicted
        labels, where larger is better. A scorer must need only ``predict``.
    restore : callable
        Brings labels back to their own units, in which a scorer sees them.
    """
    if isinstance(objective, str) and objective in NUMBER_METRICS:
        return NUMBER_METRICS[objective]
    named = objective
    if isinstance(objective, str) and objective in get_scorer_names():
        objective = get_scorer(objective)
    if not callable(objective):
        raise ValueError(
            f"objective must be one of {', '.join(map(repr, NUMBER_METRICS))}, a scorer of "
            f"scikit-learn, or a function of true and predicted labels, got {objective!r}."
        )
    if hasattr(objective, "_score_func"):  # scikit-learn's scorers: of a model, rows and labels

        def score(values: FloatArray, predicted: FloatArray) -> float:
            rows = restore(predicted)[:, None]
            try:
                return float(objective(_Given(), rows, restore(values)))
            except (AttributeError, ValueError) as error:
                raise ValueError(
                    f"objective={named!r} cannot score predicted numbers: {error}"
                ) from error

        return score
    return lambda values, predicted: float(objective(restore(values), restore(predicted)))


class _Given(RegressorMixin, BaseEstimator):
    """A fitted model whose prediction of a row is its only feature."""

    def fit(self, X: Any, y: Any) -> "_Given":
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0]


def _of_numbers(function: Callable[[Any, Any], float], classes: Any) -> Metric:
    labels = np.asarray(classes)
    return lambda codes, predicted: float(function(labels[codes], labels[predicted]))
