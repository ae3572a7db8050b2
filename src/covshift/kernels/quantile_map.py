r"""Ranks by interpolation between stored quantiles, and their normal scores.

Q quantiles of a feature stand at the references :math:`r_k = k / (Q - 1)`. The rank of x is
the middle of its two interpolated distribution functions, which differ only at ties,

.. math::

    u = \tfrac{1}{2} \bigl(\max\{r : q(r) \le x\} + \min\{r : q(r) \ge x\}\bigr),
    \qquad z = \Phi^{-1}\bigl(\min(\max(u, t), 1 - t)\bigr), \quad t = 10^{-7},

where q(r) interpolates the quantiles linearly; x below all of them has rank 0, above all of
them rank 1. So a tied value is in the middle of its ties, a constant feature in the middle
of the range, and normal scores end at about :math:`\pm 5.2`, as in scikit-learn.
"""

import numpy as np
from scipy.special import ndtri

from covshift.kernels.arrays import FloatArray

END = 1e-7  # scikit-learn's BOUNDS_THRESHOLD
ROUNDING = 1e-9  # positions among the rows, up to millions, are whole numbers to this


def feature_quantiles(X: FloatArray, n_quantiles: int) -> FloatArray:
    """Quantiles (n_quantiles, m) of the rows X (n, m); missing values are left out.

    Quantiles that fall on a row are exactly its value, which those of `numpy.nanquantile`
    are not: there, rounding can tear ties apart.
    """
    ordered = np.sort(X, axis=0)  # NaN comes last
    last = np.maximum(np.sum(~np.isnan(X), axis=0) - 1, 0)
    position = np.linspace(0, 1, n_quantiles)[:, None] * last
    below = np.floor(position + ROUNDING).astype(np.int64)
    step = position - below
    step[step < ROUNDING] = 0.0
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=0)
    quantiles = np.where(low == high, low, (1 - step) * low + step * high)
    monotone: FloatArray = np.maximum.accumulate(quantiles, axis=0)  # rounding could break it
    return monotone


def quantile_ranks(X: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Ranks in [0, 1] of rows X (n, m) among quantiles (Q, m) of each feature.

    NaN stays NaN, and so does a feature without quantiles.
    """
    references = np.linspace(0, 1, len(quantiles))
    ranks = np.full(X.shape, np.nan)
    # In the precision of X, for values that were ties before they lost digits.
    for j, q in enumerate(quantiles.T.astype(X.dtype)):
        if not np.isnan(q[0]):
            highest = np.interp(X[:, j], q, references)
            lowest = -np.interp(-X[:, j], -q[::-1], -references[::-1])
            ranks[:, j] = (highest + lowest) / 2
    return ranks


def normal_scores(ranks: FloatArray) -> FloatArray:
    """Quantiles of the standard normal at ranks of any shape; NaN stays NaN."""
    scores: FloatArray = ndtri(np.clip(ranks, END, 1 - END))
    return scores
