"""Problems at the edge of what can be determined."""

import numpy as np

from covshift.selection.bench import Problem


def _problem(n_source, n_target, n_features=3, *, change=None):
    rng = np.random.RandomState(0)
    problem = Problem(
        rng.standard_normal((n_source, n_features)),
        np.arange(n_source) % 2,
        np.zeros(n_source, dtype=int),
        rng.standard_normal((n_target, n_features)) + 0.5,
        np.full(n_target, -1),
        2,
    )
    return problem if change is None else change(problem)


def _constant(problem):
    X, T = problem.X_source.copy(), problem.X_target.copy()
    X[:, 1], T[:, 1] = 4.0, 4.0
    X[:, 2], T[:, 2] = 1.0, 2.0
    return problem._replace(X_source=X, X_target=T)


def _all_constant(problem):
    return problem._replace(
        X_source=np.ones_like(problem.X_source), X_target=np.ones_like(problem.X_target)
    )


def _duplicated(problem):
    return problem._replace(
        X_source=np.repeat(problem.X_source[::6], 6, axis=0),
        X_target=np.repeat(problem.X_source[::6], 6, axis=0),
    )


def _one_class_in_a_domain(problem):
    return problem._replace(source_domain=problem.codes.copy())


def _missing_class(problem):
    return problem._replace(n_classes=3)


DEGENERATE = {
    "one target row": _problem(60, 1),
    "one source row of each class": _problem(2, 40),
    "two rows a role": _problem(2, 2),
    "constant features": _problem(60, 60, change=_constant),
    "nothing but constants": _problem(60, 60, change=_all_constant),
    "duplicated rows": _problem(60, 60, change=_duplicated),
    "one class in each domain": _problem(60, 60, change=_one_class_in_a_domain),
    "a class without rows": _problem(60, 60, change=_missing_class),
    "more features than rows": _problem(30, 30, 200),
}
