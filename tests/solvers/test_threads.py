import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread, get_ident

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

from covshift.solvers import threads
from covshift.solvers.threads import (
    _run_alone,
    one_blas_thread,
    one_openmp_thread,
    run_on_threads,
    share_parts,
)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


# Products of this size differ in their last bits between one and two BLAS threads.
LARGE = np.random.default_rng(1).standard_normal((7000, 110)) / 80


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_in_the_order_of_the_tasks(n_jobs):
    def task(number, run, should_stop):
        time.sleep(0.02 * (5 - number))  # the last task is the first to be done
        return number

    tasks = [lambda run, stop, number=number: task(number, run, stop) for number in range(6)]
    assert run_on_threads(tasks, n_jobs) == list(range(6))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_single_task_gets_the_threads_for_its_parts(n_jobs):
    def task(run, should_stop):
        return list(run(lambda part: part**2, [1, 2, 3]))

    assert run_on_threads([task], n_jobs) == [[1, 4, 9]]


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_the_result_does_not_depend_on_n_jobs(n_tasks):
    parts = [LARGE[:3000], LARGE[3000:]]

    def task(run, should_stop):
        return sum(run(lambda part: part.T @ part, parts))

    with threadpool_limits(limits=2, user_api="blas"):
        alone, together = (run_on_threads([task] * n_tasks, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("n_tasks", [1, 2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_inside_and_its_own_number_after(n_jobs, n_tasks):
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        inside = run_on_threads([lambda run, should_stop: blas_threads()] * n_tasks, n_jobs)
        assert {threads for task in inside for threads in task} == {1}
        assert blas_threads() == before


@pytest.mark.parametrize("n_tasks", [1, 2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_come_through(n_jobs, n_tasks):
    def fails(run, should_stop):
        raise FloatingPointError("not finite")

    with pytest.raises(FloatingPointError, match="not finite"):
        run_on_threads([fails] * n_tasks, n_jobs)


def test_tasks_are_told_to_stop_when_another_fails():
    started, told = Event(), Event()

    def fails(run, should_stop):
        started.wait(timeout=5)
        raise KeyboardInterrupt

    def goes_on(run, should_stop):
        started.set()
        for _ in range(500):
            if should_stop():
                told.set()
                break
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        run_on_threads([fails, goes_on], n_jobs=2)
    assert told.wait(timeout=5)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_do_not_warn_of_what_is_not_finite(n_jobs):
    def task(run, should_stop):
        with np.errstate(all="ignore"):
            return list(run(lambda part: float(np.exp(np.full(2, part))[0]), [0.0, 1e9]))

    assert run_on_threads([task], n_jobs) == [[1.0, np.inf]]


def test_any_thread_may_set_the_limit_and_any_may_restore_it():
    """threadpoolctl 3.8 ignores all threads but the first that set a limit."""
    inside, outside = Event(), Event()
    found = []

    def first_in():
        with one_blas_thread():
            inside.set()
            outside.wait(10)
            found.append(blas_threads())

    before = threadpool_limits(limits=2, user_api="blas")  # its thread is this one
    try:
        two = blas_threads()
        thread = Thread(target=first_in)
        thread.start()
        inside.wait(10)
        with one_blas_thread():
            outside.set()
            thread.join(10)
            found.append(blas_threads())
        assert found == [[1] * len(two)] * 2
        assert blas_threads() == two
    finally:
        before.restore_original_limits()


def test_openmp_has_one_thread_inside_and_its_own_number_after():
    """scikit-learn's own, which boosted trees use."""
    import sklearn.ensemble._hist_gradient_boosting.histogram  # noqa: F401 (brings the library)

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]

    with threadpool_limits(limits=2, user_api="openmp"):
        before = threads()
        assert before
        with one_openmp_thread():
            assert set(threads()) == {1}
        assert threads() == before


def test_libraries_are_looked_for_again_after_an_import(monkeypatch):
    """A library comes with a module; between imports the search is not repeated."""
    searched = []

    class Spy(threadpoolctl.ThreadpoolController):
        def __init__(self):
            searched.append(True)
            super().__init__()

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Spy)
    monkeypatch.setattr(threads, "_found", {})
    threads._find("openmp")
    before = len(searched)
    threads._find("openmp")
    assert len(searched) == before
    monkeypatch.setitem(sys.modules, "a_module_that_was_imported", sys)
    threads._find("openmp")
    assert len(searched) == before + 1


def test_the_caller_works_on_parts_itself():
    """Also where the pool has no thread to spare."""
    with ThreadPoolExecutor(1) as pool:
        assert share_parts(pool, 0, lambda part: part**2, [1, 2, 3]) == [1, 4, 9]
        callers = share_parts(pool, 0, lambda part: get_ident(), [1, 2])
    assert callers == [get_ident()] * 2


@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_several_tasks_go_to_a_cluster_and_a_single_one_stays(n_tasks, monkeypatch):
    sent = []

    def send(n_jobs):
        def run(calls):
            sent.extend(calls)
            return [function(*arguments) for function, arguments, _ in sent]

        return run

    monkeypatch.setattr(threads, "_has_cluster", lambda: True)
    monkeypatch.setattr(threads, "Parallel", send)
    tasks = [lambda run, should_stop, i=i: i for i in range(n_tasks)]
    assert run_on_threads(tasks, 2) == list(range(n_tasks))
    assert len(sent) == (n_tasks if n_tasks > 1 else 0)


def test_a_task_of_another_process_is_not_told_to_stop():
    assert _run_alone(lambda run, should_stop: [should_stop(), *run(abs, [-1])]) == [False, 1]
