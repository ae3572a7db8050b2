"""Correlation alignment."""

from covshift.adapters._linear_alignment import LinearAlignment
from covshift.kernels.correlation_alignment import recolouring


class CorrelationAlignment(LinearAlignment):
    r"""Correlation alignment (CORAL): give the rows of one role the covariance of the other.

    .. math::

        z = (x - m_\text{from}) \, C_\text{from}^{-1/2} \, C_\text{to}^{1/2} + m

    with m the mean of the other role (``align_mean=True``) or of the row's own. Rows of the
    other role stay as they are.

    **Assumption**: the domains differ by a linear mixing of their features, and after
    whitening the same classes lie in the same places. Whitening keeps no more than that: if
    a class differs in its share between the domains, or the axes of largest variance have
    another meaning in each, the recoloured rows end up in the wrong place and it harms.

    Parameters
    ----------
    direction : {"source_to_target", "target_to_source"}, default="source_to_target"
        Which role moves. "source_to_target" is the published method; with
        "target_to_source" a fitted predictor stays valid and ``adapt_target`` can learn
        further targets.
    align_mean : bool, default=True
        True: means are aligned too. False: the moving rows keep their own mean, as in the
        publication, whose features were standardised first, so that means agreed already.
    shrinkage : "auto", float in [0, 1] or None, default="auto"
        How far covariances are shrunk towards their diagonals: by Ledoit and Wolf's formula,
        by a given share, or not at all. Without shrinkage the covariance after alignment is
        exactly that of the other role.
    pooling : {"role", "domain"}, default="role"
        Units that are moved: the whole role, or each domain of it by itself, always onto the
        pooled rows of the other role.
    min_domain_size : int, default=10
        A domain with fewer rows moves as its role does.

    Attributes
    ----------
    units_ : list
        Names of the units that move: the integers of domains, then their role; empty if the
        fit saw no target.
    means_ : ndarray of shape (n_units, n_features)
        Mean of each unit.
    matrices_ : ndarray of shape (n_units, n_features, n_features)
        What multiplies the centred rows of each unit, from the right.
    shifts_ : ndarray of shape (n_units, n_features)
        What is added to them then.
    shrinkages_ : ndarray of shape (n_units,)
        Shrinkage of each unit's covariance.
    reference_mean_, reference_covariance_ : ndarrays
        Mean and (shrunk) covariance of the role that stays.
    domains_, domain_names_
        As in `DomainStandardScaler`.

    Notes
    -----
    Directions in which the moving rows have no variance cannot be given any: there, rows get
    the value of ``m``. Variances that differ by more than the precision of a double (scales
    by a factor of about 1e7) count as none: standardise such features first. Without
    ``sample_domain`` rows stay as they are, with a warning.

    **Cost**: O(n m² + m³) time to fit, O(n m²) to transform; O(m²) memory for each unit.

    References
    ----------
    B. Sun, J. Feng, K. Saenko, "Return of frustratingly easy domain adaptation", AAAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import CorrelationAlignment
    >>> rng = np.random.RandomState(0)
    >>> X = rng.normal(size=(400, 2))
    >>> X[200:] = X[200:] @ [[2.0, 1.0], [0.0, 0.5]]
    >>> sample_domain = np.repeat([0, -1], 200)
    >>> coral = CorrelationAlignment(shrinkage=None)
    >>> Z = coral.fit_transform(X, sample_domain=sample_domain)
    >>> np.allclose(np.cov(Z[:200].T), np.cov(Z[200:].T))
    True
    """

    def __init__(
        self,
        *,
        direction="source_to_target",
        align_mean=True,
        shrinkage="auto",
        pooling="role",
        min_domain_size=10,
    ):
        self.direction = direction
        self.align_mean = align_mean
        self.shrinkage = shrinkage
        self.pooling = pooling
        self.min_domain_size = min_domain_size

    def _matrix(self, C_from, C_to):
        return recolouring(C_from, C_to)

    def _shift(self, mean_from, mean_to):
        return mean_to if self.align_mean else mean_from
