import numpy as np
import pytest
from hypothesis import given

from covshift.kernels.activations import ACTIVATIONS
from tests.kernels.problems import (
    FIXED,
    assert_close,
    directional_difference,
    example,
    joint_loss,
    problems,
)
from tests.twins import naive

pytestmark = pytest.mark.usefixtures("kernels")


@FIXED
@given(problem=problems())
def test_loss_and_gradient_equal_those_of_the_naive_twin(problem):
    loss, gradient = problem.evaluate(joint_loss)
    assert_close(loss, problem.naive(naive.joint_loss), 1e-10)
    expected = naive.complex_step_gradient(lambda W: problem.naive(naive.joint_loss, W), problem.W)
    assert_close(gradient, expected, 1e-6)


@FIXED
@given(problem=problems(epsilons=(0.1, 0.5)))
def test_gradient_equals_the_central_difference(problem):
    _, gradient = problem.evaluate(joint_loss)
    direction = np.cos(np.arange(1.0, problem.W.size + 1)).reshape(problem.W.shape)
    expected = directional_difference(joint_loss, problem, direction)
    assert_close(np.vdot(gradient, direction), expected, 1e-6)


def test_the_reward_enters_before_the_backward_pass():
    # The paper's appendix scales the gradient of the sum by the rewards at the very end.
    problem = example(codes=np.zeros(40, dtype=int), label_reward=np.array([1.9]), alpha=0.0)
    everything, half = np.ones((1, 6), dtype=bool), np.arange(6)[None, :] < 3
    plain_loss, plain = problem.evaluate(joint_loss, codes=None)
    loss, gradient = problem.evaluate(joint_loss, groups=everything)
    assert loss == pytest.approx(-0.9 * plain_loss)
    assert_close(gradient, -0.9 * plain, 1e-12)  # one reward for all: both ways agree
    _, gradient = problem.evaluate(joint_loss, groups=half)
    late = np.where(half.T, -0.9, 1.0) * plain
    assert np.linalg.norm(gradient - late) > 0.1 * np.linalg.norm(gradient)


def test_unlabeled_rows_earn_nothing():
    problem = example()
    no_labels = problem.evaluate(joint_loss, codes=None)
    all_unlabeled = problem.evaluate(joint_loss, codes=np.full(40, -1))
    no_reward = problem.evaluate(joint_loss, label_reward=np.zeros(2))
    for loss, gradient in (all_unlabeled, no_reward):
        assert loss == pytest.approx(no_labels[0], rel=1e-13)
        assert_close(gradient, no_labels[1], 1e-13)
    assert problem.evaluate(joint_loss)[0] < no_labels[0] - 1


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_penalty_is_half_alpha_times_the_squared_norm(activation):
    problem = example(activation=activation)
    loss, gradient = problem.evaluate(joint_loss, alpha=0.0)
    penalized_loss, penalized_gradient = problem.evaluate(joint_loss, alpha=3.0)
    assert penalized_loss - loss == pytest.approx(1.5 * np.square(problem.W).sum(), rel=1e-9)
    np.testing.assert_allclose(penalized_gradient - gradient, 3.0 * problem.W, atol=1e-12)


def test_zero_rows_without_any_epsilon():
    problem = example(activation="abs", epsilon=0.0, norm_epsilon=0.0, alpha=0.0)
    X = problem.X.copy()
    X[::2] = 0
    loss, gradient = problem.evaluate(joint_loss, X=X)
    kept = problem.evaluate(joint_loss, X=X[1::2], codes=problem.codes[1::2])
    assert loss == pytest.approx(kept[0], rel=1e-12)
    assert_close(gradient, kept[1], 1e-12)
    loss, gradient = problem.evaluate(joint_loss, X=np.zeros_like(X))
    assert loss == 0
    np.testing.assert_array_equal(gradient, 0)
