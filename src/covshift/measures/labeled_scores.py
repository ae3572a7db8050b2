"""Scores of predictions whose truth is known, and how scores of trials are summed up.

First the paper's figures (unweighted average recall, change in percent, mean and standard error),
then predictions as a whole, per class and per domain, with intervals: classes, then numbers.
"""

from typing import Any

import numpy as np
from scipy.stats import binomtest, norm
from scipy.stats import t as student_t
from sklearn.metrics import recall_score

from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.feature_scales import feature_variances
from covshift.measures.paired_tests import (
    check_trial_labels,
    clustered_bootstrap_interval,
)


def unweighted_average_recall(y_true: Any, y_pred: Any) -> float:
    r"""Return the unweighted average recall (UAR): the mean recall over the true classes.

    .. math::

        \text{UAR} = \frac{1}{C} \sum_{c=1}^{C}
        \frac{\#\{i : y_i = c, \hat y_i = c\}}{\#\{i : y_i = c\}}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes, of any type that scikit-learn takes as labels.
    y_pred : array-like of shape (n_samples,)
        Predicted classes, of the same type.

    Returns
    -------
    uar : float
        Between 0 and 1; a constant prediction scores one over the number of classes.

    Notes
    -----
    The average runs over the classes present in ``y_true``. A class that is predicted but
    never true has no recall: its predictions count as errors of the true classes, and
    nothing else. Every class weighs the same, so neither side needs to be resampled.

    **Cost**: O(n log n) time and O(n) memory.

    References
    ----------
    B. Schuller, S. Steidl, A. Batliner, "The INTERSPEECH 2009 emotion challenge",
    Interspeech 2009.

    Examples
    --------
    >>> from covshift.measures import unweighted_average_recall
    >>> unweighted_average_recall(["joy", "joy", "joy", "anger"], ["joy", "joy", "fear", "anger"])
    0.8333333333333333
    """
    truth = check_trial_labels(y_true, "y_true")
    predicted = check_trial_labels(y_pred, "y_pred")
    # labels= keeps classes that are only predicted out of the average.
    return float(recall_score(truth, predicted, labels=np.unique(truth), average="macro"))


# --- How good predictions are where the truth is known: as a whole, per class, per domain ---
#
# Each figure comes with a 95 % interval for rows that are independent of each other. Shares
# (accuracy, recall) have Wilson's,
#
#     \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4n^2}}{1 + z^2 / n},
#
# balanced accuracy, the mean of C recalls r_c, has the one that recovers variances from the
# limits l_c, u_c of these (Zou and Donner),
#
#     \frac1C \sum_c r_c - \frac1C \sqrt{\sum_c (r_c - l_c)^2}, \qquad
#           \frac1C \sum_c r_c + \frac1C \sqrt{\sum_c (u_c - r_c)^2}.
#
# The gain of one model over another on the same rows is the mean of d_i, 1 where only the
# first is right, -1 where only the other is, else 0; in balanced accuracy it is the mean over the
# classes of the class means of d. Its interval is \pm z standard errors, with variance
# s^2 / n, or C^{-2} \sum_c s_c^2 / n_c; a class with one row counts with 1/4.
#
# Rows of one person or site are not independent, and their interval is too short; the mean over
# domains has one by the bootstrap over whole domains.
#
# References: E. B. Wilson (1927). Probable inference, the law of succession, and statistical
# inference. JASA 22, 209-212. G. Y. Zou, A. Donner (2008). Construction of confidence limits about
# effect measures: a general approach. Statistics in Medicine 27, 1693-1702.


CONFIDENCE = 0.95
MIN_DOMAINS = 4  # needed for an interval over domains


