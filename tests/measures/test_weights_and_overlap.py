import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import genpareto

from covshift.measures.weights_and_overlap import (
    SourceSupport,
    _fit_generalized_pareto,
    _given_theta,
    _shrink_shape,
    effective_sample_size,
    pareto_k,
    support_overlap,
)
from tests.kernels.problems import FIXED
from tests.twins import naive

# Zeros, ties and numbers near the ends of the range.
WEIGHTS = arrays(
    float,
    st.integers(1, 60),
    elements=st.sampled_from([0.0, 1.0, 2.0, 1e-300, 1e300]) | st.floats(0, 1e308),
).filter(np.any)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (np.ones(7), 7),
        (np.full(9, 1e-200), 9),
        (np.full(9, 1e300), 9),
        ([0, 0, 3, 0], 1),
        ([5], 1),
        ([1, 1, 0, 0], 2),
        ([3, 4], 49 / 25),
        (np.arange(1, 101), 3 * 100 * 101 / (2 * 201)),  # (sum i)^2 / sum i^2
    ],
)
def test_effective_sample_size(weights, expected):
    assert effective_sample_size(weights) == pytest.approx(expected, rel=1e-12)


@FIXED
@given(weights=WEIGHTS)
def test_any_weights_give_numbers_within_bounds(weights):
    size = effective_sample_size(weights)
    assert 1 - 1e-12 <= size <= np.count_nonzero(weights) * (1 + 1e-12)
    k = pareto_k(weights)
    assert not np.isnan(k)
    assert pareto_k(weights[::-1]) == k
    assert effective_sample_size(weights[::-1]) == pytest.approx(size, rel=1e-12)
    if len(weights) <= 20:
        assert k in (0, np.inf)


@pytest.mark.parametrize("measure", [effective_sample_size, pareto_k])
def test_bad_weights_are_a_clear_error(measure):
    for weights, message in [
        ([1, np.nan], "NaN"),
        ([1, np.inf], "infinity"),
        ([1, -1], "negative"),
        ([0, 0], "all be zero"),
        ([], "minimum of 1"),
        ([[1, 2]], "one number per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            measure(weights)
    with pytest.raises(TypeError, match="at least 1 dimension"):
        measure(3.0)


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3, 0.7, 1.5])
def test_the_fit_recovers_the_parameters(shape):
    fits = [
        _fit_generalized_pareto(genpareto.rvs(shape, scale=3, size=1000, random_state=seed))
        for seed in range(20)
    ]
    shapes, scales = np.transpose(fits)
    # The asymptotic standard deviation of the most likely shape is (1 + k) / sqrt(n).
    error = (1 + max(shape, 0)) / np.sqrt(1000)
    assert shapes.mean() == pytest.approx(shape, abs=4 * error / np.sqrt(20))
    assert shapes.std() < 1.5 * error
    assert scales.mean() == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("n", [5, 6, 20, 300])
@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.8])
def test_the_fit_equals_the_naive_twin(n, shape):
    x = genpareto.rvs(shape, scale=0.2, size=n, random_state=n)
    expected = naive.generalized_pareto_fit(x)
    np.testing.assert_allclose(_fit_generalized_pareto(x), expected, rtol=1e-9)
    shape, scale = expected
    np.testing.assert_allclose(_fit_generalized_pareto(1e6 * x), [shape, 1e6 * scale], rtol=1e-7)


def test_the_fit_is_near_the_most_likely_parameters():
    x = genpareto.rvs(0.5, size=2000, random_state=0)
    shape, _, scale = genpareto.fit(x, floc=0)
    np.testing.assert_allclose(_fit_generalized_pareto(x), [shape, scale], rtol=0.03)


def test_the_exponential_distribution_between_the_two_signs():
    x = np.array([0.5, 1.0, 4.0])
    shape, scale = _given_theta(np.array([-1e-9, 0.0, 1e-9]), x)
    np.testing.assert_allclose(shape, [x.mean() * 1e-9, 0, -x.mean() * 1e-9], rtol=1e-6)
    np.testing.assert_allclose(scale, x.mean(), rtol=1e-6)


def test_the_prior_counts_as_ten_excesses_of_shape_one_half():
    assert _shrink_shape(0.5, 5) == 0.5
    assert _shrink_shape(1.5, 10) == 1.0
    assert _shrink_shape(-0.5, 10**9) == pytest.approx(-0.5)


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.8, 1.2])
def test_pareto_k_of_weights_with_a_known_tail(shape):
    estimates = [pareto_k(genpareto.rvs(shape, size=4000, random_state=seed)) for seed in range(20)]
    assert np.mean(estimates) == pytest.approx(shape, abs=0.1)


