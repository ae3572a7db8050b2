"""Methods that misbehave, and a program that runs slow ones, to be killed.

python -m tests.benchmarks.fake_methods RESULTS N_JOBS
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from covshift_bench.method import Method, Prediction
from covshift_bench.runner import pending_jobs, run_jobs
from covshift_bench.tasks import draw_task, made_up_tasks
from threadpoolctl import threadpool_info


def first_class(task, seed):
    return np.full(len(task.X_test), task.y_source.min())


def look_around(task, seed):
    """Return the labels and threads that a method sees, as extras."""
    n_classes = len(np.unique(task.y_source))
    P = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=len(task.X_test))
    extras = {
        "labels": [task.y_test is not None, task.y_target is not None],
        "threads": max(one["num_threads"] for one in threadpool_info()),
        "pid": os.getpid(),
    }
    return Prediction(np.unique(task.y_source)[P.argmax(axis=1)], P, extras)


def sleep(task, seed):
    time.sleep(600)


def sleep_a_little(task, seed):
    time.sleep(0.5)
    return Prediction(first_class(task, seed), extras={"pid": os.getpid()})


def compute(task, seed):
    while True:
        np.linalg.svd(np.ones((50, 50)))


def leave(task, seed):
    os._exit(3)


def kill_itself(task, seed):
    os.kill(os.getpid(), 9)


def go_wrong(task, seed):
    raise RuntimeError("out of luck")


def too_few(task, seed):
    return first_class(task, seed)[1:]


def uniform(task):
    n_classes = len(np.unique(task.y_source))
    return np.full((len(task.X_test), n_classes), 1 / n_classes)


def nan_probabilities(task, seed):
    P = uniform(task)
    P[3] = np.nan
    return Prediction(first_class(task, seed), P)


def margins(task, seed):
    return Prediction(
        first_class(task, seed), uniform(task) * [-1, *[2] * (uniform(task).shape[1] - 1)]
    )


def half_the_probabilities(task, seed):
    return Prediction(first_class(task, seed), uniform(task) / 2)


def column(task, seed):
    return first_class(task, seed)[:, None]


def nan_labels(task, seed):
    return np.full(len(task.X_test), np.nan)


def garbage(task, seed):
    print("\x1b[2J{\x00 not a result")
    os.write(1, b'{"task": "forged"}\n\xff')
    return first_class(task, seed)


def unknown_class(task, seed):
    return np.full(len(task.X_test), task.y_source.max() + 1)


def not_plain(task, seed):
    return Prediction(first_class(task, seed), extras={"array": np.ones(3)})


def several(task, seed):
    """Two predictions, and arrays in a file."""
    arrays = {"numbers": np.array([1, 2, 3]), "large": np.array([-1e9, 0.5])}
    labels = first_class(task, seed)
    return {"several": Prediction(labels, arrays=arrays), "the other": Prediction(labels)}


def only_another(task, seed):
    return {"another": first_class(task, seed)}


def method(function, version="1"):
    return Method(function.__name__, version, function)


def some_tasks(n=2):
    """Made-up tasks, which need no data."""
    return made_up_tasks(1)[:n]


def small_task(family):
    """A task of few rows and the same without labels except those of target rows."""
    task = next(one for one in made_up_tasks(1) if one.cluster == family)
    drawn = draw_task(task)
    few = np.arange(0, len(drawn.X_source), 3)
    small = drawn._replace(
        X_source=drawn.X_source[few],
        y_source=drawn.y_source[few],
        source_domain=drawn.source_domain[few],
        X_target=drawn.X_target[:60],
        y_target=drawn.y_target[:60],
        target_domain=drawn.target_domain[:60],
    )
    return task, small


def main():
    """Run slow methods; say so when everything was run."""
    out, n_jobs = sys.argv[1], int(sys.argv[2])
    jobs, _ = pending_jobs(some_tasks(6), [method(sleep_a_little)], out)
    run_jobs(jobs, None, out, n_jobs=n_jobs)
    print("all run")


if __name__ == "__main__":
    main()
