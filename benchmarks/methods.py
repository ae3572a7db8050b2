"""The methods that are compared on the design tasks: functions of a task without target labels.

A method gets a `tasks.DrawnTask` whose ``y_test`` and ``y_target`` are None, and a seed. It returns
labels of the test rows, or a `Prediction`. Raise ``version`` when you change what a method does:
its tasks are then run again.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import AutoAdaptedClassifier
from covshift.registry import records
from covshift.selection.bench import Bench
from covshift.selection.candidates import default_candidates, named_classifier
from covshift.selection.disqualification import disqualify
from covshift.selection.members import FitData, fit_members, mean_probabilities
from covshift.selection.metrics import METRICS
from covshift.selection.problem import Problem
from covshift.selection.scorers import SCORERS

BALANCED = "balanced_accuracy"


class Prediction(NamedTuple):
    """What a method says about the test rows.

    ``probabilities`` have a column for each class of the source, in sorted order. ``extras`` are
    plain data to keep with the result.
    """

    labels: np.ndarray
    probabilities: np.ndarray | None = None
    extras: dict | None = None


class Method(NamedTuple):
    """A name, a version and ``predict(task, seed)``, which workers must be able to import."""

    name: str
    version: str
    predict: Callable


def plain_logistic(task, seed):
    """Logistic regression on the standardized source."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(task.X_source, task.y_source)
    return Prediction(model.predict(task.X_test), model.predict_proba(task.X_test))


def plain_best(task, seed, objective):
    """The best unadapted candidate by validation on the source."""
    return _vote(task, seed, objective, _unadapted, _best_on_source)


def equal_vote(task, seed, objective):
    """All default candidates with equal weights, by calibrated probabilities."""
    return _vote(task, seed, objective, default_candidates, _equal_weights)


def automatic(task, seed, **settings):
    """Fit `AutoAdaptedClassifier`, with its defaults unless settings are given."""
    model = AutoAdaptedClassifier(random_state=seed, **settings)
    X, y, sample_domain = _stacked(task)
    model.fit(X, y, sample_domain=sample_domain)
    extras = {"chosen": list(model.chosen_), "decision": model.decision_}
    return Prediction(model.predict(task.X_test), model.predict_proba(task.X_test), extras)


def fixed_pipeline(task, seed, adapter, model):
    """One adapter of the registry and one model, both by name."""
    classifier = named_classifier(adapter, model, *task.X_source.shape)
    X, y, sample_domain = _stacked(task)
    classifier.fit(X, y, sample_domain=sample_domain)
    known = hasattr(classifier, "predict_proba")
    probabilities = classifier.predict_proba(task.X_test) if known else None
    return Prediction(classifier.predict(task.X_test), probabilities)


