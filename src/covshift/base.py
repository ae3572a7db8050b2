"""Parts shared by all estimators of the package."""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from covshift.domains import (
    Unit,
    check_fit_domains,
    check_new_domains,
    check_no_placeholders,
    locate_units,
    new_target_domain,
    pooling_units,
    role_of,
)
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.measures import median_bandwidth
from covshift.shared_docs import documented_like
from covshift.streams import OpenRows, bring_home, open_rows

# Candidates for the bandwidth of Gaussian bases, times the median distance between rows: from
# structure a quarter as wide as the data to nearly linear functions. The median itself serves
# most data.
MEDIAN_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


class NothingToAdaptWarning(UserWarning):
    """An adapter was fitted without target rows, so it adapts to nothing."""


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
        """Refuse: a new target domain needs the source rows as well, so refit.

        Raises
        ------
        RefitNeededError
            Always.
        """
        raise RefitNeededError(
            f"{type(self).__name__} cannot learn a new target on its own: refit it on the "
            "source rows and the rows of the new target."
        )


def register_target(model: Any, domain: Any, n_rows: int | None = None) -> Unit:
    """Add a new target to the domains that any fitted estimator knows; return its unit's name.

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
    """Warn that an estimator's ``fit`` got no ``sample_domain``, and of what follows."""
    warnings.warn(
        f"{type(estimator).__name__} got no sample_domain, so there is no target to adapt to: "
        f"{consequence}. `covshift.stack_domains` stacks source and target rows.",
        NothingToAdaptWarning,
        stacklevel=stacklevel,
    )


def check_option(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise unless an estimator's parameter is one of ``allowed``, and list them."""
    options = list(allowed)
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in options
    ):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}.")


def check_count(name: str, value: Any, *, minimum: int) -> None:
    """Raise unless an estimator's parameter is a whole number of at least ``minimum``."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    check_scalar(value, name, Integral, min_val=minimum)


def check_flag(name: str, value: Any) -> None:
    """Raise unless an estimator's parameter is True or False: texts such as "no" count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_number(
    name: str, value: Any, *, minimum: float, maximum: float | None = None, closed: str = "both"
) -> None:
    """Raise unless an estimator's parameter is a finite number of the interval."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    check_scalar(value, name, Real, min_val=minimum, max_val=maximum, include_boundaries=closed)
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}.")


def check_positive(name: str, values: Any) -> FloatArray:
    """Return an estimator's parameter as an array of one or several positive numbers, or raise."""
    try:
        candidates = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold positive numbers, got {values!r}.") from None
    valid = np.isfinite(candidates) & (candidates > 0)
    if candidates.ndim != 1 or not len(candidates) or not valid.all():
        raise ValueError(f"{name} must hold positive numbers, got {values!r}.")
    return candidates


