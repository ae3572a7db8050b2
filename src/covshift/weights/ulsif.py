r"""Unconstrained least-squares importance fitting, plain (uLSIF) and relative (RuLSIF).

The ratio :math:`w(x) = \theta^\top \varphi(x)` of the target's density to the mixture of
:math:`\alpha` target and :math:`1 - \alpha` source (uLSIF: :math:`\alpha = 0`) minimizes

.. math::

    \tfrac12 \theta^\top H \theta - h^\top \theta + \tfrac\lambda2 \theta^\top \theta,
    \qquad \theta = (H + \lambda I)^{-1} h,

    H = \frac{\alpha}{n_t} \sum_{j} \varphi(x_j) \varphi(x_j)^\top
        + \frac{1 - \alpha}{n_s} \sum_{i} \varphi(x_i) \varphi(x_i)^\top,
    \qquad h = \frac1{n_t} \sum_{j} \varphi(x_j).

**Leave-one-out score.** Without source row s and target row t, H loses
:math:`b\,\varphi_s \varphi_s^\top + a\,\varphi_t \varphi_t^\top` (beside a rescaling, common to all
pairs, that with :math:`\lambda I` makes it M), :math:`b = (1 - \alpha) / (n_s - 1)`,
:math:`a = \alpha / (n_t - 1)`, and h becomes
:math:`h_{st} = (n_t h - \varphi_t) / (n_t - 1)`. With :math:`V = [\varphi_s, \varphi_t]`,
:math:`G = V^\top M^{-1} V`, :math:`g = V^\top M^{-1} h_{st}` and :math:`C = \mathrm{diag}(b, a)`,
Woodbury's identity gives the ratio at the two rows left out, and the coefficients, as

.. math:: r = (I - G C)^{-1} g, \qquad \theta_{st} = M^{-1} (h_{st} + V C r).

In the eigenbasis of M, which serves all :math:`\lambda`, G and g are weighted row sums: no matrix
larger than rows by bases is made.

References
----------
T. Kanamori, S. Hido, M. Sugiyama, "A least-squares approach to direct importance estimation",
JMLR 10, 2009.

M. Yamada, T. Suzuki, T. Kanamori, H. Hachiya, M. Sugiyama, "Relative density-ratio estimation
for robust distribution comparison", Neural Computation 25, 2013.
"""

from typing import Any

import numpy as np
from scipy.linalg import eigh, solve

from covshift.base import check_option, check_positive
from covshift.kernels.array_types import FloatArray, IntArray, Rows
from covshift.kernels.gaussian_kernels import TILE_ROWS, gaussian, squares_to_bases
from covshift.kernels.row_blocks import view_rows
from covshift.streams import RowStream
from covshift.weights._weight_estimator import GaussianBasesWeights, Squares

# Decades around the size of the entries of H, which are at most one.
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def fit_ulsif_coefficients(
    P_source: FloatArray, P_target: FloatArray, regularization: float, alpha: float = 0.0
) -> FloatArray:
    """Coefficients (b,), of any sign, from basis functions of source (n, b) and target (k, b)."""
    H = (1 - alpha) / len(P_source) * (P_source.T @ P_source)
    if alpha > 0:
        H += alpha / len(P_target) * (P_target.T @ P_target)
    return _solve_ridge(H, P_target.mean(axis=0), regularization)


def _solve_ridge(H: FloatArray, h: FloatArray, regularization: float) -> FloatArray:
    r""":math:`(H + \lambda I)^{-1} h`; H is overwritten."""
    H[np.diag_indices_from(H)] += regularization
    coefficients: FloatArray = solve(H, h, assume_a="pos")
    return coefficients


