import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from covshift.kernels.normalization import (
    backward_in_place,
    feature_norms,
    normalize,
    normalize_by,
    root_mean_squares,
    row_norms,
    stored_norms,
)
from tests import naive
from tests.kernels.problems import FIXED, assert_close

NORM_EPSILONS = [0.0, 1e-8, 0.1]

# Entries are zero or far enough from it for their squares to be ordinary numbers.
activations = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.just(0.0) | st.floats(1e-6, 1e3),
)


@FIXED
@given(F=activations, norm_epsilon=st.sampled_from(NORM_EPSILONS))
def test_equals_the_naive_twin(F, norm_epsilon):
    Z, t, r = normalize(F, norm_epsilon)
    np.testing.assert_allclose(Z, naive.normalise(F, norm_epsilon), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(Z * r * t, F, rtol=1e-12)
    np.testing.assert_array_equal(t, feature_norms(F, norm_epsilon))
    np.testing.assert_array_equal(r, row_norms(F / t, norm_epsilon))
    assert t.shape == (F.shape[1],)
    assert r.shape == (F.shape[0], 1)


@FIXED
@given(F=activations)
def test_rows_lie_on_the_positive_part_of_the_unit_sphere(F):
    Z, _, _ = normalize(F, 0.0)
    alive = F.any(axis=1)
    assert Z.min() >= 0
    assert Z.max() <= 1 + 1e-15
    np.testing.assert_allclose(np.linalg.norm(Z[alive], axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(Z[~alive], 0.0)
    assert (Z[alive].sum(axis=1) >= 1 - 1e-12).all()
    assert (Z[alive].sum(axis=1) <= np.sqrt(F.shape[1]) + 1e-12).all()


def test_norm_epsilon_shortens_the_rows():
    F = np.random.default_rng(0).uniform(size=(7, 3))
    lengths = np.linalg.norm(normalize(F, 0.1)[0], axis=1)
    assert (lengths < 0.99).all()


def test_a_norm_of_zero_divides_by_one():
    F = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 4.0]])
    Z, t, r = normalize(F, 0.0)
    np.testing.assert_array_equal(t, [1.0, 5.0])
    np.testing.assert_array_equal(r.ravel(), [0.6, 1.0, 0.8])
    np.testing.assert_array_equal(Z, [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    assert np.isfinite(backward_in_place(np.ones_like(Z), Z, t, r)).all()


@pytest.mark.parametrize("norm_epsilon", NORM_EPSILONS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (7, 4)])
def test_backward_pass_equals_the_complex_step(shape, norm_epsilon):
    rng = np.random.default_rng(1)
    F, G = rng.uniform(0.1, 2.0, size=shape), rng.standard_normal(shape)

    def weighted_sum(F):
        return (G * naive.normalise(F, norm_epsilon)).sum()

    upstream = G.copy()
    result = backward_in_place(upstream, *normalize(F, norm_epsilon))
    assert result is upstream
    assert_close(result, naive.complex_step_gradient(weighted_sum, F), 1e-12)


@FIXED
@given(F=activations, norm_epsilon=st.sampled_from(NORM_EPSILONS))
def test_stored_norms_give_their_own_rows_what_the_batch_gives(F, norm_epsilon):
    stored = root_mean_squares(F)
    np.testing.assert_allclose(stored, naive.root_mean_squares(F), rtol=1e-12)
    expected, _, _ = normalize(F, norm_epsilon)
    norms = stored_norms(stored[None], np.array([len(F)]), norm_epsilon)
    assert norms.shape == (1, F.shape[1])
    Z = F.copy()
    assert normalize_by(Z, norms[0], norm_epsilon) is Z
    np.testing.assert_allclose(Z, expected, rtol=1e-9, atol=1e-14)
    one = normalize_by(F[:1].copy(), norms, norm_epsilon)
    np.testing.assert_allclose(one, expected[:1], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("norm_epsilon", NORM_EPSILONS)
def test_stored_norms_may_differ_from_row_to_row(norm_epsilon):
    F = np.random.default_rng(2).uniform(size=(9, 3))
    parts = [F[:2], F[2:]]
    expected = np.concatenate([normalize(part, norm_epsilon)[0] for part in parts])
    root_means = np.stack([root_mean_squares(part) for part in parts])
    norms = stored_norms(root_means, np.array([2, 7]), norm_epsilon)
    result = normalize_by(F.copy(), np.repeat(norms, [2, 7], axis=0), norm_epsilon)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_single_precision_stays_single():
    F = np.random.default_rng(3).uniform(size=(9, 3)).astype(np.float32)
    kept = F.copy()
    results = [
        *normalize(F, 1e-8),
        root_mean_squares(F),
        backward_in_place(F + 1, *normalize(F, 0)),
    ]
    results.append(normalize_by(F.copy(), feature_norms(F, 1e-8), 1e-8))
    assert {result.dtype for result in results} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(F, kept)


def test_single_precision_norms_of_many_rows_do_not_drift():
    """Summed in single precision these would be off by 2e-4."""
    F = np.full((1_000_000, 1), 0.1, dtype=np.float32)
    exact = np.float32(0.1) * 1e3
    np.testing.assert_allclose(feature_norms(F, 0.0), exact, rtol=1e-6)
    np.testing.assert_allclose(root_mean_squares(F), np.float32(0.1), rtol=1e-6)
