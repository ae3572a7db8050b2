r"""Ranks by interpolation between stored quantiles, and their normal scores.

Q quantiles of a feature stand at the references :math:`r_k = k / (Q - 1)`. The rank of x is
the middle of its two interpolated distribution functions, which differ only at ties,

.. math::

    u = \tfrac{1}{2} \bigl(\max\{r : q(r) \le x\} + \min\{r : q(r) \ge x\}\bigr),
    \qquad z = \Phi^{-1}\bigl(\min(\max(u, t), 1 - t)\bigr), \quad t = 10^{-7},

where q(r) interpolates the quantiles linearly; x below all of them has rank 0, above all of
them rank 1. So a tied value is in the middle of its ties, a constant feature in the middle
of the range, and normal scores end at about :math:`\pm 5.2`, as in scikit-learn.
"""

import numpy as np
from scipy.special import ndtri

from covshift.base import UnitAdapter, check_count, check_option
from covshift.kernels.array_types import FloatArray
from covshift.streams import sample_rows
from covshift.streams.rows import warn_sampled

END = 1e-7  # scikit-learn's BOUNDS_THRESHOLD
POSITION_ROUNDING = 1e-9  # positions among the rows, up to millions, are whole numbers to this
# Rows of a unit that quantiles are found from, where rows come in blocks. By the inequality of
# Dvoretzky, Kiefer and Wolfowitz no rank is then off by more, with probability .95.
QUANTILE_ROWS = 100_000
RANK_ERROR = float(np.sqrt(np.log(2 / 0.05) / (2 * QUANTILE_ROWS)))


def feature_quantiles(X: FloatArray, n_quantiles: int) -> FloatArray:
    """Return the quantiles (n_quantiles, m) of the rows X (n, m); missing values are left out.

    Quantiles that fall on a row are exactly its value, which those of `numpy.nanquantile`
    are not: there, rounding can tear ties apart.
    """
    ordered = np.sort(X, axis=0)  # NaN comes last
    last = np.maximum(np.sum(~np.isnan(X), axis=0) - 1, 0)
    position = np.linspace(0, 1, n_quantiles)[:, None] * last
    below = np.floor(position + POSITION_ROUNDING).astype(np.int64)
    step = position - below
    step[step < POSITION_ROUNDING] = 0.0
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=0)
    quantiles = np.where(low == high, low, (1 - step) * low + step * high)
    monotone: FloatArray = np.maximum.accumulate(quantiles, axis=0)  # rounding could break it
    return monotone


