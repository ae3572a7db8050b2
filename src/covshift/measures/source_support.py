"""Where the source has rows, as a fitted object that can judge new rows one by one."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.rows import validate_rows


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
        """Learn the scale, the neighbors and the threshold from source rows (n, d)."""
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
        """Mean distance of rows (n, d) to their nearest source rows, in the source's scale."""
        check_is_fitted(self)
        X = validate_rows(self, X, reset=False, dtype=(np.float64, np.float32))
        means: FloatArray = self._neighbors.kneighbors(self._scaler.transform(X))[0].mean(axis=1)
        return means

    def outside(self, X: Any) -> BoolArray:
        """Whether each of the rows (n, d) lies outside."""
        outside: BoolArray = self.distances(X) > self.threshold_
        return outside

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")
