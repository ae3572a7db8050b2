"""Several minimisations from several starts, the best of which is kept."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from covshift.solvers.lbfgs import Path

Array = npt.NDArray[Any]


def minimize_restarts(
    minimize_from: Callable[[int, Array], Path], starts: Sequence[Array], n_jobs: int | None
) -> list[Path]:
    """Run ``minimize_from(index, start)`` for every start; paths in the order of starts.

    BLAS sums in another order when it uses another number of threads. It is held at one
    here, and the starts share the cores instead, so that the result does not depend on
    ``n_jobs`` to the last bit.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        paths: list[Path] = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(minimize_from)(index, start) for index, start in enumerate(starts)
        )
    return paths
