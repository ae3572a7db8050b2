"""By how much a representation brings two samples together, in MMD."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_kernels import Kernel, apply_kernel
from covshift.measures.mmd import Bandwidth, mmd, resolve_kernel
from covshift.measures.samples import check_two_samples
from covshift.measures.scores import percentage_change

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
        From the one to the other, in per cent; below -100 where ``after`` is negative. NaN where
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
        _resampled_mmd(*resolve_kernel(first, second, kernel, bandwidth), *counts)
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
    """`mmd_change` on rows that the representation was not fitted on.

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
    product, diagonal = apply_kernel(np.concatenate([A, B]), counts, kernel)
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
