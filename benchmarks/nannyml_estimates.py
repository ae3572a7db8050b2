"""NannyML's CBPE beside `calibrated_confidence`, on the design tasks, in one run.

    pip install nannyml
    python benchmarks/run.py DATA --methods auto --out runs/results.jsonl --jobs 2
    python benchmarks/nannyml_estimates.py DATA runs/results.jsonl --cache runs/stored

Both are given the same: predicted classes and probabilities of the plain model or of the vote (by
coefficients without the task's cluster), for source rows that its fits left out, with labels, and
for target rows without. NannyML calibrates on the former; ours come calibrated. NannyML has no
balanced accuracy: of two classes it is the mean of recall and specificity, of more its recall,
which averages over classes. Errors are to the score on the test rows.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from stored_votes import MODELS, OBJECTIVES, model_of, read_all

from covshift.measures import calibrated_confidence
from covshift.predictors.objective import decide_classes
from covshift.selection.metrics import METRICS

os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # it would report each call to its makers


def nannyml_estimate(P_source, codes, P_target, predicted, objective):
    """Return the score that NannyML expects on the target; NaN where it cannot tell."""
    from nannyml import CBPE

    n_classes = P_source.shape[1]
    reference, target = (
        pd.DataFrame({f"p{k}": P[:, k] for k in range(n_classes)} | {"predicted": f})
        for P, f in zip((P_source, P_target), predicted, strict=True)
    )
    reference["truth"] = codes
    settings = {
        "problem_type": "classification_multiclass",
        "y_pred_proba": {k: f"p{k}" for k in range(n_classes)},
    }
    names = ["accuracy"] if objective == "accuracy" else ["recall"]
    if n_classes == 2:
        settings = {"problem_type": "classification_binary", "y_pred_proba": "p1"}
        names += ["specificity"] if objective != "accuracy" else []
    estimator = CBPE(y_true="truth", y_pred="predicted", metrics=names, chunk_number=1, **settings)
    try:
        found = estimator.fit(reference).estimate(target).filter(period="analysis").to_df()
    except Exception as error:  # of whatever kind: the table says how often
        warnings.warn(f"NannyML: {type(error).__name__}: {error}", stacklevel=2)
        return np.nan
    return float(np.mean([found[name, "value"].iloc[0] for name in names]))


def judge(stored, gains):
    """Return a line for each objective and model. ORACLE: reads test labels."""
    lines = []
    for objective in OBJECTIVES:
        shares = np.bincount(stored.codes, minlength=stored.n_classes) / len(stored.codes)
        for name in MODELS:
            model = model_of(stored, name, gains[objective], objective)
            views = model.source, model.target, model.test
            predicted = [decide_classes(P, objective, shares) for P in views]
            true = METRICS[objective](stored.truth, predicted[2])
            ours = calibrated_confidence(
                model.target, metric=objective, predicted_target=predicted[1]
            )
            theirs = nannyml_estimate(
                model.source, stored.codes, model.target, predicted[:2], objective
            )
            lines.append(
                {"cluster": stored.task.cluster, "mark": stored.task.mark, "objective": objective,
                 "model": name, "failed": np.isnan(theirs), "ours": abs(ours - true),
                 "NannyML": abs((ours if np.isnan(theirs) else theirs) - true)}
            )  # fmt: skip
    return lines


def main():
    """Read the stored tasks, estimate, print mean absolute errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file that run.py wrote")
    parser.add_argument("--cache", type=Path, required=True, help="folder for what was read")
    parser.add_argument("--per-cluster", type=int, help="so many tasks of each cluster, the first")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    stored, gains = read_all(options.data, options.results, options.cache, options.jobs)
    pairs, counts = [], {}
    for pair in zip(stored, gains, strict=True):
        cluster = pair[0].task.cluster
        counts[cluster] = counts.get(cluster, 0) + 1
        if options.per_cluster is None or counts[cluster] <= options.per_cluster:
            pairs.append(pair)
    lines = [line for pair in pairs for line in judge(*pair)]
    print(f"{len(pairs)} tasks in {len(counts)} clusters\n")
    table = pd.DataFrame(lines)
    print("| mean absolute error | model | mark | calibrated_confidence | NannyML | failed |")
    print("|---|---|---|---:|---:|---:|")
    for key, part in table.groupby(["objective", "model", "mark"]):
        ours, theirs = (part.groupby("cluster")[one].mean().mean() for one in ("ours", "NannyML"))
        print(f"| {' | '.join(key)} | {ours:.3f} | {theirs:.3f} | {part['failed'].sum()} |")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
