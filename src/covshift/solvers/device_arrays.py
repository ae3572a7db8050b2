"""The few array operations that libraries following the array API standard spell differently.

Reading an array on a device waits until all work before it is done. Nothing here
reads, except `copy_to_host`.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import sklearn


def namespace_of(x: Any) -> Any:
    """Return the module whose functions take arrays like ``x``."""
    # NumPy has the standard's own spelling since 2.0; what is used here is older.
    if isinstance(x, np.ndarray):
        return np
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    return _torch_namespace()


@cache
def _torch_namespace() -> Any:
    """Return the standard's spelling for torch, which has its own."""
    from array_api_compat import torch  # an extra

    return torch


def copy_to_host(x: Any) -> Any:
    """Copy an array to the host, if it is not there."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


def cast(x: Any, dtype: Any) -> Any:
    """Return a device array ``x`` in another precision."""
    return x.astype(dtype) if isinstance(x, np.ndarray) else namespace_of(x).astype(x, dtype)


def zeros_beside(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros on the device of ``x``."""
    if isinstance(x, np.ndarray):
        return np.zeros(shape, dtype)
    return namespace_of(x).zeros(shape, dtype=dtype, device=x.device)


def positions_of(x: Any) -> Any:
    """0, 1, ... for the rows of ``x``, on its device."""
    if isinstance(x, np.ndarray):
        return np.arange(x.shape[0])
    return namespace_of(x).arange(x.shape[0], device=x.device)


def dot(a: Any, b: Any) -> Any:
    """Return the inner products (k,) of rows (k, p) of device arrays, in double precision."""
    if isinstance(a, np.ndarray):
        return np.einsum("kp,kp->k", a, b, dtype=np.float64)
    xp = namespace_of(a)
    return xp.sum(a * b, axis=1, dtype=xp.float64)


def scale_rows(factors: Any, rows: Any) -> Any:
    """Return each row (k, p) times its factor (k,), on any device, in the precision of the rows."""
    return cast(factors, rows.dtype)[:, None] * rows


def gather(array: Any, rows: Any, axis: int = 0) -> Any:
    """Return rows of an array on any device, or what is at these positions of another axis."""
    xp = namespace_of(array)
    if xp.__name__.endswith(".torch"):
        # Its own operation: the standard's spends three more on positions that may be negative.
        return array.index_select(axis, rows)
    return xp.take(array, rows, axis=axis)


def pick_rows(array: Any, rows: Any) -> Any:
    """Return these rows, distinct and ascending, of an array on any device; itself if all."""
    if rows.shape[0] == array.shape[0]:
        return array
    return gather(array, rows)


def take_rows(arrays: Any, rows: Any) -> Any:
    """Return the same tuple of device arrays, with these rows of each."""
    picked = (pick_rows(array, rows) for array in arrays)
    return tuple(picked) if type(arrays) is tuple else type(arrays)(*picked)


def take_entries(arrays: Any, rows: Any) -> Any:
    """`take_rows` for a named tuple of device arrays (k,) of one type, at once."""
    if isinstance(rows, np.ndarray) or rows.shape[0] == arrays[0].shape[0]:
        return take_rows(arrays, rows)
    stacked = gather(namespace_of(rows).stack(arrays), rows, axis=1)
    return type(arrays)(*(stacked[index, :] for index in range(len(arrays))))


class Places(NamedTuple):
    """Where some of the rows of an array are.

    Attributes
    ----------
    rows : (k,) positions of those rows, distinct and in ascending order.
    all_rows : whether they are all of them.
    sources, chosen : (K,) for each row of the array, which of the k it is, and whether it is one
        at all: the standard has no assignment by arrays of positions. None with NumPy.
    """

    rows: Any
    all_rows: bool
    sources: Any = None
    chosen: Any = None


