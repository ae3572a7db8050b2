r"""Kernel mean matching (KMM), with its kernel matrix applied in tiles.

.. math::

    \min_w \; \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
    \quad \text{subject to} \quad 0 \le w_i \le B, \quad
    \Bigl| \frac1{n_s} \sum_i w_i - 1 \Bigr| \le \epsilon,

    K_{ii'} = k(x_i, x_{i'}), \qquad \kappa_i = \frac{n_s}{n_t} \sum_j k(x_i, x_j),

i over source rows, j over target rows. Accelerated projected gradient steps with restarts; each
costs one product with K.

At the optimum, with :math:`\nu` the multiplier of the mean,

.. math:: w_i = \min(B, \max(0, (\kappa_i - (K w)_i - \nu) / \rho)),

which defines the weight of any other row too.

References
----------
J. Huang, A. Gretton, K. Borgwardt, B. Schölkopf, A. Smola, "Correcting sample selection bias by
unlabeled data", NIPS 2006.

B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient schemes", Foundations of
Computational Mathematics 15, 2015.
"""

from collections.abc import Callable

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.mmd import TILE_ROWS, squared_distances

# Up to so many rows K is kept (200 MB); above, its tiles are computed for every product, which
# takes twenty times as long.
KEPT_ROWS = 5000


def kernel_sums(
    rows: FloatArray, others: FloatArray, bandwidth: float, factors: FloatArray | None = None
) -> FloatArray:
    r""":math:`\sum_j k(x, x_j) f_j` of rows (n, d) over others (k, d), in tiles.

    All :math:`f_j` are one if ``factors`` is None.
    """
    rows, others = _scaled(rows, others, bandwidth)
    factors = np.ones(len(others)) if factors is None else factors
    sums = np.zeros(len(rows))
    for row in range(0, len(rows), TILE_ROWS):
        tile = slice(row, row + TILE_ROWS)
        for column in range(0, len(others), TILE_ROWS):
            part = slice(column, column + TILE_ROWS)
            sums[tile] += _kernel(rows[tile], others[part]) @ factors[part]
    return sums


def kernel_product(rows: FloatArray, bandwidth: float) -> Callable[[FloatArray], FloatArray]:
    """Return the function that multiplies a vector (n,) by the kernel matrix of rows (n, d)."""
    rows, _ = _scaled(rows, rows, bandwidth)
    if len(rows) <= KEPT_ROWS:
        K = _kernel(rows, rows)
        return lambda w: K @ w

    def product(w: FloatArray) -> FloatArray:
        sums = np.zeros(len(rows))
        for row in range(0, len(rows), TILE_ROWS):
            tile = slice(row, row + TILE_ROWS)
            for column in range(row, len(rows), TILE_ROWS):
                part = slice(column, column + TILE_ROWS)
                values = _kernel(rows[tile], rows[part])
                sums[tile] += values @ w[part]
                if column > row:  # the tile across the diagonal is its transpose
                    sums[part] += w[tile] @ values
        return sums

    return product