@pytest.mark.parametrize(("variance", "expected"), [(1.25, 0.2), (2.0, 0.5), (5.0, 0.8)])
def test_pareto_k_of_the_weights_from_one_normal_to_a_wider_one(variance, expected):
    """w = exp(x^2 (1 - 1/v) / 2) exceeds t with a probability near t^(-1 / (1 - 1/v))."""
    x = np.random.default_rng(0).normal(size=(20, 20_000))
    estimates = [pareto_k(np.exp(row**2 * (1 - 1 / variance) / 2)) for row in x]
    assert np.mean(estimates) == pytest.approx(expected, abs=0.15)


def test_pareto_k_is_fitted_to_the_excesses_of_the_largest_weights():
    weights = np.random.default_rng(0).lognormal(size=1000)
    n_tail = 95  # 3 sqrt(1000), rounded up; a fifth would be 200
    ordered = np.sort(weights)
    shape, _ = naive.generalized_pareto_fit(ordered[-n_tail:] - ordered[-n_tail - 1])
    expected = (n_tail * shape + 5) / (n_tail + 10)
    assert pareto_k(weights) == pytest.approx(expected, rel=1e-9)
    assert pareto_k(1e-5 * weights) == pytest.approx(expected, rel=1e-9)
    small = weights[:50]  # a fifth: 10
    shape, _ = naive.generalized_pareto_fit(np.sort(small)[-10:] - np.sort(small)[-11])
    assert pareto_k(small) == pytest.approx((10 * shape + 5) / 20, rel=1e-9)


def test_pareto_k_where_there_is_no_tail_to_fit():
    assert pareto_k(np.ones(100)) == 0
    assert pareto_k(1 / 3 + 1e-16 * np.arange(100)) == 0  # differences of rounding
    assert pareto_k([4.0]) == 0
    assert pareto_k(np.minimum(np.arange(1000), 500)) == 0  # clipped: the largest are all equal
    assert pareto_k(np.arange(1, 21)) == np.inf
    assert pareto_k(np.repeat([0, 1], [96, 4])) == np.inf  # four rows have all the weight
    assert np.isfinite(pareto_k(np.arange(1, 22)))


def test_pareto_k_with_ties_at_the_cutoff():
    """80 rows weigh nothing, the tail's other rows more and more."""
    weights = np.concatenate([np.zeros(85), np.arange(1, 16)])
    assert -1.5 < pareto_k(weights) < 0.5
    weights[-1] = 1e6
    assert pareto_k(weights) > 0.7


def standardized(X_source, X_target):
    scale = X_source.std(axis=0)
    scale[scale == 0] = 1
    return X_source / scale, X_target / scale


@pytest.mark.parametrize(
    ("n_features", "n_neighbors", "quantile"), [(1, 1, 0.9), (3, 5, 0.99), (20, 3, 0.5)]
)
def test_support_equals_the_naive_twin(n_features, n_neighbors, quantile):
    rng = np.random.default_rng(0)
    X_source = rng.normal(size=(60, n_features)) * rng.uniform(0.1, 9, n_features)
    X_target = 1.5 * X_source[:40] + 0.7 * rng.normal(size=(40, n_features))
    overlap = support_overlap(X_source, X_target, n_neighbors=n_neighbors, quantile=quantile)
    source, target = standardized(X_source, X_target)
    own = naive.mean_nearest_distances(source, source, n_neighbors, leave_out=True)
    distances = naive.mean_nearest_distances(target, source, n_neighbors)
    np.testing.assert_allclose(overlap.distances, distances, rtol=1e-6)
    assert overlap.threshold == pytest.approx(np.quantile(own, quantile), rel=1e-6)
    np.testing.assert_array_equal(overlap.outside, distances > np.quantile(own, quantile))
    assert 0 < overlap.share_outside < 1
    assert overlap.share_outside == overlap.outside.mean()


@pytest.mark.parametrize("n_features", [1, 4, 30])
@pytest.mark.parametrize("quantile", [0.9, 0.99])
def test_the_share_outside_of_the_same_distribution(n_features, quantile):
    rng = np.random.default_rng(1)
    shares = [
        support_overlap(*rng.normal(size=(2, 500, n_features)), quantile=quantile).share_outside
        for _ in range(10)
    ]
    assert np.mean(shares) == pytest.approx(1 - quantile, abs=0.3 * (1 - quantile))


