"""Estimators that use the rows of the target: what they get, and what follows for candidates."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import AdaptedClassifier, AutoAdaptedClassifier
from covshift.base import RefitNeededError
from covshift.registry import Size
from covshift.selection.candidates import candidates_around, check_candidates
from tests.shifted import make_problem


class MovedCentroids(ClassifierMixin, BaseEstimator):
    """Nearest class mean, after the mean of each role is subtracted."""

    uses_target_rows = True
    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__predict = {"sample_domain": True}

    def fit(self, X, y, *, label_mask, sample_domain):
        target = sample_domain < 0
        self.means_ = np.stack([X[~target].mean(axis=0), X[target].mean(axis=0)])
        self.classes_ = np.unique(y[label_mask])
        Z = X - self.means_[target.astype(int)]
        self.centroids_ = np.stack(
            [Z[label_mask & (y == one)].mean(axis=0) for one in self.classes_]
        )
        return self

    def predict(self, X, *, sample_domain=None):
        domain = np.full(len(X), -1) if sample_domain is None else sample_domain
        Z = X - self.means_[(domain < 0).astype(int)]
        distances = ((Z[:, None] - self.centroids_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


ESTIMATORS = [MovedCentroids(), make_pipeline(StandardScaler(), MovedCentroids())]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=["alone", "last of a pipeline"])


def far_target():
    X, y, sample_domain, _ = make_problem(n=40)
    return X + 50.0 * (sample_domain < 0)[:, None], y, sample_domain


@each
def test_it_is_fitted_to_all_rows_and_told_their_domains(estimator):
    X, y, sample_domain = far_target()
    model = AdaptedClassifier(None, estimator).fit(X, y, sample_domain=sample_domain)
    last = model.estimator_[-1] if hasattr(model.estimator_, "steps") else model.estimator_
    assert last.means_[1].mean() - last.means_[0].mean() > 1
    for role in (sample_domain >= 0, sample_domain < 0):
        found = model.predict(X[role], sample_domain=sample_domain[role])
        assert np.mean(found == y[role]) > 0.5
    with pytest.raises(RefitNeededError, match="refit on the source rows"):
        model.adapt_target(X)


@each
def test_it_adapts_without_an_adapter(estimator):
    size = Size(80, 80, 3, 3)
    plain, found = check_candidates([(None, estimator)], size)
    assert found.adapts
    assert plain.name == "none + logistic"
    assert not plain.adapts
    assert [one.name for one in candidates_around(estimator, size) if not one.adapts] == [
        plain.name
    ]
    both = check_candidates([(None, estimator), ("coral", LogisticRegression())], size)
    assert [one.adapts for one in both] == [False, True, True]


def test_it_competes_and_votes():
    X, y, sample_domain = far_target()
    model = AutoAdaptedClassifier(
        candidates=[(None, MovedCentroids())], vote=1, class_shares="source", random_state=0
    )
    model.fit(X, y, sample_domain=sample_domain)
    assert model.chosen_ == ["raw + MovedCentroids"]
    target = sample_domain < 0
    assert model.score(X[target], y[target], sample_domain=sample_domain[target]) > 0.5