def score_predictions(y_true: Any, y_pred: Any, domain: Any = None) -> dict[str, Any]:
    """Score predicted classes where the labels are known: as a whole, by class and by domain.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Classes.
    domain : array-like of shape (n_rows,), default=None
        Name of each row's domain.

    Returns
    -------
    dict
        ``n_rows``; ``accuracy`` and ``balanced_accuracy``, each with ``value``, ``low``, ``high``;
        ``classes``: for each true class ``name``, ``n_rows``, ``n_predicted`` and ``recall``;
        ``domains``: for each ``name``, ``n_rows``, ``accuracy``, ``balanced_accuracy``; with four
        domains or more ``mean_over_domains``, of their accuracies.

    Examples
    --------
    >>> from covshift.measures.labeled_scores import score_predictions
    >>> scores = score_predictions(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    >>> scores["accuracy"]["value"], round(scores["balanced_accuracy"]["value"], 3)
    (0.75, 0.833)
    """
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    if truth.shape != predicted.shape or truth.ndim != 1 or not len(truth):
        raise ValueError(
            f"Expected as many predictions as labels, one at least: got {predicted.shape} and "
            f"{truth.shape}."
        )
    right = truth == predicted
    scores = _whole(truth, right)
    scores["classes"] = [
        {
            "name": name,
            "n_rows": int((truth == name).sum()),
            "n_predicted": int((predicted == name).sum()),
            "recall": _share(right[truth == name]),
        }
        for name in np.unique(truth).tolist()
    ]
    if domain is not None:
        domains = np.asarray(domain)
        names = np.unique(domains)
        scores["domains"] = [
            {"name": str(name), **_whole(truth[domains == name], right[domains == name])}
            for name in names
        ]
        if len(names) >= MIN_DOMAINS:
            low, high = clustered_bootstrap_interval(
                right.astype(float), domains, confidence=CONFIDENCE, random_state=0
            )
            means = [one["accuracy"]["value"] for one in scores["domains"]]
            scores["mean_over_domains"] = _figure(float(np.mean(means)), low, high)
    return scores


def paired_gain(y_true: Any, y_pred: Any, y_other: Any, objective: str) -> dict[str, float]:
    """Return how much better one model scores than another on the same labeled rows.

    Parameters
    ----------
    y_true, y_pred, y_other : array-like of shape (n_rows,)
        Classes: the truth, and the predictions of the two models.
    objective : {"accuracy", "balanced_accuracy"}
        Metric of the gain.

    Returns
    -------
    dict
        ``value``, and the 95 % interval ``low`` to ``high``.

    Examples
    --------
    >>> from covshift.measures.labeled_scores import paired_gain
    >>> truth, first, other = ["a", "a", "b", "b"], ["a", "a", "b", "a"], ["a", "b", "b", "a"]
    >>> gain = paired_gain(truth, first, other, "accuracy")
    >>> gain["value"], round(gain["low"], 2), round(gain["high"], 2)
    (0.25, -0.24, 0.74)
    """
    truth = np.asarray(y_true)
    gained = (truth == np.asarray(y_pred)).astype(float) - (truth == np.asarray(y_other))
    group = truth if objective == "balanced_accuracy" else np.zeros(len(truth))
    parts = [gained[group == one] for one in np.unique(group)]
    variances = [part.var(ddof=1) / len(part) if len(part) > 1 else 0.25 for part in parts]
    value = float(np.mean([part.mean() for part in parts]))
    half = float(norm.ppf((1 + CONFIDENCE) / 2) * np.sqrt(np.sum(variances)) / len(parts))
    return {"value": value, "low": max(-1.0, value - half), "high": min(1.0, value + half)}


def _whole(truth: Any, right: BoolArray) -> dict[str, Any]:
    return {
        "n_rows": len(right),
        "accuracy": _share(right),
        "balanced_accuracy": _balanced(truth, right),
    }


def _share(right: BoolArray) -> dict[str, float]:
    test = binomtest(int(right.sum()), len(right))
    interval = test.proportion_ci(confidence_level=CONFIDENCE, method="wilson")
    return _figure(float(right.mean()), interval.low, interval.high)


def _balanced(truth: Any, right: BoolArray) -> dict[str, float]:
    recalls = [_share(right[truth == name]) for name in np.unique(truth)]
    value = float(np.mean([one["value"] for one in recalls]))
    below = np.linalg.norm([one["value"] - one["low"] for one in recalls]) / len(recalls)
    above = np.linalg.norm([one["high"] - one["value"] for one in recalls]) / len(recalls)
    return _figure(value, value - float(below), value + float(above))