def bandwidth_candidates(sigmas: Any, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the bandwidths that any estimator tries: those given, or multiples of the median.

    The median is that of the distances between all rows.
    """
    if sigmas is not None:
        return check_positive("sigmas", sigmas)
    candidates: FloatArray = np.multiply(MEDIAN_MULTIPLES, median_bandwidth(A, B))
    return candidates


class TargetLearner(DomainTransformer):
    """Base of adapters that keep statistics of domains and can learn those of a new one.

    A subclass has ``_open(X)``, ``_transform_rows(X, sample_domain)`` and
    ``_learn_target(rows, unit)``; what cannot be done with rows in blocks, or with a new target, it
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
        rows = self._open(X, look=False, if_streamed=self._check_streamed)
        return rows.map(self.transform, self._transform_rows, sample_domain)

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn the statistics of a new target domain, without the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the new target, at least ``min_domain_size`` of them.
        domain : int, str or None, default=None
            A negative integer or a name, by which new rows are known; None: it
            becomes the target of rows without ``sample_domain``, and of target domains that
            have no statistics of their own.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._check_new_target()
        rows = self._open(X)
        with all_or_nothing(self):
            self._learn_target(rows, register_target(self, domain, rows.shape[0]))
        return self

    def _check_streamed(self) -> None:
        """Raise an error where rows in blocks cannot be transformed."""

    def _check_new_target(self) -> None:
        """Raise an error where a new target cannot be learned."""

    @abstractmethod
    def _open(self, X: Any, *, reset: bool = False, **options: Any) -> OpenRows:
        """Return rows, checked by `open_rows`, which also takes the options."""

    @abstractmethod
    def _transform_rows(self, X: Any, sample_domain: Any) -> Any:
        """Transform checked rows."""

    @abstractmethod
    def _learn_target(self, rows: OpenRows, unit: Unit) -> None:
        """Store the statistics of checked rows as those of a unit."""


class UnitAdapter(TargetLearner):
    """Base of adapters that learn something of each pooling unit and apply it to its rows.

    A subclass names the attributes that hold what is learned, one entry per unit, in
    ``_statistics``, and has ``_measure(rows, units)``, which returns them for each unit, and
    ``_apply(X, unit)``, which transforms rows by those of the unit at that position.
    """

    _statistics: tuple[str, ...] = ()
    _ragged = False  # whether shapes of statistics differ between units
    _allow_nan = False
    _squares_rows = True
    # Consequence of a fit without sample_domain, if target rows are needed.
    _without_target: str | None = None

    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn the statistics of each unit.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows of all domains. A Dask array, and a memory map of more than 256 MB, are passed
            over in blocks and never copied.
        y : None
            Never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one
            source domain.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Checked and without effect: no labels are read.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            rows = self._open(X, reset=True)
            self._check_parameters()
            sample_domain, label_mask = rows.bring_home(sample_domain, label_mask)
            domains = check_fit_domains(sample_domain, label_mask, rows.shape[0])
            if self._without_target is not None and not domains.has_target:
                if domains.given:
                    raise ValueError(
                        "sample_domain has no target rows (negative entries) to align with. Add "
                        "the rows of the target, or leave sample_domain out."
                    )
                warn_nothing_to_adapt(self, self._without_target)
            self.domains_ = domains.domains
            self.domain_names_: dict[int, str] = {}
            self._n_features_out = rows.shape[1]
            units = pooling_units(domains.sample_domain, self.pooling, self.min_domain_size)
            self._learn(rows, units, domains.sample_domain)
        return self

    def _transform_rows(self, X: Any, sample_domain: Any) -> Any:
        return self._transform_located(X, self._units_of(sample_domain, X.shape[0]))

    def _learn_target(self, rows: OpenRows, unit: Unit) -> None:
        self._store(self._stored() | self._measure(rows, {unit: np.arange(rows.shape[0])}))

    def _check_parameters(self) -> None:
        check_option("pooling", self.pooling, ("role", "domain"))
        check_count("min_domain_size", self.min_domain_size, minimum=1)

    def _learn(
        self, rows: OpenRows, units: Mapping[Unit, IntArray], sample_domain: IntArray
    ) -> None:
        """Store the statistics of the rows of each unit."""
        self._store(self._measure(rows, units))

    def _units_of(self, sample_domain: Any, n_samples: int) -> IntArray:
        """Return the position of each row's unit, given the domains of rows to transform."""
        domain = check_new_domains(
            sample_domain,
            n_samples,
            has_target=bool((self.domains_ < 0).any()) or "target" in self.units_,
            domain_names=self.domain_names_,
        )
        return self._locate(domain)

    def _locate(self, domain: IntArray) -> IntArray:
        """Return the position of each row's unit; -1 for rows that stay as they are."""
        return locate_units(self.units_, domain)

    def _transform_located(self, X: Any, position: IntArray) -> Any:
        unit = position[0]  # validation lets no X without rows through
        if (position == unit).all():  # the usual case needs no picking of rows
            return X.copy() if unit < 0 else self._apply(X, unit).astype(X.dtype, copy=False)
        # One product for each unit, not for each row.
        Z = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        for unit in np.unique(position).tolist():
            rows = position == unit
            Z[rows] = X[rows] if unit < 0 else self._apply(X[rows], unit)
        return Z

    @abstractmethod
    def _measure(self, rows: OpenRows, units: Mapping[Unit, IntArray]) -> dict[Unit, Any]:
        """Return the statistics of each unit, given the numbers of its rows."""

    @abstractmethod
    def _apply(self, X: FloatArray, unit: int) -> FloatArray:
        """Transform rows by the statistics of the unit at that position."""

    def _complete(self, own: tuple[Any, ...], role: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the statistics of a unit, with gaps filled by those of its role."""
        return own

    def _store(self, learned: Mapping[Unit, tuple[Any, ...]]) -> None:
        self.units_ = list(learned)
        # A domain that learned only a part (a feature without values, say) takes the rest from its
        # role.
        completed = [
            self._complete(own, learned.get(role_of(unit), own)) for unit, own in learned.items()
        ]
        for index, name in enumerate(self._statistics):
            values = [statistics[index] for statistics in completed]
            setattr(self, name, values if self._ragged or not values else np.stack(values))

    def _stored(self) -> dict[Unit, tuple[Any, ...]]:
        columns = (getattr(self, name) for name in self._statistics)
        return dict(zip(self.units_, zip(*columns, strict=True), strict=True))

    def _open(self, X: Any, *, reset: bool = False, **options: Any) -> OpenRows:
        return open_rows(
            self,
            X,
            reset=reset,
            squared_in=np.float64 if self._squares_rows else None,  # whatever rows are in
            allow_nan=self._allow_nan,
            accept_sparse=self._accepts_sparse(),
            **options,
        )

    def _accepts_sparse(self) -> bool:
        return False

    def __sklearn_is_fitted__(self):
        return hasattr(self, "units_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# --- Predictors that know domains: requests of metadata, and scores ---


class DomainRequests:
    """Default requests of predictors, so that pipelines and searches hand on the domains."""

    _requests = {"sample_domain": True}
    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__predict = _requests
    __metadata_request__predict_proba = _requests
    __metadata_request__predict_log_proba = _requests
    __metadata_request__score = _requests


class ScoredClassifier(ClassifierMixin, DomainRequests):
    """Base of the classifiers whose ``score`` refuses rows without a label.

    A subclass has ``_domains_of(sample_domain, n_samples)``, the domains of rows to predict.
    """

    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the accuracy on labeled rows.

        Parameters
        ----------
        X, sample_domain
            As in ``predict``.
        y : array-like of shape (n_samples,)
            True labels; the placeholder of an unlabeled row is an error.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        y, sample_domain = bring_home(y), bring_home(sample_domain)
        prediction = bring_home(self.predict(X, sample_domain=sample_domain))
        y = check_no_placeholders(
            y, self._domains_of(sample_domain, len(prediction)), self.classes_
        )
        return float(accuracy_score(y, prediction, sample_weight=sample_weight))


class ScoredRegressor(RegressorMixin, DomainRequests):
    """Base of the regressors whose ``score`` refuses rows without a label.

    A subclass has ``_domains_of(sample_domain, n_samples)``, as for `ScoredClassifier`.
    """

    @documented_like(ScoredClassifier.score)
    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the coefficient of determination R² on labeled rows."""
        y, sample_domain = bring_home(y), bring_home(sample_domain)
        prediction = bring_home(self.predict(X, sample_domain=sample_domain))
        y = check_no_placeholders(y, self._domains_of(sample_domain, len(prediction)), None)
        return float(r2_score(y, prediction, sample_weight=sample_weight))
