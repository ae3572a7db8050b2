"""The few array operations that libraries following the array API standard spell differently."""

from typing import Any

import numpy as np


def namespace_of(x: Any) -> Any:
    """The module whose functions take arrays like ``x``."""
    # NumPy has the standard's own spelling since 2.0; what is used here is older.
    return np if isinstance(x, np.ndarray) else x.__array_namespace__()


def cast(x: Any, dtype: Any) -> Any:
    """``x`` in another precision."""
    return x.astype(dtype) if isinstance(x, np.ndarray) else namespace_of(x).astype(x, dtype)


def dot(a: Any, b: Any) -> Any:
    """Inner product of each row (k, p) with its partner, (k,), in double precision."""
    if isinstance(a, np.ndarray):
        return np.einsum("kp,kp->k", a, b, dtype=np.float64)
    xp = namespace_of(a)
    return xp.sum(a * b, axis=1, dtype=xp.float64)


def scale_rows(factors: Any, rows: Any) -> Any:
    """Each row (k, p) times its factor (k,), in the precision of the rows."""
    return cast(factors, rows.dtype)[:, None] * rows


def pick_rows(array: Any, rows: Any) -> Any:
    """These rows, distinct and in ascending order, of an array; the array itself if all."""
    if rows.shape[0] == array.shape[0]:
        return array
    return namespace_of(array).take(array, rows, axis=0)


def take_rows(arrays: Any, rows: Any) -> Any:
    """The same tuple of arrays, with these rows of each."""
    picked = (pick_rows(array, rows) for array in arrays)
    return tuple(picked) if type(arrays) is tuple else type(arrays)(*picked)


def put_rows(old: Any, rows: Any, new: Any) -> Any:
    """``old`` (k, ...) with the ``rows``, in ascending order, replaced by those of ``new``."""
    if rows.shape[0] == old.shape[0]:
        return new
    if isinstance(old, np.ndarray):
        result = old.copy()
        result[rows] = new
        return result
    # The standard has no assignment by arrays of positions.
    xp = namespace_of(old)
    position = xp.arange(old.shape[0])
    for place in range(rows.shape[0]):
        position[int(rows[place])] = old.shape[0] + place
    return xp.take(xp.concat([old, new]), position, axis=0)


def put_at(ring: Any, slots: Any, rows: Any, values: Any) -> None:
    """Write ``values`` (k, ...) into ``ring`` (size, K, ...), at these slots and rows."""
    if isinstance(ring, np.ndarray):
        ring[slots, rows] = values
    else:  # the standard has no assignment by arrays of positions
        for place in range(rows.shape[0]):
            ring[int(slots[place]), int(rows[place]), ...] = values[place, ...]
