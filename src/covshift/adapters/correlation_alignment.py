"""Correlation alignment (CORAL): its matrix, what it shares with the linear Monge map, itself."""

from numbers import Real

import numpy as np
from sklearn.utils import check_scalar

from covshift.adapters._unit_adapter import UnitAdapter, measure_stream
from covshift.base import RefitNeededError, check_option
from covshift.domains import locate_units, pick_rows, role_of
from covshift.kernels.arrays import FloatArray
from covshift.kernels.covariance import mean_and_covariance, square_roots
from covshift.streams import RowStream
from covshift.streams.moments import stream_moments

# Which role moves, and which stays.
ROLES = {"source_to_target": ("source", "target"), "target_to_source": ("target", "source")}


def recoloring(C_from: FloatArray, C_to: FloatArray) -> FloatArray:
    r"""Matrix A (m, m) by which centered rows are multiplied from the right.

    .. math:: A = C_\text{from}^{-1/2} \, C_\text{to}^{1/2}

    It whitens with one covariance and colors with another: for rows of covariance
    :math:`C_\text{from}`, that of the result is :math:`A^\top C_\text{from} A = C_\text{to}`.
    """
    _, whiten = square_roots(C_from)
    color, _ = square_roots(C_to)
    return whiten @ color


class LinearAlignment(UnitAdapter):
    """Base of CORAL and the linear Monge map: one role moves by x -> (x - m) A + shift.

    Each unit of the moving role is mapped onto the pooled rows of the other role. A subclass has
    ``_matrix(C_from, C_to)`` and ``_shift(mean_from, mean_to)``.
    """

    _statistics = ("means_", "matrices_", "shifts_", "shrinkages_")
    _without_target = "rows stay as they are"

    def _check_new_target(self):
        if self.direction == "source_to_target":
            raise RefitNeededError(
                f"{type(self).__name__} with direction='source_to_target' moved the source onto "
                "the old target: refit it on the source rows and the rows of the new target, or "
                "use direction='target_to_source'."
            )

    def _check_parameters(self):
        super()._check_parameters()
        check_option("direction", self.direction, ROLES)
        if isinstance(self.shrinkage, str) or self.shrinkage is None:
            check_option("shrinkage", self.shrinkage, ("auto", None))
        else:
            check_scalar(self.shrinkage, "shrinkage", Real, min_val=0, max_val=1)
            if np.isnan(self.shrinkage):
                raise ValueError("shrinkage must be 'auto', None or between 0 and 1, got nan.")

    def _learn(self, X, units, sample_domain):
        moving, still = ROLES[self.direction]
        own = {unit: rows for unit, rows in units.items() if role_of(unit) == moving}
        if still not in units:
            self._store({})
            return
        if isinstance(X, RowStream):  # all of them in the same passes
            moments = measure_stream(self._moments_of_stream, X, own | {still: units[still]})
            self.reference_mean_, self.reference_covariance_, _ = moments.pop(still)
            self._store({unit: self._map_from(*known) for unit, known in moments.items()})
            return
        mean, covariance, _ = mean_and_covariance(pick_rows(X, units[still]), self._intensity())
        self.reference_mean_, self.reference_covariance_ = mean, covariance
        super()._learn(X, own, sample_domain)

    def _measure(self, X):
        return self._map_from(*mean_and_covariance(X, self._intensity()))

    def _measure_stream(self, stream, codes, n_units):
        return [self._map_from(*known) for known in self._moments_of_stream(stream, codes, n_units)]

    def _moments_of_stream(self, stream, codes, n_units):
        return stream_moments(stream, stream.split(codes), n_units, self._intensity())

    def _map_from(self, mean, covariance, shrinkage):
        """Stored statistics of a unit with these moments."""
        matrix = self._matrix(covariance, self.reference_covariance_)
        return mean, matrix, self._shift(mean, self.reference_mean_), np.asarray(shrinkage)

    def _intensity(self):
        return {"auto": None, None: 0.0}.get(self.shrinkage, self.shrinkage)

    def _locate(self, domain):
        # The role that stays comes first, and so does a role of which nothing is known.
        return locate_units([ROLES[self.direction][1], *self.units_], domain) - 1

    def _apply(self, X, unit):
        # In double precision: large means would leave float32 few digits.
        return (X - self.means_[unit]) @ self.matrices_[unit] + self.shifts_[unit]


class CorrelationAlignment(LinearAlignment):
    r"""Correlation alignment (CORAL): give the rows of one role the covariance of the other.

    .. math::

        z = (x - m_\text{from}) \, C_\text{from}^{-1/2} \, C_\text{to}^{1/2} + m

    with m the mean of the other role (``align_mean=True``) or of the row's own. Rows of the
    other role stay as they are.

    **Assumption**: the domains differ by a linear mixing of their features, and after
    whitening the same classes lie in the same places. Whitening keeps no more than that: if
    a class differs in its share between the domains, or the axes of largest variance have
    another meaning in each, the recolored rows end up in the wrong place and it harms.

    Parameters
    ----------
    direction : {"source_to_target", "target_to_source"}, default="source_to_target"
        Which role moves. "source_to_target" is the published method; with
        "target_to_source" a fitted predictor stays valid and ``adapt_target`` can learn
        further targets.
    align_mean : bool, default=True
        True: means are aligned too. False: the moving rows keep their own mean, as in the
        publication, whose features were standardized first, so that means agreed already.
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
        Matrix that multiplies the centered rows of each unit, from the right.
    shifts_ : ndarray of shape (n_units, n_features)
        Row that is added to them then.
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
    by a factor of about 1e7) count as none: standardize such features first. Without
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
        return recoloring(C_from, C_to)

    def _shift(self, mean_from, mean_to):
        return mean_to if self.align_mean else mean_from
