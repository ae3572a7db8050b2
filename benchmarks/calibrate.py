"""Fit the coefficients of expected gains, and judge the vote with whole clusters left out.

    covshift-bench run DATA --methods auto --made-up 1 --out runs/results.jsonl --jobs 2
    python benchmarks/calibrate.py DATA runs/results.jsonl --out runs/left-out.jsonl [--write]
    covshift-bench summary runs/left-out.jsonl

The coefficients of `covshift.selection.expected_gains` come from a ridge regression, without
intercept, of the true gains of candidates over the plain model (clipped to +-.25) on differences to
it. Every cluster of real tasks has the same weight, and so has every family of made-up tasks; all
made-up families together weigh as much as a third of the real clusters. ``--out`` has the
predictions of the vote for each cluster by coefficients that were fitted without it. ``--write``
writes those of all tasks to ``expected_gains.json``. ``--without A B --coefficients FILE`` writes
coefficients that clusters A and B did not shape to another file, for `bearings.py` and other judges
of these.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from covshift_bench.method import Prediction
from covshift_bench.methods.automatic import BALANCED, N_MEMBERS, OBJECTIVES, make_bench
from covshift_bench.results import OK, open_results, read_results
from covshift_bench.runner import arrays_path, encode_prediction
from covshift_bench.summary import tasks_of
from covshift_bench.tasks import LIST, MADE_UP, draw_task
from joblib import Parallel, delayed

import covshift.selection
from covshift.predictors.objectives import METRICS, decide_classes
from covshift.selection.choice import choose_plain
from covshift.selection.expected_gains import QUANTITIES, gain_features
from covshift.selection.expected_scores import vote_probabilities
from covshift.selection.leaderboard import score_table
from covshift.selection.rehearsals import KINDS, decide
from covshift.selection.vote import vote_weights

RIDGE = 0.3  # of standardized differences, as a multiple of the total weight
CLIP = 0.25
MADE_UP_WEIGHT = 1 / 3
COEFFICIENTS = Path(covshift.selection.__file__).with_name("expected_gains.json")
COMMAND = "python benchmarks/calibrate.py DATA runs/results.jsonl --write"


class Case(NamedTuple):
    """The candidates of a task, for an objective."""

    task: object
    objective: str
    features: np.ndarray  # (candidates, quantities): differences to the plain model
    gains: np.ndarray  # true, over the plain model, on the test rows
    allowed: np.ndarray
    plain: int


class Stored(NamedTuple):
    """A task whose bench was stored: its line of results, and where rows and outputs are."""

    line: dict
    task: object
    data: Path
    path: Path

    def draw(self):
        """Return the rows of the task."""
        return draw_task(self.task, self.data, self.line["size"])


def stored_benches(data, results, path=LIST):
    """Return the stored benches of a file of `covshift-bench run` and a list of tasks."""
    lines = [one for one in read_results([results]) if one["status"] == OK]
    tasks = {task.name: task for task in tasks_of(lines, path)}
    lines = [one for one in lines if one["method"] == "auto" and one["task"] in tasks]
    return [Stored(one, tasks[one["task"]], Path(data), arrays_path(results, one)) for one in lines]


def read_cases(stored):
    """Return the cases of a task, one for each objective, from its stored outputs."""
    drawn = stored.draw()
    bench, tests = restore(drawn, stored.path, stored.line["seed"])
    return [make_case(bench, tests, drawn, stored.task, objective) for objective in OBJECTIVES]


def restore(drawn, path, seed):
    """Return the bench of a task with its stored outputs, and the logits of the test rows."""
    codes = np.unique(drawn.y_source, return_inverse=True)[1]
    bench = make_bench(drawn, codes, seed)
    with np.load(path) as arrays:
        tests = bench.restore(dict(arrays))
    return bench, tests


def make_case(bench, tests, drawn, task, objective):
    """Return differences and true gains of all candidates. ORACLE: reads test labels."""
    bench.metric = METRICS[objective]
    table = score_table(bench, KINDS)
    plain = choose_plain(bench, table)
    features = gain_features(bench, table.scores, table.allowed, plain)
    truth = np.searchsorted(np.unique(drawn.y_source), drawn.y_test)
    scores = np.array(
        [
            np.nan
            if logits is None
            else bench.metric(truth, decide(bench, bench.calibrated_of(i, logits)))
            for i, logits in enumerate(tests)
        ]
    )
    return Case(task, objective, features, scores - scores[plain], table.allowed, plain)


def fit_coefficients(cases):
    """Return the coefficients (quantities,) of the ridge regression."""
    clusters = [case.task.cluster for case in cases]
    made_up = np.array([case.task.collection == MADE_UP for case in cases])
    weights = np.array([1 / clusters.count(one) for one in clusters])
    if made_up.any() and not made_up.all():
        weights[made_up] *= MADE_UP_WEIGHT * weights[~made_up].sum() / weights[made_up].sum()
    X, y, w = [], [], []
    for case, weight in zip(cases, weights, strict=True):
        known = ~np.isnan(case.gains)
        X.append(case.features[known])
        y.append(np.clip(case.gains[known], -CLIP, CLIP))
        w.append(np.full(known.sum(), weight / known.sum()))
    X, y, w = np.concatenate(X), np.concatenate(y), np.concatenate(w)
    scale = np.sqrt(np.average(X**2, axis=0, weights=w))
    scale = np.where(scale > 0, scale, 1)
    Z = X / scale
    A = Z.T @ (Z * w[:, None]) + RIDGE * w.sum() * np.eye(Z.shape[1])
    return np.linalg.solve(A, Z.T @ (w * y)) / scale


def left_out_coefficients(cases):
    """Return the coefficients for each cluster, fitted without it."""
    names = sorted({case.task.cluster for case in cases})
    return {
        one: fit_coefficients([case for case in cases if case.task.cluster != one]) for one in names
    }


def named_coefficients(cases):
    """Return the coefficients by quantity, rounded as they are written."""
    return dict(zip(QUANTITIES, fit_coefficients(cases).round(4).tolist(), strict=True))


def write_coefficients(path, by_task, without=()):
    """Write the coefficients of both objectives, and what they were fitted on.

    ``by_task`` has the cases of each task, one for each objective. Tasks of the clusters
    ``without`` do not count.
    """
    kept = [cases for cases in by_task if cases[0].task.cluster not in without]
    real = [cases[0].task for cases in kept if cases[0].task.collection != MADE_UP]
    facts = {
        "command": COMMAND,
        "real tasks": len(real),
        "clusters": len({task.cluster for task in real}),
        "made-up tasks": len(kept) - len(real),
    }
    if without:
        facts["without"] = list(without)
    fitted = {
        objective: named_coefficients([cases[number] for cases in kept])
        for number, objective in enumerate(OBJECTIVES)
    }
    path.write_text(json.dumps(facts | fitted, indent=2) + "\n", encoding="utf-8")


def left_out_lines(stored, cases, betas):
    """Lines of results of the vote by coefficients that were fitted without the task's cluster."""
    line, drawn = stored.line, stored.draw()
    bench, tests = restore(drawn, stored.path, line["seed"])
    classes = np.unique(drawn.y_source)
    P = [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(tests)]
    lines = []
    for case, beta in zip(cases, betas, strict=True):
        bench.metric = METRICS[case.objective]
        gains = case.features @ beta
        gains[[one is None for one in P]] = np.nan
        weights = vote_weights(gains, case.allowed, N_MEMBERS, case.plain)
        balanced = case.objective == BALANCED
        mean = vote_probabilities(P, bench, weights, reweighed=not balanced)
        labels = classes[decide_classes(mean, case.objective, bench.problem.class_shares)]
        found = encode_prediction(Prediction(labels, mean), drawn)
        name = "left out: vote, balanced" if balanced else "left out: vote, accuracy"
        lines.append(line | {"method": name, "seconds": None, "megabytes": None} | found)
    return lines