def _scaled(
    rows: FloatArray, others: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    """Both around zero and in units in which the kernel is exp of minus the squared distance."""
    centre = others.mean(axis=0)
    unit = np.sqrt(2) * bandwidth
    return (rows - centre) / unit, (others - centre) / unit


def _kernel(A: FloatArray, B: FloatArray) -> FloatArray:
    values = squared_distances(A, B)
    np.negative(values, out=values)
    return np.exp(values, out=values)


def project(v: FloatArray, bound: float, epsilon: float) -> FloatArray:
    r"""Nearest point to v (n,) with :math:`0 \le w \le B` and :math:`|\bar w - 1| \le \epsilon`."""
    return clip_to_mean(v, np.ones(len(v)), bound, epsilon)[0]


def clip_to_mean(
    scores: FloatArray, diagonal: FloatArray, bound: float, epsilon: float
) -> tuple[FloatArray, float]:
    r"""Maximise :math:`\sum_i s_i w_i - \tfrac12 a_i w_i^2`, scores s (n,) and diagonal a (n,) > 0.

    Subject to :math:`0 \le w_i \le B` and :math:`|\bar w - 1| \le \epsilon`. Returns
    :math:`w_i = \min(B, \max(0, (s_i - \nu) / a_i))` and :math:`\nu`, which is zero if the mean
    is inside its limits.
    """
    w: FloatArray = np.clip(scores / diagonal, 0, bound)
    mean = float(w.mean())
    if abs(mean - 1) <= epsilon:
        return w, 0.0
    goal = 1 + epsilon if mean > 1 else 1 - epsilon
    # The mean falls with the shift: bisection, then the exact shift for the entries that are
    # then free.
    low, high = float((scores - bound * diagonal).min()), float(scores.max())
    for _ in range(60):
        shift = (low + high) / 2
        if np.clip((scores - shift) / diagonal, 0, bound).mean() > goal:
            low = shift
        else:
            high = shift
    shift = (low + high) / 2
    free = (scores > shift) & (scores < shift + bound * diagonal)
    if free.any():
        at_bound = bound * np.count_nonzero(scores >= shift + bound * diagonal)
        total = float((scores[free] / diagonal[free]).sum()) + at_bound
        shift = (total - goal * len(scores)) / float((1 / diagonal[free]).sum())
    clipped: FloatArray = np.clip((scores - shift) / diagonal, 0, bound)
    return clipped, float(shift)


def match_means(
    product: Callable[[FloatArray], FloatArray],
    kappa: FloatArray,
    *,
    ridge: float,
    bound: float,
    epsilon: float,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float]:
    r"""Minimise; return w (n,), K w (n,) and a bound on how far the objective is above its optimum.

    Stops when that bound is at most ``tol`` times the objective's size. The bound is the smaller
    of :math:`\lVert G \rVert^2 / (2 \rho)`, with G the projected gradient, and of the decrease
    that the linear model of the objective promises anywhere in the feasible set.
    """
    n = len(kappa)
    ones: FloatArray = np.ones(n)
    # No eigenvalue of a matrix of positive entries is larger than its largest row sum.
    w, product_w = ones, product(ones)
    largest = float(product_w.max()) + ridge
    previous, product_previous, momentum, gap = w, product_w, 1.0, np.inf
    for _ in range(max_iter):
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / faster
        y = w + push * (w - previous)
        gradient = product_w + push * (product_w - product_previous) + ridge * y - kappa
        new = project(y - gradient / largest, bound, epsilon)
        step = y - new
        previous, product_previous = w, product_w
        w, product_w = new, product(new)
        # Restart when the momentum points uphill.
        momentum = 1.0 if float(step @ (w - previous)) > 0 else faster
        objective = float(w @ (product_w + ridge * w)) / 2 - float(kappa @ w)
        gap = _linear_gap(w, product_w + ridge * w - kappa, bound, epsilon)
        if ridge > 0:
            gap = min(gap, float(np.square(largest * step).sum()) / (2 * ridge))
        if gap <= tol * abs(objective):
            break
    return w, product_w, gap


def mean_multiplier(
    w: FloatArray, product_w: FloatArray, kappa: FloatArray, ridge: float, bound: float
) -> float:
    r"""The multiplier :math:`\nu`, from the entries at neither bound."""
    free = (w > 0) & (w < bound)
    residual = kappa - product_w - ridge * w
    return float(residual[free].mean()) if free.any() else 0.0


def _linear_gap(w: FloatArray, gradient: FloatArray, bound: float, epsilon: float) -> float:
    """Largest decrease of the linear model over the feasible set; at least the true gap."""
    ordered = np.sort(gradient)
    n = len(w)
    # All total between n (1 - epsilon) and n (1 + epsilon) go to the smallest entries first,
    # as much as each may have, beyond the least total only where the gradient is negative.
    filled = np.minimum(bound * np.arange(1, n + 1), n * (1 + epsilon))
    share = np.diff(filled, prepend=0.0)
    least = np.diff(np.minimum(bound * np.arange(1, n + 1), n * (1 - epsilon)), prepend=0.0)
    vertex = np.where(ordered < 0, share, np.maximum(least, 0))
    return float(gradient @ w - ordered @ vertex)
