from types import SimpleNamespace

import numpy as np
import pytest

from covshift.kernels.activations import (
    ACTIVATIONS,
    activate,
    activate_block,
    half_angle_is_cheaper,
)
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
