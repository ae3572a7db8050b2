"""Base of `AdaptedClassifier` and `AdaptedRegressor`."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import (
    DomainRequests,
    RefitNeededError,
    all_or_nothing,
    check_flag,
    register_target,
    warn_nothing_to_adapt,
)
from covshift.domains import check_fit_domains, check_new_domains, known_labels
from covshift.kernels.arrays import FloatArray
from covshift.predictors.fitting import (
    FittedCandidate,
    adapt_target_of,
    as_blocks,
    check_rowwise,
    fit_candidate,
    last_step,
    predict_candidate,
    problem_size,
    represent,
    uses_target_rows,
)
from covshift.predictors.held_out import (
    HeldOutRows,
    check_keepable,
    cross_fit,
    draw_kept,
    kept_features,
)
from covshift.registry import Size, find_record
from covshift.row_checks import check_readable
from covshift.streams import bring_home, is_streamed, map_rows

MIN_KEPT = 2  # labeled source rows of at least two classes; fewer are not held out
ONE_MODEL = "model"  # name of its scores; an ensemble has those of each member


def _represents(self):
    return hasattr(last_step(self._template()), "transform")


def _adapts(self):
    return self._looks_at_target or uses_target_rows(self._base_estimator())


class AdaptedEstimator(DomainRequests, BaseEstimator):
    """Fit an adapter on all rows, then an estimator on the adapted labeled rows."""

    __metadata_request__transform = {"sample_domain": True}
    __metadata_request__decision_function = {"sample_domain": True}

    _n_strata = 1
    # Held-out rows, of models that keep some: see `covshift.predictors.held_out`.
    held_out_rows_: FloatArray | None = None
    held_out_labels_: Any = None
    held_out_domain_: Any = None
    held_out_scores_: dict[str, FloatArray] | None = None

    def __init__(
        self, adapter: Any = None, estimator: Any = None, *, keep_rows: bool = False
    ) -> None:
        self.adapter = adapter
        self.estimator = estimator
        self.keep_rows = keep_rows

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"keep_rows": False, **state})  # older models do not have it

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the adapter on the rows of all domains and the estimator on labeled ones.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask array of shape (n_samples, n_features)
            Rows of all domains, as adapter and estimator take them. Of a Dask array, or a memory
            map of more than 256 MB, the adapter is fitted to all rows, in blocks; the estimator
            to as many labeled ones, adapted, as fit into 256 MB, with a warning if those are not
            all.
        y : array-like of shape (n_samples,)
            Labels; what rows without a known label hold is never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one
            source domain and nothing to adapt to, with a warning.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Where the label is known; default: source rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the estimator's fit. They multiply the adapter's
            importance weights, if it yields some, and the product is scaled to mean one.

        Returns
        -------
        self : object
        """
        y, sample_domain, label_mask = map(bring_home, (y, sample_domain, label_mask))
        with all_or_nothing(self):
            X = as_blocks(X) if is_streamed(X) else _as_rows(X)
            self._check_parts()
            check_flag("keep_rows", self.keep_rows)
            validate_data(self, X, y, skip_check_array=True)
            domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
            labels = known_labels(y, domains.label_mask, kind=self._label_kind)
            weights = _check_weights(sample_weight, X.shape[0])
            self._check_estimator(self._base_estimator())
            self._check_target(domains)
            adapter = self._make_adapter(X, labels, domains)
            self.adapter_, self.estimator_ = fit_candidate(
                adapter,
                self._base_estimator(),
                X,
                labels,
                domains,
                label_kind=self._label_kind,
                sample_weight=weights,
            )
            self.domains_ = domains.domains
            self.domain_names_: dict[int, str] = {}
            self._keep_label_facts(labels, None if weights is None else weights[domains.label_mask])
            self._learn_class_shares(adapter, X, labels, domains, weights)
            if self.keep_rows:
                self._keep_held_out(adapter, X, labels, domains, weights)
        return self

    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict rows, each as a row of its domain.

        Parameters
        ----------
        X : array, frame, sparse matrix or Dask array of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Domain of each row, or the one of all rows. None: the target (the source, if the
            fit saw no target).

        Returns
        -------
        ndarray of shape (n_samples,)
            A Dask array of blocks yet to be computed, if X is one.
        """
        return self._predict_by("predict", X, sample_domain)

    @property
    def held_out_(self) -> HeldOutRows | None:
        """Source rows that the model keeps, with what fits without them say; None: it has none."""
        check_is_fitted(self)
        if self.held_out_rows_ is None or not self.held_out_scores_:
            return None
        return HeldOutRows(
            self.held_out_rows_,
            self.held_out_labels_,
            self.held_out_domain_,
            self.held_out_scores_[ONE_MODEL],
        )

    @available_if(_represents)
    def transform(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the rows as the estimator sees them; parameters as in ``predict``."""
        if is_streamed(X):
            return self._in_blocks("transform", X, sample_domain)
        return self._adapt(X, sample_domain)

    @available_if(_represents)
    def fit_transform(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Fit, then transform the same rows, each as a row of its own domain."""
        self.fit(
            X, y, sample_domain=sample_domain, label_mask=label_mask, sample_weight=sample_weight
        )
        return self.transform(X, sample_domain=sample_domain)

    @available_if(_adapts)
    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target domain without the training data, if the adapter can.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows of the new target.
        domain : int, str or None, default=None
            A negative integer or a name, by which ``predict`` will know it; None: it
            becomes the target of rows without ``sample_domain``, and of target domains that
            have no statistics of their own.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        if uses_target_rows(self.estimator_):
            raise RefitNeededError(
                f"{type(self.estimator_).__name__} was fitted to the rows of the target, so it "
                "cannot learn a new one: refit on the source rows and the rows of the new target."
            )
        X = _as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        with all_or_nothing(self):
            unit = register_target(self, domain)
            if self.adapter is not None or not self._looks_at_target:
                self.adapter_ = adapt_target_of(self.adapter_, X, None if domain is None else unit)
            self._learn_target_shares(X, None if domain is None else unit)
        return self

    def _check_target(self, domains):
        """Refuse or warn where there is an adapter and nothing to adapt to."""
        if not self._looks_at_target or domains.has_target:
            return
        if domains.given:
            raise ValueError(
                "sample_domain has no target rows (negative entries) to adapt to. Add the "
                "rows of the target, or leave sample_domain out to fit without adapting."
            )
        warn_nothing_to_adapt(self, "adapter and estimator are fitted on the source alone")

    def _make_adapter(self, X, labels, domains):
        """Return the adapter, or the one that its name means for rows of this size."""
        if not isinstance(self.adapter, str):
            return self.adapter
        n_classes = len(np.unique(labels)) if self._label_kind == "class" else 1
        return find_record(self.adapter).build(problem_size(X, n_classes, domains.sample_domain))

    def _template(self):
        """Return an adapter to ask for its abilities: the fitted one, or an unfitted one.

        A fitted model does not look its name up: it predicts where a plug-in is missing.
        """
        if not isinstance(self.adapter, str):
            return self.adapter
        if hasattr(self, "adapter_"):
            return self.adapter_
        return find_record(self.adapter).build(Size(n_source=100, n_target=100, n_features=2))

    def _predict_by(self, method, X, sample_domain):
        """Return the output of a method of the estimator for the adapted rows."""
        if is_streamed(X):
            return self._in_blocks(method, X, sample_domain)
        X, domain = self._check_rows(X, sample_domain)
        fitted = FittedCandidate(self.adapter_, self.estimator_)
        return predict_candidate(fitted, method, X, domain)

    def _in_blocks(self, method, X, sample_domain):
        check_is_fitted(self)
        check_rowwise(self.adapter_)
        return map_rows(self, method, X, sample_domain=sample_domain)

    def _adapt(self, X, sample_domain):
        X, domain = self._check_rows(X, sample_domain)
        where = {} if domain is None else {"sample_domain": domain}
        return represent(self.adapter_, X, **where)

    def _check_rows(self, X, sample_domain):
        """Return the rows to predict and their domains, validated."""
        check_is_fitted(self)
        X = _as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X, self._domains_of(sample_domain, X.shape[0])

    def _check_parts(self):
        """Refuse parts that are not estimators before scikit-learn asks them for their tags."""
        for name, part in (("adapter", self.adapter), ("estimator", self.estimator)):
            if part is None or (name == "adapter" and isinstance(part, str)):
                continue
            if isinstance(part, type):
                raise TypeError(
                    f"{name} must be an instance, such as {part.__name__}(), not the class itself."
                )
            if not hasattr(part, "fit"):
                raise TypeError(f"{name} must be an estimator with `fit`, got {part!r:.100}.")

    def _check_estimator(self, estimator):
        """Refuse a regressor among classes, and a classifier among numbers."""
        if (is_regressor if self._label_kind == "class" else is_classifier)(estimator):
            raise TypeError(
                f"{type(estimator).__name__} is of the wrong kind for {type(self).__name__}."
            )

    @property
    def _looks_at_target(self):
        """Whether anything but the estimator depends on target rows."""
        return self.adapter is not None

    def _keep_label_facts(self, labels, weights):
        """Keep what a subclass needs to know about the labels that the estimator was fitted to."""

    def _learn_class_shares(self, adapter, X, labels, domains, weights):
        """Learn the class proportions of the target; only classifiers do, if they are asked to."""

    def _learn_target_shares(self, X, unit):
        """Learn the class proportions of a new target domain; None: of rows without a domain."""

    def _keep_held_out(self, adapter, X, labels, domains, weights):
        """Keep labeled source rows, with what fits that left them out say of them."""
        check_keepable(X)
        known = np.flatnonzero(domains.label_mask)
        of_source = domains.source[known]
        held, y = known[of_source], labels[of_source]
        strata = self._strata(y)
        if np.count_nonzero(np.bincount(strata) >= MIN_KEPT) < self._n_strata:
            return  # too few rows to fit a model without some of them
        by_domain = np.unique(domains.sample_domain[held], return_inverse=True)[1].ravel()
        chosen = draw_kept(by_domain * (strata.max() + 1) + strata)
        held, y = held[chosen], y[chosen]
        said = cross_fit(
            adapter,
            self._base_estimator(),
            X,
            labels,
            domains,
            held,
            strata[chosen],
            self._say,
            label_kind=self._label_kind,
            sample_weight=weights,
        )
        self.held_out_rows_ = kept_features(_safe_indexing(X, held))
        self.held_out_labels_ = self._held_out_labels(y)
        self.held_out_domain_ = domains.sample_domain[held]
        self.held_out_scores_ = {ONE_MODEL: self._held_out_scores(said)}

    def _domains_of(self, sample_domain, n_samples):
        """Return the domains of rows to predict; None leaves the choice to the adapter."""
        if sample_domain is None:
            return None
        return check_new_domains(
            sample_domain, n_samples, has_target=True, domain_names=self.domain_names_
        )

    def _base_estimator(self):
        return self._default_estimator() if self.estimator is None else self.estimator

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = get_tags(self._base_estimator())
        first = estimator if self.adapter is None else get_tags(self._template())
        tags.input_tags.sparse = first.input_tags.sparse
        tags.input_tags.allow_nan = first.input_tags.allow_nan
        tags.non_deterministic = first.non_deterministic or estimator.non_deterministic
        tags.classifier_tags = estimator.classifier_tags
        tags.regressor_tags = estimator.regressor_tags
        tags.target_tags.required = True
        if _represents(self):
            tags.transformer_tags = first.transformer_tags
        return tags


def _check_weights(sample_weight, n_samples):
    if sample_weight is None:
        return None
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must hold one number per row: expected shape ({n_samples},), got "
            f"{weights.shape}."
        )
    return weights


def _as_rows(X):
    """Leave arrays, frames and sparse matrices alone, make an array of anything else."""
    check_readable(X, frames_of_dates=True)  # the adapter's first step may encode them
    if sparse.issparse(X):
        X = X.tocsr()  # the format whose rows can be picked
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected a 2-dimensional X, rows by features, got shape {tuple(X.shape)}. Reshape "
            "your data: X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row."
        )
    if X.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={tuple(X.shape)}): X has no rows.")
    return X
