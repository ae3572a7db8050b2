"""Consecutive rows of an array that may be too large to copy, and a first look at them."""

from typing import Any

import numpy as np
from scipy import sparse

from covshift.kernels.arrays import IntArray, Rows

TILE_BYTES = 2**22  # near the cache


def view_rows(X: Rows, start: int, stop: int, dtype: Any = None) -> Rows:
    """Rows from ``start`` to ``stop``, contiguous and of that type; a copy only where needed."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X[start:stop], dtype)
    stop = min(stop, X.shape[0])
    low, high = int(X.indptr[start]), int(X.indptr[stop])
    data = X.data[low:high] if dtype is None else X.data[low:high].astype(dtype, copy=False)
    parts = (data, X.indices[low:high], X.indptr[start : stop + 1] - low)
    return type(X)(parts, shape=(stop - start, X.shape[1]))


def look_at(rows: Rows, codes: IntArray, dtype: Any, limit: float) -> tuple[int, int, int]:
    """Return the numbers of entries that are NaN, infinite, or of a magnitude above the limit."""
    n_nan = n_infinite = n_large = 0
    step = max(1, TILE_BYTES // (rows.shape[1] * np.dtype(dtype).itemsize))
    for start in range(0, rows.shape[0], step):
        tile = view_rows(rows, start, start + step, dtype)
        values = (tile.data if sparse.issparse(tile) else tile).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            squares = float(values @ values)
        # One look is enough for most: NaN and large values fail this.
        if squares < np.inf and squares <= limit**2 / 2:
            continue
        n_nan += int(np.isnan(values).sum())
        n_infinite += int(np.isinf(values).sum())
        n_large += int((np.abs(values) > limit).sum())
    return n_nan, n_infinite, n_large
