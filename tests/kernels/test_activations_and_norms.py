""""""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from covshift.kernels.activations_and_norms import (
    ACTIVATIONS,
    activate,
    activate_block,
    half_angle_is_cheaper,
    inverse_roots,
    normalize_by,
    root_mean_squares,
    row_norms,
    stored_norms,
)
from tests.kernels.problems import FIXED
from tests.twins import naive

H = np.linspace(-9.0, 9.0, 61).reshape(-1, 1) * [1.0, 0.1]
# Half an angle of pi / 2, where the tangent is as large as it gets.
STEEP = np.pi * np.array([[1.0, -1.0, 3.0, 1.0 + 1e-12, 1e6 + 1]])

both_ways = pytest.mark.parametrize(
    ("activation", "half_angle"),
    [("abs", False), ("sin", False), ("sin", True), ("cos", False), ("cos", True)],
)


def block(H, activation, epsilon, half_angle):
    F, slopes = (H / 2 if half_angle else H.copy()), np.full_like(H, np.nan)
    activate_block(F, slopes, activation, epsilon, half_angle=half_angle)
    return F, slopes


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.5])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_equal_the_naive_twin(activation, epsilon):
    expected = np.array([[naive.activation(h, activation, epsilon) for h in row] for row in H])
    np.testing.assert_allclose(activate(H, activation, epsilon), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("epsilon", [1e-8, 0.5])
@pytest.mark.parametrize("angles", [H, STEEP], ids=["ordinary", "steep"])
@both_ways
def test_values_and_slopes_of_a_block(activation, half_angle, angles, epsilon):
    F, slopes = block(angles, activation, epsilon, half_angle)
    np.testing.assert_allclose(F, activate(angles, activation, epsilon), rtol=1e-14, atol=4e-15)
    step = 1e-30
    moved = [[naive.activation(h + 1j * step, activation, epsilon) for h in row] for row in angles]
    np.testing.assert_allclose(slopes, np.imag(moved) / step, rtol=1e-9, atol=4e-15)


@both_ways
def test_single_precision(activation, half_angle):
    F, slopes = block(H.astype(np.float32), activation, 1e-8, half_angle)
    expected = block(H, activation, 1e-8, half_angle)
    assert F.dtype == slopes.dtype == np.float32
    np.testing.assert_allclose(F, expected[0], atol=2e-6, rtol=1e-6)
    np.testing.assert_allclose(slopes, expected[1], atol=2e-6, rtol=1e-5)


def test_slope_of_the_absolute_value_is_a_sign_that_is_zero_at_zero():
    F, slopes = block(np.array([[-2.0, 0.0, 3.0]]), "abs", 0.0, half_angle=False)
    np.testing.assert_array_equal(F, [[2.0, 0.0, 3.0]])
    np.testing.assert_array_equal(slopes, [[-1.0, 0.0, 1.0]])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activate_returns_a_new_array(activation, dtype):
    h = H.astype(dtype)
    F = activate(h, activation, 1e-8)
    np.testing.assert_array_equal(h, H.astype(dtype))
    assert not np.shares_memory(F, h)
    assert F.dtype == dtype


@pytest.mark.parametrize(
    ("loop", "expected"),
    [("X86_V4", True), ("AVX512_SKX", True), ("baseline(X86_V2)", False), (None, False)],
)
def test_half_angles_where_numpy_has_a_wide_tangent(loop, expected, monkeypatch):
    loops = {} if loop is None else {"tan": {"dd": {"current": loop, "available": "X86_V4"}}}
    introspect = SimpleNamespace(opt_func_info=lambda **which: loops)
    monkeypatch.setattr(np.lib, "introspect", introspect, raising=False)
    rule = half_angle_is_cheaper.__wrapped__  # without its cache
    assert rule(np.dtype(np.float64)) is expected
    assert rule(np.dtype(np.float32)) is False


def test_half_angles_are_not_used_where_numpy_does_not_tell(monkeypatch):
    monkeypatch.delattr(np.lib, "introspect", raising=False)
    assert half_angle_is_cheaper.__wrapped__(np.dtype(np.float64)) is False


NORM_EPSILONS = [0.0, 1e-8, 0.1]

# Entries are zero or far enough from it for their squares to be ordinary numbers.
activations = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.just(0.0) | st.floats(1e-6, 1e3),
)


@pytest.mark.parametrize("norm_epsilon", NORM_EPSILONS)
def test_row_norms_equal_the_definition(norm_epsilon):
    A = np.random.default_rng(0).uniform(size=(7, 3))
    expected = [[np.sqrt(sum(a * a for a in row) + norm_epsilon)] for row in A]
    np.testing.assert_allclose(row_norms(A, norm_epsilon), expected, rtol=1e-14)


def test_a_norm_of_zero_divides_by_one():
    np.testing.assert_array_equal(row_norms(np.array([[0.0, 0.0], [3.0, 4.0]]), 0.0), [[1], [5]])
    np.testing.assert_array_equal(inverse_roots(np.array([[0.0, 4.0]])), [[1.0, 0.5]])


@FIXED
@given(F=activations, norm_epsilon=st.sampled_from(NORM_EPSILONS))
def test_stored_norms_give_their_own_rows_what_the_batch_gives(F, norm_epsilon):
    stored = root_mean_squares(F)
    np.testing.assert_allclose(stored, naive.root_mean_squares(F), rtol=1e-12)
    expected = naive.normalize(F, norm_epsilon)
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
    expected = np.concatenate([naive.normalize(part, norm_epsilon) for part in parts])
    root_means = np.stack([root_mean_squares(part) for part in parts])
    norms = stored_norms(root_means, np.array([2, 7]), norm_epsilon)
    result = normalize_by(F.copy(), np.repeat(norms, [2, 7], axis=0), norm_epsilon)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_single_precision_stays_single():
    F = np.random.default_rng(3).uniform(size=(9, 3)).astype(np.float32)
    kept = F.copy()
    norms = root_mean_squares(F)
    results = [norms, row_norms(F, 1e-8), normalize_by(F.copy(), norms, 1e-8)]
    assert {result.dtype for result in results} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(F, kept)


def test_single_precision_norms_of_many_rows_do_not_drift():
    """Summed in single precision these would be off by 2e-4."""
    F = np.full((1_000_000, 1), 0.1, dtype=np.float32)
    np.testing.assert_allclose(root_mean_squares(F), np.float32(0.1), rtol=1e-6)
