"""Several minimisations from several starts, the best of which is kept."""

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import numpy.typing as npt
from joblib import Parallel, delayed

from covshift.solvers.blas_threads import one_blas_thread
from covshift.solvers.lbfgs import Path

Array = npt.NDArray[Any]


def minimize_restarts(
    minimize_from: Callable[[int, Array, Callable[[], bool]], Path],
    starts: Sequence[Array],
    n_jobs: int | None,
) -> list[Path]:
    """Run ``minimize_from(index, start, should_stop)`` for every start; paths in that order.

    BLAS sums in another order when it uses another number of threads. It is held at one
    here, and the starts share the cores instead, so that the result does not depend on
    ``n_jobs`` to the last bit. ``should_stop`` turns true when the call fails or is
    interrupted, lest threads go on for nobody.
    """
    stop = Event()
    try:
        with one_blas_thread():
            paths: list[Path] = Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(minimize_from)(index, start, stop.is_set)
                for index, start in enumerate(starts)
            )
    except BaseException:
        stop.set()
        raise
    return paths
