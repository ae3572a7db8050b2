"""Small problems and candidates for the tests of selection."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from covshift import DomainStandardScaler
from covshift.base import DomainTransformer
from covshift.measures.labeled_scores import balanced_accuracy
from covshift.selection.bench import Bench, Problem
from covshift.selection.candidates import Candidate


def make_moved(n=120, seed=0, n_domains=1, n_classes=2):
    """Classes apart along the first feature; the target is moved and stretched."""
    rng = np.random.RandomState(seed)
    codes, target_codes = (np.arange(n) % n_classes for _ in range(2))
    X = rng.standard_normal((n, 3)) + 2.5 * np.outer(codes, [1, 0, 0])
    T = (rng.standard_normal((n, 3)) + 2.5 * np.outer(target_codes, [1, 0, 0])) * [2, 1, 1] + [
        9,
        3,
        0,
    ]
    domain = np.arange(n) // n_classes % n_domains
    problem = Problem(X, codes, domain, T, np.full(n, -1), n_classes)
    return problem, target_codes


def make_bench(candidates, problem=None, **options):
    problem = make_moved()[0] if problem is None else problem
    return Bench(candidates, problem, balanced_accuracy, **options)


def plain(estimator=None):
    return Candidate("none", "LR", None, estimator or LogisticRegression())


def standardized(estimator=None):
    return Candidate("standardise", "LR", DomainStandardScaler(), estimator or LogisticRegression())


class Constant(ClassifierMixin, BaseEstimator):
    """Says the first class of every row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Broken(ClassifierMixin, BaseEstimator):
    """Cannot be fitted."""

    def fit(self, X, y):
        raise RuntimeError("out of luck\nin two lines")


class Spy(DomainTransformer):
    """Passes rows on, and notes in a list what it was told of them."""

    def __init__(self, notes=None):
        self.notes = notes

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y=None, *, sample_domain=None, label_mask=None):
        self.notes.append(("fit", np.array(y), np.array(sample_domain)))
        self.fitted_ = True
        return self

    def transform(self, X, *, sample_domain=None, allow_source=False):
        self.notes.append(("transform", np.array(X), np.array(sample_domain)))
        return X
