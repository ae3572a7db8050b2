r"""Accuracy of a classifier on target rows without labels, estimated from its probabilities.

Let :math:`p_{ik}` be the probability of class k for row i and :math:`f_i` the predicted class. The
estimates differ in what they take over from source rows to target rows, and each is right only
where its assumption holds:

====================================  ==========================================================
`average_thresholded_confidence`      rows above a threshold of confidence are right (ATC)
`difference_of_confidences`           probabilities are as wrong on the target as on the source
`calibrated_confidence`               the given probabilities are calibrated on the target (CBPE)
`importance_weighted_calibration`     P(y | x) is the same, weights make the source like the target
`accuracy_under_class_shares`         P(x | y) is the same, class shares differ (LEAP)
`transported_confidence`              class shares are the same (COT)
====================================  ==========================================================

Probabilities of source rows must come from models that were not fitted to these rows; else every
estimate is too high.

Balanced accuracy needs two shares for each class k: :math:`A_k`, of target rows that are of class k
and predicted correctly, and :math:`B_k`, of target rows of class k. Accuracy is :math:`\sum_k A_k`,
balanced accuracy the mean of the recalls :math:`A_k / B_k` over the classes expected to be there,
that is, :math:`n' B_k \ge 1` among :math:`n'` target rows.
"""

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import entr
from sklearn.utils import check_array, check_random_state

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.probabilities import (
    fit_scaling,
    scaled_probabilities,
    shares_from_probabilities,
)
from covshift.measures.sample_checks import check_weights
from covshift.row_checks import check_rows
from covshift.shared_docs import documented_like

Metric: TypeAlias = Literal["accuracy", "balanced_accuracy"]
Confidence: TypeAlias = Literal["max_confidence", "negative_entropy"]

SUM_TOLERANCE = 0.01  # of a row's sum of probabilities, which files round
SMALLEST_PROBABILITY = 1e-13  # has a finite logarithm


def average_thresholded_confidence(
    P_source: Any,
    y_source: Any,
    P_target: Any,
    *,
    score: Confidence = "max_confidence",
    predicted_source: Any = None,
) -> float:
    r"""Return the accuracy estimate ATC: the share of target rows above a confidence threshold.

    .. math::

        \text{accuracy} = \frac{1}{n'} \sum_{i \in \text{target}} [s(p_i) \ge t], \qquad
        t: \; \sum_{i \in \text{source}} [s(p_i) < t] = \sum_{i \in \text{source}} [f_i \ne y_i]

    with the score :math:`s(p) = \max_k p_k` or :math:`s(p) = \sum_k p_k \log p_k`.

    **Assumption**: the share of rows below the threshold is the error rate, on the target as on the
    source. Probabilities need not be calibrated. It fails where the classifier is sure and wrong.

    Parameters
    ----------
    P_source : array-like of shape (n_source, n_classes)
        Probabilities of held-out source rows.
    y_source : array-like of int, shape (n_source,)
        Classes of these rows, as column numbers of ``P_source``.
    P_target : array-like of shape (n_target, n_classes)
        Probabilities of target rows.
    score : {"max_confidence", "negative_entropy"}, default="max_confidence"
        Score of a row.
    predicted_source : array-like of int, shape (n_source,), default=None
        Predicted classes. None: the most probable ones.

    Returns
    -------
    accuracy : float
        Between 0 and 1.

    Notes
    -----
    The threshold is one of the source's scores, or infinite; with tied scores, the one with the
    closest number of rows below it.

    **Cost**: O(n K + n log n) time and O(n K) memory.

    References
    ----------
    S. Garg, S. Balakrishnan, Z. C. Lipton, B. Neyshabur, H. Sedghi (2022). Leveraging unlabeled
    data to predict out-of-distribution performance. ICLR.

    Examples
    --------
    >>> from covshift.measures import average_thresholded_confidence
    >>> P_source = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]  # the last row is wrong
    >>> average_thresholded_confidence(P_source, [0, 1, 0, 0], [[0.8, 0.2], [0.35, 0.65]])
    0.5
    """
    source, codes, target = _check_both(P_source, y_source, P_target)
    if score not in get_args(Confidence):
        raise ValueError(f"score must be one of {get_args(Confidence)}, got {score!r}.")
    predicted = _check_predicted(predicted_source, source, "predicted_source")
    scores, target_scores = _confidence(source, score), _confidence(target, score)
    # Rows below each candidate: as many as come before its first place among the sorted scores.
    candidates, n_below = np.unique(np.sort(scores), return_index=True)
    candidates, n_below = np.append(candidates, np.inf), np.append(n_below, len(scores))
    n_errors = int(np.sum(predicted != codes))
    threshold = candidates[np.abs(n_below - n_errors).argmin()]
    return float(np.mean(target_scores >= threshold))


