"""Regression on the design collections with numbers: run, fit, judge with clusters left out.

    python benchmarks/regression.py run DATA --out runs/regression      # candidates, baselines
    python benchmarks/regression.py rows DATA --out runs/regression     # rows for other packages
    python benchmarks/regression_peers.py runs/regression --package skada
    python benchmarks/regression.py rooms DATA --out runs/regression    # limits of predictions
    python benchmarks/regression.py fit DATA --out runs/regression [--write]

Tasks follow the rules of `tasks`, with the number ``y_value`` of a collection as label: the same
pairs of domains and domains left out, the same rows, at most `MAX_TASKS` of a collection. A task
whose source or test labels do not vary is left out.

``run`` keeps, for every task, what each default candidate says where source rows are taken as
the target and of the test rows, and the R² of peers that need nothing else: one file for a task,
so that the same command resumes. ``fit`` fits the coefficients of
`covshift.selection.expected_gains` for numbers and those of `covshift.selection.expected_scores`,
and judges everything with whole clusters left out. Means are over clusters of equal
weight; intervals are bootstraps of clusters.
"""

import argparse
import json
import sys
import warnings
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from covshift_bench.method import stacked
from covshift_bench.real_collections import read_cuts
from covshift_bench.tasks import MADE_UP, DrawnTask, draw_rows, impute, read_tasks
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import covshift.selection
from covshift.measures.labeled_scores import negative_mae, r2
from covshift.selection.bench import Bench, Problem, predicted_numbers
from covshift.selection.candidates import default_candidates
from covshift.selection.choice import choose_plain
from covshift.selection.expected_gains import (
    ALL_NUMBER_QUANTITIES,
    COMMITTEE,
    NUMBER_QUANTITIES,
    number_features,
    number_voters,
)
from covshift.selection.expected_scores import (
    ADAPTED,
    ADAPTED_ERROR,
    AVERAGING,
    DISAGREEMENT,
    ERROR,
    GAIN,
    NUMBER_MARGIN,
    PLAIN,
    SMALLEST,
    expect_gain,
    linear,
    number_quantities,
)
from covshift.selection.label_tasks import number_task
from covshift.selection.leaderboard import score_table
from covshift.selection.rehearsals import NUMBER_KINDS, SOURCE_CV, SOURCE_DOMAINS, rehearse
from covshift.selection.vote import (
    PLAIN_WEIGHT,
    FitData,
    fit_members,
    mix_probabilities,
    vote_weights,
)
from covshift.solvers.threads import one_blas_thread

MAX_ROWS, MAX_TASKS = 600, 8
N_MEMBERS = 7  # of `AutoAdaptedRegressor`
SEED = 0
RIDGE, CLIP = 0.3, 0.25  # as in calibrate.py
MEAN_RIDGE = 0.1  # of expectations
LOSS = 0.02
ROOMS = (0.0, 0.1, 0.25, 1.0, 1e6)
PROBABILITIES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
TERMS = {
    PLAIN: ("one", SOURCE_DOMAINS, "committee"),
    ADAPTED: ("one", SOURCE_DOMAINS, "committee"),
    ERROR: ("one", SOURCE_DOMAINS, "committee"),
    ADAPTED_ERROR: ("one", SOURCE_DOMAINS, "committee"),
    GAIN: (f"gain, {SOURCE_CV}", f"gain, {SOURCE_DOMAINS}", AVERAGING),
}
COMMAND = "python benchmarks/regression.py fit DATA --out runs/regression --write"
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
    X_source, X_target, X_test = impute(*(cut.X[rows] for rows in (source, target, test)))
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


def make_bench(drawn, seed=SEED, room=None):
    """Return the bench that `AutoAdaptedRegressor` makes of a task; ``room`` as in `read_case`."""
    task = number_task(drawn.y_source)
    if room is not None:
        values = task.standardize(drawn.y_source)
        more = room * np.ptp(values)
        task = task._replace(low=values.min() - more, high=values.max() + more)
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


