r"""Probabilities of classes: from scores, and for other class shares.

**From scores**, by one temperature and one offset a class:

.. math::

    p_{ik} \propto \exp(a \, s_{ik} + b_k), \qquad
    \min_{a > 0,\, b} \; - \frac{\sum_i w_i \log p_{i y_i}}{\sum_i w_i}
        + \frac{1}{2 n} \bigl((\log a)^2 + \lVert b \rVert^2\bigr)

for finite scores :math:`s` (n, K), margins or logarithms of probabilities. The penalty, worth one
row, with a in units of the scores' own spread, keeps a finite where scores separate the classes.

This is vector scaling (Guo et al.) with one slope for all classes, which Alexandari et al. call
bias-corrected temperature scaling.

**Class shares of unlabeled rows**. Where only the class shares differ, P(x | y) being the same, the
shares :math:`\pi'` that maximize the likelihood of the rows are found by expectation and
maximization from shares :math:`\pi`:

.. math::

    q_{ik} \propto p_{ik} \, \pi'_k / \pi_k, \qquad
    \pi'_k = \frac{\sum_i q_{ik} + a n \pi_k}{n (1 + a)}.

With a = 0 these are the most likely shares. They are mostly noise where probabilities say little
about the class. A prior worth a n rows with shares :math:`\pi`, a > 0, then keeps them near
:math:`\pi`.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum likelihood with bias-corrected calibration is
hard-to-beat at label shift adaptation", ICML 2020.
M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a priori
probabilities: a simple procedure", Neural Computation 14(1), 2002.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import EPSILON

# A class with less than this part of an equal share makes accuracy and balanced accuracy differ
# visibly.
UNBALANCED = 0.5

LARGEST_LOG = 12.0  # of the temperature and of its inverse: scores of any sane scale


class Scaling(NamedTuple):
    """Slope a and offsets b (K,)."""

    slope: float
    offsets: FloatArray


def fit_scaling(
    scores: FloatArray, codes: IntArray, weights: FloatArray, *, with_offsets: bool = True
) -> Scaling:
    """Fit the slope and offsets that turn scores (n, K) into probabilities, by known classes.

    The rows have class numbers ``codes`` (n,) and ``weights`` (n,).

    Without offsets the order of the classes stays that of the scores.
    """
    n, n_classes = scores.shape
    shares = weights / weights.sum()
    rows = np.arange(n)
    # In units of their own spread, so that the start, a = 1, is near for scores of any scale.
    spread = float(np.sqrt(shares @ np.square(scores - scores.mean(axis=1, keepdims=True)).mean(1)))
    # Equal scores differ by the rounding of their mean.
    scale = 1.0 / spread if spread > n_classes * EPSILON * float(np.abs(scores).max()) else 1.0
    scaled = scores * scale

    def loss(parameters: FloatArray) -> tuple[float, Any]:
        log_slope, offsets = parameters[0], parameters[1:]
        slope = np.exp(log_slope)
        log_p = log_softmax(slope * scaled + offsets, axis=1)
        residual = np.exp(log_p)
        residual[rows, codes] -= 1.0
        residual *= shares[:, None]
        gradient = np.concatenate([[slope * np.sum(residual * scaled)], residual.sum(axis=0)])
        value = -shares @ log_p[rows, codes] + parameters @ parameters / (2 * n)
        return float(value), gradient + parameters / n

    offset_bounds = (None, None) if with_offsets else (0.0, 0.0)
    bounds = [(-LARGEST_LOG, LARGEST_LOG), *[offset_bounds] * n_classes]
    found = minimize(loss, np.zeros(1 + n_classes), jac=True, method="L-BFGS-B", bounds=bounds)
    return Scaling(float(np.exp(found.x[0]) * scale), found.x[1:])


def scaled_probabilities(scores: FloatArray, scaling: Scaling) -> FloatArray:
    """Return the probabilities (n, K) of classes, from scores (n, K)."""
    p: FloatArray = softmax(scaling.slope * scores + scaling.offsets, axis=1)
    return p


MAX_STEPS = 1000
CONVERGED_SHARES = 1e-8  # change of the shares


def shares_from_probabilities(P: FloatArray, shares: FloatArray, prior: float = 0.0) -> FloatArray:
    """Estimate, from probabilities P (n, K) made for ``shares``, the class shares (K,) of rows.

    ``prior`` is the weight of ``shares`` as a part of the number of rows. A class whose share is
    zero keeps it.
    """
    estimate = shares.copy()
    for _ in range(MAX_STEPS):
        previous = estimate
        ratios = np.divide(estimate, shares, out=np.zeros_like(shares), where=shares > 0)
        estimate = (reweigh_probabilities(P, ratios).mean(axis=0) + prior * shares) / (1 + prior)
        if np.abs(estimate - previous).max() <= CONVERGED_SHARES:
            break
    return estimate


def reweigh_probabilities(P: FloatArray, ratios: FloatArray) -> FloatArray:
    """Return probabilities (n, K) for other class shares: each class weighed by a ratio (K,)."""
    products = P * ratios
    totals = products.sum(axis=1, keepdims=True)
    reweighed: FloatArray = np.divide(products, totals, out=P.astype(np.float64), where=totals > 0)
    return reweighed


def class_shares(codes: IntArray, n_classes: int, weights: FloatArray | None = None) -> FloatArray:
    """Return the prior probabilities (K,) of classes: their shares of rows, or of the weight."""
    counts = np.bincount(codes, weights=weights, minlength=n_classes)
    shares: FloatArray = counts / counts.sum()
    return shares


def is_unbalanced(shares: FloatArray) -> bool:
    """Return whether a class is less than half as probable as among equal shares."""
    return bool(np.min(shares) < UNBALANCED / len(shares))
