"""Readings of the systems that the paper leaves open, tried one by one, as data.

Where the text is silent or does not give the printed figures, each way to read it is a recipe here;
the first of each system is the one that `covshift.experiments.paper` uses. Labels of test rows
serve to compare readings with printed figures, and nothing else.
"""

from typing import Any, TypeAlias

from covshift.experiments.paper import (
    AS_RELEASED,
    DATA_SETS,
    LSPC_LAMBDAS,
    Part,
    Recipe,
)
from covshift.experiments.synthetic.trials import group_trials
from covshift.experiments.trial import Trial

Params: TypeAlias = dict[str, Any]

EXPERIMENT = "readings"
N_SOURCE = 500  # rows over which H is summed, in one of the readings


def _changed(system: str, adapter: Params, estimator: Params | None = None) -> Recipe:
    """The released recipe of a system with some parameters changed."""
    recipe = AS_RELEASED[system]
    parts: list[Part] = []
    for part, changes in ((recipe["adapter"], adapter), (recipe["estimator"], estimator or {})):
        assert part is not None  # every released system adapts
        parts.append({"name": part["name"], "params": {**part["params"], **changes}})
    return {"adapter": parts[0], "estimator": parts[1]}


def _changed_iw(bases: str, criterion: str, clip: str, *, summed: bool = False) -> Recipe:
    """IW+LSPC; H summed over the rows, not averaged, is the same as smaller lambdas."""
    lambdas = [value / N_SOURCE for value in LSPC_LAMBDAS] if summed else LSPC_LAMBDAS
    estimator: Params = {"bases": bases, "criterion": criterion, "lambdas": lambdas}
    return _changed("IW+LSPC", {"clip": clip}, estimator)


# What the text alone suggests of the auto-encoder: both functions are sigmoids, which needs rows
# in [0, 1], and epochs are whole. 667 epochs are 10,000 mini-batches.
TEXT: Params = {
    "tied": False,
    "decoder": "sigmoid",
    "scaling": "minmax",
    "init": "glorot",
    "max_epochs": 10_000,
}
ONE_BATCH: Params = {"max_epochs": 667}
SGD: Params = {"solver": "sgd", "momentum": 0.0}

READINGS_TRIED: dict[str, dict[str, Recipe]] = {
    "SF": {
        "as drawn": AS_RELEASED["SF"],
        "trained": _changed("SF", {"max_iter": 500}),
    },
    "PSF": {
        "released loss": AS_RELEASED["PSF"],
        "printed loss": _changed("PSF", {"loss": "joint", "epsilon": 1e-8}),
    },
    "IW+LSPC": {
        "published": AS_RELEASED["IW+LSPC"],
        "our choices": _changed_iw("target rows", "squared_error", "weights"),
        "published, bases on source": _changed_iw("labelled", "misclassification", "coefficients"),
        "our choices, bases on source": _changed_iw("labelled", "squared_error", "weights"),
        "published, H summed": _changed_iw(
            "target rows", "misclassification", "coefficients", summed=True
        ),
        "our choices, H summed": _changed_iw(
            "target rows", "squared_error", "weights", summed=True
        ),
    },
    "SSA": {"both directions": AS_RELEASED["SSA"]},
    "DAE": {
        "named code": AS_RELEASED["DAE"],
        "named code, weights not tied": _changed("DAE", {"tied": False}),
        "named code, sigmoid decoder": _changed("DAE", {"decoder": "sigmoid"}),
        "named code, min-max scaling": _changed("DAE", {"scaling": "minmax"}),
        "named code, Glorot start": _changed("DAE", {"init": "glorot"}),
        "named code, SGD": _changed("DAE", SGD),
        "named code, whole epochs": _changed("DAE", {"max_epochs": 10_000}),
        # Of 500 rows, 1,000 epochs are 10,000 mini-batches: for the control without a target.
        "named code, 1,000 epochs": _changed("DAE", {"max_epochs": 1000}),
        "text": _changed("DAE", TEXT),
        "text, one batch per epoch": _changed("DAE", {**TEXT, **ONE_BATCH}),
        "text, tied": _changed("DAE", {**TEXT, "tied": True}),
        "text, SGD": _changed("DAE", {**TEXT, **SGD}),
        "text, SGD, one batch per epoch": _changed("DAE", {**TEXT, **ONE_BATCH, **SGD}),
    },
}


def declare_readings(n_trials: int, seed: int = 0) -> list[list[Trial]]:
    """Trials of every reading on every data set, in the groups that are computed together."""
    tasks = []
    for data_set in DATA_SETS:
        for system, readings in READINGS_TRIED.items():
            for reading, recipe in readings.items():
                where = {"data_set": data_set, "variant": "reconstructed"}
                settings = {**where, "system": system, "reading": reading, "recipe": recipe}
                tasks += group_trials(EXPERIMENT, settings, n_trials, seed)
    return tasks
