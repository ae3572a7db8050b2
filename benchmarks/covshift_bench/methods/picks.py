"""Methods that pick the candidate a scorer ranks first: our scorers, and SKADA's on the same rows.

Each candidate is fitted as an `AdaptedClassifier` and handed to SKADA's scorers in a pipeline that
takes what SKADA passes. Margins get no probabilities there, as SKADA gives them none: scorers that
need probabilities do not rank linear and kernel SVMs.
"""

from importlib.util import find_spec

import numpy as np
from sklearn import config_context, set_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from covshift import AdaptedClassifier
from covshift.predictors.objectives import METRICS
from covshift.selection.label_free_scores import SCORERS
from covshift.selection.leaderboard import disqualify
from covshift_bench.method import Method, Prediction
from covshift_bench.methods.automatic import (
    BALANCED,
    OBJECTIVES,
    make_bench,
    outputs_on_test,
    rounded,
)

# One of the predictions of each method gives it its name.
OURS, SKADAS = "pick by source CV", "pick by SKADA: circular"
TARGET, MASKED = -1, -1  # the domain of target rows, and their label, as SKADA masks it


def our_picks(task, seed):
    """Pick by each scorer of the package, for both objectives."""
    codes = np.unique(task.y_source, return_inverse=True)[1]
    bench = make_bench(task, codes, seed)
    scores = {}
    for objective in OBJECTIVES:
        bench.metric = METRICS[objective]
        suffix = "" if objective == BALANCED else f", {objective}"
        scores |= {f"{name}{suffix}": scorer(bench) for name, scorer in SCORERS.items()}
    return _pick(bench, task, codes, scores, OURS)


def skada_picks(task, seed):
    """Pick by each scorer of SKADA."""
    codes = np.unique(task.y_source, return_inverse=True)[1]
    bench = make_bench(task, codes, seed)
    with config_context():  # importing SKADA turns metadata routing on, for all of scikit-learn
        set_config(enable_metadata_routing=True)
        scores = skada_scores(bench)
    return _pick(bench, task, codes, scores, SKADAS)


def _pick(bench, task, codes, scores, own_name):
    """Predictions of the candidate that is first by each score; all scores as extras of one."""
    problem = bench.problem
    reasons = disqualify(bench.target, len(problem.X_source), problem.n_classes)
    allowed = np.array([reason is None for reason in reasons])
    picked = {
        name: int(np.argmax(np.where(allowed, np.nan_to_num(values, nan=-1e9), -np.inf)))
        for name, values in scores.items()
    }
    classes = np.unique(task.y_source)
    logits, P = outputs_on_test(bench, task, codes, set(picked.values()))
    names = [one.name for one in bench.candidates]
    found = {}
    for name, number in picked.items():
        if logits[number] is None:
            raise ValueError(f"{names[number]}, the first by {name}, could not be fitted")
        labels = classes[logits[number].argmax(axis=1)]
        found[f"pick by {name}"] = Prediction(labels, P[number], {"chosen": names[number]})
    own = {
        "candidates": names,
        "reasons": list(reasons),
        "class_counts": np.bincount(codes).tolist(),
        "scores": {name: rounded(values) for name, values in scores.items()},
    }
    found[own_name] = found[own_name]._replace(extras=found[own_name].extras | own)
    return found


class AsSkadaEstimator(ClassifierMixin, BaseEstimator):
    """A candidate whose source rows have domains from 1 on, as SKADA counts them."""

    def __init__(self, adapter, estimator):
        self.adapter = adapter
        self.estimator = estimator

    def fit(self, X, y, sample_domain=None):
        """Fit the candidate; rows with a negative domain are the target."""
        adapter = None if self.adapter is None else clone(self.adapter)
        self.model_ = AdaptedClassifier(adapter, clone(self.estimator))
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


def _pipeline(candidate):
    model = AsSkadaEstimator(candidate.adapter, candidate.estimator)
    model.set_fit_request(sample_domain=True)
    model.set_predict_request(sample_domain=True, allow_source=True)
    model.set_score_request(sample_weight=True, sample_domain=True, allow_source=True)
    if hasattr(model, "predict_proba"):
        model.set_predict_proba_request(sample_domain=True, allow_source=True)
    return Pipeline([("candidate", model)])


def skada_scores(bench):
    """Scores of each candidate by every scorer's name; NaN where a scorer cannot tell."""
    from skada import metrics

    scorers = {
        "SKADA: importance weighted": metrics.ImportanceWeightedScorer(),
        "SKADA: DEV": metrics.DeepEmbeddedValidation(random_state=0),
        "SKADA: circular": metrics.CircularValidation(),
        "SKADA: MixVal": metrics.MixValScorer(random_state=0),
        "SKADA: entropy": metrics.PredictionEntropyScorer(),
        "SKADA: density": metrics.SoftNeighborhoodDensity(),
    }
    problem = bench.problem
    X = np.concatenate([problem.X_source, problem.X_target])
    y = np.concatenate([problem.codes, np.full(len(problem.X_target), MASKED)])
    domain = np.concatenate([problem.source_domain + 1, np.full(len(problem.X_target), TARGET)])
    scores = {name: np.full(len(bench.candidates), np.nan) for name in scorers}
    for number, candidate in enumerate(bench.candidates):
        try:
            model = _pipeline(candidate).fit(X, y, sample_domain=domain)
        except ValueError:
            continue
        for name, scorer in scorers.items():
            try:
                scores[name][number] = scorer(model, X, y, sample_domain=domain)
            except (AttributeError, ValueError):  # no probabilities, one class in a fold, ...
                continue
    return scores


METHODS = [Method(OURS, "1", our_picks, random=True)]
if find_spec("skada"):
    METHODS.append(Method(SKADAS, "1", skada_picks, random=True))
