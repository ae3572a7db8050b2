r"""How good predictions are where the truth is known: as a whole, per class, per domain.

Each figure comes with a 95 % interval for rows that are independent of each other. Shares
(accuracy, recall) have Wilson's,

.. math:: \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4n^2}}{1 + z^2 / n},

balanced accuracy, the mean of C recalls :math:`r_c`, has the one that recovers variances from the
limits :math:`l_c, u_c` of these (Zou and Donner),

.. math:: \frac1C \sum_c r_c - \frac1C \sqrt{\sum_c (r_c - l_c)^2}, \qquad
          \frac1C \sum_c r_c + \frac1C \sqrt{\sum_c (u_c - r_c)^2}.

The gain of one model over another on the same rows is the mean of :math:`d_i`, 1 where only the
first is right, -1 where only the other is, else 0; in balanced accuracy it is the mean over the
classes of the class means of d. Its interval is :math:`\pm z` standard errors, with variance
:math:`s^2 / n`, or :math:`C^{-2} \sum_c s_c^2 / n_c`; a class with one row counts with 1/4.

Rows of one person or site are not independent, and their interval is too short; the mean over
domains has one by the bootstrap over whole domains.

References: E. B. Wilson (1927). Probable inference, the law of succession, and statistical
inference. JASA 22, 209-212. G. Y. Zou, A. Donner (2008). Construction of confidence limits about
effect measures: a general approach. Statistics in Medicine 27, 1693-1702.
"""

from typing import Any

import numpy as np
from scipy.stats import binomtest, norm

from covshift.kernels.arrays import BoolArray
from covshift.measures.clustered import clustered_bootstrap_interval

CONFIDENCE = 0.95
MIN_DOMAINS = 4  # needed for an interval over domains


def score_predictions(y_true: Any, y_pred: Any, domain: Any = None) -> dict[str, Any]:
    """Score predictions against the truth.

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
    >>> from covshift.measures.prediction_scores import score_predictions
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
    """Return how much better one model is than another on the same rows.

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
    >>> from covshift.measures.prediction_scores import paired_gain
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