@documented_like(average_thresholded_confidence)
def difference_of_confidences(
    P_source: Any,
    y_source: Any,
    P_target: Any,
    *,
    metric: Metric = "accuracy",
    predicted_source: Any = None,
    predicted_target: Any = None,
) -> float:
    r"""Return the accuracy estimate DoC: that of the source plus the change of mean confidence.

    .. math::

        A_k &= \frac{1}{n'} \sum_{i \in \text{target}} p_{ik} [f_i = k]
            + \frac{1}{n} \sum_{i \in \text{source}} ([y_i = k] - p_{ik}) [f_i = k], \\
        B_k &= \frac{1}{n'} \sum_{i \in \text{target}} p_{ik}
            + \frac{1}{n} \sum_{i \in \text{source}} ([y_i = k] - p_{ik})

    The accuracy :math:`\sum_k A_k` is the accuracy on the source, plus the mean confidence
    :math:`p_{i f_i}` of the target rows, less that of the source rows. The balanced accuracy is the
    mean of :math:`A_k / B_k`, which corrects each class in the same way.

    **Assumption**: mean confidence is as far above the accuracy (of each predicted class) on the
    target as on the source.

    Parameters
    ----------
    metric : {"accuracy", "balanced_accuracy"}, default="accuracy"
        Score to estimate.
    predicted_source, predicted_target : array-like of int, default=None
        Predicted classes. None: the most probable ones.

    Returns
    -------
    score : float
        Between 0 and 1; estimates outside are clipped.

    Notes
    -----
    Guillory et al. estimate the accuracy, and also regress it on the difference over known shifts;
    this is the difference itself.

    **Cost**: O(n K) time and memory.

    References
    ----------
    D. Guillory, V. Shankar, S. Ebrahimi, T. Darrell, L. Schmidt (2021). Predicting with confidence
    on unseen distributions. ICCV.

    Examples
    --------
    >>> from covshift.measures import difference_of_confidences
    >>> P_source = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]  # the last row is wrong
    >>> round(difference_of_confidences(P_source, [0, 1, 0, 0], [[0.8, 0.2], [0.4, 0.6]]), 3)
    0.7
    """
    source, codes, target = _check_both(P_source, y_source, P_target)
    _check_metric(metric)
    predicted = _check_predicted(predicted_source, source, "predicted_source")
    target_predicted = _check_predicted(predicted_target, target, "predicted_target")
    A, B = _corrected_shares(codes, source, predicted, target, target_predicted)
    return _score(A, B, len(target), metric)