class Case(NamedTuple):
    """A task with the outputs of its candidates. ``truth`` is read by code marked ORACLE only."""

    task: object
    bench: Bench
    tests: list  # predictions (n, 1) of the test rows, within the limits
    truth: np.ndarray  # of the test rows, in units of the source
    table: object
    plain: int
    features: dict  # quantity -> differences to the plain model
    peers: dict

    @property
    def cluster(self):
        """Of the task."""
        return self.task.cluster


def read_case(task, data, folder, room=None):
    """Return the case of a stored task; None if it was not run.

    ``room``: how far predictions may leave the range of the labels, as a part of it; None: as the
    package has it.
    """
    path = folder / f"{zlib.crc32(task.name.encode()):08x}.npz"
    if not path.exists():
        return None
    drawn = draw_numbers(task, data)
    with np.load(path) as file:
        arrays = dict(file)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        bench = make_bench(drawn, room=room)
        bench.restore(arrays)
        tests = [arrays.get(f"test, {i}") for i in range(len(bench.candidates))]
        tests = [None if one is None else bench.task.apply(one) for one in tests]
        table = score_table(bench, NUMBER_KINDS)
        plain = choose_plain(bench, table)
        features = number_features(bench, table.scores, table.allowed, plain)
    truth = bench.task.standardize(drawn.y_test)  # ORACLE
    for package in ("skada", "adapt"):
        beside = path.with_name(f"{package}-{path.name}")
        if beside.exists():
            with np.load(beside) as file:
                arrays |= {f"peer {name}": file[name] for name in file.files}
    peers = {
        name.removeprefix("peer "): bench.task.standardize(one)
        for name, one in arrays.items()
        if name.startswith("peer ")
    }
    return Case(task, bench, tests, truth, table, plain, features, peers)


def true_gains(case):
    """ORACLE: gains in R² of all candidates over the plain model on the test rows."""
    scores = [np.nan if one is None else r2(case.truth, one[:, 0]) for one in case.tests]
    return np.array(scores) - scores[case.plain]


def fit_gains(cases, names):
    """ORACLE: return the coefficients of a ridge regression of true gains, clusters alike."""
    clusters = [case.cluster for case in cases]
    X, y, w = [], [], []
    for case in cases:
        gains = true_gains(case)
        known = ~np.isnan(gains)
        X.append(np.column_stack([case.features[name][known] for name in names]))
        y.append(np.clip(gains[known], -CLIP, CLIP))
        w.append(np.full(known.sum(), 1 / clusters.count(case.cluster) / known.sum()))
    X, y, w = np.concatenate(X), np.concatenate(y), np.concatenate(w)
    scale = np.sqrt(np.average(X**2, axis=0, weights=w))
    scale = np.where(scale > 0, scale, 1)
    Z = X / scale
    A = Z.T @ (Z * w[:, None]) + RIDGE * w.sum() * np.eye(Z.shape[1])
    return dict(zip(names, np.linalg.solve(A, Z.T @ (w * y)) / scale, strict=True))


def weigh(case, beta, plain_weight=None, evidence=True):
    """Return the weights of the vote by coefficients.

    ``evidence``: candidates that adapt must beat the plain model on left-out source domains.
    """
    gains = np.sum([beta[name] * case.features[name] for name in beta], axis=0)
    gains[[output.logits is None for output in case.bench.target]] = np.nan
    voters = case.table.allowed
    if evidence:
        voters = number_voters(case.bench, case.table.scores, voters, case.plain)
    weights = vote_weights(gains, voters, N_MEMBERS, case.plain)
    if plain_weight is not None:
        weights[case.plain] -= PLAIN_WEIGHT
        weights *= (1 - plain_weight) / (1 - PLAIN_WEIGHT)
        weights[case.plain] += plain_weight
    return weights


def mix(case, weights):
    """Return the weighted mean prediction of the test rows."""
    return mix_probabilities(case.tests, weights, np.zeros(len(weights), dtype=bool))[:, 0]


