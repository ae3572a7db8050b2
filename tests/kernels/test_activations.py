import numpy as np
import pytest

from covshift.kernels.activations import ACTIVATIONS, activate, slope_in_place
from tests import naive

H = np.linspace(-9.0, 9.0, 61).reshape(-1, 1) * [1.0, 0.1]


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.5])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_equal_the_naive_twin(activation, epsilon):
    expected = np.array([[naive.activation(h, activation, epsilon) for h in row] for row in H])
    np.testing.assert_allclose(activate(H, activation, epsilon), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("epsilon", [1e-8, 0.5])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_equal_the_complex_step(activation, epsilon):
    step = 1e-30
    moved = H + 1j * step
    expected = np.array([[naive.activation(h, activation, epsilon) for h in row] for row in moved])
    slope = slope_in_place(H.copy(), activate(H, activation, epsilon), activation)
    np.testing.assert_allclose(slope, expected.imag / step, rtol=1e-12, atol=1e-15)


def test_slope_of_the_absolute_value_is_a_sign_that_is_zero_at_zero():
    h = np.array([[-2.0, 0.0, 3.0]])
    np.testing.assert_array_equal(slope_in_place(h, np.abs(h), "abs"), [[-1.0, 0.0, 1.0]])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activate_returns_a_new_array_and_the_slope_overwrites(activation, dtype):
    h = H.astype(dtype)
    F = activate(h, activation, 1e-8)
    np.testing.assert_array_equal(h, H.astype(dtype))
    assert not np.shares_memory(F, h)
    kept = F.copy()
    slope = slope_in_place(h, F, activation)
    assert slope is h
    np.testing.assert_array_equal(F, kept)
    assert F.dtype == slope.dtype == dtype
