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
from covshift.kernels.covariance import column_means, scatter


def principal_directions(X: FloatArray, n_components: int) -> FloatArray:
    """First directions (n_components, m) of the rows X (n, m) about their mean, as rows.

    Of two opposite directions, the one whose largest entry is positive.
    """
    mean = column_means(X)
    n, m = X.shape
    if n >= m:
        return directions_of_scatter(_scatter_in_range(X, mean), n_components)
    return _signed(np.linalg.svd(X - mean, full_matrices=False)[2][:n_components])


def directions_of_scatter(S: FloatArray, n_components: int) -> FloatArray:
    """The same from the scatter matrix S (m, m) of the rows."""
    _, vectors = np.linalg.eigh(S)
    return _signed(vectors[:, ::-1].T[:n_components])


def _signed(directions: FloatArray) -> FloatArray:
    largest = np.abs(directions).argmax(axis=1)
    flipped: FloatArray = directions * np.where(
        directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0
    ).reshape(-1, 1)
    return flipped


def _scatter_in_range(X: FloatArray, mean: FloatArray) -> FloatArray:
    """Scatter matrix (m, m), or a multiple of it whose entries neither overflow nor vanish."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        S = scatter(X, mean)
    if 1e-200 < float(np.diagonal(S).max()) < 1e200:
        return S
    size = float(np.abs(X - mean).max())
    return scatter((X - mean) / size, np.zeros_like(mean)) if size > 0 else S
