"""Models fitted on a device, for the processor."""

from copy import copy
from typing import Any

from sklearn.base import BaseEstimator

from covshift.solvers.device_arrays import bring_to_host


def to_numpy(model: Any) -> Any:
    """Copy a fitted model, with NumPy arrays in place of those of other libraries.

    A filter that was fitted on a GPU then transforms rows, is saved and is put into pipelines like
    one that was fitted without.

    Parameters
    ----------
    model : estimator
        A fitted estimator, or one made of others. It is not changed.

    Returns
    -------
    estimator of the same type

    Notes
    -----
    **Cost**: one copy of every fitted array, in time and memory.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import SparseFiltering, to_numpy
    >>> X = np.random.default_rng(0).normal(size=(60, 2))  # or a tensor on a GPU
    >>> model = SparseFiltering(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 30))
    >>> to_numpy(model).transform(X).shape
    (60, 2)
    """
    return _convert(model, {})


def _convert(value: Any, done: dict[int, Any]) -> Any:
    """Return a value with its arrays converted; ``done`` has the estimators met, by identity."""
    if isinstance(value, BaseEstimator):
        if id(value) not in done:
            converted = done[id(value)] = copy(value)
            for name, part in vars(value).items():
                setattr(converted, name, _convert(part, done))
        return done[id(value)]
    if type(value) in (list, tuple):
        return type(value)(_convert(part, done) for part in value)
    if type(value) is dict:
        return {key: _convert(part, done) for key, part in value.items()}
    return bring_to_host(value)
