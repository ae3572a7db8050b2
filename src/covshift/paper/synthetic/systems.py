"""The systems of the paper's synthetic study as data: data sets, settings, readings.

Zennaro & Chen, "On the use of sparse filtering for covariate shift adaptation". Every recipe is
plain data, so that it can be hashed, stored and read; `build_part` makes the
estimators. Where the text is silent or does not give the printed figures, each way to read it is
a recipe of ``READINGS_TRIED``; the first of each system is the one used elsewhere.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from covshift.datasets import ShiftedData
from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.predictors import LSPClassifier
from covshift.registry import BUILT_IN

Params: TypeAlias = dict[str, Any]


class Part(TypedDict):
    """An estimator of covshift or scikit-learn by its name, and its parameters."""

    name: str
    params: dict[str, Any]


ESTIMATORS: dict[str, Any] = {
    **{record.class_name: record.load_class() for record in BUILT_IN},
    "LSPClassifier": LSPClassifier,
    "LinearSVC": LinearSVC,
}
TARGET_ROWS = "target rows"  # stands for the unlabeled rows in parameters


def build_part(part: Part, data: ShiftedData, random_state: int) -> Any:
    """Make a part of a system of the synthetic study: an estimator, seeded where it draws."""
    estimator = ESTIMATORS[part["name"]]
    params = {
        name: data.X_target if value == TARGET_ROWS else value
        for name, value in part["params"].items()
    }
    if "random_state" in inspect.signature(estimator).parameters:
        params["random_state"] = random_state
    return estimator(**params)


class Recipe(TypedDict):
    """A system: what adapts, and what predicts, with and without it."""

    adapter: Part
    estimator: Part


DATA_SETS = ("radial", "periodic", "smooth", "diagonal")
# Data sets whose printed definition does not give the printed figures (see the errata).
RECONSTRUCTED = ("periodic", "diagonal")
SYSTEMS = ("SF", "PSF", "IW+LSPC", "SSA", "DAE")
# Those that learn a representation from rows without knowing which are target rows: fitted
# without the target they are still what they are, and a control for the adaptation.
LEARNS_WITHOUT_TARGET = ("SF", "PSF", "DAE")

SVM: Part = {"name": "LinearSVC", "params": {"C": 1.0}}
# Of both, uLSIF and LSPC (Appendix D.1).
SIGMAS = [0.1, 0.2, 0.5, 1.0, 2.0, 3.0]
ULSIF_LAMBDAS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
LSPC_LAMBDAS = [0.1, 0.17, 0.32, 0.56, 1.0]
# Of both filters in the released code: standard normal draws as the start, norms of each domain as
# a batch, 1e-8 inside the roots.
RELEASED_FILTER = {
    "n_components": 2,
    "init_scale": 1.0,
    "normalization": "batch",
    "norm_epsilon": 1e-8,
}
RELEASED_PSF = {
    **RELEASED_FILTER,
    "loss": "blockwise",
    "activation": "sin",
    "label_reward": 1.0,
    "epsilon": 0.0,
    "max_iter": 500,
    "n_restarts": 1,
}

# The readings under which the printed figures come out, where any does.
AS_RELEASED: dict[str, Recipe] = {
    # The text says 500 iterations; the printed accuracies are those of filters as drawn.
    "SF": {
        "adapter": {"name": "SparseFiltering", "params": {**RELEASED_FILTER, "max_iter": 0}},
        "estimator": SVM,
    },
    "PSF": {
        "adapter": {"name": "PeriodicSparseFiltering", "params": RELEASED_PSF},
        "estimator": SVM,
    },
    # "bases": the target rows, for the baseline without weights too.
    "IW+LSPC": {
        "adapter": {
            "name": "ULSIFWeights",
            "params": {
                "n_bases": 250,
                "sigmas": SIGMAS,
                "lambdas": ULSIF_LAMBDAS,
                "clip": "coefficients",
            },
        },
        "estimator": {
            "name": "LSPClassifier",
            "params": {
                "n_bases": 250,
                "sigmas": SIGMAS,
                "lambdas": LSPC_LAMBDAS,
                "criterion": "misclassification",
                "bases": "target rows",
            },
        },
    },
    "SSA": {
        "adapter": {"name": "SubspaceAlignment", "params": {"n_components": 2}},
        "estimator": {"name": "LinearSVC", "params": {"C": 3.0}},
    },
    # As in the code that the paper names: 10,000 mini-batches, not epochs, by Adam.
    "DAE": {
        "adapter": {
            "name": "DenoisingAutoencoder",
            "params": {
                "n_components": 1,
                "activation": "sigmoid",
                "noise": "gaussian",
                "noise_level": 0.1,
                "learning_rate": 0.001,
                "batch_size": 50,
                "max_epochs": 667,
                "solver": "adam",
                "tied": True,
                "decoder": "linear",
                "scaling": None,
                "init": "normal",
            },
        },
        "estimator": SVM,
    },
}

# Recommended settings: joint loss, restarts kept by training loss, norms of each domain, few
# features per class, the start and the reward that the paper states, and otherwise the defaults.
USED_WELL: dict[str, Recipe] = {
    "SF": {
        "adapter": {
            "name": "SparseFiltering",
            "params": {
                "n_components": 4,
                "init_scale": 1.0,
                "n_restarts": 10,
                "max_iter": 1000,
            },
        },
        "estimator": SVM,
    },
    "PSF": {
        "adapter": {
            "name": "PeriodicSparseFiltering",
            "params": {
                "n_components": 4,
                "init_scale": 1.0,
                "label_reward": 1.0,
                "n_restarts": 100,
                "max_iter": 1000,
            },
        },
        "estimator": SVM,
    },
    "IW+LSPC": {
        "adapter": {"name": "RuLSIFWeights", "params": {}},
        "estimator": {"name": "LSPClassifier", "params": {}},
    },
    # As many directions as features would change nothing.
    "SSA": {
        "adapter": {"name": "SubspaceAlignment", "params": {"n_components": 1}},
        "estimator": SVM,
    },
    "DAE": {
        "adapter": {
            "name": "DenoisingAutoencoder",
            "params": {"n_components": 8, "early_stopping": True},
        },
        "estimator": SVM,
    },
}

# Systems that the authors' supplement adds, in the released reading.
SUPPLEMENT: dict[str, Recipe] = {
    "PSF without labels": {
        "adapter": {
            "name": "PeriodicSparseFiltering",
            "params": {**RELEASED_PSF, "label_reward": 0.0},
        },
        "estimator": SVM,
    },
    "SF with labels": {
        "adapter": {
            "name": "PeriodicSparseFiltering",
            "params": {**RELEASED_PSF, "activation": "abs", "epsilon": 1e-8},
        },
        "estimator": SVM,
    },
    "PSF, λ = 10": {
        "adapter": {
            "name": "PeriodicSparseFiltering",
            "params": {**RELEASED_PSF, "label_reward": 10.0},
        },
        "estimator": SVM,
    },
}

READINGS: dict[str, dict[str, Recipe]] = {
    "as released": {**AS_RELEASED, **SUPPLEMENT},
    "used well": USED_WELL,
}

N_SOURCE = 500  # rows over which H is summed, in one of the readings


def _changed(system: str, adapter: Params, estimator: Params | None = None) -> Recipe:
    """Return the released recipe of a system with some parameters changed."""
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


# The auto-encoder by the text alone: both functions are sigmoids, which needs rows
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


# --- The simplest model of the family that labels come from, for each synthetic data set ---

# Candidates of the sine: from a period wider than the source to one of a few rows.
FREQUENCIES = np.linspace(0.1, 4.0, 391)


N_PHASES = 64


FAMILY_NAMES: dict[str, str] = {
    "radial": "|x1| > a |x2|",
    "periodic": "one sine of one feature",
    "smooth": "quadratic logistic regression",
    "diagonal": "|x_j| > a",
}


def family_accuracy(data_set: str, data: ShiftedData) -> float:
    """Return the test accuracy beside the systems': of a data set family's simplest model."""
    predict = FAMILIES[data_set](data.X_source, np.asarray(data.y_source, dtype=bool))
    return float(np.mean(predict(data.X_test) == np.asarray(data.y_test, dtype=bool)))


def _fit_cone(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x1| > a |x2|`` with the best a."""

    def angle(rows: FloatArray) -> FloatArray:  # grows with |x1| / |x2|, and is always finite
        return np.arctan2(np.abs(rows[:, 0]), np.abs(rows[:, 1]))

    threshold = best_threshold(angle(X), y)
    return lambda rows: angle(rows) > threshold


