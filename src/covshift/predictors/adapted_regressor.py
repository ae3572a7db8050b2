"""A regressor on top of an adapter."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from covshift.domains import check_no_placeholders
from covshift.predictors.adapted_estimator import AdaptedEstimator
from covshift.predictors.fitting import predict_candidate
from covshift.predictors.prediction_sets import IntervalPredictor


class AdaptedRegressor(IntervalPredictor, RegressorMixin, AdaptedEstimator):
    """Regressor that adapts to the target before it learns.

    As `AdaptedClassifier`, for a number as label. The adapter is fitted without labels:
    those that read labels need classes.

    Parameters
    ----------
    adapter : transformer, weight estimator, pipeline, str or None, default=None
        How to adapt; None: not at all. A name of `covshift.registry`, such as "coral", means that
        adapter with its preprocessing and settings for automatic use. A pipeline hands
        ``sample_domain`` to the steps that ask for it. A transformer that ignores domains is
        fitted on all rows.
    estimator : regressor, default=None
        What to fit on the adapted rows; None: a ridge regression.
    keep_rows : bool, default=False
        Whether to keep at most 1,000 labeled source rows, with what fits without them say of them,
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

    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the coefficient of determination R² on labeled rows; parameters as in ``predict``.

        The placeholders of unlabeled rows are an error.
        """
        prediction = self.predict(X, sample_domain=sample_domain)
        y = check_no_placeholders(y, self._domains_of(sample_domain, len(prediction)), None)
        return float(r2_score(y, prediction, sample_weight=sample_weight))
