"""Every adapter on every pair of domains: what the trials are, and how they are run."""

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift.base import NothingToAdaptWarning
from covshift.domains import stack_domains
from covshift.measures import unweighted_average_recall
from covshift.predictors import AdaptedClassifier
from covshift.studies.comparison.collections import (
    MAX_ROWS,
    Collection,
    Draw,
    domain_pairs,
    draw_pair,
    load_collection,
    load_declared_collection,
)
from covshift.studies.comparison.report import comparison_document, comparison_table
from covshift.studies.comparison.systems import (
    BEST_UNADAPTED,
    C_VALUES,
    FOLDS,
    Model,
    build_model,
    systems,
    unadapted_models,
)
from covshift.studies.study import Study
from covshift.studies.trial import Trial
from covshift.weights import UnreliableWeightsWarning

EXPERIMENT = "compare"


def comparison_study(paths: Mapping[str, str], n_trials: int, seed: int) -> Study:
    """Return every adapter on every pair of domains of the collections that lie at ``paths``."""
    collections = [load_collection(name, path) for name, path in paths.items()]
    return Study(
        name="adapters",
        tasks=declare(collections, n_trials, seed),
        # Paths do not identify a trial, so that a run resumes after its folders have moved.
        function=partial(run_comparison, paths=dict(paths)),
        run_settings={"trials": n_trials, "seed": seed, "data": dict(paths)},
        document=comparison_document,
        table=comparison_table,
    )


def declare(collections: Sequence[Collection], n_trials: int, seed: int = 0) -> list[list[Trial]]:
    """Return trials of the comparison: all systems on all pairs, in groups computed together.

    Each is a group of its own, except for the best model without adapting: its trials on the
    targets of one source share one model.
    """
    tasks = []
    seeds = range(seed, seed + n_trials)
    for collection in collections:
        where: dict[str, Any] = {"collection": collection.name, "data": collection.fingerprint}
        # Results under other constants are other results: the key of a trial distinguishes them.
        where["protocol"] = {
            "max_rows": MAX_ROWS,
            "C_values": C_VALUES,
            "folds": FOLDS,
        }
        pairs = domain_pairs(collection, seed)
        described = systems(collection.X.shape[1], len(np.unique(collection.y)))
        for source in dict.fromkeys(source for source, _ in pairs):
            targets = [target for first, target in pairs if first == source]
            candidates = unadapted_models(collection.X.shape[1])
            model: dict[str, Any] = {"system": BEST_UNADAPTED, "candidates": candidates}
            for one in seeds:
                tasks.append([
                    Trial(EXPERIMENT, {**where, "source": source, "target": target, **model}, one)
                    for target in targets
                ])  # fmt: skip
            for target in targets:
                pair = {**where, "source": source, "target": target}
                for name, recipe in described.items():
                    settings = {**pair, "system": name, "recipe": recipe}
                    tasks += [[Trial(EXPERIMENT, settings, one)] for one in seeds]
    return tasks


def run_comparison(trials: list[Trial], paths: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run the trials of one task of the comparison; ``paths`` say where the collections lie.

    A result holds the balanced accuracy on the scored half of the target (``score``), and that of
    the same system fitted without target rows (``without_target``) where that makes sense.
    """
    name = trials[0].settings["collection"]
    collection = load_declared_collection(name, paths[name], trials[0].settings["data"])
    with warnings.catch_warnings():
        # Fixed numbers of iterations, few rows with most of the weight, nothing to adapt to in a
        # control: the study measures all of these.
        for category in (ConvergenceWarning, UnreliableWeightsWarning, NothingToAdaptWarning):
            warnings.simplefilter("ignore", category)
        # The regression that all share is to converge: where it does not, the record says so.
        warnings.filterwarnings("always", "lbfgs failed to converge", ConvergenceWarning)
        if trials[0].settings["system"] == BEST_UNADAPTED:
            return run_unadapted(collection, trials)
        return [_run_system(collection, paths[name], trial) for trial in trials]


def _run_system(collection: Collection, path: str, trial: Trial) -> dict[str, Any]:
    settings = trial.settings
    draw = draw_pair(collection, settings["source"], settings["target"], trial.seed, MAX_ROWS)
    C = _c_of_source(collection.name, path, settings["data"], settings["source"], trial.seed)
    return _measure_system(settings["system"], settings["recipe"]["control"], draw, C)


def _measure_system(name: str, control: bool, draw: Draw, C: float) -> dict[str, Any]:
    """Fit an adapter by its name on one draw, and score it on the test rows."""
    data = draw.data
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    model = AdaptedClassifier(name, common_estimator(C))
    model.fit(X, y, sample_domain=sample_domain)
    result = {"score": _score(model, data.X_test, data.y_test), "C": C}
    if control:
        model.fit(data.X_source, data.y_source)
        result["without_target"] = _score(model, data.X_test, data.y_test)
    return result


def common_estimator(C: float) -> Any:
    """Return what all systems in the comparison study predict with: scaled logistic regression."""
    with config_context(enable_metadata_routing=True):  # weights are for the regression alone
        return make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression(C=C, max_iter=5000).set_fit_request(sample_weight=True),
        )


@lru_cache(maxsize=128)  # one choice serves all systems and all targets
def _c_of_source(name: str, path: str, fingerprint: str, source: str, seed: int) -> float:
    collection = load_declared_collection(name, path, fingerprint)
    target = next(other for other in collection.domain_names.values() if other != source)
    return choose_c(draw_pair(collection, source, target, seed, MAX_ROWS))


def choose_c(draw: Draw) -> float:
    """Choose the C of the comparison study, by folds of unadapted source rows."""
    models = [common_estimator(C) for C in C_VALUES]
    return C_VALUES[int(np.argmax([_source_score(model, draw) for model in models]))]


def _source_score(model: Any, draw: Draw) -> float:
    """Return the balanced accuracy in folds of the source rows; groups are held out as a whole."""
    data, groups = draw.data, draw.source_groups
    folds: Any = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    if groups is not None and len(set(groups)) >= FOLDS:
        folds = GroupKFold(FOLDS)
    # Whatever the caller's setting is: with routing, groups would have to be given otherwise.
    with config_context(enable_metadata_routing=False), warnings.catch_warnings():
        # A rare class may be missing from a fold: the score is that of the others.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true", UserWarning)
        scores = cross_val_score(
            model, data.X_source, data.y_source, groups=groups, cv=folds,
            scoring="balanced_accuracy", error_score="raise",
        )  # fmt: skip
    return float(scores.mean())


def run_unadapted(collection: Collection, trials: list[Trial]) -> list[dict[str, Any]]:
    """Run the comparison study without adapters: choose on source rows, score on each target."""
    first = trials[0].settings
    draws = [
        draw_pair(collection, first["source"], trial.settings["target"], trial.seed, MAX_ROWS)
        for trial in trials
    ]
    parts: list[Model] = first["candidates"]
    models = [make_pipeline(StandardScaler(), build_model(part)) for part in parts]
    best = int(np.argmax([_source_score(model, draws[0]) for model in models]))
    model = clone(models[best]).fit(draws[0].data.X_source, draws[0].data.y_source)
    return [
        {"score": _score(model, draw.data.X_test, draw.data.y_test), "model": parts[best]["name"]}
        for draw in draws
    ]


def _score(model: Any, X: Any, y: Any) -> float:
    return unweighted_average_recall(y, model.predict(X))
