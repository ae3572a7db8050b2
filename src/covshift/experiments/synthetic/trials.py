"""The paper's synthetic study: what its trials are, and how they are run."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from covshift.adapters import fit_each
from covshift.base import NothingToAdaptWarning
from covshift.datasets import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.domains import stack_domains
from covshift.experiments.paper import (
    DATA_SETS,
    LEARNS_WITHOUT_TARGET,
    READINGS,
    RECONSTRUCTED,
    SYSTEMS,
    Recipe,
)
from covshift.experiments.recipes import build
from covshift.experiments.synthetic.families import family_accuracy
from covshift.experiments.synthetic.statements import check_statements
from covshift.experiments.trial import Trial
from covshift.measures import mmd
from covshift.predictors import AdaptedClassifier
from covshift.weights import UnreliableWeightsWarning

EXPERIMENT = "synthetic"
MAKERS = {
    "radial": make_radial_shift,
    "periodic": make_periodic_shift,
    "smooth": make_smooth_shift,
    "diagonal": make_diagonal_shift,
}
FAMILY = "family"  # in place of a system: the simplest model of the right family
# Trials computed together: as many as fill the arrays of the small filters. The number is part
# of what a run computes, to the last bit, and stays as it is when trials are added.
TRIALS_TOGETHER = 30


class Draw(NamedTuple):
    """The data of a trial, and the seed of all that the systems draw."""

    data: ShiftedData
    start: int


def draw_trial(
    data_set: str, seed: int, variant: str = "reconstructed", *, without_crossing: bool = False
) -> Draw:
    """Draw the data of one trial.

    The data are those of ``random_state=seed``. The start is drawn after them: were it seeded
    by the same number, filters would repeat the very draws that made the first rows.

    ``without_crossing`` leaves out source rows with x1 < 0 and test rows with x1 > 0: without
    these .08 % of the rows the two variants of `periodic` have the same source labels and
    opposite test labels.
    """
    rng = np.random.RandomState(seed)
    data = MAKERS[data_set](variant=variant, random_state=rng)
    if without_crossing:
        source, test = data.X_source[:, 0] >= 0, data.X_test[:, 0] <= 0
        data = data._replace(
            X_source=data.X_source[source], y_source=data.y_source[source],
            X_test=data.X_test[test], y_test=data.y_test[test],
        )  # fmt: skip
    return Draw(data, int(rng.randint(2**31 - 1)))


def declare(
    n_trials: int, seed: int = 0, readings: Sequence[str] = tuple(READINGS)
) -> list[list[Trial]]:
    """Trials of the whole study, in the groups that are computed together.

    The supplement's systems are run where it has figures: on the reconstructed variants.
    """
    variants = [
        (data_set, variant)
        for data_set in DATA_SETS
        for variant in ("reconstructed", "printed")
        if variant == "reconstructed" or data_set in RECONSTRUCTED
    ]
    tasks = []
    for data_set, variant in variants:
        where: dict[str, Any] = {"data_set": data_set, "variant": variant}
        tasks += group_trials(EXPERIMENT, {**where, "system": FAMILY}, n_trials, seed)
        for reading in readings:
            for system, recipe in READINGS[reading].items():
                if system in SYSTEMS or variant == "reconstructed":
                    settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                    tasks += group_trials(EXPERIMENT, settings, n_trials, seed)
    for reading in readings:  # the same with the few rows left out that tell the two apart
        for system in SYSTEMS:
            recipe = READINGS[reading][system]
            for variant in ("reconstructed", "printed"):
                where = {"data_set": "periodic", "variant": variant, "without_crossing": True}
                settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                tasks += group_trials(EXPERIMENT, settings, n_trials, seed)
    return tasks


def run_trials(trials: list[Trial]) -> list[dict[str, Any]]:
    """Run trials that differ in nothing but their seed; one result for each.

    A result holds the accuracies ``without`` and ``with`` adaptation and, for representations,
    that of the same adapter fitted without the target (``without_target``), MMD^2 between source
    and test rows before and after, and which of the paper's statements hold.
    """
    settings = trials[0].settings
    draws = [
        draw_trial(
            settings["data_set"],
            trial.seed,
            settings["variant"],
            without_crossing=settings.get("without_crossing", False),
        )
        for trial in trials
    ]
    if settings["system"] == FAMILY:
        return [{"with": family_accuracy(settings["data_set"], draw.data)} for draw in draws]
    with warnings.catch_warnings():
        # The paper's numbers of iterations, converged or not; a few rows that carry most of
        # the weight; two directions of two features: all of it is what is being measured.
        for category in (ConvergenceWarning, UnreliableWeightsWarning, NothingToAdaptWarning):
            warnings.simplefilter("ignore", category)
        if settings["recipe"]["adapter"]["name"].endswith("Weights"):
            return [_run_weights(settings["recipe"], draw) for draw in draws]
        return _run_representations(settings, draws)


def group_trials(
    experiment: str, settings: dict[str, Any], n_trials: int, seed: int
) -> list[list[Trial]]:
    """Trials of consecutive seeds, in the groups that are computed together."""
    seeds = range(seed, seed + n_trials)
    return [
        [Trial(experiment, settings, one) for one in seeds[first : first + TRIALS_TOGETHER]]
        for first in range(0, n_trials, TRIALS_TOGETHER)
    ]


def _run_weights(recipe: Recipe, draw: Draw) -> dict[str, Any]:
    data, start = draw
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    estimator = build(recipe["estimator"], data, start)
    without = clone(estimator).fit(data.X_source, data.y_source)
    adapted = AdaptedClassifier(build(recipe["adapter"], data, start), estimator)
    adapted.fit(X, y, sample_domain=sample_domain)
    return {
        "without": _accuracy(without, data.X_test, data.y_test),
        "with": _accuracy(adapted, data.X_test, data.y_test),
    }


def _run_representations(settings: dict[str, Any], draws: list[Draw]) -> list[dict[str, Any]]:
    recipe = settings["recipe"]
    adapters = [build(recipe["adapter"], *draw) for draw in draws]
    stacked = [stack_domains(data.X_source, data.y_source, data.X_target) for data, _ in draws]
    fitted = _fit_all(adapters, stacked)
    results = []
    for (data, start), adapter, (X, _, sample_domain) in zip(draws, fitted, stacked, strict=True):
        estimator = build(recipe["estimator"], data, start)
        without = clone(estimator).fit(data.X_source, data.y_source)
        # All rows at once: norms of a batch are those of the whole domain.
        source = adapter.transform(X, sample_domain=sample_domain)[sample_domain >= 0]
        test = adapter.transform(data.X_test)
        results.append(
            {
                "without": _accuracy(without, data.X_test, data.y_test),
                "with": _accuracy(clone(estimator).fit(source, data.y_source), test, data.y_test),
                "mmd_before": mmd(data.X_source, data.X_test),
                "mmd_after": mmd(source, test),
                "statements": (
                    check_statements(adapter, data.X_test)
                    if hasattr(adapter, "feature_norms_")
                    else {}
                ),
            }
        )
    if settings["system"] in LEARNS_WITHOUT_TARGET:
        alone = _fit_all(adapters, [(data.X_source, data.y_source, None) for data, _ in draws])
        for (data, start), adapter, result in zip(draws, alone, results, strict=True):
            estimator = build(recipe["estimator"], data, start)
            estimator.fit(adapter.transform(data.X_source), data.y_source)
            test = adapter.transform(data.X_test)
            result["without_target"] = _accuracy(estimator, test, data.y_test)
    return results


def _fit_all(adapters: list[Any], data: list[Any]) -> list[Any]:
    """Fit each to its own data, together where that can be done."""
    if hasattr(adapters[0], "max_iter") or hasattr(adapters[0], "max_epochs"):
        return fit_each(adapters, data)
    return [
        adapter.fit(X, y, sample_domain=sample_domain)
        for adapter, (X, y, sample_domain) in zip(adapters, data, strict=True)
    ]


def _accuracy(model: Any, X: Any, y: Any) -> float:
    return float(np.mean(model.predict(X) == y))
