"""Scores of predictions and how they are summed up: the paper's UAR, change, mean and error."""

from typing import Any

import numpy as np
from sklearn.metrics import recall_score

from covshift.kernels.arrays import FloatArray
from covshift.measures.trials import check_trial_labels, check_trial_values


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


def percentage_change(before: Any, after: Any) -> float | FloatArray:
    r"""Change in per cent of where it started: :math:`100 \, (after - before) / before`.

    Parameters
    ----------
    before, after : float or array-like
        Finite values without and with adaptation, of shapes that broadcast; ``before`` must
        not be zero.

    Returns
    -------
    change : float or ndarray
        A float if both are numbers.

    Notes
    -----
    The unbiased estimate of MMD² may be negative where two samples do not differ: ``after``
    can then fall below -100 %. With a negative ``before`` the sign of the change is
    reversed, and the percentage has no meaning.

    **Cost**: O(n) time and memory.

    Examples
    --------
    >>> from covshift.measures import percentage_change
    >>> percentage_change(0.5, 0.75)
    50.0
    >>> percentage_change([0.5, 0.25], [0.25, -0.0625])
    array([ -50., -125.])
    """
    before, after = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    for name, values in (("before", before), ("after", after)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must hold finite numbers: it has NaN or infinity.")
    if (before == 0).any():
        raise ValueError("before must not be zero: a change from zero has no percentage.")
    change: FloatArray = np.asarray(100.0 * (after - before) / before)
    return float(change) if change.ndim == 0 else change


def mean_and_standard_error(values: Any) -> tuple[float, float]:
    r"""Return the mean of independent values, and its standard error.

    .. math::

        \bar v = \frac{1}{n} \sum_i v_i, \qquad
        \text{SE} = \sqrt{\frac{1}{n (n - 1)} \sum_i (v_i - \bar v)^2}

    Parameters
    ----------
    values : array-like of shape (n,)
        Finite numbers, one per trial.

    Returns
    -------
    mean : float
        Mean.
    standard_error : float
        Standard error; NaN for a single value, which has no spread.

    Notes
    -----
    Trials that repeat a speaker or a site are not independent, and this error is too small
    for them: see `clustered_bootstrap_interval`.

    **Cost**: O(n) time and memory.

    Examples
    --------
    >>> from covshift.measures import mean_and_standard_error
    >>> mean_and_standard_error([1.0, 2.0, 3.0, 6.0])
    (3.0, 1.0801234497346435)
    """
    array = check_trial_values(values, "values")
    # NumPy warns of one value; NaN is the documented answer, not an accident.
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return float(array.mean()), float(error)
