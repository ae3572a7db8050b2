"""Parts shared by all weight estimators: splitting by role, warnings, and what is stored."""

import warnings
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from covshift.base import (
    UnitAdapter,
    all_or_nothing,
    bandwidth_candidates,
    check_count,
    check_positive,
    warn_nothing_to_adapt,
)
from covshift.domains import FitDomains, check_fit_domains
from covshift.kernels.array_types import FloatArray
from covshift.kernels.gaussian_kernels import gaussian_mixture, squares_to_bases
from covshift.measures import effective_sample_size
from covshift.shared_docs import documented_like
from covshift.solvers.threads import one_blas_thread
from covshift.streams import OpenRows, RowStream, open_rows
from covshift.streams.rows import warn_sampled

# Weights average one, where they are right; a mean below this is an underflow.
NEGLIGIBLE_MEAN = 1e-6
# Rows of each role that weights are learned from, where rows come in blocks.
LEARNED_ROWS = 20_000
LOW_SHARE = 0.05  # effective share of source rows below which fit warns


class UnreliableWeightsWarning(UserWarning):
    """Importance weights that rest on few rows, or on a bandwidth other than requested."""


class WeightEstimator(BaseEstimator):
    """Base of the estimators of w(x) = p_target(x) / p_source(x).

    A subclass has ``_check_parameters()``, ``_estimate(source, target)``, which learns from
    rows in double precision and returns the weights of the source rows, and ``_evaluate(X)``,
    which returns those of new rows. Domains are pooled by role; labels are never read.
    """

    __metadata_request__fit = {"sample_domain": True, "label_mask": True}

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Estimate the weights of the source rows.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows of all domains. Of a Dask array, or a memory map of more than 256 MB, 20,000 rows
            of each role are learned from, with a warning, and all source rows weighed.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one source
            domain and nothing to adapt to, so that all weights are one, with a warning.
        """
        with all_or_nothing(self):
            rows = self._open(X, reset=True)
            self._check_parameters()
            sample_domain, label_mask = rows.bring_home(sample_domain, label_mask)
            domains = check_fit_domains(sample_domain, label_mask, rows.shape[0])
            if domains.given and not domains.has_target:
                raise ValueError(
                    "sample_domain has no target rows (negative entries), which weights need. Add "
                    "the rows of the target, or leave sample_domain out."
                )
            self.domains_ = domains.domains
            if domains.has_target:
                weights = self._weigh(rows, domains)
            else:
                warn_nothing_to_adapt(self, "all weights are one")
                weights = np.ones(rows.shape[0])
            if not weights.any():
                self._warn("all weights are zero: no source row resembles the target")
            self.weights_ = weights.astype(rows.dtype)
            self.mean_weight_ = float(weights.mean())
            self.share_zero_ = float(np.mean(weights == 0))
            self.effective_sample_size_ = effective_sample_size(weights) if weights.any() else 0.0
            if weights.any() and self.effective_sample_size_ < LOW_SHARE * len(weights):
                self._warn(
                    f"the weights leave {self.effective_sample_size_:.1f} effective rows of "
                    f"{len(weights)}: models fitted with them vary strongly"
                )
        return self

    def score_weights(self, X: Any) -> FloatArray:
        """Estimate the weights of new rows, as if each were a source row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            Estimates of the density ratio, not normalized; ones, if the fit saw no target.
        """
        check_is_fitted(self)
        rows = self._open(X, look=False)
        return rows.map(self.score_weights, self._score_rows)  # type: ignore[no-any-return]

    def _score_rows(self, X: FloatArray, sample_domain: None = None) -> FloatArray:
        if not (self.domains_ < 0).any():
            return np.ones(X.shape[0], dtype=X.dtype)
        return self._evaluate(X.astype(np.float64)).astype(X.dtype)

    def _weigh(self, rows: OpenRows, domains: FitDomains) -> FloatArray:
        """Learn from the rows of each role, or from a sample of them; weigh every source row."""
        # Copies: the learned rows never share memory with the caller's.
        source, target = (
            rows.draw(role, LEARNED_ROWS).astype(np.float64, copy=False)
            for role in (domains.source, domains.target)
        )
        weights = self._estimate(source, target)
        n_drawn = len(source) + len(target)
        if n_drawn == rows.shape[0]:
            return weights
        warn_sampled(
            f"{type(self).__name__} is learned", n_drawn, rows.shape[0],
            "an average over these rows has a standard error of "
            f"{100 * min(len(source), len(target)) ** -0.5:.1f} % of a standard deviation",
        )  # fmt: skip
        self._refine(rows.data, domains.target.astype(np.int8))
        self.weights_ = weights  # weights of the sample; the next step needs a fitted state
        (every,) = rows.bring_home(rows.map(self.score_weights, self._score_rows))
        of_source: FloatArray = np.asarray(every)[domains.source]
        return of_source

    def _refine(self, stream: RowStream, is_target: Any) -> None:
        """Improve what a sample has taught by a pass over all rows, where that can be done."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error for a parameter that makes no sense."""

    @abstractmethod
    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        """Learn from source and target rows; return the weights of the source rows."""

    @abstractmethod
    def _evaluate(self, X: FloatArray) -> FloatArray:
        """Return the weights of new rows."""

    def _warn(self, what: str) -> None:
        warnings.warn(f"{type(self).__name__}: {what}.", UnreliableWeightsWarning, stacklevel=4)

    def _open(self, X: Any, *, reset: bool = False, look: bool = True) -> OpenRows:
        return open_rows(self, X, reset=reset, squared_in=np.float64, look=look)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "weights_")


