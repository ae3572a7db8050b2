r"""How far apart sparse filtering can send two rows, given their directions.

With soft absolute values :math:`a = \sqrt{(D W u)^2 + \epsilon D^2 / \lVert x \rVert^2}`,
:math:`D = \text{diag}(1 / t)`, :math:`u = x / \lVert x \rVert`, the representation is
:math:`z = a / \lVert a \rVert`. Entry by entry the reverse triangle inequality gives

.. math::

    \lVert a_1 - a_2 \rVert^2 \le g^2 = \lVert D W \rVert_2^2 \; 2 \delta
    + \epsilon \, (1 / \lVert x_1 \rVert - 1 / \lVert x_2 \rVert)^2 \sum_j t_j^{-2},
    \qquad \delta = 1 - \lvert \cos(x_1, x_2) \rvert

and dividing by lengths (Dunkl and Williams, for the second)

.. math::

    \lVert z_1 - z_2 \rVert \le \frac{2 g}{\max(\lVert a_1 \rVert, \lVert a_2 \rVert)},
    \qquad
    \lVert z_1 - z_2 \rVert \le \frac{2 g}{\lVert a_1 \rVert + \lVert a_2 \rVert}.
"""

import numpy as np

from covshift.kernels.activations import activate
from covshift.kernels.arrays import FloatArray


def neighbourhood_bounds(
    X1: FloatArray, X2: FloatArray, W: FloatArray, t: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both bounds for the pairs of rows of X1 and X2 (P, m), and their condition, each (P,).

    The condition, ||D W|| over the larger length of a, is the factor by which rounding
    grows. All are infinite where a row, or its projection, is zero.
    """
    spectral = np.linalg.norm(W / t[:, None], 2)
    length1, length2 = np.linalg.norm(X1, axis=1), np.linalg.norm(X2, axis=1)
    a1 = np.linalg.norm(activate(X1 @ W.T, "abs", epsilon) / t, axis=1)
    a2 = np.linalg.norm(activate(X2 @ W.T, "abs", epsilon) / t, axis=1)
    known = (length1 > 0) & (length2 > 0) & (a1 + a2 > 0)
    length1, length2 = np.where(known, length1, 1.0), np.where(known, length2, 1.0)
    a1, a2 = np.where(known, a1, 1.0) / length1, np.where(known, a2, 1.0) / length2
    U1, U2 = X1 / length1[:, None], X2 / length2[:, None]
    # The chord: sqrt(2 delta) without the cancellation in 1 - |cos|.
    chords = np.minimum(np.linalg.norm(U1 - U2, axis=1), np.linalg.norm(U1 + U2, axis=1))
    offsets = np.sqrt(epsilon) * np.linalg.norm(1 / t) * (1 / length1 - 1 / length2)
    gaps = np.hypot(spectral * chords, offsets)
    larger, both = np.maximum(a1, a2), a1 + a2
    bounds, sharp_bounds, conditions = (
        np.where(known, value, np.inf)
        for value in (2 * gaps / larger, 2 * gaps / both, spectral / larger)
    )
    return bounds, sharp_bounds, conditions
