"""The checks of the paper's statements: they hold where they should, and can fail."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.datasets import make_periodic_shift, make_radial_shift
from covshift.kernels.activations_and_norms import ACTIVATIONS, activate
from covshift.measures.cosine_neighborhood import (
    _choose_pairs,
    check_cosine_neighborhood,
    neighborhood_bounds,
)
from covshift.measures.periods import check_period, period_shifts
from covshift.measures.representation_bounds import check_representation_bounds
from tests.kernels.problems import FIXED
from tests.twins import naive

# ---- Propositions 1 and 2: range and moments ----


def representation(n, m, L, activation, seed, scale=1.0, epsilon=1e-8):
    rng = np.random.default_rng(seed)
    H = scale * rng.standard_normal((n, m)) @ rng.standard_normal((m, L))
    return naive.normalize(activate(H, activation, epsilon), 0.0)


def naive_bounds(Z):
    """Every margin by its definition, entry by entry."""
    n, L = Z.shape
    lengths = [sum(z * z for z in row) ** 0.5 for row in Z]
    sums = [sum(row) for row in Z]
    means = [sum(Z[:, j]) / n for j in range(L)]
    variances = [sum((z - mean) ** 2 for z in Z[:, j]) / n for j, mean in enumerate(means)]
    return {
        "range_margin": min(min(z, 1 - z) for z in Z.ravel()),
        "sphere_error": max(abs(length - 1) for length in lengths),
        "row_sum_margin": min(min(total - 1, L**0.5 - total) for total in sums),
        "quarter_margin": min(0.25 - v for v in variances),
        "variance_margin": min(m * (1 - m) - v for m, v in zip(means, variances, strict=True)),
        "smallest_mean": min(means),
    }


shapes = {"n": st.integers(1, 12), "m": st.integers(1, 4), "L": st.integers(1, 6)}


@FIXED
@given(
    **shapes,
    activation=st.sampled_from(ACTIVATIONS),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_bounds_hold_for_any_filters_and_equal_the_naive_twin(n, m, L, activation, seed, scale):
    Z = representation(n, m, L, activation, seed, scale)
    result = check_representation_bounds(Z)
    assert result.holds
    for name, value in naive_bounds(Z).items():
        assert getattr(result, name) == pytest.approx(value, abs=1e-12), name
    assert result.variance_margin <= result.quarter_margin + 1e-12
    # A bound of the mean for rows under their own norms; see the notes.
    assert result.smallest_mean >= 1 / (n * np.sqrt(L)) - 1e-12


@pytest.mark.parametrize(
    ("margin", "Z"),
    [
        ("range_margin", [[-0.6, 0.8], [0.6, 0.8]]),
        ("range_margin", [[1.2, 0.0], [0.6, 0.8]]),
        ("row_sum_margin", [[0.5, 0.4], [0.6, 0.8]]),
        ("row_sum_margin", [[0.9, 0.9], [0.6, 0.8]]),
        ("quarter_margin", [[1.4, 0.2], [0.0, 1.0]]),
        ("variance_margin", [[1.1, 0.0], [0.0, 1.0]]),
    ],
)
def test_a_broken_bound_has_a_negative_margin(margin, Z):
    result = check_representation_bounds(Z)
    assert not result.holds
    assert getattr(result, margin) < -0.01


def test_rows_off_the_sphere_are_noticed():
    Z = naive.normalize(np.random.default_rng(0).uniform(size=(9, 3)), 0.1)
    result = check_representation_bounds(Z)
    assert not result.holds
    assert result.sphere_error > 0.01
    with_dead_row = np.array([[0.0, 0.0], [0.6, 0.8]])
    assert check_representation_bounds(with_dead_row).sphere_error == 1


def test_bounds_can_be_met():
    """Rows of the identity: Var = μ(1 - μ), and 1/4 with two features."""
    result = check_representation_bounds(np.eye(2)[[0, 1, 0, 1]])
    assert result.holds
    margins = (result.range_margin, result.row_sum_margin, result.quarter_margin)
    assert margins == (0, 0, 0)
    assert result.variance_margin == 0


def test_the_printed_bound_of_the_mean_is_not_implied():
    """Rows far away, orthogonal to a filter, under norms stored earlier."""
    X = np.column_stack([np.full(20, 1e6), np.zeros(20)])
    F = activate(X @ np.eye(2), "abs", 1e-8)
    Z = F / np.linalg.norm(F, axis=1, keepdims=True)  # stored norms of one
    result = check_representation_bounds(Z, epsilon=1e-8)
    assert result.holds
    assert result.smallest_mean < 1e-9
    assert not result.mean_at_least_epsilon
    assert check_representation_bounds(Z, epsilon=1e-12).mean_at_least_epsilon


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_bounds_hold_for_fitted_filters(activation, dtype):
    data = make_radial_shift(random_state=0)
    X = data.X_source.astype(dtype)
    psf = PeriodicSparseFiltering(5, activation=activation, n_restarts=1, max_iter=0).fit(X)
    for rows in (X, data.X_test.astype(dtype) * 100):
        assert check_representation_bounds(psf.transform(rows)).holds


@pytest.mark.parametrize("bad", [[[0.5, np.nan]], [0.6, 0.8], np.zeros((0, 2))])
def test_bounds_refuse(bad):
    with pytest.raises(ValueError, match=r"NaN|2D|minimum"):
        check_representation_bounds(bad)


# ---- cosine neighbors ----


def trial(rng, spread):
    """Random filters, rows and norms; the second row is the first, stretched and moved."""
    n, m, L = rng.integers(5, 50), rng.integers(2, 11), rng.integers(2, 11)
    X, W = rng.standard_normal((n, m)), rng.standard_normal((L, m))
    X[1] = np.exp(rng.standard_normal()) * X[0] + spread * rng.uniform() * rng.standard_normal(m)
    return X, W, np.linalg.norm(X @ W.T, axis=0)


def naive_pair(x1, x2, W, t, epsilon):
    """Distance and both bounds of one pair, by their definitions."""
    L, m = W.shape

    def norm(values):
        return sum(v * v for v in values) ** 0.5

    def soft(x):
        h = [sum(W[j, k] * x[k] for k in range(m)) for j in range(L)]
        return [(h[j] ** 2 + epsilon) ** 0.5 / t[j] for j in range(L)]

    f1, f2 = soft(x1), soft(x2)
    z1, z2 = [v / norm(f1) for v in f1], [v / norm(f2) for v in f2]
    delta = 1 - abs(sum(a * b for a, b in zip(x1, x2, strict=True))) / (norm(x1) * norm(x2))
    spectral = np.sqrt(np.linalg.eigvalsh((W.T / t) @ (W.T / t).T).max())
    extra = epsilon * sum(t**-2.0) * (1 / norm(x1) - 1 / norm(x2)) ** 2
    gap = (spectral**2 * 2 * max(delta, 0) + extra) ** 0.5
    a1, a2 = norm(f1) / norm(x1), norm(f2) / norm(x2)
    distance = norm([a - b for a, b in zip(z1, z2, strict=True)])
    return distance, 2 * gap / max(a1, a2), 2 * gap / (a1 + a2)


def printed_bound(x1, x2, W, t, k_of):
    """The theorem's L ((k + sqrt(2 d - d²)) / ||f2|| - 1 / ||f1||), x2 = k x1 + b with k > 1."""
    if k_of(x1, x2) < 1:
        x1, x2 = x2, x1
    f1, f2 = np.linalg.norm(W @ x1 / t), np.linalg.norm(W @ x2 / t)
    d = 1 - x1 @ x2 / (np.linalg.norm(x1) * np.linalg.norm(x2))
    return len(W) * ((k_of(x1, x2) + np.sqrt(max(2 * d - d * d, 0))) / f2 - 1 / f1)