def by_cluster(cases, values):
    """Return the mean of each cluster."""
    found = {}
    for case, value in zip(cases, values, strict=True):
        found.setdefault(case.cluster, []).append(value)
    return np.array([np.mean(one) for one in found.values()])


def interval(means, seed=SEED, n_draws=5000):
    """Return a 95 % bootstrap interval of a mean of clusters."""
    rng = np.random.RandomState(seed)
    drawn = rng.choice(means, (n_draws, len(means))).mean(axis=1)
    return np.quantile(drawn, [0.025, 0.975])


def describe_gains(name, cases, gains):
    """Print mean gain with its interval, and how often it loses."""
    means = by_cluster(cases, gains)
    low, high = interval(means)
    lost = np.mean(by_cluster(cases, np.array(gains) < -LOSS))
    share = np.mean(np.array(gains) < -LOSS)
    clipped = by_cluster(cases, np.clip(gains, -1, 1)).mean()
    print(
        f"{name}: mean gain {means.mean():+.3f} ({low:+.3f} to {high:+.3f}), median "
        f"{np.median(gains):+.3f}, clipped at 1 {clipped:+.3f}; "
        f"loses more than {LOSS} in {share:.0%} of tasks ({lost:.0%} by cluster), gains more in "
        f"{np.mean(np.array(gains) > LOSS):.0%}; worst {np.min(gains):+.2f}"
    )


def gains_of(cases, betas, **settings):
    """ORACLE: gains in R² of the votes by the coefficients of each task."""
    found = []
    for case, beta in zip(cases, betas, strict=True):
        plain = r2(case.truth, case.tests[case.plain][:, 0])
        found.append(r2(case.truth, mix(case, weigh(case, beta, **settings))) - plain)
    return np.array(found)


def left_out_betas(cases, names):
    """Return, for each task, coefficients that were fitted without its cluster."""
    fitted = {
        one: fit_gains([case for case in cases if case.cluster != one], names)
        for one in {case.cluster for case in cases}
    }
    return [fitted[case.cluster] for case in cases]


def observe(case, weights):
    """ORACLE: quantities without target labels, and what they should predict."""
    quantities = number_quantities(case.bench, weights, case.plain, case.table.allowed)
    truth, plain, vote = case.truth, case.tests[case.plain][:, 0], mix(case, weights)
    scores = [r2(truth, one) for one in (plain, vote)]
    wanted = {
        PLAIN: np.log(max(1 - scores[0], SMALLEST)) - quantities[f"log {PLAIN}"],
        ADAPTED: np.log(max(1 - scores[1], SMALLEST)) - quantities[f"log {ADAPTED}"],
        ERROR: np.log(-negative_mae(truth, plain)) - quantities[f"log {ERROR}"],
        ADAPTED_ERROR: np.log(-negative_mae(truth, vote)) - quantities[f"log {ADAPTED_ERROR}"],
        GAIN: scores[1] - scores[0],
    }
    return quantities, wanted


def fit_mean(rows, clusters, name):
    """Return the coefficients of one expectation; clusters weigh the same."""
    names = TERMS[name]
    X = np.array([[quantities[term] for term in names] for quantities, _ in rows])
    y = np.array([wanted[name] for _, wanted in rows])
    if name == GAIN:
        y = np.clip(y, -CLIP, CLIP)
    w = np.array([1 / clusters.count(one) for one in clusters])
    scale = np.sqrt(np.average(X**2, axis=0, weights=w))
    scale = np.where(scale > 0, scale, 1)
    Z = X / scale
    penalty = np.array([0.0 if term == "one" else MEAN_RIDGE for term in names]) * w.sum()
    return dict(zip(names, np.linalg.solve(Z.T @ (Z * w[:, None]) + np.diag(penalty),
                                           Z.T @ (w * y)) / scale, strict=True))  # fmt: skip


