"""Regression on the design collections with numbers: run, fit, judge with clusters left out.

    python benchmarks/regression.py run DATA --out runs/regression      # candidates and peers
    python benchmarks/regression.py fit DATA --out runs/regression [--write]

Tasks follow the rules of `tasks.py`, with the number ``y_value`` of a collection as label: the same
pairs of domains and domains left out, the same rows, at most `MAX_TASKS` of a collection. A task
whose source or test labels do not vary is left out.

``run`` keeps, for every task, what each default candidate says where source rows play the target
and of the test rows, and the R² of peers that need nothing else: one file for a task, so that the
same command resumes. ``fit`` fits the coefficients of `covshift.selection.gains` for numbers and
those of `covshift.selection.number_expectations`, and judges everything with whole clusters left
out. Means are over clusters of equal weight; intervals are bootstraps of clusters.
"""

import argparse
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from methods import stacked
from real_collections import read_cuts
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from tasks import MADE_UP, DrawnTask, _impute, draw_rows, read_tasks

from covshift.selection.bench import Bench
from covshift.selection.candidates import default_candidates
from covshift.selection.label_tasks import number_task
from covshift.selection.members import FitData, fit_members
from covshift.selection.metrics import r2
from covshift.selection.outputs import predicted_numbers
from covshift.selection.problem import Problem
from covshift.selection.rehearsals import NUMBER_KINDS, rehearse
from covshift.solvers.blas_threads import one_blas_thread

MAX_ROWS, MAX_TASKS = 600, 8
SEED = 0
PENALTIES = tuple(10.0**power for power in range(-2, 5))


def number_tasks(data):
    """Return the real tasks of the collections that have ``y_value``."""
    folder = Path(data) / "real_domains"
    known = {}
    for task in read_tasks():
        path = folder / f"{task.collection}.npz"
        if task.collection not in known:
            known[task.collection] = False
            if path.exists():
                with np.load(path) as file:
                    known[task.collection] = "y_value" in file.files
    return [
        task
        for task in read_tasks()
        if task.collection != MADE_UP and task.cut == "" and known[task.collection]
    ]


def draw_numbers(task, data):
    """Return the rows of a task with numbers as labels; None if they do not vary."""
    cut = read_cuts(str(data), task.collection)[task.cut]
    with np.load(Path(data) / "real_domains" / f"{task.collection}.npz") as file:
        y = file["y_value"].astype(np.float64)
    source, target, test = draw_rows(task, cut, MAX_ROWS)
    if np.ptp(y[source]) == 0 or np.ptp(y[test]) == 0:
        return None
    X_source, X_target, X_test = _impute(*(cut.X[rows] for rows in (source, target, test)))
    return DrawnTask(
        X_source,
        y[source],
        np.unique(cut.domain[source], return_inverse=True)[1].ravel(),
        X_target,
        np.full(len(target), -1),
        X_test,
        y[test],
        y[target],
    )


def make_bench(drawn, seed=SEED):
    """Return the bench that `AutoAdaptedRegressor` makes of a task."""
    task = number_task(drawn.y_source)
    values = task.standardize(drawn.y_source)
    source = (drawn.X_source, task.group(values), drawn.source_domain)
    problem = Problem(
        *source, drawn.X_target, drawn.target_domain, len(task.edges) + 1, values, task
    )
    rng = check_random_state(seed)
    candidates = default_candidates(problem.size, "number")
    thinned = problem.thinned(MAX_ROWS, rng)
    return Bench(candidates, thinned, r2, seed=int(rng.randint(2**31 - 1)))


def test_outputs(bench, drawn):
    """Return predictions (n, 1) of the test rows by each candidate; None: it failed."""
    X, _, sample_domain = stacked(drawn)
    task = bench.task
    values = np.full(len(X), np.nan)
    values[: len(drawn.y_source)] = task.standardize(drawn.y_source)
    known = ~np.isnan(values)
    data = FitData(X, np.where(known, 0, -1), sample_domain, known, values)
    where, found = np.full(len(drawn.X_test), -1), []
    for number, output in enumerate(bench.target):
        if output.logits is None:
            found.append(None)
            continue
        weights = np.eye(len(bench.candidates))[number]
        member = fit_members(bench, weights, data, None)[0]
        found.append(predicted_numbers(member.model, drawn.X_test, where))
    return found


def run_task(task, data, folder):
    """Run the candidates of a task, keep their outputs; the labels of the test are not read."""
    path = folder / f"{zlib.crc32(task.name.encode()):08x}.npz"
    if path.exists():
        return task.name
    drawn = draw_numbers(task, data)
    if drawn is None:
        return f"{task.name}: labels do not vary"
    drawn = drawn.without_target_labels()
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        bench = make_bench(drawn)
        for kind in NUMBER_KINDS:
            rehearse(bench, kind)
        tests = test_outputs(bench, drawn)
        peers = {name: fit(drawn) for name, fit in PEERS.items()}
    arrays = bench.to_arrays()
    arrays |= {f"test, {i}": one for i, one in enumerate(tests) if one is not None}
    arrays |= {f"peer {name}": one for name, one in peers.items() if one is not None}
    temporary = path.with_suffix(".tmp.npz")
    np.savez_compressed(temporary, name=np.array(task.name), **arrays)
    temporary.replace(path)
    return task.name


def plain_ridge(drawn):
    """Ridge regression on the standardized source."""
    model = make_pipeline(StandardScaler(), RidgeCV(PENALTIES))
    return model.fit(drawn.X_source, drawn.y_source).predict(drawn.X_test)


def boosted_trees(drawn):
    """Boosted trees of scikit-learn with their defaults."""
    model = HistGradientBoostingRegressor(random_state=SEED)
    return model.fit(drawn.X_source, drawn.y_source).predict(drawn.X_test)


PEERS = {"ridge": plain_ridge, "boosted trees": boosted_trees}


def main():
    """Run or fit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "fit"))
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("--out", type=Path, required=True, help="folder of the outputs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--max-tasks", type=int, default=MAX_TASKS, help="of a collection")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = number_tasks(options.data)
    # In turn from all collections: a run that is cut short has some of each.
    turn = {
        task.name: sum(one.collection == task.collection for one in tasks[:i])
        for i, task in enumerate(tasks)
    }
    tasks = sorted(
        (t for t in tasks if turn[t.name] < options.max_tasks), key=lambda task: turn[task.name]
    )
    if options.action == "run":
        jobs = (delayed(run_task)(task, options.data, options.out) for task in tasks)
        done = Parallel(n_jobs=options.jobs, return_as="generator")(jobs)
        for number, name in enumerate(done):
            print(f"{number + 1} of {len(tasks)}: {name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