READINGS_OF_K = {
    "lengths": lambda x1, x2: np.linalg.norm(x2) / np.linalg.norm(x1),
    "projection": lambda x1, x2: x1 @ x2 / (x1 @ x1),
}


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.1])
def test_neighborhood_bounds_equal_the_naive_twin(epsilon):
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, W, t = trial(rng, 1.0)
        distance, bound, sharp = naive_pair(X[0], X[1], W, t, epsilon)
        result = check_cosine_neighborhood(W, t, X, pairs=[[0, 1]], epsilon=epsilon)
        assert result.margin == pytest.approx(bound - distance, abs=1e-9)
        assert result.sharp_margin == pytest.approx(sharp - distance, abs=1e-9)
        assert result.largest_ratio == pytest.approx(distance / sharp, abs=1e-6)
        assert result.informative_share == (sharp < np.sqrt(2))
        Z = naive.feature_map(X, W, "abs", epsilon, 0.0)
        if epsilon == 0:  # there the norms of X are those of the naive map
            given_z = check_cosine_neighborhood(W, t, X, Z=Z, pairs=[[0, 1]])
            assert given_z.margin == pytest.approx(result.margin, abs=1e-12)


def test_a_filter_that_no_row_activates_is_not_scaled():
    """Its norm is 0, and the representation divides by 1 instead."""
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    found = check_cosine_neighborhood(W, [0.0, 2.0, 0.0, 0.5], X, random_state=0)
    assert found == check_cosine_neighborhood(W, [1.0, 2.0, 1.0, 0.5], X, random_state=0)
    assert found.holds


