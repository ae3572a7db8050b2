"""Every path to a loss and its gradient: they agree with the naive twin and with each other."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from covshift.kernels import filter_losses as paths
from covshift.kernels import filter_passes, row_blocks
from covshift.kernels.activations_and_norms import ACTIVATIONS, activate
from covshift.kernels.filter_losses import LOSSES, add_penalties, filter_losses
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

TWINS = {"joint": naive.joint_loss, "blockwise": naive.blockwise_loss}
N_ROWS, N_FEATURES, N_FILTERS, N_CLASSES, N_PROBLEMS = 41, 3, 4, 2, 3

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


@pytest.fixture(params=["whole", "blocks", "recomputed"])
def cut(request, monkeypatch):
    """Rows as one block; in many, dealt to lanes; in many whose activations are not kept."""
    if request.param != "whole":
        monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 1)
        monkeypatch.setattr(row_blocks, "MIN_BLOCK_ROWS", 2)
        monkeypatch.setattr(row_blocks, "LANES", 4)
    if request.param == "recomputed":
        monkeypatch.setattr(row_blocks, "KEPT_BYTES", 0)
    return request.param


@pytest.fixture(params=[True, False], ids=["half-angle", "sine-and-cosine"])
def half_angle(request, monkeypatch):
    monkeypatch.setattr(paths, "half_angle_is_cheaper", lambda dtype: request.param)


def draw(dtype=np.float64, own_rows=False, offset=0.0, n=N_ROWS, m=N_FEATURES, L=N_FILTERS):
    """K problems: filters, and the arguments that say what is asked of them."""
    rng = np.random.default_rng(0)
    K, C = N_PROBLEMS, N_CLASSES
    shape = (K, n) if own_rows else (n,)
    arguments = {
        "X": (offset + rng.standard_normal((*shape, m))).astype(dtype),
        "codes": rng.integers(-1, C, size=shape),
        "groups": rng.random((K, C, L)) < 0.5,
        "label_reward": rng.uniform(-1, 3, (K, C)),
        "alpha": np.array([0.0, 0.3, 2.0]),
        "l1": np.array([0.7, 0.0, 0.1]),
    }
    return rng.standard_normal((K, L, m)).astype(dtype), arguments


def expected(W, arguments, loss, activation, epsilon, norm_epsilon, k):
    """Loss and gradient of problem k by the naive twin."""
    X, codes = arguments["X"], arguments["codes"]
    X, codes = (X[k], codes[k]) if X.ndim == 3 else (X, codes)
    X = X.toarray() if sparse.issparse(X) else X.astype(np.float64)
    rest = (arguments["groups"][k], arguments["label_reward"][k], activation, epsilon)

    def twin(W):
        without = TWINS[loss](W, X, codes, *rest, norm_epsilon, arguments["alpha"][k])
        return without + naive.absolute_penalty(W, arguments["l1"][k])

    W = W[k].astype(np.float64)
    return twin(W), naive.complex_step_gradient(twin, W)


def assert_equals_twin(W, arguments, loss, activation, tolerance, epsilon=1e-8, run=map):
    settings = {"loss": loss, "activation": activation, "epsilon": epsilon, "norm_epsilon": 1e-8}
    evaluate = filter_losses(**arguments, **settings, run=run)
    losses, gradients = evaluate(W, np.arange(len(W)))
    assert gradients.dtype == W.dtype
    for k in range(len(W)):
        twin_loss, twin_gradient = expected(W, arguments, k=k, **settings)
        assert_close(losses[k], twin_loss, tolerance)
        assert_close(gradients[k], twin_gradient, tolerance)
    return evaluate, losses, gradients


@pytest.mark.usefixtures("cut", "half_angle")
@pytest.mark.parametrize("own_rows", [False, True], ids=["shared", "own rows"])
@every_activation
@every_loss
def test_every_path_equals_the_naive_twin(loss, activation, own_rows):
    W, arguments = draw(own_rows=own_rows)
    assert_equals_twin(W, arguments, loss, activation, 1e-10)


@pytest.mark.usefixtures("cut", "half_angle")
@every_activation
@every_loss
def test_single_precision(loss, activation):
    W, arguments = draw(np.float32)
    assert_equals_twin(W, arguments, loss, activation, 1e-4)


@pytest.mark.usefixtures("cut")
@every_activation
@every_loss
def test_sparse_rows(loss, activation):
    W, arguments = draw()
    arguments["X"] = sparse.csr_array(np.where(np.abs(arguments["X"]) < 0.5, 0, arguments["X"]))
    assert_equals_twin(W, arguments, loss, activation, 1e-10)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("own_rows", [False, True], ids=["shared", "own rows"])
@every_activation
@every_loss
def test_problems_that_remain_are_evaluated_as_before(loss, activation, own_rows):
    W, arguments = draw(own_rows=own_rows)
    evaluate, losses, gradients = assert_equals_twin(W, arguments, loss, activation, 1e-10)
    for which in ([1], [0, 2], [0, 1, 2], [2]):
        which = np.array(which)
        some_losses, some_gradients = evaluate(W[which], which)
        np.testing.assert_allclose(some_losses, losses[which], rtol=1e-13)
        np.testing.assert_allclose(some_gradients, gradients[which], rtol=1e-10, atol=1e-12)


@every_activation
@every_loss
def test_threads_do_not_change_a_bit(loss, activation, monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 2**12)
    W, arguments = draw(n=3000, m=12, L=10)
    settings = {"loss": loss, "activation": activation, "epsilon": 1e-8, "norm_epsilon": 0.0}
    which = np.arange(N_PROBLEMS)
    alone = filter_losses(**arguments, **settings)(W, which)
    for n_threads in (2, 3):
        with ThreadPoolExecutor(n_threads) as pool:
            together = filter_losses(**arguments, **settings, run=pool.map)(W, which)
        np.testing.assert_array_equal(together[0], alone[0])
        np.testing.assert_array_equal(together[1], alone[1])


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("own_rows", [False, True], ids=["shared", "own rows"])
def test_one_pass_equals_three(own_rows, monkeypatch):
    W, arguments = draw(own_rows=own_rows, n=120)
    settings = {"loss": "joint", "activation": "abs", "epsilon": 1e-8, "norm_epsilon": 1e-8}
    which = np.arange(N_PROBLEMS)
    calls = []
    monkeypatch.setattr(
        paths,
        "one_pass",
        lambda *a, **k: calls.append(filter_passes.one_pass(*a, **k)) or calls[-1],
    )
    one = filter_losses(**arguments, **settings)(W, which)
    assert len(calls) == 1
    assert calls[0] is not None
    monkeypatch.setattr(paths, "gram_pays", lambda *_: False)
    three = filter_losses(**arguments, **settings)(W, which)
    assert len(calls) == 1
    assert_close(one[0], three[0], 1e-12)
    assert_close(one[1], three[1], 1e-12)


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e3])
def test_one_pass_gives_way_where_it_would_lose_digits(offset):
    """Filters orthogonal to the mean of rows far from the origin: X'X cancels."""
    W, arguments = draw(offset=offset, n=120)
    W -= W.mean(axis=-1, keepdims=True)
    settings = {"loss": "joint", "activation": "abs", "epsilon": 1e-8, "norm_epsilon": 1e-8}
    losses, gradients = filter_losses(**arguments, **settings)(W, np.arange(N_PROBLEMS))
    for k in range(N_PROBLEMS):
        twin_loss, twin_gradient = expected(W, arguments, k=k, **settings)
        assert_close(losses[k], twin_loss, 1e-10)
        assert_close(gradients[k], twin_gradient, 1e-10)
    gram = filter_passes.gram_matrix(arguments["X"])
    squares = np.einsum("klm,mn,kln->kl", W, gram, W)
    assert filter_passes.is_accurate(W, gram, squares) == (offset <= 30)


