r"""Correlation alignment (CORAL): whiten with one covariance, colour with another.

.. math::

    A = C_\text{from}^{-1/2} \, C_\text{to}^{1/2}, \qquad z = (x - m_\text{from}) A + m

For rows of covariance :math:`C_\text{from}`, that of z is
:math:`A^\top C_\text{from} A = C_\text{to}`.

References
----------
B. Sun, J. Feng, K. Saenko, "Return of frustratingly easy domain adaptation", AAAI 2016.
"""

from covshift.kernels.arrays import FloatArray
from covshift.kernels.covariance import square_roots


def recolouring(C_from: FloatArray, C_to: FloatArray) -> FloatArray:
    """Matrix A (m, m) by which centred rows are multiplied from the right."""
    _, whiten = square_roots(C_from)
    colour, _ = square_roots(C_to)
    return whiten @ colour
