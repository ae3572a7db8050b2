r"""Means, shrunk covariances and the square roots of covariances.

The covariance of rows X (n, m) is shrunk towards its own diagonal,

.. math::

    C = \tfrac{1}{n} \sum_i (x_i - \bar x)(x_i - \bar x)^\top, \qquad
    C_a = (1 - a)\, C + a \, \operatorname{diag}(C),

so that every variance stays as measured and units of measurement do not matter. The
intensity of Ledoit and Wolf is that of the standardized rows
:math:`z_{ij} = (x_{ij} - \bar x_j) / \sqrt{C_{jj}}` with correlations R:

.. math::

    a = \min\Bigl(1, \frac{\tfrac{1}{n} \bigl(\tfrac{1}{n} \sum_i \lVert z_i \rVert^4
        - \lVert R \rVert_F^2\bigr)}{\lVert R \rVert_F^2 - (\operatorname{tr} R)^2 / m}\Bigr).

References
----------
O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
Journal of Multivariate Analysis 88(2), 2004.
"""

from collections.abc import Iterator

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.mmd import TILE_ROWS


def mean_and_covariance(
    X: FloatArray, shrinkage: float | None
) -> tuple[FloatArray, FloatArray, float]:
    """Mean (m,), shrunk covariance (m, m) and the intensity used; None: Ledoit and Wolf's.

    Computed in double precision, whatever X is.
    """
    mean = column_means(X)
    covariance = scatter(X, mean) / len(X)
    if shrinkage is None:
        shrinkage = ledoit_wolf_intensity(X, mean, covariance)
    shrink(covariance, shrinkage)
    return mean, covariance, shrinkage


def shrink(covariance: FloatArray, shrinkage: float) -> None:
    """Shrink a covariance (m, m) towards its diagonal, in place."""
    if shrinkage > 0:
        variances = np.diagonal(covariance).copy()
        covariance *= 1 - shrinkage
        np.fill_diagonal(covariance, variances)


def column_means(X: FloatArray) -> FloatArray:
    """Mean (m,) of rows (n, m), in double precision; einsum takes half the time of X.mean."""
    means: FloatArray = np.einsum("ij->j", X, dtype=np.float64) / len(X)
    return means


def scatter(X: FloatArray, mean: FloatArray) -> FloatArray:
    r""":math:`\sum_i (x_i - \bar x)(x_i - \bar x)^\top` (m, m) of rows (n, m)."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for centered in _centered_tiles(X, mean):
        total += centered.T @ centered
    return total


def _centered_tiles(X: FloatArray, mean: FloatArray) -> Iterator[FloatArray]:
    """Rows about the mean, some at a time: a copy of all would cost more than the products."""
    for start in range(0, len(X), TILE_ROWS):
        yield X[start : start + TILE_ROWS] - mean


def ledoit_wolf_intensity(X: FloatArray, mean: FloatArray, covariance: FloatArray) -> float:
    """Intensity a, between 0 and 1, from rows (n, m), their mean and their covariance (m, m).

    The fourth powers of the rows' lengths take the place of the second m x m product over
    the rows that `sklearn.covariance.ledoit_wolf_shrinkage` makes; the value is the same.
    """
    precisions = precisions_of(covariance)
    fourths = sum(
        float(np.square(np.square(centered, out=centered) @ precisions).sum())  # of lengths of z
        for centered in _centered_tiles(X, mean)
    )
    return intensity_from(fourths, len(X), covariance)


def precisions_of(covariance: FloatArray) -> FloatArray:
    """One over each variance (m,); zero where there is none."""
    variances = np.diagonal(covariance)
    precisions: FloatArray = np.divide(
        1, variances, out=np.zeros(len(variances)), where=variances > TINY
    )
    return precisions


def intensity_from(fourths: float, n: int, covariance: FloatArray) -> float:
    """Intensity a from the sum of the fourth powers of the lengths of the n rows z."""
    precisions, variances, m = precisions_of(covariance), np.diagonal(covariance), len(covariance)
    roots = np.sqrt(precisions)
    R_squares = float(np.square(roots[:, None] * covariance * roots).sum())
    trace = float((variances * precisions).sum())
    dispersion = R_squares - trace**2 / m
    noise = (fourths / n - R_squares) / n
    rounding = 16 * m * float(np.finfo(np.float64).eps) * R_squares
    if noise <= 0 or dispersion <= rounding:
        return 0.0  # nothing off the diagonal: there is nothing to shrink
    return float(min(1.0, noise / dispersion))


def square_roots(C: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Symmetric roots :math:`C^{1/2}` and :math:`C^{-1/2}` of a covariance (m, m).

    Directions whose variance is below the rounding error of the largest one have none: both
    roots are zero there (the inverse is the pseudo-inverse).
    """
    values, vectors = np.linalg.eigh(C)
    floor = max(float(values[-1]) * len(C) * np.finfo(values.dtype).eps, TINY)
    kept = values > floor
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverses = np.divide(1, roots, out=np.zeros_like(roots), where=kept)
    return (vectors * roots) @ vectors.T, (vectors * inverses) @ vectors.T


# Variances below have no inverse in double precision.
TINY = float(np.finfo(np.float64).tiny) * 16
