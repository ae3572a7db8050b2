import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import kolmogorov
from scipy.stats import ks_2samp, kstwo

from covshift.datasets import (
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.measures.ks import (
    _approximate_pvalues,
    _effective_sizes,
    ks_distance,
    ks_statistics,
    ks_test,
    mean_ks_distance,
)
from covshift.measures.paired_tests import holm
from tests.kernels.problems import FIXED
from tests.twins import naive

# --- The statistic ---


@st.composite
def two_samples(draw):
    """Samples of different sizes, drawn from few values, so that most of them tie."""
    width = draw(st.integers(1, 4))
    values = st.integers(-2, 2).map(lambda k: k / 3)
    return tuple(
        draw(arrays(float, (draw(st.integers(1, 9)), width), elements=values)) for _ in range(2)
    )


@FIXED
@given(samples=two_samples())
def test_equals_the_naive_twin_with_ties(samples):
    A, B = samples
    expected = [naive.ks_statistic(a, b) for a, b in zip(A.T, B.T, strict=True)]
    np.testing.assert_allclose(ks_statistics(A, B), expected, rtol=1e-14, atol=1e-15)
    assert mean_ks_distance(A, B) == pytest.approx(naive.mean_ks_distance(A, B), abs=1e-14)


@FIXED
@given(samples=two_samples())
def test_is_symmetric_and_blind_to_monotone_maps_and_to_order(samples):
    A, B = samples
    expected = ks_statistics(A, B)
    np.testing.assert_array_equal(ks_statistics(B, A), expected)
    np.testing.assert_array_equal(ks_statistics(A[::-1], B[::-1]), expected)
    for monotone in (np.exp, np.negative, lambda v: v**3 + 7):
        np.testing.assert_array_equal(ks_statistics(monotone(A), monotone(B)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 30), (50, 50), (70, 33)])
def test_equals_scipy(n, k, dtype):
    rng = np.random.default_rng(n + k)
    A = rng.standard_normal((n, 3)).astype(dtype)
    B = (rng.standard_normal((k, 3)) * [1, 2, 1] + [0, 0, 0.8]).astype(dtype)
    B[0] = A[0]
    # In double precision: SciPy 1.18 rounds statistics of single precision to it.
    A_64, B_64 = A.astype(np.float64), B.astype(np.float64)
    expected = ks_2samp(A_64, B_64, axis=0, method="exact").statistic
    np.testing.assert_allclose(ks_statistics(A, B), expected, rtol=1e-12)
    assert mean_ks_distance(A, B) == pytest.approx(np.mean(expected))
    assert isinstance(mean_ks_distance(A, B), float)


def test_each_feature_is_on_its_own_scale():
    A = np.array([[0.0, 0.0, 5.0], [0.0, 1.0, 6.0]])
    B = np.array([[0.0, 0.5, 1.0]])
    np.testing.assert_array_equal(ks_statistics(A, B), [0.0, 0.5, 1.0])
    assert mean_ks_distance(A, B) == 0.5


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 7), (7, 3)])
def test_statistics_of_constants(n, k):
    ones = np.ones((n, 2))
    np.testing.assert_array_equal(ks_statistics(ones, np.ones((k, 2))), [0.0, 0.0])
    np.testing.assert_array_equal(ks_statistics(ones, np.full((k, 2), 1 + 1e-15)), [1.0, 1.0])


def test_inputs_are_not_changed():
    A, B = np.array([[3.0], [1.0]]), np.array([[2.0], [0.0], [9.0]])
    A.setflags(write=False)
    B.setflags(write=False)
    assert ks_statistics(A, B) == pytest.approx([1 / 3])


@st.composite
def weighted_samples(draw):
    """Samples with ties and weights, some of them zero, but never all."""
    samples = draw(two_samples())
    numbers = st.sampled_from([0.0, 0.25, 1.0, 2.5, 3.1])
    weights = [
        draw(arrays(float, len(sample), elements=numbers).filter(np.any)) for sample in samples
    ]
    return *samples, *weights


@FIXED
@given(problem=weighted_samples())
def test_weighted_equals_the_naive_twin(problem):
    A, B, weights_A, weights_B = problem
    columns = list(zip(A.T, B.T, strict=True))
    for w_A, w_B in ((weights_A, weights_B), (weights_A, None), (None, weights_B)):
        expected = [
            naive.weighted_ks_statistic(
                a,
                b,
                np.ones(len(a)) if w_A is None else w_A,
                np.ones(len(b)) if w_B is None else w_B,
            )
            for a, b in columns
        ]
        actual = ks_statistics(A, B, w_A, w_B)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
        assert actual.max() <= 1


