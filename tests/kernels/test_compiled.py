"""The compiled kernels: what they compute is what NumPy and the solver compute."""

import os
import subprocess
import sys

import numpy as np
import pytest

from covshift import PeriodicSparseFiltering, SparseFiltering, stack_domains
from covshift.adapters import _filter_minimization as minimization
from covshift.datasets import make_periodic_shift
from covshift.kernels import compiled
from covshift.kernels.activations_and_norms import ACTIVATIONS
from covshift.kernels.filter_losses import LOSSES, filter_losses, minimize_small_filters
from covshift.solvers.lbfgs import search_limits
from tests.kernels.conftest import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="no compiled kernels here")


@pytest.fixture(autouse=True)
def _compiled(monkeypatch, request):
    """The compiled kernels, which the suite leaves out elsewhere."""
    if "library" not in request.node.name:
        monkeypatch.setattr(compiled, "library", lambda: COMPILED)


every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


def draw(n, K=2, C=3, L=5, m=4, dtype=np.float64, own_rows=False, scale=1.0):
    """K problems: filters, and the arguments of `filter_losses`."""
    rng = np.random.default_rng(n)
    shape = (K, n) if own_rows else (n,)
    arguments = {
        "X": (scale * rng.standard_normal((*shape, m))).astype(dtype),
        "codes": rng.integers(-1, C, size=shape),
        "groups": rng.random((K, C, L)) < 0.5,
        "label_reward": rng.uniform(-1, 3, (K, C)),
        "alpha": rng.uniform(0, 1, K),
        "l1": rng.uniform(0, 1, K),
    }
    return rng.standard_normal((K, L, m)).astype(dtype), arguments


def both(W, arguments, monkeypatch, **settings):
    """Losses and gradients by compiled code, and by NumPy."""
    settings = {"loss": "joint", "epsilon": 1e-8, "norm_epsilon": 0.0} | settings
    which = np.arange(len(W))
    ours = filter_losses(**arguments, **settings)(W, which)
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "library", lambda: None)
        return ours, filter_losses(**arguments, **settings)(W, which)


def assert_same(ours, theirs, tolerance):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=tolerance)
    largest = np.abs(theirs[1]).max()
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=tolerance * largest)


# TILE is 256: sizes about it, and about vectors of eight.
@pytest.mark.parametrize("n", [1, 2, 7, 255, 256, 257, 515, 1999])
@every_activation
@pytest.mark.parametrize("loss", LOSSES)
def test_any_number_of_rows(loss, activation, n, monkeypatch):
    assert compiled.TILE == 256
    for own_rows in (False, True):
        W, arguments = draw(n, own_rows=own_rows)
        settings = {"loss": loss, "activation": activation, "norm_epsilon": 1e-8}
        assert_same(*both(W, arguments, monkeypatch, **settings), 1e-12)


@every_activation
def test_rows_without_any_label(activation, monkeypatch):
    W, arguments = draw(300)
    arguments["codes"][:] = -1
    assert_same(*both(W, arguments, monkeypatch, activation=activation), 1e-12)


@every_activation
def test_single_precision(activation, monkeypatch):
    W, arguments = draw(700, dtype=np.float32)
    ours, theirs = both(W, arguments, monkeypatch, activation=activation)
    assert ours[1].dtype == np.float32
    assert_same(ours, theirs, 2e-5)


@pytest.mark.parametrize("scale", [1e-12, 1e3, 1e5, 1e8, 1e12])
@pytest.mark.parametrize("activation", ["sin", "cos"])
def test_sine_and_cosine_of_any_size(activation, scale):
    """Reduced to a quadrant up to 1.5 million, by the system's functions beyond."""
    for dtype in (np.float64, np.float32):
        h = (scale * np.random.default_rng(0).standard_normal(1000)).astype(dtype)
        H, slopes = h.reshape(1, 1, -1).copy(), np.empty((1, 1, 1000), dtype)
        sums, codes = np.zeros((1, 1, 1)), np.zeros(1000, np.int32)
        compiled.activate(
            compiled.describe(H.shape, codes, 0, activation, 0.0, 0.0), H, slopes, sums
        )
        exact = h.astype(np.float64)
        sine, cosine = np.sin(exact), np.cos(exact)
        value, slope = (sine, cosine) if activation == "sin" else (cosine, -sine)
        error = 3 * np.finfo(dtype).eps
        np.testing.assert_allclose(H[0, 0], 1 + value, rtol=0, atol=error)
        np.testing.assert_allclose(slopes[0, 0], slope, rtol=0, atol=error)
        np.testing.assert_allclose(sums[0, 0, 0], np.sum((1 + value) ** 2), rtol=100 * error)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@every_activation
