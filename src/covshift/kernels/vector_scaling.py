r"""Turning the scores of a classifier into probabilities: one temperature, one offset a class.

.. math::

    p_{ik} \propto \exp(a \, s_{ik} + b_k), \qquad
    \min_{a > 0,\, b} \; - \frac{\sum_i w_i \log p_{i y_i}}{\sum_i w_i}
        + \frac{1}{2 n} \bigl((\log a)^2 + \lVert b \rVert^2\bigr)

for finite scores :math:`s` (n, K), margins or logarithms of probabilities. The penalty, worth one
row, with a in units of the scores' own spread, keeps a finite where scores separate the classes.

This is vector scaling (Guo et al.) with one slope for all classes, which Alexandari et al. call
bias-corrected temperature scaling.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
A. Alexandari, A. Kundaje, A. Shrikumar, "Maximum likelihood with bias-corrected calibration is
hard-to-beat at label shift adaptation", ICML 2020.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from covshift.kernels.arrays import FloatArray, IntArray

LARGEST_LOG = 12.0  # of the temperature and of its inverse: scores of any sane scale


class Scaling(NamedTuple):
    """Slope a and offsets b (K,)."""

    slope: float
    offsets: FloatArray


def fit_scaling(
    scores: FloatArray, codes: IntArray, weights: FloatArray, *, with_offsets: bool = True
) -> Scaling:
    """Fit slope and offsets to scores (n, K) of rows with class numbers (n,), weights (n,).

    Without offsets the order of the classes stays that of the scores.
    """
    n, n_classes = scores.shape
    shares = weights / weights.sum()
    rows = np.arange(n)
    # In units of their own spread, so that the start, a = 1, is near for scores of any scale.
    spread = float(np.sqrt(shares @ np.square(scores - scores.mean(axis=1, keepdims=True)).mean(1)))
    scale = 1.0 / spread if spread > 0 else 1.0
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
    """Return the probabilities (n, K) of scores (n, K)."""
    p: FloatArray = softmax(scaling.slope * scores + scaling.offsets, axis=1)
    return p
