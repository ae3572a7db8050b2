"""A small problem with two source domains and two target domains."""

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    sample_domain: np.ndarray
    X_new: np.ndarray


def make_problem(n=20, dtype=np.float64, kind="class", seed=7):
    """Rows of domains 0, 1, -1, -2 in mixed order, each moved and scaled by its own."""
    rng = np.random.RandomState(seed)
    sample_domain = rng.permutation(np.repeat([0, 1, -1, -2], n))
    base = rng.standard_normal((4 * n, 3))
    y = base[:, 0] + 0.5 * base[:, 1] ** 2
    if kind == "class":
        y = np.digitize(y, [-0.3, 0.8])
    X = base * (1 + 0.3 * sample_domain[:, None]) + 0.5 * sample_domain[:, None]
    return Problem(X.astype(dtype), y, sample_domain, rng.standard_normal((9, 3)).astype(dtype))
