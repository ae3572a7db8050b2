"""Everything that a model is made of, and what its file does without.

Search trees of nearest-neighbor models are not written to files, but built again from the rows:
compiled code follows the numbers inside of such a tree without a look at bounds, so a tree from a
file could not be trusted. The model keeps the rows that it was built from, and the same rows give
the same tree and the same predictions.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.utils.metadata_routing import MetadataRequest

TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def parts_of(model: Any) -> Iterator[Any]:
    """Yield the model and everything in it, each object once."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(children_of(part))


def children_of(part: Any) -> list[Any]:
    """Return the parts that an object contains itself."""
    if isinstance(part, dict):
        return list(part.values())
    if isinstance(part, list | tuple | set):
        return list(part)
    if isinstance(part, np.ndarray):
        return list(part.flat) if part.dtype == object else []
    if hasattr(part, "__dict__") and not isinstance(part, type):
        return list(vars(part).values())
    return []


def without_cycles(model: Any) -> Any:
    """Return the model, or a copy whose requests for metadata do not point back at their owners.

    A file is a tree. Since scikit-learn 1.8 an estimator whose ``set_fit_request`` was called holds
    requests that hold the estimator; the name of its class serves as well, as it did before.
    """
    if not any(isinstance(part, MetadataRequest) for part in parts_of(model)):
        return model
    model = deepcopy(model)
    requests = [part for part in parts_of(model) if isinstance(part, MetadataRequest)]
    for request in requests:
        for part in (request, *vars(request).values()):
            owner = getattr(part, "owner", None)
            if owner is not None and not isinstance(owner, str):
                part.owner = type(owner).__name__
    return model


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
