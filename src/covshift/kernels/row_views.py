"""Consecutive rows of an array that may be too large to copy."""

from typing import Any

import numpy as np
from scipy import sparse

from covshift.kernels.arrays import Rows


def view_rows(X: Rows, start: int, stop: int, dtype: Any = None) -> Rows:
    """Rows from ``start`` to ``stop``, contiguous and of that type; a copy only where needed."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X[start:stop], dtype)
    stop = min(stop, X.shape[0])
    low, high = int(X.indptr[start]), int(X.indptr[stop])
    data = X.data[low:high] if dtype is None else X.data[low:high].astype(dtype, copy=False)
    parts = (data, X.indices[low:high], X.indptr[start : stop + 1] - low)
    return type(X)(parts, shape=(stop - start, X.shape[1]))