def test_corrected_bounds_hold_where_the_printed_one_fails():
    """20,000 random pairs: none breaks the corrected bounds, a good share the printed one."""
    rng = np.random.default_rng(1)
    n_trials, broken, sharp_broken = 20_000, 0, 0
    printed_broken = dict.fromkeys(READINGS_OF_K, 0)
    nearest = 0.0
    for index in range(n_trials):
        X, W, t = trial(rng, (0.1, 0.5, 1.0, 3.0)[index % 4])
        Z = np.abs(X[:2] @ W.T) / t
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        distance = np.linalg.norm(Z[0] - Z[1])
        (bound,), (sharp,), _ = neighborhood_bounds(X[:1], X[1:2], W, t, 0.0)
        broken += distance > bound
        sharp_broken += distance > sharp * (1 + 1e-9)
        nearest = max(nearest, distance / sharp)
        for name, k_of in READINGS_OF_K.items():
            printed_broken[name] += distance > printed_bound(X[0], X[1], W, t, k_of)
    assert broken == sharp_broken == 0
    assert nearest > 0.999  # the sharper bound cannot be improved by a factor
    shares = {name: count / n_trials for name, count in printed_broken.items()}
    assert 0.12 < shares["lengths"] < 0.25, shares
    assert 0.20 < shares["projection"] < 0.40, shares