@FIXED
@given(problem=weighted_samples())
def test_weighted_is_symmetric_and_ignores_zero_weights_and_their_scale(problem):
    A, B, weights_A, weights_B = problem
    expected = ks_statistics(A, B, weights_A, weights_B)
    close = {"rtol": 1e-13, "atol": 1e-15}
    np.testing.assert_allclose(ks_statistics(B, A, weights_B, weights_A), expected, **close)
    kept_A, kept_B = weights_A > 0, weights_B > 0
    removed = ks_statistics(A[kept_A], B[kept_B], weights_A[kept_A], weights_B[kept_B])
    np.testing.assert_allclose(removed, expected, **close)
    # Their products leave the range of the numbers unless they are scaled first.
    for scale in (1e-300, 1e300):
        scaled = ks_statistics(A, B, scale * weights_A, scale * weights_B)
        np.testing.assert_allclose(scaled, expected, **close)


@FIXED
@given(samples=two_samples(), seed=st.integers(0, 2**32 - 1))
def test_whole_number_weights_are_repeated_rows_to_the_last_bit(samples, seed):
    A, B = samples
    rng = np.random.default_rng(seed)
    times_A, times_B = rng.integers(0, 4, len(A)), rng.integers(0, 4, len(B))
    times_A[0], times_B[-1] = 3, 2  # never all zero
    repeated = ks_statistics(np.repeat(A, times_A, axis=0), np.repeat(B, times_B, axis=0))
    weighted = ks_statistics(A, B, times_A.astype(float), times_B.astype(float))
    np.testing.assert_array_equal(weighted, repeated)
    ones = ks_statistics(A, B, np.ones(len(A)), np.ones(len(B)))
    np.testing.assert_array_equal(ones, ks_statistics(A, B))


@FIXED
@given(problem=weighted_samples())
def test_effective_sizes_equal_the_naive_twin(problem):
    A, _, weights, _ = problem
    actual = _effective_sizes(A, weights)
    expected = [naive.effective_size(a, weights) for a in A.T]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    np.testing.assert_allclose(_effective_sizes(A[::-1], weights[::-1]), actual, rtol=1e-12)
    np.testing.assert_allclose(_effective_sizes(A, 1e300 * weights), actual, rtol=1e-12)


def test_effective_sizes_of_weights_that_do_and_do_not_depend_on_the_feature():
    rng = np.random.default_rng(0)
    related, unrelated = rng.normal(size=(2, 20_000))
    weights = np.exp(related)
    kish = weights.sum() ** 2 / (weights**2).sum()
    sizes = _effective_sizes(np.stack([related, unrelated, np.zeros(20_000)], axis=1), weights)
    assert sizes[0] < 0.8 * kish
    assert sizes[1] == pytest.approx(kish, rel=0.05)
    assert sizes[2] == pytest.approx(kish, rel=1e-12)
    # Truly as variable: P at its most variable point, over repeated draws.
    x = rng.normal(size=(2000, 100))
    w = np.exp(0.5 * x)
    points = np.linspace(-1, 2, 13)
    P = np.stack([(w * (x <= v)).sum(axis=1) / w.sum(axis=1) for v in points])
    size = np.mean([_effective_sizes(x[i, :, None], w[i])[0] for i in range(200)])
    assert 4 * P.var(axis=1).max() == pytest.approx(1 / size, rel=0.15)


