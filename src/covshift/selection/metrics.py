"""What "good" means: scores of predicted class numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.predictors.objective import ACCURACY, BALANCED_ACCURACY
from covshift.selection.bench import Metric


def balanced_accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Mean recall over the classes present, as `unweighted_average_recall` without its checks."""
    counts = np.bincount(codes)
    hits = np.bincount(codes[codes == predicted], minlength=len(counts))
    return float(np.mean(hits[counts > 0] / counts[counts > 0]))


def accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Share of the rows that are predicted right."""
    return float(np.mean(codes == predicted))


METRICS: dict[str, Metric] = {
    ACCURACY: accuracy,
    BALANCED_ACCURACY: balanced_accuracy,
}


def resolve_metric(objective: Any, classes: Any) -> Metric:
    """Return the metric of an objective; a user's function of labels is one of class numbers."""
    if callable(objective):
        return _of_numbers(objective, classes)
    if isinstance(objective, str) and objective in METRICS:
        return METRICS[objective]
    raise ValueError(
        f"objective must be one of {', '.join(map(repr, METRICS))} or a function of true and "
        f"predicted labels, got {objective!r}."
    )


def _of_numbers(function: Callable[[Any, Any], float], classes: Any) -> Metric:
    labels = np.asarray(classes)
    return lambda codes, predicted: float(function(labels[codes], labels[predicted]))