def test_what_is_not_finite_stays_visible(activation, bad, monkeypatch):
    W, arguments = draw(300)
    arguments["X"][17, 1] = bad
    with np.errstate(invalid="ignore"):
        (losses, gradients), _ = both(W, arguments, monkeypatch, activation=activation)
    assert not np.isfinite(losses).any()
    assert not np.isfinite(gradients).any(axis=(1, 2)).all()


@every_activation
def test_filters_of_zeros_without_any_epsilon(activation, monkeypatch):
    W, arguments = draw(300)
    W[0, 1] = 0
    settings = {"activation": activation, "epsilon": 0.0}
    assert_same(*both(W, arguments, monkeypatch, **settings), 1e-12)


# Whole minimizations


def make_data():
    data = make_periodic_shift(random_state=0)
    return stack_domains(data.X_source, data.y_source, data.X_target)


def fit(filter_, monkeypatch, small=True):
    X, y, sample_domain = make_data()
    with monkeypatch.context() as patch:
        if not small:
            patch.setattr(minimization, "_is_small", lambda problems: False)
        return filter_.fit(X, y, sample_domain=sample_domain)


SMALL = [
    PeriodicSparseFiltering(4, n_restarts=3, random_state=0, max_iter=6, alpha=0.1),
    PeriodicSparseFiltering(4, activation="cos", n_restarts=3, random_state=0, max_iter=6),
    PeriodicSparseFiltering(2, activation="abs", n_restarts=3, random_state=0, max_iter=6),
    SparseFiltering(3, n_restarts=3, random_state=0, max_iter=4),  # later rounding grows tenfold
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("filter_", SMALL, ids=repr)
def test_small_problems_take_the_solvers_path(filter_, monkeypatch):
    ours = fit(filter_, monkeypatch)
    history, W = ours.history_, ours.components_
    theirs = fit(filter_, monkeypatch, small=False)
    for name in ("loss", "gradient_norm"):
        np.testing.assert_allclose(history[name], theirs.history_[name], rtol=1e-6)
    np.testing.assert_allclose(W, theirs.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_problems_end_as_low_as_the_solvers(dtype, monkeypatch):
    X, y, sample_domain = make_data()
    filter_ = PeriodicSparseFiltering(2, n_restarts=40, random_state=0)
    ours = filter_.fit(X.astype(dtype), y, sample_domain=sample_domain)
    assert ours.components_.dtype == dtype
    lowest, of_starts, n_iter = ours.loss_, ours.restart_losses_, ours.n_iter_
    monkeypatch.setattr(minimization, "_is_small", lambda problems: False)
    theirs = filter_.fit(X.astype(dtype), y, sample_domain=sample_domain)
    assert lowest == pytest.approx(theirs.loss_, rel=1e-4)
    # Starts near a watershed may fall to either side of it, as they do with other rounding.
    same = np.isclose(of_starts, theirs.restart_losses_, rtol=1e-4)
    assert same.mean() >= 0.7
    assert n_iter < 200


def test_threads_do_not_change_a_bit():
    X, y, sample_domain = make_data()
    for L, n_restarts in ((2, 30), (60, 3)):  # whole minimizations; passes over lanes
        filters = [
            PeriodicSparseFiltering(
                L, n_restarts=n_restarts, max_iter=5, tol=0, random_state=0, n_jobs=n_jobs
            )
            for n_jobs in (1, 2, 3)
        ]
        with pytest.warns(UserWarning, match="max_iter=5"):
            one, *others = [f.fit(X, y, sample_domain=sample_domain) for f in filters]
        for other in others:
            np.testing.assert_array_equal(other.components_, one.components_)
            np.testing.assert_array_equal(other.restart_losses_, one.restart_losses_)


def test_calls_of_any_length_give_the_same_bits(monkeypatch):
    X, y, sample_domain = make_data()
    filter_ = PeriodicSparseFiltering(2, n_restarts=10, random_state=0)
    whole = filter_.fit(X, y, sample_domain=sample_domain)
    W, losses, n_iter = whole.components_, whole.restart_losses_, whole.n_iter_
    monkeypatch.setattr(compiled, "CALL_WORK", 1)  # one evaluation in each call
    in_steps = filter_.fit(X, y, sample_domain=sample_domain)
    np.testing.assert_array_equal(in_steps.components_, W)
    np.testing.assert_array_equal(in_steps.restart_losses_, losses)
    assert in_steps.n_iter_ == n_iter


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupt_does_not_wait_for_the_end_of_a_minimization(monkeypatch):
    """The largest problem that is minimized as a whole, with more iterations than would end."""
    n_calls = 0

    def press_control_c():
        nonlocal n_calls
        n_calls += 1
        if n_calls == 4:
            raise KeyboardInterrupt
        return False

    X = np.random.default_rng(0).standard_normal((2**19 // 10 - 1, 4))
    filter_ = PeriodicSparseFiltering(10, n_restarts=1, max_iter=10**6, tol=0, random_state=0)
    with monkeypatch.context() as patch:
        real = compiled.minimize_small
        patch.setattr(compiled, "minimize_small", lambda *args: real(*args[:-1], press_control_c))
        with pytest.raises(KeyboardInterrupt):
            filter_.fit(X, np.arange(len(X)) % 2)


def test_small_problems_have_their_own_rows_or_share_them():
    """Together as each alone, whether rows are shared or not."""
    limits = search_limits() | {"max_iter": 20, "tol": 1e-6, "precision": 1e-16}
    settings = {"activation": "sin", "epsilon": 1e-8, "norm_epsilon": 0.0, "limits": limits}
    settings |= {"run": map, "should_stop": lambda: False}
    for own_rows in (True, False):
        W, arguments = draw(150, K=3, L=2, own_rows=own_rows)
        together = minimize_small_filters(W, **arguments, **settings)
        for k, found in enumerate(together):
            shared = () if own_rows else ("X", "codes")
            own = {
                name: one if name in shared else one[k : k + 1] for name, one in arguments.items()
            }
            (alone,) = minimize_small_filters(W[k : k + 1], **own, **settings)
            np.testing.assert_array_equal(found.losses, alone.losses)
            np.testing.assert_array_equal(found.gradient_norms, alone.gradient_norms)
        assert len({float(found.losses[-1]) for found in together}) == 3


def test_a_minimization_that_is_to_stop_ends_at_once(monkeypatch):
    W, arguments = draw(3000, L=2)
    asked = iter([False] * 5 + [True] * 10_000)
    monkeypatch.setattr(compiled, "CALL_WORK", 1)
    limits = search_limits() | {"max_iter": 100, "tol": 0.0, "precision": 1e-16}
    paths = minimize_small_filters(
        W, **arguments, activation="sin", epsilon=0.0, norm_epsilon=0.0,
        limits=limits, run=map, should_stop=lambda: next(asked),
    )  # fmt: skip
    assert [len(path.losses) for path in paths[1:]] == [1] * (len(W) - 1)
    assert len(paths[0].losses) <= 6
    for path in paths:
        assert np.isfinite(path.losses).all()
        assert np.isfinite(path.gradient_norms).all()


def test_no_iteration_at_all_keeps_the_starts():
    X, y, sample_domain = make_data()
    start = np.array([[0.3, -1.2], [0.4, 0.9]])
    filter_ = PeriodicSparseFiltering(2, init=start, n_restarts=1, max_iter=0)
    filter_.fit(X, y, sample_domain=sample_domain)
    np.testing.assert_array_equal(filter_.components_, start)
    assert filter_.n_iter_ == 0


def test_a_start_that_is_not_finite_is_refused():
    X, y, sample_domain = make_data()
    filter_ = PeriodicSparseFiltering(2, n_restarts=1, label_reward=1e308, alpha=1e308)
    with pytest.raises(ValueError, match="not finite in float64 at the start"):
        filter_.fit(X, y, sample_domain=sample_domain)


# Which of the two is used


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("numpy", "False"),
        ("auto", "True"),
        ("compiled", "True"),
        ("fortran", "auto, compiled or numpy, got 'fortran'"),
    ],
)
def test_the_environment_variable_chooses(value, expected):
    code = "from covshift.kernels import compiled; print(compiled.library() is not None)"
    environment = os.environ | {"COVSHIFT_KERNELS": value}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert expected in shown.stdout + shown.stderr


def test_a_library_of_other_sources_is_not_used(monkeypatch):
    monkeypatch.setattr(compiled, "digest_of_sources", lambda folder: "another")
    monkeypatch.delenv("COVSHIFT_KERNELS", raising=False)
    with pytest.warns(UserWarning, match="built from other sources"):
        assert compiled.library.__wrapped__() is None


def test_without_a_library_numpy_is_used(monkeypatch):
    monkeypatch.setattr(compiled, "LIBRARY", "nowhere.so")
    monkeypatch.delenv("COVSHIFT_KERNELS", raising=False)
    assert compiled.library.__wrapped__() is None
    monkeypatch.setenv("COVSHIFT_KERNELS", "compiled")
    with pytest.raises(ImportError, match="install covshift again"):
        compiled.library.__wrapped__()


def test_arrays_may_be_read_only_but_not_strided(monkeypatch):
    W, arguments = draw(300)
    for array in (W, *arguments.values()):
        array.setflags(write=False)
    assert_same(*both(W, arguments, monkeypatch, activation="sin"), 1e-12)
    H = np.zeros((1, 2, 10))[..., ::2]
    block = compiled.describe(H.shape, np.zeros(5, np.int32), 0, "sin", 0.0, 0.0)
    with pytest.raises(TypeError, match="contiguous"):
        compiled.activate(block, H, np.zeros((1, 2, 5)), np.zeros((1, 2, 1)))
