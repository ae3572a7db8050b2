"""Functions for the runner to run, and a program that runs one, to be killed.

python -m tests.studies.measuring STORE N_JOBS KILL_WHEN
"""

import functools
import os
import signal
import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.studies import runner
from covshift.studies.runner import run_experiment
from covshift.studies.trial import Trial

# Products of this size differ in their last bits between one and two BLAS threads.
SHAPE = (7000, 110)


def declaration(n_tasks=8, **settings):
    """Tasks of two trials each."""
    return [
        [Trial("study", {"system": system, "C": 0.1, **settings}, seed) for system in ("SF", "PSF")]
        for seed in range(n_tasks)
    ]


def measure(trials):
    return [
        {"value": np.random.default_rng(trial.seed).random() * len(trial.settings_json)}
        for trial in trials
    ]


def measure_slowly(trials):
    time.sleep(0.03)
    return measure(trials)


def measure_until_stopped(trials):
    """As `measure`, for the first four seeds; the others wait for a signal."""
    if trials[0].seed >= 4:
        time.sleep(60)
    return measure(trials)


def measure_products(trials):
    """Sums that depend on the number of BLAS threads, were it not fixed."""
    X = np.random.default_rng(trials[0].seed).standard_normal(SHAPE)
    product = X.T @ X[:, :72]
    return [{"value": float(product.flat[trial.seed]), "sum": product.sum()} for trial in trials]


def measure_first_ones_last(trials):
    time.sleep(0.05 * (4 - min(4, trials[0].seed)))
    return measure(trials)


def fail_for_seed(bad_seed, trials):
    if any(trial.seed == bad_seed for trial in trials):
        raise ZeroDivisionError(f"no luck\nwith {bad_seed}")
    return measure(trials)


def fail_unless_there(path, trials):
    if trials[0].seed == 1 and not os.path.exists(path):
        raise RuntimeError("not yet")
    return measure(trials)


def warn_often(trials):
    for _ in range(3):
        warnings.warn("did not converge", ConvergenceWarning, stacklevel=1)
    np.float64(1.0) / np.float64(0.0)
    return measure(trials)


def warn_in_many_ways(trials):
    for number in range(100):
        warnings.warn(f"value {number}", UserWarning, stacklevel=1)
    return measure(trials)


def not_finite(trials):
    values = {"a": float("nan"), "b": float("inf"), "c": [-float("inf"), None, 0.1 + 0.2]}
    return [values for _ in trials]


def one_result_too_few(trials):
    return measure(trials)[1:]


def no_list(trials):
    return dict(enumerate(measure(trials)))


def no_dicts(trials):
    return [1.0 for _ in trials]


def an_array(trials):
    return [{"accuracy": {"all": np.zeros(2)}} for _ in trials]


def unreadable_error(trials):
    class SilentError(Exception):
        def __str__(self):
            raise ValueError

    raise SilentError


def half_a_character(trials):
    raise ValueError("no file \udce9t\udce9")


def die(trials):
    os._exit(1)


def interrupt(trials):
    if trials[0].seed == 2:
        raise KeyboardInterrupt
    return measure(trials)


def note_the_process(folder, trials):
    """Leave a file for each call: who was run is who left one."""
    with open(os.path.join(folder, f"{trials[0].seed}-{time.monotonic_ns()}"), "w"):
        return measure(trials)


def main(store_path, n_jobs, function_name, kill_when):
    """Run the declaration; end by SIGKILL when ``kill_when`` comes: "PROGRESS 3", "INSERT 2"."""
    what, _, number = kill_when.partition(" ")
    seen = 0

    def look(event):
        nonlocal seen
        seen += what in event
        if what in event and seen == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def progress(done, total, failed):
        print(done, flush=True)
        look("PROGRESS")

    open_store = runner.open_store

    def traced(*arguments, **options):
        store = open_store(*arguments, **options)
        store.connection.set_trace_callback(look)  # called before each statement is run
        return store

    runner.open_store = traced
    try:
        function = functools.partial(globals()[function_name])
        run_experiment(declaration(), function, store_path, n_jobs=int(n_jobs), progress=progress)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