@documented_like(difference_of_confidences)
def calibrated_confidence(
    P_target: Any, *, metric: Metric = "accuracy", predicted_target: Any = None
) -> float:
    r"""Return the accuracy estimate CBPE, by the confusion matrix of calibrated probabilities.

    .. math::

        A_k = \frac{1}{n'} \sum_i p_{ik} [f_i = k], \qquad B_k = \frac{1}{n'} \sum_i p_{ik}

    The accuracy :math:`\sum_k A_k` is the mean confidence :math:`p_{i f_i}`, the balanced accuracy
    the mean of the expected recalls :math:`A_k / B_k`.

    **Assumption**: the probabilities are calibrated on the target: of the rows with probability p
    of a class, a share p is of that class.

    Parameters
    ----------
    P_target : array-like of shape (n_target, n_classes)
        Calibrated probabilities of target rows.
    predicted_target : array-like of int, shape (n_target,), default=None
        Predicted classes. None: the most probable ones.

    Returns
    -------
    score : float
        Between 0 and 1.

    Notes
    -----
    Classes of which less than one row is expected do not count in the balanced accuracy; where
    there are only such classes, the most expected one counts.

    **Cost**: O(n K) time and memory.

    References
    ----------
    J. Kivimäki, J. Białek, J. K. Nurminen, W. Kuberski (2024). Confidence-based estimators for
    predictive performance in model monitoring. arXiv:2407.08649.

    Examples
    --------
    >>> from covshift.measures import calibrated_confidence
    >>> P_target = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]]
    >>> round(calibrated_confidence(P_target), 3)
    0.75
    >>> round(calibrated_confidence(P_target, metric="balanced_accuracy"), 3)
    0.753
    """
    target = _check_probabilities(P_target, "P_target")
    _check_metric(metric)
    predicted = _check_predicted(predicted_target, target, "predicted_target")
    return _score(*_expected_shares(target, predicted), len(target), metric)


@documented_like(calibrated_confidence, average_thresholded_confidence)
def importance_weighted_calibration(
    P_source: Any,
    y_source: Any,
    P_target: Any,
    weights: Any,
    *,
    metric: Metric = "accuracy",
    predicted_target: Any = None,
) -> float:
    r"""Return the accuracy estimate PAPE, by probabilities calibrated on weighted source rows.

    .. math::

        q_{ik} \propto p_{ik}^a \, e^{b_k}, \qquad
        \min_{a > 0,\, b} \; - \frac{\sum_i w_i \log q_{i y_i}}{\sum_i w_i}
        + \text{a small penalty}

    over source rows with weights :math:`w_i = p_\text{target}(x_i) / p_\text{source}(x_i)`; the
    score is that of `calibrated_confidence` with :math:`q` of the target rows. Predictions stay
    those of :math:`p`.

    **Assumption**: P(y | x) is the same in source and target, and the weights are the ratio of
    their densities. It fails where the target has rows unlike any source row.

    Parameters
    ----------
    weights : array-like of shape (n_source,)
        Density ratios at the source rows, as of `covshift.weights`; their scale does not matter.
        Ones give plain calibration on the source.
    predicted_target : array-like of int, shape (n_target,), default=None
        Predicted classes. None: the most probable ones of ``P_target``.

    Notes
    -----
    Białek et al. calibrate by a weighted regression on the score of two classes. This is
    bias-corrected temperature scaling, which needs few rows and takes any number of classes.

    **Cost**: O(n K) time for each of some dozen steps of L-BFGS, and O(n K) memory.

    References
    ----------
    J. Białek, J. Kivimäki, W. Kuberski, N. Perrakis (2025). Estimating model performance under
    covariate shift without labels. NeurIPS.

    A. Alexandari, A. Kundaje, A. Shrikumar (2020). Maximum likelihood with bias-corrected
    calibration is hard-to-beat at label shift adaptation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import importance_weighted_calibration
    >>> P = np.tile([[0.9, 0.1], [0.1, 0.9]], (100, 1))
    >>> y = np.tile([0, 1, 0, 1, 1, 0], 34)[:200]  # one in three is wrong
    >>> round(importance_weighted_calibration(P, y, P, np.ones(200)), 1)  # mean confidence: .9
    0.7
    """
    source, codes, target = _check_both(P_source, y_source, P_target)
    _check_metric(metric)
    checked = check_weights(weights, len(source))
    predicted = _check_predicted(predicted_target, target, "predicted_target")
    logs, target_logs = (np.log(np.maximum(P, SMALLEST_PROBABILITY)) for P in (source, target))
    # Relative to the largest, so that no sum overflows.
    scaling = fit_scaling(logs, codes, checked / checked.max())
    calibrated = scaled_probabilities(target_logs, scaling)
    return _score(*_expected_shares(calibrated, predicted), len(target), metric)


