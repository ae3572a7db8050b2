"""Permutation test of the maximum mean discrepancy."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from covshift.kernels.arrays import FloatArray
from covshift.kernels.mmd import Kernel, apply_kernel
from covshift.measures.mmd import Bandwidth, resolve_kernel
from covshift.measures.samples import check_two_samples

# Permuted statistics this close to the observed one, relative to their spread, count as
# ties: a permutation that leaves the samples as they are must not miss by rounding.
TIE = 1e-9


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
    A, B, resolved = resolve_kernel(A, B, kernel, bandwidth)
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
    product, diagonal = apply_kernel(rows, member, kernel)
    row_sums, member = product[:, -1], member[:, :-1]
    first = np.einsum("ij,ij->j", member, product[:, :-1])  # sums over pairs, i = j included
    either = row_sums @ member  # sums over pairs whose one row is in the first sample
    own = diagonal @ member
    within_first = (first - own) / (n * (n - 1))
    second = row_sums.sum() - 2 * either + first
    within_second = (second - (diagonal.sum() - own)) / (k * (k - 1))
    statistics: FloatArray = within_first + within_second - 2 * (either - first) / (n * k)
    return statistics
