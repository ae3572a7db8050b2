r"""How good predictions of numbers are where the truth is known: as a whole and per domain.

With errors :math:`e_i = y_i - \hat y_i`, their mean square :math:`A = \overline{e^2}` and the
variance :math:`B = \overline{(y - \bar y)^2}` of the truth,

.. math:: R^2 = 1 - A / B, \qquad \text{MAE} = \overline{|e|}.

R² is 1 for perfect predictions, 0 for those of the mean, and below zero for worse ones; where the
truth does not vary it is undefined. Each figure has a 95 % interval of :math:`\pm t_{n-1}` standard
errors for rows that are independent of each other. A mean has the standard error
:math:`s / \sqrt n`; R² has that of its linearization (the delta method), the mean of

.. math:: \psi_i = \frac{A - e_i^2}{B} + \frac{A}{B^2} \left((y_i - \bar y)^2 - B\right).

The gain of one model over another on the same rows is the difference in R², or the mean of
:math:`|e'_i| - |e_i|`, by how much the error is smaller; its interval follows from the differences
of :math:`\psi_i` or of the errors, row by row.

Rows of one person or site are not independent, and their interval is too short; the mean over
domains has one by the bootstrap over whole domains.

Reference: A. W. van der Vaart (1998). Asymptotic Statistics, chapter 3.
"""

from typing import Any

import numpy as np
from scipy.stats import t as student_t

from covshift.kernels.arrays import FloatArray
from covshift.measures.clustered import clustered_bootstrap_interval
from covshift.measures.prediction_scores import CONFIDENCE, MIN_DOMAINS

Figure = dict[str, float | None]


def score_numbers(y_true: Any, y_pred: Any, domain: Any = None) -> dict[str, Any]:
    """Score predicted numbers against the truth.

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
    >>> from covshift.measures.number_scores import score_numbers
    >>> scores = score_numbers([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.0, 3.5])
    >>> round(scores["r2"]["value"], 3), scores["mae"]["value"]
    (0.9, 0.25)
    """
    truth, predicted = check_numbers(y_true, y_pred)
    scores = _whole(truth, predicted)
    if domain is not None:
        domains = np.asarray(domain)
        names = np.unique(domains)
        scores["domains"] = [
            {"name": str(name), **_whole(truth[domains == name], predicted[domains == name])}
            for name in names
        ]
        if len(names) >= MIN_DOMAINS:
            low, high = clustered_bootstrap_interval(
                np.abs(truth - predicted), domains, confidence=CONFIDENCE, random_state=0
            )
            means = [one["mae"]["value"] for one in scores["domains"]]
            scores["mean_over_domains"] = _figure(float(np.mean(means)), low, high)
    return scores


def number_gain(y_true: Any, y_pred: Any, y_other: Any, objective: str) -> Figure:
    """Return how much better one model predicts numbers than another on the same rows.

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
    >>> from covshift.measures.number_scores import number_gain
    >>> number_gain([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [2.0, 2.0, 2.0], "mae")["value"]
    0.3333333333333333
    """
    truth, predicted = check_numbers(y_true, y_pred)
    _, other = check_numbers(y_true, y_other)
    if objective == "mae":
        return _mean_figure(np.abs(truth - other) - np.abs(truth - predicted))
    (first, parts), (second, other_parts) = (_r2(truth, one) for one in (predicted, other))
    if first is None or second is None or parts is None or other_parts is None:
        return _figure(None, None, None)
    half = _half(parts - other_parts)
    if half is None:
        return _figure(first - second, None, None)
    return _figure(first - second, first - second - half, first - second + half)


def check_numbers(y_true: Any, y_pred: Any) -> tuple[FloatArray, FloatArray]:
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


def _whole(truth: FloatArray, predicted: FloatArray) -> dict[str, Any]:
    value, parts = _r2(truth, predicted)
    half = None if parts is None else _half(parts)
    if value is None or half is None:
        r2 = _figure(value, None, None)
    else:
        r2 = _figure(value, value - half, min(1.0, value + half))
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
    return _figure(mean, *((None, None) if half is None else (mean - half, mean + half)))


def _half(values: FloatArray) -> float | None:
    """Return half of the interval of a mean; None: a single value has none."""
    n = len(values)
    if n < 2:
        return None
    reach = student_t.ppf((1 + CONFIDENCE) / 2, n - 1)
    return float(reach * values.std(ddof=1) / np.sqrt(n))


def _figure(value: float | None, low: float | None, high: float | None) -> Figure:
    return {"value": value, "low": low, "high": high}
