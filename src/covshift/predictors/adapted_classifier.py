"""A classifier on top of an adapter."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if

from covshift.base import check_option
from covshift.predictors.adapted_estimator import AdaptedEstimator
from covshift.predictors.objective import (
    BALANCED_ACCURACY,
    OBJECTIVES,
    class_shares,
    decide_classes,
)
from covshift.predictors.scored_classifier import ScoredClassifier
from covshift.streams import is_streamed


def _estimator_has(method):
    def check(self):
        return hasattr(getattr(self, "estimator_", None) or self._base_estimator(), method)

    return check


def _decides(self):
    return self.objective is not None and _estimator_has("predict_proba")(self)


class AdaptedClassifier(ScoredClassifier, AdaptedEstimator):
    """Classifier that adapts to the target before it learns.

    The adapter is fitted on the rows of all domains, the classifier on the adapted rows
    whose labels are known (those of the source). New rows are adapted as target rows, then
    classified.

    Parameters
    ----------
    adapter : transformer, weight estimator, pipeline, str or None, default=None
        How to adapt; None: not at all. A name of `covshift.registry`, such as "coral", means that
        adapter with its preprocessing and settings for automatic use. A pipeline hands
        ``sample_domain`` to the steps that ask for it. A transformer that knows no domains is
        fitted on all rows, without labels.
    estimator : classifier, default=None
        What to fit on the adapted rows; None: a logistic regression.
    objective : {"accuracy", "balanced_accuracy"} or None, default=None
        What ``predict`` maximizes. "accuracy": the most probable class, or the estimator's own
        decision if it has no ``predict_proba``. "balanced_accuracy": the class whose probability
        is largest compared with its share among the labels, which needs ``predict_proba``. None:
        the estimator's own decision.

    Attributes
    ----------
    adapter_ : adapter or None
        The fitted adapter.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labels, weighted by ``sample_weight``.
    domains_ : ndarray
        Domains known, from the fit or from ``adapt_target``.
    domain_names_ : dict
        Integer -> name of the targets learned by name in ``adapt_target``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **Cost**: the fits of adapter and estimator; beside theirs, memory for one adapted copy of
    the rows.

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

    def __init__(
        self, adapter: Any = None, estimator: Any = None, *, objective: str | None = None
    ) -> None:
        super().__init__(adapter, estimator)
        self.objective = objective

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved by version 0.1 have no objective.
        super().__setstate__({"objective": None, **state})

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

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Class probabilities of rows; parameters as in ``predict``."""
        return self._predict_by("predict_proba", X, sample_domain)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Logarithms of the class probabilities; parameters as in ``predict``."""
        return self._predict_by("predict_log_proba", X, sample_domain)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Margins of rows; parameters as in ``predict``."""
        return self._predict_by("decision_function", X, sample_domain)

    def _predict_by(self, method, X, sample_domain):
        if method == "predict" and _decides(self) and not is_streamed(X):
            return self.decide(self.predict_proba(X, sample_domain=sample_domain))
        return super()._predict_by(method, X, sample_domain)

    def _check_estimator(self, estimator):
        super()._check_estimator(estimator)
        if self.objective is None:
            return
        check_option("objective", self.objective, OBJECTIVES)
        if self.objective == BALANCED_ACCURACY and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f'objective="balanced_accuracy" needs probabilities, and '
                f"{type(estimator).__name__} has no predict_proba. Use an estimator that has, such "
                'as LogisticRegression, or objective="accuracy".'
            )

    def _keep_label_facts(self, labels, weights):
        codes = np.searchsorted(self.classes_, labels)
        self.class_shares_ = class_shares(codes, len(self.classes_), weights)
