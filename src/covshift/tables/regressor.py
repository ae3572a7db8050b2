"""A regressor of tables: encoder, adapted model, and what later files are compared with."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from covshift.domains import check_no_placeholders
from covshift.predictors.objective import R2
from covshift.predictors.prediction_sets import PredictionIntervals
from covshift.selection import AutoAdaptedRegressor
from covshift.tables.estimator import TableEstimator
from covshift.tables.matching import MatchedTables


class TableRegressor(RegressorMixin, TableEstimator):
    """Regressor of frames with mixed columns; what ``covshift adapt --task regression`` saves.

    Parameters
    ----------
    estimator : AdaptedRegressor, AutoAdaptedRegressor or None, default=None
        Model of the encoded rows; None: an `AutoAdaptedRegressor`.
    encoder : TableEncoder or None, default=None
        How columns become features; None: a `TableEncoder` as it comes.
    max_reference_rows : int, default=1000
        Encoded rows of each target that are kept in the model, as in `TableClassifier`.
    random_state : int, RandomState or None, default=0
        Which rows are kept.

    Attributes
    ----------
    encoder_, estimator_ : the fitted parts.
    label_ : str or None
        Name of the label column, from ``fit_tables``.
    label_range_ : list of two floats, or empty
        Smallest and largest label of the training table, from ``fit_tables``.
    label_spelling_ : str
        Unit of the label, as in `TableSchema`; empty: none.
    domain_, decimal_, domains_, domain_names_, reference_, reference_domain_
        As in `TableClassifier`.
    objective_ : str or callable
        Objective of the choice of a model; named adapters minimize squared errors: "r2".
    plain_ : TableRegressor
        The plain model beside the adapted one: that of an automatic choice, or the same estimator
        without adaptation.
    feature_names_in_, n_features_in_
        Columns.

    Notes
    -----
    **Cost**: that of the encoder and of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from covshift import AdaptedRegressor, DomainStandardScaler
    >>> from covshift.tables import TableRegressor, match_tables
    >>> rng = np.random.default_rng(0)
    >>> train = pd.DataFrame({"area": rng.normal(80, 9, 200), "city": ["Oslo", "Rome"] * 100})
    >>> train["price"] = 3 * train["area"] + 20
    >>> new = pd.DataFrame({"area": rng.normal(800, 90, 100), "city": ["Rome", "Oslo"] * 50})
    >>> model = TableRegressor(AdaptedRegressor(DomainStandardScaler()))
    >>> model = model.fit_tables(match_tables(train, new, label="price", task="regression"))
    >>> flats = pd.DataFrame({"city": ["Rome", "Rome"], "area": [800, 1000]})
    >>> model.predict(flats).round().tolist()
    [264.0, 315.0]
    """

    label_range_: list[float] = []

    @property
    def objective_(self) -> Any:
        """Objective of the choice of a model; named adapters minimize squared errors."""
        return super().objective_ or R2

    def predict_interval(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionIntervals:
        """Predict intervals of frames; parameters as in `AdaptedRegressor`."""
        estimator, Z, domain = self.unwrap(X, sample_domain)
        Z_target = None if X_target is None else self.encode(X_target)
        intervals: PredictionIntervals = estimator.predict_interval(
            Z, alpha, sample_domain=domain, X_target=Z_target
        )
        return intervals

    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the coefficient of determination R² on labeled rows; parameters as in ``predict``.

        The placeholders of unlabeled rows are an error.
        """
        prediction = self.predict(X, sample_domain=sample_domain)
        y = check_no_placeholders(y, self._domains_of(sample_domain, len(prediction)), None)
        return float(r2_score(y, prediction, sample_weight=sample_weight))

    def _keep_label_facts(self, tables: MatchedTables) -> None:
        self.label_range_ = [float(np.min(tables.y)), float(np.max(tables.y))]

    @staticmethod
    def _default_estimator() -> Any:
        return AutoAdaptedRegressor(random_state=0)
