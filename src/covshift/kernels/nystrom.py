r"""Nyström features: a Gaussian kernel of low rank, whose diagonal is exact.

With landmarks C (r, d) among the rows X (n, d) and :math:`k(C, C) = V \Lambda V^\top`,

.. math::

    K \approx \Phi \Phi^\top + \operatorname{diag}(d), \qquad
    \Phi = k(X, C) \, V \Lambda^{-1/2}, \qquad d_i = 1 - \lVert \varphi_i \rVert^2 \ge 0.

:math:`\Phi \Phi^\top = k(X, C) \, k(C, C)^{-1} \, k(C, X)` is the kernel of the rows projected, in
its feature space, onto the span of the landmarks; what a row loses by that is :math:`d_i`. Rows
that are landmarks lose nothing. With all rows as landmarks the kernel matrix is exact.

References
----------
C. Williams, M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_bases import gaussian, squares_to_bases
from covshift.kernels.mmd import TILE_ROWS

# Eigenvalues of k(C, C) below this share of the largest are left out: they change the kernel by
# no more than that, and dividing by their roots would blow up rounding errors.
SMALLEST_SHARE = 1e-12


def nystrom_root(landmarks: FloatArray, bandwidth: float) -> FloatArray:
    r""":math:`V \Lambda^{-1/2}` (r, q) of landmarks (r, d), for the q eigenvalues that count."""
    values, vectors = np.linalg.eigh(gaussian(squares_to_bases(landmarks, landmarks), bandwidth))
    kept = values > SMALLEST_SHARE * values[-1]
    root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
    return root


def nystrom_features(
    rows: FloatArray, landmarks: FloatArray, root: FloatArray, bandwidth: float
) -> FloatArray:
    r""":math:`\Phi` (n, q) of rows (n, d), in tiles of rows."""
    features = np.empty((len(rows), root.shape[1]))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        kernels = gaussian(squares_to_bases(rows[part], landmarks), bandwidth)
        np.matmul(kernels, root, out=features[part])
    return features


def nystrom_sum(
    rows: FloatArray, landmarks: FloatArray, root: FloatArray, bandwidth: float
) -> FloatArray:
    r""":math:`\sum_j \varphi_j` (q,) over rows (n, d); their features are not kept."""
    total = np.zeros(len(landmarks))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        total += gaussian(squares_to_bases(rows[part], landmarks), bandwidth).sum(axis=0)
    return total @ root


def lost_diagonal(features: FloatArray) -> FloatArray:
    r""":math:`d` (n,) of features (n, q); rounding never makes it negative."""
    lost: FloatArray = 1 - np.einsum("ij,ij->i", features, features)
    return np.maximum(lost, 0, out=lost)