def test_weights_are_not_changed():
    A, B = np.array([[3.0], [1.0]]), np.array([[2.0], [0.0], [9.0]])
    weights_A, weights_B = np.array([1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    for array in (A, B, weights_A, weights_B):
        array.setflags(write=False)
    assert ks_statistics(A, B, weights_A, weights_B) == pytest.approx([0.5])
    assert _effective_sizes(A, weights_A) == pytest.approx([1.6])


# --- Distance and test ---


SIZES = [(1, 1), (1, 9), (4, 6), (30, 30), (70, 33)]
LEVELS = [0.1, 0.05, 0.01, 0.001, 0.0005]
SYNTHETIC = [make_radial_shift, make_periodic_shift, make_smooth_shift, make_diagonal_shift]


def samples(n, k, n_features=4, seed=0, shift=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), rng.normal(size=(k, n_features)) + shift


def limit_pvalues(distances, n, k):
    """The approximation where the exact p-value is at hand."""
    return _approximate_pvalues(distances, np.empty((n, 1)), np.empty((k, 1)), None, None)


def assert_same(first, second):
    for name in ("statistics", "pvalues", "adjusted_pvalues", "statistic", "pvalue", "effect_size"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_small_samples_have_the_exact_pvalues(n, k):
    A, B = samples(n, k)
    test = ks_test(A, B)
    for j in range(A.shape[1]):
        expected = ks_2samp(A[:, j], B[:, j], method="exact")
        assert test.statistics[j] == pytest.approx(expected.statistic, rel=1e-12)
        assert test.pvalues[j] == pytest.approx(expected.pvalue, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "k", "excess"), [(150, 90, 1.35), (500, 400, 1.2), (5000, 2000, 1.05)]
)
def test_large_samples_are_near_the_exact_pvalues_and_never_below_them(n, k, excess):
    A, B = samples(n, k, n_features=25, shift=np.linspace(0, 2.5, 25) / np.sqrt(min(n, k)))
    test = ks_test(A, B)
    exact = ks_2samp(A, B, axis=0, method="exact").pvalue
    assert exact.min() < 0.01 < 0.5 < exact.max()
    assert (test.pvalues >= exact).all()
    assert (test.pvalues <= excess * exact).all()


@pytest.mark.parametrize(
    ("n", "k"), [(n, k) for n in range(1, 8) for k in range(n, 12)] + [(11, 11), (8, 24), (39, 39)]
)
def test_approximate_pvalues_never_reject_too_often(n, k):
    exact = naive.ks_tail_probabilities(n, k)
    distances, probabilities = np.array(list(exact)), np.array(list(exact.values()))
    pvalues = limit_pvalues(distances, n, k)
    for level in LEVELS:
        assert probabilities[pvalues <= level].max(initial=0) <= level


def test_the_usual_approximation_rejects_too_often():
    """Guards the test above: what it forbids does happen."""
    exact = naive.ks_tail_probabilities(11, 11)
    usual = kstwo.sf(list(exact), round(11 * 11 / 22))
    assert np.array(list(exact.values()))[usual <= 0.05].max() > 0.07


def test_only_weighted_distances_are_reduced():
    A, B = samples(150, 90)
    plain = ks_test(A, B)
    limit = kolmogorov(np.sqrt(150 * 90 / 240) * plain.statistics)
    np.testing.assert_allclose(plain.pvalues, limit)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=150)
    weighted = ks_test(A, B, weights_A=weights)
    n = _effective_sizes(A, weights)
    reduced = weighted.statistics - 0.5 / np.minimum(n, 90)
    np.testing.assert_allclose(weighted.pvalues, kolmogorov(np.sqrt(n * 90 / (n + 90)) * reduced))


@FIXED
@given(problem=two_samples())
def test_summaries(problem):
    A, B = problem
    test = ks_test(A, B)
    assert test.effect_size == pytest.approx(naive.mean_ks_distance(A, B), abs=1e-14)
    assert test.effect_size == ks_distance(A, B)
    assert test.statistic == test.statistics.max()
    assert test.pvalue == test.adjusted_pvalues.min()
    np.testing.assert_array_equal(test.adjusted_pvalues, holm(test.pvalues))
    assert (test.pvalues > 0).all()
    assert (test.pvalues <= 1).all()


@pytest.mark.parametrize(("n", "k"), [(40, 30), (300, 200)])
def test_order_side_and_monotone_maps_change_nothing(n, k):
    A, B = samples(n, k)
    test = ks_test(A, B)
    assert_same(ks_test(A[::-1], np.roll(B, 3, axis=0)), test)
    assert_same(ks_test(B, A), test)
    assert_same(ks_test(np.exp(A), np.exp(B)), test)
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(ks_test(A[:, order], B[:, order]).pvalues, test.pvalues[order])
    np.testing.assert_array_equal(
        ks_test(A[:, order], B[:, order]).adjusted_pvalues, test.adjusted_pvalues[order]
    )


@pytest.mark.parametrize(("n", "k"), [(40, 30), (300, 200)])
def test_equal_weights_are_no_weights_and_zero_weights_are_no_rows(n, k):
    A, B = samples(n, k)
    assert_same(ks_test(A, B, weights_A=np.full(n, 0.3), weights_B=np.full(k, 7)), ks_test(A, B))
    keep_A, keep_B = np.arange(n) % 3 > 0, np.arange(k) % 4 > 0
    removed = ks_test(A[keep_A], B[keep_B])
    assert_same(ks_test(A, B, weights_A=keep_A, weights_B=2 * keep_B), removed)
    assert (removed.pvalues != ks_test(A, B).pvalues).all()
    assert ks_distance(A, B, weights_A=keep_A, weights_B=keep_B) == removed.effect_size
    weights = np.random.default_rng(1).exponential(size=n)
    weighted = ks_test(A, B, weights_A=weights * keep_A)
    assert_same(weighted, ks_test(A[keep_A], B, weights_A=weights[keep_A]))
    scaled = ks_test(A, B, weights_A=1e200 * weights * keep_A)
    np.testing.assert_allclose(scaled.pvalues, weighted.pvalues, rtol=1e-9)


def test_weighted_distances_are_those_of_repeated_rows():
    A, B = samples(20, 30)
    times = np.arange(20) % 4
    expected = ks_test(np.repeat(A, times, axis=0), B)
    weighted = ks_test(A, B, weights_A=times)
    np.testing.assert_array_equal(weighted.statistics, expected.statistics)
    # But a repeated row is not new evidence.
    assert (weighted.pvalues > expected.pvalues).all()


def test_rows_of_hardly_any_weight_hardly_count():
    A, B = samples(400, 300)
    weighted = ks_test(A, B, weights_A=np.where(np.arange(400) < 200, 1, 1e-7))
    removed = ks_test(A[:200], B)
    np.testing.assert_allclose(weighted.statistics, removed.statistics, rtol=1e-3)
    # The approximation is the more careful one, but not by much.
    assert (weighted.pvalues > removed.pvalues).all()
    assert (weighted.pvalues < 1.5 * removed.pvalues).all()


def test_importance_weights_undo_the_shift():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2000, 1)), rng.normal(size=(1000, 1)) + 0.5
    weights = np.exp(0.5 * A[:, 0])
    assert ks_test(A, B).pvalue < 1e-6
    assert ks_test(A, B, weights_A=weights).pvalue > 0.05
    assert ks_distance(A, B, weights_A=weights) < ks_distance(A, B) / 3


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0]])
def test_samples_too_small_to_tell(weights):
    """Not even samples without overlap: p is what chance alone does as often."""
    test = ks_test([0.0, 1.0, 2.0], [5.0, 6.0, 7.0], weights_A=weights)
    assert test.statistic == 1
    assert test.pvalue >= 2 / 20 - 1e-15
    assert ks_test([[0.0]], [[1.0]]).pvalue == 1


