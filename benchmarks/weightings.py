"""Ways to weigh the candidates, on the real tasks, from stored benches.

    covshift-bench run DATA --methods auto --made-up 1 --out runs/results.jsonl --jobs 2
    covshift-bench fresh FRESH
    covshift-bench run FRESH --list fresh --methods auto --out runs/fresh.jsonl --jobs 2
    python benchmarks/weightings.py DATA runs/results.jsonl --fresh FRESH runs/fresh.jsonl \
        --cache runs/stored

* **expected gains**: softmax of the expected gains of the best, with a share for the plain model
  (`covshift.selection.vote`), for several numbers of members, temperatures and shares. The gains
  are by coefficients of the design tasks without the task's cluster.
* **of all tasks**: the same, by coefficients that the fresh tasks shaped as well, without the
  task's cluster.
* **stacking**: weights of at least 0, by least squares of the classes on the probabilities of
  source domains that fits left out; source rows left out where there is one domain.
* **IWA**: the linear aggregation :math:`c = G^+ g` of Dinu et al. (2023), G being the mean products
  of the candidates' probabilities on the target, and g what `stacking` has on its rows.
* **closeness**: as expected gains, but each source domain that was taken as the target is weighed
  by how much target rows look like its rows to a classifier between source domains.
* **equal**: all candidates that are neither failed nor degenerate.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from calibrate import left_out_coefficients
from covshift_bench import fresh
from covshift_bench.tasks import read_tasks
from scipy.optimize import nnls
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_votes import BALANCED, OBJECTIVES, read_all

from covshift.predictors.class_proportions import SHARE_PRIOR, share_ratios
from covshift.predictors.objectives import METRICS, decide_classes
from covshift.selection.expected_gains import gain_coefficients
from covshift.selection.label_tasks import CLASSES
from covshift.selection.rehearsals import SOURCE_DOMAINS
from covshift.selection.vote import mix_probabilities

MARGIN, MIN_TEST_ROWS, MIN_WEIGHT = 0.01, 200, 0.01
# Members, temperature, share of the plain model; the first is that of the package.
SOFTMAX = (
    (7, 0.01, 0.3), (7, 0.01, 0.15), (7, 0.01, 0.0), (7, 0.01, 0.4), (7, 0.01, 0.5),
    (12, 0.015, 0.3), (12, 0.015, 0.15), (12, 0.015, 0.0), (20, 0.02, 0.0), (40, 0.04, 0.0),
)  # fmt: skip


def softmax_weights(gains, allowed, plain, setting):
    """Return the weights of a vote by expected gains."""
    n_members, temperature, share = setting
    scores = np.where(allowed & ~np.isnan(gains), gains, -np.inf)
    best = np.argsort(-scores, kind="stable")[:n_members]
    powers = np.exp((scores[best] - scores[best].max()) / temperature)
    powers[powers < MIN_WEIGHT * powers.sum()] = 0
    weights = np.zeros(len(gains))
    weights[best] = (1 - share) * powers / powers.sum()
    weights[plain] += share
    return weights


def played_rows(outputs, codes, numbers):
    """Return probabilities (candidates, rows, classes) of pseudo-targets, and their classes."""
    scenes = [
        ([P[i] for i in numbers], truth)
        for P, truth in outputs.domains
        if all(P[i] is not None for i in numbers)
    ]
    scenes = scenes or [([outputs.source[i] for i in numbers], codes)]
    P = [np.concatenate([one[0][i] for one in scenes]) for i in range(len(numbers))]
    return np.array(P, dtype=float), np.concatenate([one[1] for one in scenes])


def aggregated_weights(stored, allowed):
    """Return the weights of stacking and of IWA."""
    outputs = stored.outputs
    numbers = [
        i for i in np.flatnonzero(allowed)
        if outputs.source[i] is not None and outputs.test[i] is not None
    ]  # fmt: skip
    P, truth = played_rows(outputs, stored.codes, numbers)
    Y = np.eye(stored.n_classes)[truth]
    stacking, of_target = np.zeros((2, len(allowed)))
    stacking[numbers] = nnls(P.reshape(len(numbers), -1).T, Y.ravel())[0]
    T = np.array([outputs.target[i] for i in numbers], dtype=float)
    G = np.einsum("pik,qik->pq", T, T) / T.shape[1]
    g = np.einsum("pik,ik->p", P, Y) / len(Y)
    of_target[numbers] = np.linalg.pinv(G, rcond=1e-3, hermitian=True) @ g
    return {"stacking": stacking / stacking.sum(), "IWA": of_target}


def closeness_differences(stored, case, objective):
    """Return how much closeness changes the score by source domains over that of the plain model.

    None: fewer than two domains were taken as the target. A domain is found by its rows' classes.
    """
    domains, of_row = np.unique(stored.domain, return_inverse=True)
    if len(domains) < 2:
        return None
    shares = np.bincount(stored.codes, minlength=stored.n_classes) / len(stored.codes)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(stored.X_source, of_row)
    close = model.predict_proba(stored.X_target).mean(axis=0) / np.bincount(of_row)
    scores, weights = [], []
    for P, truth in stored.outputs.domains:
        same = [k for k in range(len(domains)) if np.array_equal(stored.codes[of_row == k], truth)]
        if P[case.plain] is None or not same:
            continue
        credit = [
            np.nan if one is None
            else CLASSES.credit(one.astype(float), truth, METRICS[objective], shares)
            for one in P
        ]  # fmt: skip
        scores.append(np.array(credit) - credit[case.plain])
        weights.append(close[same[0]])
    if len(scores) < 2:
        return None
    return np.nan_to_num(np.average(scores, axis=0, weights=weights) - np.mean(scores, axis=0))


def mixed(stored, weights, objective):
    """Return the probabilities of the test rows by weighted candidates."""
    outputs, adapts, ratios = stored.outputs, stored.adapts, None
    if (weights < 0).any():  # of a linear aggregation
        used = np.flatnonzero(weights)
        return np.sum([weights[i] * outputs.test[i] for i in used], axis=0)
    if objective != BALANCED and (weights[adapts] > 0).any():
        shares = np.bincount(stored.codes, minlength=stored.n_classes) / len(stored.codes)
        on_target = mix_probabilities(outputs.target, weights * adapts, adapts)
        ratios = share_ratios(on_target, shares, SHARE_PRIOR)
    return mix_probabilities(outputs.test, weights, adapts, ratios)


def judge(stored, gains, of_all):
    """Return a line for each objective and way to weigh. ORACLE: reads test labels.

    ``gains`` and ``of_all`` are expected gains by objective, by coefficients of the design tasks
    and of all tasks.
    """
    lines, outputs = [], stored.outputs
    shares = np.bincount(stored.codes, minlength=stored.n_classes) / len(stored.codes)
    for objective, case in zip(OBJECTIVES, stored.cases, strict=True):
        expected = gains[objective].copy()
        expected[[one is None for one in outputs.test]] = np.nan
        metric, allowed = METRICS[objective], case.allowed & ~np.isnan(expected)
        by_name = {
            f"{n} members, temperature {t:g}, plain {share:g}":
                softmax_weights(expected, allowed, case.plain, (n, t, share))
            for n, t, share in SOFTMAX
        }  # fmt: skip
        by_name["of all tasks"] = softmax_weights(
            of_all[objective], allowed, case.plain, SOFTMAX[0]
        )
        by_name["closeness"] = next(iter(by_name.values()))
        moved = closeness_differences(stored, case, objective)
        if moved is not None:
            factor = gain_coefficients()[objective][SOURCE_DOMAINS]
            by_name["closeness"] = softmax_weights(
                expected + factor * moved, allowed, case.plain, SOFTMAX[0]
            )
        by_name["equal"] = allowed / allowed.sum()
        by_name |= aggregated_weights(stored, allowed)
        plain = metric(stored.truth, decide_classes(outputs.test[case.plain], objective, shares))
        for name, weights in by_name.items():
            P = mixed(stored, weights, objective)
            gain = metric(stored.truth, decide_classes(P, objective, shares)) - plain
            lines.append(
                {"cluster": stored.task.cluster, "mark": stored.task.mark, "objective": objective,
                 "task": stored.task.name, "weights": name, "gain": gain,
                 "n_test": len(stored.truth)}
            )  # fmt: skip
    return lines


def gains_of_all(stored):
    """Return the expected gains by objective of each task, by coefficients of all other clusters.

    Those of `read_all` learn from design tasks alone.
    """
    found = [{} for _ in stored]
    for number, objective in enumerate(OBJECTIVES):
        cases = [one.cases[number] for one in stored]
        betas = left_out_coefficients(cases)
        for gains, case in zip(found, cases, strict=True):
            gains[objective] = case.features @ betas[case.task.cluster]
    return found


def means_of(part):
    """Return the mean gain over clusters with its standard error, as text."""
    means = part.groupby("cluster")["gain"].mean()
    return f"{means.mean():+.4f} ± {means.sem():.4f}"


def main():
    """Read the stored tasks, weigh, print one table for each objective."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--fresh", type=Path, nargs=2, metavar=("FOLDER", "RESULTS"))
    parser.add_argument("--cache", type=Path, required=True, help="folder for what was read")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    stored, gains = read_all(
        options.data, options.results, options.cache, options.jobs, options.fresh
    )
    everything = zip(stored, gains, gains_of_all(stored), strict=True)
    table = pd.DataFrame([line for one in everything for line in judge(*one)])
    of_fresh = table["task"].isin([task.name for task in read_tasks(fresh.LIST)])
    for objective, of_objective in table.groupby("objective"):
        print(f"\n{objective}: gain over the plain model (± standard error over clusters), harm\n")
        print("| weights | shift | controls | fresh: shift | controls | all | harm |")
        print("|---|" + "---:|" * 6)
        for name, part in of_objective.groupby("weights", sort=False):
            new = of_fresh[part.index]
            cells = [
                means_of(part[(new == one) & (part["mark"] == mark)])
                for one in (False, True)
                for mark in ("shift", "control")
            ]
            large = part[part["n_test"] >= MIN_TEST_ROWS]
            harm = (large["gain"] < -MARGIN).groupby(large["cluster"]).mean().mean()
            print(f"| {name} | {' | '.join(cells)} | {means_of(part)} | {harm:.0%} |")


if __name__ == "__main__":
    main()
