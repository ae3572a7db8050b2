"""Standardizing each domain by itself."""

import numpy as np
from scipy import sparse

from covshift.base import UnitAdapter
from covshift.streams.moments import measure_scales


class DomainStandardScaler(UnitAdapter):
    r"""Standardize features by the mean and standard deviation of each role or domain.

    .. math::

        z = \frac{x - \mu_u}{\sigma_u}

    with the mean :math:`\mu_u` and standard deviation :math:`\sigma_u` of each feature in
    unit :math:`u`: all sources, all targets, or each domain by itself.

    **Assumption**: domains differ in the location and scale of their features (microphones,
    sites, speakers), and a label depends on where a row lies within its own domain. It harms
    when the shift carries information: if domains differ because their class
    proportions differ, their means differ for a good reason, and equal means are wrong.

    Parameters
    ----------
    with_mean : bool, default=True
        Subtract the mean. Sparse rows need False, since they would become dense.
    with_std : bool, default=True
        Divide by the standard deviation; features that are constant in a unit, by one.
    pooling : {"role", "domain"}, default="role"
        Units that share statistics: all sources and all targets, or each domain by itself.
    min_domain_size : int, default=10
        A domain with fewer rows uses the statistics of its role.

    Attributes
    ----------
    units_ : list
        Names of the units: "source", "target"; with ``pooling="domain"`` the integer of each
        domain that is large enough before them.
    means_ : ndarray of shape (n_units, n_features)
        Mean of each unit; zeros with ``with_mean=False``.
    scales_ : ndarray of shape (n_units, n_features)
        Standard deviation of each unit (of the population, as in scikit-learn); ones for
        constant features and with ``with_std=False``.
    domains_ : ndarray
        Domains known, from the fit or from ``adapt_target``.
    domain_names_ : dict
        Integer -> name of the targets learned by name in ``adapt_target``.

    Notes
    -----
    Missing values (NaN) are left out of the statistics and stay missing. A feature of which
    the fit saw no value in a domain uses the statistics of its role. Without
    ``sample_domain`` this is scikit-learn's ``StandardScaler``.

    **Cost**: O(n m) time; O(m) memory for each unit beside the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import DomainStandardScaler
    >>> X, sample_domain = np.array([[0.0], [2.0], [10.0], [30.0]]), [0, 0, -1, -1]
    >>> scaler = DomainStandardScaler().fit(X, sample_domain=sample_domain)
    >>> scaler.transform(X, sample_domain=sample_domain).ravel()
    array([-1.,  1., -1.,  1.])
    """

    _statistics = ("means_", "scales_")
    _allow_nan = True

    def __init__(self, *, with_mean=True, with_std=True, pooling="role", min_domain_size=10):
        self.with_mean = with_mean
        self.with_std = with_std
        self.pooling = pooling
        self.min_domain_size = min_domain_size

    def _measure(self, rows, units):
        return measure_scales(rows, units, with_mean=self.with_mean, with_std=self.with_std)

    def _complete(self, own, role):
        return tuple(
            np.where(np.isnan(value), pooled, value)
            for value, pooled in zip(own, role, strict=True)
        )

    def _transform_located(self, X, position):
        if not sparse.issparse(X):
            return super()._transform_located(X, position)
        row_of_entry = np.repeat(position, np.diff(X.indptr))
        scales = self.scales_[row_of_entry, X.indices].astype(X.dtype)
        return type(X)((X.data / scales, X.indices, X.indptr), shape=X.shape)

    def _apply(self, X, unit):
        mean, scale = self.means_[unit].astype(X.dtype), self.scales_[unit].astype(X.dtype)
        Z = X - mean
        Z /= scale
        return Z

    def _accepts_sparse(self):
        return not self.with_mean

    def _open(self, X, **options):
        if self.with_mean and sparse.issparse(X):
            raise TypeError("Sparse rows cannot be centered and stay sparse: use with_mean=False.")
        return super()._open(X, **options)
