"""Any labels for a classifier that takes 0, 1, ... only."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


class NumberedClasses(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Number the classes for a classifier, and name them again in what it predicts.

    XGBoost's ``XGBClassifier`` refuses labels other than 0, 1, ..., n_classes - 1.

    Parameters
    ----------
    estimator : classifier
        It is fitted to the positions of the labels in ``classes_``.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from covshift.predictors.numbered_classes import NumberedClasses
    >>> model = NumberedClasses(DecisionTreeClassifier()).fit([[0], [1]], ["no", "yes"])
    >>> model.predict([[0.9]]).tolist(), model.estimator_.classes_.tolist()
    (['yes'], [0, 1])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to the numbers of the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, codes, **weights)
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict(self, X: Any) -> Any:
        """Return the label of each row."""
        check_is_fitted(self)
        return self.classes_[np.asarray(self.estimator_.predict(X)).astype(np.int64)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)