def scale_to_mean_one(weights: FloatArray) -> FloatArray:
    """Scale estimated weights to mean one: models fitted with them keep their regularization.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Not all zero.

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    **Cost**: O(n) time and memory.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.weights import scale_to_mean_one
    >>> scale_to_mean_one(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    """
    if not weights.any():
        raise ValueError(
            "All weights are zero: no source row resembles the target. Fit without weights, "
            "or use wider bases (larger sigmas)."
        )
    scaled: FloatArray = weights / weights.mean()
    return scaled


class Squares(NamedTuple):
    """Squared distances of source rows and target rows to the bases."""

    source: FloatArray
    target: FloatArray


class GaussianBasesWeights(WeightEstimator):
    """Base of the weight estimators with ``n_bases``, ``sigmas`` and ``random_state``.

    A subclass has ``_search(squares, sigmas, rng)``, which sets ``bandwidth_``, ``coefficients_``
    and its table of scores.
    """

    n_bases: Any
    sigmas: Any
    random_state: Any

    def _check_parameters(self) -> None:
        check_count("n_bases", self.n_bases, minimum=1)
        if self.sigmas is not None:
            check_positive("sigmas", self.sigmas)
        check_random_state(self.random_state)

    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        rng = check_random_state(self.random_state)
        chosen = rng.choice(len(target), min(self.n_bases, len(target)), replace=False)
        self.bases_ = target[np.sort(chosen)]
        squares = Squares(*(squares_to_bases(rows, self.bases_) for rows in (source, target)))
        sigmas = bandwidth_candidates(self.sigmas, source, target)
        # The matrices between bases are small: threads would wait for each other.
        with one_blas_thread():
            self._search(squares, sigmas, rng)
        weights = self._evaluate(source)
        if weights.mean() < NEGLIGIBLE_MEAN:
            # Half of the kernels between source and bases are then above exp(-1/2).
            fallback = float(np.sqrt(np.median(squares.source))) or 1.0
            self._warn(
                f"all kernels underflow at the bandwidths {sigmas.tolist()}; the median distance "
                f"between source rows and bases, {fallback:.3g}, is used instead"
            )
            self._search(squares, np.array([fallback]), rng)
            weights = self._evaluate(source)
        return weights

    @abstractmethod
    def _search(self, squares: Squares, sigmas: FloatArray, rng: np.random.RandomState) -> None:
        """Choose among the candidates and store what was chosen."""

    def _evaluate(self, X: FloatArray) -> FloatArray:
        values = gaussian_mixture(X, self.bases_, self.coefficients_, self.bandwidth_)
        return np.maximum(values, 0, out=values)