@documented_like(calibrated_confidence, average_thresholded_confidence)
def accuracy_under_class_shares(
    P_source: Any,
    y_source: Any,
    P_target: Any,
    *,
    class_shares: Any = None,
    metric: Metric = "accuracy",
    predicted_source: Any = None,
) -> float:
    r"""Return an accuracy estimate: source recalls, weighed by the class shares of the target.

    .. math::

        \text{accuracy} = \sum_k \pi'_k r_k, \qquad
        r_k = \frac{\sum_i [y_i = k][f_i = k]}{\sum_i [y_i = k]} \text{ on the source}

    with class shares :math:`\pi'` of the target. Balanced accuracy is the mean of :math:`r_k` over
    the classes expected in the target.

    **Assumption**: P(x | y) is the same in source and target, only class shares differ. Shares
    estimated from probabilities need these to be calibrated on the source.

    Parameters
    ----------
    class_shares : array-like of shape (n_classes,), default=None
        Class shares of the target. None: estimated by expectation and maximization from
        ``P_target``, over the classes that the source has.

    Notes
    -----
    The contingency table is the one that LEAP solves for: rows of each true class are distributed
    over predicted classes as on the source, and their sums are the estimated class shares.

    **Cost**: O(n K) time for each step of expectation and maximization, and O(n K) memory.

    References
    ----------
    L. Volpi, A. Moreo, F. Sebastiani (2025). LEAP: Linear equations for classifier accuracy
    prediction under prior probability shift.

    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a classifier to new a
    priori probabilities: a simple procedure. Neural Computation 14(1), 21-41.

    Examples
    --------
    >>> from covshift.measures import accuracy_under_class_shares
    >>> P = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.1, 0.9]]
    >>> y = [0, 0, 1, 1]  # recalls 1 and .5
    >>> round(accuracy_under_class_shares(P, y, P, class_shares=[0.2, 0.8]), 3)
    0.6
    """
    source, codes, target = _check_both(P_source, y_source, P_target)
    _check_metric(metric)
    predicted = _check_predicted(predicted_source, source, "predicted_source")
    n_classes = source.shape[1]
    counts = np.bincount(codes, minlength=n_classes)
    hits = np.bincount(codes[codes == predicted], minlength=n_classes)
    recalls = hits / np.maximum(counts, 1)
    if class_shares is None:
        shares = _estimate_present_shares(target, counts)
    else:
        shares = _check_shares(class_shares, counts)
    return _score(shares * recalls, shares, len(target), metric)


