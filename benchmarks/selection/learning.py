"""Learning the combined score: a ridge of clipped regret on differences and ranks of scores."""

from typing import NamedTuple

import numpy as np

from covshift.selection.learned_score import score_features

CLIP = 0.2
PENALTY = 3.0
# What the shipped score is made of: more scores do not make it better (see the ablation).
SHIPPED = ("what explains", "source CV", "source domains")


def features(task, names):
    """Features (candidates, 2 * scores) of one task, about their means over the candidates."""
    columns = [score_features(task.scores[name], task.allowed, task.reference) for name in names]
    X = np.column_stack([c for c, _ in columns] + [r for _, r in columns])[task.allowed]
    return X - X.mean(axis=0)


def clipped_regret(task):
    """What is predicted, for the candidates that may be ranked, about its mean."""
    y = np.maximum(task.truth - np.nanmax(task.truth), -CLIP)[task.allowed]
    return y - y.mean()


class Moments(NamedTuple):
    """Products X'X and X'y, summed over tasks, each of which weighs the same."""

    XX: np.ndarray
    Xy: np.ndarray
    n_tasks: int

    def less(self, other):
        """The moments without those of some of the tasks."""
        return Moments(self.XX - other.XX, self.Xy - other.Xy, self.n_tasks - other.n_tasks)


def moments(tasks, names):
    """Moments of the features and the clipped regrets of some tasks."""
    XX, Xy = np.zeros((2 * len(names), 2 * len(names))), np.zeros(2 * len(names))
    for task in tasks:
        X, y = features(task, names), clipped_regret(task)
        XX += X.T @ X / len(y)
        Xy += X.T @ y / len(y)
    return Moments(XX, Xy, len(tasks))


def solve_ridge(sums, penalty):
    """Coefficients in the features' own units; the penalty is on features of unit spread."""
    scale = np.sqrt(np.diag(sums.XX) / sums.n_tasks)
    scale[scale == 0] = 1.0
    A = sums.XX / np.outer(scale, scale) + penalty * np.eye(len(scale))
    coefficients = np.linalg.solve(A, sums.Xy / scale) / scale
    return np.split(coefficients, 2)


def learn(tasks, names, penalty=PENALTY):
    """Coefficients of differences and of ranks."""
    return solve_ridge(moments(tasks, names), penalty)


def predict(task, names, differences, ranks):
    """Combined score of each candidate, as `LearnedScore` computes it."""
    total = np.zeros(len(task.candidates))
    for name, a, b in zip(names, differences, ranks, strict=True):
        difference, rank = score_features(task.scores[name], task.allowed, task.reference)
        total += a * difference + b * rank
    return total


def unseen_scores(tasks, names, penalty=PENALTY):
    """Combined scores by task, by coefficients learned on the other families."""
    by_family = {}
    for task in tasks:
        by_family.setdefault(task.family, []).append(task)
    parts = {family: moments(some, names) for family, some in by_family.items()}
    whole = Moments(*(sum(values) for values in zip(*parts.values(), strict=True)))
    return {
        task.name: predict(task, names, *solve_ridge(whole.less(parts[family]), penalty))
        for family, some in by_family.items()
        for task in some
    }
