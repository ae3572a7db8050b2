"""Maximum mean discrepancy: estimates, test and change, against loops over pairs."""

import itertools
import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.metrics.pairwise import linear_kernel

from covshift.datasets import (
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.measures.mmd import (
    approximate_mmd,
    held_out_mmd_change,
    median_bandwidth,
    mmd,
    mmd_change,
    mmd_test,
)

RNG = np.random.RandomState(0)
A, B = RNG.standard_normal((23, 3)), RNG.standard_normal((17, 3)) + 0.5


def naive_rbf(x, y, bandwidths):
    square = sum((xi - yi) ** 2 for xi, yi in zip(x, y, strict=True))
    return sum(math.exp(-square / (2 * s * s)) for s in bandwidths) / len(bandwidths)


def naive_mmd(A, B, k, unbiased=True):
    """Two loops over rows for each of the three means."""

    def within(rows):
        pairs = [
            k(rows[i], rows[j])
            for i in range(len(rows))
            for j in range(len(rows))
            if i != j or not unbiased
        ]
        return sum(pairs) / len(pairs)

    between = [k(a, b) for a in A for b in B]
    return within(A) + within(B) - 2 * sum(between) / len(between)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("bandwidth", [0.7, [0.3, 1.0, 4.0]])
@pytest.mark.parametrize("tile", [1, 5, 1024])
def test_against_loops(unbiased, bandwidth, tile, monkeypatch):
    monkeypatch.setattr(import_module("covshift.measures.mmd"), "TILE_ROWS", tile)
    expected = naive_mmd(A, B, lambda x, y: naive_rbf(x, y, np.atleast_1d(bandwidth)), unbiased)
    assert mmd(A, B, bandwidth=bandwidth, unbiased=unbiased) == pytest.approx(expected, rel=1e-10)


def test_other_kernels_by_function():
    """With the linear kernel MMD² is the squared distance of the means, less a bias."""
    assert mmd(A, B, kernel=linear_kernel, unbiased=False) == pytest.approx(
        np.square(A.mean(axis=0) - B.mean(axis=0)).sum()
    )
    expected = naive_mmd(A, B, np.dot)
    assert mmd(A, B, kernel=linear_kernel) == pytest.approx(expected)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    n=st.integers(2, 9),
    k=st.integers(2, 9),
    d=st.integers(1, 4),
    seed=st.integers(0, 999),
    ties=st.booleans(),
)
def test_invariances(n, k, d, seed, ties):
    rng = np.random.RandomState(seed)
    A, B = (rng.randint(0, 3, (rows, d)) if ties else rng.randn(rows, d) for rows in (n, k))
    value = mmd(A, B)
    tolerance = {"rel": 1e-8, "abs": 1e-12}
    assert mmd(B, A) == pytest.approx(value, **tolerance)
    assert mmd(rng.permutation(A), rng.permutation(B)) == pytest.approx(value, **tolerance)
    assert mmd(3.0 * A + 7, 3.0 * B + 7) == pytest.approx(value, **tolerance)  # by the median
    rotation = np.linalg.qr(rng.randn(d, d))[0]
    assert mmd(A @ rotation, B @ rotation) == pytest.approx(value, **tolerance)
    assert mmd(A, B, unbiased=False) >= -1e-12
    assert mmd(A, A, unbiased=False) == pytest.approx(0, abs=1e-12)


def test_far_from_the_origin_no_digits_are_lost():
    assert mmd(A + 1e6, B + 1e6, bandwidth=1.0) == pytest.approx(mmd(A, B, bandwidth=1.0), rel=1e-6)


def test_single_precision_is_close():
    single = mmd(A.astype(np.float32), B.astype(np.float32), bandwidth=1.0)
    assert single == pytest.approx(mmd(A, B, bandwidth=1.0), rel=1e-4)


