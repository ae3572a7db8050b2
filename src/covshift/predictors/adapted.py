"""`AdaptedClassifier` and `AdaptedRegressor`: a model on top of an adapter, and their base."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import (
    DomainRequests,
    RefitNeededError,
    ScoredClassifier,
    ScoredRegressor,
    TargetLearner,
    all_or_nothing,
    check_flag,
    check_option,
    register_target,
    warn_nothing_to_adapt,
)
from covshift.domains import (
    check_fit_domains,
    check_new_domains,
    known_labels,
)
from covshift.kernels.array_types import FloatArray
from covshift.kernels.probabilities import (
    class_shares,
    fit_scaling,
    reweigh_probabilities,
    scaled_probabilities,
)
from covshift.predictors.adapter_steps import check_rowwise, last_step, uses_target_rows
from covshift.predictors.class_proportions import (
    SHARE_PRIOR,
    TARGET,
    fit_proportion_scaling,
    ratios_by_domain,
    ratios_of_rows,
    share_ratios,
)
from covshift.predictors.fit_and_predict import (
    FittedCandidate,
    adapt_target_of,
    class_logits,
    fit_candidate,
    predict_candidate,
    problem_size,
    represent,
)
from covshift.predictors.held_out_rows import (
    NOT_KEEPABLE,
    HeldOutRows,
    check_keepable,
    cross_fit,
    draw_held_out_rows,
    kept_features,
)
from covshift.predictors.objectives import (
    BALANCED_ACCURACY,
    OBJECTIVES,
    decide_classes,
)
from covshift.predictors.prediction_sets import IntervalPredictor, SetPredictor
from covshift.registry import Size, find_record
from covshift.row_checks import check_readable
from covshift.shared_docs import documented_like
from covshift.streams import bring_home, is_streamed, map_rows
from covshift.streams.rows import as_blocks

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
    # Held-out rows, of models that keep some: see `covshift.predictors.held_out_rows`.
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
            check_flag("keep_rows", self.keep_rows)
            if is_streamed(X):
                self._check_streamable()
                X = as_blocks(X)
            else:
                X = _as_rows(X)
            self._check_parts()
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
        return self._by_rows("predict", X, sample_domain)

    @property
    def held_out_(self) -> HeldOutRows | None:
        """Source rows that the model keeps, with held-out predictions; None: it keeps none."""
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
    @documented_like(predict)
    def transform(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the rows as the estimator sees them.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features_out)
            A Dask array, if X is one.
        """
        return self._by_rows("transform", X, sample_domain)

    @available_if(_represents)
    @documented_like(fit)
    def fit_transform(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Fit, then transform the same rows, each as a row of its own domain.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features_out)
        """
        self.fit(
            X, y, sample_domain=sample_domain, label_mask=label_mask, sample_weight=sample_weight
        )
        return self.transform(X, sample_domain=sample_domain)

    @available_if(_adapts)
    @documented_like(TargetLearner.adapt_target)
    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target domain without the training data, if the adapter can.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows of the new target.
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
        # Abilities of an adapter do not depend on the size of the problem; any size serves to ask.
        return find_record(self.adapter).build(Size(n_source=100, n_target=100, n_features=2))

    def _by_rows(self, method, X, sample_domain):
        """Return the output of one of our methods for rows of any kind."""
        if is_streamed(X):
            check_is_fitted(self)
            check_rowwise(self.adapter_)
            return map_rows(self, method, X, sample_domain=sample_domain)
        return self._by_checked_rows(method, *self._check_rows(X, sample_domain))

    def _by_checked_rows(self, method, X, domain):
        """Return the output of one of our methods for rows in memory."""
        if method == "transform":
            where = {} if domain is None else {"sample_domain": domain}
            return represent(self.adapter_, X, **where)
        return predict_candidate(FittedCandidate(self.adapter_, self.estimator_), method, X, domain)

    def _check_streamable(self):
        """Refuse rows in blocks for what needs them all in memory."""
        if self.keep_rows:
            raise ValueError(NOT_KEEPABLE)

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
        """Keep labeled source rows, with their held-out predictions."""
        check_keepable(X)
        known = np.flatnonzero(domains.label_mask)
        of_source = domains.source[known]
        held, y = known[of_source], labels[of_source]
        strata = self._strata(y)
        if np.count_nonzero(np.bincount(strata) >= MIN_KEPT) < self._n_strata:
            return  # too few rows to fit a model without some of them
        by_domain = np.unique(domains.sample_domain[held], return_inverse=True)[1].ravel()
        # Of each domain and class about its share.
        chosen = draw_held_out_rows(by_domain * (strata.max() + 1) + strata)
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


# --- Classes as labels ---


SOURCE, ESTIMATED = "source", "estimated"


def estimator_has(method):
    """Return a check for `available_if`: whether an adapted estimator has a method.

    The estimator is the fitted one, or the one given.
    """

    def check(self):
        return hasattr(getattr(self, "estimator_", None) or self._base_estimator(), method)

    return check


def _has_probabilities(self):
    return self.class_shares == ESTIMATED or estimator_has("predict_proba")(self)


def _has_logarithms(self):
    return self.class_shares == ESTIMATED or estimator_has("predict_log_proba")(self)


def _has_margins(self):
    # Margins ignore class proportions: the most probable class may have a smaller margin.
    return self.class_shares != ESTIMATED and estimator_has("decision_function")(self)


def _decides(self):
    return self.class_shares == ESTIMATED or (
        self.objective is not None and estimator_has("predict_proba")(self)
    )


class AdaptedClassifier(SetPredictor, ScoredClassifier, AdaptedEstimator):
    """Classifier that adapts to the target before it learns.

    The adapter is fitted on the rows of all domains, the classifier on the adapted rows
    whose labels are known (those of the source). New rows are adapted as target rows, then
    classified.

    Parameters
    ----------
    adapter : transformer, weight estimator, pipeline, str or None, default=None
        How to adapt; None: not at all. A name of `covshift.registry`, such as "coral", means that
        adapter with its preprocessing and settings for automatic use. A pipeline hands
        ``sample_domain`` to the steps that ask for it. A transformer that ignores domains is
        fitted on all rows, without labels.
    estimator : classifier, default=None
        What to fit on the adapted rows; None: a logistic regression.
    objective : {"accuracy", "balanced_accuracy"} or None, default=None
        Objective that ``predict`` maximizes. "accuracy": the most probable class, or the
        estimator's own decision if it has no ``predict_proba``. "balanced_accuracy": the class
        whose probability is largest compared with its share among the labels, which needs
        ``predict_proba``. None: the estimator's own decision.
    class_shares : {"source", "estimated"}, default="source"
        Class proportions that ``predict_proba`` is made for. "source": the estimator's own
        probabilities. "estimated": probabilities calibrated on held-out source rows, for class
        proportions estimated for each target domain (see Notes); ``predict`` returns the most
        probable class. It assumes that only class proportions differ between the adapted
        source and target, and harms where that is wrong: on real tasks with a shift it lost .01 to
        .03 accuracy with most models (docs/results/selection.md).
    keep_rows : bool, default=False
        Whether to keep at most 1,000 labeled source rows, with predictions by fits without them,
        for ``predict_set`` and `covshift.estimate_performance`. They are a part of the model and of
        its file. It takes three more fits. None are kept where fewer than two classes have two
        labeled source rows.

    Attributes
    ----------
    adapter_ : adapter or None
        The fitted adapter.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labels, weighted by ``sample_weight``; with
        ``class_shares="estimated"`` those estimated for all target rows.
    domains_ : ndarray
        Domains known, from the fit or from ``adapt_target``.
    domain_names_ : dict
        Integer -> name of the targets learned by name in ``adapt_target``.
    held_out_ : HeldOutRows or None
        Source rows that are kept (``keep_rows``): ``X``, class numbers ``y``, ``domain``, and
        ``scores``, their calibrated class probabilities by fits that left them out.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With ``class_shares="estimated"`` the scores of the estimator become probabilities by one slope
    and one offset for each class (bias-corrected temperature scaling), fitted to labeled source
    rows in three folds that adapter and estimator are fitted without. Class proportions of the
    target maximize the likelihood of its rows, by expectation and maximization, with a prior worth
    0.3 rows of the source's proportions for each target row. Target domains of 30 rows or more have
    proportions of their own; others, and rows without ``sample_domain``, have those of all target
    rows. Source rows keep the proportions of the source. Formulas and references:
    ``covshift/kernels/probabilities.py``.

    **Cost**: the fits of adapter and estimator; beside theirs, memory for one adapted copy of
    the rows. ``class_shares="estimated"`` fits both three more times, to two thirds of the source
    and all target rows; so does ``keep_rows=True``.

    Examples
    --------
    >>> from covshift import AdaptedClassifier, PeriodicSparseFiltering, stack_domains
    >>> from covshift.datasets import make_periodic_shift
    >>> data = make_periodic_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(PeriodicSparseFiltering(random_state=0))
    >>> model = model.fit(X, y, sample_domain=sample_domain)
    >>> bool(model.score(data.X_test, data.y_test) > 0.8)
    True
    """

    _label_kind = "class"
    _n_strata = 2

    def __init__(
        self,
        adapter: Any = None,
        estimator: Any = None,
        *,
        objective: str | None = None,
        class_shares: str = SOURCE,
        keep_rows: bool = False,
    ) -> None:
        super().__init__(adapter, estimator, keep_rows=keep_rows)
        self.objective = objective
        self.class_shares = class_shares

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved by version 0.1 have neither.
        super().__setstate__({"objective": None, "class_shares": SOURCE, **state})

    @staticmethod
    def _default_estimator():
        return LogisticRegression(max_iter=1000)

    @property
    def classes_(self):
        """Classes, in the order of the columns of ``predict_proba``."""
        return self.estimator_.classes_

    @available_if(_decides)
    def decide(self, P: Any) -> Any:
        """Return the classes that ``predict`` chooses for rows with these probabilities.

        Parameters
        ----------
        P : array-like of shape (n_samples, n_classes)
            From ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        P = np.asarray(P, dtype=np.float64)
        return self.classes_[decide_classes(P, self.objective, self.class_shares_)]

    @available_if(_has_probabilities)
    @documented_like(AdaptedEstimator.predict)
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the class probabilities of rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. A Dask array, if X is one.
        """
        return self._by_rows("predict_proba", X, sample_domain)

    @available_if(_has_logarithms)
    @documented_like(AdaptedEstimator.predict)
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the logarithms of the class probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. A Dask array, if X is one.
        """
        return self._by_rows("predict_log_proba", X, sample_domain)

    @available_if(_has_margins)
    @documented_like(AdaptedEstimator.predict)
    def decision_function(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the margins of rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As the estimator gives them. A Dask array, if X is one.
        """
        return self._by_rows("decision_function", X, sample_domain)

    def _by_checked_rows(self, method, X, domain):
        if method == "predict" and _decides(self):
            return self.decide(self._by_checked_rows("predict_proba", X, domain))
        if self.class_shares == ESTIMATED and method != "transform":
            P = self._reweighed(X, domain)
            return np.log(np.maximum(P, np.finfo(P.dtype).tiny)) if "log" in method else P
        return super()._by_checked_rows(method, X, domain)

    def _check_streamable(self):
        super()._check_streamable()
        if self.class_shares == ESTIMATED:
            raise ValueError(
                'class_shares="estimated" fits the model to parts of the source, which needs the '
                'rows in memory: fit it to a sample of the rows, or use class_shares="source".'
            )

    @property
    def _looks_at_target(self):
        return super()._looks_at_target or self.class_shares == ESTIMATED

    def _learn_class_shares(self, adapter, X, labels, domains, weights):
        if self.class_shares != ESTIMATED:
            return
        self._source_shares = self.class_shares_
        self._scaling = fit_proportion_scaling(
            adapter, self._base_estimator(), X, labels, domains, weights
        )
        # Shares of each target domain over those of the source: see `class_proportions`.
        self._share_ratios: dict[str, FloatArray] = {}
        if domains.has_target:
            target = np.flatnonzero(domains.target)
            domain = domains.sample_domain[target]
            P = self._calibrated(_safe_indexing(X, target), domain)
            self._share_ratios = ratios_by_domain(domain, lambda rows: self._ratios(P[rows]))
            self.class_shares_ = self._share_ratios[TARGET] * self._source_shares

    def _learn_target_shares(self, X, unit):
        if self.class_shares != ESTIMATED:
            return
        # Probabilities of the new rows as rows of the new target, whose statistics the adapter has
        # by now.
        domain = None if unit is None else np.full(X.shape[0], unit)
        ratios = self._ratios(self._calibrated(X, domain))
        self._share_ratios = {**self._share_ratios, TARGET if unit is None else str(unit): ratios}
        if TARGET not in self._share_ratios:  # the fit saw no target
            self._share_ratios[TARGET] = ratios
        self.class_shares_ = self._share_ratios[TARGET] * self._source_shares

    def _ratios(self, P):
        return share_ratios(P, self._source_shares, SHARE_PRIOR)

    def _calibrated(self, X, domain):
        """Return the probabilities for the class proportions of the source."""
        return scaled_probabilities(class_logits(self, X, self.classes_, domain), self._scaling)

    def _reweighed(self, X, domain):
        P = self._calibrated(X, domain)
        ratios = ratios_of_rows(self._share_ratios, domain, X.shape[0], len(self.classes_))
        return P if ratios is None else reweigh_probabilities(P, ratios)

    def _check_estimator(self, estimator):
        super()._check_estimator(estimator)
        check_option("class_shares", self.class_shares, (SOURCE, ESTIMATED))
        if self.class_shares == ESTIMATED and self.objective == BALANCED_ACCURACY:
            raise ValueError(
                'objective="balanced_accuracy" does not depend on class proportions: use '
                'class_shares="source".'
            )
        if self.objective is None:
            return
        check_option("objective", self.objective, OBJECTIVES)
        if self.objective == BALANCED_ACCURACY and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f'objective="balanced_accuracy" needs probabilities, and '
                f"{type(estimator).__name__} has no predict_proba. Use an estimator that has, such "
                'as LogisticRegression, or objective="accuracy".'
            )

    def _strata(self, labels):
        return np.searchsorted(self.classes_, labels)

    def _say(self, fitted, X, domain):
        return class_logits(fitted, X, self.classes_, domain)

    def _held_out_labels(self, labels):
        return np.searchsorted(self.classes_, labels)

    def _held_out_scores(self, logits):
        self._held_out_scaling = fit_scaling(logits, self.held_out_labels_, np.ones(len(logits)))
        return scaled_probabilities(logits, self._held_out_scaling)

    def _set_probabilities(self, X, sample_domain):
        X, domain = self._check_rows(X, sample_domain)
        logits = class_logits(self, X, self.classes_, domain)
        return scaled_probabilities(logits, self._held_out_scaling)

    def _keep_label_facts(self, labels, weights):
        codes = np.searchsorted(self.classes_, labels)
        self.class_shares_ = class_shares(codes, len(self.classes_), weights)


# --- Numbers as labels ---


@documented_like(AdaptedClassifier)
class AdaptedRegressor(IntervalPredictor, ScoredRegressor, AdaptedEstimator):
    """Regressor that adapts to the target before it learns.

    As `AdaptedClassifier`, for a number as label. The adapter is fitted without labels:
    those that read labels need classes.

    Parameters
    ----------
    estimator : regressor, default=None
        What to fit on the adapted rows; None: a ridge regression.
    keep_rows : bool, default=False
        Whether to keep at most 1,000 labeled source rows, with predictions by fits without them,
        for ``predict_interval``. It takes three more fits.

    Attributes
    ----------
    adapter_ : adapter or None
        The fitted adapter.
    estimator_ : regressor
        The fitted regressor.
    held_out_ : HeldOutRows or None
        Source rows that are kept (``keep_rows``): ``X``, labels ``y``, ``domain``, and ``scores``,
        their predictions by fits that left them out.
    domains_, domain_names_, n_features_in_, feature_names_in_
        As in `AdaptedClassifier`.

    Notes
    -----
    **Cost**: the fits of adapter and estimator; beside theirs, memory for one adapted copy of
    the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import AdaptedRegressor, SparseFiltering, stack_domains
    >>> rng = np.random.RandomState(0)
    >>> X_source, X_target = rng.randn(60, 3) + 1, rng.randn(40, 3) - 1
    >>> X, y, sample_domain = stack_domains(X_source, X_source[:, 0] ** 2, X_target)
    >>> model = AdaptedRegressor(SparseFiltering(random_state=0, max_iter=1000))
    >>> model.fit(X, y, sample_domain=sample_domain).predict(X_target).shape
    (40,)
    """

    _label_kind = "number"

    @staticmethod
    def _default_estimator():
        return Ridge()

    def _strata(self, labels):
        return np.zeros(len(labels), dtype=int)

    def _say(self, fitted, X, domain):
        said = predict_candidate(fitted, "predict", X, domain)
        return np.asarray(said, dtype=np.float64).reshape(X.shape[0])

    def _held_out_labels(self, labels):
        return np.asarray(labels, dtype=np.float64)

    def _held_out_scores(self, predictions):
        return predictions
