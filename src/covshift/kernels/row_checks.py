"""What must be known of rows before anything is computed of them."""

from typing import Any

import numpy as np
from scipy import sparse

from covshift.kernels.arrays import IntArray, Rows
from covshift.kernels.row_views import view_rows

TILE_BYTES = 2**22  # near the cache


def look_at(rows: Rows, codes: IntArray, dtype: Any, limit: float) -> tuple[int, int, int]:
    """Numbers of entries that are NaN, infinite, or of a magnitude above the limit."""
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


def largest_magnitude(dtype: Any) -> float:
    """Magnitude up to which values can be squared and summed in this precision.

    The cube root leaves a third of the exponents for the number of rows and for factors.
    """
    largest = float(np.finfo(dtype).max)
    return float(largest ** (1 / 3))
