"""Weights whose rows come in blocks."""

import numpy as np
import pytest
from sklearn.base import clone

from covshift import (
    ClassifierWeights,
    KLIEPWeights,
    KMMWeights,
    RuLSIFWeights,
    SampledRowsWarning,
    ULSIFWeights,
)
from covshift.weights import _weight_estimator
from covshift.weights.ulsif import basis_sums, fit_ulsif_coefficients

ESTIMATORS = [
    ULSIFWeights(random_state=0),
    ULSIFWeights(clip="coefficients", random_state=0),
    RuLSIFWeights(random_state=0),
    KLIEPWeights(random_state=0),
    KMMWeights(random_state=0),
    ClassifierWeights(random_state=0),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(0.6, 0.7, (400, 2))])
    order = rng.permutation(1000)
    return X[order], np.repeat([0, -1], [600, 400])[order]


@every_estimator
def test_few_rows_are_all_learned_from(estimator, rows, streamed):
    X, sample_domain = rows
    theirs = clone(estimator).fit(X, sample_domain=sample_domain)
    ours = clone(estimator).fit(streamed(X), sample_domain=sample_domain)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-10)
    scores = np.asarray(ours.score_weights(streamed(X)))
    np.testing.assert_allclose(scores, theirs.score_weights(X), rtol=1e-10)


@every_estimator
def test_many_rows_are_sampled_and_all_weighed(estimator, rows, streamed, monkeypatch):
    monkeypatch.setattr(_weight_estimator, "LEARNED_ROWS", 300)
    X, sample_domain = rows
    theirs = clone(estimator).fit(X, sample_domain=sample_domain)
    with pytest.warns(SampledRowsWarning, match="from 600 of 1,000 rows.*5.8 %"):
        ours = clone(estimator).fit(streamed(X), sample_domain=sample_domain)
    assert len(ours.weights_) == 600
    source = X[sample_domain >= 0]
    ratio = np.exp(0.5 * (source**2 - ((source - 0.6) / 0.7) ** 2).sum(axis=1))
    right = [np.corrcoef(fit.weights_, ratio)[0, 1] for fit in (ours, theirs)]
    assert right[0] > right[1] - 0.1  # with half of the rows
    np.testing.assert_allclose(ours.weights_.mean(), theirs.weights_.mean(), rtol=0.2)


@pytest.mark.parametrize("estimator", ESTIMATORS[:3], ids=repr)
def test_least_squares_uses_all_rows_in_the_end(estimator, rows, streamed, monkeypatch):
    """Bandwidth, regularization and bases come from the sample, the coefficients from all."""
    monkeypatch.setattr(_weight_estimator, "LEARNED_ROWS", 300)
    X, sample_domain = rows
    with pytest.warns(SampledRowsWarning):
        ours = clone(estimator).fit(streamed(X), sample_domain=sample_domain)
    squares = ((X[:, None] - ours.bases_) ** 2).sum(axis=2)
    P = np.exp(-squares / (2 * ours.bandwidth_**2))
    alpha = getattr(estimator, "alpha", 0.0)
    source, target = P[sample_domain >= 0], P[sample_domain < 0]
    theta = fit_ulsif_coefficients(source, target, ours.regularization_, alpha)
    if estimator.clip == "coefficients":
        theta = np.maximum(theta, 0)
    np.testing.assert_allclose(ours.coefficients_, theta, rtol=1e-6, atol=1e-8)


def test_basis_sums():
    rng = np.random.default_rng(0)
    X, codes, bases = rng.standard_normal((50, 3)), rng.integers(0, 2, 50), np.eye(3)
    sums, products, counts = basis_sums(X, codes, bases, 0.7)
    for role in (0, 1):
        P = np.array(
            [
                [np.exp(-((x - c) ** 2).sum() / (2 * 0.7**2)) for c in bases]
                for x in X[codes == role]
            ]
        )
        np.testing.assert_allclose(sums[role], P.sum(axis=0))
        np.testing.assert_allclose(products[role], P.T @ P)
        assert counts[role] == len(P)