def test_a_pvalue_of_one_that_scipy_rounds_above_one(recwarn):
    """SciPy warns of these."""
    for n in (5, 7, 13):
        steps = np.arange(n, dtype=float)
        assert ks_test(steps, steps + 0.5).pvalue == pytest.approx(1, abs=0.01)
    assert not recwarn.list


@pytest.mark.parametrize("n", [1, 5, 200])
def test_constants(n):
    test = ks_test(np.ones((n, 2)), np.ones((n + 1, 2)))
    np.testing.assert_array_equal(test.statistics, [0, 0])
    np.testing.assert_array_equal(test.pvalues, [1, 1])


def test_single_precision_and_one_dimension():
    A, B = samples(300, 200, n_features=1)
    A, B = A.astype(np.float32), B.astype(np.float32)
    assert_same(ks_test(A, B), ks_test(A.astype(float), B.astype(float)))
    assert_same(ks_test(A[:, 0], list(B[:, 0])), ks_test(A, B))


@pytest.mark.parametrize("measure", [ks_distance, ks_test])
def test_bad_input_is_a_clear_error(measure):
    A, B = samples(5, 6, n_features=2)
    with pytest.raises(ValueError, match="NaN"):
        measure(A, np.where(B > 0, B, np.nan))
    with pytest.raises(ValueError, match="same features, got 2 and 1"):
        measure(A, B[:, :1])
    with pytest.raises(ValueError, match="0 sample"):
        measure(A[:0], B)
    for weights, message in [
        (np.ones(4), r"weights_B must hold one number per row.*\(6,\)"),
        (-np.ones(6), "weights_B must not be negative"),
        (np.zeros(6), "weights_B must not all be zero"),
        (np.full(6, np.nan), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            measure(A, B, weights_B=weights)


@FIXED
@given(problem=weighted_samples())
def test_weighted_pvalues_are_probabilities_and_fall_with_the_distance(problem):
    A, B, weights_A, weights_B = problem
    test = ks_test(A, B, weights_A=weights_A, weights_B=weights_B)
    assert ((test.pvalues > 0) & (test.pvalues <= 1)).all()
    assert (test.pvalues[test.statistics == 0] == 1).all()
    # A row by itself shows nothing with any weight.
    if min(np.count_nonzero(weights_A), np.count_nonzero(weights_B)) == 1:
        assert test.pvalue > 0.05


def test_importance_weights_are_worth_fewer_rows_in_the_feature_they_depend_on():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(500, 1)), rng.normal(size=(400, 1)) + 0.8
    weights = np.exp(A[:, 0])
    together = ks_test(A, B, weights_A=weights)
    apart = _approximate_pvalues(together.statistics, A, B, rng.permutation(weights), None)
    assert together.pvalue > 1.2 * apart[0]


@pytest.mark.parametrize("make_shift", SYNTHETIC)
def test_power_on_the_synthetic_data(make_shift):
    data = make_shift(n_source=1000, n_test=500, random_state=0)
    first, second = data.X_source[:500], data.X_source[500:]
    moved, unmoved = ks_test(first, data.X_test), ks_test(first, second)
    assert moved.pvalue < 1e-10
    assert unmoved.pvalue > 0.05
    assert moved.effect_size > 2 * unmoved.effect_size