def test_blocks_cover_the_rows_in_order(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 2**18)
    X = np.arange(7000.0).reshape(-1, 1)
    rows = row_blocks.cut_into_blocks(X, np.zeros(7000, dtype=int), 1, 110, passes=3)
    blocks = [block for lane in rows.lanes for block in lane.blocks]
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), X)
    assert len(rows.lanes) == row_blocks.LANES
    assert [lane.number for lane in rows.lanes] == list(range(row_blocks.LANES))
    sizes = [len(block.rows) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) * 110 * 8 <= 1.1 * row_blocks.BLOCK_BYTES


def test_blocks_end_where_large_classes_do(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 2**19)
    codes = np.repeat([0, 1, 2], [2500, 2500, 2000])
    rows = row_blocks.cut_into_blocks(np.zeros((7000, 3)), codes, 1, 110, passes=3)
    blocks = [block for lane in rows.lanes for block in lane.blocks]
    assert [block.present.tolist() for block in blocks] == [[0]] * 4 + [[1]] * 4 + [[2]] * 3
    assert all((block.classes == 1).all() for block in blocks)


@pytest.mark.usefixtures("cut", "half_angle")
@every_loss
def test_a_class_without_rows(loss):
    W, arguments = draw()
    arguments["codes"] = np.where(arguments["codes"] == 1, -1, arguments["codes"])
    arguments["groups"] = np.concatenate([arguments["groups"], arguments["groups"][:, :1]], axis=1)
    arguments["label_reward"] = np.ones((N_PROBLEMS, 3))
    arguments["codes"] = np.where(arguments["codes"] == 0, 0, 2)
    assert_equals_twin(W, arguments, loss, "sin", 1e-10)


def test_small_classes_share_blocks():
    codes = np.repeat(np.arange(700), 10)
    rows = row_blocks.cut_into_blocks(np.zeros((7000, 3)), codes, 1, 110, passes=3)
    blocks = [block for lane in rows.lanes for block in lane.blocks]
    assert len(blocks) < 15
    assert sum(len(block.present) for block in blocks) < 700 + len(blocks)
    for block in blocks:
        np.testing.assert_array_equal(block.classes.sum(axis=0), 1)


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


def test_penalties_of_single_precision_are_summed_in_double():
    W = np.random.default_rng(0).normal(size=(2, 50, 3000)).astype(np.float32)
    l1 = np.array([0.5, 2.0])
    losses, _ = add_penalties(np.zeros(2), np.zeros_like(W), W, np.zeros(2), l1)
    sizes = np.sqrt(np.square(W) + np.float32(1e-8))
    expected = [
        weight * math.fsum(one.ravel().tolist()) for weight, one in zip(l1, sizes, strict=True)
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-13)


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
def test_loss_and_gradient_equal_those_of_the_naive_twin_blockwise(problem):
    loss, gradient = problem.evaluate(blockwise_loss)
    assert_close(loss, problem.naive(naive.blockwise_loss), 1e-10)
    expected = naive.complex_step_gradient(
        lambda W: problem.naive(naive.blockwise_loss, W), problem.W
    )
    assert_close(gradient, expected, 1e-6)


@FIXED
@given(problem=problems(epsilons=(0.1, 0.5)))
def test_gradient_equals_the_central_difference_blockwise(problem):
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


# --- What holds for the paper's loss and for that of the released code alike ---

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
