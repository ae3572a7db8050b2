"""Parts shared by all estimators of the package."""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from covshift.domains import Unit, new_target_domain
from covshift.kernels.arrays import FloatArray
from covshift.measures import median_bandwidth
from covshift.streams import is_streamed, map_rows

# Candidates for the bandwidth of Gaussian bases, times the median distance between rows: from
# structure a quarter as wide as the data to nearly linear functions. The median itself serves
# most data.
MEDIAN_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


class NothingToAdaptWarning(UserWarning):
    """An adapter was fitted so that it adapts to nothing."""


class RefitNeededError(ValueError):
    """An adapter cannot learn a new target without the training rows."""


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Undo every change to ``estimator`` if the block fails or is interrupted.

    A failed ``fit`` then leaves an unfitted estimator unfitted and a fitted one as it was.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class DomainTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the adapters: transformers that know source rows from target rows.

    A subclass has ``fit(X, y=None, *, sample_domain=None, label_mask=None)`` and
    ``transform(X, *, sample_domain=None, allow_source=False)``.

    ``allow_source`` changes nothing: it is accepted because SKADA's pipelines pass it. Rows
    whose ``sample_domain`` says source are always transformed as source rows.
    """

    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__transform = {"sample_domain": True, "allow_source": True}

    def fit_transform(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Any:
        """Fit, then transform the same rows, each as a row of its own domain.

        Parameters
        ----------
        X, y, sample_domain, label_mask
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        self.fit(X, y, sample_domain=sample_domain, label_mask=label_mask)
        return self.transform(X, sample_domain=sample_domain, allow_source=True)

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target domain without the training data, for adapters that can.

        This one cannot: its fit needs source and target rows together.
        """
        raise RefitNeededError(
            f"{type(self).__name__} cannot learn a new target on its own: refit it on the "
            "source rows and the rows of the new target."
        )


def register_target(model: Any, domain: Any, n_rows: int | None = None) -> Unit:
    """Add a new target to the domains that a fitted model knows; return the name of its unit.

    ``n_rows`` to learn it from must be at least the model's ``min_domain_size``.
    """
    if n_rows is not None and n_rows < model.min_domain_size:
        raise ValueError(
            f"{n_rows} rows are too few to learn a new target: at least "
            f"min_domain_size={model.min_domain_size} are needed."
        )
    number = new_target_domain(domain, model.domains_.tolist(), model.domain_names_)
    if domain is None:
        return "target"
    model.domains_ = np.union1d(model.domains_, number)
    if isinstance(domain, str):
        model.domain_names_ = {**model.domain_names_, number: domain}
    return number


def warn_nothing_to_adapt(estimator: BaseEstimator, consequence: str, stacklevel: int = 3) -> None:
    """Say that ``fit`` got no ``sample_domain``, and what follows."""
    warnings.warn(
        f"{type(estimator).__name__} got no sample_domain, so there is no target to adapt to: "
        f"{consequence}. `covshift.stack_domains` stacks source and target rows.",
        NothingToAdaptWarning,
        stacklevel=stacklevel,
    )


def check_option(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise unless ``value`` is one of ``allowed``, and list them."""
    options = list(allowed)
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in options
    ):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}.")


def check_count(name: str, value: Any, *, minimum: int) -> None:
    """Raise unless ``value`` is a whole number of at least ``minimum``."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    check_scalar(value, name, Integral, min_val=minimum)


def check_number(
    name: str, value: Any, *, minimum: float, maximum: float | None = None, closed: str = "both"
) -> None:
    """Raise unless ``value`` is a finite number of the interval."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    check_scalar(value, name, Real, min_val=minimum, max_val=maximum, include_boundaries=closed)
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}.")


def check_candidates(name: str, values: Any) -> FloatArray:
    """Return a positive number, or several, as an array of candidates."""
    try:
        candidates = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold positive numbers, got {values!r}.") from None
    valid = np.isfinite(candidates) & (candidates > 0)
    if candidates.ndim != 1 or not len(candidates) or not valid.all():
        raise ValueError(f"{name} must hold positive numbers, got {values!r}.")
    return candidates


def bandwidth_candidates(sigmas: Any, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the candidates given, or multiples of the median distance between all rows."""
    if sigmas is not None:
        return check_candidates("sigmas", sigmas)
    candidates: FloatArray = np.multiply(MEDIAN_MULTIPLES, median_bandwidth(A, B))
    return candidates


def check_magnitude(X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse rows whose squares, summed, would overflow; ``names`` are those of the columns."""
    values = X.data if sparse.issparse(X) else X
    # The cube root leaves a third of the exponents for the number of rows and for factors.
    limit = float(np.finfo(X.dtype).max) ** (1 / 3)
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(flat @ flat)
    if squares < limit**2 / 2:  # then no value can be too large: one pass over them was enough
        return
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > limit:
        column = int(np.argmax(abs(X).max(axis=0)))
        raise ValueError(
            f"Column {column if names is None else repr(str(names[column]))} holds magnitudes up "
            f"to {largest:.1e}; above {limit:.0e} they overflow {X.dtype} once squared and summed. "
            "Scale the features, e.g. divide the column by a power of ten, in all rows alike, or "
            "remove values that are errors."
        )


class TargetLearner(DomainTransformer):
    """Base of adapters that keep statistics of domains and can learn those of a new one.

    A subclass has ``_validate_rows(X)``, ``_transform_rows(X, sample_domain)`` and
    ``_learn_target(X, unit)``; what cannot be done with rows in blocks, or with a new target, it
    refuses in ``_check_streamed()`` and ``_check_new_target()``.
    """

    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Transform rows, each by the statistics of its domain or role.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows; sparse ones where the fit takes them.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Domain of each row, or the one of all rows. None: the target (the source, if the
            fit saw no target). A domain that the fit did not see uses its role's statistics.
        allow_source : bool, default=False
            Accepted for SKADA's pipelines and without effect: rows that ``sample_domain``
            calls source are always transformed as source rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features_out)
            A Dask array of blocks yet to be computed, if X is one; a tensor on the device of the
            fit, if that was one.
        """
        check_is_fitted(self)
        if is_streamed(X):
            self._check_streamed()
            return map_rows(self, "transform", X, sample_domain=sample_domain)
        return self._transform_rows(self._validate_rows(X), sample_domain)

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn the statistics of a new target domain, without the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the new target, at least ``min_domain_size`` of them.
        domain : int, str or None, default=None
            A negative integer or a name, by which ``transform`` will know it; None: it
            becomes the target of rows without ``sample_domain``, and of target domains that
            have no statistics of their own.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._check_new_target()
        X = self._validate_rows(X)
        with all_or_nothing(self):
            self._learn_target(X, register_target(self, domain, X.shape[0]))
        return self

    def _check_streamed(self) -> None:
        """Raise an error where rows in blocks cannot be transformed."""

    def _check_new_target(self) -> None:
        """Raise an error where a new target cannot be learned."""

    @abstractmethod
    def _validate_rows(self, X: Any) -> Any:
        """Return rows, checked."""

    @abstractmethod
    def _transform_rows(self, X: Any, sample_domain: Any) -> Any:
        """Transform checked rows."""

    @abstractmethod
    def _learn_target(self, X: Any, unit: Unit) -> None:
        """Store the statistics of checked rows as those of a unit."""