def test_units_and_order_do_not_matter():
    rng = np.random.default_rng(0)
    X_source, X_target = rng.normal(size=(100, 3)), 1.5 * rng.normal(size=(80, 3))
    overlap = support_overlap(X_source, X_target)
    units, order = np.array([1e6, 1e-6, 3]), rng.permutation(80)
    moved = support_overlap(X_source[::-1] * units + 5, X_target[order] * units + 5)
    np.testing.assert_array_equal(moved.outside, overlap.outside[order])
    np.testing.assert_allclose(moved.distances, overlap.distances[order], rtol=1e-6)
    assert moved.threshold == pytest.approx(overlap.threshold, rel=1e-6)


def test_constant_features_and_repeated_rows():
    rng = np.random.default_rng(0)
    X_source, X_target = rng.normal(size=(200, 2)), rng.normal(size=(50, 2))
    overlap = support_overlap(X_source, X_target)
    with_constant = support_overlap(
        np.column_stack([X_source, np.full(200, 7)]), np.column_stack([X_target, np.full(50, 7)])
    )
    np.testing.assert_allclose(with_constant.distances, overlap.distances, rtol=1e-9)
    # A value that the source never had is outside, whatever the other features say.
    moved = support_overlap(
        np.column_stack([X_source, np.full(200, 7)]), np.column_stack([X_target, np.full(50, 9)])
    )
    assert moved.share_outside == 1
    for n_features in (2, 60, 900):
        few = 1000 + 100 * rng.normal(size=(300, n_features))
        for dtype in (np.float32, np.float64):
            source, target = np.repeat(few, 6, axis=0), np.repeat(few, 2, axis=0)
            repeated = support_overlap(source.astype(dtype), target.astype(dtype))
            assert repeated.share_outside == 0
            moved = support_overlap(source.astype(dtype), target.astype(dtype) + 0.1)
            assert moved.share_outside == 1


def test_single_precision_and_read_only_rows():
    rng = np.random.default_rng(0)
    X_source, X_target = rng.normal(size=(300, 20)), 1.2 * rng.normal(size=(200, 20))
    single = [X_source.astype(np.float32), X_target.astype(np.float32)]
    for array in single:
        array.setflags(write=False)
    overlap = support_overlap(X_source, X_target)
    np.testing.assert_allclose(support_overlap(*single).distances, overlap.distances, rtol=1e-4)
    assert 0.05 < overlap.share_outside < 0.95


def test_a_target_that_left_the_source():
    rng = np.random.default_rng(0)
    X_source = rng.normal(size=(400, 2))
    target = np.concatenate([rng.normal(size=(300, 2)), 8 + rng.normal(size=(100, 2))])
    overlap = support_overlap(X_source, target)
    assert overlap.outside[300:].all()
    assert overlap.outside[:300].mean() < 0.04


def test_memory_is_linear_in_the_rows():
    rng = np.random.default_rng(0)
    X_source, X_target = rng.normal(size=(2, 6000, 20))
    tracemalloc.start()
    support_overlap(X_source, X_target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6  # all distances at once: 288 MB


def test_bad_input_is_a_clear_error():
    X = np.random.default_rng(0).normal(size=(6, 2))
    for n_neighbors in (0, 6):
        with pytest.raises(ValueError, match="fewer than the 6 rows of X_source"):
            support_overlap(X, X, n_neighbors=n_neighbors)
    for quantile in (0, 1, np.nan):
        with pytest.raises(ValueError, match="quantile must be between 0 and 1"):
            support_overlap(X, X, quantile=quantile)
    with pytest.raises(ValueError, match="X_target contains NaN"):
        support_overlap(X, np.where(X > 0, X, np.nan))
    with pytest.raises(ValueError, match="X_source and X_target must have the same features"):
        support_overlap(X, X[:, :1])


def test_rows_to_judge_have_the_features_of_the_source():
    X = np.random.RandomState(0).standard_normal((50, 3))
    support = SourceSupport().fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but SourceSupport is expecting 3"):
        support.distances(X[:, :2])
    assert support.n_features_in_ == 3


def test_half_precision_is_computed_in_double():
    X = np.random.RandomState(0).standard_normal((50, 3)).astype(np.float16)
    assert SourceSupport().fit(X).threshold_ == SourceSupport().fit(X.astype(float)).threshold_
