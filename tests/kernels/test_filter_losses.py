"""Every path to a loss and its gradient: they agree with the naive twin and with each other."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from covshift.kernels import filter_losses as paths
from covshift.kernels import filter_passes, row_blocks
from covshift.kernels.activations import ACTIVATIONS
from covshift.kernels.filter_losses import LOSSES, filter_losses
from tests.kernels.problems import assert_close
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
    monkeypatch.setattr(paths, "_gram_pays", lambda *_: False)
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
    rows = row_blocks.cut_rows(X, np.zeros(7000, dtype=int), 1, 110, passes=3)
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
    rows = row_blocks.cut_rows(np.zeros((7000, 3)), codes, 1, 110, passes=3)
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
    rows = row_blocks.cut_rows(np.zeros((7000, 3)), codes, 1, 110, passes=3)
    blocks = [block for lane in rows.lanes for block in lane.blocks]
    assert len(blocks) < 15
    assert sum(len(block.present) for block in blocks) < 700 + len(blocks)
    for block in blocks:
        np.testing.assert_array_equal(block.classes.sum(axis=0), 1)
