"""Gaussian kernels, basis functions and Nyström features, in tiles of bounded size."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from covshift.kernels.array_types import FloatArray

Kernel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

TILE_ROWS = 1024  # a tile of 8 MB in double precision stays near the cache


def rbf_kernel(bandwidths: FloatArray) -> Kernel:
    """Return the Gaussian kernel of several bandwidths: the mean of the kernels of each."""

    def kernel(A: FloatArray, B: FloatArray) -> FloatArray:
        squares = squared_distances(A, B)
        scales = (-0.5 / np.square(bandwidths)).astype(squares.dtype)
        if len(scales) == 1:
            squares *= scales[0]
            return np.exp(squares, out=squares)
        total: FloatArray = np.exp(squares * scales[0])
        for scale in scales[1:]:
            total += np.exp(squares * scale)
        total /= len(scales)
        return total

    return kernel


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Squared Euclidean distances between the rows of A (n, d) and B (k, d), shape (n, k)."""
    squares: FloatArray = A @ B.T
    squares *= -2
    squares += np.einsum("ij,ij->i", A, A)[:, None]
    squares += np.einsum("ij,ij->i", B, B)
    return np.maximum(squares, 0, out=squares)


# --- Basis functions: what models of a density ratio or of class probabilities are made of ---
#
#     \varphi_l(x) = \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)


def squares_to_bases(rows: FloatArray, bases: FloatArray) -> FloatArray:
    """Return squared distances of rows (n, d) to bases (b, d), shape (n, b), in double precision.

    Both are moved to around zero first, where squares lose no digits.
    """
    center = bases.mean(axis=0, dtype=np.float64)
    return squared_distances(rows - center, bases - center)


def gaussian(squares: FloatArray, bandwidth: float) -> FloatArray:
    """Return the Gaussian kernels, as basis functions, of squared distances, of any shape."""
    # Divided twice: the square of a tiny bandwidth would be zero. Overflow means far away.
    with np.errstate(over="ignore"):
        values: FloatArray = squares / bandwidth
        values /= bandwidth
    values *= -0.5
    return np.exp(values, out=values)


def gaussian_mixture(
    rows: FloatArray, bases: FloatArray, coefficients: FloatArray, bandwidth: float
) -> FloatArray:
    r"""Return a mixture of Gaussian kernels, of rows (n, d), in tiles of rows.

    It is :math:`\sum_l \theta_l \varphi_l(x)`.

    Coefficients are (b,), or (b, k) for k sums at once.
    """
    values = np.empty((len(rows), *coefficients.shape[1:]))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        values[part] = gaussian(squares_to_bases(rows[part], bases), bandwidth) @ coefficients
    return values


# --- Nyström features: a Gaussian kernel of low rank, whose diagonal is exact ---
#
# With landmarks C (r, d) among the rows X (n, d) and k(C, C) = V \Lambda V^\top,
#
#     K \approx \Phi \Phi^\top + \operatorname{diag}(d), \qquad
#     \Phi = k(X, C) \, V \Lambda^{-1/2}, \qquad d_i = 1 - \lVert \varphi_i \rVert^2 \ge 0.
#
# \Phi \Phi^\top = k(X, C) \, k(C, C)^{-1} \, k(C, X) is the kernel of the rows projected, in
# its feature space, onto the span of the landmarks; what a row loses by that is d_i. Rows
# that are landmarks lose nothing. With all rows as landmarks the kernel matrix is exact.
#
# References
# ----------
# C. Williams, M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.


# Eigenvalues of k(C, C) below this share of the largest are left out: they change the kernel by
# no more than that, and dividing by their roots would blow up rounding errors.
SMALLEST_SHARE = 1e-12


def nystrom_root(landmarks: FloatArray, bandwidth: float) -> FloatArray:
    r"""Return the root (r, q) of a Gaussian kernel by which landmarks (r, d) give features.

    It is :math:`V \Lambda^{-1/2}`, for the q eigenvalues that count.
    """
    values, vectors = np.linalg.eigh(gaussian(squares_to_bases(landmarks, landmarks), bandwidth))
    kept = values > SMALLEST_SHARE * values[-1]
    root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
    return root


def nystrom_features(
    rows: FloatArray, landmarks: FloatArray, root: FloatArray, bandwidth: float
) -> FloatArray:
    r"""Return Nyström features :math:`\Phi` (n, q) of a Gaussian kernel for rows (n, d).

    They are computed in tiles.
    """
    features = np.empty((len(rows), root.shape[1]))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        kernels = gaussian(squares_to_bases(rows[part], landmarks), bandwidth)
        np.matmul(kernels, root, out=features[part])
    return features


def nystrom_sum(
    rows: FloatArray, landmarks: FloatArray, root: FloatArray, bandwidth: float
) -> FloatArray:
    r"""Return the sum (q,) of a Gaussian kernel's Nyström features over rows (n, d).

    It is :math:`\sum_j \varphi_j`; the features are not kept.
    """
    total = np.zeros(len(landmarks))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        total += gaussian(squares_to_bases(rows[part], landmarks), bandwidth).sum(axis=0)
    return total @ root


def lost_nystrom_diagonal(features: FloatArray) -> FloatArray:
    r"""Return what Nyström features (n, q) lose of a Gaussian kernel's diagonal: :math:`d` (n,).

    Rounding never makes it negative.
    """
    lost: FloatArray = 1 - np.einsum("ij,ij->i", features, features)
    return np.maximum(lost, 0, out=lost)