@documented_like(average_thresholded_confidence)
def transported_confidence(
    y_source: Any, P_target: Any, *, max_rows: int = 1000, random_state: Any = 0
) -> float:
    r"""Return the accuracy estimate COT, by transport of target probabilities to source labels.

    .. math::

        \text{accuracy} = 1 - \min_{T \ge 0} \sum_{i, k} T_{ik} \,
        \tfrac12 \lVert p_i - e_k \rVert_1, \qquad
        \sum_k T_{ik} = \frac{1}{n'}, \quad \sum_i T_{ik} = \pi_k

    with the class shares :math:`\pi` of the source and the one-hot labels :math:`e_k`; a pair costs
    :math:`1 - p_{ik}`.

    **Assumption**: the target has the class shares of the source. Then a classifier that predicts a
    class too often is detected, however sure it is; other mistakes are not.

    Parameters
    ----------
    y_source : array-like of int, shape (n_source,)
        Classes of source rows, as column numbers of ``P_target``.
    max_rows : int, default=1000
        Of more target rows, this many are drawn without replacement.
    random_state : int, RandomState or None, default=0
        Of the draw.

    Returns
    -------
    accuracy : float
        Between 0 and 1, and at most the mean confidence (`calibrated_confidence`).

    Notes
    -----
    The dual linear program, solved by HiGHS's interior point method:
    :math:`\max_{u, v} \frac{1}{n'} \sum_i u_i + \sum_k \pi_k v_k` with
    :math:`u_i + v_k \le 1 - p_{ik}`. With more than two classes it is much faster than the program
    over T.

    **Cost**: some tens of milliseconds for 1,000 rows and 5 classes; O(n K) memory, with n at most
    ``max_rows``.

    References
    ----------
    Y. Lu, Y. Qin, R. Zhai, A. Shen, K. Chen, Z. Wang, S. Kolouri, S. Stepputtis, J. Campbell,
    K. Sycara (2023). Characterizing out-of-distribution error via optimal transport. NeurIPS.

    Examples
    --------
    >>> from covshift.measures import transported_confidence
    >>> P_target = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]
    >>> round(transported_confidence([0, 1, 0, 1], P_target), 3)  # two rows must be of class 1
    0.6
    """
    target = _check_probabilities(P_target, "P_target")
    codes = _check_codes(y_source, None, target.shape[1], "y_source")
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"max_rows must be a positive integer, got {max_rows!r}.")
    if len(target) > max_rows:
        rng = check_random_state(random_state)
        target = target[rng.choice(len(target), size=max_rows, replace=False)]
    n, n_classes = target.shape
    shares = np.bincount(codes, minlength=n_classes) / len(codes)
    rows = sparse.kron(sparse.eye_array(n), np.ones((n_classes, 1)))
    classes = sparse.kron(np.ones((n, 1)), sparse.eye_array(n_classes))
    solution = linprog(
        -np.concatenate([np.ones(n), n * shares]),
        A_ub=sparse.hstack([rows, classes], format="csr"),
        b_ub=1 - target.ravel(),
        bounds=(None, None),
        method="highs-ipm",
    )
    if solution.x is None:
        raise RuntimeError(f"The optimal transport was not found: {solution.message}")
    return float(np.clip(1 + solution.fun / n, 0, 1))


def _check_probabilities(P: Any, name: str) -> FloatArray:
    """Return probabilities as an array (n, K) of rows that sum to 1, of two classes or more."""
    array: FloatArray = check_rows(
        P, dtype=np.float64, order="C", input_name=name, estimator=f"this measure ({name})"
    )
    if array.shape[1] < 2:
        raise ValueError(f"{name} must have a column for each of two classes or more, got 1.")
    if (array < 0).any():
        raise ValueError(f"{name} must hold probabilities: it has negative entries.")
    sums = array.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(wrong):
        raise ValueError(
            f"The rows of {name} must sum to 1: {len(wrong)} of {len(sums)} do not (row {wrong[0]} "
            f"sums to {sums[wrong[0]]:.4g}). Pass the output of predict_proba."
        )
    return array


def _check_codes(codes: Any, n_rows: int | None, n_classes: int, name: str) -> IntArray:
    """Return class numbers as an array (n,) of columns of a matrix with n_classes columns."""
    array = np.asarray(codes)
    if array.ndim != 1 or len(array) == 0 or n_rows not in (None, len(array)):
        expected = "a positive number of rows" if n_rows is None else f"shape ({n_rows},)"
        raise ValueError(
            f"{name} must hold one class number per row: expected {expected}, got shape "
            f"{array.shape}."
        )
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold class numbers of type int, got {array.dtype}: for labels y of a "
            f"fitted classifier, pass np.searchsorted(classifier.classes_, y)."
        )
    if array.min() < 0 or array.max() >= n_classes:
        outside = array.min() if array.min() < 0 else array.max()
        raise ValueError(
            f"{name} must hold column numbers of the probabilities, 0 to {n_classes - 1}, got "
            f"{outside}."
        )
    numbers: IntArray = array.astype(np.int64)
    return numbers


