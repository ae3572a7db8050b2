"""Every weight estimator against ratios that are known, before any normalizing."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone

from tests.twins.weight_twins import one_dimension, several_dimensions, stack
from tests.weights.estimators import WEIGHTS

every_estimator = pytest.mark.parametrize("estimator", WEIGHTS, ids=repr)


def fitted(estimator, source, target):
    X, sample_domain = stack(source, target)
    return clone(estimator).fit(X, sample_domain=sample_domain)


def expected_ratio(estimator, ratio):
    """RuLSIF estimates the ratio to the mixture of both."""
    alpha = getattr(estimator, "alpha", 0.0)
    return ratio / (alpha * ratio + 1 - alpha)


@every_estimator
def test_one_dimension(estimator):
    source, target, ratio = one_dimension()
    model = fitted(estimator, source, target)
    expected = expected_ratio(estimator, ratio)
    assert spearmanr(model.weights_, expected).statistic >= 0.95
    exact = 0.93 if hasattr(estimator, "alpha") else 1.0
    assert abs(model.mean_weight_ - exact) <= 0.15
    new_source, _, new_ratio = one_dimension(seed=1)
    new_weights = model.score_weights(new_source)
    assert spearmanr(new_weights, expected_ratio(estimator, new_ratio)).statistic >= 0.95
    assert abs(new_weights.mean() - exact) <= 0.15
    # Higher where the target is denser: an inverted ratio would fail here first.
    low, high = model.score_weights([[-1.0], [1.0]])
    assert low < 0.3 < 1 < high


@every_estimator
@pytest.mark.parametrize("d", [5, 20])
def test_several_dimensions(estimator, d):
    source, target, ratio = several_dimensions(d)
    model = fitted(estimator, source, target)
    correlation = spearmanr(model.weights_, ratio).statistic
    assert correlation >= 0.8 if d == 5 else correlation > 0.5
    assert abs(model.mean_weight_ - 1) <= 0.15
    assert model.effective_sample_size_ > 0.3 * len(source)


@every_estimator
def test_the_same_distribution_weighs_about_one(estimator):
    rng = np.random.default_rng(0)
    model = fitted(estimator, rng.normal(size=(500, 2)), rng.normal(size=(400, 2)))
    assert np.median(np.abs(model.weights_ - 1)) < 0.2
