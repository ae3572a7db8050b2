"""What "good" means: scores of predicted class numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from covshift.kernels.arrays import IntArray
from covshift.selection.bench import Metric


def balanced_accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Mean recall over the classes present, as `unweighted_average_recall` without its checks."""
    counts = np.bincount(codes)
    hits = np.bincount(codes[codes == predicted], minlength=len(counts))
    return float(np.mean(hits[counts > 0] / counts[counts > 0]))


def accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Share of the rows that are predicted right."""
    return float(np.mean(codes == predicted))


def macro_f1(codes: IntArray, predicted: IntArray) -> float:
    """Mean F1 over the classes present or predicted."""
    return float(f1_score(codes, predicted, average="macro"))


METRICS: dict[str, Metric] = {
    "balanced_accuracy": balanced_accuracy,
    "accuracy": accuracy,
    "f1_macro": macro_f1,
}


def resolve_metric(scoring: Any, classes: Any) -> Metric:
    """The metric of this name, or a user's function of labels as one of class numbers."""
    if callable(scoring):
        return _of_numbers(scoring, classes)
    if isinstance(scoring, str) and scoring in METRICS:
        return METRICS[scoring]
    raise ValueError(
        f"scoring must be one of {', '.join(map(repr, METRICS))} or a function of true and "
        f"predicted labels, got {scoring!r}."
    )


def _of_numbers(function: Callable[[Any, Any], float], classes: Any) -> Metric:
    labels = np.asarray(classes)
    return lambda codes, predicted: float(function(labels[codes], labels[predicted]))
