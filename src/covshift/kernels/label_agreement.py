r"""How much the predictions of several classifiers agree, chance taken out.

Of two predictions a and b of the same n rows, with K classes, Cohen's

.. math::

    \kappa(a, b) = \frac{o - e}{1 - e}, \qquad
    o = \tfrac{1}{n} \#\{i : a_i = b_i\}, \qquad
    e = \sum_{k=1}^{K} \tfrac{1}{n} \#\{i : a_i = k\} \, \tfrac{1}{n} \#\{i : b_i = k\};

where e = 1, both predict one and the same class for all rows, and the agreement means nothing:
0. The share of a committee that names each row's class is a vote of its members.

References
----------
J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
Measurement 20(1), 1960.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


def one_hot(codes: IntArray, n_classes: int) -> FloatArray:
    """Return the indicators (..., n_classes) of class numbers (...)."""
    indicators: FloatArray = (codes[..., None] == np.arange(n_classes)).astype(np.float64)
    return indicators


def pairwise_kappa(predictions: IntArray, n_classes: int) -> FloatArray:
    """Cohen's kappa (c, c) of every two of c predictions (c, n)."""
    n_candidates, n_rows = predictions.shape
    H = one_hot(predictions, n_classes)
    flat = H.reshape(n_candidates, -1)
    observed = flat @ flat.T / n_rows
    shares = H.mean(axis=1)
    expected = shares @ shares.T
    # Shares are whole numbers over n: sums of their products are one only up to rounding.
    possible = 1 - expected > n_rows * np.finfo(np.float64).eps
    kappa: FloatArray = np.divide(
        observed - expected, 1 - expected, out=np.zeros_like(observed), where=possible
    )
    return kappa


def committee_shares(predictions: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
    """Return the share (n, n_classes) of the weight (c,) that votes for each class of each row."""
    H = one_hot(predictions, n_classes)
    shares: FloatArray = np.einsum("c,cnk->nk", weights / weights.sum(), H)
    return shares
