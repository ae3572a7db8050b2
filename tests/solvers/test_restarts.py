import time

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der
from threadpoolctl import threadpool_info

from covshift.solvers.lbfgs import Path, minimize_lbfgs
from covshift.solvers.restarts import minimize_restarts

STARTS = list(np.random.default_rng(0).uniform(-2, 2, size=(6, 3)))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def minimize_mixed(index, start):
    """Minimise a Rosenbrock function of products that are large enough for BLAS threads."""
    mixing = np.random.default_rng(1).standard_normal((400, 3)) / 20
    gram = mixing.T @ (mixing @ np.eye(3))

    def loss_and_gradient(x):
        return float(rosen(gram @ x)), gram.T @ rosen_der(gram @ x)

    return minimize_lbfgs(loss_and_gradient, start, max_iter=30, tol=1e-10)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_paths_come_in_the_order_of_the_starts(n_jobs):
    def minimize_from(index, start):
        time.sleep(0.02 * (len(STARTS) - index))  # the last start is the first to be done
        return Path(x=start, loss=float(index))

    paths = minimize_restarts(minimize_from, STARTS, n_jobs)
    assert [path.loss for path in paths] == [0, 1, 2, 3, 4, 5]
    for path, start in zip(paths, STARTS, strict=True):
        np.testing.assert_array_equal(path.x, start)


def test_the_result_does_not_depend_on_n_jobs():
    alone, together = (minimize_restarts(minimize_mixed, STARTS, n_jobs) for n_jobs in (1, 2))
    assert len({path.loss for path in alone}) == len(STARTS)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        assert one.losses == other.losses
        assert one.gradient_norms == other.gradient_norms


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_inside_and_its_own_number_after(n_jobs):
    before = blas_threads()
    inside = []

    def minimize_from(index, start):
        inside.extend(blas_threads())
        return Path(x=start, loss=0.0)

    minimize_restarts(minimize_from, STARTS[:2], n_jobs)
    assert set(inside) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_come_through(n_jobs):
    def fails(index, start):
        raise FloatingPointError("not finite")

    with pytest.raises(FloatingPointError, match="not finite"):
        minimize_restarts(fails, STARTS, n_jobs)