def basis_sums(
    rows: Rows, codes: IntArray, bases: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return sums of basis functions (2, b), of their products (2, b, b), and numbers of rows (2,).

    Of source rows, whose code is 0, and of target rows, whose code is 1.
    """
    sums, products = np.zeros((2, len(bases))), np.zeros((2, len(bases), len(bases)))
    for start in range(0, rows.shape[0], TILE_ROWS):
        tile = view_rows(rows, start, start + TILE_ROWS, np.float64)
        own = codes[start : start + TILE_ROWS]
        values = gaussian(squares_to_bases(tile, bases), bandwidth)
        for role in (0, 1):
            P = values[own == role]
            sums[role] += P.sum(axis=0)
            products[role] += P.T @ P
    return sums, products, np.bincount(codes, minlength=2)


def _leave_one_out_scores(
    P_source: FloatArray,
    P_target: FloatArray,
    regularizations: FloatArray,
    alpha: float = 0.0,
    *,
    clip_coefficients: bool = False,
) -> FloatArray:
    r"""Return estimates of the unregularized loss, one for each :math:`\lambda`; less is better.

    As many pairs of a source and a target row are left out, one after the other, as the
    smaller sample has rows, evenly spaced in the larger. Negative ratios count as zero, or
    negative coefficients do. A sample of one row is never left out.
    """
    n_source, n_target = len(P_source), len(P_target)
    n_pairs = min(n_source, n_target)
    s_out = 1 / (n_source - 1) if n_source > 1 else 0.0
    t_out = 1 / (n_target - 1) if n_target > 1 else 0.0
    b, a = (1 - alpha) * s_out, alpha * t_out

    M = (1 - alpha) * (1 + s_out) / n_source * (P_source.T @ P_source)
    if alpha > 0:
        M += alpha * (1 + t_out) / n_target * (P_target.T @ P_target)
    h = P_target.mean(axis=0)
    values, vectors = eigh(M)
    # (b, number of lambdas): what M^-1 multiplies the eigenvectors by
    inverses = 1 / (np.maximum(values, 0)[:, None] + regularizations)

    pairs_s = P_source[np.linspace(0, n_source - 1, n_pairs).astype(int)]
    pairs_t = P_target[np.linspace(0, n_target - 1, n_pairs).astype(int)]
    S, T = pairs_s @ vectors, pairs_t @ vectors  # (pairs, b)
    h_rotated = vectors.T @ h
    # all (pairs, number of lambdas)
    G_ss, G_st, G_tt = np.square(S) @ inverses, (S * T) @ inverses, np.square(T) @ inverses
    weighted = h_rotated[:, None] * inverses
    g_s = (1 + t_out) * (S @ weighted) - t_out * G_st
    g_t = (1 + t_out) * (T @ weighted) - t_out * G_tt
    determinant = (1 - b * G_ss) * (1 - a * G_tt) - a * b * np.square(G_st)
    r_s = ((1 - a * G_tt) * g_s + a * G_st * g_t) / determinant
    r_t = (b * G_st * g_s + (1 - b * G_ss) * g_t) / determinant
    if clip_coefficients:
        h_out = (1 + t_out) * h_rotated - t_out * T
        theta, clipped = np.empty_like(S), np.empty_like(pairs_s)
        for k in range(len(regularizations)):
            np.multiply(b * r_s[:, k, None], S, out=theta)
            theta += h_out
            if a > 0:
                theta += a * r_t[:, k, None] * T
            theta *= inverses[:, k]
            np.matmul(theta, vectors.T, out=clipped)
            np.maximum(clipped, 0, out=clipped)
            r_s[:, k] = np.einsum("ij,ij->i", clipped, pairs_s)
            r_t[:, k] = np.einsum("ij,ij->i", clipped, pairs_t)
    else:
        r_s, r_t = np.maximum(r_s, 0), np.maximum(r_t, 0)
    scores: FloatArray = (
        (1 - alpha) / 2 * np.square(r_s).mean(axis=0)
        + alpha / 2 * np.square(r_t).mean(axis=0)
        - r_t.mean(axis=0)
    )
    return scores


class LeastSquaresWeights(GaussianBasesWeights):
    """Base of uLSIF and RuLSIF, which have ``lambdas`` and ``clip`` too."""

    lambdas: Any
    clip: Any
    alpha: Any = 0.0

    PAPER_SIGMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
    PAPER_LAMBDAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("lambdas", self.lambdas)
        check_option("clip", self.clip, ("weights", "coefficients"))

    def _search(self, squares: Squares, sigmas: FloatArray, rng: np.random.RandomState) -> None:
        self.sigmas_, self.lambdas_ = sigmas, check_positive("lambdas", self.lambdas)
        clipped = self.clip == "coefficients"
        self.score_table_ = np.stack(
            [
                _leave_one_out_scores(
                    gaussian(squares.source, sigma),
                    gaussian(squares.target, sigma),
                    self.lambdas_,
                    self.alpha,
                    clip_coefficients=clipped,
                )
                for sigma in sigmas
            ]
        )
        row, column = np.unravel_index(self.score_table_.argmin(), self.score_table_.shape)
        self.bandwidth_ = float(sigmas[row])
        self.regularization_ = float(self.lambdas_[column])
        theta = fit_ulsif_coefficients(
            gaussian(squares.source, self.bandwidth_),
            gaussian(squares.target, self.bandwidth_),
            self.regularization_,
            self.alpha,
        )
        self.coefficients_ = np.maximum(theta, 0) if clipped else theta

    def _refine(self, stream: RowStream, is_target: IntArray) -> None:
        """Coefficients from the sums over all rows, at what a sample has chosen."""
        split = stream.split(is_target)
        sums, products, counts = stream.sums(basis_sums, split, self.bases_, self.bandwidth_)
        H = (1 - self.alpha) / counts[0] * products[0] + self.alpha / counts[1] * products[1]
        theta = _solve_ridge(H, sums[1] / counts[1], self.regularization_)
        self.coefficients_ = np.maximum(theta, 0) if self.clip == "coefficients" else theta


class ULSIFWeights(LeastSquaresWeights):
    r"""Importance weights by unconstrained least-squares importance fitting (uLSIF).

    .. math::

        w(x) = \max\Bigl(0, \sum_l \theta_l
        \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)\Bigr),
        \qquad \theta = (H + \lambda I)^{-1} h

    with H the mean of :math:`\varphi \varphi^\top` over the source rows, h the mean of
    :math:`\varphi` over the target rows, and bases :math:`c_l` drawn from the target. The
    bandwidth :math:`\sigma` and :math:`\lambda` with the best analytic leave-one-out score are
    taken.

    **Assumption**: P(y | x) is the same in both domains and every target row lies where the
    source has rows too. Where it has none, weights cannot represent the target.

    Parameters
    ----------
    n_bases : int, default=100
        Number of Gaussians; all target rows, if there are fewer. The paper: 250.
    sigmas : None, float or sequence of float, default=None
        Candidates for :math:`\sigma`. None: multiples .25, .5, .75, 1, 1.5 and 2 of the median
        distance between rows. ``ULSIFWeights.PAPER_SIGMAS`` are the paper's.
    lambdas : float or sequence of float, default=(1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        Candidates for :math:`\lambda`. ``ULSIFWeights.PAPER_LAMBDAS`` are the paper's.
    clip : {"weights", "coefficients"}, default="weights"
        Values that are set to zero where they are negative, in the score too. "coefficients" is the
        published method and that of ``densratio``; in 5 and more dimensions it loses most of
        the ranking, and it is slower.
    random_state : int, RandomState or None, default=None
        Seed of the draw of bases.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Estimates of the ratio at the source rows, in their order, not normalized.
    bandwidth_, regularization_ : float
        The chosen :math:`\sigma` and :math:`\lambda`.
    score_table_ : ndarray of shape (n_sigmas, n_lambdas)
        Leave-one-out scores; the smallest was chosen.
    sigmas_, lambdas_ : ndarrays
        The candidates: rows and columns of ``score_table_``.
    bases_ : ndarray of shape (n_bases, n_features)
        Target rows :math:`c_l`.
    coefficients_ : ndarray of shape (n_bases,)
        :math:`\theta`.
    effective_sample_size_ : float
        Number of equally weighted rows that would be as informative.
    mean_weight_, share_zero_ : float
        Mean of the weights (1, if they are right) and share of weights that are zero.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    **Cost**: with b bases and s bandwidths O(n b (m + s b) + s b³) time, whatever the number
    of ``lambdas``; O(n b) memory. ``score_weights`` O(n b m).

    References
    ----------
    T. Kanamori, S. Hido, M. Sugiyama, "A least-squares approach to direct importance
    estimation", JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import ULSIFWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = ULSIFWeights(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.4])
    """

    def __init__(
        self, *, n_bases=100, sigmas=None, lambdas=LAMBDAS, clip="weights", random_state=None
    ):
        self.n_bases = n_bases
        self.sigmas = sigmas
        self.lambdas = lambdas
        self.clip = clip
        self.random_state = random_state
