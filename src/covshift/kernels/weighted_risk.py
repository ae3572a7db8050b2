r"""Risk on the target estimated from weighted losses on the source.

Losses :math:`\ell_i` of source rows that took no part in the fit, importance weights
:math:`w_i = p_{target}(x_i) / p_{source}(x_i)`:

.. math::

    \text{weighted} = \frac{\sum_i w_i \ell_i}{\sum_i w_i}, \qquad
    \text{DEV} = \tfrac{1}{n} \sum_i w_i \ell_i + \eta \bigl(\tfrac{1}{n} \sum_i w_i - 1\bigr),
    \qquad \eta = - \frac{\operatorname{cov}(w \ell, w)}{\operatorname{var}(w)}.

Both are means of the losses where all weights are one. DEV's control variate, whose mean is known
to be one, takes out what the weights' own spread adds to the estimate; weights that are all the
same have none to take out, and :math:`\eta = 0`.

References
----------
M. Sugiyama, M. Krauledat, K.-R. Müller, "Covariate shift adaptation by importance weighted cross
validation", JMLR 8, 2007. K. You, X. Wang, M. Long, M. I. Jordan, "Towards accurate model
selection in deep unsupervised domain adaptation", ICML 2019.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray

# Weights that differ by a smaller share are equal: a slope over rounding errors means nothing.
WEIGHT_ROUNDING = 1e-12


def weighted_mean(losses: FloatArray, weights: FloatArray) -> float:
    """Return the mean of losses (n,) weighted by weights (n,); NaN, if no row has weight."""
    total = weights.sum()
    return float(weights @ losses / total) if total > 0 else np.nan


def deep_embedded_validation(losses: FloatArray, weights: FloatArray) -> float:
    """Return the mean weighted loss with the control variate of the weights."""
    products = weights * losses
    eta = 0.0
    if np.ptp(weights) > WEIGHT_ROUNDING * weights.max():
        covariance = np.mean((products - products.mean()) * (weights - weights.mean()))
        eta = -float(covariance / weights.var())
    return float(products.mean() + eta * (weights.mean() - 1))
