"""Which rows are streamed, and what is checked before they are."""

import mmap
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from covshift.kernels.row_views import largest_magnitude, look_at
from covshift.streams.row_stream import ArrayRows, RowStream

# A memory map of at most this size is read like any array. (joblib maps whatever is larger than
# a megabyte: results must not depend on that.)
SMALL_BYTES = 2**28


def is_streamed(X: Any) -> bool:
    """Whether rows are to be passed over in parts: Dask arrays, and large memory maps."""
    return is_dask(X) or (is_mapped(X) and X.nbytes > SMALL_BYTES)


def is_dask(X: Any) -> bool:
    """Whether X is an array or a frame of Dask, without importing it."""
    return type(X).__module__.startswith("dask.")


def is_mapped(X: Any) -> bool:
    """Whether an array is a memory map, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap.mmap)


def open_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    squared_in: Any = "their own precision",
    allow_nan: bool = False,
) -> RowStream:
    """Check rows as scikit-learn's `validate_data` does, in one pass and without a copy.

    Rows are to be squared and summed in the precision ``squared_in`` (None: never), which must
    not overflow.
    """
    stream = open_stream(X)
    n_rows, n_features = stream.shape
    # scikit-learn's checks of shapes, on an array of the same width.
    validate_data(estimator, np.zeros((min(n_rows, 1), n_features)), reset=reset)
    no_codes = stream.split(np.zeros(n_rows, dtype=np.int8))
    precision = stream.dtype if isinstance(squared_in, str) else squared_in
    limit = np.inf if precision is None else largest_magnitude(precision)
    n_nan, n_infinite, n_large = stream.sums(look_at, no_codes, stream.dtype, limit)
    if n_infinite:
        raise ValueError(f"Input X contains infinity, in {n_infinite} places.")
    if n_nan and not allow_nan:
        raise ValueError(
            f"Input X contains NaN, in {n_nan} places: fill them, or drop those rows. "
            f"{type(estimator).__name__} takes no missing values."
        )
    if n_large:
        raise ValueError(
            f"X holds {n_large} values of a magnitude above {limit:.0e}: they overflow {precision} "
            "once squared and summed. Scale the features first, e.g. by StandardScaler."
        )
    return stream


def open_stream(X: Any) -> RowStream:
    """Rows as a stream, whose values are not looked at."""
    check_rows_of(X)
    if is_dask(X):
        from covshift.streams.dask_rows import DaskRows  # needs an extra

        return DaskRows(X)
    return ArrayRows(X)


def check_rows_of(X: Any) -> None:
    """Refuse what has no rows, or, of Dask, none of known number and whole in their blocks."""
    if is_dask(X) and not hasattr(X, "chunks"):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask: give an array, "
            "X.to_dask_array().compute_chunk_sizes()."
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected a 2-dimensional X, rows by features, got shape {tuple(X.shape)}. Reshape "
            "your data: X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row."
        )
    if not is_dask(X):
        return
    if np.isnan(X.shape[0]):
        raise ValueError("The blocks of X have unknown sizes: call X.compute_chunk_sizes() first.")
    if len(X.chunks[1]) > 1:
        raise ValueError(
            f"X is cut into {len(X.chunks[1])} blocks along its columns, and rows must be whole: "
            "call X.rechunk({1: -1})."
        )


def bring_home(values: Any) -> Any:
    """Labels, domains and masks as arrays in memory: one entry per row fits there."""
    return values.compute() if is_dask(values) else values


def refuse_dask(estimator: Any, X: Any) -> None:
    """Raise for a Dask array, where rows are needed in memory: it would be loaded as a whole."""
    if is_dask(X):
        raise TypeError(
            f"{type(estimator).__name__} takes rows in memory, not a {type(X).__name__} of Dask: "
            "give it a sample of the rows, X[rows].compute()."
        )
