r"""Variances and scales of features, where rounding is not taken for variation.

The mean of n equal numbers x need not be x: 0.1, repeated 1,000 times, has a variance of about
1e-34. Divided by its root, what differs in the last digit would become as large as a true feature.
A feature is constant if

.. math:: \sigma^2 \le n \epsilon \, \sigma^2 + (n \epsilon \, \bar x)^2

with the rounding error :math:`\epsilon` of a double: a mean of n numbers is off by
:math:`n \epsilon \, |\bar x|` at most, and a sum of n squares by :math:`n \epsilon` of itself.
Smaller variances cannot be distinguished from zero. `sklearn.preprocessing.StandardScaler` has the
same bound.

References
----------
T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance: analysis and
recommendations", The American Statistician 37(3), 1983.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from covshift.kernels.array_types import BoolArray, FloatArray

EPSILON = float(np.finfo(np.float64).eps)


def is_constant(variances: npt.ArrayLike, means: npt.ArrayLike, n: npt.ArrayLike) -> BoolArray:
    """Return whether variances of n numbers in double precision are no more than rounding."""
    rounding = np.asarray(n) * EPSILON
    bound = rounding * np.asarray(variances) + (rounding * np.asarray(means)) ** 2
    constant: BoolArray = np.asarray(variances) <= bound
    return constant


def feature_variances(X: Any) -> FloatArray:
    """Variance (m,) of rows (n, m), or of numbers (n,); zero where it is rounding."""
    variances = X.var(axis=0, dtype=np.float64)
    constant = is_constant(variances, X.mean(axis=0, dtype=np.float64), len(X))
    found: FloatArray = np.where(constant, 0.0, variances)
    return found


def feature_deviations(X: Any) -> FloatArray:
    """Return standard deviations of features: the roots of these variances."""
    deviations: FloatArray = np.sqrt(feature_variances(X))
    return deviations


def feature_scales(X: Any) -> FloatArray:
    """Return what features are divided by: their standard deviation, or 1 if they are constant."""
    deviations = feature_deviations(X)
    scales: FloatArray = np.where(deviations > 0, deviations, 1.0)
    return scales
