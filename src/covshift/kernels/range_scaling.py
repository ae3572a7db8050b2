r"""Scaling of features so that given rows fill a range.

.. math::

    s = \text{middle} + \text{width} \cdot \frac{x - \text{center}}{\text{spread}}

with center and spread the middle and the width of the feature's values, and middle and width
those of the range. A constant feature has spread 1, hence stands in the middle.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray


def center_and_spread(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle and width of the values of each feature, shape (m,), for X of shape (n, m)."""
    low, high = X.min(axis=0), X.max(axis=0)
    spread = high - low
    # The middle of two numbers, without their sum.
    return low + spread / 2, np.where(spread > 0, spread, np.ones_like(spread))


def into_range(
    X: FloatArray, center: FloatArray, spread: FloatArray, middle: float, width: float
) -> FloatArray:
    """Scale rows, in the precision of X; nothing is clipped."""
    return ((X - center) / spread * width + middle).astype(X.dtype, copy=False)


def out_of_range(
    S: FloatArray, center: FloatArray, spread: FloatArray, middle: float, width: float
) -> FloatArray:
    """Undo `into_range`."""
    return ((S - middle) / width * spread + center).astype(S.dtype, copy=False)
