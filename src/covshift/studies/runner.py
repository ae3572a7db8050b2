"""Running the trials of an experiment, in parallel, so that a stop at any moment costs little."""

import os
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

from covshift.solvers.threads import one_blas_thread
from covshift.studies.store import Record, Store, open_store, task_key
from covshift.studies.trial import TaskFunction, TaskOutcome, Trial, to_json

Task: TypeAlias = tuple[Trial, ...]
# Trials done (failed ones too), all trials, failed trials.
Progress: TypeAlias = Callable[[int, int, int], object]
# How often each warning came, by (category, message), in the order of their first appearance.
Counts: TypeAlias = dict[tuple[str, str], int]

MAX_KINDS = 20  # a message with a number in it may come in thousands of kinds
MAX_ERROR_LENGTH = 300
OTHERS = ("Warning", "others")

_lock = threading.RLock()  # a destructor run inside may warn as well
_open: list[tuple[int, Counts]] = []  # each block inside: its thread and its counts
_restore = ExitStack()


class WorkerDiedError(RuntimeError):
    """A worker process died; the message says which trials are stored and how to resume."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of the declared trials.

    Attributes
    ----------
    records : list of Record
        Of every trial, in the order of the declaration.
    n_resumed : int
        Trials that an earlier run had done.
    """

    records: list[Record]
    n_resumed: int

    @property
    def failures(self) -> list[Record]:
        """The records of the trials that failed."""
        return [record for record in self.records if record.error is not None]

    def summary(self) -> str:
        """Say in a line how many trials there are, and in one for each which failed and why."""
        head = f"{len(self.records)} trials, {self.n_resumed} of them done before"
        if not self.failures:
            return f"{head}; none failed."
        lines = [
            f"{record.trial.experiment} {record.trial.settings_json} seed {record.trial.seed}: "
            + (record.error or "").partition("\n")[0]
            for record in self.failures
        ]
        again = "run the same again to retry them"
        return "\n".join([f"{head}; {len(lines)} failed ({again}):", *lines])


