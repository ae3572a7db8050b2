"""Everything that a model is made of."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest


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
    """Parts that an object contains itself."""
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