def residual(row, name, mean):
    """Return how far one expectation is off, in its unit."""
    quantities, wanted = row
    if name == GAIN:
        scale = quantities[DISAGREEMENT] + NUMBER_MARGIN
        return (wanted[name] - expect_gain(quantities, mean)) / scale
    return wanted[name] - linear(quantities, mean)


def fit_expectation(rows, clusters, name):
    """Return coefficients, and quantiles of residuals with whole clusters left out."""
    residuals, weights = [], []
    for one in sorted(set(clusters)):
        others = [i for i, other in enumerate(clusters) if other != one]
        mean = fit_mean([rows[i] for i in others], [clusters[i] for i in others], name)
        inside = [i for i, other in enumerate(clusters) if other == one]
        residuals += [residual(rows[i], name, mean) for i in inside]
        weights += [1 / len(inside)] * len(inside)
    residuals, weights = np.array(residuals), np.array(weights)
    # One cluster more, half of it at either end: the next one may be beyond all that were seen.
    spread = 0.25 * np.ptp(residuals)
    residuals = np.append(residuals, [residuals.min() - spread, residuals.max() + spread])
    weights = np.append(weights, [0.5, 0.5])
    order = np.argsort(residuals)
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    quantiles = np.interp(PROBABILITIES, reached, residuals[order])
    return {"mean": fit_mean(rows, clusters, name), "quantiles": quantiles}


def covers(row, name, fitted):
    """Return whether the 90 % interval covers the truth."""
    low, high = np.interp([0.05, 0.95], PROBABILITIES, fitted["quantiles"])
    return low <= residual(row, name, fitted["mean"]) <= high


def rounded(value):
    """Return numbers with four digits, for a JSON file."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [rounded(one) for one in value]
    return round(float(value), 4) if isinstance(value, float | np.floating) else value


def judge(cases, write):
    """Fit everything, print what is found with clusters left out, write the coefficients."""
    clusters = [case.cluster for case in cases]
    n_clusters = len(set(clusters))
    print(f"{len(cases)} tasks, {n_clusters} clusters")
    for names in (NUMBER_QUANTITIES, (*NUMBER_QUANTITIES, COMMITTEE), ALL_NUMBER_QUANTITIES):
        betas = left_out_betas(cases, names)
        describe_gains(f"left out, {', '.join(names)}", cases, gains_of(cases, betas))
    betas = left_out_betas(cases, NUMBER_QUANTITIES)
    for share in (0.0, 0.5, 0.7):
        gains = gains_of(cases, betas, plain_weight=share)
        describe_gains(f"left out, plain model at least {share}", cases, gains)
    gains = gains_of(cases, betas, evidence=False)
    describe_gains("left out, adapters without evidence vote, too", cases, gains)
    gains = gains_of(cases, betas)
    rows = [observe(case, weigh(case, beta)) for case, beta in zip(cases, betas, strict=True)]
    followed = np.zeros(len(cases), dtype=bool)
    for name in TERMS:
        inside = []
        for one in sorted(set(clusters)):
            others = [i for i, other in enumerate(clusters) if other != one]
            fitted = fit_expectation([rows[i] for i in others], [clusters[i] for i in others], name)
            for i in (i for i, other in enumerate(clusters) if other == one):
                inside.append((i, covers(rows[i], name, fitted)))
                if name == GAIN:
                    followed[i] = linear(rows[i][0], fitted["mean"]) > 0
        covered = np.array([found for _, found in sorted(inside)])
        print(f"90 % intervals, {name}: cover {covered.mean():.0%} of tasks, "
              f"{by_cluster(cases, covered).mean():.0%} by cluster")  # fmt: skip
    recommended = np.where(followed, gains, 0.0)
    describe_gains("left out, recommended model", cases, recommended)
    print(f"followed in {followed.mean():.0%} of tasks")
    for name in sorted({name for case in cases for name in case.peers}):
        some = [case for case in cases if name in case.peers]
        differences = [
            r2(case.truth, case.peers[name]) - r2(case.truth, case.tests[case.plain][:, 0])
            for case in some
        ]
        describe_gains(f"{name} ({len(some)} tasks)", some, differences)
    used, unused = gains[followed], gains[~followed]
    lost, lost_kept = used < -NUMBER_MARGIN, unused < -NUMBER_MARGIN
    right, kept = used >= 0, unused <= NUMBER_MARGIN
    rates = {"loss": _share(lost), "loss_kept": _share(lost_kept)}
    rates |= {"adapt": _share(right), "keep": _share(kept)}
    print("rates", rates)
    beta = fit_gains(cases, NUMBER_QUANTITIES)
    print("coefficients", rounded(beta))
    if not write:
        return
    facts = {"command": COMMAND, "real tasks": len(cases), "clusters": n_clusters}
    _write("expected_number_gains.json", facts | {"coefficients": rounded(beta)})
    found = {name: fit_expectation(rows, clusters, name) for name in TERMS}
    more = {"probabilities": list(PROBABILITIES), "rates": rates} | found
    _write("expected_number_scores.json", facts | rounded(more))


def _share(flags):
    """Return a share, kept away from 0 and 1 by one case more of either kind."""
    return round(float(sum(flags) + 1) / (len(flags) + 2), 4)


def _write(name, content):
    path = Path(covshift.selection.__file__).with_name(name)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def compare_rooms(tasks, data, folder):
    """Print the gains and the plain model's R² for several limits of predictions."""
    for room in ROOMS:
        cases = [read_case(task, data, folder, room) for task in tasks]
        cases = [case for case in cases if case is not None]
        plain = [r2(case.truth, case.tests[case.plain][:, 0]) for case in cases]
        gains = gains_of(cases, left_out_betas(cases, NUMBER_QUANTITIES))
        vote = by_cluster(cases, np.maximum(plain + gains, -1)).mean()
        of_plain = by_cluster(cases, np.maximum(plain, -1)).mean()
        print(
            f"room {room}: R2, not below -1: plain {of_plain:.3f}, vote {vote:.3f}; "
            f"worst {np.min(plain):.2f}, {np.min(plain + gains):.2f}"
        )
        describe_gains(f"room {room}", cases, gains)


