r"""Whether y and d are independent given x, from the residuals of both given x.

With residuals :math:`R_{ik} = [y_i = k] - \hat P(k \mid x_i)` and
:math:`D_{im} = [d_i = m] - \hat P(m \mid x_i)`, both of rows that took no part in the fits, and
functions :math:`w_j(x_i)`,

.. math::

    T = \max_{k, m, j} \; \sqrt{n} \,
        \frac{|\operatorname{mean}_i \Pi_{i,kmj}|}{\operatorname{sd}_i \Pi_{i,kmj}},
    \qquad \Pi_{i,kmj} = R_{ik} \, D_{im} \, w_j(x_i).

If y and d are independent given x, all means tend to zero, even if one of both fits is poor, as the
errors enter as a product. The distribution of T is that of the same maximum with each centered row
of :math:`\Pi` multiplied by a normal number of its own.

References
----------
R. D. Shah, J. Peters, "The hardness of conditional independence testing and the generalized
covariance measure", Annals of Statistics 48, 2020. C. Scheidegger, J. Hörrmann, P. Bühlmann, "The
weighted generalized covariance measure", JMLR 23, 2022.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray


def residual_products(R: FloatArray, D: FloatArray, W: FloatArray) -> FloatArray:
    """Return the products (n, K M J) of residuals (n, K), (n, M) and functions of x (n, J)."""
    products: FloatArray = np.einsum("ik,im,ij->ikmj", R, D, W).reshape(len(R), -1)
    return products


def largest_covariance(
    products: FloatArray, n_resamples: int, rng: np.random.RandomState
) -> tuple[float, float]:
    """T of products (n, P), and its p-value; 0 and 1, if no product varies."""
    n = len(products)
    means, spreads = products.mean(axis=0), products.std(axis=0)
    # Spreads that are rounding errors of zero would make anything of their means.
    varies = spreads > 1e-9 * max(float(spreads.max(initial=0.0)), 1e-300)
    if not varies.any():
        return 0.0, 1.0
    scaled = (products[:, varies] - means[varies]) / spreads[varies]
    statistic = float(np.sqrt(n) * np.max(np.abs(means[varies] / spreads[varies])))
    drawn = np.abs(rng.standard_normal((n_resamples, n)) @ scaled / np.sqrt(n)).max(axis=1)
    return statistic, float((1 + np.sum(drawn >= statistic)) / (1 + n_resamples))