def _check_both(P_source: Any, y_source: Any, P_target: Any) -> tuple[FloatArray, IntArray, Any]:
    """Return checked probabilities and class numbers of the source, probabilities of the target."""
    source = _check_probabilities(P_source, "P_source")
    target = _check_probabilities(P_target, "P_target")
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"P_source and P_target must have the same classes, got {source.shape[1]} and "
            f"{target.shape[1]} columns."
        )
    return source, _check_codes(y_source, len(source), source.shape[1], "y_source"), target


def _check_predicted(predicted: Any, P: FloatArray, name: str) -> IntArray:
    """Return predicted class numbers (n,): those given, else the most probable ones."""
    if predicted is None:
        most_probable: IntArray = P.argmax(axis=1)
        return most_probable
    return _check_codes(predicted, len(P), P.shape[1], name)


def _check_metric(metric: str) -> None:
    if metric not in get_args(Metric):
        raise ValueError(f"metric must be one of {get_args(Metric)}, got {metric!r}.")


def _check_shares(class_shares: Any, counts: IntArray) -> FloatArray:
    """Return class shares of the target (K,), zero for classes without source rows."""
    shares: FloatArray = check_array(
        class_shares, dtype=np.float64, ensure_2d=False, input_name="class_shares"
    )
    if shares.shape != counts.shape:
        raise ValueError(
            f"class_shares must hold one number per class: expected shape {counts.shape}, got "
            f"{shares.shape}."
        )
    if (shares < 0).any() or abs(shares.sum() - 1) > SUM_TOLERANCE:
        raise ValueError("class_shares must not be negative and must sum to 1.")
    unknown = np.flatnonzero((shares > 0) & (counts == 0))
    if len(unknown):
        raise ValueError(
            f"Class {unknown[0]} has a positive share but no source row: its recall cannot be "
            f"estimated. Set its share to 0, or add source rows of this class."
        )
    return shares


def _estimate_present_shares(P: FloatArray, counts: IntArray) -> FloatArray:
    """Return the class shares (K,) of the rows of P (n, K), over the classes with source rows."""
    present = counts > 0
    source_shares = counts[present] / counts.sum()
    P_present = P[:, present]
    # A row with no probability for any known class cannot contribute to their shares.
    P_present = P_present[P_present.sum(axis=1) > 0]
    shares = np.zeros(len(counts))
    shares[present] = (
        shares_from_probabilities(P_present, source_shares) if len(P_present) else source_shares
    )
    return shares


def _confidence(P: FloatArray, score: Confidence) -> FloatArray:
    """Score (n,) of each row of P (n, K)."""
    if score == "max_confidence":
        largest: FloatArray = P.max(axis=1)
        return largest
    # Sorted: the same probabilities in another order must not differ by rounding.
    negative: FloatArray = -entr(np.sort(P, axis=1)).sum(axis=1)
    return negative


def _expected_shares(P: FloatArray, predicted: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return shares A (K,) of rows of each class and predicted so, B (K,) of rows of each class."""
    return (P * np.eye(P.shape[1])[predicted]).mean(axis=0), P.mean(axis=0)


def _corrected_shares(
    codes: IntArray,
    P: FloatArray,
    predicted: IntArray,
    P_target: FloatArray,
    target_predicted: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Shares A, B (K,) of target rows by probabilities, plus what these miss on the source."""
    A, B = _expected_shares(P_target, target_predicted)
    missed = np.eye(P.shape[1])[codes] - P  # of its class, by each row (n, K)
    missed_found = missed * np.eye(P.shape[1])[predicted]
    return A + missed_found.mean(axis=0), B + missed.mean(axis=0)


def _score(A: FloatArray, B: FloatArray, n_target: int, metric: Metric) -> float:
    """Return the accuracy or balanced accuracy of shares A, B (K,), clipped to 0 to 1."""
    if metric == "accuracy":
        return float(np.clip(A.sum(), 0, 1))
    there = n_target * B >= 1  # a row of the class is expected
    if not there.any():  # more classes than rows: the most expected ones are better than none
        there = B.max() == B
    return float(np.clip(A[there] / B[there], 0, 1).mean())
