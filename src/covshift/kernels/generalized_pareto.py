r"""Generalised Pareto distribution fitted to excesses over a threshold.

.. math:: P(X > x) = (1 + k x / \sigma)^{-1/k}, \qquad x \ge 0

Zhang and Stephens (2009) write :math:`\theta = -k / \sigma`. Given :math:`\theta`, the shape that
maximises the likelihood and the log-likelihood there are

.. math:: k(\theta) = \frac1n \sum_i \log(1 - \theta x_i), \qquad
          \ell(\theta) = n \big( \log(-\theta / k(\theta)) - k(\theta) - 1 \big),

and the estimate is the mean of :math:`\theta` over a grid, weighted by :math:`e^{\ell(\theta)}`:
nearly as efficient as maximum likelihood, without its failures. The sign of k is that of Vehtari
et al. (positive: heavy tail), the opposite of Zhang and Stephens'.
"""

import numpy as np
from scipy.special import softmax

from covshift.kernels.arrays import FloatArray


def fit_generalized_pareto(excesses: FloatArray) -> tuple[float, float]:
    """Shape k and scale sigma of positive excesses (n,), in any order."""
    x = np.sort(excesses)
    n = len(x)
    # The grid of Zhang and Stephens: 30 + sqrt(n) points below the largest theta that the largest
    # excess allows, spread by three times the first quartile.
    n_points = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    spread = 1 - np.sqrt(n_points / (np.arange(n_points) + 0.5))
    theta = 1 / x[-1] + spread / (3 * quartile)
    shape, scale = _given_theta(theta, x)
    log_likelihood = -n * (np.log(scale) + shape + 1)
    theta = softmax(log_likelihood) @ theta
    shape, scale = _given_theta(np.array([theta]), x)
    return float(shape[0]), float(scale[0])


def shrink_shape(shape: float, n: int) -> float:
    """Shape moved towards .5 as if by ten more excesses: the prior of Vehtari et al.

    It steadies short tails and hardly touches long ones.
    """
    return (n * shape + 10 * 0.5) / (n + 10)


def _given_theta(theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Most likely shape and scale for each theta (m,), given excesses x (n,)."""
    shape = np.log1p(-np.outer(theta, x)).mean(axis=1)
    # At theta = 0 the distribution is exponential, with the mean as its scale.
    exponential = theta == 0
    scale = np.where(exponential, x.mean(), -shape / np.where(exponential, 1.0, theta))
    return shape, scale
