from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from covshift.kernels.activations import activate
from tests.kernels.problems import (
    FIXED,
    Problem,
    assert_close,
    blockwise_loss,
    directional_difference,
    example,
    joint_loss,
    problems,
)
from tests.twins import naive

pytestmark = pytest.mark.usefixtures("kernels")

# Values computed by the authors' released code: two data sets, `periodic` and `wide`; the
# representations are those of the first 100 rows of each domain, normalized as one batch.
RELEASED = np.load(Path(__file__).with_name("released_code.npz"))
CASES = {
    "periodic_L2_sin": "periodic",
    "periodic_L10_cos": "periodic",
    "wide_L30_sin": "wide",
    "sf_L12_abs": "wide",
}


def released(case):
    """The problem that the released code was given."""
    X_source, y_source, X_target = (
        RELEASED[f"{CASES[case]}_{name}"] for name in ("X_source", "y_source", "X_target")
    )
    W, sizes, label_reward = (RELEASED[f"{case}_{name}"] for name in ("W0", "groups", "lambda"))
    classes, codes = np.unique(y_source, return_inverse=True)
    owner = np.repeat(np.arange(len(sizes)), sizes)  # the last group: unlabeled rows
    activation = case.rpartition("_")[2]
    return Problem(
        W=W,
        X=np.concatenate([X_source, X_target]),
        codes=np.concatenate([codes, np.full(len(X_target), -1)]),
        groups=owner == np.arange(len(classes))[:, None],
        label_reward=np.full(len(classes), float(label_reward)),
        activation=activation,
        epsilon=1e-8 if activation == "abs" else 0.0,
        norm_epsilon=1e-8,
        alpha=0.0,
    )


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradient_equal_those_of_the_released_code(case):
    loss, gradient = released(case).evaluate(blockwise_loss)
    assert loss == pytest.approx(RELEASED[f"{case}_loss0"], rel=1e-9)
    expected = RELEASED[f"{case}_grad0"]
    assert np.abs(gradient - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("role", ["source", "target"])
@pytest.mark.parametrize("case", CASES)
def test_each_domain_as_its_own_batch_equals_the_released_code(case, role):
    problem = released(case)
    X = RELEASED[f"{CASES[case]}_X_{role}"]
    F = activate(X @ problem.W.T, problem.activation, problem.epsilon)
    expected = RELEASED[f"{case}_Z_{role}_batch0"]
    Z = naive.normalize(F, problem.norm_epsilon)
    np.testing.assert_allclose(Z[: len(expected)], expected, rtol=1e-9, atol=1e-12)


@FIXED
@given(problem=problems())
def test_loss_and_gradient_equal_those_of_the_naive_twin(problem):
    loss, gradient = problem.evaluate(blockwise_loss)
    assert_close(loss, problem.naive(naive.blockwise_loss), 1e-10)
    expected = naive.complex_step_gradient(
        lambda W: problem.naive(naive.blockwise_loss, W), problem.W
    )
    assert_close(gradient, expected, 1e-6)


@FIXED
@given(problem=problems(epsilons=(0.1, 0.5)))
def test_gradient_equals_the_central_difference(problem):
    _, gradient = problem.evaluate(blockwise_loss)
    direction = np.cos(np.arange(1.0, problem.W.size + 1)).reshape(problem.W.shape)
    expected = directional_difference(blockwise_loss, problem, direction)
    assert_close(np.vdot(gradient, direction), expected, 1e-6)


def test_without_labels_both_losses_are_the_same():
    problem = example(codes=None)
    loss, gradient = problem.evaluate(blockwise_loss)
    other_loss, other_gradient = problem.evaluate(joint_loss)
    assert loss == pytest.approx(other_loss, rel=1e-12)
    assert_close(gradient, other_gradient, 1e-12)
    with_labels = [example().evaluate(kernel)[0] for kernel in (joint_loss, blockwise_loss)]
    assert abs(with_labels[0] - with_labels[1]) > 1


@pytest.mark.parametrize("other_labels", [lambda codes: np.roll(codes, 1), lambda codes: None])
def test_with_one_feature_per_class_labels_act_only_through_norm_epsilon(other_labels):
    problem = released("periodic_L2_sin")
    other = problem._replace(codes=other_labels(problem.codes))

    def difference(norm_epsilon):
        gradients = [
            p.evaluate(blockwise_loss, norm_epsilon=norm_epsilon)[1] for p in (problem, other)
        ]
        return np.abs(gradients[0] - gradients[1]).max()

    assert difference(0.0) < 1e-6
    assert difference(1e-8) > 1
