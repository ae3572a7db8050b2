"""Work spread over threads so that its results never depend on their number."""

import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from typing import Any, TypeAlias

import numpy as np
import threadpoolctl
from joblib import Parallel, delayed, effective_n_jobs, parallel

# --- Holding BLAS, or OpenMP, at one thread for as long as anybody asks for it ---


_lock = threading.Lock()
_limits: list[Any] = []  # one entry per block inside; the first set the limit
_found: dict[str, Any] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread inside the block.

    The limit belongs to the process. Blocks that overlap in several threads share one: the
    first to enter sets it and the last to leave restores what was before.
    """
    with _lock:
        _limits.append(_limits[0] if _limits else _limit())
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                _let_any_thread_set_limits()
                limit.restore_original_limits()
                _let_any_thread_set_limits()


def _limit() -> Any:
    _let_any_thread_set_limits()
    return _find("blas").limit(limits=1)


def _let_any_thread_set_limits() -> None:
    """Undo threadpoolctl's rule that only the first thread to set OpenBLAS's limit may do so.

    Since 3.8 the others are ignored without a word, and here the thread that sets the limit,
    or the one that restores it, may be any.
    """
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Hold OpenMP at one thread inside the block, for the thread that enters it.

    Boosted trees of a few hundred rows take 0.2 s with one thread; with two, of which each waits
    for the other where programs share the cores, they took 5 s.
    """
    with _find("openmp").limit(limits=1):
        yield


def _find(user_api: str) -> Any:
    """Return the libraries of one kind: a limiter restores all that its controller holds."""
    # Finding them takes a millisecond or two, as long as a small fit. They are looked for again
    # when anything was imported since: a library comes with a module.
    if _found.get("n_modules") != len(sys.modules):
        _found.clear()
        _found["n_modules"] = len(sys.modules)
    if user_api not in _found:
        _found[user_api] = threadpoolctl.ThreadpoolController().select(user_api=user_api)
    return _found[user_api]


# Tools of a task: a map over its parts, and a question whether to stop early.
Run: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
Task: TypeAlias = Callable[[Run, Callable[[], bool]], Any]


def run_on_threads(tasks: Sequence[Task], n_jobs: int | None) -> list[Any]:
    """Run every task on threads; results in that order.

    Several tasks share the threads; a single one gets them for its parts. BLAS sums in
    another order when it uses another number of threads, so it is held at one here. Tasks are
    told to stop when another fails or the call is interrupted, so that they do not run for nothing.

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

    A thread that is free takes the next part. A pass over the rows of a small problem takes a
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
    finally:  # another call may take the buffers, so all work on them ends here
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


# --- Work done in threads ahead of the one that uses its results, in the order of the items ---
#
# Worth it where both sides let other threads run, as Arrow and NumPy do. The queue is bounded.


def map_ahead(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int
) -> Iterator[Any]:
    """Yield the function's result for each item; threads compute the next ones meanwhile.

    Where not all results are used, calls in progress end by themselves, and the items are closed.
    """
    threads = ThreadPoolExecutor(n_threads)
    coming: deque[Any] = deque()
    try:
        for item in items:
            coming.append(threads.submit(function, item))
            # Twice as many as threads: none stands still while a result is in use.
            if len(coming) > 2 * n_threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        # Without waiting: the garbage collector may be what closes this generator, and it may run
        # in a thread that holds the lock which the end of another thread needs (seen with
        # Python 3.12, in a thread that was just starting).
        threads.shutdown(wait=False, cancel_futures=True)
        # Not left to the garbage collector: the traceback of an error keeps the items alive.
        _close(items)


def read_ahead(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, none of them None; a thread makes the next ones meanwhile."""
    source = _SharedSource(items)
    coming = map_ahead(lambda _: source.next(), itertools.count(), n_threads=1)
    try:
        yield from itertools.takewhile(lambda item: item is not None, coming)
    finally:
        source.give_up()


class _SharedSource:
    """Items that one thread makes and another may give up; neither waits for the other."""

    def __init__(self, items: Iterable[Any]):
        self.items, self.given_up = iter(items), False

    def next(self) -> Any:
        """Return the next item, or None behind the last one."""
        item = next(self.items, None)
        if self.given_up:  # while the item was made
            _close(self.items)
        return item

    def give_up(self) -> None:
        """Close the items now, or once the item in progress is made."""
        self.given_up = True
        _close(self.items)


def _close(items: Any) -> None:
    """Close a generator that no other thread runs."""
    if hasattr(items, "close"):
        with suppress(ValueError):  # it runs: who runs it closes it afterward
            items.close()
