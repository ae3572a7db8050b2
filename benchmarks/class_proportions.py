"""The gain by estimated class proportions with one adapter and one model.

    covshift-bench run DATA --methods auto --out runs/results.jsonl --jobs 2
    python benchmarks/class_proportions.py runs/results.jsonl

From stored outputs of candidates on real tasks: the accuracy of the model's own decision
(``class_shares="source"``), of calibrated probabilities, and of these reweighed for the class
proportions of the target (``class_shares="estimated"`` of `AdaptedClassifier`, whose prior is .3),
with several weights of the prior. Proportions are estimated on the rows to adapt to, accuracies
measured on the test rows. Differences to the model's own decision are means over clusters of the
means over their tasks, with the standard error over clusters.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from covshift_bench.results import OK, decode_codes, read_results
from covshift_bench.runner import arrays_path
from covshift_bench.tasks import read_tasks
from label_queries import calibrated, fold_scaling

from covshift.kernels.probabilities import reweigh_probabilities
from covshift.predictors.class_proportions import share_ratios

CANDIDATES = (
    "none + logistic", "none + forest", "standardize + logistic", "ranks + logistic",
    "coral + logistic", "standardize + joint",
)  # fmt: skip
PRIORS = (0.0, 0.1, 0.3, 1.0)


def measure(arrays, truth, number):
    """Return accuracies on the test rows by what is done about class proportions."""
    codes = arrays["codes"]
    shares = np.bincount(codes) / len(codes)
    scaling = fold_scaling(arrays, number)
    P, P_test = (calibrated(arrays[f"{name}{number}"], scaling) for name in ("target, ", "test "))
    found = {"own": arrays[f"test {number}"].argmax(axis=1), "calibrated": P_test.argmax(axis=1)}
    for prior in PRIORS:
        ratios = share_ratios(P, shares, prior)
        found[f"estimated, prior {prior:g}"] = reweigh_probabilities(P_test, ratios).argmax(axis=1)
    return {name: np.mean(predicted == truth) for name, predicted in found.items()}


def main():
    """Read the stored outputs and print a table for each mark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    options = parser.parse_args()
    tasks = {task.name: task for task in read_tasks()}
    rows = []
    for line in read_results([options.results]):
        task = tasks.get(line["task"])
        if line["method"] != "auto" or line["status"] != OK or task is None:
            continue
        with np.load(arrays_path(options.results, line)) as stored:
            names = [str(name) for name in stored["candidates"]]
            for candidate in [name for name in CANDIDATES if name in names]:
                number = names.index(candidate)
                wanted = ("target, ", "test ", "fold 0, ", "fold 1, ", "fold 2, ")
                arrays = {key: stored[key] for key in ("codes", "folds")}
                arrays |= {
                    f"{key}{number}": stored[f"{key}{number}"]
                    for key in wanted
                    if f"{key}{number}" in stored.files
                }
                if f"target, {number}" in arrays and f"test {number}" in arrays:
                    found = measure(arrays, decode_codes(line["truth"]), number)
                    rows.append(
                        {"cluster": task.cluster, "mark": task.mark, "of": candidate} | found
                    )
    frame = pd.DataFrame(rows)
    for mark, part in frame.groupby("mark"):
        n_tasks = len(part) // part["of"].nunique()
        print(f"\n{mark}: {n_tasks} tasks, {part['cluster'].nunique()} clusters\n")
        columns = [column for column in part if column not in ("cluster", "mark", "of", "own")]
        print(f"| candidate | own decision | {' | '.join(columns)} |")
        print("|---|" + "---:|" * (1 + len(columns)))
        for candidate, some in part.groupby("of", sort=False):
            means = some.groupby("cluster")[["own", *columns]].mean()
            changes = means[columns].sub(means["own"], axis=0)
            errors = changes.std() / np.sqrt(len(changes))
            cells = [f"{changes[one].mean():+.4f} ± {errors[one]:.4f}" for one in columns]
            print(f"| {candidate} | {means['own'].mean():.4f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
