"""The fused kernels against eager operations: on a GPU, or interpreted where there is none."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covshift.kernels.device_filters import eager_passes
from covshift.solvers.device_arrays import copy_to_host, namespace_of
from tests.array_libraries import HAS_GPU, to_torch
from tests.kernels.test_device_filters import problems_of
from tests.kernels.test_filter_losses import draw

if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # before it is imported
pytest.importorskip("triton")
fused_filters = pytest.importorskip("covshift.kernels.fused_filters")


def asarray(array):
    return to_torch(array, device="cuda" if HAS_GPU else "cpu")


def both(activation, epsilon=1e-8, norm_epsilon=1e-8, labeled=True, padding=0, **shape):
    """Losses and gradients of both ways, in single precision, and in double precision."""
    W, arguments = draw(**shape)
    if not labeled:
        arguments |= {
            "groups": arguments["groups"][:, :0],
            "label_reward": arguments["label_reward"][:, :0],
            "codes": np.full_like(arguments["codes"], -1),
        }
    W = np.pad(W, ((0, 0), (0, padding), (0, 0)))
    results = []
    for dtype in (np.float32, np.float32, np.float64):
        X = arguments["X"].astype(dtype)
        phase = np.array([0, np.pi / 2, 1])
        problems = problems_of(asarray, {**arguments, "X": X}, L=W.shape[1], phase=phase)
        xp = namespace_of(problems.X)
        if results:
            passes = eager_passes("joint", activation, epsilon, norm_epsilon, xp)
        else:
            passes = fused_filters.fused_passes(activation, epsilon, norm_epsilon, xp)
        results.append([copy_to_host(part) for part in passes(asarray(W.astype(dtype)), problems)])
    return results


def assert_agree(fused, eager, double):
    for ours, theirs, exact in zip(fused, eager, double, strict=True):
        assert ours.dtype == theirs.dtype
        scale = np.abs(exact).max()
        assert_allclose(ours, exact, rtol=0, atol=2e-5 * scale)
        assert_allclose(ours, theirs, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("activation", ["abs", "sin", "cos", "periodic"])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("shape", [{}, {"n": 2100}, {"L": 37, "n": 70, "m": 5}])
def test_agrees_with_eager_operations(activation, labeled, shape):
    assert_agree(*both(activation, labeled=labeled, **shape))


def test_padding_has_no_gradient():
    results = both("sin", padding=3)
    assert_agree(*results)
    assert_array_equal(results[0][1][:, -3:], 0)


def test_without_any_epsilon():
    assert_agree(*both("sin", epsilon=0.0, norm_epsilon=0.0))


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
@pytest.mark.parametrize("shape", [{"n": 100_003, "L": 512, "m": 20}, {"L": 2048, "m": 9}])
def test_large_problems_and_the_same_bits_each_time(shape):
    first, second = both("sin", **shape), both("sin", **shape)
    assert_agree(*first)
    for one, other in zip(first[0], second[0], strict=True):
        assert_array_equal(one, other)
