"""Learning the combined score: a ridge of clipped regret on differences and ranks of scores."""

import numpy as np

from covshift.selection.learned_score import score_features

CLIP = 0.2
PENALTIES = np.logspace(-2, 3, 11)


def features(task, names):
    """Features (candidates, 2 * scores) of one task, about their means over the candidates."""
    columns = [score_features(task.scores[name], task.allowed, task.reference) for name in names]
    X = np.column_stack([c for c, _ in columns] + [r for _, r in columns])[task.allowed]
    return X - X.mean(axis=0)


def clipped_regret(task):
    """What is predicted, for the candidates that may be ranked, about its mean."""
    truth = task.truth
    y = np.maximum(truth - np.nanmax(truth), -CLIP)[task.allowed]
    return y - y.mean()


def stack(tasks, names):
    """Rows of all tasks; each task weighs the same."""
    X = [features(task, names) for task in tasks]
    y = [clipped_regret(task) for task in tasks]
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for one in y])
    return np.concatenate(X), np.concatenate(y), weights


def fit_ridge(X, y, weights, penalty):
    """Coefficients in the features' own units; the penalty is on standardised features."""
    scale = np.sqrt(np.average(X**2, axis=0, weights=weights))
    scale[scale == 0] = 1.0
    Z = X / scale * np.sqrt(weights)[:, None]
    A = Z.T @ Z + penalty * np.eye(Z.shape[1])
    return np.linalg.solve(A, Z.T @ (y * np.sqrt(weights))) / scale


def choose_penalty(tasks, names):
    """The penalty with the least error on collections that were left out, one at a time."""
    collections = sorted({task.collection for task in tasks})
    errors = np.zeros(len(PENALTIES))
    for collection in collections:
        train = stack([task for task in tasks if task.collection != collection], names)
        X, y, weights = stack([task for task in tasks if task.collection == collection], names)
        for i, penalty in enumerate(PENALTIES):
            residual = y - X @ fit_ridge(*train, penalty)
            errors[i] += np.average(residual**2, weights=weights)
    return float(PENALTIES[errors.argmin()])


def learn(tasks, names, penalty=None):
    """Coefficients of differences and of ranks, and the penalty."""
    if penalty is None:
        penalty = choose_penalty(tasks, names)
    coefficients = fit_ridge(*stack(tasks, names), penalty)
    return coefficients[: len(names)], coefficients[len(names) :], penalty


def predict(task, names, differences, ranks):
    """Combined score of each candidate, as `LearnedScore` computes it."""
    total = np.zeros(len(task.candidates))
    for name, a, b in zip(names, differences, ranks, strict=True):
        difference, rank = score_features(task.scores[name], task.allowed, task.reference)
        total += a * difference + b * rank
    return total