@FIXED
@given(
    m=st.integers(1, 4),
    L=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    epsilon=st.sampled_from([0.0, 1e-8, 1.0]),
)
def test_neighborhood_holds_for_rows_of_all_kinds(m, L, seed, epsilon):
    """Collinear, opposite, equal, zero and near-null rows, and a dead feature."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((L, m))
    if m > 1:
        W[:, -1] = 1e-13 * W[:, -1]
    x = rng.standard_normal(m)
    last = np.eye(m)[-1]
    X = np.array([x, -x, 3 * x, x + 1e-9, 0 * x, last, -2 * last + 1e-12 * x, 1e-5 * x])
    t = np.linalg.norm(X @ W.T, axis=0)
    t[0] = 0.0
    result = check_cosine_neighborhood(W, t, X, epsilon=epsilon)
    assert result.holds, result
    assert result.n_pairs == 28


def test_structure_is_axial():
    """Opposite rows are one: a bound with 1 - cos would allow √2, this one allows nothing."""
    rng = np.random.default_rng(0)
    W, x = rng.standard_normal((4, 3)), rng.standard_normal((1, 3))
    (bound,), _, _ = neighborhood_bounds(x, -x, W, np.ones(4), 0.0)
    assert bound == 0
    assert check_cosine_neighborhood(W, np.ones(4), [x[0], -x[0]]).margin == 0


def test_neighborhood_of_fitted_filters():
    X = make_radial_shift(random_state=0).X_source
    sf = SparseFiltering(4, random_state=0).fit(X)
    arguments = sf.components_, sf.feature_norms_[0], X
    result = check_cosine_neighborhood(*arguments, Z=sf.transform(X), epsilon=sf.epsilon)
    assert result.holds
    assert result.n_pairs == 100_000
    assert 0.5 < result.informative_share < 1
    same = check_cosine_neighborhood(*arguments, epsilon=sf.epsilon, random_state=0)
    again = check_cosine_neighborhood(*arguments, epsilon=sf.epsilon, random_state=0)
    assert same == again


def test_neighborhood_of_single_precision_filters():
    X = make_radial_shift(random_state=0).X_source.astype(np.float32)
    sf = SparseFiltering(4, random_state=0).fit(X)
    Z = sf.transform(X)
    assert Z.dtype == np.float32
    assert check_cosine_neighborhood(
        sf.components_, sf.feature_norms_[0], X, Z=Z, epsilon=sf.epsilon
    ).holds


def test_neighborhood_fails_for_other_representations():
    X = make_radial_shift(random_state=0).X_source
    psf = PeriodicSparseFiltering(4, n_restarts=1, max_iter=0, random_state=0).fit(X)
    result = check_cosine_neighborhood(
        psf.components_, psf.feature_norms_[0], X, Z=psf.transform(X)
    )
    assert not result.holds
    assert result.margin < -0.1
    assert result.largest_ratio > 10


def test_norms_matter_up_to_a_factor():
    rng = np.random.default_rng(0)
    X, W, t = trial(rng, 1.0)
    result = check_cosine_neighborhood(W, t, X)
    scaled = check_cosine_neighborhood(W, 7 * t, X)
    other = check_cosine_neighborhood(W, np.ones(len(W)), X)
    assert scaled.largest_ratio == pytest.approx(result.largest_ratio)
    assert other.largest_ratio != pytest.approx(result.largest_ratio)


def test_pairs_are_all_given_or_drawn():
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((40, 3)), rng.standard_normal((2, 3))
    assert check_cosine_neighborhood(W, [1, 1], X).n_pairs == 780
    assert check_cosine_neighborhood(W, [1, 1], X, max_pairs=779).n_pairs == 779
    two = [check_cosine_neighborhood(W, [1, 1], X, pairs=[pair]) for pair in ([0, 1], [2, 3])]
    both = check_cosine_neighborhood(W, [1, 1], X, pairs=[[0, 1], [2, 3]])
    assert both.largest_ratio == max(result.largest_ratio for result in two)
    assert both.margin == min(result.margin for result in two)
    assert two[0] != two[1]


def test_drawn_pairs_are_of_different_rows():
    X = np.eye(3)
    result = check_cosine_neighborhood(X, np.ones(3), X, max_pairs=2, random_state=0)
    # Two different rows are orthogonal; a row with itself would have margin zero.
    assert result.margin == pytest.approx(2 * np.sqrt(2) - np.sqrt(2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.ones((4, 2))}, "features"),
        ({"X": [[1.0, np.nan, 0.0], [1.0, 1.0, 1.0]]}, "NaN"),
        ({"X": np.ones((1, 3))}, "minimum"),
        ({"norms": [1.0]}, "norms"),
        ({"norms": [[1.0, 1.0]]}, "norms"),
        ({"norms": [1.0, -1.0]}, "norms"),
        ({"Z": np.ones((4, 3))}, "Z must have shape"),
        ({"pairs": [0, 1]}, "pairs"),
        ({"pairs": [[0, 4]]}, "outside"),
        ({"pairs": [[-1, 0]]}, "outside"),
        ({"pairs": [[0.0, 1.0]]}, "pairs"),
        ({"max_pairs": 0}, "max_pairs"),
    ],
)
def test_neighborhood_refuses(changes, message):
    arguments = {"W": np.ones((2, 3)), "norms": [1.0, 1.0], "X": np.ones((4, 3))} | changes
    with pytest.raises(ValueError, match=message):
        check_cosine_neighborhood(**arguments)


# ---- Theorem 2: periods ----


def fitted(n_components, activation="sin", m=2):
    data = make_periodic_shift(random_state=0)
    rng = np.random.default_rng(0)
    more = rng.standard_normal((len(data.X_source), m - 2))
    X = np.column_stack([data.X_source, more])
    psf = PeriodicSparseFiltering(
        n_components, activation=activation, n_restarts=1, max_iter=20, random_state=0
    )
    with warnings.catch_warnings():  # any filters will do, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        return psf.fit(X, data.y_source), X


@pytest.mark.parametrize("activation", ["sin", "cos"])
@pytest.mark.parametrize(("n_components", "m"), [(2, 2), (2, 4), (4, 4)])
def test_period_shifts_leave_fitted_representations_as_they_are(n_components, m, activation):
    psf, X = fitted(n_components, activation, m)
    rng = np.random.default_rng(1)
    turns = rng.integers(-3, 4, size=(5, n_components))
    found = period_shifts(psf.components_, turns)
    assert found.holds
    assert found.exact.all()
    Z = psf.transform(X)
    for k, shift, residual in zip(turns, found.shifts, found.residuals, strict=True):
        np.testing.assert_allclose(psf.transform(X + shift), Z, atol=1e-7)
        assert residual < 1e-9
        checked = check_period(psf.components_, shift)
        assert checked.holds
        np.testing.assert_array_equal(checked.turns, k)


@pytest.mark.parametrize("activation", ["sin", "cos"])
def test_the_printed_period_is_none_for_odd_k(activation):
    """Theorem 2 prints W⁻¹ k π: right for even k, where it is ours, wrong for odd ones."""
    psf, X = fitted(2, activation)
    Z = psf.transform(X)
    for k in ([1, 0], [0, 1], [1, 1], [3, -2]):
        printed = np.linalg.solve(psf.components_, np.pi * np.array(k))
        result = check_period(psf.components_, printed)
        assert not result.holds
        np.testing.assert_allclose(result.misses, np.pi * (np.array(k) % 2), atol=1e-9)
        assert np.abs(psf.transform(X + printed) - Z).max() > 0.1
        np.testing.assert_allclose(psf.transform(X + 2 * printed), Z, atol=1e-7)


def test_more_filters_than_features_have_near_periods_only():
    psf, X = fitted(6)
    turns = np.eye(6, dtype=int)
    found = period_shifts(psf.components_, turns)
    assert not found.holds
    assert not found.exact.any()
    expected = np.linalg.lstsq(psf.components_, 2 * np.pi * turns.T, rcond=None)
    np.testing.assert_allclose(found.shifts, expected[0].T, atol=1e-9)
    np.testing.assert_allclose(found.residuals**2, expected[1], rtol=1e-6)
    moved = psf.transform(X + found.shifts[0]) - psf.transform(X)
    assert np.abs(moved).max() > 0.01
    # The exception: turns that the filters make together.
    W = np.array([[1.0], [2.0], [-3.0]])
    assert period_shifts(W, [1, 2, -3]).holds
    assert not period_shifts(W, [1, 2, -2]).holds


def test_dependent_filters_have_no_shift_for_most_turns():
    """L ≤ m is not enough: the filters must be independent."""
    W = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])
    found = period_shifts(W, [[1, 1], [1, 0]])
    np.testing.assert_array_equal(found.exact, [True, False])
    assert found.residuals[1] == pytest.approx(np.sqrt(2) * np.pi)
    assert not found.holds


def test_a_single_filter_shows_nothing_whatever_the_shift():
    """Why the condition is sufficient, and necessary only for two or more independent filters."""
    data = make_periodic_shift(random_state=0)
    psf = PeriodicSparseFiltering(1, n_restarts=1, max_iter=0).fit(data.X_source)
    shift = np.array([0.3, -0.2])
    assert not check_period(psf.components_, shift).holds
    np.testing.assert_allclose(psf.transform(data.X_source + shift), 1.0)


@FIXED
@given(
    m=st.integers(1, 4),
    L=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_period_equals_a_naive_loop(m, L, seed):
    rng = np.random.default_rng(seed)
    W, delta = rng.standard_normal((L, m)), 5 * rng.standard_normal(m)
    result = check_period(W, delta)
    for j in range(L):
        phase = sum(W[j, k] * delta[k] for k in range(m))
        misses = [abs(phase - 2 * np.pi * turn) for turn in range(-30, 31)]
        assert result.misses[j] == pytest.approx(min(misses), abs=1e-9)
        assert result.turns[j] == np.argmin(misses) - 30
    assert result.largest_miss == result.misses.max() <= np.pi
    assert result.holds == (result.largest_miss <= 1e-6)


def test_tolerance_decides_what_is_rounding():
    W = np.array([[1.0]])
    assert check_period(W, [2 * np.pi + 1e-7]).holds
    assert not check_period(W, [2 * np.pi + 1e-5]).holds
    assert check_period(W, [2 * np.pi + 1e-5], tolerance=1e-4).holds
    assert check_period(W, [0.0]).holds


def test_periods_refuse():
    W = np.ones((2, 3))
    for delta in ([1.0, 2.0], [[1.0, 2.0, 3.0]], [1.0, np.nan, 0.0]):
        with pytest.raises(ValueError, match=r"delta"):
            check_period(W, delta)
    for k in ([1, 2, 3], [[1, 2, 3]], [1.5, 2], [1, np.nan]):
        with pytest.raises(ValueError, match=r"k "):
            period_shifts(W, k)


@pytest.mark.parametrize(("max_pairs", "n_pairs"), [(10, 10), (11, 10), (9, 9)])
def test_all_pairs_are_taken_where_they_are_few_enough(max_pairs, n_pairs):
    chosen = _choose_pairs(None, 5, max_pairs, 0)
    assert len(chosen) == n_pairs
    assert (chosen[:, 0] != chosen[:, 1]).all()
    if max_pairs >= 10:
        assert {tuple(pair) for pair in chosen.tolist()} == set(itertools.combinations(range(5), 2))


def test_rows_of_single_precision_are_computed_in_double():
    X = make_radial_shift(random_state=0).X_source[:30].astype(np.float32)
    sf = SparseFiltering(3, n_restarts=1, max_iter=0, random_state=0).fit(X)
    W, norms = sf.components_, sf.feature_norms_[0]
    found, exact = (
        check_cosine_neighborhood(W, norms, rows, epsilon=sf.epsilon)
        for rows in (X, X.astype(np.float64))
    )
    assert found == exact
