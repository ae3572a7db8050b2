"""Losses and gradients summed over parts of the rows: equal to the naive twin's."""

import numpy as np
import pytest
from scipy import sparse

from covshift.kernels import row_blocks
from covshift.kernels.activations_and_norms import ACTIVATIONS
from covshift.kernels.filter_losses import LOSSES, filter_losses
from covshift.kernels.filter_streams import squares_by_code, streamed_losses
from covshift.kernels.row_blocks import view_rows
from covshift.row_checks import count_unreadable
from covshift.streams import ArrayRows
from tests.kernels.problems import assert_close, example
from tests.twins import naive

pytestmark = pytest.mark.usefixtures("kernels")

TWINS = {"joint": naive.joint_loss, "blockwise": naive.blockwise_loss}


@pytest.fixture(autouse=True, params=["one block a part", "blocks of two rows"])
def cut(request, monkeypatch):
    if request.param == "blocks of two rows":
        monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 1)
        monkeypatch.setattr(row_blocks, "MIN_BLOCK_ROWS", 2)


def evaluate(problem, loss, X=None):
    """Loss and gradient of a problem, its rows passed over in parts."""
    rows = ArrayRows(problem.X if X is None else X)
    n_classes = len(problem.label_reward)
    codes = np.full(len(problem.X), -1) if problem.codes is None else problem.codes
    codes = np.where(codes < 0, n_classes, codes)

    def sums(function, *arguments):
        return rows.sums(function, codes, *arguments)

    losses = streamed_losses(
        sums, rows.shape, rows.is_sparse, problem.groups[None], problem.label_reward[None],
        dtype=rows.dtype, loss=loss, activation=problem.activation, epsilon=problem.epsilon,
        norm_epsilon=problem.norm_epsilon, alpha=np.array([problem.alpha]),
    )  # fmt: skip
    values, gradients = losses(problem.W.astype(rows.dtype)[None], np.arange(1))
    return values[0], gradients[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layout", ["dense", "Fortran", "sparse"])
def test_streamed_loss_is_the_naive_one(loss, activation, layout):
    problem = example(n=41, activation=activation)
    X = {"dense": np.array, "Fortran": np.asfortranarray, "sparse": sparse.csr_array}[layout]
    value, gradient = evaluate(problem, loss, X(problem.X))
    assert_close(value, problem.naive(TWINS[loss]), 1e-12)
    twin = naive.complex_step_gradient(lambda W: problem.naive(TWINS[loss], W), problem.W)
    assert_close(gradient, twin, 1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("rows", "codes"), [(1, None), (3, None), (41, None), (9, "one class")])
def test_few_rows_and_no_labels(loss, rows, codes):
    problem = example(n=rows, codes=None if codes is None else np.zeros(rows, dtype=int))
    value, gradient = evaluate(problem, loss)
    assert_close(value, problem.naive(TWINS[loss]), 1e-12)
    twin = naive.complex_step_gradient(lambda W: problem.naive(TWINS[loss], W), problem.W)
    assert_close(gradient, twin, 1e-10)


def test_filters_that_the_gram_matrix_serves_badly():
    """Rows far from the origin and filters orthogonal to their mean: the first pass is made."""
    problem = example(n=200, activation="abs", norm_epsilon=0.0)
    X = 1000 + problem.X
    W = problem.W - problem.W.mean(axis=1, keepdims=True)
    problem = problem._replace(X=X, W=W)
    value, gradient = evaluate(problem, "joint")
    assert_close(value, problem.naive(TWINS["joint"]), 1e-10)
    twin = naive.complex_step_gradient(lambda W: problem.naive(TWINS["joint"], W), problem.W)
    assert_close(gradient, twin, 1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_other_types_are_computed_as_they_are_in_memory(activation):
    """Half precision and whole numbers become float64, block by block."""
    problem = example(n=50, activation=activation)
    for dtype in (np.float16, np.float32, np.int16):
        X = (8 * problem.X).astype(dtype)
        working = np.float32 if dtype == np.float32 else np.float64
        in_memory = filter_losses(
            X.astype(working), problem.codes, problem.groups[None], problem.label_reward[None],
            loss="joint", activation=activation, epsilon=1e-8, norm_epsilon=1e-8,
            alpha=np.array([0.1]),
        )(problem.W.astype(working)[None], np.arange(1))  # fmt: skip
        value, gradient = evaluate(problem, "joint", X)
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        assert gradient.dtype == working
        assert_close(value, in_memory[0][0], tolerance)
        assert_close(gradient, in_memory[1][0], tolerance)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_squares_by_code(activation):
    problem = example(n=30)
    codes = np.arange(30) % 4  # the last belongs to none
    squares, counts = squares_by_code(problem.X, codes, problem.W[None], activation, 1e-8, 3)
    F = np.vectorize(naive.activation)(problem.X @ problem.W.T, activation, 1e-8)
    for code in range(3):
        np.testing.assert_allclose(squares[code], (F[codes == code] ** 2).sum(axis=0))
    np.testing.assert_array_equal(counts, np.bincount(codes)[:3])


def test_what_is_counted_before_a_fit():
    X = np.ones((1000, 3), dtype=np.float32)
    assert count_unreadable(X, None, np.float32, 1e12) == (0, 0, 0)
    X[3, 1], X[999, 2], X[500, 0] = np.nan, -np.inf, 1e30
    assert count_unreadable(X, None, np.float32, 1e12) == (1, 1, 2)
    assert count_unreadable(sparse.csr_array(X), None, np.float32, 1e12) == (1, 1, 2)


def test_views_of_rows_copy_nothing():
    X = np.arange(20.0).reshape(5, 4)
    assert np.shares_memory(view_rows(X, 1, 3), X)
    S = sparse.csr_array(X)
    part = view_rows(S, 1, 9)
    assert np.shares_memory(part.data, S.data)
    np.testing.assert_array_equal(part.toarray(), X[1:])
