"""Fit the expected scores of the assessment, and judge it with whole clusters left out.

    covshift-bench run DATA --methods auto --made-up 1 --out runs/results.jsonl --jobs 2
    covshift-bench fresh FRESH
    covshift-bench run FRESH --list fresh --methods auto --out runs/fresh.jsonl --jobs 2
    python benchmarks/assessment.py DATA runs/results.jsonl --fresh FRESH runs/fresh.jsonl \
        [--jobs 2] [--write] [--out FOLDER]

For each task, the vote is that of coefficients of `covshift.selection.expected_gains` which were
fitted without the task's cluster: for the fresh collections those of all design tasks, which are
the ones of the package. Its quantities (`covshift.selection.expected_scores`) and its true scores
on the test rows are what the coefficients of ``expected_scores.json`` are fitted to. Clusters weigh
the same. Made-up tasks, where they were run, count for the vote only: how far an estimate is off is
a fact about real data. All that is judged is predicted by coefficients fitted without the task's
cluster. ``--write`` writes those of all tasks. ``--without A B --expectations FILE`` leaves
clusters A and B out of everything and writes to another file, for `bearings.py` and other judges of
these. ``--out`` has the tables of ``docs/results/assessment.md`` and a line for each task.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from calibrate import (
    OBJECTIVES,
    fit_coefficients,
    left_out_coefficients,
    read_cases,
    restore,
    stored_benches,
)
from covshift_bench import fresh
from covshift_bench.methods.automatic import BALANCED, N_MEMBERS
from covshift_bench.tasks import MADE_UP, read_tasks
from joblib import Parallel, delayed
from scipy.optimize import nnls
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import covshift.selection
from covshift.measures import calibrated_confidence, clustered_bootstrap_interval
from covshift.measures.labeled_scores import paired_gain
from covshift.predictors.objectives import METRICS, decide_classes
from covshift.selection.assessment import (
    MAX_RISK,
    MIN_GAIN,
    LabeledRows,
    judge_determinability,
    score_labels,
    with_labels,
)
from covshift.selection.bench import Output
from covshift.selection.choice import held_out_weights, weigh_labels
from covshift.selection.expected_scores import (
    ADAPTED,
    DISAGREEMENT,
    EXPECTED_GAIN,
    GAIN,
    LEVEL,
    LOG_COMMITTEE,
    MARGIN,
    MODELS,
    NORMAL_90,
    PLAIN,
    Predictive,
    linear,
    quantities_of,
    view,
)
from covshift.selection.rehearsals import SOURCE_CV, SOURCE_DOMAINS
from covshift.selection.vote import vote_weights

COMMAND = (
    "python benchmarks/assessment.py DATA runs/results.jsonl --fresh FRESH runs/fresh.jsonl --write"
)
FILE = Path(covshift.selection.__file__).with_name("expected_scores.json")
PROBABILITIES = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995,
)  # fmt: skip
DROPS = (
    "moved", "class shares", "source domains", "confidence", "thresholded confidence",
    "calibrated confidence", "by the vote", "by all", "by unadapted",
)  # fmt: skip
GAINS = ("gain by the vote", "gain by all")
OF_CHANGES = (
    "one", "log disagreement", LOG_COMMITTEE, "separation", "few rows", DISAGREEMENT,
    "disagreement, where separate",
)  # fmt: skip
OF_SCORES = (
    *OF_CHANGES, "one domain", "size of confidence", SOURCE_CV, "committee",
    "size of calibrated confidence",
)  # fmt: skip
DIFFICULTY = {PLAIN: OF_SCORES, ADAPTED: OF_SCORES, GAIN: OF_CHANGES}
# Of the chances. A loss in balanced accuracy is not foreseen by any quantity: it has its base rate.
CHANCES = {
    "accuracy": {
        "loss": ("one", LOG_COMMITTEE),
        "adapt": ("one",),
        "keep": ("one", LOG_COMMITTEE, EXPECTED_GAIN),
    },
    BALANCED: {
        "loss": ("one",),
        "adapt": ("one",),
        "keep": ("one", LOG_COMMITTEE, EXPECTED_GAIN),
    },
}
FRESH = "fresh"  # tasks of the fresh collections
FORESEEN = ("one", LOG_COMMITTEE)  # of a loss, judged for either objective
# Of standardized quantities, as multiples of the total weight: of means, and of log scales.
RIDGE, SCALE_RIDGE = 0.3, 0.1
# Gains are clipped so to find what tells of them, and so to find how large they are: a few tasks
# gain ten times as much as the others, and would decide alone what counts.
CLIP, SIZE_CLIP = 0.1, 0.25
# Tasks of a cluster resemble each other: by the correlations of their scaled residuals (.16 to .24)
# eight of them count as about three.
TASKS_PER_CLUSTER = 3
SMALLEST = 0.005  # added to residuals before their logarithm
N_PARTS = 10  # of the clusters, for residuals of fits that left them out
N_LABELS = (0, 20, 80)
MODEL_WORDS = {PLAIN: "plain model", "recommended": "recommended model", GAIN: "gain of the vote"}
LEAST_GAINS = (0.0, 0.005, 0.0075, 0.01, 0.015, 0.02)
MIN_TEST_ROWS = 200  # of the tasks that harm is counted on


# From a stored bench to a record ------------------------------------------------------------------


def read_records(stored, cases, betas):
    """Return the records of a task: a dict for each objective and number of labels.

    ORACLE: reads test labels, and labels of as many target rows as ``n_labels`` says.
    """
    with threadpool_limits(1):
        line, drawn = stored.line, stored.draw()
        bench, tests = restore(drawn, stored.path, line["seed"])
        classes = np.unique(drawn.y_source)
        truth, target_codes = (np.searchsorted(classes, y) for y in (drawn.y_test, drawn.y_target))
        P_test = [None if x is None else bench.calibrated_of(i, x) for i, x in enumerate(tests)]
        determinability = judge_determinability(bench.problem)
        kept = bench.problem.X_target.shape[0] == len(target_codes)
        order = np.random.RandomState(line["seed"]).permutation(len(bench.problem.X_target))
        records = []
        for case, beta in zip(cases, betas, strict=True):
            bench.metric = METRICS[case.objective]
            gains = case.features @ beta
            gains[[one is None for one in P_test]] = np.nan
            for n_labels in N_LABELS if kept else N_LABELS[:1]:
                if n_labels > len(order) // 2:
                    continue
                rows = order[:n_labels]
                found = make_record(bench, case, gains, P_test, truth, (rows, target_codes[rows]))
                records.append(found | {"determinable": determinability.determinable,
                    "overlap": determinability.overlap})  # fmt: skip
        return records


def make_record(bench, case, gains, P_test, truth, labels):
    """Return quantities and true scores of plain model and vote, given some target labels."""
    rows, codes = labels
    balanced, plain = case.objective == BALANCED, case.plain
    on_target = bench.calibrated(bench.target)
    if len(rows):
        outputs = [one if one.logits is None else Output(one.logits[rows]) for one in bench.target]
        known = LabeledRows(
            bench.calibrated(outputs),
            codes,
            held_out_weights(bench, outputs, codes, gains, case.allowed, N_MEMBERS, plain),
        )
        gains = weigh_labels(bench, outputs, codes, gains, case.allowed)
    weights = vote_weights(gains, case.allowed, N_MEMBERS, plain)
    quantities = quantities_of(
        bench, case.objective, weights, plain, case.allowed, reweighed=not balanced
    )
    shares = bench.problem.class_shares
    views = view(P_test, bench, weights, plain, reweighed=not balanced)
    predicted = [decide_classes(P, case.objective, shares) for P in views]
    scores = [bench.metric(truth, one) for one in predicted]
    gain = paired_gain(truth, predicted[1], predicted[0], case.objective)
    sampled = None
    if len(rows):
        some = known.views(bench, plain, reweighed=not balanced)
        sampled = score_labels(some, codes, case.objective, shares)
    cbpe = [
        calibrated_confidence(
            P, metric=case.objective, predicted_target=decide_classes(P, case.objective, shares)
        )
        for P in view(on_target, bench, weights, plain, reweighed=not balanced)
    ]
    return {
        "task": case.task.name,
        "cluster": case.task.cluster,
        "mark": case.task.mark,
        "objective": case.objective,
        "n_labels": len(rows),
        "n_test": len(truth),
        "n_target": len(bench.problem.X_target),
        "n_domains": len(bench.problem.source_domains),
        "same": bool(np.count_nonzero(weights) == 1 and weights[plain] > 0),
        PLAIN: scores[0],
        ADAPTED: scores[1],
        GAIN: scores[1] - scores[0],
        "sure_harm": scores[1] - scores[0] < -MARGIN and list(gain.values())[2] < 0,
        "cbpe": cbpe[0],
        "cbpe, vote": cbpe[1],
        "quantities": quantities,
        "sampled": sampled,
    }


# Fitting ------------------------------------------------------------------------------------------


def cluster_weights(frame):
    """Weights of tasks: those of a cluster sum to one."""
    return 1 / frame.groupby("cluster")["task"].transform("count").to_numpy(dtype=float)


def matrix(frame, names):
    """Return quantities as a matrix; one that a task does not have is 0."""
    return np.array([[one.get(name, 0.0) for name in names] for one in frame["quantities"]])


def fit_ridge(X, y, weights, names, ridge=RIDGE):
    """Return the coefficients of a weighted ridge regression; that of "one" is not penalized."""
    scale = np.sqrt(np.average(X**2, axis=0, weights=weights))
    scale[scale == 0] = 1
    Z = X / scale
    penalty = np.array([0.0 if name == "one" else ridge for name in names]) * weights.sum()
    A = Z.T @ (Z * weights[:, None]) + np.diag(penalty)
    return np.linalg.solve(A, Z.T @ (weights * y)) / scale


def fit_nonnegative(X, y, weights):
    """Return the coefficients of a weighted ridge regression without negative ones.

    Each quantity is an estimate of the gain: a negative coefficient would take it for its opposite.
    """
    scale = np.sqrt(np.average(X**2, axis=0, weights=weights))
    scale[scale == 0] = 1
    root = np.sqrt(weights)
    penalty = np.sqrt(RIDGE * weights.sum()) * np.eye(X.shape[1])
    A = np.concatenate([X / scale * root[:, None], penalty])
    return nnls(A, np.concatenate([root * y, np.zeros(X.shape[1])]))[0] / scale


def fit_means(frame, weights):
    """Return the coefficients of plain score and gain by quantity."""
    score = matrix(frame, [SOURCE_CV])[:, 0]
    drops = fit_ridge(matrix(frame, DROPS), score - frame[PLAIN].to_numpy(), weights, DROPS)
    X, gains = matrix(frame, GAINS), frame[GAIN].to_numpy()
    of_gain = fit_nonnegative(X, np.clip(gains, -CLIP, CLIP), weights)
    found = X @ of_gain
    of_gain *= np.average(np.clip(gains, -SIZE_CLIP, SIZE_CLIP) * found, weights=weights)
    of_gain /= np.average(found**2, weights=weights)
    return {
        PLAIN: {SOURCE_CV: 1.0, **dict(zip(DROPS, -drops, strict=True))},
        GAIN: dict(zip(GAINS, of_gain, strict=True)),
    }


def expected_values(frame, means):
    """Return the expected values of the three scores."""
    values = {
        name: np.array([linear(one, means[name]) for one in frame["quantities"]])
        for name in (PLAIN, GAIN)
    }
    return values | {ADAPTED: values[PLAIN] + values[GAIN]}


def fit_expectations(everything):
    """Return the coefficients of all three scores from the records of an objective.

    Those with labels say how far intervals with labels are stretched, and nothing else.
    """
    frame = everything[everything["n_labels"] == 0]
    labeled = everything[everything["n_labels"] > 0]
    weights = cluster_weights(frame)
    means = fit_means(frame, weights)
    residuals = {name: np.full(len(frame), np.nan) for name in MODELS}
    of_labeled = {name: np.full(len(labeled), np.nan) for name in MODELS}
    names = sorted(frame["cluster"].unique())
    parts = {one: i % N_PARTS for i, one in enumerate(names)}
    part, part_labeled = (one["cluster"].map(parts).to_numpy() for one in (frame, labeled))
    for number in range(N_PARTS):
        out, out_labeled = part == number, part_labeled == number
        fold = fit_means(frame[~out], weights[~out])
        values = expected_values(frame[out], fold)
        values_labeled = expected_values(labeled[out_labeled], fold)
        for name in MODELS:
            residuals[name][out] = frame.loc[out, name].to_numpy() - values[name]
            of_labeled[name][out_labeled] = values_labeled[name]
    fitted = {"label stretch": {}}
    for name in MODELS:
        D, sizes = matrix(frame, DIFFICULTY[name]), np.log(np.abs(residuals[name]) + SMALLEST)
        gamma = fit_ridge(D, sizes, weights, DIFFICULTY[name], SCALE_RIDGE)
        scaled = residuals[name] / np.exp(D @ gamma)
        fitted[name] = {"mean": means[name]} if name in means else {}
        fitted[name] |= {
            "log scale": dict(zip(DIFFICULTY[name], gamma, strict=True)),
            "quantiles": [
                weighted_quantile(scaled, weights, level(p, names)) for p in PROBABILITIES
            ],
        }
        if len(labeled):
            found = predict_one(labeled, fitted[name], name, of_labeled[name])
            scale = [one.deviation for one in found]
            off = np.abs(labeled[name] - [one.value for one in found]) / scale
            size = weighted_quantile(off.to_numpy(), cluster_weights(labeled), LEVEL)
            fitted["label stretch"][name] = size / NORMAL_90
    return fitted


def level(p, clusters):
    """Return the level of a quantile of n values that a new value is below with probability p."""
    n = TASKS_PER_CLUSTER * len(clusters)
    return float(np.clip(0.5 + (p - 0.5) * (n + 1) / n + np.sign(p - 0.5) / (2 * n), 0, 1))


def weighted_quantile(values, weights, p):
    """Return a quantile of weighted values."""
    order = np.argsort(values)
    shares = np.cumsum(weights[order])
    shares = (shares - weights[order] / 2) / shares[-1]
    return float(np.interp(p, shares, values[order]))


def rounded(fitted):
    """Return coefficients with four decimals, as a file has them."""
    if isinstance(fitted, dict):
        return {name: rounded(one) for name, one in fitted.items()}
    return [rounded(one) for one in fitted] if isinstance(fitted, list) else round(fitted, 4)


# Judging ------------------------------------------------------------------------------------------


def predict(frame, fitted):
    """Return the predictive distributions of each record, by the three scores."""
    values = expected_values(frame, {name: fitted[name]["mean"] for name in (PLAIN, GAIN)})
    return {
        name: predict_one(frame, fitted[name], name, values[name], fitted["label stretch"])
        for name in MODELS
    }


def predict_one(frame, fitted, name, values, stretch=None):
    """Return the predictive distributions of one of the scores; None: nothing is stretched."""
    p, quantiles = np.array(PROBABILITIES), np.array(fitted["quantiles"])
    place, found = MODELS.index(name), []
    for value, (_, row) in zip(values, frame.iterrows(), strict=True):
        scale = np.exp(linear(row["quantities"], fitted["log scale"]))
        one = Predictive(float(value), p, float(value) + scale * quantiles)
        if row["sampled"] is not None:
            factor = 1.0 if stretch is None else stretch[name]
            one = with_labels(one, row["sampled"][place], row["n_labels"], row["n_target"], factor)
        found.append(one)
    return found


def left_out_frame(frame):
    """Return records with estimates and intervals by coefficients without their cluster."""
    parts = []
    for cluster in frame["cluster"].unique():
        fitted = fit_expectations(frame[frame["cluster"] != cluster])
        part = frame[frame["cluster"] == cluster].copy()
        predicted = predict(part, fitted)
        for name in MODELS:
            bounds = (-1, 1) if name == GAIN else (0, 1)
            estimates = [one.interval().clipped(*bounds) for one in predicted[name]]
            for field in ("value", "low", "high"):
                part[f"{name} {field}"] = [getattr(one, field) for one in estimates]
        part["loss"] = [one.below(-MARGIN) for one in predicted[GAIN]]
        parts.append(part)
    judged = pd.concat(parts).sort_index()
    with_chances(judged, CHANCES[judged["objective"].iloc[0]])
    return judged


# Chances -----------------------------------------------------------------------------------------


def fit_chances(frame, terms):
    """Return the coefficients of each chance from records with estimates that left them out.

    Only records without labels count, and for advice that is right only those with that advice.
    """
    frame = frame[frame["n_labels"] == 0]
    enough, gain = is_enough(frame, MIN_GAIN), frame[GAIN].to_numpy()
    everything = np.ones(len(frame), dtype=bool)
    outcomes = {
        "loss": (everything, gain < -MARGIN),
        "adapt": (enough, gain >= 0),
        "keep": (~enough, gain <= MARGIN),
    }
    return {
        name: fit_logistic(frame[rows], came_true[rows], terms[name])
        for name, (rows, came_true) in outcomes.items()
        if name in terms
    }


def fit_logistic(frame, came_true, names):
    """Return the coefficients of a logistic regression, clusters weighing the same."""
    weights = cluster_weights(frame)
    if names == ("one",):
        rate = np.average(came_true, weights=weights)
        return {"one": float(logit(rate))}
    X = chance_matrix(frame, names[1:])
    scale = X.std(axis=0)
    model = LogisticRegression(C=10.0).fit(X / scale, came_true, sample_weight=weights)
    return dict(zip(names, [*model.intercept_, *(model.coef_[0] / scale)], strict=True))


def chance_matrix(frame, names):
    """Return the quantities of chances; the expected gain is one of them."""
    known = {EXPECTED_GAIN: frame["gain value"].to_numpy()}
    columns = [known[one] if one in known else matrix(frame, [one])[:, 0] for one in names]
    return np.column_stack([*columns, np.zeros((len(frame), 0))])


def with_chances(frame, terms):
    """Add the chances of each record, by coefficients without its cluster; labels take over."""
    for cluster in frame["cluster"].unique():
        out = (frame["cluster"] == cluster).to_numpy() & (frame["n_labels"] == 0).to_numpy()
        fitted = fit_chances(frame[frame["cluster"] != cluster], terms)
        for name, beta in fitted.items():
            X = chance_matrix(frame[out], list(beta)[1:])
            values = list(beta.values())
            frame.loc[out, name] = expit(values[0] + X @ np.array(values[1:]))


def is_enough(frame, min_gain):
    """Return whether the expected gain is large enough."""
    value = frame["gain value"]
    return ((value > 0) & (value >= min_gain) & ~frame["same"]).to_numpy()


def follow(frame, min_gain):
    """Return whether the vote is recommended."""
    return is_enough(frame, min_gain) & (frame["loss"] <= MAX_RISK).to_numpy()


def cluster_mean(values, frame, mask=None):
    """Return the mean over clusters of means over their tasks."""
    series = pd.Series(np.asarray(values, dtype=float), index=frame.index)
    if mask is not None:
        series = series[mask]
    return float(series.groupby(frame.loc[series.index, "cluster"]).mean().mean())


def parts_of(frame):
    """Return masks of the parts that are judged."""
    return {
        "all": np.ones(len(frame), dtype=bool),
        "shift": (frame["mark"] == "shift").to_numpy(),
        "controls": (frame["mark"] == "control").to_numpy(),
        "one source domain": (frame["n_domains"] == 1).to_numpy(),
        "several": (frame["n_domains"] > 1).to_numpy(),
        FRESH: frame["task"].isin([task.name for task in read_tasks(fresh.LIST)]).to_numpy(),
    }


def judge_intervals(frame, name):
    """Return coverage, width and score of the 90 % intervals of a score, by part."""
    low, high, true = (
        frame[f"{name} low"].to_numpy(), frame[f"{name} high"].to_numpy(), frame[name].to_numpy()
    )  # fmt: skip
    covered = (low <= true) & (true <= high)
    width = high - low
    score = width + 20 * (np.maximum(low - true, 0) + np.maximum(true - high, 0))
    by_cluster = pd.Series(covered).groupby(frame["cluster"].to_numpy()).mean()
    found = {}
    for part, mask in parts_of(frame).items():
        found[f"cover {part}"] = cluster_mean(covered, frame, mask)
    found["clusters below 70 %"] = float((by_cluster < 0.7).mean())
    for part in ("all", "shift", "controls"):
        found[f"width {part}"] = cluster_mean(width, frame, parts_of(frame)[part])
    found["interval score"] = cluster_mean(score, frame)
    return found


def constant_width_score(frame, name):
    """Return the interval score of constant-width intervals around left-out-domain validation.

    Conformal: the same quantiles of residuals for all tasks, from the other clusters.
    """
    key = "plain" if name == PLAIN else "vote"
    centers = np.array(
        [q.get(f"{SOURCE_DOMAINS}, {key}", q[f"{SOURCE_CV}, {key}"]) for q in frame["quantities"]]
    )
    residuals, clusters = frame[name].to_numpy() - centers, frame["cluster"].to_numpy()
    weights, scores = cluster_weights(frame), np.empty(len(frame))
    for cluster in np.unique(clusters):
        out = clusters == cluster
        q = [weighted_quantile(residuals[~out], weights[~out], p) for p in (0.05, 0.95)]
        low, high = (np.clip(centers[out] + one, 0, 1) for one in q)
        true = frame.loc[out, name].to_numpy()
        scores[out] = high - low + 20 * (np.maximum(low - true, 0) + np.maximum(true - high, 0))
    return cluster_mean(scores, frame)


def absolute_errors(frame, name):
    """Return the mean absolute errors of the estimates of a score, on shift and on controls."""
    key = "plain" if name == PLAIN else "vote"
    of = frame["quantities"]
    estimates = {
        "assessment": frame[f"{name} value"].to_numpy(),
        "source CV": np.array([q[f"{SOURCE_CV}, {key}"] for q in of]),
        "left-out domains": np.array(
            [q.get(f"{SOURCE_DOMAINS}, {key}", q[f"{SOURCE_CV}, {key}"]) for q in of]
        ),
        "CBPE": frame["cbpe" if name == PLAIN else "cbpe, vote"].to_numpy(),
    }
    if name == PLAIN:
        estimates["DoC"] = np.array([q[SOURCE_CV] - q["confidence"] for q in of])
        estimates["ATC"] = np.array([q[SOURCE_CV] - q["thresholded confidence"] for q in of])
        for others in ("the vote", "all", "unadapted"):
            estimates[f"calibrated, by {others}"] = np.array(
                [q[SOURCE_CV] - q[f"by {others}"] for q in of]
            )
    parts, true = parts_of(frame), frame[name].to_numpy()
    return {
        key: [cluster_mean(np.abs(x - true), frame, parts[part]) for part in ("shift", "controls")]
        for key, x in estimates.items()
    }


def judge_advice(frame, min_gain):
    """Return gains, harm and how often the advice to adapt is given, for a least gain."""
    chosen, gain = follow(frame, min_gain), frame[GAIN].to_numpy()
    got = np.where(chosen, gain, 0.0)
    parts, large = parts_of(frame), (frame["n_test"] >= MIN_TEST_ROWS).to_numpy()
    found = {"followed": float(chosen.mean())}
    for part in ("shift", "controls"):
        found[f"gain {part}"] = cluster_mean(got, frame, parts[part])
        found[f"vote {part}"] = cluster_mean(gain, frame, parts[part])
        found[f"harm {part}"] = cluster_mean(got < -MARGIN, frame, parts[part] & large)
    found["gain"], found["vote"] = cluster_mean(got, frame), cluster_mean(gain, frame)
    found["harm"] = cluster_mean(got < -MARGIN, frame, large)
    found["sure harm"] = cluster_mean(frame["sure_harm"].to_numpy() & chosen, frame)
    found["advised where gain > .05"] = float(chosen[gain > 0.05].mean())
    found["advised where gain < 0"] = float(chosen[gain < 0].mean())
    for name, other in (("never", np.zeros(len(frame))), ("always", gain)):
        low, high = clustered_bootstrap_interval(got - other, frame["cluster"], random_state=0)
        found[f"over {name}"] = (cluster_mean(got - other, frame), low, high)
    return found


def judge_losses(frame):
    """Return the Brier scores of a foreseen loss and of the base rate, and the skill."""
    frame = frame.copy()
    with_chances(frame, {"loss": FORESEEN})
    loss = (frame[GAIN] < -MARGIN).to_numpy(dtype=float)
    weights, clusters = cluster_weights(frame), frame["cluster"].to_numpy()
    base = np.array(
        [np.average(loss[clusters != c], weights=weights[clusters != c]) for c in clusters]
    )
    ours, theirs = (frame["loss"].to_numpy() - loss) ** 2, (base - loss) ** 2
    low, high = clustered_bootstrap_interval(theirs - ours, frame["cluster"], random_state=0)
    brier, brier_base = cluster_mean(ours, frame), cluster_mean(theirs, frame)
    return {"Brier": brier, "base rate": brier_base, "skill": 1 - brier / brier_base,
            "difference": (brier_base - brier, low, high)}  # fmt: skip


def report(frame, min_gain):
    """Return all figures of an objective as nested plain data."""
    plain_only = frame[frame["n_labels"] == 0]
    recommended = plain_only.copy()
    found = {"tasks": len(plain_only), "clusters": plain_only["cluster"].nunique()}
    for n_labels in N_LABELS:
        some = frame[frame["n_labels"] == n_labels].copy()
        chosen = follow(some, min_gain)
        for field in ("", " low", " high", " value"):
            some[f"recommended{field}"] = np.where(
                chosen, some[f"{ADAPTED}{field}"], some[f"{PLAIN}{field}"]
            )
        if n_labels == 0:
            recommended = some
        found[f"labels {n_labels}"] = {
            name: judge_intervals(some, name) for name in (PLAIN, "recommended", GAIN)
        } | {"advice": judge_advice(some, min_gain)}
    found["constant width"] = {
        name: constant_width_score(recommended, name) for name in (PLAIN, ADAPTED)
    }
    found["errors"] = {name: absolute_errors(plain_only, name) for name in (PLAIN, ADAPTED)}
    found["losses"] = judge_losses(plain_only)
    value = plain_only["gain value"]
    found["auc"] = [float(roc_auc_score(plain_only[GAIN] > least, value)) for least in (0.02, 0.0)]
    found["advice"] = {
        n_labels: {
            least: judge_advice(frame[frame["n_labels"] == n_labels], least)
            for least in LEAST_GAINS
        }
        for n_labels in N_LABELS
    }
    told = (plain_only["overlap"] >= 0.8) | (plain_only["n_domains"] >= 3)
    found["undeterminable"] = {
        "with overlap or three domains": float(1 - plain_only.loc[told, "determinable"].mean()),
        "all": float(1 - plain_only["determinable"].mean()),
    }
    return found


# The tables of the results page -------------------------------------------------------------------


def tables(figures, min_gain):
    """Return the tables of the results page as Markdown."""
    lines = []
    for objective, found in figures.items():
        name = objective.replace("_", " ").capitalize()
        lines += [
            f"## {name}",
            "",
            f"{found['tasks']} tasks in {found['clusters']} clusters, each judged by coefficients "
            "that were fitted without its cluster.",
            "",
            "| 90 % intervals | covered | shift | controls | one source domain | several | fresh | "
            "clusters below 70 % | mean width | shift | controls |",
            "|---|" + "---:|" * 10,
        ]
        for n_labels in N_LABELS:
            after = f", {n_labels} labels" if n_labels else ""
            for model in (PLAIN, "recommended", GAIN):
                one = found[f"labels {n_labels}"][model]
                parts = ("all", "shift", "controls", "one source domain", "several", FRESH)
                covered = [f"{one[f'cover {part}']:.0%}" for part in parts]
                widths = [f"{one[f'width {part}']:.2f}" for part in parts[:3]]
                cells = [*covered, f"{one['clusters below 70 %']:.0%}", *widths]
                lines.append(f"| {MODEL_WORDS[model]}{after} | " + " | ".join(cells) + " |")
        plain, constant = found["labels 0"][PLAIN], found["constant width"][PLAIN]
        lines += [
            "",
            f"Interval score of the plain model: {plain['interval score']:.3f}; of intervals of "
            f"constant width around left-out-domain validation: {constant:.3f} "
            f"({plain['interval score'] / constant:.2f} times).",
            "",
            "| mean absolute error | plain model: shift | controls | vote: shift | controls |",
            "|---|---:|---:|---:|---:|",
        ]
        errors = found["errors"]
        for estimate in errors[PLAIN]:
            pairs = [errors[model].get(estimate, ("", "")) for model in (PLAIN, ADAPTED)]
            cells = [f"{one:.3f}" if one != "" else "" for pair in pairs for one in pair]
            lines.append(f"| {estimate} | " + " | ".join(cells) + " |")
        loss = found["losses"]
        lines += [
            "",
            f"Probability of a loss by the committee: Brier score {loss['Brier']:.3f}, base rate "
            f"{loss['base rate']:.3f}, skill {loss['skill']:.2f}; difference "
            f"{shown_interval(loss['difference'])}. The expected gain tells gains above .02 from "
            f"the rest with an AUC of {found['auc'][0]:.2f}, and gains above 0 with "
            f"{found['auc'][1]:.2f}.",
            "",
            "| labels | `min_gain` | advised | gain: shift | controls | harm | sure harm | "
            "advised where gain > .05 | where gain < 0 | over never adapting | over always |",
            "|---:|" + "---:|" * 10,
        ]
        judged = [
            (n_labels, least, advice)
            for n_labels, by_gain in found["advice"].items()
            for least, advice in by_gain.items()
        ]
        for n_labels, least, advice in judged:
            mark = "**" if least == min_gain else ""
            cells = [
                f"{advice['followed']:.0%}", f"{advice['gain shift']:+.3f}",
                f"{advice['gain controls']:+.3f}", f"{advice['harm']:.1%}",
                f"{advice['sure harm']:.1%}", f"{advice['advised where gain > .05']:.0%}",
                f"{advice['advised where gain < 0']:.0%}", shown_interval(advice["over never"]),
                shown_interval(advice["over always"]),
            ]  # fmt: skip
            lines.append(f"| {n_labels} | {mark}{least:g}{mark} | " + " | ".join(cells) + " |")
        vote = found["advice"][0][0.0]
        lines += [
            "",
            f"The vote without any guard gains {vote['vote shift']:+.3f} on shift tasks and "
            f"{vote['vote controls']:+.3f} on controls.",
            "",
        ]
    return "\n".join(lines)


def shown_interval(values):
    """Return a value with its 95 % interval."""
    value, low, high = values
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


def read_all(options):
    """Return the records of all stored tasks, the votes by coefficients without their clusters."""
    run = Parallel(n_jobs=options.jobs)
    stored = stored_benches(options.data, options.results)
    by_task = run(delayed(read_cases)(one) for one in stored)
    of_objective = [[cases[i] for cases in by_task] for i in range(len(OBJECTIVES))]
    left_out = [left_out_coefficients(cases) for cases in of_objective]
    jobs = [
        delayed(read_records)(one, cases, [beta[one.task.cluster] for beta in left_out])
        for one, cases in zip(stored, by_task, strict=True)
        if one.task.collection != MADE_UP
    ]
    if options.fresh is not None:
        betas = [fit_coefficients(cases) for cases in of_objective]
        stored = stored_benches(*options.fresh, fresh.LIST)
        by_task = run(delayed(read_cases)(one) for one in stored)
        jobs += [
            delayed(read_records)(one, cases, betas)
            for one, cases in zip(stored, by_task, strict=True)
        ]
    return pd.DataFrame([one for of_task in run(jobs) for one in of_task])


def main():
    """Read the stored outputs, fit, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--fresh", type=Path, nargs=2, metavar=("FOLDER", "RESULTS"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gain", type=float, default=MIN_GAIN, help="min_gain that is judged")
    parser.add_argument("--write", action="store_true", help="write expected_scores.json")
    parser.add_argument("--out", type=Path, help="folder for tables.md and tasks.csv")
    parser.add_argument("--without", nargs="*", default=[], metavar="CLUSTER")
    parser.add_argument("--expectations", type=Path, help="file for those without these clusters")
    options = parser.parse_args()
    if bool(options.without) != bool(options.expectations) or (options.without and options.write):
        parser.error("--without and --expectations belong together, and not with --write")
    everything = read_all(options)
    written = {"command": COMMAND, "probabilities": list(PROBABILITIES)}
    figures, judged = {}, []
    for objective in OBJECTIVES:
        used = (everything["objective"] == objective) & ~everything["cluster"].isin(options.without)
        frame = everything[used].reset_index(drop=True)
        written[objective] = rounded(fit_expectations(frame))
        judged.append(left_out_frame(frame))
        found = rounded(fit_chances(judged[-1], CHANCES[objective]))
        written[objective] = {"chances": found} | written[objective]
        figures[objective] = report(judged[-1], options.gain)
    print(tables(figures, options.gain))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "tables.md").write_text(tables(figures, options.gain), encoding="utf-8")
        table = pd.concat(judged).drop(columns=["quantities", "sampled"])
        table.to_csv(options.out / "tasks.csv", index=False, float_format="%.5g")
    if options.write or options.without:
        facts = {
            "real tasks": pd.concat(judged)["task"].nunique(),
            "clusters": pd.concat(judged)["cluster"].nunique(),
        }
        facts |= {"without": options.without} if options.without else {}
        first = {"command": written.pop("command")}
        path = options.expectations or FILE
        path.write_text(json.dumps(first | facts | written, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