def locate_rows(array: Any, rows: Any) -> Places:
    """Return the places of ``rows`` in an array on any device."""
    all_rows = rows.shape[0] == array.shape[0]
    if all_rows or rows.shape[0] == 0 or isinstance(rows, np.ndarray):
        return Places(rows, all_rows)
    xp = namespace_of(rows)
    positions = positions_of(array)
    sources = xp.searchsorted(rows, positions)
    sources = xp.where(sources < rows.shape[0], sources, xp.zeros_like(sources))
    return Places(rows, all_rows, sources, gather(rows, sources) == positions)


def put_rows(old: Any, places: Places, new: Any) -> Any:
    """Return a device array (K, ...) with rows at these places replaced by new ones (k, ...)."""
    if places.all_rows:
        return new
    if isinstance(old, np.ndarray):
        result = old.copy()
        result[places.rows] = new
        return result
    if places.sources is None:
        return old
    xp = namespace_of(old)
    chosen = xp.reshape(places.chosen, (-1, *(1,) * (old.ndim - 1)))
    return xp.where(chosen, gather(new, places.sources), old)


def put_entries(old: Any, places: Places, new: Any) -> Any:
    """`put_rows` for named tuples of device arrays (K,) of one type, at once."""
    if places.sources is None:
        pairs = zip(old, new, strict=True)
        return type(old)(*(put_rows(before, places, after) for before, after in pairs))
    xp = namespace_of(places.rows)
    spread = gather(xp.stack(new), places.sources, axis=1)
    stacked = xp.where(places.chosen[None, :], spread, xp.stack(old))
    return type(old)(*(stacked[index, :] for index in range(len(old))))


def put_at(ring: Any, slots: Any, places: Places, values: Any) -> Any:
    """Return a device array (size, K, ...) with values (k, ...) at these slots (k,), places."""
    if isinstance(ring, np.ndarray):
        ring[slots, places.rows] = values
        return ring
    xp = namespace_of(ring)
    numbers = positions_of(ring)[:, None]
    if places.all_rows:
        chosen = numbers == slots[None, :]
    else:
        slots, values = (gather(part, places.sources) for part in (slots, values))
        chosen = (numbers == slots[None, :]) & places.chosen[None, :]
    chosen = xp.reshape(chosen, (*chosen.shape, *(1,) * (ring.ndim - 2)))
    return xp.where(chosen, values[None, ...], ring)


def working_dtype(dtype: Any) -> Any:
    """Return the precision to compute in, on any device: float32 stays, most become float64."""
    dtype = np.dtype(dtype)
    if dtype in (np.float32, np.float64):
        return dtype
    if dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got {dtype}.")
    return np.dtype(np.float64)


def is_tensor(X: Any) -> bool:
    """Return whether X is a tensor of torch, without importing it."""
    return type(X).__module__.partition(".")[0] == "torch"


def is_device_array(X: Any) -> bool:
    """Return whether X is an array of the array API standard, but not NumPy's."""
    if isinstance(X, np.ndarray | np.generic) or type(X).__module__.startswith("dask."):
        return False
    return is_tensor(X) or hasattr(X, "__array_namespace__")


def stays_on_device(X: Any) -> bool:
    """Return whether X is computed with where it is, by its own library.

    That takes scikit-learn's ``array_api_dispatch``; without it arrays in the memory of the
    processor are converted to NumPy's.
    """
    if not is_device_array(X):
        return False
    if sklearn.get_config()["array_api_dispatch"]:
        return True
    if is_tensor(X) and X.device.type != "cpu":
        raise TypeError(
            f"X is on the device {X.device}. To compute there, call this inside "
            "sklearn.config_context(array_api_dispatch=True); or give X.cpu()."
        )
    return False


def float_type(X: Any) -> Any:
    """Return NumPy's name for the precision of rows on any device."""
    if not is_device_array(X):
        return X.dtype
    return np.dtype(np.float32 if X.dtype == namespace_of(X).float32 else np.float64)


def put_beside(array: Any, X: Any) -> Any:
    """Copy an array of NumPy to the device of X."""
    return namespace_of(X).asarray(array, device=X.device)


def bring_to_host(values: Any) -> Any:
    """Return device arrays of labels, domains and masks as arrays of NumPy; others as they are."""
    return copy_to_host(values) if is_device_array(values) else values
