"""Work spread over threads so that its results never depend on their number."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel

from covshift.solvers.blas_threads import one_blas_thread

# Tools of a task: a map over its parts, and a question whether to stop early.
Run: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
Task: TypeAlias = Callable[[Run, Callable[[], bool]], Any]


def run_tasks(tasks: Sequence[Task], n_jobs: int | None) -> list[Any]:
    """Run every task; results in that order.

    Several tasks share the threads; a single one gets them for its parts. BLAS sums in
    another order when it uses another number of threads, so it is held at one here. Tasks are
    told to stop when another fails or the call is interrupted, so that they do not run in vain.

    Inside ``joblib.parallel_config("dask")`` several tasks are sent to the cluster.
    """
    if len(tasks) > 1 and _has_cluster():
        return list(Parallel(n_jobs=n_jobs)(delayed(_run_alone)(task) for task in tasks))
    n_threads = effective_n_jobs(n_jobs)
    stop = Event()
    with one_blas_thread():
        if n_threads == 1:
            return [task(map, stop.is_set) for task in tasks]
        n_helpers = n_threads if len(tasks) > 1 else n_threads - 1
        with ThreadPoolExecutor(n_helpers) as pool:
            try:
                if len(tasks) == 1:
                    return [tasks[0](partial(share_parts, pool, n_helpers), stop.is_set)]
                futures = [pool.submit(task, map, stop.is_set) for task in tasks]
                return [future.result() for future in futures]
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _has_cluster() -> bool:
    """Whether joblib was told to use a cluster; threads are then of no use to several tasks."""
    backend, _ = parallel.get_active_backend()
    return type(backend).__name__ == "DaskDistributedBackend"


def _run_alone(task: Task) -> Any:
    """Run a task in another process, in one thread."""
    with one_blas_thread():
        return task(map, _never)


def _never() -> bool:
    return False


def share_parts(
    pool: Executor, n_helpers: int, function: Callable[[Any], Any], parts: Sequence[Any]
) -> list[Any]:
    """Call a function on every part, in the calling thread and in some of a pool.

    Whoever is free takes the next part. A pass over the rows of a small problem takes a
    millisecond: a pool that gets a task for each part, and a caller that only waits, would add a
    tenth to it.
    """
    results: list[Any] = [None] * len(parts)
    waiting = deque(range(len(parts)))

    def work() -> None:
        while True:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            results[number] = _quietly(function, parts[number])

    helpers = [pool.submit(work) for _ in range(min(n_helpers, len(parts) - 1))]
    try:
        work()
    finally:  # nobody is left at work on buffers that another call may take
        waiting.clear()
        wait(helpers)
    for helper in helpers:
        helper.result()
    return results


def _quietly(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call without warnings of what is not finite: a solver looks for that itself.

    It has NumPy's warnings switched off, but each thread has its own setting.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return function(argument)
