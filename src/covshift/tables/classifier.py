"""A classifier of tables: encoder, adapted model, and what later files are compared with."""

from typing import Any

from sklearn.utils.metaestimators import available_if

from covshift.base import ScoredClassifier
from covshift.kernels.arrays import FloatArray
from covshift.predictors.prediction_sets import PredictionSets
from covshift.selection import AutoAdaptedClassifier
from covshift.tables.estimator import TableEstimator
from covshift.tables.matching import MatchedTables


def _estimator_has(method):
    def check(self):
        return hasattr(getattr(self, "estimator_", None) or self._base_estimator(), method)

    return check


class TableClassifier(ScoredClassifier, TableEstimator):
    """Classifier of frames with mixed columns; what ``covshift adapt`` saves.

    Parameters
    ----------
    estimator : AdaptedClassifier, AutoAdaptedClassifier or None, default=None
        Model of the encoded rows; None: an `AutoAdaptedClassifier`.
    encoder : TableEncoder or None, default=None
        How columns become features; None: a `TableEncoder` as it comes.
    max_reference_rows : int, default=1000
        Encoded rows of each target that are kept in the model, drawn at random, for later
        batches to be compared with (`covshift.tables.monitor_batch`). 0: none.
    random_state : int, RandomState or None, default=0
        Which rows are kept.

    Attributes
    ----------
    encoder_, estimator_ : the fitted parts.
    classes_ : ndarray of shape (n_classes,)
    label_ : str or None
        Name of the label column, from ``fit_tables``.
    label_edges_ : list
        Where a numeric label was cut into the ranges that are the classes; empty: it was not.
    domain_ : str or None
        Name of the domain column, from ``fit_tables``.
    decimal_ : {".", ","}
        Decimal sign of the training file, from ``fit_tables``.
    label_spelling_ : str
        Unit of a numeric label that is cut into ranges, as in `TableSchema`; empty: none.
    objective_ : str, callable or None
        Objective that ``predict`` maximizes; None: the estimator decides in its own way.
    plain_ : TableClassifier or None
        The plain model beside the adapted one: for an `AutoAdaptedClassifier` its ``plain_``, for
        an `AdaptedClassifier` the same estimator without adaptation (a logistic regression, if
        the estimator uses target rows itself). None in models saved by version 0.1.
    domains_, domain_names_ : domains known, and integer -> name.
    reference_ : ndarray of shape (n_kept, n_features)
        Encoded target rows that were kept, and ``reference_domain_``, the domain of each.
    feature_names_in_, n_features_in_
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from covshift import AdaptedClassifier, DomainStandardScaler
    >>> from covshift.tables import TableClassifier, match_tables
    >>> rng = np.random.default_rng(0)
    >>> train = pd.DataFrame({"age": rng.normal(40, 9, 200), "city": ["Oslo", "Rome"] * 100})
    >>> train["ill"] = np.where(train["age"] > 40, "yes", "no")
    >>> new = pd.DataFrame({"age": rng.normal(60, 9, 100), "city": ["Rome", "Oslo"] * 50})
    >>> model = TableClassifier(AdaptedClassifier(DomainStandardScaler()))
    >>> model = model.fit_tables(match_tables(train, new, label="ill"))
    >>> model.predict(pd.DataFrame({"city": ["Rome", "Rome"], "age": [50, 70]})).tolist()
    ['no', 'yes']
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved by version 0.1 have no plain model and forgot their domain column.
        super().__setstate__({"domain_": None, "plain_estimator_": None, **state})

    @property
    def classes_(self) -> Any:
        """Classes, in the order of the columns of ``predict_proba``."""
        return self.estimator_.classes_

    @available_if(_estimator_has("decide"))
    def decide(self, P: Any) -> Any:
        """Return the classes that ``predict`` chooses for rows with these probabilities."""
        return self.estimator_.decide(P)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the class probabilities of rows; parameters as in ``predict``."""
        Z = self.encode(X)
        domain = self._domains_of(sample_domain, len(Z))
        probabilities: FloatArray = self.estimator_.predict_proba(Z, sample_domain=domain)
        return probabilities

    @available_if(_estimator_has("predict_set"))
    def predict_set(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionSets:
        """Predict sets of classes of frames; parameters as in `AdaptedClassifier`."""
        estimator, Z, domain = self.unwrap(X, sample_domain)
        Z_target = None if X_target is None else self.encode(X_target)
        sets: PredictionSets = estimator.predict_set(
            Z, alpha, sample_domain=domain, X_target=Z_target
        )
        return sets

    def _keep_label_facts(self, tables: MatchedTables) -> None:
        self.label_edges_ = list(tables.label_edges)

    @staticmethod
    def _default_estimator() -> Any:
        return AutoAdaptedClassifier(random_state=0)
