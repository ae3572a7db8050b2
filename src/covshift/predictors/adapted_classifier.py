"""A classifier on top of an adapter."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from covshift.base import ScoredClassifier, check_option
from covshift.kernels.arrays import FloatArray
from covshift.kernels.probabilities import fit_scaling, reweigh_classes, scaled_probabilities
from covshift.predictors.adapted_estimator import AdaptedEstimator
from covshift.predictors.class_proportions import (
    SHARE_PRIOR,
    TARGET,
    fit_held_out_scaling,
    ratios_by_domain,
    ratios_of_rows,
    share_ratios,
)
from covshift.predictors.fitting import class_logits
from covshift.predictors.objective import (
    BALANCED_ACCURACY,
    OBJECTIVES,
    class_shares,
    decide_classes,
)
from covshift.predictors.prediction_sets import SetPredictor
from covshift.streams import is_streamed

SOURCE, ESTIMATED = "source", "estimated"


def _estimator_has(method):
    def check(self):
        return hasattr(getattr(self, "estimator_", None) or self._base_estimator(), method)

    return check


def _has_probabilities(self):
    return self.class_shares == ESTIMATED or _estimator_has("predict_proba")(self)


def _has_logarithms(self):
    return self.class_shares == ESTIMATED or _estimator_has("predict_log_proba")(self)


def _has_margins(self):
    # Margins ignore class proportions: the most probable class may have a smaller margin.
    return self.class_shares != ESTIMATED and _estimator_has("decision_function")(self)


def _decides(self):
    return self.class_shares == ESTIMATED or (
        self.objective is not None and _estimator_has("predict_proba")(self)
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
        Whether to keep at most 1,000 labeled source rows, with what fits without them say of them,
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
    ``covshift/kernels/probabilities.py`` and ``covshift/kernels/probabilities.py``.

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
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the class probabilities of rows; parameters as in ``predict``."""
        return self._predict_by("predict_proba", X, sample_domain)

    @available_if(_has_logarithms)
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the logarithms of the class probabilities; parameters as in ``predict``."""
        return self._predict_by("predict_log_proba", X, sample_domain)

    @available_if(_has_margins)
    def decision_function(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Return the margins of rows; parameters as in ``predict``."""
        return self._predict_by("decision_function", X, sample_domain)

    def _predict_by(self, method, X, sample_domain):
        if method == "predict" and _decides(self) and not is_streamed(X):
            return self.decide(self.predict_proba(X, sample_domain=sample_domain))
        if self.class_shares == ESTIMATED and not is_streamed(X):
            P = self._reweighed(*self._check_rows(X, sample_domain))
            return np.log(np.maximum(P, np.finfo(P.dtype).tiny)) if "log" in method else P
        return super()._predict_by(method, X, sample_domain)

    @property
    def _looks_at_target(self):
        return super()._looks_at_target or self.class_shares == ESTIMATED

    def _learn_class_shares(self, adapter, X, labels, domains, weights):
        if self.class_shares != ESTIMATED:
            return
        if is_streamed(X):
            raise ValueError(
                'class_shares="estimated" fits the model to parts of the source, which needs the '
                'rows in memory: fit it to a sample of the rows, or use class_shares="source".'
            )
        self._source_shares = self.class_shares_
        self._scaling = fit_held_out_scaling(
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
        return P if ratios is None else reweigh_classes(P, ratios)

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
