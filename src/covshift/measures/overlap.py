"""Whether source and target overlap: how far weights can be trusted, which rows lie outside."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.kernels.generalized_pareto import fit_generalized_pareto, shrink_shape
from covshift.measures.samples import check_two_samples, check_weights
from covshift.measures.source_support import SourceSupport

# Vehtari et al. fit no tail of fewer weights.
MIN_TAIL = 5


def effective_sample_size(weights: Any) -> float:
    r"""Number of equally weighted rows that would be worth as much (Kish).

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        Non-negative, not all zero; their scale does not matter.

    Returns
    -------
    size : float
        From 1 (one row has all the weight) to ``n_rows`` (all weights equal).

    Notes
    -----
    .. math:: n_\mathrm{eff} = \Big(\sum_i w_i\Big)^2 \Big/ \sum_i w_i^2

    **Cost**: O(n) time and memory.

    References
    ----------
    L. Kish (1965). Survey Sampling. Wiley.

    Examples
    --------
    >>> from covshift.measures import effective_sample_size
    >>> effective_sample_size([1, 1, 2])
    2.6666666666666665
    """
    array = _relative_weights(weights)
    return float(array.sum() ** 2 / (array**2).sum())


def pareto_k(weights: Any) -> float:
    r"""Tail shape of importance weights: how many of their moments exist.

    Parameters
    ----------
    weights
        As in `effective_sample_size`.

    Returns
    -------
    k : float
        Below .5 the weights' variance is finite; above .7 a weighted mean is not to be trusted,
        and above 1 it has no limit. 0.0 if the largest weights are all equal (bounded weights have
        no tail), infinity if fewer than five of them rise above the rest (nothing can be told; so
        with up to 20 rows of unequal weights). Never NaN.

    Notes
    -----
    A generalised Pareto distribution is fitted to what the :math:`\min(n / 5, 3 \sqrt n)` largest
    weights exceed the next one by; its shape is moved towards .5 with the force of ten weights.

    **Cost**: O(n log n) time and O(n) memory.

    References
    ----------
    A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry (2024). Pareto smoothed importance
    sampling. Journal of Machine Learning Research 25(72).

    J. Zhang, M. A. Stephens (2009). A new and efficient estimation method for the generalized
    Pareto distribution. Technometrics 51, 316-325.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import pareto_k
    >>> uniform = (np.arange(1000) + 0.5) / 1000
    >>> round(pareto_k(uniform**-0.2), 1), round(pareto_k(uniform**-0.8), 1)
    (0.2, 0.8)
    """
    array = np.sort(_relative_weights(weights))
    n = len(array)
    n_tail = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    cutoff = array[max(n - n_tail - 1, 0)]  # a single weight is its own
    excesses = array[n - n_tail :] - cutoff
    # Differences of rounding are no tail; the smallest number that can be divided by is 1e-300.
    excesses = excesses[excesses > max(1e-10 * cutoff, 1e-300)]
    if len(excesses) == 0:
        return 0.0
    if len(excesses) < MIN_TAIL:
        return float("inf")
    shape, _ = fit_generalized_pareto(excesses)
    return shrink_shape(shape, len(excesses))


@dataclass(frozen=True, eq=False)
class SupportOverlap:
    """What :func:`support_overlap` found.

    Attributes
    ----------
    outside : ndarray of bool, shape (n_target,)
        Target rows farther from the source than source rows are from each other.
    share_outside : float
        Their share; about ``1 - quantile`` if nothing moved.
    distances : ndarray of shape (n_target,)
        Mean distance of each target row to its nearest source rows, in the source's scale.
    threshold : float
        The distance beyond which a row is outside.
    """

    outside: BoolArray
    share_outside: float
    distances: FloatArray
    threshold: float


def support_overlap(
    X_source: Any, X_target: Any, *, n_neighbors: int = 5, quantile: float = 0.99
) -> SupportOverlap:
    """Which target rows lie outside the support of the source.

    No weighting of source rows can speak for them.

    Parameters
    ----------
    X_source, X_target : array-like of shape (n_source, n_features), (n_target, n_features)
        The two samples.
    n_neighbors : int, default=5
        How many source rows a row's distance is averaged over; fewer than ``n_source``.
    quantile : float, default=0.99
        Share of the source rows, between 0 and 1, that count as inside.

    Returns
    -------
    overlap : SupportOverlap
        ``outside``, ``share_outside``, ``distances`` and ``threshold``.

    Notes
    -----
    Distances and threshold are those of `SourceSupport`, which judges new rows as well.

    **Cost**: that of `SourceSupport`.

    References
    ----------
    S. Ramaswamy, R. Rastogi, K. Shim (2000). Efficient algorithms for mining outliers from large
    data sets. SIGMOD Record 29(2), 427-438.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import support_overlap
    >>> X_source = np.random.default_rng(0).normal(size=(500, 2))
    >>> support_overlap(X_source, [[0, 0], [9, 0]]).outside
    array([False,  True])
    """
    X_source, X_target = check_two_samples(X_source, X_target, names=("X_source", "X_target"))
    support = SourceSupport(n_neighbors=n_neighbors, quantile=quantile).fit(X_source)
    distances = support.distances(X_target)
    outside = distances > support.threshold_
    return SupportOverlap(
        outside=outside,
        share_outside=float(outside.mean()),
        distances=distances,
        threshold=support.threshold_,
    )


def _relative_weights(weights: Any) -> FloatArray:
    """Checked weights, relative to the largest: sums and squares stay in range."""
    array = np.asarray(weights)
    checked = check_weights(array, array.shape[0] if array.ndim else 0)
    relative: FloatArray = checked / checked.max()
    return relative
