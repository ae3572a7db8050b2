"""A regressor on top of an adapter."""

from sklearn.base import RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from covshift.predictors._adapted import AdaptedEstimator


class AdaptedRegressor(RegressorMixin, AdaptedEstimator):
    """Regressor that adapts to the target before it learns.

    As `AdaptedClassifier`, for a number as label. The adapter is fitted without labels:
    those that read labels need classes.

    Parameters
    ----------
    adapter : transformer, weight estimator, pipeline or None, default=None
        How to adapt; None: not at all. A pipeline hands ``sample_domain`` to the steps that
        ask for it. A transformer that knows no domains is fitted on all rows.
    estimator : regressor, default=None
        What to fit on the adapted rows; None: a ridge regression.

    Attributes
    ----------
    adapter_ : fitted adapter, or None.
    estimator_ : fitted regressor.
    domains_, domain_names_, n_features_in_, feature_names_in_
        As in `AdaptedClassifier`.

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

    def score(self, X, y, *, sample_domain=None, sample_weight=None):
        """Coefficient of determination R² on labelled rows; parameters as in ``predict``.

        The placeholder of an unlabelled row, NaN, is an error.
        """
        prediction = self.predict(X, sample_domain=sample_domain)
        return r2_score(y, prediction, sample_weight=sample_weight)
