r"""Class shares of unlabeled rows from probabilities made for other shares.

Where only the class shares differ, P(x | y) being the same, the shares :math:`\pi'` that maximize
the likelihood of the rows are found by expectation and maximization from shares :math:`\pi`:

.. math::

    q_{ik} \propto p_{ik} \, \pi'_k / \pi_k, \qquad
    \pi'_k = \frac{\sum_i q_{ik} + a n \pi_k}{n (1 + a)}.

With a = 0 these are the most likely shares. They are mostly noise where probabilities say little
about the class. A prior worth a n rows with shares :math:`\pi`, a > 0, then keeps them near
:math:`\pi`.

References
----------
M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
probabilities: a simple procedure", Neural Computation 14(1), 2002.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray

MAX_STEPS = 1000
CONVERGED_SHARES = 1e-8  # change of the shares


def estimate_shares(P: FloatArray, shares: FloatArray, prior: float = 0.0) -> FloatArray:
    """Return the shares (K,) of the rows with probabilities P (n, K) made for ``shares`` (K,).

    ``prior`` is the weight of ``shares`` as a part of the number of rows. A class whose share is
    zero keeps it.
    """
    estimate = shares.copy()
    for _ in range(MAX_STEPS):
        previous = estimate
        ratios = np.divide(estimate, shares, out=np.zeros_like(shares), where=shares > 0)
        estimate = (reweigh_classes(P, ratios).mean(axis=0) + prior * shares) / (1 + prior)
        if np.abs(estimate - previous).max() <= CONVERGED_SHARES:
            break
    return estimate


def reweigh_classes(P: FloatArray, ratios: FloatArray) -> FloatArray:
    """Return the probabilities (n, K) with each class weighed by a ratio (K,)."""
    products = P * ratios
    totals = products.sum(axis=1, keepdims=True)
    reweighed: FloatArray = np.divide(products, totals, out=P.astype(np.float64), where=totals > 0)
    return reweighed
