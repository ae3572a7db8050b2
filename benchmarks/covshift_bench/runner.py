"""The runner: every method on every task in a process of its own, so that no stop costs much.

Each process has one thread. One that uses more than its limit of processor time is killed, and
that is its result. The same run again does what is left.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
import zlib
from collections import deque
from datetime import UTC, datetime
from itertools import count
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from covshift_bench.method import Method, Prediction
from covshift_bench.published import draw_task
from covshift_bench.results import (
    DIED,
    DIGITS,
    FAILED,
    KEY,
    OK,
    TIMEOUT,
    encode_codes,
    encode_probabilities,
    key_of,
    open_results,
    read_lines,
)
from covshift_bench.tasks import Task

LIMIT = 300  # seconds of processor time
# Wall clock seconds for each second of the limit: for methods that sleep, or wait for a lock. It is
# large so that a busy machine does not change results.
WALL_FACTOR = 20
SUM_TOLERANCE = 1e-3  # of the probabilities of a row
# POT, which SKADA imports, imports every library of arrays that it finds, at seconds a process.
ENVIRONMENT = {
    f"POT_BACKEND_DISABLE_{name}": "1" for name in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW")
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
# Imported once, by the process that all workers are copies of; without the command each worker
# imports it. No SKADA: importing it changes scikit-learn.
PRELOADED = ["covshift.selection.auto_adapted", "covshift_bench.command", "pandas"]


class Job(NamedTuple):
    """One method on one task."""

    task: Task
    method: Method
    size: str
    seed: int

    @property
    def line(self):
        """The start of its line of results."""
        names = (self.task.name, self.task.rows, self.size, self.method.name, self.method.version)
        return dict(zip(KEY, (*names, self.seed), strict=True))


class Running(NamedTuple):
    """A job with its process."""

    job: Job
    process: Any
    truth: str  # class numbers of the test rows, as text
    deadline: float
    limit: float


def pending_jobs(tasks, methods, out, *, size="standard", seeds=(0,), retry=False):
    """Return the jobs without a result, task by task, and how many there are in all.

    Methods that draw nothing at random are run with the first seed alone.

    Tasks take turns over collections, so that a part of the run is a sample of the whole.
    """
    turn = {}
    numbered = [(next(turn.setdefault(task.collection, count())), task) for task in tasks]
    tasks = [task for _, task in sorted(numbered, key=lambda pair: pair[0])]
    jobs = [
        Job(task, method, size, seed)
        for task in tasks
        for method in methods
        for seed in (seeds if method.random else seeds[:1])
    ]
    done = {key_of(line) for line in read_lines(out) if line["status"] == OK or not retry}
    return [job for job in jobs if key_of(job.line) not in done], len(jobs)


def run_jobs(
    jobs, data, out, *, n_jobs=1, limit=LIMIT, wall_limit=None, progress=None, minutes=None
):
    """Run jobs in processes of their own and append each result as it comes.

    Parameters
    ----------
    jobs : list of Job
        Of `pending_jobs`.
    data : path
        Data folder.
    out : path
        File of results.
    n_jobs : int
        Processes at a time.
    limit, wall_limit : float
        Seconds of processor time, and of the clock, after which a process is killed.
    progress : callable
        Called with the line of each result.
    minutes : float
        Start nothing after so many; what runs then is finished.
    """
    end = np.inf if minutes is None else time.monotonic() + 60 * minutes
    wall_limit = WALL_FACTOR * limit if wall_limit is None else wall_limit
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    queue, running = deque(jobs), {}
    drawn_name, drawn = None, None
    with open_results(out) as add:
        try:
            while queue or running:
                if time.monotonic() > end:
                    queue.clear()
                while queue and len(running) < n_jobs:
                    job = queue.popleft()
                    if job.task.name != drawn_name:
                        drawn_name, drawn = job.task.name, draw_task(job.task, data, job.size)
                    receiver, started = _start(context, job, drawn, limit, wall_limit)
                    running[receiver] = started
                if not running:
                    break
                first = min(one.deadline for one in running.values())
                ready = connection.wait(list(running), max(0.0, first - time.monotonic()))
                overdue = [c for c in running if running[c].deadline <= time.monotonic()]
                for receiver in dict.fromkeys([*ready, *overdue]):
                    lines, arrays = _finish(receiver, running[receiver], receiver in ready)
                    if arrays:
                        _write_arrays(arrays_path(out, lines[-1]), arrays)
                    del running[receiver]
                    for line in lines:
                        add(line)
                    if progress is not None:
                        progress(lines[-1])
        finally:
            for receiver, one in running.items():
                _kill(one.process)
                receiver.close()


def _start(context, job, drawn, limit, wall_limit):
    receiver, sender = context.Pipe(duplex=False)
    hidden = drawn.without_target_labels()
    visible = hidden._replace(y_target=drawn.y_target) if job.method.asks_labels else hidden
    process = context.Process(target=_work, args=(sender, job.method, visible, job.seed, limit))
    process.start()
    sender.close()  # so that the death of the process is the end of the pipe
    deadline = time.monotonic() + wall_limit
    truth = encode_codes(np.searchsorted(np.unique(drawn.y_source), drawn.y_test))
    return receiver, Running(job, process, truth, deadline, limit)


def _work(sender, method, task, seed, limit):
    """Run one method, in a process of its own, and send what belongs into its line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills its workers when interrupted
    threading.Thread(target=_end_with_parent, daemon=True).start()
    seconds = max(1, int(np.ceil(limit)))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            prediction = method.predict(task, seed)
            used = time.process_time() - start
            lines, arrays = _encoded(prediction, method.name, task)
            text = json.dumps(lines, allow_nan=False)
        except Exception:
            used = time.process_time() - start
            failure = {"status": FAILED, "error": traceback.format_exc()}
            text, arrays = json.dumps({method.name: failure}), {}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = memory / (2**10 if sys.platform == "linux" else 2**20)
    sender.send((text, arrays, round(used, 3), round(megabytes, 1)))


