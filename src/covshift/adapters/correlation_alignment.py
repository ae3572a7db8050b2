r"""Correlation alignment (CORAL): covariances, their roots, and the map between two of them.

The covariance of rows X (n, m) is shrunk toward its own diagonal,

.. math::

    C = \tfrac{1}{n} \sum_i (x_i - \bar x)(x_i - \bar x)^\top, \qquad
    C_a = (1 - a)\, C + a \, \operatorname{diag}(C),

so that every variance stays as measured and units of measurement do not matter. The
intensity of Ledoit and Wolf is that of the standardized rows
:math:`z_{ij} = (x_{ij} - \bar x_j) / \sqrt{C_{jj}}` with correlations R:

.. math::

    a = \min\Bigl(1, \frac{\tfrac{1}{n} \bigl(\tfrac{1}{n} \sum_i \lVert z_i \rVert^4
        - \lVert R \rVert_F^2\bigr)}{\lVert R \rVert_F^2 - (\operatorname{tr} R)^2 / m}\Bigr),

with m the number of features that vary: a constant has no correlations.

References
----------
O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
Journal of Multivariate Analysis 88(2), 2004.
"""

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_scalar

from covshift.base import RefitNeededError, UnitAdapter, check_option
from covshift.domains import Unit, locate_units, role_of
from covshift.kernels.array_types import FloatArray, IntArray, Rows
from covshift.kernels.feature_scales import is_constant
from covshift.kernels.gaussian_kernels import TILE_ROWS
from covshift.streams import OpenRows, RowStream
from covshift.streams.moments import scatter_about, stream_means, tiles_by_code

# Which role moves, and which stays.
ROLES = {"source_to_target": ("source", "target"), "target_to_source": ("target", "source")}
# Variances below have no inverse in double precision.
TINY = float(np.finfo(np.float64).tiny) * 16


class Moments(NamedTuple):
    """Mean (m,), shrunk covariance (m, m) and the intensity used, of one group."""

    mean: FloatArray
    covariance: FloatArray
    shrinkage: float


def _measure_moments(
    rows: OpenRows, units: Mapping[Unit, IntArray], shrinkage: float | None
) -> dict[Unit, Moments]:
    """Return the moments of each unit, given the numbers of its rows."""
    return rows.measure(
        units,
        lambda X, unit: mean_and_covariance(X, shrinkage),
        lambda stream, codes, n_units: _stream_moments(
            stream, stream.split(codes), n_units, shrinkage
        ),
    )


def mean_and_covariance(X: FloatArray, shrinkage: float | None) -> Moments:
    """Return the mean and the shrunk covariance that CORAL takes of rows in memory.

    In double precision; ``shrinkage`` None: Ledoit and Wolf's.
    """
    mean = column_means(X)
    covariance = scatter_matrix(X, mean) / len(X)
    _drop_constants(covariance, mean, len(X))
    if shrinkage is None:
        shrinkage = _ledoit_wolf_intensity(X, mean, covariance)
    _shrink(covariance, shrinkage)
    return Moments(mean, covariance, shrinkage)


def column_means(X: FloatArray) -> FloatArray:
    """Return the mean (m,) that correlation alignment takes of rows (n, m), in double precision.

    einsum takes half the time of X.mean.
    """
    means: FloatArray = np.einsum("ij->j", X, dtype=np.float64) / len(X)
    return means


def scatter_matrix(X: FloatArray, mean: FloatArray) -> FloatArray:
    r"""Return the scatter matrix (m, m) that correlation alignment takes of rows (n, m).

    It is :math:`\sum_i (x_i - \bar x)(x_i - \bar x)^\top`.
    """
    total = np.zeros((X.shape[1], X.shape[1]))
    for centered in _centered_tiles(X, mean):
        total += centered.T @ centered
    return total


def _centered_tiles(X: FloatArray, mean: FloatArray) -> Iterator[FloatArray]:
    """Rows about the mean, some at a time: a copy of all would cost more than the products."""
    for start in range(0, len(X), TILE_ROWS):
        yield X[start : start + TILE_ROWS] - mean


def _drop_constants(covariance: FloatArray, mean: FloatArray, n: npt.ArrayLike) -> None:
    """Set the covariances (..., m, m) of features to zero that are constant, in place."""
    constant = is_constant(np.diagonal(covariance, axis1=-2, axis2=-1), mean, n)
    covariance[constant[..., :, None] | constant[..., None, :]] = 0.0


def _shrink(covariance: FloatArray, shrinkage: float) -> None:
    """Shrink a covariance (m, m) toward its diagonal, in place."""
    if shrinkage > 0:
        variances = np.diagonal(covariance).copy()
        covariance *= 1 - shrinkage
        np.fill_diagonal(covariance, variances)


def _ledoit_wolf_intensity(X: FloatArray, mean: FloatArray, covariance: FloatArray) -> float:
    """Intensity a, between 0 and 1, from rows (n, m), their mean and their covariance (m, m).

    The fourth powers of the rows' lengths take the place of the second m x m product over
    the rows that `sklearn.covariance.ledoit_wolf_shrinkage` makes; the value is the same.
    """
    precisions = _precisions_of(covariance)
    fourths = sum(
        float(np.square(np.square(centered, out=centered) @ precisions).sum())  # of lengths of z
        for centered in _centered_tiles(X, mean)
    )
    return _intensity_from(fourths, len(X), covariance)


