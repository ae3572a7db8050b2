"""Whether source and target overlap: how far weights can be trusted, which rows lie outside."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.measures.sample_checks import check_two_samples, check_weights
from covshift.row_checks import validate_rows
from covshift.shared_docs import documented_like


class SourceSupport(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """The support of the source: which rows lie farther from it than its own rows do.

    Features are divided by their standard deviation over the source; one that is constant there
    keeps its unit. A row is outside if its mean distance to the nearest source rows exceeds the
    quantile of the same distances of the source rows, each to the *other* source rows. So about
    ``1 - quantile`` of new rows of the source's distribution are outside: in 2 to 50 features 1.0
    to 1.2 % with 1,000 source rows, 1.5 to 3 % with 100, 3 to 9 % with 30. Copies of a row are each
    other's neighbors: of a source in which rows repeat, new rows are called outside more often.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many source rows a row's distance is averaged over; fewer than the source's rows.
    quantile : float, default=0.99
        Share of the source rows, between 0 and 1, that count as inside.

    Attributes
    ----------
    threshold_ : float
        The distance beyond which a row is outside.

    Notes
    -----
    **Cost**: neighbors are found by a tree in about O(n log n) where features are few, and in
    O(n² m) time where they are many; O(n m) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.measures import SourceSupport
    >>> X_source = np.random.default_rng(0).normal(size=(500, 2))
    >>> SourceSupport().fit(X_source).outside([[0, 0], [9, 0]])
    array([False,  True])
    """

    def __init__(self, *, n_neighbors: int = 5, quantile: float = 0.99) -> None:
        self.n_neighbors = n_neighbors
        self.quantile = quantile

    def fit(self, X_source: Any, y: Any = None) -> Self:
        """Learn the scale, the neighbors and the threshold from source rows.

        Parameters
        ----------
        X_source : array-like of shape (n_source, n_features)
            Source rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        X = validate_rows(self, X_source, dtype=(np.float64, np.float32))
        if not 1 <= self.n_neighbors < len(X):
            raise ValueError(
                f"n_neighbors must be at least 1 and fewer than the {len(X)} rows of X_source, "
                f"got {self.n_neighbors}."
            )
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile must be between 0 and 1, got {self.quantile}.")
        self._scaler = StandardScaler().fit(X)
        self._neighbors = NearestNeighbors(n_neighbors=self.n_neighbors)
        self._neighbors.fit(self._scaler.transform(X))
        own = self._neighbors.kneighbors()[0].mean(axis=1)  # each row's neighbors but itself
        # Distances from products of rows are not quite 0 between equal rows: up to 5e-8 sqrt(d).
        rounding = 1e-7 * X.shape[1] ** 0.5
        self.threshold_ = max(float(np.quantile(own, self.quantile)), rounding)
        return self

    def distances(self, X: Any) -> FloatArray:
        """Return the mean distance of rows to their nearest source rows, in the source's scale.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False, dtype=(np.float64, np.float32))
        means: FloatArray = self._neighbors.kneighbors(self._scaler.transform(X))[0].mean(axis=1)
        return means

    @documented_like(distances)
    def outside(self, X: Any) -> BoolArray:
        """Return whether each of the rows lies outside."""
        outside: BoolArray = self.distances(X) > self.threshold_
        return outside

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")


# Vehtari et al. fit no tail of fewer weights.
MIN_TAIL = 5


def _fit_generalized_pareto(excesses: FloatArray) -> tuple[float, float]:
    r"""Shape k and scale sigma of positive excesses (n,), in any order.

    .. math:: P(X > x) = (1 + k x / \sigma)^{-1/k}, \qquad x \ge 0

    Zhang and Stephens (2009) write :math:`\theta = -k / \sigma`. Given :math:`\theta`, the shape
    that maximizes the likelihood and the log-likelihood there are

    .. math:: k(\theta) = \frac1n \sum_i \log(1 - \theta x_i), \qquad
              \ell(\theta) = n \big( \log(-\theta / k(\theta)) - k(\theta) - 1 \big),

    and the estimate is the mean of :math:`\theta` over a grid, weighted by
    :math:`e^{\ell(\theta)}`: nearly as efficient as maximum likelihood, without its failures. The
    sign of k is that of Vehtari et al. (positive: heavy tail), the opposite of Zhang and Stephens'.
    """
    x = np.sort(excesses)
    n = len(x)
    # The grid of Zhang and Stephens: 30 + sqrt(n) points below the largest theta that the largest
    # excess allows, spread by three times the first quartile.
    n_points = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    spread = 1 - np.sqrt(n_points / (np.arange(n_points) + 0.5))
    theta = 1 / x[-1] + spread / (3 * quartile)
    shape, scale = _given_theta(theta, x)
    log_likelihood = -n * (np.log(scale) + shape + 1)
    theta = softmax(log_likelihood) @ theta
    shape, scale = _given_theta(np.array([theta]), x)
    return float(shape[0]), float(scale[0])


def _shrink_shape(shape: float, n: int) -> float:
    """Shape moved toward .5 as if by ten more excesses: the prior of Vehtari et al.

    It steadies short tails and hardly touches long ones.
    """
    return (n * shape + 10 * 0.5) / (n + 10)


def _given_theta(theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Most likely shape and scale for each theta (m,), given excesses x (n,)."""
    shape = np.log1p(-np.outer(theta, x)).mean(axis=1)
    # At theta = 0 the distribution is exponential, with the mean as its scale.
    exponential = theta == 0
    scale = np.where(exponential, x.mean(), -shape / np.where(exponential, 1.0, theta))
    return shape, scale


def effective_sample_size(weights: Any) -> float:
    r"""Return the number of equally weighted rows that would be as informative (Kish).

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
    r"""Return the tail shape of importance weights: how many of their moments exist.

    Parameters
    ----------
    weights
        As in `effective_sample_size`.

    Returns
    -------
    k : float
        Below .5 the weights' variance is finite; above .7 a weighted mean is not to be trusted,
        and above 1 it has no limit. 0.0 if the largest weights are all equal (bounded weights have
        no tail), infinity if fewer than five of them rise above the rest (too few to estimate it;
        so with up to 20 rows of unequal weights). Never NaN.

    Notes
    -----
    A generalized Pareto distribution is fitted to what the :math:`\min(n / 5, 3 \sqrt n)` largest
    weights exceed the next one by; its shape is moved toward .5 with the force of ten weights.

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
    # Differences of rounding are not a tail; the smallest number that can be divided by is 1e-300.
    excesses = excesses[excesses > max(1e-10 * cutoff, 1e-300)]
    if len(excesses) == 0:
        return 0.0
    if len(excesses) < MIN_TAIL:
        return float("inf")
    shape, _ = _fit_generalized_pareto(excesses)
    return _shrink_shape(shape, len(excesses))


@dataclass(frozen=True, eq=False)
class SupportOverlap:
    """Result of :func:`support_overlap`.

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
    """Return which target rows lie outside the support of the source.

    No weights of source rows can represent them.

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
    """Return the checked weights, relative to the largest: sums and squares stay in range."""
    array = np.asarray(weights)
    checked = check_weights(array, array.shape[0] if array.ndim else 0)
    relative: FloatArray = checked / checked.max()
    return relative


def fit_support(X_source: FloatArray) -> SourceSupport | None:
    """Return the support of source rows (n, d), with fewer neighbors where there are few rows.

    None for a single row, which has no distance to others.
    """
    if len(X_source) < 2:
        return None
    neighbors = SourceSupport().n_neighbors
    return SourceSupport(n_neighbors=min(neighbors, len(X_source) - 1)).fit(X_source)
