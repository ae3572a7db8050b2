r"""Subspace alignment: principal directions of two samples, and the map between them.

With the first P principal directions of the source, T (m, P), and of the target, U (m, P),

.. math::

    Z_\text{source} = X \, T \, (T^\top U), \qquad Z_\text{target} = X \, U.

:math:`M = T^\top U` minimises :math:`\lVert T M - U \rVert_F`. With P = m it is a rotation,
:math:`T T^\top` is the identity and both samples are turned alike.

References
----------
B. Fernando, A. Habrard, M. Sebban, T. Tuytelaars, "Unsupervised visual domain adaptation
using subspace alignment", ICCV 2013.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray


def principal_directions(X: FloatArray, n_components: int) -> FloatArray:
    """First directions (n_components, m) of the rows X (n, m) about their mean, as rows.

    Of two opposite directions, the one whose largest entry is positive.
    """
    centred = X - X.mean(axis=0, dtype=np.float64)
    n, m = centred.shape
    size = max(float(centred.max()), -float(centred.min()))
    if size > 0 and not 1e-100 < size < 1e100:
        centred /= size  # squares stay in range, and directions do not depend on it
    if n >= m:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        directions = vectors[:, ::-1].T
    else:
        directions = np.linalg.svd(centred, full_matrices=False)[2]
    directions = directions[:n_components]
    largest = np.abs(directions).argmax(axis=1)
    flipped: FloatArray = directions * np.where(
        directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0
    ).reshape(-1, 1)
    return flipped
