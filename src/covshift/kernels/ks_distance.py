r"""Two-sample Kolmogorov-Smirnov statistic of every feature at once.

.. math:: D_j = \sup_x \lvert \hat P_{A,j}(x) - \hat P_{B,j}(x) \rvert

with :math:`\hat P` the empirical distribution functions of the columns of A and B.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


def ks_statistics(A: FloatArray, B: FloatArray) -> FloatArray:
    """D_j for each of the L columns of A (n, L) and B (k, L), shape (L,)."""
    pooled = np.concatenate([A, B])
    order = np.argsort(pooled, axis=0)
    pooled = np.take_along_axis(pooled, order, axis=0)
    # Whole numbers, scaled at the end: equal steps cancel exactly.
    steps = np.where(order < len(A), len(B), -len(A))
    difference = np.cumsum(steps, axis=0)[:-1]
    # Within a run of ties only the last value has passed all of the jump.
    difference[pooled[1:] == pooled[:-1]] = 0
    largest: IntArray = np.abs(difference).max(axis=0, initial=0)
    return largest / (len(A) * len(B))


def mean_ks_distance(A: FloatArray, B: FloatArray) -> float:
    """Mean of D_j over the features: the distance that the paper watches to stop early."""
    return float(ks_statistics(A, B).mean())
