"""Work spread over threads so that its results never depend on their number."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                if len(tasks) == 1:
                    return [tasks[0](partial(_map_quietly, pool), stop.is_set)]
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


def _map_quietly(pool: ThreadPoolExecutor, function: Any, parts: Sequence[Any]) -> Iterable[Any]:
    return pool.map(partial(_quietly, function), parts)


def _quietly(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call without warnings of what is not finite: a solver looks for that itself.

    It has NumPy's warnings switched off, but each thread has its own setting.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return function(argument)
