"""The paper's synthetic study, and the readings of its systems, as studies to be run."""

from collections.abc import Sequence
from typing import Any

from covshift.paper.synthetic.report import (
    accuracy_table,
    gather_trials,
    readings_document,
    synthetic_document,
)
from covshift.paper.synthetic.systems import (
    DATA_SETS,
    READINGS,
    READINGS_TRIED,
    RECONSTRUCTED,
    SYSTEMS,
)
from covshift.paper.synthetic.trials import FAMILY, run_synthetic_trials
from covshift.studies.store import Record
from covshift.studies.study import Facts, Study
from covshift.studies.trial import Trial

EXPERIMENT, READINGS_EXPERIMENT = "synthetic", "readings"
# Trials computed together: as many as fill the arrays of the small filters. The number is part
# of what a run computes, to the last bit, and stays as it is when trials are added.
TRIALS_TOGETHER = 30


def synthetic_study(n_trials: int, seed: int) -> Study:
    """Return the synthetic study on draws of consecutive seeds."""

    def document(records: Sequence[Record], facts: Facts) -> Any:
        from covshift.paper.synthetic.figures import draw_figures  # needs an extra

        return synthetic_document(gather_trials(records), facts, draw_figures(seed))

    return Study(
        name="synthetic",
        tasks=declare(n_trials, seed),
        function=run_synthetic_trials,
        run_settings={"trials": n_trials, "seed": seed},
        document=document,
        table=accuracy_table,
    )


def readings_study(n_trials: int, seed: int) -> Study:
    """Return the study of how to read what the paper leaves open, on synthetic draws by seed."""
    return Study(
        name="readings",
        tasks=_declare_readings(n_trials, seed),
        function=run_synthetic_trials,
        run_settings={"trials": n_trials, "seed": seed},
        document=lambda records, facts: readings_document(gather_trials(records), facts),
    )


def declare(
    n_trials: int, seed: int = 0, readings: Sequence[str] = tuple(READINGS)
) -> list[list[Trial]]:
    """Return the trials of the whole synthetic study, in groups that are computed together.

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
        tasks += _group_trials(EXPERIMENT, {**where, "system": FAMILY}, n_trials, seed)
        for reading in readings:
            for system, recipe in READINGS[reading].items():
                if system in SYSTEMS or variant == "reconstructed":
                    settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                    tasks += _group_trials(EXPERIMENT, settings, n_trials, seed)
    for reading in readings:  # without the few rows that differ between the twins
        for system in SYSTEMS:
            recipe = READINGS[reading][system]
            for variant in ("reconstructed", "printed"):
                where = {"data_set": "periodic", "variant": variant, "without_crossing": True}
                settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                tasks += _group_trials(EXPERIMENT, settings, n_trials, seed)
    return tasks


def _declare_readings(n_trials: int, seed: int = 0) -> list[list[Trial]]:
    """Trials of every reading on every data set, in the groups that are computed together."""
    tasks = []
    for data_set in DATA_SETS:
        for system, readings in READINGS_TRIED.items():
            for reading, recipe in readings.items():
                where = {"data_set": data_set, "variant": "reconstructed"}
                settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                tasks += _group_trials(READINGS_EXPERIMENT, settings, n_trials, seed)
    return tasks


def _group_trials(
    experiment: str, settings: dict[str, Any], n_trials: int, seed: int
) -> list[list[Trial]]:
    """Return the trials of consecutive seeds, in the groups that are computed together."""
    seeds = range(seed, seed + n_trials)
    return [
        [Trial(experiment, settings, one) for one in seeds[first : first + TRIALS_TOGETHER]]
        for first in range(0, n_trials, TRIALS_TOGETHER)
    ]
