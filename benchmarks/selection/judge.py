"""Judge rules of choosing on measured tasks, each by a score that never saw its collection.

    python benchmarks/selection/judge.py MADE_UP_FOLDER [REAL_FOLDER]

Regret is that against the best of all candidates on the test rows; "floor" is that of an oracle
which sees half of the test labels and is judged on the other half. Harm: more than .01 below
logistic regression without adaptation; "sure": the paired 95 % interval excludes zero as well.
"""

import argparse
from pathlib import Path

import numpy as np
from learning import learn, predict
from measured_tasks import read_tasks

from covshift.selection.metrics import balanced_accuracy
from covshift.selection.vote import vote_weights

N_MEMBERS = 7
MARGIN = 0.01
CLOSE = 0.02
N_SPLITS = 20
ALL_SCORES = (
    "source domains", "residual clusters", "target-like", "moved: mean and scale",
    "moved: quantiles", "moved: Gaussian", "moved: by class", "source CV", "weighted CV", "DEV",
    "reverse", "committee", "kappa", "spectral", "entropy", "information", "density",
)  # fmt: skip
GROUPS = {
    "pseudo-targets: domains, clusters, target-like": ALL_SCORES[:3],
    "pseudo-targets: moved": ALL_SCORES[3:7],
    "validation on the source": ALL_SCORES[7:10],
    "reverse validation": ("reverse",),
    "agreement": ALL_SCORES[11:14],
    "confidence": ALL_SCORES[14:],
}
UNTRAINED = ("target-like", "moved: mean and scale", "moved: quantiles")


def learned_scores(tasks, names, extra=()):
    """Combined scores of each task, by coefficients learned on the other collections."""
    combined = {}
    for collection in sorted({task.collection for task in tasks}):
        others = [task for task in [*tasks, *extra] if family(task) != family_name(collection)]
        a, b, _ = learn(others, names, penalty=10.0)
        for task in tasks:
            if task.collection == collection:
                combined[task.name] = predict(task, names, a, b)
    return combined


def family(task):
    """What must not be learned from when the task is judged: EMODB's four are one."""
    return family_name(task.collection)


def family_name(collection):
    """The part of the name before an underscore, of EMODB; else all of it."""
    return "emodb" if collection.startswith("emodb") else collection


def untrained(task):
    """Mean of four pseudo-targets."""
    domains = task.scores["source domains"]
    groups = task.scores["residual clusters"] if np.isnan(domains).all() else domains
    columns = [groups, *(task.scores[name] for name in UNTRAINED)]
    return np.nanmean(columns, axis=0)


def pick(task, combined):
    """Balanced accuracy of the best by a score."""
    return task.truth[int(np.argmax(np.where(task.allowed, combined, -np.inf)))]


def vote(task, combined, n_members=N_MEMBERS):
    """Balanced accuracy of the vote of the best."""
    return task.vote(vote_weights(combined, task.allowed, n_members))


def fixed(task, name):
    """Balanced accuracy of a candidate by name; of one that is missing, of the first."""
    return task.truth[task.candidates.index(name) if name in task.candidates else 0]


def split_half_floor(task):
    """Regret of an oracle that sees half of the test labels, on the other half."""
    rng = np.random.RandomState(0)
    regrets = []
    predicted = task.test_logits.argmax(axis=2)
    for _ in range(N_SPLITS):
        seen = rng.uniform(size=len(task.test_codes)) < 0.5
        halves = [
            np.array([balanced_accuracy(task.test_codes[part], one[part]) for one in predicted])
            for part in (seen, ~seen)
        ]
        regrets.append(np.nanmax(halves[1]) - halves[1][np.nanargmax(halves[0])])
    return np.mean(regrets)


def summarise(name, scores, tasks):
    """One row: absolute score, regret, share within .02, harm, worst loss."""
    best = np.array([np.nanmax(task.truth) for task in tasks])
    base = np.array([task.truth[0] for task in tasks])
    regret = best - scores
    loss = base - scores
    return (
        f"| {name} | {scores.mean():.3f} | {regret.mean():.3f} | {np.mean(regret <= CLOSE):.2f} | "
        f"{np.mean(loss > MARGIN):.2f} | {loss.max():.2f} |"
    )


def report(tasks, extra=()):
    """Print the table of rules on some tasks; ``extra`` ones are learned from, not judged."""
    print("| rule | score | regret | within .02 | harm | worst loss |\n|---|---|---|---|---|---|")
    methods = ("none + LR", "standardise + LR", "ranks + LR", "CORAL + LR", "standardise + RBF SVM")
    for method in methods:
        print(summarise(method, np.array([fixed(task, method) for task in tasks]), tasks))
    for name in ALL_SCORES:
        found = [pick(t, np.nan_to_num(t.scores[name], nan=-9.0)) for t in tasks]
        print(summarise(f"pick by {name}", np.array(found), tasks))
    rules = {"mean of four pseudo-targets": {task.name: untrained(task) for task in tasks}}
    rules["learned, all scores"] = learned_scores(tasks, ALL_SCORES, extra)
    for group, names in GROUPS.items():
        kept = [name for name in ALL_SCORES if name not in names]
        rules[f"learned, without {group}"] = learned_scores(tasks, kept, extra)
    for rule, combined in rules.items():
        for how, choose in (("pick", pick), ("vote", vote)):
            found = np.array([choose(task, combined[task.name]) for task in tasks])
            print(summarise(f"{how} by {rule}", found, tasks))
    equal = np.array([task.vote(task.allowed / task.allowed.sum()) for task in tasks])
    print(summarise("equal vote of all", equal, tasks))
    print(f"floor of a split-half oracle: {np.mean([split_half_floor(t) for t in tasks]):.3f}")


def main():
    """Judge on both kinds of tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("made_up", type=Path)
    parser.add_argument("real", type=Path, nargs="?")
    options = parser.parse_args()
    made_up = read_tasks(options.made_up)
    print(f"\n{len(made_up)} made-up tasks, each family by a score learned on the others\n")
    report(made_up)
    if options.real:
        real = read_tasks(options.real)
        print(f"\n{len(real)} real tasks, each collection by a score that never saw it\n")
        report(real, made_up)


if __name__ == "__main__":
    main()