def _figure(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": float(low), "high": float(high)}


# --- How good predictions of numbers are where the truth is known: as a whole and per domain ---
#
# With errors e_i = y_i - \hat y_i, their mean square A = \overline{e^2} and the
# variance B = \overline{(y - \bar y)^2} of the truth,
#
#     R^2 = 1 - A / B, \qquad \text{MAE} = \overline{|e|}.
#
# R² is 1 for perfect predictions, 0 for those of the mean, and below zero for worse ones; where the
# truth does not vary it is undefined. Each figure has a 95 % interval of \pm t_{n-1} standard
# errors for rows that are independent of each other. A mean has the standard error
# s / \sqrt n; R² has that of its linearization (the delta method), the mean of
#
#     \psi_i = \frac{A - e_i^2}{B} + \frac{A}{B^2} \left((y_i - \bar y)^2 - B\right).
#
# The gain of one model over another on the same rows is the difference in R², or the mean of
# |e'_i| - |e_i|, by how much the error is smaller; its interval follows from the differences
# of \psi_i or of the errors, row by row.
#
# Rows of one person or site are not independent, and their interval is too short; the mean over
# domains has one by the bootstrap over whole domains.
#
# Reference: A. W. van der Vaart (1998). Asymptotic Statistics, chapter 3.


Figure = dict[str, float | None]


def score_numbers(y_true: Any, y_pred: Any, domain: Any = None) -> dict[str, Any]:
    """Score predicted numbers where the labels are known, as a whole and by domain.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Finite numbers.
    domain : array-like of shape (n_rows,), default=None
        Name of each row's domain.

    Returns
    -------
    dict
        ``n_rows``; ``r2`` and ``mae``, each with ``value``, ``low``, ``high`` (None where it is
        undefined); ``bias``, the mean of prediction less truth; ``spread``, the standard deviation
        of the truth; ``domains``: for each ``name`` and the same; with four domains or more
        ``mean_over_domains``, of their mean absolute errors.

    Notes
    -----
    **Cost**: O(n), and the bootstrap over domains.

    Examples
    --------
    >>> from covshift.measures.labeled_scores import score_numbers
    >>> scores = score_numbers([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.0, 3.5])
    >>> round(scores["r2"]["value"], 3), scores["mae"]["value"]
    (0.9, 0.25)
    """
    truth, predicted = _check_numbers(y_true, y_pred)
    scores = _whole_numbers(truth, predicted)
    if domain is not None:
        domains = np.asarray(domain)
        names = np.unique(domains)
        scores["domains"] = [
            {
                "name": str(name),
                **_whole_numbers(truth[domains == name], predicted[domains == name]),
            }
            for name in names
        ]
        if len(names) >= MIN_DOMAINS:
            low, high = clustered_bootstrap_interval(
                np.abs(truth - predicted), domains, confidence=CONFIDENCE, random_state=0
            )
            means = [one["mae"]["value"] for one in scores["domains"]]
            scores["mean_over_domains"] = _number_figure(float(np.mean(means)), low, high)
    return scores


def number_gain(y_true: Any, y_pred: Any, y_other: Any, objective: str) -> Figure:
    """Return how much better one model scores than another on the same rows labeled by numbers.

    Parameters
    ----------
    y_true, y_pred, y_other : array-like of shape (n_rows,)
        The truth, and the predictions of the two models.
    objective : {"r2", "mae"}
        Metric of the gain. It is positive where the first model is better: of "mae", by
        how much its mean absolute error is smaller.

    Returns
    -------
    dict
        ``value``, and the 95 % interval ``low`` to ``high``; None where undefined.

    Examples
    --------
    >>> from covshift.measures.labeled_scores import number_gain
    >>> number_gain([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [2.0, 2.0, 2.0], "mae")["value"]
    0.3333333333333333
    """
    truth, predicted = _check_numbers(y_true, y_pred)
    _, other = _check_numbers(y_true, y_other)
    if objective == "mae":
        return _mean_figure(np.abs(truth - other) - np.abs(truth - predicted))
    (first, parts), (second, other_parts) = (_r2(truth, one) for one in (predicted, other))
    if first is None or second is None or parts is None or other_parts is None:
        return _number_figure(None, None, None)
    half = _half(parts - other_parts)
    if half is None:
        return _number_figure(first - second, None, None)
    return _number_figure(first - second, first - second - half, first - second + half)


def _check_numbers(y_true: Any, y_pred: Any) -> tuple[FloatArray, FloatArray]:
    """Return truth and predictions as numbers, or say what is wrong with them."""
    truth, predicted = (np.asarray(one, dtype=np.float64) for one in (y_true, y_pred))
    if truth.shape != predicted.shape or truth.ndim != 1 or not len(truth):
        raise ValueError(
            f"Expected as many predictions as labels, one at least: got {predicted.shape} and "
            f"{truth.shape}."
        )
    if not (np.isfinite(truth).all() and np.isfinite(predicted).all()):
        raise ValueError("Labels and predictions must be finite numbers.")
    return truth, predicted


def _whole_numbers(truth: FloatArray, predicted: FloatArray) -> dict[str, Any]:
    value, parts = _r2(truth, predicted)
    half = None if parts is None else _half(parts)
    if value is None or half is None:
        r2 = _number_figure(value, None, None)
    else:
        r2 = _number_figure(value, value - half, min(1.0, value + half))
    mae = _mean_figure(np.abs(truth - predicted))
    if mae["low"] is not None:
        mae["low"] = max(0.0, mae["low"])
    bias, spread = float(np.mean(predicted - truth)), float(np.std(truth))
    return {"n_rows": len(truth), "r2": r2, "mae": mae, "bias": bias, "spread": spread}


def _r2(truth: FloatArray, predicted: FloatArray) -> tuple[float | None, FloatArray | None]:
    """Return R² and the terms psi of its linearization; None where the truth does not vary."""
    squares, from_mean = (truth - predicted) ** 2, (truth - truth.mean()) ** 2
    A, B = float(squares.mean()), float(from_mean.mean())
    # Rounding leaves a trace of variance in numbers that are all the same.
    trace = 1e-12 * max(1.0, float(np.abs(truth).max()))
    if trace**2 >= B:
        return None, None
    return 1 - A / B, (A - squares) / B + A / B**2 * (from_mean - B)


def _mean_figure(values: FloatArray) -> Figure:
    mean, half = float(values.mean()), _half(values)
    return _number_figure(mean, *((None, None) if half is None else (mean - half, mean + half)))


def _half(values: FloatArray) -> float | None:
    """Return half of the interval of a mean; None: a single value has none."""
    n = len(values)
    if n < 2:
        return None
    reach = student_t.ppf((1 + CONFIDENCE) / 2, n - 1)
    return float(reach * values.std(ddof=1) / np.sqrt(n))


def _number_figure(value: float | None, low: float | None, high: float | None) -> Figure:
    return {"value": value, "low": low, "high": high}


# --- Scores without checks, of class numbers and of numbers: those of objectives ---


def balanced_accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Mean recall over the classes present, as `unweighted_average_recall` without its checks."""
    counts = np.bincount(codes)
    hits = np.bincount(codes[codes == predicted], minlength=len(counts))
    return float(np.mean(hits[counts > 0] / counts[counts > 0]))


def accuracy(codes: IntArray, predicted: IntArray) -> float:
    """Return the share of the rows that are predicted right."""
    return float(np.mean(codes == predicted))


def r2(values: FloatArray, predicted: FloatArray) -> float:
    """Return coefficient of determination, as scikit-learn's ``r2_score`` without its checks."""
    error, spread = mean_squared_error(values, predicted), float(feature_variances(values))
    if spread > 0:
        return 1 - error / spread
    return 1.0 if error == 0 else 0.0


def negative_mae(values: FloatArray, predicted: FloatArray) -> float:
    """Return the mean absolute error with a minus sign, so that larger is better."""
    return -float(np.mean(np.abs(values - predicted)))


def mean_squared_error(values: FloatArray, predicted: FloatArray) -> float:
    """Return the mean squared error."""
    return float(np.mean((values - predicted) ** 2))
