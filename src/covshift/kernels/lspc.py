r"""Least-squares probabilistic classifier (LSPC), importance-weighted.

Rows i have weights :math:`w_i` and classes :math:`y_i`. With Gaussian bases :math:`\varphi`,

.. math::

    H = \frac{\sum_i w_i \varphi(x_i) \varphi(x_i)^\top}{\sum_i w_i}, \qquad
    h_c = \frac{\sum_{i: y_i = c} w_i \varphi(x_i)}{\sum_i w_i}, \qquad
    \theta_c = (H + \lambda I)^{-1} h_c,

    q_c(x) = \max(0, \theta_c^\top \varphi(x)), \qquad p(c \mid x) = q_c(x) / \sum_k q_k(x).

:math:`\theta_c` minimizes the weighted mean of
:math:`\frac12 (\theta_c^\top \varphi(x_i) - [y_i = c])^2`, plus
:math:`\frac\lambda2 \lVert \theta_c \rVert^2`. Where all q are zero, far from every basis, the
weighted shares of the classes stand in for p.

Rows that are alike are one row here (`covshift.kernels.distinct_rows`): ``class_weights`` (n, C)
holds the weight of each distinct row in each class.

**Cross-validation.** The sums behind H and h of a training part are those of all rows less those
of the rows left out. Each :math:`\lambda` has a Cholesky factorization of its own: for 250 bases a
tenth of the time of the eigendecomposition that would serve all of them. No matrix is larger than
rows by bases.

References
----------
M. Sugiyama, "Superfast-trainable multi-class probabilistic classifier by least-squares posterior
fitting", IEICE Transactions on Information and Systems E93-D, 2010.

H. Hachiya, M. Sugiyama, N. Ueda, "Importance-weighted least-squares probabilistic classifier for
covariate shift adaptation with application to human activity recognition", Neurocomputing 80,
2012.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import solve
from scipy.linalg.lapack import dposv

from covshift.kernels.arrays import FloatArray, IntArray

# Losses (..., k) of rows from their probabilities (..., k, C) and class weights (k, C).
Criterion: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

# Share of the weight: a smaller remainder of a difference is rounding error.
NEGLIGIBLE = 1e-12


class Part(NamedTuple):
    """Some of the rows, by number, and how much of their weight is meant, (k, C)."""

    rows: IntArray
    class_weights: FloatArray


class Fold(NamedTuple):
    """Rows that one step of cross-validation removes from training, and tests on."""

    left_out: Part
    tested: Part


def fit_coefficients(P: FloatArray, class_weights: FloatArray, regularization: float) -> FloatArray:
    """Return the coefficients (b, C) from basis functions (n, b)."""
    H, h = _sums(P, class_weights)
    total = class_weights.sum()
    H /= total
    H[np.diag_indices_from(H)] += regularization
    coefficients: FloatArray = solve(H, h / total, assume_a="pos")
    return coefficients


def class_probabilities(values: FloatArray, shares: FloatArray) -> FloatArray:
    r"""Probabilities (..., C) from :math:`\theta_c^\top \varphi(x)` and class shares (C,)."""
    q = np.maximum(values, 0)
    # Scaled by the largest first: a sum of tiny numbers keeps its digits.
    largest = q.max(axis=-1, keepdims=True)
    met = largest > 0
    np.divide(q, largest, out=q, where=met)
    np.copyto(q, shares, where=~met)
    q /= q.sum(axis=-1, keepdims=True)
    return q


def cross_validation_scores(
    P: FloatArray,
    class_weights: FloatArray,
    folds: Iterable[Fold],
    regularizations: FloatArray,
    criterion: Criterion,
) -> FloatArray:
    r"""Return weighted mean loss on held-out rows, one for each :math:`\lambda`; less is better."""
    H, h = _sums(P, class_weights)
    class_totals = class_weights.sum(axis=0)
    losses, tested_weight = np.zeros(len(regularizations)), 0.0
    for left_out, tested in folds:
        H_out, h_out = _sums(P[left_out.rows], left_out.class_weights)
        kept = np.maximum(class_totals - left_out.class_weights.sum(axis=0), 0)
        total = kept.sum()
        if total <= NEGLIGIBLE * class_totals.sum() or not tested.class_weights.any():
            continue  # nothing to learn from, or nothing to test on
        theta = _solve_ridges((H - H_out) / total, (h - h_out) / total, regularizations)
        p = class_probabilities(P[tested.rows] @ theta, kept / total)
        losses += criterion(p, tested.class_weights).sum(axis=-1)
        losses[np.isnan(theta).any(axis=(1, 2))] = np.inf
        tested_weight += tested.class_weights.sum()
    return losses / tested_weight if tested_weight > 0 else losses


def misclassification(p: FloatArray, class_weights: FloatArray) -> FloatArray:
    """Weight of the classes that are not the most probable one."""
    correct = class_weights[np.arange(len(class_weights)), p.argmax(axis=-1)]
    losses: FloatArray = class_weights.sum(axis=1) - correct
    return losses


def squared_error(p: FloatArray, class_weights: FloatArray) -> FloatArray:
    r"""Return the squared distance of p to the true class (Brier score), less a constant, halved.

    :math:`\frac12 \sum_c p_c^2 - p_y`, times the weight.
    """
    weights = class_weights.sum(axis=1)
    losses: FloatArray = weights * np.square(p).sum(axis=-1) / 2 - (class_weights * p).sum(axis=-1)
    return losses


def _sums(P: FloatArray, class_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted sums of the outer products (b, b) and, by class, of the basis functions (b, C)."""
    scaled = P * np.sqrt(class_weights.sum(axis=1))[:, None]
    return scaled.T @ scaled, P.T @ class_weights  # with itself: half the work


def _solve_ridges(H: FloatArray, h: FloatArray, regularizations: FloatArray) -> FloatArray:
    r""":math:`(H + \lambda I)^{-1} h` for each :math:`\lambda`, (l, b, C).

    NaN where :math:`\lambda` is lost in the rounding of H.
    """
    theta = np.empty((len(regularizations), *h.shape))
    diagonal = np.diagonal(H).copy()
    for k, regularization in enumerate(regularizations):
        np.fill_diagonal(H, diagonal + regularization)
        _, theta[k], failed = dposv(H, h)
        if failed:
            theta[k] = np.nan
    return theta
