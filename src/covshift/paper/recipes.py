"""Estimators as plain data, which can be hashed, stored and read, and how they are built."""

import inspect
from typing import Any, TypedDict

from sklearn.svm import LinearSVC

from covshift.datasets import ShiftedData
from covshift.predictors import LSPClassifier
from covshift.registry import BUILT_IN


class Part(TypedDict):
    """An estimator of covshift or scikit-learn by its name, and its parameters."""

    name: str
    params: dict[str, Any]


ESTIMATORS: dict[str, Any] = {
    **{record.class_name: record.load_class() for record in BUILT_IN},
    "LSPClassifier": LSPClassifier,
    "LinearSVC": LinearSVC,
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
