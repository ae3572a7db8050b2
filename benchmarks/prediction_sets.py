"""Coverage and size of 90 % prediction sets, and expected scores of saved models, on real tasks.

    covshift-bench run DATA --methods auto --out runs/results.jsonl --jobs 2
    covshift-bench fresh FRESH
    covshift-bench run FRESH --list fresh --methods auto --out runs/fresh.jsonl --jobs 2
    python benchmarks/prediction_sets.py DATA runs/results.jsonl --fresh FRESH runs/fresh.jsonl \
        --cache runs/stored --out runs/sets [--jobs 2] [--write]

Models are the plain model and the vote of `stored_votes.py`, as if they had been saved: held-out
source rows are those of the bench, the target rows represent the test rows, which are judged. For
each task, evidence and weights are those of `covshift.predictors.prediction_sets`, and the
quantities those of `covshift.selection.performance_estimate`. ``--write`` writes the coefficients
of ``performance_estimate.json`` from all tasks; all figures are by coefficients fitted without the
task's cluster. Tasks of the fresh collections are tables of their own: nothing of the sets was
chosen on them. ``--table FILE`` writes a line for each task and model.

ORACLE: test labels judge the sets, and give the threshold of the oracle-calibrated model.
"""

import argparse
import json
import pickle
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from assessment import N_PARTS, SMALLEST, fit_ridge, rounded, weighted_quantile
from covshift_bench import fresh
from covshift_bench.tasks import read_tasks
from joblib import Parallel, delayed
from stored_votes import MODELS, OBJECTIVES, VOTE, model_of, read_all
from threadpoolctl import threadpool_limits

import covshift.selection
from covshift.kernels.probabilities import class_shares, reweigh_probabilities
from covshift.predictors.class_proportions import SHARE_PRIOR, share_ratios
from covshift.predictors.held_out_rows import HeldOutRows
from covshift.predictors.objectives import METRICS, decide_classes
from covshift.predictors.prediction_sets import (
    UNWEIGHTED,
    Evidence,
    decide_coverage,
    gather_evidence,
    margin_of,
)
from covshift.selection.performance_estimate import (
    ESTIMATORS,
    SEPARATED,
    Scored,
    compare_rows,
    lean_on_calibration,
    performance_quantities,
    predict_performance,
)

ALPHA = 0.1
ORACLE, UNION = "ORACLE", "union"
MARGINS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)  # shares of alpha that were examined
PROBABILITIES = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995,
)  # fmt: skip
DROPS = (
    *ESTIMATORS, *(f"{name}, separated" for name in SEPARATED), "source domains", "separation",
    "outside",
)  # fmt: skip
CALIBRATED = "calibrated confidence"
AGREEMENT = 0.07
AGREEMENTS = (0.001, 0.03, 0.05, AGREEMENT, 0.1)  # that were examined
DIFFICULTY = (
    "one", "separation", "outside", "few rows", "one domain", "size of confidence", "reference",
)  # fmt: skip
COMMAND = (
    "python benchmarks/prediction_sets.py DATA runs/results.jsonl --fresh FRESH runs/fresh.jsonl "
    "--cache runs/stored --out runs/sets --write"
)
FILE = Path(covshift.selection.__file__).with_name("performance_estimate.json")


def judge_task(stored, gains):
    """Return records of a task: one for each model, with sets and with expected scores."""
    with threadpool_limits(1):
        compared = compare_rows(stored.X_source, stored.X_target)
        records = []
        for name in MODELS:
            model = model_of(stored, name, gains[OBJECTIVES[0]], OBJECTIVES[0])
            record = {
                "task": stored.task.name,
                "cluster": stored.task.cluster,
                "mark": stored.task.mark,
                "model": name,
                "n_domains": len(np.unique(stored.domain)),
            }
            record |= judge_sets(stored, model)
            for objective in OBJECTIVES:
                of_objective = model
                if objective != OBJECTIVES[0]:
                    of_objective = model_of(stored, name, gains[objective], objective)
                record[objective] = judge_estimates(
                    stored, of_objective, objective, compared, reweighed=name == VOTE
                )
            records.append(record)
        return records


