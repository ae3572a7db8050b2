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

import warnings

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from covshift.base import check_count, check_number
from covshift.kernels.array_types import FloatArray
from covshift.kernels.gaussian_kernels import gaussian
from covshift.weights._weight_estimator import GaussianBasesWeights, Squares

SMALLEST_LIKELIHOOD = 1e-300  # a held-out row that no basis meets: a bad score, not minus infinity
# Components that may enter at once: more make the least-squares problem needlessly large.
MAX_ENTERING = 20


def fit_kliep_coefficients(
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
    proportions, gap = _maximize_mixture(A, proportions, tol=tol, max_iter=max_iter)
    coefficients[met] = proportions / source_means[met]
    return coefficients, gap


def _maximize_mixture(
    A: FloatArray, proportions: FloatArray, *, tol: float, max_iter: int
) -> tuple[FloatArray, float]:
    r"""Maximize the mean of :math:`\log A \pi` over the simplex, for A (k, b) and a start (b,)."""
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
        if step == 0:  # no ascent in working precision: expectation maximization always ascends
            proportions = proportions * scores
        else:
            proportions = proportions.copy()
            proportions[support] = np.maximum(proportions[support] + step * direction, 0)
        proportions /= proportions.sum()
        mixture = A @ proportions
    return proportions, gap


def _newton_point(columns: FloatArray, mixture: FloatArray, scores: FloatArray) -> FloatArray:
    """Non-negative maximizer, scaled to sum to one, of the quadratic model of the objective."""
    scaled = columns / mixture[:, None]
    H = scaled.T @ scaled / len(scaled)
    # Close bases are nearly collinear; the line search makes up for the inexact step.
    H[np.diag_indices_from(H)] += 1e-10 * np.trace(H) / len(H) + 1e-14
    R = cholesky(H)
    try:
        point = nnls(R, solve_triangular(R, 2 * scores - 1, trans="T"), maxiter=30 * len(R))[0]
    except RuntimeError:  # no solution within this number of steps
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


class KLIEPWeights(GaussianBasesWeights):
    r"""Importance weights by the Kullback-Leibler importance estimation procedure (KLIEP).

    .. math::

        w(x) = \sum_l \theta_l \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr),
        \qquad \theta = \arg\max_{\theta \ge 0} \frac1{n_t} \sum_{j \in \text{target}} \log w(x_j)
        \quad \text{with} \quad \frac1{n_s} \sum_{i \in \text{source}} w(x_i) = 1

    with bases :math:`c_l` drawn from the target: of all such w, the one for which the weighted
    source explains the target best. The bandwidth :math:`\sigma` is that of the best
    log-likelihood on held-out target rows.

    **Assumption**: P(y | x) is the same in both domains and every target row lies where the
    source has rows too. A sum of Gaussians falls off in all directions: in many dimensions it
    follows a shift less well than `ULSIFWeights`, whose coefficients may be negative.

    Parameters
    ----------
    n_bases : int, default=100
        Number of Gaussians; all target rows, if there are fewer.
    sigmas : None, float or sequence of float, default=None
        Candidates for :math:`\sigma`. None: multiples .25, .5, .75, 1, 1.5 and 2 of the median
        distance between rows.
    cv : int, default=5
        Folds of the target rows; fewer, if there are fewer rows. A single target row cannot
        be held out: the largest candidate is taken then.
    tol : float, default=1e-6
        How far the objective, a mean log-likelihood, may be below its optimum.
    max_iter : int, default=200
        Largest number of Newton steps.
    random_state : int, RandomState or None, default=None
        Seed of the draw of bases and of the folds.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Estimates of the ratio at the source rows, in their order, not normalized.
    bandwidth_ : float
        The chosen :math:`\sigma`.
    score_table_ : ndarray of shape (n_sigmas,)
        Mean log-likelihood of held-out target rows; the largest was chosen.
    sigmas_ : ndarray of shape (n_sigmas,)
        The candidates.
    bases_ : ndarray of shape (n_bases, n_features)
        Target rows :math:`c_l`.
    coefficients_ : ndarray of shape (n_bases,)
        :math:`\theta`, most of it zero.
    gap_ : float
        Bound on how far the objective is below its optimum.
    effective_sample_size_ : float
        Number of equally weighted rows that would be as informative.
    mean_weight_, share_zero_ : float
        Mean of the weights (1, by the constraint) and share of weights that are zero.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    **Cost**: with b bases, s bandwidths and f folds O(n b m) time, and s (f + 1) convex
    problems whose Newton steps take O(n_target b) and more, the more bases get weight; O(n b)
    memory.

    References
    ----------
    M. Sugiyama et al., "Direct importance estimation for covariate shift adaptation", Annals
    of the Institute of Statistical Mathematics 60, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import KLIEPWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = KLIEPWeights(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.4])
    """

    def __init__(
        self, *, n_bases=100, sigmas=None, cv=5, tol=1e-6, max_iter=200, random_state=None
    ):
        self.n_bases = n_bases
        self.sigmas = sigmas
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("cv", self.cv, minimum=2)
        check_count("max_iter", self.max_iter, minimum=1)
        check_number("tol", self.tol, minimum=0)

    def _search(self, squares: Squares, sigmas: FloatArray, rng: np.random.RandomState) -> None:
        n_target = len(squares.target)
        folds = np.array_split(rng.permutation(n_target), min(self.cv, n_target))
        options = {"tol": self.tol, "max_iter": self.max_iter}
        fits, scores = [], np.zeros(len(sigmas))
        for index, sigma in enumerate(sigmas):
            P_target = gaussian(squares.target, sigma)
            source_means = gaussian(squares.source, sigma).mean(axis=0)
            theta, gap = fit_kliep_coefficients(P_target, source_means, **options)
            fits.append((theta, gap))
            for test in folds if n_target > 1 and len(sigmas) > 1 else []:
                train = np.delete(P_target, test, axis=0)
                held_in, _ = fit_kliep_coefficients(train, source_means, start=theta, **options)
                likelihood = np.log(np.maximum(P_target[test] @ held_in, SMALLEST_LIKELIHOOD))
                scores[index] += likelihood.sum() / n_target
        best = int(sigmas.argmax() if n_target == 1 else scores.argmax())
        self.sigmas_, self.score_table_ = sigmas, scores
        self.bandwidth_ = float(sigmas[best])
        self.coefficients_, self.gap_ = fits[best]
        if self.gap_ > self.tol:
            warnings.warn(
                f"KLIEPWeights did not converge in {self.max_iter} iterations: the objective may "
                f"be {self.gap_:.1e} below its optimum. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
