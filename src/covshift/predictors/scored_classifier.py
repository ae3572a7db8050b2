"""Parts shared by predictors that know domains: requests of metadata, and accuracy."""

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from covshift.domains import check_no_placeholders
from covshift.streams import bring_home


class DomainRequests:
    """Default requests of predictors, so that pipelines and searches hand on the domains."""

    _requests = {"sample_domain": True}
    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__predict = _requests
    __metadata_request__predict_proba = _requests
    __metadata_request__predict_log_proba = _requests
    __metadata_request__score = _requests


class ScoredClassifier(ClassifierMixin, DomainRequests):
    """Base of the classifiers whose ``score`` refuses rows without a label.

    A subclass has ``_domains_of(sample_domain, n_samples)``, the domains of rows to predict.
    """

    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the accuracy on labeled rows.

        Parameters
        ----------
        X, sample_domain
            As in ``predict``.
        y : array-like of shape (n_samples,)
            True labels; the placeholder of an unlabeled row is an error.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        y, sample_domain = bring_home(y), bring_home(sample_domain)
        prediction = bring_home(self.predict(X, sample_domain=sample_domain))
        y = check_no_placeholders(
            y, self._domains_of(sample_domain, len(prediction)), self.classes_
        )
        return float(accuracy_score(y, prediction, sample_weight=sample_weight))
