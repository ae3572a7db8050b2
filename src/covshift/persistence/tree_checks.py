"""Trees of scikit-learn: the numbers of children and features that they follow unchecked.

A tree is sound if every inner node's children come after it, which excludes cycles, and its
feature is one that rows have. Who hands rows to a tree must have as many features: scikit-learn's
forests do not look again.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from covshift.kernels.arrays import BoolArray

TREE = "sklearn.tree._tree.Tree"
DECISION_TREES = (DecisionTreeClassifier, DecisionTreeRegressor)
FORESTS = (
    RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor,
)  # fmt: skip
BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
# Their compiled code takes more from a file on trust than is checked here.
UNCHECKED = (
    GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest, RandomTreesEmbedding,
)  # fmt: skip


def tree_is_sound(model: Any) -> bool:
    """Return whether a decision tree's nodes are those of a tree over its features."""
    if not hasattr(model, "tree_"):
        return True  # not fitted
    tree = model.tree_
    if type_name(tree) != TREE or tree.capacity != tree.node_count or tree.node_count < 1:
        return False
    return tree.n_features == model.n_features_in_ and nodes_are_sound(
        tree.children_left != -1,
        (tree.children_left, tree.children_right),
        tree.feature,
        tree.n_features,
    )


def forest_is_sound(model: Any) -> bool:
    """Return whether the members of a forest are trees over its features."""
    return all(
        isinstance(tree, DECISION_TREES) and tree.n_features_in_ == model.n_features_in_
        for tree in getattr(model, "estimators_", [])
    )


def boosted_trees_are_sound(model: Any) -> bool:
    """Return the same for boosted trees on binned features; those on categories are not read."""
    if not hasattr(model, "_predictors"):
        return True
    categorical = np.asarray(model._bin_mapper.is_categorical_)
    if model._preprocessor is not None or categorical.any():
        return False
    return all(
        tree.nodes.ndim == 1
        and len(tree.nodes) > 0
        and not tree.nodes["is_categorical"].any()
        and nodes_are_sound(
            tree.nodes["is_leaf"] == 0,
            (tree.nodes["left"], tree.nodes["right"]),
            tree.nodes["feature_idx"],
            model.n_features_in_,
        )
        for stage in model._predictors
        for tree in stage
    )


def holds_loose_trees(part: Any, children: Iterable[Any]) -> bool:
    """Return whether something other than a decision tree would hand rows to compiled nodes."""
    return not isinstance(part, DECISION_TREES) and any(type_name(one) == TREE for one in children)


def type_name(value: Any) -> str:
    """Name of a value's type, as the allow-list has it."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def nodes_are_sound(
    inner: BoolArray, sides: tuple[Any, Any], features: Any, n_features: int
) -> bool:
    """Whether every inner node's children come after it, and its feature is one that rows have."""
    parents = np.flatnonzero(inner)
    return all(
        bool(((side[inner] > parents) & (side[inner] < len(inner))).all()) for side in sides
    ) and bool(((features[inner] >= 0) & (features[inner] < n_features)).all())
