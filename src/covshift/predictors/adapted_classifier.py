"""A classifier on top of an adapter."""

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if

from covshift.predictors.adapted_estimator import AdaptedEstimator
from covshift.predictors.scored_classifier import ScoredClassifier


def _estimator_has(method):
    def check(self):
        return hasattr(getattr(self, "estimator_", None) or self._base_estimator(), method)

    return check


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

    Attributes
    ----------
    adapter_ : adapter or None
        The fitted adapter.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
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

    @staticmethod
    def _default_estimator():
        return LogisticRegression(max_iter=1000)

    @property
    def classes_(self):
        """Classes, in the order of the columns of ``predict_proba``."""
        return self.estimator_.classes_

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
