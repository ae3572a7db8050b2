"""Which target rows to label: query rules beside random draws, on stored outputs of candidates.

    covshift-bench run DATA --methods auto --out runs/results.jsonl --jobs 2
    python benchmarks/label_queries.py DATA runs/results.jsonl [--per-collection 2]

For each real task a rule chooses 20 and 80 of the rows that the model adapts to. Their labels then

- pick a candidate: the highest accuracy on these rows, ties by expected gain;
- decide between the vote (of the objective accuracy) and the plain model;
- estimate the accuracy of the vote.

Accuracies of picks and decisions, and errors of estimates, are measured on the test rows. Rules
that draw at random are repeated. Differences to random draws are means over clusters of the means
over their tasks, with the standard error over clusters. Class proportions are not adjusted here.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from covshift_bench.results import OK, read_results
from covshift_bench.runner import arrays_path
from covshift_bench.tasks import draw_task, read_tasks
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from covshift.kernels.probabilities import fit_scaling, scaled_probabilities

COUNTS = (20, 80)
REPEATS = 20
VOTE = "auto, accuracy"
KINDS = ("pick", "decision", "error")


# --- Query rules: functions of what is known without labels; they return rows and weights ---


def at_random(known, n, rng):
    """Draw rows uniformly."""
    return rng.choice(len(known["P"]), n, replace=False), np.ones(n)


def by_predicted_class(known, n, rng):
    """Draw rows of each predicted class in proportion to its number of rows, two at least."""
    predicted = known["P"].argmax(axis=1)
    rows, weights = [], []
    classes, counts = np.unique(predicted, return_counts=True)
    wanted = np.minimum(np.maximum(2, np.floor(n * counts / counts.sum()).astype(int)), counts)
    while wanted.sum() > n and (wanted > 1).any():
        wanted[wanted.argmax()] -= 1
    for one, count, some in zip(classes, counts, wanted, strict=True):
        drawn = rng.choice(np.flatnonzero(predicted == one), some, replace=False)
        rows.append(drawn)
        weights.append(np.full(some, count / some))
    return np.concatenate(rows), np.concatenate(weights)


def by_margin(known, n, rng):
    """Take the rows with the smallest difference of the two largest probabilities of the vote."""
    two = np.sort(known["P"], axis=1)[:, -2:]
    return np.argsort(two[:, 1] - two[:, 0], kind="stable")[:n], np.ones(n)


def by_disagreement(known, n, rng):
    """Take the rows on which the candidates' predictions have the largest entropy."""
    shares = np.stack([(known["codes"] == k).mean(axis=0) for k in range(known["P"].shape[1])])
    entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-12)), axis=0)
    return np.argsort(-entropy, kind="stable")[:n], np.ones(n)


def by_weighted_uncertainty(known, n, rng):
    """Draw half uniformly, half by the vote's doubt; weights undo the unequal chances."""
    doubt = 1 - known["P"].max(axis=1) + 1e-6
    chance = 0.5 / len(doubt) + 0.5 * doubt / doubt.sum()
    rows = rng.choice(len(doubt), n, replace=False, p=chance)
    return rows, 1 / chance[rows]


def by_clusters(known, n, rng):
    """Take the row nearest to each center of n clusters, weighted by the rows of the cluster."""
    Z = StandardScaler().fit_transform(known["X"])
    found = KMeans(n, n_init=1, max_iter=20, random_state=0).fit(Z)
    distance = np.square(Z - found.cluster_centers_[found.labels_]).sum(axis=1)
    order = np.lexsort([distance, found.labels_])
    labels, first = np.unique(found.labels_[order], return_index=True)
    return order[first], np.bincount(found.labels_)[labels].astype(float)


RULES = {
    "random": (at_random, REPEATS),
    "stratified by predicted class": (by_predicted_class, REPEATS),
    "smallest margin of the vote": (by_margin, 1),
    "disagreement of candidates": (by_disagreement, 1),
    "weighted uncertainty": (by_weighted_uncertainty, REPEATS),
    "cluster representatives": (by_clusters, 1),
}


# --- Tasks ---


def read_case(line, vote, task, data, path):
    """Return what is known of a task without labels, and the truth. None: too few rows."""
    drawn = draw_task(task, data, line["size"])
    with np.load(path) as stored:
        arrays = {
            name: stored[name]
            for name in stored.files
            if name.startswith(("target, ", "test ", "fold", "codes", "candidates"))
        }
    if len(drawn.y_target) <= max(COUNTS):
        return None
    names = [str(name) for name in arrays["candidates"]]
    n_classes = int(arrays["codes"].max()) + 1
    used = [i for i in range(len(names)) if f"target, {i}" in arrays and f"test {i}" in arrays]
    weights = np.array([vote["extras"]["weights"].get(names[i], 0.0) for i in used])
    P, P_test = (np.zeros((len(rows), n_classes)) for rows in (drawn.X_target, drawn.X_test))
    for i, weight in zip(used, weights, strict=True):
        if weight > 0:
            scaling = fold_scaling(arrays, i)
            P += weight * calibrated(arrays[f"target, {i}"], scaling)
            P_test += weight * calibrated(arrays[f"test {i}"], scaling)
    classes = np.unique(drawn.y_source)
    gains = vote["extras"]["scores"]["expected gain"]
    return {
        "X": drawn.X_target,
        "P": P / weights.sum(),
        "codes": np.stack([arrays[f"target, {i}"].argmax(axis=1) for i in used]),
        "gains": np.array([-1.0 if gains[i] is None else gains[i] for i in used]),
        "plain": used.index(vote["extras"]["plain"]),
        "truth": np.searchsorted(classes, drawn.y_target),
        "test": np.stack([arrays[f"test {i}"].argmax(axis=1) for i in used]),
        "vote test": P_test.argmax(axis=1),
        "truth of test": np.searchsorted(classes, drawn.y_test),
    }


