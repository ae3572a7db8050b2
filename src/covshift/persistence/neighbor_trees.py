"""Search trees of nearest-neighbor models: not written to files, built again from the rows.

Compiled code follows the numbers inside of such a tree without a look at bounds, so a tree from a
file could not be trusted. The model keeps the rows that it was built from, and the same rows give
the same tree and the same predictions.
"""

from copy import deepcopy
from typing import Any

from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase

from covshift.persistence.model_parts import parts_of

TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def without_trees(model: Any) -> Any:
    """Return the model, or a copy of it whose nearest-neighbor parts have no search tree."""
    if not _with_trees(model):
        return model
    model = deepcopy(model)
    for part in _with_trees(model):
        part._tree = None
    return model


def build_trees(model: Any) -> None:
    """Give nearest-neighbor parts of a loaded model their search trees back, in place."""
    for part in parts_of(model):
        if isinstance(part, NeighborsBase) and getattr(part, "_fit_method", None) in TREES:
            part._tree = TREES[part._fit_method](
                part._fit_X, part.leaf_size, metric=part.effective_metric_,
                **part.effective_metric_params_,
            )  # fmt: skip


def _with_trees(model: Any) -> list[Any]:
    return [
        part
        for part in parts_of(model)
        if isinstance(part, NeighborsBase) and getattr(part, "_tree", None) is not None
    ]
