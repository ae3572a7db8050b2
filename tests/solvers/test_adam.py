"""Adam and gradient descent, against loops over single numbers."""

import math

import numpy as np
import pytest

from covshift.solvers.adam import Adam
from covshift.solvers.sgd import SGD

RATES = np.array([0.001, 0.1, 1.0])


def gradients(shape, n_steps=30):
    """Of very different sizes, some zero."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-8, 4, (n_steps, *shape))
    return rng.standard_normal((n_steps, *shape)) * sizes * (rng.random((n_steps, *shape)) > 0.2)


def naive_adam(theta, steps, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for t, g in enumerate(steps, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        theta -= rate * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + epsilon)
    return theta


def naive_sgd(theta, steps, rate, momentum):
    u = 0.0
    for g in steps:
        u = momentum * u + g
        theta -= rate * u
    return theta


def run(make, dtype=np.float64):
    start = np.random.default_rng(1).standard_normal((3, 4)).astype(dtype)
    steps = gradients(start.shape).astype(dtype)
    theta = start.copy()
    solver = make(theta)
    for gradient in steps:
        before = gradient.copy()
        solver.step(theta, gradient)
        np.testing.assert_array_equal(gradient, before)
    return start, steps, theta


@pytest.mark.parametrize("constants", [{}, {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}])
def test_adam_equals_the_loop(constants):
    start, steps, theta = run(lambda theta: Adam(theta, RATES, **constants))
    for k, p in np.ndindex(start.shape):
        expected = naive_adam(start[k, p], steps[:, k, p], RATES[k], **constants)
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_the_loop(momentum):
    start, steps, theta = run(lambda theta: SGD(theta, RATES, momentum=momentum))
    for k, p in np.ndindex(start.shape):
        expected = naive_sgd(start[k, p], steps[:, k, p], RATES[k], momentum)
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("make", [Adam, SGD])
def test_single_precision_is_kept(make):
    _, _, theta = run(lambda theta: make(theta, RATES), np.float32)
    _, _, exact = run(lambda theta: make(theta, RATES))
    assert theta.dtype == np.float32
    np.testing.assert_allclose(theta, exact, rtol=1e-3)


@pytest.mark.parametrize("make", [Adam, lambda theta, rate: SGD(theta, rate, momentum=0.5)])
def test_finds_the_minimum_of_a_quadratic(make):
    theta = np.ones((2, 3))
    target = np.array([[1.0, -2.0, 3.0], [0.0, 0.5, -0.5]])
    solver = make(theta, np.array([0.05, 0.02]))
    for _ in range(2000):
        solver.step(theta, theta - target)
    np.testing.assert_allclose(theta, target, atol=1e-6)
