"""From the recipes of `covshift.experiments.paper` to estimators."""

import inspect
from typing import Any

from sklearn.svm import LinearSVC

from covshift.adapters import (
    DenoisingAutoencoder,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.datasets import ShiftedData
from covshift.experiments.paper import Part
from covshift.predictors import LSPClassifier
from covshift.weights import RuLSIFWeights, ULSIFWeights

ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator
    for estimator in (
        DenoisingAutoencoder,
        LSPClassifier,
        LinearSVC,
        PeriodicSparseFiltering,
        RuLSIFWeights,
        SparseFiltering,
        SubspaceAlignment,
        ULSIFWeights,
    )
}
TARGET_ROWS = "target rows"  # as a parameter: the unlabelled rows themselves


def build(part: Part, data: ShiftedData, random_state: int) -> Any:
    """Make an estimator, seeded where it draws anything."""
    estimator = ESTIMATORS[part["name"]]
    params = {
        name: data.X_target if value == TARGET_ROWS else value
        for name, value in part["params"].items()
    }
    if "random_state" in inspect.signature(estimator).parameters:
        params["random_state"] = random_state
    return estimator(**params)