@pytest.mark.parametrize("as_type", [np.float16, np.int16])
def test_a_bandwidth_of_few_bits_is_a_number_like_any_other(as_type):
    """Its square has more bits than it."""
    assert mmd(500 * A, 500 * B, bandwidth=as_type(700)) == mmd(500 * A, 500 * B, bandwidth=700.0)


def test_median_bandwidth_is_the_median_of_all_distances():
    rows = np.concatenate([A, B])
    distances = [math.dist(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]
    assert median_bandwidth(A, B) == pytest.approx(np.median(distances))
    assert mmd(A, B) == mmd(A, B, bandwidth=median_bandwidth(A, B))


def test_median_bandwidth_of_part_of_the_rows_is_close():
    rng = np.random.RandomState(1)
    A, B = rng.randn(6000, 3), rng.randn(2000, 3) + 1
    whole, part = median_bandwidth(A, B, max_rows=8000), median_bandwidth(A, B)
    assert part == pytest.approx(whole, rel=0.03)
    assert part != whole


def test_median_bandwidth_of_equal_rows():
    assert median_bandwidth(np.zeros((5, 2)), np.zeros((4, 2))) == 1.0
    mostly = np.zeros((9, 1))
    mostly[0] = 3.0
    assert median_bandwidth(mostly, np.zeros((9, 1))) == 3.0


def test_approximation_agrees_within_its_error():
    rng = np.random.RandomState(2)
    A, B = rng.randn(4000, 2), rng.randn(3000, 2) + np.array([0.6, 0])
    exact = mmd(A, B, bandwidth=1.0)
    estimates = [approximate_mmd(A, B, bandwidth=1.0, block_size=100, random_state=s)
                 for s in range(5)]  # fmt: skip
    for value, error in estimates:
        assert abs(value - exact) < 4 * error
        assert error < 0.2 * exact
    # The spread between shufflings is no larger than the stated error.
    assert np.std([e.value for e in estimates]) < 2 * estimates[0].standard_error


def test_approximation_in_one_block_is_exact():
    value, error = approximate_mmd(A, B, random_state=0)
    assert value == pytest.approx(mmd(A, B))
    assert math.isnan(error)


def test_permutation_test_against_a_loop():
    result = mmd_test(A, B, bandwidth=1.0, n_permutations=50, random_state=3)
    rng = np.random.RandomState(3)
    rows = np.concatenate([A, B])
    expected = []
    for _ in range(50):
        chosen = np.isin(np.arange(len(rows)), rng.permutation(len(rows))[: len(A)])
        expected.append(naive_mmd(rows[chosen], rows[~chosen], lambda x, y: naive_rbf(x, y, [1])))
    assert_allclose(result.permuted, expected, rtol=1e-8, atol=1e-12)
    assert result.statistic == pytest.approx(mmd(A, B, bandwidth=1.0))
    as_large = sum(value >= result.statistic for value in expected)
    assert result.pvalue == (1 + as_large) / 51


def test_ties_count_against_the_alternative():
    """With two rows each, a third of all permutations leaves the samples as they are."""
    A, B = np.array([[0.0], [1.0]]), np.array([[10.0], [11.0]])
    result = mmd_test(A, B, n_permutations=999, random_state=0)
    assert result.pvalue == pytest.approx(1 / 3, abs=0.05)
    assert mmd_test(np.ones((5, 2)), np.ones((6, 2))).pvalue == 1.0


def test_same_seed_same_pvalue():
    results = [mmd_test(A, B, random_state=5).pvalue for _ in range(2)]
    assert results[0] == results[1]


def rejections(n_simulations, seed, **options):
    rng = np.random.RandomState(seed)
    pvalues = [
        mmd_test(rng.randn(12, 2), rng.randn(9, 2), n_permutations=99, random_state=rng,
                 **options).pvalue
        for _ in range(n_simulations)
    ]  # fmt: skip
    return np.mean(np.array(pvalues) <= 0.05)


def test_level_on_a_sample_of_simulations():
    low, high = binom.ppf([0.0005, 0.9995], 400, 0.05) / 400
    assert low <= rejections(400, seed=0) <= high


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", ["median", [0.5, 1.0, 2.0]])
def test_level(bandwidth):
    assert 0.035 <= rejections(2000, seed=1, bandwidth=bandwidth) <= 0.065


@pytest.mark.parametrize(
    "make", [make_radial_shift, make_periodic_shift, make_smooth_shift, make_diagonal_shift]
)
def test_power_and_effect_on_the_synthetic_shifts(make):
    data = make(random_state=0)
    result = mmd_test(data.X_source, data.X_test, n_permutations=199, random_state=0)
    assert result.pvalue == 1 / 200
    assert result.effect_size > 0.1
    half = mmd_test(data.X_test[::2], data.X_test[1::2], n_permutations=199, random_state=0)
    assert half.pvalue > 0.01
    assert abs(half.effect_size) < 0.02


def test_change_against_separate_calls():
    Z_A, Z_B = np.abs(A), np.abs(B)
    result = mmd_change(A, B, Z_A, Z_B, random_state=0)
    before, after = mmd(A, B), mmd(Z_A, Z_B)
    assert (result.before, result.after) == (before, after)
    assert result.change == pytest.approx(100 * (after - before) / before)
    assert result.interval[0] <= result.change <= result.interval[1]


def test_bootstrap_against_a_loop():
    n_resamples, Z_A, Z_B = 40, np.abs(A), np.abs(B)
    result = mmd_change(A, B, Z_A, Z_B, bandwidth=1.0, n_resamples=n_resamples, random_state=4)
    rng = np.random.RandomState(4)
    counts_A = rng.multinomial(len(A), np.full(len(A), 1 / len(A)), size=n_resamples)
    counts_B = rng.multinomial(len(B), np.full(len(B), 1 / len(B)), size=n_resamples)

    def resampled(A, B, count_A, count_B):
        def within(rows, count):
            pairs = [
                (count[i] * count[j], naive_rbf(rows[i], rows[j], [1]))
                for i in range(len(rows))
                for j in range(len(rows))
                if i != j
            ]
            return sum(w * k for w, k in pairs) / sum(w for w, _ in pairs)

        between = sum(
            count_A[i] * count_B[j] * naive_rbf(A[i], B[j], [1])
            for i in range(len(A))
            for j in range(len(B))
        ) / (len(A) * len(B))
        return within(A, count_A) + within(B, count_B) - 2 * between

    changes = []
    for count_A, count_B in zip(counts_A, counts_B, strict=True):
        before = resampled(A, B, count_A, count_B)
        if before > 0:
            changes.append(100 * (resampled(Z_A, Z_B, count_A, count_B) - before) / before)
    assert_allclose(result.interval, np.quantile(changes, [0.025, 0.975]), rtol=1e-6)


def test_no_distance_has_no_change():
    rng = np.random.RandomState(8)
    A, B = rng.randn(30, 2), rng.randn(30, 2)
    assert mmd(A, B) < 0
    result = mmd_change(A, B, A, B, random_state=0)
    assert math.isnan(result.change)
    assert np.isnan(result.interval).all()


def test_fitted_rows_look_closer_than_others():
    """The trap: noise in 30 dimensions, and the one direction in which the samples agree."""
    rng = np.random.RandomState(0)
    A, B = rng.randn(40, 30), rng.randn(40, 30) + 0.4

    def fit(A, B):
        difference = A.mean(axis=0) - B.mean(axis=0)
        keep = np.eye(30) - np.outer(difference, difference) / (difference @ difference)
        return lambda A, B: (A @ keep, B @ keep)

    in_sample = mmd_change(A, B, *fit(A, B)(A, B), random_state=0)
    held_out = held_out_mmd_change(fit, A, B, random_state=0)
    assert in_sample.change < -90
    assert held_out.change > in_sample.change + 20


def test_held_out_rows_are_not_fitted_on():
    seen = []

    def fit(A, B):
        seen.extend([A, B])
        return lambda A, B: (seen.append(A) or A, seen.append(B) or B)

    result = held_out_mmd_change(fit, A, B, share=0.6, random_state=0, n_resamples=9)
    fit_A, fit_B, test_A, test_B = seen
    assert [len(part) for part in seen] == [14, 10, 9, 7]
    for whole, part, rest in ((A, fit_A, test_A), (B, fit_B, test_B)):
        both = np.concatenate([part, rest])
        assert_allclose(np.sort(both, axis=0), np.sort(whole, axis=0))
    assert result.before == result.after == mmd(test_A, test_B)
    assert result.change == 0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: mmd(A, B[:, :2]), "same features, got 3 and 2"),
        (lambda: mmd(A[:1], B), "minimum of 2"),
        (lambda: mmd(np.where(A > 2, np.nan, A), np.full((3, 3), np.nan)), "NaN"),
        (lambda: mmd(A, B, kernel="linear"), "kernel must be 'rbf'"),
        (lambda: mmd(A, B, bandwidth="scott"), "'median' or numbers"),
        (lambda: mmd(A, B, bandwidth=0.0), "positive"),
        (lambda: mmd(A, B, bandwidth=[]), "positive"),
        (lambda: mmd(A, B, bandwidth=[1.0, np.nan]), "positive"),
        (lambda: mmd_test(A, B, n_permutations=0), "n_permutations"),
        (lambda: approximate_mmd(A, B, block_size=1), "block_size"),
        (lambda: mmd_change(A, B, A[1:], B), "must represent the rows"),
        (lambda: held_out_mmd_change(lambda a, b: None, A, B, share=1.0), "share"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_one_feature_may_be_one_dimensional():
    assert mmd(A[:, 0], B[:, 0]) == mmd(A[:, :1], B[:, :1])
    assert mmd(A[:1], B[:1], unbiased=False) > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("measure", [mmd, mmd_test, median_bandwidth])
def test_magnitudes_that_overflow_are_refused_and_no_others(measure, dtype):
    """The statistic was not finite, without a word."""
    rng = np.random.RandomState(0)
    A, B = rng.standard_normal((2, 12, 3)).astype(dtype)
    limit = np.sqrt(np.finfo(dtype).max / 12)
    scale = dtype(0.99 * limit / max(np.abs(A).max(), np.abs(B).max()))
    plain, scaled = measure(A, B), measure(A * scale, B * scale)
    if measure is median_bandwidth:
        assert_allclose(scaled, plain * np.float64(scale), rtol=1e-6)
        A, B = A.astype(float), B.astype(float)  # distances are in double precision
        scale = 0.99 * np.sqrt(np.finfo(float).max / 12) / max(np.abs(A).max(), np.abs(B).max())
    else:
        assert_allclose(scaled.statistic if measure is mmd_test else scaled,
                        plain.statistic if measure is mmd_test else plain, rtol=1e-4)  # fmt: skip
    with pytest.raises(ValueError, match="squared distances overflow float"):
        measure(A, B * scale * 4)


def test_two_rows_of_each_sample_are_enough():
    A, B = np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]])
    value, _ = approximate_mmd(A, B, block_size=2, kernel=linear_kernel, random_state=0)
    assert value == pytest.approx(mmd(A, B, kernel=linear_kernel))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        approximate_mmd(A[:1], B)


def test_where_the_median_distance_is_zero_the_others_have_the_mean():
    rows = np.zeros((12, 1))
    rows[0], rows[1] = 0.25, 0.5
    distances = [abs(a - b) for a, b in itertools.combinations(rows[:, 0], 2)]
    assert np.median(distances) == 0
    expected = np.mean([one for one in distances if one])
    assert median_bandwidth(rows[:6], rows[6:]) == pytest.approx(expected)
