import itertools
import math

import numpy as np
import pytest

from covshift.adapters import _autoencoder_training as training
from covshift.adapters._autoencoder_training import SGD, Adam
from tests.twins import autoencoder_twin, naive

every_kind = pytest.mark.parametrize(
    ("activation", "decoder", "tied"),
    list(itertools.product(["sigmoid", "tanh"], ["sigmoid", "tanh", "linear"], [False, True])),
)
RATES = np.array([0.001, 0.1, 1.0])
SHAPES = [(3, 4, 2, 7), (1, 1, 1, 1), (2, 1, 3, 5), (2, 5, 1, 2)]  # K, m, L, n


def stacked_problem(shape=SHAPES[0], *, tied, dtype=np.float64):
    n_networks, m, L, n = shape
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((n_networks, (1 if tied else 2) * m * L + m + L))
    noisy, clean = rng.standard_normal((2, n_networks, m, n))
    return theta.astype(dtype), noisy.astype(dtype), clean.astype(dtype)


def denoising_loss(theta, noisy, clean, *, n_components, activation, decoder, tied):
    networks = training.Networks(theta, clean.shape[1], n_components, activation, decoder)
    assert networks.tied == tied
    gradient, residuals = networks.gradient(training.append_ones(noisy), clean)
    return np.square(residuals).mean(axis=(1, 2)), gradient


@every_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_loss_and_gradient_equal_those_of_the_naive_twin(activation, decoder, tied, shape):
    theta, noisy, clean = stacked_problem(shape, tied=tied)
    losses, gradient = denoising_loss(
        theta, noisy, clean, n_components=shape[2], activation=activation, decoder=decoder,
        tied=tied,
    )  # fmt: skip
    for k in range(len(theta)):

        def twin(row, k=k):
            return autoencoder_twin.denoising_loss(
                row[0], noisy[k].T, clean[k].T, shape[2], activation, decoder, tied
            )

        assert losses[k] == pytest.approx(twin(theta[[k]]), rel=1e-12)
        expected = naive.complex_step_gradient(twin, theta[[k]])[0]
        np.testing.assert_allclose(gradient[k], expected, rtol=1e-9, atol=1e-12)


@every_kind
def test_gradient_equals_the_central_difference(activation, decoder, tied):
    theta, noisy, clean = stacked_problem(tied=tied)
    kind = {"n_components": 2, "activation": activation, "decoder": decoder, "tied": tied}
    _, gradient = denoising_loss(theta, noisy, clean, **kind)
    direction = np.cos(np.arange(1.0, theta.size + 1)).reshape(theta.shape)
    after, _ = denoising_loss(theta + 1e-5 * direction, noisy, clean, **kind)
    before, _ = denoising_loss(theta - 1e-5 * direction, noisy, clean, **kind)
    np.testing.assert_allclose(
        (gradient * direction).sum(axis=1), (after - before) / 2e-5, rtol=1e-6
    )


@every_kind
def test_a_network_does_not_depend_on_those_beside_it(activation, decoder, tied):
    theta, noisy, clean = stacked_problem((5, 3, 2, 50), tied=tied)
    kind = {"n_components": 2, "activation": activation, "decoder": decoder, "tied": tied}
    losses, gradient = denoising_loss(theta, noisy, clean, **kind)
    for k in range(len(theta)):
        one = slice(k, k + 1)
        loss, alone = denoising_loss(theta[one], noisy[one], clean[one], **kind)
        np.testing.assert_allclose(loss[0], losses[k], rtol=1e-14)
        np.testing.assert_allclose(alone[0], gradient[k], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("tied", [False, True])
def test_single_precision_is_kept(tied):
    kind = {"n_components": 2, "activation": "sigmoid", "decoder": "sigmoid", "tied": tied}
    losses, gradient = denoising_loss(*stacked_problem(tied=tied, dtype=np.float32), **kind)
    assert losses.dtype == gradient.dtype == np.float32
    exact = denoising_loss(*stacked_problem(tied=tied), **kind)
    np.testing.assert_allclose(losses, exact[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, exact[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_networks_are_views_of_one_array(tied):
    """So that a solver that changes theta changes the weights."""
    theta, noisy, _ = stacked_problem(tied=tied)
    networks = training.Networks(theta, 4, 2, "tanh", "linear")
    theta[:] = np.random.default_rng(1).standard_normal(theta.shape)
    _, output = networks.reconstruct(training.append_ones(noisy))
    W, b, V, c = map(np.array, autoencoder_twin.unpack(theta[1], 4, 2, tied))
    expected = V @ np.tanh(W @ noisy[1] + b[:, None]) + c[:, None]
    np.testing.assert_allclose(output[1], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, training.FEW_ENTRIES, training.FEW_ENTRIES + 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_ways_to_the_sigmoid_are_accurate(n, dtype):
    H = np.linspace(-1000, 100, 3 * n, dtype=dtype).reshape(3, n)
    # Far below zero it is the exponential, to the last digit.
    expected = [[1 / (1 + math.exp(-h)) if h > -50 else math.exp(h) for h in row]
                for row in H.tolist()]  # fmt: skip
    np.testing.assert_allclose(
        training.squash(H.copy(), "sigmoid"),
        expected,
        rtol=10 * np.finfo(dtype).eps,
        atol=2 * np.finfo(dtype).tiny,
    )


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_saturated_units_do_not_overflow(name):
    theta, noisy, clean = stacked_problem(tied=False)
    losses, gradient = denoising_loss(
        1e5 * theta, noisy, clean, n_components=2, activation=name, decoder=name, tied=False
    )
    assert np.isfinite(losses).all()
    assert np.isfinite(gradient).all()


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


def test_adam_equals_the_loop():
    start, steps, theta = run(lambda theta: Adam(theta, RATES))
    for k, p in np.ndindex(start.shape):
        expected = naive_adam(start[k, p], steps[:, k, p], RATES[k])
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_the_loop(momentum):
    start, steps, theta = run(lambda theta: SGD(theta, RATES, momentum=momentum))
    for k, p in np.ndindex(start.shape):
        expected = naive_sgd(start[k, p], steps[:, k, p], RATES[k], momentum)
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("make", [Adam, SGD])
def test_solvers_keep_single_precision(make):
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