def quantile_ranks(X: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Return the ranks in [0, 1] of rows X (n, m) among quantiles (Q, m) of each feature.

    NaN stays NaN, and so does a feature without quantiles.
    """
    references = np.linspace(0, 1, len(quantiles))
    ranks = np.full(X.shape, np.nan)
    # In the precision of X, for values that were ties before they lost digits.
    for j, q in enumerate(quantiles.T.astype(X.dtype)):
        if not np.isnan(q[0]):
            highest = np.interp(X[:, j], q, references)
            lowest = -np.interp(-X[:, j], -q[::-1], -references[::-1])
            ranks[:, j] = (highest + lowest) / 2
    return ranks


def _normal_scores(ranks: FloatArray) -> FloatArray:
    """Return the quantiles of the standard normal at ranks of any shape; NaN stays NaN."""
    scores: FloatArray = ndtri(np.clip(ranks, END, 1 - END))
    return scores


class DomainQuantileTransformer(UnitAdapter):
    r"""Replace each feature by its rank within the role or domain, as a normal score.

    .. math::

        z = \Phi^{-1}\bigl(\hat F_u(x)\bigr) \quad\text{or}\quad z = \hat F_u(x)

    with :math:`\hat F_u` the distribution function of the feature in unit :math:`u` (all
    sources, all targets, or each domain by itself), interpolated between stored quantiles.

    **Assumption**: domains differ by any increasing transformation of each single feature
    (gain, offset, saturation, another unit or scale), and a label depends on a row's ranks
    within its domain. It harms when ranks mean something else elsewhere, as when class
    proportions differ, and it leaves correlations between features as they are.

    Parameters
    ----------
    n_quantiles : int, default=1000
        Quantiles stored for each feature and unit; at most the number of the unit's rows.
    output_distribution : {"normal", "uniform"}, default="normal"
        Distribution of each feature in each unit afterward: standard normal, or uniform
        between 0 and 1.
    pooling : {"role", "domain"}, default="role"
        Units that share quantiles: all sources and all targets, or each domain by itself.
    min_domain_size : int, default=10
        A domain with fewer rows uses the quantiles of its role.

    Attributes
    ----------
    units_, domains_, domain_names_
        As in `DomainStandardScaler`.
    quantiles_ : list of ndarrays of shape (n_quantiles, n_features)
        Quantiles of each unit, at equal steps from its minimum to its maximum.

    Notes
    -----
    Values beyond the range seen at fit get its ends: 0 and 1, or about -5.2 and 5.2. Tied
    values get the middle of their ranks, so a feature that is constant in a unit is in the
    middle of the range; that, and quantiles of all rows instead of a random sample of them,
    is where this differs from scikit-learn's ``QuantileTransformer``, which puts all values
    tied at an end, and all within 1e-7 of it, at the end. Missing values (NaN) are left out
    of the quantiles and stay missing; a feature of which the fit saw no value in a domain
    uses the quantiles of its role.

    Of a Dask array or a large memory map, quantiles are those of 100,000 rows of each unit, with a
    warning that says how far off they may be.

    **Cost**: O(n m log n) time to fit and O(n m log q) to transform, with q quantiles; O(q m)
    memory for each unit, and a sorted copy of its rows while fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import DomainQuantileTransformer
    >>> X = np.array([[1.0], [2.0], [3.0], [10.0], [100.0], [1000.0]])
    >>> sample_domain = [0, 0, 0, -1, -1, -1]
    >>> ranks = DomainQuantileTransformer(output_distribution="uniform")
    >>> ranks.fit_transform(X, sample_domain=sample_domain).ravel()
    array([0. , 0.5, 1. , 0. , 0.5, 1. ])
    """

    _statistics = ("quantiles_",)
    _ragged = True
    _allow_nan = True
    _squares_rows = False

    def __init__(
        self,
        *,
        n_quantiles=1000,
        output_distribution="normal",
        pooling="role",
        min_domain_size=10,
    ):
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
        self.pooling = pooling
        self.min_domain_size = min_domain_size

    def _check_parameters(self):
        super()._check_parameters()
        check_count("n_quantiles", self.n_quantiles, minimum=2)
        check_option("output_distribution", self.output_distribution, ("normal", "uniform"))

    def _measure(self, rows, units):
        return rows.measure(units, self._measure_rows, self._measure_stream)

    def _measure_rows(self, X, unit=None):
        n_quantiles = max(2, min(self.n_quantiles, len(X)))
        return (feature_quantiles(X.astype(np.float64, copy=False), n_quantiles),)

    def _measure_stream(self, stream, codes, n_units):
        drawn = [sample_rows(codes == code, QUANTILE_ROWS) for code in range(n_units)]
        n_drawn, n_rows = sum(map(len, drawn)), int((codes < n_units).sum())
        if n_drawn < n_rows:
            warn_sampled(
                "Quantiles are found", n_drawn, n_rows,
                f"ranks are within {RANK_ERROR:.4f} of those among all rows, with probability .95",
            )  # fmt: skip
        return [self._measure_rows(stream.pick(rows)) for rows in drawn]

    def _complete(self, own, role):
        (own,), (role,) = own, role
        own = own.copy()
        at, known = np.linspace(0, 1, len(own)), np.linspace(0, 1, len(role))
        for feature in np.flatnonzero(np.isnan(own[0])):
            own[:, feature] = np.interp(at, known, role[:, feature])
        return (own,)

    def _apply(self, X, unit):
        ranks = quantile_ranks(X, self.quantiles_[unit])
        return _normal_scores(ranks) if self.output_distribution == "normal" else ranks