def judge_sets(stored, model):
    """Return the evidence, and coverage and mean size of each kind of set."""
    held = HeldOutRows(stored.X_source, stored.codes, stored.domain, model.source)
    evidence, weightings = gather_evidence(held, stored.X_target, model.target, ALPHA)
    scores = 1 - model.source[np.arange(len(stored.codes)), stored.codes]

    def sets_at(alpha):
        return {
            name: one.thresholds(scores, stored.X_test, model.test, alpha) >= 1 - model.test
            for name, one in weightings.items()
        }

    sets = sets_at(ALPHA)
    sets |= {
        f"{UNION} {share}": np.any([*sets_at(ALPHA * share).values()], axis=0) for share in MARGINS
    }
    own = np.sort(1 - model.test[np.arange(len(stored.truth)), stored.truth])
    threshold = own[int(np.ceil((1 - ALPHA) * len(own))) - 1]
    sets[ORACLE] = 1 - model.test <= threshold
    rows = np.arange(len(stored.truth))
    return {
        "evidence": evidence._asdict(),
        "covered": {name: float(one[rows, stored.truth].mean()) for name, one in sets.items()},
        "size": {name: float(one.sum(axis=1).mean()) for name, one in sets.items()},
    }


def decide_rows(stored, model, P, objective, *, reweighed):
    """Return the class numbers that the objective chooses for rows of a task."""
    shares = class_shares(stored.codes, stored.n_classes)
    if reweighed and objective == OBJECTIVES[0]:
        P = reweigh_probabilities(P, share_ratios(model.target, shares, SHARE_PRIOR))
    return decide_classes(P, objective, shares)


def decide_task(stored, model, objective, *, reweighed):
    """Return the class numbers of held-out rows and of target rows."""
    return (
        decide_rows(stored, model, model.source, objective, reweighed=False),
        decide_rows(stored, model, model.target, objective, reweighed=reweighed),
    )


def judge_estimates(stored, model, objective, compared, *, reweighed):
    """Return quantities, single estimates and the true score of a model."""
    metric = METRICS[objective]
    held = HeldOutRows(stored.X_source, stored.codes, stored.domain, model.source)
    of_held, of_new = decide_task(stored, model, objective, reweighed=reweighed)
    of_test = decide_rows(stored, model, model.test, objective, reweighed=reweighed)
    reference = metric(stored.codes, of_held)
    drops = [
        reference - metric(codes, decide_rows(stored, model, P, objective, reweighed=False))
        for P, codes in model.domains
    ]
    scored = Scored(
        held, of_held, stored.X_target, model.target, of_new, objective,
        float(np.mean(drops)) if drops else 0.0,
    )  # fmt: skip
    quantities, estimates = performance_quantities(scored, compared)
    return {
        "quantities": quantities,
        "estimates": estimates,
        "true": metric(stored.truth, of_test),
    }


def read_records(options):
    """Return the records of all tasks, kept in ``--out``."""
    folder = options.out / "records"
    folder.mkdir(parents=True, exist_ok=True)
    stored, gains = read_all(
        options.data, options.results, options.cache, options.jobs, options.fresh
    )
    jobs = [delayed(_kept)(one, of, folder) for one, of in zip(stored, gains, strict=True)]
    found = Parallel(n_jobs=options.jobs)(jobs)
    return [record for records in found for record in records]


def _kept(stored, gains, folder):
    file = folder / f"{stored.task.rows}-{zlib.crc32(stored.task.name.encode()):08x}.pickle"
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_bytes(pickle.dumps(judge_task(stored, gains)))
        part.replace(file)
    return pickle.loads(file.read_bytes())


# Expected scores ----------------------------------------------------------------------------------


def frame_of(records, objective):
    """Return quantities, single estimates and true scores of all models as a frame."""
    return pd.DataFrame(
        [
            {key: record[key] for key in ("task", "cluster", "mark", "model")}
            | {key: record[objective][key] for key in ("quantities", "estimates", "true")}
            for record in records
        ]
    )


