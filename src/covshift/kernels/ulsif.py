r"""Unconstrained least-squares importance fitting, plain (uLSIF) and relative (RuLSIF).

The ratio :math:`w(x) = \theta^\top \varphi(x)` of the target's density to the mixture of
:math:`\alpha` target and :math:`1 - \alpha` source (uLSIF: :math:`\alpha = 0`) minimises

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

import numpy as np
from scipy.linalg import eigh, solve

from covshift.kernels.arrays import FloatArray, IntArray, Rows
from covshift.kernels.gaussian_bases import gaussian, squares_to_bases
from covshift.kernels.mmd import TILE_ROWS
from covshift.kernels.row_views import view_rows


def fit_coefficients(
    P_source: FloatArray, P_target: FloatArray, regularization: float, alpha: float = 0.0
) -> FloatArray:
    """Coefficients (b,), of any sign, from basis functions of source (n, b) and target (k, b)."""
    H = (1 - alpha) / len(P_source) * (P_source.T @ P_source)
    if alpha > 0:
        H += alpha / len(P_target) * (P_target.T @ P_target)
    return solve_ridge(H, P_target.mean(axis=0), regularization)


def solve_ridge(H: FloatArray, h: FloatArray, regularization: float) -> FloatArray:
    r""":math:`(H + \lambda I)^{-1} h`; H is overwritten."""
    H[np.diag_indices_from(H)] += regularization
    coefficients: FloatArray = solve(H, h, assume_a="pos")
    return coefficients


def basis_sums(
    rows: Rows, codes: IntArray, bases: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Sums of basis functions (2, b), of their products (2, b, b), and numbers of rows (2,).

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


def leave_one_out_scores(
    P_source: FloatArray,
    P_target: FloatArray,
    regularizations: FloatArray,
    alpha: float = 0.0,
    *,
    clip_coefficients: bool = False,
) -> FloatArray:
    r"""Estimates of the unregularised loss, one for each :math:`\lambda`; less is better.

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
        for k in range(len(regularizations)):
            theta = h_out + b * r_s[:, k, None] * S + a * r_t[:, k, None] * T
            theta = np.maximum((theta * inverses[:, k]) @ vectors.T, 0)
            r_s[:, k] = np.einsum("ij,ij->i", theta, pairs_s)
            r_t[:, k] = np.einsum("ij,ij->i", theta, pairs_t)
    else:
        r_s, r_t = np.maximum(r_s, 0), np.maximum(r_t, 0)
    scores: FloatArray = (
        (1 - alpha) / 2 * np.square(r_s).mean(axis=0)
        + alpha / 2 * np.square(r_t).mean(axis=0)
        - r_t.mean(axis=0)
    )
    return scores
