"""SKADA's scorers on the same candidates and rows as ours.

Each candidate is fitted as an `AdaptedClassifier` and handed to the scorer in a pipeline that takes
what SKADA passes. Margins get no probabilities here, as SKADA gives them none: scorers that need
probabilities cannot tell linear and kernel SVMs, and such candidates are not ranked by them.
"""

import warnings

import numpy as np
from skada.metrics import (
    CircularValidation,
    DeepEmbeddedValidation,
    ImportanceWeightedScorer,
    MixValScorer,
    PredictionEntropyScorer,
    SoftNeighborhoodDensity,
)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from covshift import AdaptedClassifier

TARGET, MASKED = -1, -1  # the domain of target rows, and their label, as SKADA masks it


class AsSkadaEstimator(ClassifierMixin, BaseEstimator):
    """A candidate whose source rows have domains from 1 on, as SKADA counts them."""

    def __init__(self, adapter, estimator):
        self.adapter = adapter
        self.estimator = estimator

    def fit(self, X, y, sample_domain=None):
        """Fit the candidate; rows with a negative domain are the target."""
        self.model_ = AdaptedClassifier(_copy(self.adapter), clone(self.estimator))
        self.model_.fit(X, y, sample_domain=_as_ours(sample_domain))
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X, sample_domain=None, allow_source=False):
        """Labels of rows of these domains."""
        return self.model_.predict(X, sample_domain=_as_ours(sample_domain))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X, sample_domain=None, allow_source=False):
        """Probabilities, where the candidate's model has some."""
        return self.model_.predict_proba(X, sample_domain=_as_ours(sample_domain))

    def score(self, X, y, sample_weight=None, sample_domain=None, allow_source=False):
        """Weighted balanced accuracy."""
        predicted = self.predict(X, sample_domain)
        return balanced_accuracy_score(y, predicted, sample_weight=sample_weight)


def _as_ours(sample_domain):
    domain = np.asarray(sample_domain)
    return np.where(domain > 0, domain - 1, domain)


def _copy(adapter):
    return None if adapter is None else clone(adapter)


def _pipeline(candidate):
    model = AsSkadaEstimator(candidate.adapter, candidate.estimator)
    model.set_fit_request(sample_domain=True)
    model.set_predict_request(sample_domain=True, allow_source=True)
    model.set_score_request(sample_weight=True, sample_domain=True, allow_source=True)
    if hasattr(model, "predict_proba"):
        model.set_predict_proba_request(sample_domain=True, allow_source=True)
    return Pipeline([("candidate", model)])


SKADA_SCORERS = {
    "SKADA: importance weighted": ImportanceWeightedScorer(),
    "SKADA: DEV": DeepEmbeddedValidation(random_state=0),
    "SKADA: circular": CircularValidation(),
    "SKADA: MixVal": MixValScorer(random_state=0),
    "SKADA: entropy": PredictionEntropyScorer(),
    "SKADA: density": SoftNeighborhoodDensity(),
}


def skada_scores(bench):
    """Scores of each candidate by every scorer's name; NaN where a scorer cannot tell."""
    problem = bench.problem
    X = np.concatenate([problem.X_source, problem.X_target])
    y = np.concatenate([problem.codes, np.full(len(problem.X_target), MASKED)])
    domain = np.concatenate([problem.source_domain + 1, np.full(len(problem.X_target), TARGET)])
    scores = {name: np.full(len(bench.candidates), np.nan) for name in SKADA_SCORERS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, candidate in enumerate(bench.candidates):
            try:
                model = _pipeline(candidate).fit(X, y, sample_domain=domain)
            except ValueError:
                continue
            for name, scorer in SKADA_SCORERS.items():
                try:
                    scores[name][number] = scorer(model, X, y, sample_domain=domain)
                except (AttributeError, ValueError):  # no probabilities, one class in a fold, ...
                    continue
    return scores