def matrix(frame, names):
    """Return quantities as a matrix."""
    return np.array([[one.get(name, 0.0) for name in names] for one in frame["quantities"]])


def cluster_weights(frame):
    """Weights of records: those of a cluster sum to one."""
    return 1 / frame.groupby("cluster")["task"].transform("count").to_numpy(dtype=float)


def fit_mean(frame, weights):
    """Return the coefficients of the expected score by quantity."""
    fall = matrix(frame, ["reference"])[:, 0] - frame["true"].to_numpy()
    beta = fit_ridge(matrix(frame, DROPS), fall, weights, DROPS)
    return {"reference": 1.0, **dict(zip(DROPS, -beta, strict=True))}


def fit_performance(frame, agreement=AGREEMENT):
    """Return the coefficients of an objective; residuals are of fits without the cluster."""
    weights = cluster_weights(frame)
    names = sorted(frame["cluster"].unique())
    part = frame["cluster"].map({one: i % N_PARTS for i, one in enumerate(names)}).to_numpy()
    residuals = np.empty(len(frame))
    for number in range(N_PARTS):
        out = part == number
        if out.any():
            mean = fit_mean(frame[~out], weights[~out])
            combined = matrix(frame[out], [*mean]) @ np.array([*mean.values()])
            calibrated = matrix(frame[out], ["reference"]) - matrix(frame[out], [CALIBRATED])
            expected = lean_on_calibration(combined, calibrated[:, 0], agreement)
            residuals[out] = frame.loc[out, "true"].to_numpy() - expected
    D = matrix(frame, DIFFICULTY)
    gamma = fit_ridge(D, np.log(np.abs(residuals) + SMALLEST), weights, DIFFICULTY)
    scaled = residuals / np.exp(D @ gamma)
    return {
        "mean": fit_mean(frame, weights),
        "agreement": agreement,
        "log scale": dict(zip(DIFFICULTY, gamma, strict=True)),
        "probabilities": list(PROBABILITIES),
        "quantiles": [weighted_quantile(scaled, weights, p) for p in PROBABILITIES],
    }


def left_out(frame, agreement=AGREEMENT):
    """Return the frame with estimates by coefficients that were fitted without the cluster."""
    parts = []
    for cluster in frame["cluster"].unique():
        fitted = fit_performance(frame[frame["cluster"] != cluster], agreement)
        part = frame[frame["cluster"] == cluster].copy()
        found = [
            predict_performance(one, fitted).interval().clipped(0, 1) for one in part["quantities"]
        ]
        for field in ("value", "low", "high"):
            part[field] = [getattr(one, field) for one in found]
        parts.append(part)
    return pd.concat(parts).sort_index()


def cluster_mean(values, frame):
    """Return the mean over clusters of means over their tasks."""
    return float(pd.Series(np.asarray(values, dtype=float)).groupby(
        frame["cluster"].to_numpy()).mean().mean())  # fmt: skip


