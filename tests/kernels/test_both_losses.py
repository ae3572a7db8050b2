"""What holds for the paper's loss and for that of the released code alike."""

import numpy as np
import pytest
from scipy import sparse

from covshift.kernels.activations import ACTIVATIONS
from tests.kernels.problems import assert_close, blockwise_loss, example, joint_loss

pytestmark = pytest.mark.usefixtures("kernels")

both_losses = pytest.mark.parametrize("loss_function", [joint_loss, blockwise_loss])


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@both_losses
def test_sparse_rows_equal_dense_ones(loss_function, activation, make):
    problem = example(activation=activation)
    X = np.where(np.abs(problem.X) < 0.5, 0.0, problem.X)
    loss, gradient = problem.evaluate(loss_function, X=make(X))
    dense_loss, dense_gradient = problem.evaluate(loss_function, X=X)
    assert type(gradient) is np.ndarray
    assert loss == pytest.approx(dense_loss, rel=1e-12)
    assert_close(gradient, dense_gradient, 1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@both_losses
def test_single_precision_gives_a_single_precision_gradient(loss_function, activation, make):
    problem = example(activation=activation)
    loss, gradient = problem.evaluate(
        loss_function, W=problem.W.astype(np.float32), X=make(problem.X.astype(np.float32))
    )
    expected_loss, expected_gradient = problem.evaluate(loss_function)
    assert gradient.dtype == np.float32
    assert isinstance(loss, float)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert_close(gradient, expected_gradient, 1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@both_losses
def test_inputs_are_not_changed(loss_function, activation):
    problem = example(activation=activation)
    for array in problem[:5]:
        array.setflags(write=False)
    first = problem.evaluate(loss_function)
    second = problem.evaluate(loss_function)
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])
    assert not np.shares_memory(first[1], problem.W)


@pytest.mark.parametrize(
    ("activation", "dead"), [("abs", 0.0), ("sin", -np.pi / 2), ("cos", np.pi)]
)
@both_losses
def test_dead_features_and_empty_rows_without_any_epsilon(loss_function, activation, dead):
    # Rows (1, x) and filters (dead, 0): the activation is zero, whatever x is.
    X = np.column_stack([np.ones(6), np.arange(6.0)])
    W = np.array([[dead, 0.0], [0.3, 0.5]])
    problem = example(
        W=W, X=X, codes=np.arange(6) % 3 - 1, groups=np.eye(2, dtype=bool),
        activation=activation, epsilon=0.0, norm_epsilon=0.0, alpha=0.0,
    )  # fmt: skip
    loss, gradient = problem.evaluate(loss_function)
    assert loss == pytest.approx(6 - 1.9 * 2)  # one living feature: (0, 1) in each row
    assert np.isfinite(gradient).all()
    loss, gradient = problem.evaluate(loss_function, W=W[[0, 0]])
    assert loss == 0
    assert np.isfinite(gradient).all()
