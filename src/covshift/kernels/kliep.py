r"""Kullback-Leibler importance estimation (KLIEP).

.. math::

    \max_{\theta \ge 0} \; \frac1{n_t} \sum_{j} \log \theta^\top \varphi(x_j)
    \quad \text{subject to} \quad \theta^\top m = 1, \qquad
    m = \frac1{n_s} \sum_{i} \varphi(x_i),

sums over target rows j and source rows i. With :math:`\pi_l = \theta_l m_l` and
:math:`A_{jl} = \varphi_l(x_j) / m_l` these are the proportions of a mixture of known components,
:math:`\max \sum_j \log (A \pi)_j` over the simplex: convex. It is solved by Newton steps on those
components that have a proportion or would gain by one, each a non-negative least-squares
problem, with a line search.

The components' scores :math:`D_l = \frac1{n_t} \sum_j A_{jl} / (A \pi)_j` are at most 1 at the
optimum, and elsewhere the objective is at most :math:`\max_l D_l - 1` below it: that is the test of
convergence.

References
----------
M. Sugiyama et al., "Direct importance estimation for covariate shift adaptation", Annals of the
Institute of Statistical Mathematics 60, 2008.

Y. Wang, "On fast computation of the non-parametric maximum likelihood estimate of a mixing
distribution", Journal of the Royal Statistical Society B 69, 2007.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from covshift.kernels.arrays import FloatArray

# Components that may enter at once: more make the least-squares problem needlessly large.
MAX_ENTERING = 20


def fit_coefficients(
    P_target: FloatArray,
    source_means: FloatArray,
    *,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    r"""Coefficients (b,) from basis functions of target rows (k, b) and their source means (b,).

    Returns the coefficients and a bound on how far the objective is below its optimum.
    Bases that no source row meets have none; target rows that no basis meets are left out. If
    nothing is left, all coefficients are zero.
    """
    coefficients = np.zeros(len(source_means))
    met = source_means > 0
    A = P_target[:, met] / source_means[met]
    # A row's scale only adds a constant to the objective; now nothing can overflow.
    largest = A.max(axis=1, initial=0)
    seen = (largest > 0) & np.isfinite(largest)
    A = A[seen] / largest[seen, None]
    if not A.size:
        return coefficients, 0.0
    proportions = np.full(A.shape[1], 1 / A.shape[1])
    if start is not None and (start[met] > 0).any():
        # A little of all: a row that only other components meet keeps a finite logarithm.
        proportions = 0.99 * start[met] * source_means[met] + 0.01 * proportions
        proportions /= proportions.sum()
    proportions, gap = maximize_mixture(A, proportions, tol=tol, max_iter=max_iter)
    coefficients[met] = proportions / source_means[met]
    return coefficients, gap


def maximize_mixture(
    A: FloatArray, proportions: FloatArray, *, tol: float, max_iter: int
) -> tuple[FloatArray, float]:
    r"""Maximise the mean of :math:`\log A \pi` over the simplex, for A (k, b) and a start (b,)."""
    mixture = A @ proportions
    gap = np.inf
    for _ in range(max_iter):
        scores = A.T @ (1 / mixture) / len(A)
        gap = float(scores.max()) - 1
        if gap <= tol:
            break
        entering = np.argsort(scores)[-MAX_ENTERING:]
        support = np.union1d(np.flatnonzero(proportions), entering[scores[entering] > 1])
        columns = A[:, support]
        direction = _newton_point(columns, mixture, scores[support]) - proportions[support]
        change = columns @ direction
        step = _step_length(mixture, change)
        if step == 0:  # no ascent in working precision: expectation maximisation always ascends
            proportions = proportions * scores
        else:
            proportions = proportions.copy()
            proportions[support] = np.maximum(proportions[support] + step * direction, 0)
        proportions /= proportions.sum()
        mixture = A @ proportions
    return proportions, gap


def _newton_point(columns: FloatArray, mixture: FloatArray, scores: FloatArray) -> FloatArray:
    """Non-negative maximiser, scaled to sum to one, of the quadratic model of the objective."""
    scaled = columns / mixture[:, None]
    H = scaled.T @ scaled / len(scaled)
    # Close bases are nearly collinear; the line search makes up for the inexact step.
    H[np.diag_indices_from(H)] += 1e-10 * np.trace(H) / len(H) + 1e-14
    R = cholesky(H)
    try:
        point = nnls(R, solve_triangular(R, 2 * scores - 1, trans="T"), maxiter=30 * len(R))[0]
    except RuntimeError:  # no solution within so many steps
        point = np.zeros(len(R))
    total = point.sum()
    point = point / total if total > 0 else np.eye(len(R))[scores.argmax()]
    result: FloatArray = point
    return result


def _step_length(mixture: FloatArray, change: FloatArray) -> float:
    """First of 1, 1/2, 1/4, ... that raises the objective by a hundredth of what it promises."""
    slope = float(np.mean(change / mixture))
    if slope <= 0:
        return 0.0
    step = 1.0
    while step > 1e-10:
        ratio = 1 + step * change / mixture
        if ratio.min() > 0 and float(np.mean(np.log(ratio))) >= 0.01 * step * slope:
            return step
        step /= 2
    return 0.0