def table_of_estimates(frame, peers=None):
    """Return mean absolute errors as lines of a table, and coverage of the intervals.

    ``frame``: of `left_out`; ``peers``: NannyML's estimates by task and model, from
    `nannyml_estimates.py`.
    """
    columns = {"estimate_performance": frame["value"]}
    if peers is not None:
        keys = frame["task"] + " | " + frame["model"]
        columns["NannyML's CBPE"] = keys.map(peers).fillna(
            pd.Series([one["calibrated confidence"] for one in frame["estimates"]], frame.index)
        )
    columns["score on the source"] = [one["reference"] for one in frame["quantities"]]
    for name in ESTIMATORS:
        columns[name] = [one[name] for one in frame["estimates"]]
    lines = []
    for name, values in columns.items():
        cells = []
        for model in MODELS:
            for mark in ("shift", "control"):
                part = ((frame["model"] == model) & (frame["mark"] == mark)).to_numpy()
                error = np.abs(np.asarray(values, dtype=float) - frame["true"].to_numpy())
                cells.append(f"{cluster_mean(error[part], frame[part]):.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    inside = (frame["low"] <= frame["true"]) & (frame["true"] <= frame["high"])
    cells = []
    for model in MODELS:
        for mark in ("shift", "control"):
            part = ((frame["model"] == model) & (frame["mark"] == mark)).to_numpy()
            cells.append(f"{cluster_mean(inside[part], frame[part]):.0%}")
    lines.append(f"| 90 % intervals cover | {' | '.join(cells)} |")
    head = "| | plain model: shift | controls | vote: shift | controls |\n|---|---:|---:|---:|---:|"
    return "\n".join([head, *lines])


def table_of_agreements(frame):
    """Return mean absolute errors by the bound of agreement, as text; 0.001: no agreement."""
    lines = []
    for agreement in AGREEMENTS:
        found = left_out(frame, agreement)
        error = (found["value"] - found["true"]).abs()
        means = [
            cluster_mean(error[part], found[part])
            for model in MODELS
            for mark in ("shift", "control")
            for part in [(found["model"] == model) & (found["mark"] == mark)]
        ]
        lines.append(f"{agreement:g}: " + ", ".join(f"{one:.3f}" for one in means))
    return "\n".join(lines)


# Sets ---------------------------------------------------------------------------------------------


def set_frame(records, margin=None):
    """Return what is promised of each model's sets, their coverage and their size.

    ``margin``: function of a cluster; None: the one of the package.
    """
    rows = []
    for record in records:
        promise, names = decide_coverage(Evidence(**record["evidence"]), ALPHA)
        share = margin_of(names) if margin is None else margin(record["cluster"])
        used = f"{UNION} {share}" if len(names) > 1 else names[0]
        covered, size = record["covered"], record["size"]
        rows.append(
            {key: record[key] for key in ("task", "cluster", "mark", "model")}
            | {"promised": promise.promised, "method": promise.method}
            | {"covered": covered[used], "size": size[used]}
            | {"unweighted": covered[UNWEIGHTED], "unweighted size": size[UNWEIGHTED]}
            | {"oracle size": size[ORACLE]}
        )
    return pd.DataFrame(rows)


def table_of_sets(frame):
    """Return coverage, share of promises and sizes as lines of a table."""
    lines = [
        "| | tasks | promised | coverage there | by cluster | size over oracle | unweighted there |"
        " unweighted, size over oracle | unweighted elsewhere |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for model in MODELS:
        for mark in ("shift", "control", "all"):
            part = frame[(frame["model"] == model) & ((frame["mark"] == mark) | (mark == "all"))]
            there, rest = part[part["promised"]], part[~part["promised"]]
            ratio = there["size"].mean() / there["oracle size"].mean()
            plain = there["unweighted size"].mean() / there["oracle size"].mean()
            lines.append(
                f"| {model}, {mark} | {len(part)} | {part['promised'].mean():.0%} | "
                f"{there['covered'].mean():.1%} | {cluster_mean(there['covered'], there):.1%} | "
                f"{ratio:.2f} | {there['unweighted'].mean():.1%} | {plain:.2f} | "
                f"{rest['unweighted'].mean():.1%} |"
            )
    return "\n".join(lines)


def left_out_margins(records):
    """Return, by cluster, the largest margin with 90 % coverage on shift tasks of the others."""
    clusters = sorted({one["cluster"] for one in records})
    frames = {share: set_frame(records, lambda cluster, share=share: share) for share in MARGINS}
    found = {}
    for cluster in clusters:
        for share, frame in frames.items():
            part = frame[
                frame["promised"] & (frame["mark"] == "shift") & (frame["cluster"] != cluster)
            ]
            found[cluster] = share
            of_models = [cluster_mean(one["covered"], one) for _, one in part.groupby("model")]
            if np.mean(of_models) >= 1 - ALPHA:
                break
    return found


def is_fresh(frame):
    """Return which lines are of tasks of the fresh collections."""
    return frame["task"].isin([task.name for task in read_tasks(fresh.LIST)]).to_numpy()


def groups(frame):
    """Return the tasks of every other design cluster, by name, on which bounds were chosen; the
    other design tasks; those of the fresh collections.
    """
    names = sorted({task.cluster for task in read_tasks()})
    new = is_fresh(frame)
    chosen = frame["cluster"].isin(names[::2]).to_numpy()
    parts = {
        "clusters looked at": frame[chosen],
        "other clusters": frame[~chosen & ~new],
        "fresh collections": frame[new],
    }
    return {name: part for name, part in parts.items() if len(part)}


def report(records, peers=None):
    """Return all tables as text; ``peers`` as in `table_of_estimates`."""
    sets = set_frame(records)
    parts = [f"{sets['task'].nunique()} tasks in {sets['cluster'].nunique()} clusters", "## Sets"]
    for name, part in {"all": sets, **groups(sets)}.items():
        parts += [f"### {name}", table_of_sets(part)]
    margins = left_out_margins(records)
    parts += [
        f"### margin chosen without the cluster: {pd.Series(margins).value_counts().to_dict()}",
        table_of_sets(set_frame(records, margins.get)),
        "### without a margin",
        table_of_sets(set_frame(records, lambda cluster: MARGINS[0])),
    ]
    parts.append(sets.groupby(["mark", "model", "method"]).agg(
        tasks=("task", "count"), covered=("covered", "mean"), unweighted=("unweighted", "mean")
    ).round(3).to_string())  # fmt: skip
    for objective in OBJECTIVES:
        frame = frame_of(records, objective)
        of_objective = peers if objective == OBJECTIVES[0] else None
        judged, new = left_out(frame), is_fresh(frame)
        for name, part in {"all": judged, "design": judged[~new], "fresh": judged[new]}.items():
            if len(part):
                parts += [f"## {objective}, {name}", table_of_estimates(part, of_objective)]
        parts += [f"### {objective} by agreement", table_of_agreements(frame)]
    return "\n\n".join(parts) + "\n"


def write_table(path, records, peers=None):
    """Write a line for each task and model: sets, and estimates of both scores."""
    table = set_frame(records)
    for objective in OBJECTIVES:
        judged = left_out(frame_of(records, objective))
        for name in ("true", "value", "low", "high"):
            table[f"{objective} {name}"] = judged[name]
        for name in ("reference", CALIBRATED):
            of_held = [one["reference"] for one in judged["quantities"]]
            of_new = [one.get(name) for one in judged["estimates"]]
            table[f"{objective} {name}"] = of_held if name == "reference" else of_new
    if peers is not None:
        table["accuracy NannyML's CBPE"] = (table["task"] + " | " + table["model"]).map(peers)
    table.to_csv(path, index=False, float_format="%.4g")


def write_coefficients(records):
    """Write the coefficients of both objectives from all tasks."""
    facts = {
        "command": COMMAND,
        "real tasks": len({one["task"] for one in records}),
        "clusters": len({one["cluster"] for one in records}),
    }
    fitted = {
        objective: rounded(fit_performance(frame_of(records, objective)))
        for objective in OBJECTIVES
    }
    FILE.write_text(json.dumps(facts | fitted, indent=2) + "\n", encoding="utf-8")


def main():
    """Judge sets and expected scores of all stored tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--cache", type=Path, required=True, help="folder for outputs of benches")
    parser.add_argument("--out", type=Path, required=True, help="folder for records and tables")
    parser.add_argument("--fresh", type=Path, nargs=2, metavar=("FOLDER", "RESULTS"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write performance_estimate.json")
    parser.add_argument("--table", type=Path, help="CSV with a line for each task and model")
    parser.add_argument("--peers", type=Path, help="tasks.json of nannyml_estimates.py")
    options = parser.parse_args()
    records = read_records(options)
    peers = None if options.peers is None else json.loads(options.peers.read_text("utf-8"))
    text = report(records, peers)
    (options.out / "tables.md").write_text(text, encoding="utf-8")
    print(text)
    if options.table is not None:
        write_table(options.table, records, peers)
    if options.write:
        write_coefficients(records)


if __name__ == "__main__":
    main()