def _precisions_of(covariance: FloatArray) -> FloatArray:
    """Return one over each variance (m,); zero where there is none."""
    variances = np.diagonal(covariance)
    precisions: FloatArray = np.divide(
        1, variances, out=np.zeros(len(variances)), where=variances > TINY
    )
    return precisions


def _intensity_from(fourths: float, n: int, covariance: FloatArray) -> float:
    """Return the intensity a from the sum of the fourth powers of the lengths of the n rows z."""
    precisions, variances = _precisions_of(covariance), np.diagonal(covariance)
    m = max(1, int(np.count_nonzero(precisions)))
    roots = np.sqrt(precisions)
    R_squares = float(np.square(roots[:, None] * covariance * roots).sum())
    trace = float((variances * precisions).sum())
    dispersion = R_squares - trace**2 / m
    noise = (fourths / n - R_squares) / n
    rounding = 16 * m * float(np.finfo(np.float64).eps) * R_squares
    if noise <= 0 or dispersion <= rounding:
        return 0.0  # nothing off the diagonal: there is nothing to shrink
    return float(min(1.0, noise / dispersion))


def _stream_moments(
    stream: RowStream, codes: Any, n_groups: int, shrinkage: float | None
) -> list[Moments]:
    """Return the moments of the rows of each code of a stream, in two passes or three."""
    counts, means = stream_means(stream, codes, n_groups)
    ones, each = np.ones_like(means), np.arange(n_groups)
    (scatter,) = stream.sums(scatter_about, codes, means, ones, each, n_groups)
    covariances = scatter / counts[:, :1, None]
    _drop_constants(covariances, means, counts)
    if shrinkage is not None:
        intensities = [shrinkage] * n_groups
    else:
        precisions = np.stack([_precisions_of(covariance) for covariance in covariances])
        (fourths,) = stream.sums(_fourth_powers, codes, means, precisions)
        intensities = [
            _intensity_from(float(fourth), int(count), covariance)
            for fourth, count, covariance in zip(fourths, counts[:, 0], covariances, strict=True)
        ]
    found = [Moments(*of_group) for of_group in zip(means, covariances, intensities, strict=True)]
    for group in found:
        _shrink(group.covariance, group.shrinkage)
    return found


def _fourth_powers(
    rows: Rows, codes: IntArray, means: FloatArray, precisions: FloatArray
) -> tuple[FloatArray]:
    r"""Return the sums (U,) of :math:`\lVert z_i \rVert^4` of standardized rows."""
    total = np.zeros(len(means))
    for code, tile in tiles_by_code(rows, codes, len(means)):
        total[code] += float(np.square(np.square(tile - means[code]) @ precisions[code]).sum())
    return (total,)


def square_roots(C: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return the symmetric roots :math:`C^{1/2}` and :math:`C^{-1/2}` of a covariance (m, m).

    Directions whose variance is below the rounding error of the largest one have none: both
    roots are zero there (the inverse is the pseudo-inverse).
    """
    values, vectors = np.linalg.eigh(C)
    floor = max(float(values[-1]) * len(C) * np.finfo(values.dtype).eps, TINY)
    kept = values > floor
    roots = np.sqrt(np.where(kept, values, 0.0))
    inverses = np.divide(1, roots, out=np.zeros_like(roots), where=kept)
    return (vectors * roots) @ vectors.T, (vectors * inverses) @ vectors.T


def _recoloring(C_from: FloatArray, C_to: FloatArray) -> FloatArray:
    r"""Return the matrix A (m, m) by which centered rows are multiplied from the right.

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

    def _learn(self, rows, units, sample_domain):
        moving, still = ROLES[self.direction]
        if still not in units:
            self._store({})
            return
        own = {unit: which for unit, which in units.items() if role_of(unit) == moving}
        # All of them at once: rows in blocks are then read no more often than for one.
        found = _measure_moments(rows, own | {still: units[still]}, self._intensity())
        self.reference_mean_, self.reference_covariance_, _ = found.pop(still)
        self._store({unit: self._map_from(moments) for unit, moments in found.items()})

    def _measure(self, rows, units):
        found = _measure_moments(rows, units, self._intensity())
        return {unit: self._map_from(moments) for unit, moments in found.items()}

    def _map_from(self, moments):
        """Return the stored statistics of a unit with these moments."""
        matrix = self._matrix(moments.covariance, self.reference_covariance_)
        shift = self._shift(moments.mean, self.reference_mean_)
        return moments.mean, matrix, shift, np.asarray(moments.shrinkage)

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
        How far covariances are shrunk toward their diagonals: by Ledoit and Wolf's formula,
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
        return _recoloring(C_from, C_to)

    def _shift(self, mean_from, mean_to):
        return mean_to if self.align_mean else mean_from