def run_experiment(
    tasks: Iterable[Sequence[Trial]],
    function: TaskFunction,
    store_path: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    fresh: bool = False,
    run_settings: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run every task that is not done yet, and store its results as it ends.

    Run the same again after a stop of any kind, and it resumes. A task of which
    every trial is stored without an error is not run again. The results depend neither on
    ``n_jobs`` nor on stops: a task is always computed as a whole, with one thread.

    Parameters
    ----------
    tasks : iterable of sequences of Trial
        Tasks to run: each task is one or more trials computed together. A task with other
        trials, or in another order, is another task, and run again.
    function : callable
        ``function(trials) -> results``, given the trials of a task as a list; returns a list
        with a dict for each, of plain data (NaN and infinities allowed). It must be defined at
        the top level of a module, so that workers can find it. If it raises, that is stored for
        all trials of the task, and the other tasks continue.
    store_path : path
        File to keep results in; made if missing, see `covshift.studies.store.open_store`.
    n_jobs : int, default=None
        Tasks to run at a time, with the joblib backend in force (processes if none is).
        None means 1 unless `joblib.parallel_config` says otherwise, -1 all processors.
    progress : callable, default=None
        Called with the numbers of trials done (failed ones too), of all trials, and of failed
        ones: at the start, with what was done before, and after each task.
    fresh : bool, default=False
        Whether to drop what the file holds and start over.
    run_settings : mapping of str to plain data, default=None
        Settings of this run, to be recorded in the file.

    Returns
    -------
    Outcome
        Records in the order of the declaration, and which trials failed.

    Raises
    ------
    StoreError
        If the file cannot be used, or the disk is full. Stored results stay.
    WorkerDiedError
        If a worker process died. Stored results stay.

    Examples
    --------
    In a module, since functions of an interactive session cannot be sent to workers::

        def measure(trials):
            return [{"accuracy": fit_and_score(**t.settings, seed=t.seed)} for t in trials]

        tasks = [[Trial("study", {"C": C}, seed)] for C in (0.1, 1.0) for seed in range(10)]
        outcome = run_experiment(tasks, measure, "runs/study.sqlite", n_jobs=2)
        print(outcome.summary())
    """
    tasks = _checked_tasks(tasks)
    _check_function(function)
    with open_store(store_path, fresh=fresh, run_settings=run_settings) as store:
        finished = store.finished_tasks()
        pending = [i for i, task in enumerate(tasks) if task_key(task) not in finished]
        n_trials = sum(map(len, tasks))
        n_resumed = n_done = n_trials - sum(len(tasks[i]) for i in pending)
        n_failed = 0
        if progress is not None:
            progress(n_done, n_trials, n_failed)
        outcomes = _as_completed(function, tasks, pending, n_jobs)
        try:
            for outcome in outcomes:
                task = tasks[outcome.number]
                _save(store, task, outcome)
                n_done += len(task)
                n_failed += len(task) if outcome.error is not None else 0
                if progress is not None:
                    progress(n_done, n_trials, n_failed)
        except BrokenExecutor as error:
            raise WorkerDiedError(
                f"a worker process died, often because memory ran out. {n_done} of {n_trials} "
                f"trials are done and stay in {store.path}: run the same again to resume, with a "
                "smaller n_jobs if it dies again."
            ) from error
        finally:
            _drop(outcomes)
        stored = {record.trial: record for record in store.records()}
    return Outcome([stored[trial] for task in tasks for trial in task], n_resumed)


def _checked_tasks(tasks: Iterable[Sequence[Trial]]) -> list[Task]:
    checked: list[Task] = []
    owner: dict[Trial, int] = {}
    for number, trials in enumerate(tasks):
        if not isinstance(trials, list | tuple) or not all(isinstance(t, Trial) for t in trials):
            raise TypeError(f"task {number} must be a list of Trial, got {trials!r}.")
        if not trials:
            raise ValueError(f"task {number} has no trials: leave it out.")
        for trial in trials:
            if trial in owner:
                raise ValueError(
                    f"{trial} is declared twice, in the tasks {owner[trial]} and {number}: "
                    "trials must differ in settings or seed."
                )
            owner[trial] = number
        checked.append(tuple(trials))
    return checked


def _check_function(function: TaskFunction) -> None:
    """Refuse at once what workers cannot be sent, even if this run has none."""
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}.")
    try:
        pickle.dumps(function)
    except Exception as error:  # pickle raises whatever the parts of the function raise
        raise TypeError(
            f"function cannot be sent to worker processes ({error}): define it at the top level "
            "of a module, and hand it data through the settings of trials or functools.partial."
        ) from error


def _as_completed(
    function: TaskFunction, tasks: list[Task], pending: list[int], n_jobs: int | None
) -> Generator[TaskOutcome, None, None]:
    """Yield the outcomes of the pending tasks as they come."""
    calls = [delayed(call_task)(function, number, tasks[number]) for number in pending]
    # batch_size: joblib hands over batches when they are whole, and a stop would cost all of one.
    try:
        parallel = Parallel(n_jobs, batch_size=1, return_as="generator_unordered")
    except ValueError:  # a backend that hands over everything at the end: give it little
        chunk = effective_n_jobs(n_jobs)
        with Parallel(n_jobs, batch_size=1) as parallel:
            for start in range(0, len(calls), chunk):
                yield from parallel(calls[start : start + chunk])
    else:
        if calls:
            yield from parallel(calls)


def _save(store: Store, task: Task, outcome: TaskOutcome) -> None:
    try:
        store.save(task, outcome)
    except KeyboardInterrupt:
        store.save(task, outcome)  # keep the computed result; saving twice is harmless
        raise


def _drop(outcomes: Generator[TaskOutcome, None, None]) -> None:
    """Stop the workers if there is work left; joblib would warn that it is not used."""
    with recorded_warnings():  # it may overlap with those of tasks that end in threads
        outcomes.close()


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


@contextmanager
def recorded_warnings() -> Iterator[Counts]:
    """Count warnings of the trials that run in the block; none is shown or becomes an error.

    How Python treats warnings belongs to the process. Blocks that overlap in several threads
    share one change of it: the first to enter makes it and the last to leave undoes it.
    Warnings of a thread without a block, such as those a task starts, go to the oldest block.
    """
    counts: Counts = {}
    block = (threading.get_ident(), counts)
    with _lock:
        if not _open:
            # Both: with context-aware warnings (Python 3.14) the first restores only filters.
            _restore.callback(setattr, warnings, "showwarning", warnings.showwarning)
            _restore.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = _count  # type: ignore[assignment]
        _open.append(block)
    try:
        yield counts
    finally:
        with _lock:
            _open[:] = [other for other in _open if other is not block]
            if not _open:
                _restore.close()


def _count(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    kind = (category.__name__, str(message)[:MAX_ERROR_LENGTH])
    with _lock:
        thread = threading.get_ident()
        counts = next((counts for owner, counts in _open if owner == thread), None)
        if counts is None:
            if not _open:  # the last block was left while this warning was on its way
                return
            counts = _open[0][1]
        if kind not in counts and len(counts) >= MAX_KINDS:
            kind = OTHERS
        counts[kind] = counts.get(kind, 0) + 1
