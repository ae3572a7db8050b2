"""Filters whose rows live on a device: every library agrees with the naive twin and the blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covshift.kernels.activations_and_norms import ACTIVATIONS
from covshift.kernels.device_filters import DeviceProblems, device_losses, eager_passes
from covshift.kernels.filter_losses import LOSSES
from covshift.solvers.device_arrays import copy_to_host, namespace_of
from tests.array_libraries import LIBRARIES
from tests.kernels.test_filter_losses import assert_equals_twin, draw

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


def problems_of(asarray, arguments, L=None, phase=None):
    """The same problems on a device, padded to L filters."""
    groups, dtype = arguments["groups"], arguments["X"].dtype
    K, C, own = groups.shape
    padding = (L or own) - own
    codes = np.where(arguments["codes"] < 0, C, arguments["codes"])
    phase = np.zeros(K) if phase is None else phase
    there = np.pad(np.ones((K, own), dtype=bool), ((0, 0), (0, padding)))
    return DeviceProblems(
        asarray(arguments["X"]),
        asarray(codes),
        asarray(np.pad(groups, ((0, 0), (0, 0), (0, padding)))),
        asarray(arguments["label_reward"].astype(dtype)),
        asarray(there),
        asarray(arguments["alpha"].astype(dtype)),
        asarray(phase.astype(dtype)),
    )


def make_passes(problems, loss, activation, epsilon=1e-8, norm_epsilon=1e-8):
    """Eager passes for the library of the problems."""
    return eager_passes(loss, activation, epsilon, norm_epsilon, namespace_of(problems.X))


def evaluate_on(asarray, W, arguments, which=None, phase=None, **settings):
    problems = problems_of(asarray, arguments, L=W.shape[1], phase=phase)
    evaluate = device_losses(problems, make_passes(problems, **settings), namespace_of(problems.X))
    which = np.arange(len(W)) if which is None else which
    losses, gradients = evaluate(asarray(W[which]), asarray(which))
    assert gradients.dtype == problems.X.dtype
    return copy_to_host(losses), copy_to_host(gradients)


@pytest.mark.parametrize("asarray", LIBRARIES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@every_loss
@every_activation
def test_equals_the_naive_twin_and_the_blocks(asarray, dtype, tolerance, loss, activation):
    W, arguments = draw(dtype)
    arguments["l1"] = np.zeros(len(W))  # filters of segments only, which do not run on a device
    _, losses, gradients = assert_equals_twin(W, arguments, loss, activation, tolerance)
    ours = evaluate_on(asarray, W, arguments, loss=loss, activation=activation)
    assert_allclose(ours[0], losses, rtol=tolerance)
    assert_allclose(ours[1], gradients, rtol=tolerance, atol=tolerance * np.abs(gradients).max())


@pytest.mark.parametrize("asarray", LIBRARIES)
@every_loss
@every_activation
def test_padding_changes_nothing_and_has_no_gradient(asarray, loss, activation):
    W, arguments = draw()
    wide = np.pad(W, ((0, 0), (0, 5), (0, 0)))
    settings = {"loss": loss, "activation": activation}
    alone, padded = (evaluate_on(asarray, each, arguments, **settings) for each in (W, wide))
    assert_allclose(padded[0], alone[0], rtol=1e-12)
    assert_allclose(padded[1][:, : W.shape[1]], alone[1], rtol=1e-10, atol=1e-12)
    assert_array_equal(padded[1][:, W.shape[1] :], 0)


@pytest.mark.parametrize("asarray", LIBRARIES)
@every_loss
def test_some_of_the_problems(asarray, loss):
    W, arguments = draw()
    settings = {"loss": loss, "activation": "sin"}
    everything = evaluate_on(asarray, W, arguments, **settings)
    which = np.array([0, 2])
    some = evaluate_on(asarray, W, arguments, which, **settings)
    for part, whole in zip(some, everything, strict=True):
        assert_allclose(part, whole[which], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("asarray", LIBRARIES)
@pytest.mark.parametrize("activation", ["abs", "sin"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-60], ids=["none", "too small for the precision"])
def test_a_dead_filter_stays_dead(asarray, activation, epsilon):
    """Without any epsilon a filter of zeros divides zero by zero."""
    W, arguments = draw(np.float32)
    W[:, 1] = 0
    settings = {"loss": "joint", "activation": activation, "epsilon": epsilon, "norm_epsilon": 0.0}
    losses, gradients = evaluate_on(asarray, W, arguments, **settings)
    assert np.isfinite(losses).all()
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("asarray", LIBRARIES)
@every_loss
def test_sines_and_cosines_together(asarray, loss):
    W, arguments = draw()
    phase = np.array([0, np.pi / 2, 0])
    together = evaluate_on(asarray, W, arguments, phase=phase, loss=loss, activation="periodic")
    for activation, rows in (("sin", [0, 2]), ("cos", [1])):
        apart = evaluate_on(asarray, W, arguments, loss=loss, activation=activation)
        for ours, theirs in zip(together, apart, strict=True):
            assert_allclose(ours[rows], theirs[rows], rtol=1e-10, atol=1e-12)