def _end_with_parent():
    parent_process().join()
    os._exit(1)


def _encoded(predictions, name, task):
    """Check what a method returned and write it as text; the method's own prediction is last."""
    if not isinstance(predictions, dict):
        predictions = {name: predictions}
    if name not in predictions:
        raise ValueError(f"returned no prediction named {name!r}")
    lines = {one: encode_prediction(predictions[one], task) for one in predictions if one != name}
    lines[name] = encode_prediction(predictions[name], task)
    return lines, getattr(predictions[name], "arrays", None) or {}


def encode_prediction(prediction, task):
    """Check one prediction and return it as plain data."""
    if not isinstance(prediction, Prediction):
        prediction = Prediction(prediction)
    classes, labels = np.unique(task.y_source), np.asarray(prediction.labels)
    if labels.shape != (len(task.X_test),):
        raise ValueError(f"expected {len(task.X_test)} labels, got shape {labels.shape}")
    if not np.isin(labels, classes).all():
        raise ValueError("predicted a class that does not occur in the source")
    if len(classes) > len(DIGITS):
        raise ValueError(f"at most {len(DIGITS)} classes can be stored")
    P = prediction.probabilities
    return {
        "predicted": encode_codes(np.searchsorted(classes, labels)),
        "probabilities": None if P is None else _encode_checked(P, len(labels), len(classes)),
        "extras": prediction.extras or {},
    }


def _encode_checked(P, n_rows, n_classes):
    P = np.asarray(P, dtype=float)
    if P.shape != (n_rows, n_classes):
        raise ValueError(f"expected probabilities of {n_classes} classes, got {P.shape}")
    # Written so that NaN is an error, too.
    if not ((P >= 0).all() and (np.abs(P.sum(axis=1) - 1) < SUM_TOLERANCE).all()):
        raise ValueError("probabilities must not be negative or NaN, and those of a row sum to 1")
    return encode_probabilities(P)


def arrays_path(out, line):
    """Return the file of the arrays that belong to a line of results."""
    number = zlib.crc32("|".join(map(str, key_of(line))).encode())
    return Path(out).with_suffix("") / f"{number:08x}.npz"


def _write_arrays(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    halves = {name: _halved(values) for name, values in arrays.items()}
    with part.open("wb") as file:
        np.savez_compressed(file, **halves)
    part.replace(path)


def _halved(values):
    """Numbers in half precision, within its range."""
    if values.dtype.kind != "f":
        return values
    return np.clip(values, -6e4, 6e4).astype(np.float16)


def _finish(receiver, one, ready):
    """Return the lines and arrays of a job whose process has answered, died or run out of time.

    A method with several predictions has a line for each; the last is its own and has the costs.
    """
    line = one.job.line | {
        "status": OK,
        "error": None,
        "truth": one.truth,
        "predicted": None,
        "probabilities": None,
        "extras": {},
        "seconds": None,
        "megabytes": None,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with receiver:
        if not ready:
            _kill(one.process)
            return [line | {"status": TIMEOUT, "error": "Killed: out of wall clock time."}], {}
        try:
            text, arrays, seconds, megabytes = receiver.recv()
        except (EOFError, OSError):
            return [line | _death(one.process, one.limit)], {}
    one.process.join()
    lines = [line | {"method": name} | found for name, found in json.loads(text).items()]
    lines[-1] |= {"seconds": seconds, "megabytes": megabytes}
    return lines, arrays


def _death(process, limit):
    process.join()
    code = process.exitcode
    if code == -signal.SIGXCPU:
        error = "Killed: out of processor time."
        return {"status": TIMEOUT, "error": error, "seconds": float(limit)}
    reason = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
    return {"status": DIED, "error": f"The process died: {reason}."}


def _kill(process):
    process.kill()
    process.join()


class Progress:
    """Prints how much is done and how long the rest will take."""

    def __init__(self, n_done, n_total, every=5.0):
        self.n_before = self.n_done = n_done
        self.n_total = n_total
        self.n_failed = 0
        self.every = every
        self.start = time.monotonic()
        self.shown = -np.inf

    def __call__(self, line):
        """Count a result; print at most every few seconds."""
        self.n_done += 1
        if line["status"] != OK:
            self.n_failed += 1
            last = (line["error"] or "").strip().rpartition("\n")[2]
            print(f"{line['status']}: {line['task']}, {line['method']}: {last}", flush=True)
        now = time.monotonic()
        if now - self.shown >= self.every or self.n_done == self.n_total:
            self.shown = now
            print(self.text(now), flush=True)

    def text(self, now):
        """Return the share done and the time left."""
        left = (now - self.start) / (self.n_done - self.n_before) * (self.n_total - self.n_done)
        share = self.n_done / self.n_total
        minutes = round(left / 60)
        return (
            f"{self.n_done} of {self.n_total} ({share:.1%}), {self.n_failed} failed, "
            f"{minutes // 60} h {minutes % 60:02d} min left"
        )