def _fit_sine(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``sin(w x_j + p) > 0`` with the best feature, frequency and phase."""
    best: tuple[float, Any] = (-np.inf, None)
    every = np.arange(len(FREQUENCIES))[:, None] * N_PHASES
    for feature in range(X.shape[1]):
        # A step of the phase moves every angle into the next of as many parts of the circle, of
        # which the first half is positive. So counts by part serve all phases.
        turns = FREQUENCIES[:, None] * (X[:, feature] / (2 * np.pi))
        part = (np.floor(turns * N_PHASES).astype(int) % N_PHASES + every).ravel()
        votes = np.bincount(part, np.tile(np.where(y, 1, -1), len(every)), every.size * N_PHASES)
        sums = np.cumsum(np.tile(votes.reshape(-1, N_PHASES), 2), axis=1)
        starts = -np.arange(N_PHASES) % N_PHASES  # the part that comes to lie first
        correct = sums[:, starts + N_PHASES // 2 - 1] - np.where(starts, sums[:, starts - 1], 0)
        frequency, phase = np.unravel_index(correct.argmax(), correct.shape)
        if correct[frequency, phase] > best[0]:
            phases = 2 * np.pi / N_PHASES
            best = correct[frequency, phase], (feature, FREQUENCIES[frequency], phase * phases)
    feature, frequency, phase = best[1]
    return lambda rows: np.sin(frequency * rows[:, feature] + phase) > 0


def _fit_quadratic(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """Logistic regression on the features, their squares and products."""
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(X, y)
    return lambda rows: model.predict(rows).astype(bool)


def _fit_band(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x_j| > a`` with the best feature and a."""
    candidates = [(best_threshold(np.abs(X[:, j]), y), j) for j in range(X.shape[1])]
    threshold, feature = max(
        candidates, key=lambda candidate: np.mean((np.abs(X[:, candidate[1]]) > candidate[0]) == y)
    )
    return lambda rows: np.abs(rows[:, feature]) > threshold


def best_threshold(values: FloatArray, y: BoolArray) -> float:
    """Return the threshold above which calling rows positive gives the most accurate labels.

    Halfway between two values that are there; -inf where all rows are best called positive, the
    largest value where none is.
    """
    levels, level = np.unique(values, return_inverse=True)  # equal values cannot be parted
    positives = np.bincount(level[y], minlength=len(levels))
    negatives = np.bincount(level[~y], minlength=len(levels))
    # Correct when rows up to the k-th level are called negative, for every k; less a constant.
    gain = np.concatenate([[0], np.cumsum(negatives - positives)])
    k = int(gain.argmax())
    if k == 0:
        return -np.inf
    return float(levels[k - 1] if k == len(levels) else levels[k - 1 : k + 1].mean())


FAMILIES: dict[str, Callable[[FloatArray, BoolArray], Callable[[FloatArray], BoolArray]]] = {
    "radial": _fit_cone,
    "periodic": _fit_sine,
    "smooth": _fit_quadratic,
    "diagonal": _fit_band,
}