def fold_scaling(arrays, i):
    """Calibration of a candidate from its logits of left-out source rows; None if it has none."""
    folds = arrays["folds"]
    parts = [arrays.get(f"fold {fold}, {i}") for fold in range(folds.max() + 1)]
    if any(part is None for part in parts):
        return None
    logits = np.empty((len(folds), parts[0].shape[1]))
    for fold, part in enumerate(parts):
        logits[folds == fold] = part
    return fit_scaling(logits, arrays["codes"], np.ones(len(folds)))


def calibrated(logits, scaling):
    """Return probabilities of logits; those of a softmax where a candidate has no scaling."""
    logits = logits.astype(np.float64)
    return softmax(logits, axis=1) if scaling is None else scaled_probabilities(logits, scaling)


def judge(case, rows, weights):
    """Return the test accuracies of pick and decision, and the error of the estimate."""
    truth, truth_of_test = case["truth"][rows], case["truth of test"]
    weights = weights / weights.sum()
    scores = (case["codes"][:, rows] == truth) @ weights
    pick = np.lexsort([case["gains"], scores.round(9)])[-1]
    vote = (case["P"][rows].argmax(axis=1) == truth) @ weights
    on_test = (case["test"] == truth_of_test).mean(axis=1)
    vote_on_test = np.mean(case["vote test"] == truth_of_test)
    plain = case["plain"]
    decided = on_test[plain] if scores[plain] > vote else vote_on_test
    return on_test[pick], decided, abs(vote - vote_on_test)


def measure(case, task):
    """Yield a row for each rule and number of labels, mean over repeats."""
    vote = np.mean(case["vote test"] == case["truth of test"])
    for rule, (query, repeats) in RULES.items():
        for n in COUNTS:
            found = []
            for seed in range(repeats):
                rows, weights = query(case, n, np.random.RandomState(seed))
                found.append(judge(case, rows, weights))
            row = {"cluster": task.cluster, "mark": task.mark, "rule": rule, "n": n, "vote": vote}
            yield row | dict(zip(KINDS, np.mean(found, axis=0), strict=True))


def print_table(frame):
    """Print means over clusters, and differences to random draws with standard errors."""
    means = frame.groupby(["n", "rule", "cluster"])[[*KINDS, "vote"]].mean()
    n_clusters = frame["cluster"].nunique()
    print(f"\n{len(frame) // len(RULES) // len(COUNTS)} tasks, {n_clusters} clusters\n")
    print("| labels | rule | accuracy of the pick | of the decision | error of the estimate |")
    print("|---:|---|---:|---:|---:|")
    for n in COUNTS:
        base = means.loc[n, "random"]
        print(f"| {n} | (the vote, no labels) | {base['vote'].mean():.4f} | | |")
        for rule in RULES:
            own, cells = means.loc[n, rule], []
            for kind in KINDS:
                change = (own[kind] - base[kind]).to_numpy()
                error = change.std(ddof=1) / np.sqrt(len(change))
                shown = "" if rule == "random" else f" ({change.mean():+.4f} ± {error:.4f})"
                cells.append(f"{own[kind].mean():.4f}{shown}")
            print(f"| {n} | {rule} | {' | '.join(cells)} |")


def main():
    """Read the stored outputs and compare the rules."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--per-collection", type=int, default=8, help="most tasks of a collection")
    parser.add_argument("--mark", choices=("shift", "control"), help="tasks of this mark only")
    options = parser.parse_args()
    tasks = {task.name: task for task in read_tasks()}
    lines = [one for one in read_results([options.results]) if one["status"] == OK]
    votes = {one["task"]: one for one in lines if one["method"] == VOTE}
    rows, taken = [], {}
    for line in lines:
        task = tasks.get(line["task"])
        if line["method"] != "auto" or task is None or task.name not in votes:
            continue
        if options.mark not in (None, task.mark):
            continue
        if taken.setdefault(task.collection, 0) >= options.per_collection:
            continue
        path = arrays_path(options.results, line)
        case = read_case(line, votes[task.name], task, options.data, path)
        if case is not None:
            taken[task.collection] += 1
            rows += measure(case, task)
    print_table(pd.DataFrame(rows))


if __name__ == "__main__":
    main()
