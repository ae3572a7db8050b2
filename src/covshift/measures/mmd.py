r"""Maximum mean discrepancy, exact and approximate, and how much a representation lowers it.

.. math::

    \mathrm{MMD}^2 = \mathbb{E}\,k(a, a') + \mathbb{E}\,k(b, b') - 2\,\mathbb{E}\,k(a, b),
    \qquad k(x, y) = \tfrac{1}{S} \sum_s \exp\Bigl(-\frac{\lVert x - y \rVert^2}{2 \sigma_s^2}\Bigr)

The unbiased estimate leaves out the pairs of a row with itself and can be negative; the
biased one keeps them. No array larger than a tile of the kernel matrix is made.

References
----------
A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from covshift.kernels.array_types import FloatArray
from covshift.kernels.feature_scales import feature_variances
from covshift.kernels.gaussian_kernels import TILE_ROWS, Kernel, rbf_kernel
from covshift.measures.sample_checks import check_distances, check_two_samples

Bandwidth = Literal["median"] | float | Sequence[float]

MEDIAN_ROWS = 2000  # rows for the median distance, which varies by 1 % between samples
# Permuted statistics this close to the observed one, relative to their spread, count as
# ties: a permutation that leaves the samples as they are must not miss by rounding.
TIE = 1e-9


class Estimate(NamedTuple):
    """A value and the standard error of its estimation.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error; NaN where it cannot be determined.
    """

    value: float
    standard_error: float


def mmd(
    A: Any,
    B: Any,
    *,
    kernel: Literal["rbf"] | Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    unbiased: bool = True,
) -> float:
    r"""Return the squared maximum mean discrepancy between two samples of rows.

    .. math:: \mathrm{MMD}^2 = \mathbb{E}\,k(a, a') + \mathbb{E}\,k(b, b') - 2\,\mathbb{E}\,k(a, b)

    Zero where both samples come from one distribution, at most 2 with the Gaussian kernel.

    Parameters
    ----------
    A, B : array-like of shape (n, d) and (k, d)
        Two samples; the unbiased estimate needs two rows of each.
    kernel : "rbf" or callable, default="rbf"
        Gaussian kernel :math:`\exp(-\lVert x - y \rVert^2 / (2 \sigma^2))`, or a function of
        two arrays of rows that returns the matrix of their kernel values.
    bandwidth : "median", float or sequence of float, default="median"
        :math:`\sigma`: the median distance between rows of the pooled sample (see
        `median_bandwidth`), a number, or several, whose kernels are averaged. To compare
        distances in one space give the same number to each call.
    unbiased : bool, default=True
        Leave out the pairs of a row with itself. The estimate can then be negative.

    Returns
    -------
    float

    Notes
    -----
    Time grows with (n + k)², memory with n + k: the kernel matrix is summed in tiles. For
    large samples see `approximate_mmd`.

    **Cost**: O((n + k)² d) time; memory for the rows and tiles of 8 MB.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import mmd
    >>> rng = np.random.RandomState(0)
    >>> A, B = rng.randn(200, 2), rng.randn(100, 2) + [1, 0]
    >>> round(mmd(A, B), 3)
    0.101
    """
    A, B = check_two_samples(A, B, min_rows=2 if unbiased else 1)
    A, B, resolved = _resolve_kernel(A, B, kernel, bandwidth)
    return _mmd_squared(A, B, resolved, unbiased=unbiased)


def approximate_mmd(
    A: Any,
    B: Any,
    *,
    kernel: Literal["rbf"] | Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    block_size: int = 500,
    random_state: Any = None,
) -> Estimate:
    """Return the unbiased estimate of MMD² in time linear in the rows, with its standard error.

    Both samples are shuffled and cut into blocks; the result is the mean of the blocks'
    unbiased estimates, whose spread gives the standard error (Zaremba et al., 2013).

    Parameters
    ----------
    A, B, kernel, bandwidth
        As in `mmd`.
    block_size : int, default=500
        Rows of the smaller sample in a block. Larger blocks are slower and less noisy.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.

    Returns
    -------
    Estimate
        ``value`` and ``standard_error``; the latter needs two blocks, and is NaN with one,
        where the value is the exact one.

    Notes
    -----
    **Cost**: O((n + k) b d) time for blocks of b rows; memory for the rows and one block's
    kernel.

    References
    ----------
    W. Zaremba, A. Gretton, M. Blaschko, "B-test: a non-parametric, low variance kernel
    two-sample test", NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import approximate_mmd
    >>> rng = np.random.RandomState(0)
    >>> A, B = rng.randn(20000, 2), rng.randn(20000, 2) + [1, 0]
    >>> value, error = approximate_mmd(A, B, random_state=0)
    >>> round(value, 3), round(error, 4)
    (0.116, 0.0026)
    """
    A, B = check_two_samples(A, B, min_rows=2)
    if block_size < 2:
        raise ValueError(f"block_size must be at least 2, got {block_size}.")
    rng = check_random_state(random_state)
    A, B, resolved = _resolve_kernel(A, B, kernel, bandwidth)
    n_blocks = max(1, min(len(A), len(B)) // block_size)
    parts = zip(
        np.array_split(rng.permutation(len(A)), n_blocks),
        np.array_split(rng.permutation(len(B)), n_blocks),
        strict=True,
    )
    values = [_mmd_squared(A[a], B[b], resolved, unbiased=True) for a, b in parts]
    error = np.std(values, ddof=1) / np.sqrt(n_blocks) if n_blocks > 1 else np.nan
    return Estimate(float(np.mean(values)), float(error))


def median_bandwidth(A: Any, B: Any, *, max_rows: int = MEDIAN_ROWS) -> float:
    """Return the bandwidth that MMD takes: the median distance between two different rows.

    Above ``max_rows`` rows, evenly spaced ones of each sample, in its share, stand for all.
    Where more than half of the distances are zero, the mean of the others is taken; where
    all are zero, one.

    Parameters
    ----------
    A, B : array-like of shape (n, d) and (k, d)
        Two samples.
    max_rows : int, default=2000
        Largest number of rows to compare.

    Returns
    -------
    float

    Notes
    -----
    **Cost**: O(r² d) time and O(r²) memory for the r rows compared, at most ``max_rows``.

    Examples
    --------
    >>> from covshift.measures import median_bandwidth
    >>> median_bandwidth([[0.0], [1.0]], [[3.0]])
    2.0
    """
    A, B = check_two_samples(A, B)
    keep = min(1.0, max_rows / (len(A) + len(B)))
    rows = np.concatenate([_evenly(A, keep), _evenly(B, keep)]).astype(np.float64)
    check_distances(rows, rows)
    rows[:, feature_variances(rows) == 0] = 0.0  # rounding is not a distance
    distances = pdist(rows)
    median = float(np.median(distances)) if len(distances) else 0.0
    if median == 0 and distances.any():
        median = float(distances[distances > 0].mean())
    return median or 1.0


def _resolve_kernel(
    A: FloatArray, B: FloatArray, kernel: Any, bandwidth: Any
) -> tuple[FloatArray, FloatArray, Kernel]:
    """Return the samples as the kernel takes them, and the kernel as a function.

    For the Gaussian kernel both are moved by the same vector to around zero, where squared
    distances lose no digits.
    """
    if callable(kernel):
        return A, B, kernel
    if kernel != "rbf":
        raise ValueError(f"kernel must be 'rbf' or a function of two arrays, got {kernel!r}.")
    check_distances(A, B)
    if isinstance(bandwidth, str):
        if bandwidth != "median":
            raise ValueError(f"bandwidth must be 'median' or numbers, got {bandwidth!r}.")
        bandwidth = median_bandwidth(A, B)
    bandwidths = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64))
    if bandwidths.ndim > 1 or not len(bandwidths) or not (bandwidths > 0).all():
        raise ValueError(f"bandwidth must be positive, got {bandwidth!r}.")
    center = A.mean(axis=0)
    return A - center, B - center, rbf_kernel(bandwidths)


def _evenly(rows: FloatArray, share: float) -> FloatArray:
    if share >= 1:
        return rows
    count = max(2, round(share * len(rows)))
    chosen: FloatArray = rows[np.linspace(0, len(rows) - 1, count).astype(int)]
    return chosen


@dataclass(frozen=True)
class MMDTest:
    """Result of `mmd_test`.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of MMD².
    pvalue : float
        Share of permutations with a statistic as large, the observed one among them.
    effect_size : float
        MMD² again. It estimates a property of the two distributions, from 0 to 2, whatever the
        number of rows; with many rows every p-value is small.
    permuted : ndarray of shape (n_permutations,)
        Statistics under permutation.
    """

    statistic: float
    pvalue: float
    effect_size: float
    permuted: FloatArray


def mmd_test(
    A: Any,
    B: Any,
    *,
    kernel: Literal["rbf"] | Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    n_permutations: int = 999,
    random_state: Any = None,
) -> MMDTest:
    r"""Test whether two samples come from one distribution, by MMD.

    Rows are exchanged between the samples at random; under the null hypothesis the observed
    statistic is as likely to be the largest as any other, so the p-value
    :math:`(1 + \#\{T_b \ge T\}) / (1 + B)` has its level at any sample size.

    Parameters
    ----------
    A, B, kernel, bandwidth
        As in `mmd`. The bandwidth is estimated once, on the pooled sample, which no
        permutation changes.
    n_permutations : int, default=999
        Number B of permutations.
    random_state : int, RandomState or None, default=None
        Seed of the permutations.

    Returns
    -------
    MMDTest

    Notes
    -----
    The kernel matrix is computed once, in tiles, and multiplied by all permutations
    together: memory grows with (n + k) · B. Do not test a representation on the rows that
    it was fitted on: it looks closer than it is (see `held_out_mmd_change`).

    **Cost**: O((n + k)² (d + B)) time and O((n + k) B) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import mmd_test
    >>> rng = np.random.RandomState(0)
    >>> mmd_test(rng.randn(60, 2), rng.randn(40, 2) + [1, 0], random_state=0).pvalue
    0.002
    """
    A, B = check_two_samples(A, B, min_rows=2)
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}.")
    rng = check_random_state(random_state)
    A, B, resolved = _resolve_kernel(A, B, kernel, bandwidth)
    rows = np.concatenate([A, B])
    n, total = len(A), len(rows)
    member = np.zeros((total, n_permutations + 2))  # column 0: as observed; the last: all rows
    member[:n, 0] = 1
    for column in range(1, n_permutations + 1):
        member[rng.permutation(total)[:n], column] = 1
    member[:, -1] = 1
    statistics = _statistics(rows, member, n, resolved)
    observed, permuted = float(statistics[0]), statistics[1:]
    margin = TIE * (np.abs(statistics).max() + np.ptp(statistics))
    as_large = int((permuted >= observed - margin).sum())
    pvalue = (1 + as_large) / (1 + n_permutations)
    return MMDTest(observed, pvalue, observed, permuted)


def _statistics(rows: FloatArray, member: FloatArray, n: int, kernel: Kernel) -> FloatArray:
    """Unbiased MMD² of each split of the rows; column p of ``member`` marks the first sample."""
    k = len(rows) - n
    product, diagonal = _apply_kernel(rows, member, kernel)
    row_sums, member = product[:, -1], member[:, :-1]
    first = np.einsum("ij,ij->j", member, product[:, :-1])  # sums over pairs, i = j included
    either = row_sums @ member  # sums over pairs whose one row is in the first sample
    own = diagonal @ member
    within_first = (first - own) / (n * (n - 1))
    second = row_sums.sum() - 2 * either + first
    within_second = (second - (diagonal.sum() - own)) / (k * (k - 1))
    statistics: FloatArray = within_first + within_second - 2 * (either - first) / (n * k)
    return statistics


# --- By how much a representation brings two samples together ---


# Rows of both samples -> their representations.
Represent: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class MMDChange:
    """Result of `mmd_change`.

    Attributes
    ----------
    before, after : float
        Unbiased estimates of MMD² in the two spaces.
    change : float
        From the one to the other, in percent; below -100 where ``after`` is negative. NaN where
        ``before`` is not positive: there was no distance to change.
    interval : tuple of two floats
        Bootstrap percentile interval of ``change``.
    """

    before: float
    after: float
    change: float
    interval: tuple[float, float]


def mmd_change(
    A: Any,
    B: Any,
    Z_A: Any,
    Z_B: Any,
    *,
    kernel: Literal["rbf"] | Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    n_resamples: int = 999,
    confidence: float = 0.95,
    random_state: Any = None,
) -> MMDChange:
    """Return the percentage change of MMD² from a space to a representation of the same rows.

    Parameters
    ----------
    A, B : array-like of shape (n, d) and (k, d)
        Two samples of rows.
    Z_A, Z_B : array-like of shape (n, L) and (k, L)
        Their representations. If they were learned from these very rows they look closer
        than they are: use other rows, or `held_out_mmd_change`.
    kernel, bandwidth
        As in `mmd`; the median bandwidth is estimated again in each space.
    n_resamples : int, default=999
        Bootstrap resamples. A row drawn twice makes no pair with itself.
    confidence : float, default=0.95
        Confidence of the interval.
    random_state : int, RandomState or None, default=None
        Seed of the bootstrap.

    Returns
    -------
    MMDChange

    Notes
    -----
    **Cost**: O((n + k)² (d + B)) time for B resamples, and O((n + k) B) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import mmd_change
    >>> rng = np.random.RandomState(0)
    >>> A, B = rng.randn(200, 2), rng.randn(100, 2) + [2, 0]
    >>> result = mmd_change(A, B, A - A.mean(axis=0), B - B.mean(axis=0), random_state=0)
    >>> result.interval[0] < result.change < result.interval[1] < -90
    True
    """
    A, B = check_two_samples(A, B, min_rows=2)
    Z_A, Z_B = check_two_samples(Z_A, Z_B, min_rows=2, names=("Z_A", "Z_B"))
    if (len(A), len(B)) != (len(Z_A), len(Z_B)):
        raise ValueError(
            f"Z_A and Z_B must represent the rows of A and B, {len(A)} and {len(B)}; got "
            f"{len(Z_A)} and {len(Z_B)}."
        )
    rng = check_random_state(random_state)
    before = mmd(A, B, kernel=kernel, bandwidth=bandwidth)
    after = mmd(Z_A, Z_B, kernel=kernel, bandwidth=bandwidth)
    counts = [
        rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).T.astype(np.float64)
        for n in (len(A), len(B))
    ]
    resampled = [
        _resampled_mmd(*_resolve_kernel(first, second, kernel, bandwidth), *counts)
        for first, second in ((A, B), (Z_A, Z_B))
    ]
    usable = resampled[0] > 0
    if before <= 0 or not usable.any():
        return MMDChange(before, after, np.nan, (np.nan, np.nan))
    changes = percentage_change(resampled[0][usable], resampled[1][usable])
    low, high = np.quantile(changes, [(1 - confidence) / 2, (1 + confidence) / 2])
    change = float(percentage_change(before, after))
    return MMDChange(before, after, change, (float(low), float(high)))


def held_out_mmd_change(
    fit: Callable[[Any, Any], Represent],
    A: Any,
    B: Any,
    *,
    share: float = 0.5,
    random_state: Any = None,
    **options: Any,
) -> MMDChange:
    """Return `mmd_change` for rows that the representation was not fitted on.

    A representation is flexible enough to pull the rows that it saw together; only other
    rows tell whether the distributions came closer.

    Parameters
    ----------
    fit : callable
        ``fit(A_part, B_part)`` returns a function of rows of both samples that returns
        their representations.
    A, B : array-like of shape (n, d) and (k, d)
        Two samples of rows.
    share : float, default=0.5
        Share of each sample, drawn at random, to fit on.
    random_state : int, RandomState or None, default=None
        Seed of the split and the bootstrap.
    **options
        ``kernel``, ``bandwidth``, ``n_resamples`` and ``confidence`` of `mmd_change`.

    Returns
    -------
    MMDChange
        Measured on the rows that ``fit`` did not get.

    Notes
    -----
    **Cost**: that of ``fit``, and of `mmd_change` on the rows held out.

    Examples
    --------
    >>> from covshift import SparseFiltering, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> from covshift.measures import held_out_mmd_change
    >>> def fit(source, target):
    ...     X, _, sample_domain = stack_domains(source, None, target)
    ...     sf = SparseFiltering(2, random_state=0).fit(X, sample_domain=sample_domain)
    ...     return lambda s, t: (sf.transform(s, sample_domain=0), sf.transform(t))
    >>> data = make_radial_shift(random_state=0)
    >>> held_out_mmd_change(fit, data.X_source, data.X_test, random_state=0).change < -90
    True
    """
    A, B = check_two_samples(A, B, min_rows=4)
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}.")
    rng = check_random_state(random_state)
    (fit_A, test_A), (fit_B, test_B) = (_split(rows, share, rng) for rows in (A, B))
    represent = fit(fit_A, fit_B)
    return mmd_change(test_A, test_B, *represent(test_A, test_B), random_state=rng, **options)


def _resampled_mmd(
    A: FloatArray, B: FloatArray, kernel: Kernel, counts_A: FloatArray, counts_B: FloatArray
) -> FloatArray:
    """Unbiased MMD² of each bootstrap resample; column p counts how often a row was drawn."""
    n, columns = len(A), counts_A.shape[1]
    counts = np.zeros((n + len(B), 2 * columns))
    counts[:n, :columns], counts[n:, columns:] = counts_A, counts_B
    product, diagonal = _apply_kernel(np.concatenate([A, B]), counts, kernel)
    squares = np.square(counts)
    # Pairs of two different rows; drawing a row twice adds no pair.
    sums = np.einsum("ij,ij->j", counts, product) - diagonal @ squares
    pairs = np.square(counts.sum(axis=0)) - squares.sum(axis=0)
    within = np.divide(sums, pairs, out=np.zeros_like(sums), where=pairs > 0)
    between = np.einsum("ij,ij->j", counts[:, :columns], product[:, columns:])
    between /= n * len(B)
    resampled: FloatArray = within[:columns] + within[columns:] - 2 * between
    return resampled


def _split(
    rows: FloatArray, share: float, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    order = rng.permutation(len(rows))
    cut = min(max(round(share * len(rows)), 2), len(rows) - 2)
    return rows[order[:cut]], rows[order[cut:]]


def percentage_change(before: Any, after: Any) -> float | FloatArray:
    r"""Return the change in percent of the start: :math:`100 \, (after - before) / before`.

    Parameters
    ----------
    before, after : float or array-like
        Finite values without and with adaptation, of shapes that broadcast; ``before`` must
        not be zero.

    Returns
    -------
    change : float or ndarray
        A float if both are numbers.

    Notes
    -----
    The unbiased estimate of MMD² may be negative where two samples do not differ: ``after``
    can then fall below -100 %. With a negative ``before`` the sign of the change is
    reversed, and the percentage has no meaning.

    **Cost**: O(n) time and memory.

    Examples
    --------
    >>> from covshift.measures import percentage_change
    >>> percentage_change(0.5, 0.75)
    50.0
    >>> percentage_change([0.5, 0.25], [0.25, -0.0625])
    array([ -50., -125.])
    """
    before, after = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    for name, values in (("before", before), ("after", after)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must hold finite numbers: it has NaN or infinity.")
    if (before == 0).any():
        raise ValueError("before must not be zero: a change from zero has no percentage.")
    change: FloatArray = np.asarray(100.0 * (after - before) / before)
    return float(change) if change.ndim == 0 else change


def _mmd_squared(A: FloatArray, B: FloatArray, kernel: Kernel, *, unbiased: bool) -> float:
    """Estimate of MMD² from samples A (n, d) and B (k, d)."""
    n, k = len(A), len(B)
    between = sum(float(tile.sum(dtype=np.float64)) for _, _, tile in _tiles(A, B, kernel))
    within = _within(A, kernel, unbiased) + _within(B, kernel, unbiased)
    return within - 2 * between / (n * k)


def _apply_kernel(rows: FloatArray, V: FloatArray, kernel: Kernel) -> tuple[FloatArray, FloatArray]:
    """The product K V of the kernel matrix of ``rows`` (n, d) with V (n, p), and K's diagonal."""
    product, diagonal = np.empty_like(V), np.empty_like(V, shape=len(rows))
    for start in range(0, len(rows), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        tile = kernel(rows[part], rows).astype(V.dtype, copy=False)
        product[part] = tile @ V
        diagonal[part] = np.diagonal(tile, offset=start)
    return product, diagonal


def _within(A: FloatArray, kernel: Kernel, unbiased: bool) -> float:
    """Return the mean of k over the pairs of rows of A; tiles above the diagonal count twice."""
    n = len(A)
    total = 0.0
    for row, column, tile in _tiles(A, A, kernel, symmetric=True):
        if row == column:
            total += float(tile.sum(dtype=np.float64))
            if unbiased:
                total -= float(np.trace(tile, dtype=np.float64))
        else:
            total += 2 * float(tile.sum(dtype=np.float64))
    return total / (n * (n - 1) if unbiased else n * n)


def _tiles(
    A: FloatArray, B: FloatArray, kernel: Kernel, symmetric: bool = False
) -> Iterator[tuple[int, int, FloatArray]]:
    for row in range(0, len(A), TILE_ROWS):
        for column in range(row if symmetric else 0, len(B), TILE_ROWS):
            yield row, column, kernel(A[row : row + TILE_ROWS], B[column : column + TILE_ROWS])
