r"""Accuracy on unlabelled rows, from labelled ones by weights or from calibrated confidence.

With y the class of source row i and f the predicted class of a row, the share of target rows that
are of class k and found (:math:`A_k`), and the share of class k (:math:`B_k`), are estimated

.. math::

    \text{weights:} \quad A_k &= \sum_i w_i [y_i = k][f_i = k], \qquad
        B_k = \sum_i w_i [y_i = k], \qquad \sum_i w_i = 1; \\
    \text{confidence:} \quad A_k &= \tfrac{1}{n'} \sum_{i \in \text{target}} p_{ik} [f_i = k]
        + \tfrac{1}{n} \sum_{i \in \text{source}} ([y_i = k] - p_{ik}) [f_i = k],

and :math:`B_k` of the latter likewise without :math:`[f_i = k]`: calibrated probabilities of the
target rows, corrected by what they miss on the source. Accuracy is :math:`\sum_k A_k`, balanced
accuracy the mean of the recalls :math:`r_k = A_k / B_k` over the classes expected to be there, that
is, :math:`n' B_k \ge 1`.

The variances are those of the accuracy found on :math:`n'` target rows: squared influences of the
source rows (:math:`\sum_i (w_i (h_i - \theta))^2` for the weighted mean of hits h, and likewise for
the others; the infinitesimal jackknife, what a bootstrap over source rows tends to), and the noise
of the labels of the target rows, :math:`\theta (1 - \theta) / n'`.

References
----------
M. Sugiyama, M. Krauledat, K.-R. Müller, "Covariate shift adaptation by importance weighted cross
validation", JMLR 8, 2007. D. Guillory, V. Shankar, S. Ebrahimi, T. Darrell, L. Schmidt,
"Predicting with confidence on unseen distributions", ICCV 2021 (difference of confidences).
"""

from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


class Scores(NamedTuple):
    """Accuracy and balanced accuracy with their variances; NaN, if no class is expected."""

    accuracy: float
    variance: float
    balanced_accuracy: float
    balanced_variance: float


def weighted_scores(
    codes: IntArray, predicted: IntArray, weights: FloatArray, n_classes: int, n_target: int
) -> Scores:
    """Scores by weights (n,) of source rows with classes (n,) and predicted classes (n,)."""
    w = (weights / weights.sum())[:, None]
    of_class = np.eye(n_classes)[codes]
    found = of_class * (codes == predicted)[:, None]
    A, B = (w * found).sum(axis=0), (w * of_class).sum(axis=0)
    return _scores(A, B, w * found, w * of_class, w[:, 0], codes, weights, n_target)


def confident_scores(
    codes: IntArray,
    P: FloatArray,
    predicted: IntArray,
    P_target: FloatArray,
    target_predicted: IntArray,
) -> Scores:
    """Scores by calibrated probabilities P (n, K) of source rows and (n', K) of target rows."""
    n, n_classes = P.shape
    says, says_target = np.eye(n_classes)[predicted], np.eye(n_classes)[target_predicted]
    missed = (np.eye(n_classes)[codes] - P) / n
    missed_found = missed * says
    A = (P_target * says_target).mean(axis=0) + missed_found.sum(axis=0)
    B = P_target.mean(axis=0) + missed.sum(axis=0)
    # Means of the source enter as sums of these: what is left are influences.
    centred, centred_found = missed - missed.mean(axis=0), missed_found - missed_found.mean(axis=0)
    nothing = np.zeros(n)
    return _scores(A, B, centred_found, centred, nothing, codes, np.ones(n), len(P_target))


def _scores(
    A: FloatArray,
    B: FloatArray,
    A_rows: FloatArray,
    B_rows: FloatArray,
    w: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_target: int,
) -> Scores:
    """Scores of A, B (K,), from what source rows add to them (n, K) and their shares w (n,)."""
    sizes = _effective_sizes(codes, weights, len(A))
    size = float(weights.sum() ** 2 / np.square(weights).sum())
    accuracy = float(np.clip(A.sum(), 0, 1))
    influence = A_rows.sum(axis=1) - w * accuracy
    # No interval is narrower than if one row more were missed.
    variance = max(float(influence @ influence), 1 / size**2) + _label_noise(accuracy, n_target)
    there = n_target * B >= 1
    if not there.any():
        return Scores(accuracy, variance, np.nan, np.nan)
    n_there = int(there.sum())
    recalls = np.clip(A[there] / B[there], 0, 1)
    influence = ((A_rows[:, there] - recalls * B_rows[:, there]) / B[there]).mean(axis=1)
    floor = float(np.sum(1 / np.maximum(sizes[there], 1) ** 2)) / n_there**2
    noise = sum(_label_noise(r, n_target * b) for r, b in zip(recalls, B[there], strict=True))
    balanced_variance = max(float(influence @ influence), floor) + noise / n_there**2
    return Scores(accuracy, variance, float(recalls.mean()), balanced_variance)


def _label_noise(share: float, n_rows: float) -> float:
    """Variance of the share of n rows; never 0, as if one row more were found and one missed."""
    smoothed = (share * n_rows + 1) / (n_rows + 2)
    return float(smoothed * (1 - smoothed) / n_rows)


def _effective_sizes(codes: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
    """Rows of each class (K,), if they had equal weights and were worth as much."""
    sums = np.bincount(codes, weights=weights, minlength=n_classes)
    squares = np.bincount(codes, weights=np.square(weights), minlength=n_classes)
    sizes: FloatArray = np.divide(sums**2, squares, out=np.zeros(n_classes), where=squares > 0)
    return sizes
