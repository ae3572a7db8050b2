"""One task, as it is run wherever joblib puts it: a call that always returns, and plain text."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

from threadpoolctl import ThreadpoolController

from covshift.experiments.recorded_warnings import recorded_warnings
from covshift.experiments.trial import Trial, to_json
from covshift.solvers.blas_threads import one_blas_thread

TaskFunction: TypeAlias = Callable[[list[Trial]], list[dict[str, Any]]]


@dataclass(frozen=True)
class TaskOutcome:
    """What became of one task. Text only: it can always be sent between processes, and stored.

    Attributes
    ----------
    number : int
        Of the task, in the declaration.
    results : list of str, or None
        The result of each trial as JSON; None if the task failed.
    error, traceback : str, or None
        Type and message of the exception, and where it came from.
    warnings : list of (str, str, int)
        Category and message of each warning, and how often it came.
    seconds : float
        That the task took.
    """

    number: int
    results: list[str] | None
    error: str | None
    traceback: str | None
    warnings: list[tuple[str, str, int]]
    seconds: float


def call_task(function: TaskFunction, number: int, trials: Sequence[Trial]) -> TaskOutcome:
    """Run one task; its exceptions are part of the outcome, its warnings are counted.

    BLAS and OpenMP are held at one thread. Workers fill the cores already, and sums in another
    order would make results depend on the number of workers. The limit of OpenMP is one of the
    calling thread, so that it needs no sharing between threads.
    """
    results = error_text = traceback_text = None
    start = perf_counter()
    with (
        recorded_warnings() as counts,
        one_blas_thread(),
        ThreadpoolController().select(user_api="openmp").limit(limits=1),
    ):
        try:
            results = _results_as_json(function(list(trials)), len(trials))
        except Exception as error:
            error_text = _storable(f"{type(error).__name__}: {_message(error)}")
            traceback_text = _storable("".join(traceback.format_exception(error)))
    seconds = perf_counter() - start
    warned = [(*kind, count) for kind, count in counts.items()]
    return TaskOutcome(number, results, error_text, traceback_text, warned, seconds)


def _results_as_json(results: Any, n_trials: int) -> list[str]:
    if not isinstance(results, list | tuple) or len(results) != n_trials:
        got = len(results) if isinstance(results, list | tuple) else type(results).__name__
        raise ValueError(f"the function must return a list of {n_trials} results, got {got}.")
    for number, result in enumerate(results):
        if not isinstance(result, Mapping):
            raise TypeError(f"result {number} must be a dict, got {type(result).__name__}.")
    return [
        to_json(result, f"result {number}: value", finite=False)
        for number, result in enumerate(results)
    ]


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def _storable(text: str) -> str:
    """Escape halves of characters, as in names of files that are not UTF-8: no file holds them."""
    return text.encode(errors="backslashreplace").decode()