def skada_pipeline(task, seed, adapter, model):
    """A pipeline of SKADA: a scaler, one of its adapters with its defaults, a model."""
    import skada  # turns metadata routing on for all of scikit-learn: only in its own process
    from sklearn.svm import SVC

    last = LogisticRegression(max_iter=1000) if model == "logistic" else SVC()
    settings = {}
    if adapter in ("SubspaceAlignmentAdapter", "TransferComponentAnalysisAdapter"):
        settings["n_components"] = max(1, min(20, task.X_source.shape[1] // 2))
    if adapter.endswith("ReweightAdapter"):
        last = last.set_fit_request(sample_weight=True)
    X, y, sample_domain = _stacked(task)
    target = sample_domain < 0
    classes, y = np.unique(y, return_inverse=True)
    # Source domains count from 1; -1 as label means "unknown".
    sample_domain = np.where(target, -1, sample_domain + 1)
    pipeline = skada.make_da_pipeline(StandardScaler(), getattr(skada, adapter)(**settings), last)
    pipeline.fit(X, np.where(target, -1, y), sample_domain=sample_domain)
    labels = pipeline.predict(task.X_test, sample_domain=np.full(len(task.X_test), -1))
    return Prediction(classes[np.asarray(labels, dtype=int)])


def all_methods():
    """Return every method by name, those of the default run first."""
    methods = [
        Method("plain logistic", "1", plain_logistic),
        Method("plain best, accuracy", "1", partial(plain_best, objective="accuracy")),
        Method("plain best, balanced", "1", partial(plain_best, objective=BALANCED)),
        Method("auto", "1", automatic),
        Method("auto, accuracy", "1", partial(automatic, scoring="accuracy")),
        Method("equal vote, accuracy", "1", partial(equal_vote, objective="accuracy")),
        Method("equal vote, balanced", "1", partial(equal_vote, objective=BALANCED)),
    ]
    for record in records():
        for model in dict.fromkeys([*record.automatic, "logistic"]):
            function = partial(fixed_pipeline, adapter=record.name, model=model)
            methods.append(Method(f"{record.name} + {model}", "1", function))
    if find_spec("skada"):
        for adapter in SKADA_ADAPTERS:
            name = adapter.removesuffix("Adapter")
            for model in ("logistic", "rbf"):
                function = partial(skada_pipeline, adapter=adapter, model=model)
                methods.append(Method(f"SKADA {name} + {model}", "1", function))
    return {method.name: method for method in methods}


SKADA_ADAPTERS = (
    "CORALAdapter",
    "LinearOTMappingAdapter",
    "SubspaceAlignmentAdapter",
    "TransferComponentAnalysisAdapter",
    "EntropicOTMappingAdapter",
    "KMMReweightAdapter",
)
# Methods that run if none are named: baselines, the automatic choice, pipelines of either package.
DEFAULT_METHODS = (
    "plain logistic",
    "plain best, accuracy",
    "plain best, balanced",
    "auto",
    "auto, accuracy",
    "equal vote, accuracy",
    "equal vote, balanced",
    "standardize + logistic",
    "standardize-domains + logistic",
    "standardize-domains + rbf",
    "ranks + logistic",
    "coral + logistic",
    "monge + logistic",
    "ulsif + logistic",
    "sa + logistic",
    "SKADA CORAL + logistic",
    "SKADA CORAL + rbf",
    "SKADA EntropicOTMapping + logistic",
    "SKADA LinearOTMapping + logistic",
    "SKADA SubspaceAlignment + logistic",
    "SKADA KMMReweight + logistic",
)


def _stacked(task):
    """Rows, labels and domains of source and target; labels of target rows are never read."""
    X = np.concatenate([task.X_source, task.X_target])
    y = np.concatenate([task.y_source, np.resize(task.y_source, len(task.X_target))])
    return X, y, np.concatenate([task.source_domain, task.target_domain])


def _vote(task, seed, objective, list_candidates, weigh):
    """Weighted mean of the candidates' calibrated probabilities, decided for the objective."""
    classes, codes = np.unique(task.y_source, return_inverse=True)
    source = (task.X_source, codes, task.source_domain)
    problem = Problem(*source, task.X_target, task.target_domain, len(classes))
    bench = Bench(list_candidates(problem.size), problem, METRICS[objective], seed=seed)
    X, _, sample_domain = _stacked(task)
    all_codes = np.concatenate([codes, np.full(len(task.X_target), -1)])
    data = FitData(X, all_codes, sample_domain, all_codes >= 0)
    members = fit_members(bench, weigh(bench), data, None)
    P = mean_probabilities(members, task.X_test, len(classes), np.full(len(task.X_test), -1))
    decided = P / np.bincount(codes) if objective == BALANCED else P
    extras = {"chosen": [member.candidate.name for member in members]}
    return Prediction(classes[decided.argmax(axis=1)], P, extras)


def _unadapted(size):
    return [one for one in default_candidates(size) if not one.adapts]


def _best_on_source(bench):
    """Weight 1 for the best on left-out source domains; with one domain, on left-out rows."""
    scores = SCORERS["source domains"](bench)
    if np.isnan(scores).all():
        scores = SCORERS["source CV"](bench)
    weights = np.zeros(len(scores))
    weights[np.nanargmax(scores)] = 1.0
    return weights


def _equal_weights(bench):
    """Equal weights for all candidates that are neither failed nor degenerate."""
    problem = bench.problem
    reasons = disqualify(bench.target, len(problem.X_source), problem.n_classes)
    allowed = np.array([reason is None for reason in reasons], dtype=float)
    if not allowed.any():
        allowed[0] = 1.0
    return allowed / allowed.sum()