def main():
    """Run or fit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "fit", "rooms", "rows"))
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("--out", type=Path, required=True, help="folder of the outputs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--max-tasks", type=int, default=MAX_TASKS, help="of a collection")
    parser.add_argument("--write", action="store_true", help="write the coefficients")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = in_turn(number_tasks(options.data), options.max_tasks)
    if options.action == "run":
        jobs = (delayed(run_task)(task, options.data, options.out) for task in tasks)
        done = Parallel(n_jobs=options.jobs, return_as="generator")(jobs)
        for number, name in enumerate(done):
            print(f"{number + 1} of {len(tasks)}: {name}", flush=True)
    elif options.action == "rows":
        for task in tasks:
            write_rows(task, options.data, options.out)
    elif options.action == "rooms":
        compare_rooms(tasks, options.data, options.out)
    else:
        cases = [read_case(task, options.data, options.out) for task in tasks]
        judge([case for case in cases if case is not None], options.write)


def in_turn(tasks, most):
    """Return tasks in turn from all collections: a run that is cut short has some of each."""
    seen, numbered = {}, []
    for task in tasks:
        seen[task.collection] = seen.get(task.collection, -1) + 1
        numbered.append((seen[task.collection], task))
    return [task for turn, task in sorted(numbered, key=lambda one: one[0]) if turn < most]


def write_rows(task, data, folder):
    """Write the rows of a task without target labels, for `regression_peers.py`."""
    drawn = draw_numbers(task, data)
    if drawn is None:
        return
    np.savez_compressed(
        folder / f"rows-{zlib.crc32(task.name.encode()):08x}.npz",
        X_source=drawn.X_source,
        y_source=drawn.y_source,
        X_target=drawn.X_target,
        X_test=drawn.X_test,
    )


if __name__ == "__main__":
    sys.exit(main())
