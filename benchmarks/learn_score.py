"""Learn the combined score from results of the runner, and write it into the package.

    python benchmarks/run.py DATA --out results.jsonl --methods auto "pick by what explains"
    python benchmarks/learn_score.py results.jsonl                 # judge on clusters left out
    python benchmarks/learn_score.py results.jsonl --out FILE      # and write the coefficients

The score is a ridge regression of clipped regret on differences and ranks of scores. Its vote is
compared with that of the untrained score, on clusters that it was not learned from.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import sklearn
from candidate_results import read_candidates

from covshift.selection.learned_score import score_features
from covshift.selection.score_table import UNTRAINED
from covshift.selection.vote import vote_weights

CLIP = 0.2
PENALTY = 3.0
N_MEMBERS = 7
SHIPPED = ("what explains", "source CV", "source domains")
# More scores to learn from, and fewer.
VARIANTS = {
    "as shipped": SHIPPED,
    **{f"without {name}": tuple(one for one in SHIPPED if one != name) for name in SHIPPED},
    "with target-like rows": (*SHIPPED, "target-like"),
    "with clusters of rows": (*SHIPPED, "residual clusters"),
    "with weighted validation and DEV": (*SHIPPED, "weighted CV", "DEV"),
    "with reverse validation": (*SHIPPED, "reverse"),
    "with agreement": (*SHIPPED, "committee", "kappa", "spectral"),
    "with confidence": (*SHIPPED, "entropy", "information", "density"),
}


def features(one, names, metric):
    """Return the features (candidates, 2 * scores) of a task."""
    columns = [
        score_features(one.score_column(name, metric), one.allowed, one.reference) for name in names
    ]
    return np.column_stack([c for c, _ in columns] + [r for _, r in columns])


def moments(one, names, metric):
    """Return X'X / n and X'y / n of the candidates that may be ranked, about their means."""
    truth = one.true_scores(metric)
    usable = one.allowed & ~np.isnan(truth)
    if not usable.any():
        return np.zeros((2 * len(names), 2 * len(names))), np.zeros(2 * len(names))
    X = features(one, names, metric)[usable]
    y = np.maximum(truth[usable] - np.nanmax(truth), -CLIP)
    X, y = X - X.mean(axis=0), y - y.mean()
    return X.T @ X / len(y), X.T @ y / len(y)


def solve(sums):
    """Return coefficients in the features' own units; the penalty is on features of unit spread."""
    XX, Xy = (np.sum(parts, axis=0) for parts in zip(*sums, strict=True))
    scale = np.sqrt(np.diag(XX) / len(sums))
    scale[scale == 0] = 1.0
    A = XX / np.outer(scale, scale) + PENALTY * np.eye(len(scale))
    return np.linalg.solve(A, Xy / scale) / scale


def judge(tasks, names, metric):
    """Return the mean over clusters of the vote's score, by a score learned on the others."""
    sums = [moments(one, names, metric) for one in tasks]
    clusters = np.array([one.task.cluster for one in tasks])
    means = []
    for cluster in np.unique(clusters):
        inside = clusters == cluster
        known = [part for part, within in zip(sums, inside, strict=True) if not within]
        if not known:
            raise SystemExit("There is one cluster of tasks. At least two are needed.")
        coefficients = solve(known)
        scores = [
            vote(tasks[i], features(tasks[i], names, metric) @ coefficients, metric)
            for i in np.flatnonzero(inside)
        ]
        means.append(np.mean(scores))
    return float(np.mean(means))


def vote(one, combined, metric):
    """Return the score of the vote by a combined score."""
    return one.vote(vote_weights(combined, one.allowed, N_MEMBERS), metric)


def judge_untrained(tasks, metric):
    """Return the same mean for the score that needs no learning."""
    by_cluster = {}
    for one in tasks:
        columns = [w * one.score_column(name, metric) for name, w in UNTRAINED.items()]
        combined = np.sum(columns, axis=0) / sum(UNTRAINED.values())
        by_cluster.setdefault(one.task.cluster, []).append(vote(one, combined, metric))
    return float(np.mean([np.mean(scores) for scores in by_cluster.values()]))


def main():
    """Judge, and write if --out is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", help="files that run.py wrote")
    parser.add_argument("--metric", choices=["balanced accuracy", "accuracy"])
    parser.add_argument("--out", type=Path, help="learned_score.json of the package")
    options = parser.parse_args()
    metric = options.metric or "balanced accuracy"
    tasks = read_candidates(options.results)
    print(f"{metric} of the vote on {len(tasks)} tasks, mean over clusters that were left out")
    print(f"{judge_untrained(tasks, metric):.4f}  untrained")
    for name, names in VARIANTS.items():
        print(f"{judge(tasks, names, metric):.4f}  learned, {name}", flush=True)
    if options.out is None:
        return
    coefficients = solve([moments(one, SHIPPED, metric) for one in tasks])
    differences, ranks = np.split(np.round(coefficients, 6), 2)
    data = {
        "scores": list(SHIPPED),
        "differences": differences.tolist(),
        "ranks": ranks.tolist(),
        "provenance": {
            "command": "python benchmarks/learn_score.py RESULTS --out FILE, after run.py",
            "metric": metric.replace(" ", "_"),
            "learned": f"ridge, penalty {PENALTY}, on regret clipped at {CLIP}",
            "tasks": len(tasks),
            "clusters": sorted({one.task.cluster for one in tasks}),
            "scikit-learn": sklearn.__version__,
        },
    }
    options.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
