"""Importance weights from a classifier of source against target."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import check_random_state

from covshift.base import check_count
from covshift.kernels.array_types import FloatArray
from covshift.weights._weight_estimator import WeightEstimator

CALIBRATED = (LogisticRegression, LogisticRegressionCV, CalibratedClassifierCV)
# A probability of source below it is rounding: weights stay finite.
SMALLEST_CHANCE = float(np.finfo(np.float64).eps)


class ClassifierWeights(WeightEstimator):
    r"""Importance weights from the odds of a classifier of target against source.

    .. math:: w(x) = \frac{P(\text{target} \mid x)}{P(\text{source} \mid x)} \,
        \frac{n_\text{source}}{n_\text{target}}

    The weights of the source rows are cross-fitted: each comes from a classifier that did not
    see the row, so that one which memorizes its rows does not call them all source.

    **Assumption**: P(y | x) is the same in both domains, the target lies where the source has
    rows too, and the classifier's probabilities are right. The default's are if the log-ratio
    is a sum of quadratic functions of single features, as for Gaussians whose features are
    independent or have the same covariance in both domains.

    Parameters
    ----------
    classifier : classifier or None, default=None
        Separates target rows from source rows. None: logistic regression on the standardized
        features and their squares. Any other is calibrated (sigmoid, by
        ``CalibratedClassifierCV``) unless it is so already: logistic regression,
        ``CalibratedClassifierCV``, or a pipeline that ends in one.
    cv : int, default=5
        Folds of the cross-fitting and of the calibration; fewer, if a role has fewer rows.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Estimates of the ratio at the source rows, in their order, not normalized.
    classifiers_ : list
        The classifier of each fold, whose probabilities ``score_weights`` averages. If a role
        has a single row: one, uncalibrated, fitted on all rows.
    effective_sample_size_, mean_weight_, share_zero_, domains_
        As in `ULSIFWeights`.

    Notes
    -----
    **Cost**: ``cv`` fits of the classifier on all rows (each several if it must be
    calibrated), and their predictions; by default O(n m) time for an iteration of the logistic
    regression and O(n m) memory.

    References
    ----------
    S. Bickel, M. Brückner, T. Scheffer, "Discriminative learning for differing training and
    test distributions", ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import ClassifierWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = ClassifierWeights(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.3])
    """

    def __init__(self, classifier=None, *, cv=5, random_state=None):
        self.classifier = classifier
        self.cv = cv
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("cv", self.cv, minimum=2)
        if self.classifier is not None and not hasattr(self.classifier, "fit"):
            raise TypeError(f"classifier must be a classifier or None, got {self.classifier!r}.")
        check_random_state(self.random_state)

    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        X = np.concatenate([source, target])
        is_target = np.repeat([0, 1], [len(source), len(target)])
        self._prior = len(source) / len(target)
        n_folds = min(self.cv, len(source), len(target))
        if n_folds == 1:  # nothing can be held out of a role of one row
            self.classifiers_ = [_classifier(self.classifier, 1).fit(X, is_target)]
            return self._evaluate(source)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        P_target = np.empty(len(X))
        self.classifiers_ = []
        for train, test in folds.split(X, is_target):
            rarest = int(np.bincount(is_target[train]).min())
            classifier = _classifier(self.classifier, min(self.cv, rarest))
            self.classifiers_.append(classifier.fit(X[train], is_target[train]))
            P_target[test] = classifier.predict_proba(X[test])[:, 1]
        return self._ratio(P_target[: len(source)])

    def _evaluate(self, X: FloatArray) -> FloatArray:
        return self._ratio(np.mean([c.predict_proba(X)[:, 1] for c in self.classifiers_], axis=0))

    def _ratio(self, P_target: FloatArray) -> FloatArray:
        ratio: FloatArray = P_target / np.maximum(1 - P_target, SMALLEST_CHANCE) * self._prior
        return ratio


def _classifier(classifier: Any, n_folds: int) -> Any:
    """Return an unfitted classifier, calibrated if it needs to be and can be."""
    if classifier is None:
        return make_pipeline(
            StandardScaler(),
            FunctionTransformer(_with_squares),
            LogisticRegression(max_iter=1000),
        )
    last = classifier.steps[-1][1] if isinstance(classifier, Pipeline) else classifier
    if isinstance(last, CALIBRATED) or n_folds == 1:
        return clone(classifier)
    return CalibratedClassifierCV(clone(classifier), cv=n_folds)


def _with_squares(Z: FloatArray) -> FloatArray:
    return np.concatenate([Z, np.square(Z)], axis=1)