def main():
    """Read the stored outputs, fit, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--out", type=Path, help="file for predictions with clusters left out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write expected_gains.json")
    parser.add_argument("--without", nargs="*", default=[], metavar="CLUSTER")
    parser.add_argument("--coefficients", type=Path, help="file for those without these clusters")
    options = parser.parse_args()
    if bool(options.without) != bool(options.coefficients):
        parser.error("--without and --coefficients belong together")
    stored = stored_benches(options.data, options.results)
    unknown = set(options.without) - {one.task.cluster for one in stored}
    if unknown:
        parser.error(f"--without: there is no cluster {', '.join(sorted(unknown))}")
    by_task = Parallel(n_jobs=options.jobs)(delayed(read_cases)(one) for one in stored)
    left_out = {}
    for number, objective in enumerate(OBJECTIVES):
        cases = [cases[number] for cases in by_task]
        left_out[objective] = left_out_coefficients(cases)
        print(objective, json.dumps(named_coefficients(cases)))
    if options.coefficients is not None:
        write_coefficients(options.coefficients, by_task, options.without)
    if options.out is not None:
        jobs = [
            delayed(left_out_lines)(
                one, cases, [left_out[case.objective][case.task.cluster] for case in cases]
            )
            for one, cases in zip(stored, by_task, strict=True)
        ]
        with open_results(options.out) as add:
            for found in Parallel(n_jobs=options.jobs)(jobs):
                for line in found:
                    add(line)
    if options.write:
        write_coefficients(COEFFICIENTS, by_task)


if __name__ == "__main__":
    main()
