"""The simplest model of the family that labels come from, for each synthetic data set.

Fitted to the source labels alone, it shows the value of knowing the family without
adaptation. Where it does as well as an adapter, the family helps, not the adaptation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from covshift.datasets import ShiftedData
from covshift.kernels.arrays import BoolArray, FloatArray

# Candidates of the sine: from a period wider than the source to one of a few rows.
FREQUENCIES = np.linspace(0.1, 4.0, 391)
PHASES = np.linspace(0, 2 * np.pi, 64, endpoint=False)


def family_accuracy(data_set: str, data: ShiftedData) -> float:
    """Return the accuracy on the test rows of the simplest model of the data set's family."""
    predict = FAMILIES[data_set](data.X_source, np.asarray(data.y_source, dtype=bool))
    return float(np.mean(predict(data.X_test) == np.asarray(data.y_test, dtype=bool)))


def fit_cone(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x1| > a |x2|`` with the best a."""

    def angle(rows: FloatArray) -> FloatArray:  # grows with |x1| / |x2|, and is always finite
        return np.arctan2(np.abs(rows[:, 0]), np.abs(rows[:, 1]))

    threshold = best_threshold(angle(X), y)
    return lambda rows: angle(rows) > threshold


def fit_sine(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``sin(w x_j + p) > 0`` with the best feature, frequency and phase."""
    best: tuple[float, Any] = (-1.0, None)
    for feature in range(X.shape[1]):
        for frequency in FREQUENCIES:
            angles = frequency * X[:, feature, None] + PHASES
            accuracy = ((np.sin(angles) > 0) == y[:, None]).mean(axis=0)
            phase = int(accuracy.argmax())
            if accuracy[phase] > best[0]:
                best = float(accuracy[phase]), (feature, frequency, PHASES[phase])
    feature, frequency, phase = best[1]
    return lambda rows: np.sin(frequency * rows[:, feature] + phase) > 0


def fit_quadratic(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """Logistic regression on the features, their squares and products."""
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(X, y)
    return lambda rows: model.predict(rows).astype(bool)


def fit_band(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x_j| > a`` with the best feature and a."""
    candidates = [(best_threshold(np.abs(X[:, j]), y), j) for j in range(X.shape[1])]
    threshold, feature = max(
        candidates, key=lambda candidate: np.mean((np.abs(X[:, candidate[1]]) > candidate[0]) == y)
    )
    return lambda rows: np.abs(rows[:, feature]) > threshold


def best_threshold(values: FloatArray, y: BoolArray) -> float:
    """Return the threshold above which calling rows positive gives the most accurate labels.

    Halfway between two values that are there; -inf where all rows are best called positive, the
    largest value where none is.
    """
    levels, level = np.unique(values, return_inverse=True)  # equal values cannot be parted
    positives = np.bincount(level[y], minlength=len(levels))
    negatives = np.bincount(level[~y], minlength=len(levels))
    # Correct when rows up to the k-th level are called negative, for every k; less a constant.
    gain = np.concatenate([[0], np.cumsum(negatives - positives)])
    k = int(gain.argmax())
    if k == 0:
        return -np.inf
    return float(levels[k - 1] if k == len(levels) else levels[k - 1 : k + 1].mean())


FAMILIES: dict[str, Callable[[FloatArray, BoolArray], Callable[[FloatArray], BoolArray]]] = {
    "radial": fit_cone,
    "periodic": fit_sine,
    "smooth": fit_quadratic,
    "diagonal": fit_band,
}
FAMILY_NAMES: dict[str, str] = {
    "radial": "|x1| > a |x2|",
    "periodic": "one sine of one feature",
    "smooth": "quadratic logistic regression",
    "diagonal": "|x_j| > a",
}
