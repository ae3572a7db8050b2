"""Predictors whose rows come in blocks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    CorrelationAlignment,
    DomainStandardScaler,
    PeriodicSparseFiltering,
    SampledRowsWarning,
    ULSIFWeights,
)
from covshift.predictors import fit_and_predict
from tests.shifted import make_problem

pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FILTER = PeriodicSparseFiltering(6, max_iter=3, n_restarts=1, random_state=0)
MODELS = [
    AdaptedClassifier(),
    AdaptedClassifier(CorrelationAlignment()),
    AdaptedClassifier(make_pipeline(DomainStandardScaler(), FILTER)),
    AdaptedClassifier(ULSIFWeights(random_state=0)),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_classifier_fitted_in_blocks_is_that_fitted_in_memory(model, streamed):
    X, y, sample_domain, _ = make_problem(n=60)
    theirs = clone(model).fit(X, y, sample_domain=sample_domain)
    ours = clone(model).fit(streamed(X), y, sample_domain=sample_domain)
    for method in ("predict_proba", "decision_function", "predict_log_proba"):
        values = np.asarray(getattr(ours, method)(streamed(X)))
        np.testing.assert_allclose(values, getattr(theirs, method)(X), rtol=1e-4, atol=1e-5)
    labels = np.asarray(ours.predict(streamed(X), sample_domain=sample_domain))
    np.testing.assert_array_equal(labels, theirs.predict(X, sample_domain=sample_domain))
    assert ours.score(streamed(X), y, sample_domain=sample_domain) == theirs.score(
        X, y, sample_domain=sample_domain
    )


def test_labels_of_any_type_and_a_regressor(streamed):
    X, y, sample_domain, _ = make_problem(n=60)
    words = np.array(["a", "bcd", "ef"])[y]
    ours = AdaptedClassifier(DomainStandardScaler()).fit(
        streamed(X), words, sample_domain=sample_domain
    )
    theirs = AdaptedClassifier(DomainStandardScaler()).fit(X, words, sample_domain=sample_domain)
    np.testing.assert_array_equal(np.asarray(ours.predict(streamed(X))), theirs.predict(X))
    X, y, sample_domain, _ = make_problem(n=60, kind="number")
    ours = AdaptedRegressor(DomainStandardScaler()).fit(streamed(X), y, sample_domain=sample_domain)
    theirs = AdaptedRegressor(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    np.testing.assert_allclose(np.asarray(ours.predict(streamed(X))), theirs.predict(X))


def test_more_labeled_rows_than_fit_are_sampled(streamed, monkeypatch):
    monkeypatch.setattr(fit_and_predict, "ESTIMATOR_BYTES", 80 * 3 * 8)
    X, y, sample_domain, _ = make_problem(n=60)
    model = AdaptedClassifier(DomainStandardScaler(), LogisticRegression())
    with pytest.warns(SampledRowsWarning, match="from 80 of 120 rows.* 1.2 times as much"):
        ours = clone(model).fit(streamed(X), y, sample_domain=sample_domain)
    theirs = clone(model).fit(X, y, sample_domain=sample_domain)
    np.testing.assert_allclose(ours.adapter_.means_, theirs.adapter_.means_)
    assert np.mean(np.asarray(ours.predict(streamed(X))) == theirs.predict(X)) > 0.8


def test_what_takes_no_blocks_is_refused(streamed):
    X, y, sample_domain, _ = make_problem(n=60)
    plain = AdaptedClassifier(make_pipeline(StandardScaler(), DomainStandardScaler()))
    with pytest.raises(TypeError, match="StandardScaler cannot be fitted to rows in blocks"):
        plain.fit(streamed(X), y, sample_domain=sample_domain)
    batch = AdaptedClassifier(clone(FILTER).set_params(normalization="batch"))
    with pytest.raises(ValueError, match="normalization='batch'"):
        batch.fit(streamed(X), y, sample_domain=sample_domain)
    batch.fit(X, y, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="normalization='batch'"):
        batch.predict(streamed(X))
