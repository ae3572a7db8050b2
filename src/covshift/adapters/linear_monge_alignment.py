"""The linear Monge map: the optimal transport between two Gaussians."""

import numpy as np

from covshift.adapters.correlation_alignment import LinearAlignment, square_roots
from covshift.kernels.array_types import FloatArray


def monge_matrix(C_from: FloatArray, C_to: FloatArray) -> FloatArray:
    r"""Return the matrix A (m, m) of the optimal transport between Gaussians of two covariances.

    .. math::

        A = C_\text{from}^{-1/2}
            \bigl(C_\text{from}^{1/2} \, C_\text{to} \, C_\text{from}^{1/2}\bigr)^{1/2}
            C_\text{from}^{-1/2}

    Of all maps that turn the first Gaussian into the second, it moves rows least in the mean of
    squared distances. A is symmetric, so it may stand on either side of a row.
    """
    # Scaled to variances of at most one: their product must not leave the range of a double.
    size_from, size_to = (float(np.diagonal(C).max()) or 1.0 for C in (C_from, C_to))
    root, inverse = square_roots(C_from / size_from)
    middle, _ = square_roots(root @ (C_to / size_to) @ root)
    A: FloatArray = np.sqrt(size_to / size_from) * (inverse @ middle @ inverse)
    return A


class LinearMongeAlignment(LinearAlignment):
    r"""Optimal transport between Gaussians: move one role onto the other, as little as possible.

    .. math::

        z = m_\text{to} + A (x - m_\text{from}), \qquad
        A = C_\text{from}^{-1/2}
            \bigl(C_\text{from}^{1/2} C_\text{to} C_\text{from}^{1/2}\bigr)^{1/2}
            C_\text{from}^{-1/2}

    Means and covariances agree afterward, as with `CorrelationAlignment`; of all the linear
    maps that achieve it, this one moves the rows least. Rows of the other role stay as they
    are.

    **Assumption**: the domains differ by a linear map that is a positive stretching along
    some axes, and a label moves with its row. A shift that turns or mirrors the rows is
    undone by another map than the shortest one, and where class proportions differ between
    the domains, rows are pushed across the boundary: there it harms.

    Parameters
    ----------
    direction, pooling, min_domain_size
        As in `CorrelationAlignment`.
    shrinkage : "auto", float in [0, 1] or None, default="auto"
        How far covariances are shrunk toward their diagonals: by Ledoit and Wolf's formula,
        by a given share, or not at all. Without shrinkage a Gaussian is mapped exactly onto
        the other.

    Attributes
    ----------
    units_, means_, shrinkages_, reference_mean_, reference_covariance_, domains_, domain_names_
        As in `CorrelationAlignment`.
    matrices_ : ndarray of shape (n_units, n_features, n_features)
        A of each unit.
    shifts_ : ndarray of shape (n_units, n_features)
        Row that is added: the mean of the role that stays.

    Notes
    -----
    Directions in which the moving rows have no variance cannot be given any: there, rows get
    the mean of the other role. Variances that differ by more than the precision of a double
    (scales by a factor of about 1e7) count as none: standardize such features first. Without
    ``sample_domain`` rows stay as they are, with a warning.

    **Cost**: O(n m² + m³) time to fit, O(n m²) to transform; O(m²) memory for each unit.

    References
    ----------
    R. Flamary, K. Lounici, A. Ferrari, "Concentration bounds for linear Monge mapping
    estimation and optimal transport domain adaptation", 2019.
    G. Peyré, M. Cuturi, "Computational optimal transport", 2019, remark 2.31.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import LinearMongeAlignment
    >>> X, sample_domain = np.array([[0.0], [2.0], [10.0], [30.0]]), [0, 0, -1, -1]
    >>> monge = LinearMongeAlignment().fit(X, sample_domain=sample_domain)
    >>> monge.transform([[0.0], [1.0], [2.0]], sample_domain=0).ravel().round(6)
    array([10., 20., 30.])
    """

    def __init__(
        self,
        *,
        direction="source_to_target",
        shrinkage="auto",
        pooling="role",
        min_domain_size=10,
    ):
        self.direction = direction
        self.shrinkage = shrinkage
        self.pooling = pooling
        self.min_domain_size = min_domain_size

    def _matrix(self, C_from, C_to):
        return monge_matrix(C_from, C_to)

    def _shift(self, mean_from, mean_to):
        return mean_to
