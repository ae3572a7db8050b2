r"""Two-sample Kolmogorov-Smirnov statistic of every feature at once.

.. math:: D_j = \sup_x \lvert \hat P_{A,j}(x) - \hat P_{B,j}(x) \rvert, \qquad
          \hat P_{A,j}(x) = \frac{\sum_i w_i [A_{ij} \le x]}{\sum_i w_i}

with :math:`\hat P` the empirical distribution functions of the columns of A and B; without
weights every :math:`w_i` is one.

Between two neighboring values of B only :math:`\hat P_A` moves, and only upwards. So
:math:`\hat P_A - \hat P_B` is largest just before a value of B, :math:`\hat P_B - \hat P_A` at a
value of B, and the sorted values of the smaller sample are the only places to look.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


def ks_statistics(
    A: FloatArray,
    B: FloatArray,
    weights_A: FloatArray | None = None,
    weights_B: FloatArray | None = None,
) -> FloatArray:
    """D_j for each of the L columns of A (n, L) and B (k, L), shape (L,)."""
    if len(A) < len(B):
        A, B, weights_A, weights_B = B, A, weights_B, weights_A
    if weights_A is None and weights_B is None:
        return _counted(A, B)
    weights_A = np.ones(len(A)) if weights_A is None else _in_safe_range(weights_A)
    weights_B = np.ones(len(B)) if weights_B is None else _in_safe_range(weights_B)
    return _weighted(A, B, weights_A, weights_B)


def mean_ks_distance(A: FloatArray, B: FloatArray) -> float:
    """Return mean of D_j over the features: the distance that the paper watches to stop early."""
    return float(ks_statistics(A, B).mean())


def effective_sizes(A: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Numbers of equally weighted rows whose P would vary as much, one per column, shape (L,).

    .. math:: n_j = \frac{1}{4 \max_x V_j(x)}, \qquad
              V_j(x) = \frac{\sum_i w_i^2 ([A_{ij} \le x] - \hat P_j(x))^2}{(\sum_i w_i)^2}

    Without weights the largest variance of P is 1 / (4 n). At the median V is the sum of squared
    shares over 4, so that n_j is at most Kish's size; it is less where large weights go with large
    (or small) values, as importance weights do.
    """
    order: IntArray = np.argsort(A.T, axis=1)
    values = np.take_along_axis(A.T, order, axis=1)
    scaled = _in_safe_range(weights)
    share = (scaled / scaled.sum())[order]
    P, squares = np.cumsum(share, axis=1), np.cumsum(share**2, axis=1)
    kish = squares[:, -1:]
    # Rows up to x contribute w^2 (1 - P)^2 and all others w^2 P^2.
    V = squares * (1 - 2 * P) + kish * P**2
    V[:, :-1][values[:, 1:] == values[:, :-1]] = 0  # only the last of tied rows has passed the jump
    sizes: FloatArray = 1 / np.maximum(4 * V, kish).max(axis=1)
    return sizes


def _counted(A: FloatArray, B: FloatArray) -> FloatArray:
    """D_j in whole numbers, n k D_j, divided at the end: equal steps cancel exactly."""
    n, k = len(A), len(B)
    below_B = n * np.arange(k)  # n times the number of rows of B before each of them
    largest = np.empty(A.shape[1], dtype=np.int64)
    # One feature after the other, contiguous in memory: a sort along columns is far slower.
    for j, (a, b) in enumerate(zip(np.sort(A.T, axis=1), np.sort(B.T, axis=1), strict=True)):
        up_to = np.searchsorted(a, b, side="right")
        gap = k * up_to - below_B
        tied = (a[up_to - 1] == b).any()
        before = k * np.searchsorted(a, b) - below_B if tied else gap
        largest[j] = max(n - gap.min(), before.max())
    return largest / (n * k)


def _weighted(
    A: FloatArray, B: FloatArray, weights_A: FloatArray, weights_B: FloatArray
) -> FloatArray:
    """D_j from running sums of the weights."""
    largest = np.empty(A.shape[1])
    orders: tuple[IntArray, IntArray] = np.argsort(A.T, axis=1), np.argsort(B.T, axis=1)
    for j, (order_a, order_b) in enumerate(zip(*orders, strict=True)):
        a, b = A[order_a, j], B[order_b, j]
        sum_a = np.concatenate([[0.0], np.cumsum(weights_A[order_a])])
        sum_b = np.concatenate([[0.0], np.cumsum(weights_B[order_b])])
        # Multiplied crosswise and divided at the end: whole-number weights cancel exactly.
        at = sum_b[1:] * sum_a[-1] - sum_a[np.searchsorted(a, b, side="right")] * sum_b[-1]
        before = sum_a[np.searchsorted(a, b)] * sum_b[-1] - sum_b[:-1] * sum_a[-1]
        largest[j] = max(at.max(), before.max()) / (sum_a[-1] * sum_b[-1])
    return largest


def _in_safe_range(weights: FloatArray) -> FloatArray:
    """Return the weights times the power of two that brings the largest near one.

    No product of their sums overflows then, and powers of two keep whole numbers exact.
    """
    scaled: FloatArray = np.ldexp(weights, -np.frexp(weights.max())[1])
    return scaled
