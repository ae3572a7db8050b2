r"""The optimal transport between two Gaussians, which is linear.

.. math::

    A = C_\text{from}^{-1/2}
        \bigl(C_\text{from}^{1/2} \, C_\text{to} \, C_\text{from}^{1/2}\bigr)^{1/2}
        C_\text{from}^{-1/2}, \qquad z = m_\text{to} + A (x - m_\text{from})

Of all maps that turn the first Gaussian into the second, it moves rows least in the mean of
squared distances. A is symmetric, so it may stand on either side of a row.

References
----------
G. Peyré, M. Cuturi, "Computational optimal transport", 2019, remark 2.31.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.covariance import square_roots


def monge_matrix(C_from: FloatArray, C_to: FloatArray) -> FloatArray:
    """Matrix A (m, m), symmetric."""
    # Scaled to variances of at most one: their product must not leave the range of a double.
    size_from, size_to = (float(np.diagonal(C).max()) or 1.0 for C in (C_from, C_to))
    root, inverse = square_roots(C_from / size_from)
    middle, _ = square_roots(root @ (C_to / size_to) @ root)
    A: FloatArray = np.sqrt(size_to / size_from) * (inverse @ middle @ inverse)
    return A
