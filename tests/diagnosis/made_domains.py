"""Small problems whose right adapter is known, and candidates that cost little."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from covshift import stack_domains
from covshift.selection.candidates import check_candidates

CANDIDATES = "covshift.selection.auto_adapted.default_candidates"


def shifted_sites(seed=0, n=100, n_sites=3, far=4.0):
    """Classes apart in all features; every site, and the target, is moved by its own."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    moves = far * (np.arange(n_sites + 1) - n_sites / 2)

    def draw(move):
        return rng.standard_normal((n, 3)) + 2 * y[:, None] + move, y

    sites = {f"site {number}": draw(move) for number, move in enumerate(moves[:-1])}
    target, y_target = draw(moves[-1])
    return stack_domains(sites, target={"new": target}), y_target


def other_frequencies(seed=0, n=300):
    """One source domain; rows with a large first feature are more frequent in the target."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((3 * n, 2))
    kept = rng.uniform(size=len(X)) < 1 / (1 + np.exp(-1.2 * X[:, 0]))
    target, source = X[kept][:n], rng.standard_normal((n, 2))
    rule = (source[:, 0] + source[:, 1] > 0).astype(int)
    return stack_domains(source, rule, target), (target.sum(axis=1) > 0).astype(int)


def alone(seed=0, n=150):
    """One source domain, and a target that lies elsewhere."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    X, T = (rng.standard_normal((n, 2)) + 3 * np.outer(y, [1, 0]) for _ in range(2))
    return stack_domains(X, y, T + np.array([20, 0])), y


def unmoved(seed=0, n=120):
    """One source domain, and a target drawn like it."""
    rng = np.random.RandomState(seed)
    X, T = rng.standard_normal((2, n, 3))
    return stack_domains(X, (X[:, 0] > 0).astype(int), T), (T[:, 0] > 0).astype(int)


def few_candidates(size, label="classes"):
    """In place of `default_candidates`: a few cheap ones."""
    models = {"none": LogisticRegression(), "standardize": LogisticRegression()}
    pairs = [*models.items(), ("coral", LogisticRegression()), ("none", GaussianNB())]
    return check_candidates(pairs, size)
