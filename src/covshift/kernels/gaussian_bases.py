r"""Gaussian basis functions: what models of a density ratio or of class probabilities are made of.

.. math:: \varphi_l(x) = \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)
"""

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.mmd import TILE_ROWS, squared_distances


def squares_to_bases(rows: FloatArray, bases: FloatArray) -> FloatArray:
    """Return squared distances of rows (n, d) to bases (b, d), shape (n, b), in double precision.

    Both are moved to around zero first, where squares lose no digits.
    """
    center = bases.mean(axis=0, dtype=np.float64)
    return squared_distances(rows - center, bases - center)


def gaussian(squares: FloatArray, bandwidth: float) -> FloatArray:
    """Return the basis functions of squared distances, of any shape."""
    # Divided twice: the square of a tiny bandwidth would be zero. Overflow means far away.
    with np.errstate(over="ignore"):
        values: FloatArray = squares / bandwidth
        values /= bandwidth
    values *= -0.5
    return np.exp(values, out=values)


def gaussian_mixture(
    rows: FloatArray, bases: FloatArray, coefficients: FloatArray, bandwidth: float
) -> FloatArray:
    r""":math:`\sum_l \theta_l \varphi_l(x)` of rows (n, d), in tiles of rows.

    Coefficients are (b,), or (b, k) for k sums at once.
    """
    values = np.empty((len(rows), *coefficients.shape[1:]))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        values[part] = gaussian(squares_to_bases(rows[part], bases), bandwidth) @ coefficients
    return values
