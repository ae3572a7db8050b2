import time
from threading import Event

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der
from threadpoolctl import threadpool_info, threadpool_limits

from covshift.solvers.lbfgs import Path, minimize_lbfgs
from covshift.solvers.restarts import minimize_restarts

STARTS = list(np.random.default_rng(0).uniform(-2, 2, size=(6, 3)))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


# Products of this size differ in their last bits between one and two BLAS threads.
LARGE = np.random.default_rng(1).standard_normal((7000, 110)) / 80


def minimize_mixed(index, start, should_stop):
    """Minimise a Rosenbrock function of a large product."""
    mixing = (LARGE.T @ LARGE)[:3, :3]

    def loss_and_gradient(x):
        return float(rosen(mixing @ x)), mixing.T @ rosen_der(mixing @ x)

    return minimize_lbfgs(loss_and_gradient, start, max_iter=30, tol=1e-10)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_paths_come_in_the_order_of_the_starts(n_jobs):
    def minimize_from(index, start, should_stop):
        time.sleep(0.02 * (len(STARTS) - index))  # the last start is the first to be done
        return Path(x=start, loss=float(index))

    paths = minimize_restarts(minimize_from, STARTS, n_jobs)
    assert [path.loss for path in paths] == [0, 1, 2, 3, 4, 5]
    for path, start in zip(paths, STARTS, strict=True):
        np.testing.assert_array_equal(path.x, start)


def test_the_result_does_not_depend_on_n_jobs():
    with threadpool_limits(limits=2, user_api="blas"):
        alone, together = (minimize_restarts(minimize_mixed, STARTS, n) for n in (1, 2))
    assert len({path.loss for path in alone}) == len(STARTS)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        assert one.losses == other.losses
        assert one.gradient_norms == other.gradient_norms


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_inside_and_its_own_number_after(n_jobs):
    before = blas_threads()
    inside = []

    def minimize_from(index, start, should_stop):
        inside.extend(blas_threads())
        return Path(x=start, loss=0.0)

    minimize_restarts(minimize_from, STARTS[:2], n_jobs)
    assert set(inside) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_come_through(n_jobs):
    def fails(index, start, should_stop):
        raise FloatingPointError("not finite")

    with pytest.raises(FloatingPointError, match="not finite"):
        minimize_restarts(fails, STARTS, n_jobs)


def test_threads_are_told_to_stop_when_another_fails():
    told = Event()

    def minimize_from(index, start, should_stop):
        if index == 0:
            raise KeyboardInterrupt
        for _ in range(500):
            if should_stop():
                told.set()
                break
            time.sleep(0.01)
        return Path(x=start, loss=0.0)

    with pytest.raises(KeyboardInterrupt):
        minimize_restarts(minimize_from, STARTS[:2], n_jobs=2)
    assert told.wait(timeout=5)
