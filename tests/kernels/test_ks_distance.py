import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ks_2samp

from covshift.kernels.ks_distance import effective_sizes, ks_statistics, mean_ks_distance
from tests.kernels.problems import FIXED
from tests.twins import naive


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
    expected = ks_2samp(A, B, axis=0, method="exact").statistic
    np.testing.assert_allclose(ks_statistics(A, B), expected, rtol=1e-12)
    assert mean_ks_distance(A, B) == pytest.approx(np.mean(expected))
    assert isinstance(mean_ks_distance(A, B), float)


def test_each_feature_is_on_its_own_scale():
    A = np.array([[0.0, 0.0, 5.0], [0.0, 1.0, 6.0]])
    B = np.array([[0.0, 0.5, 1.0]])
    np.testing.assert_array_equal(ks_statistics(A, B), [0.0, 0.5, 1.0])
    assert mean_ks_distance(A, B) == 0.5


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 7), (7, 3)])
def test_constants(n, k):
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
    actual = effective_sizes(A, weights)
    expected = [naive.effective_size(a, weights) for a in A.T]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    np.testing.assert_allclose(effective_sizes(A[::-1], weights[::-1]), actual, rtol=1e-12)
    np.testing.assert_allclose(effective_sizes(A, 1e300 * weights), actual, rtol=1e-12)


def test_effective_sizes_of_weights_that_do_and_do_not_depend_on_the_feature():
    rng = np.random.default_rng(0)
    related, unrelated = rng.normal(size=(2, 20_000))
    weights = np.exp(related)
    kish = weights.sum() ** 2 / (weights**2).sum()
    sizes = effective_sizes(np.stack([related, unrelated, np.zeros(20_000)], axis=1), weights)
    assert sizes[0] < 0.8 * kish
    assert sizes[1] == pytest.approx(kish, rel=0.05)
    assert sizes[2] == pytest.approx(kish, rel=1e-12)
    # Truly as variable: P at its most variable point, over repeated draws.
    x = rng.normal(size=(2000, 100))
    w = np.exp(0.5 * x)
    points = np.linspace(-1, 2, 13)
    P = np.stack([(w * (x <= v)).sum(axis=1) / w.sum(axis=1) for v in points])
    size = np.mean([effective_sizes(x[i, :, None], w[i])[0] for i in range(200)])
    assert 4 * P.var(axis=1).max() == pytest.approx(1 / size, rel=0.15)


def test_weights_are_not_changed():
    A, B = np.array([[3.0], [1.0]]), np.array([[2.0], [0.0], [9.0]])
    weights_A, weights_B = np.array([1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    for array in (A, B, weights_A, weights_B):
        array.setflags(write=False)
    assert ks_statistics(A, B, weights_A, weights_B) == pytest.approx([0.5])
    assert effective_sizes(A, weights_A) == pytest.approx([1.6])
