"""Rows that NumPy and scikit-learn would read as something else, refused before they are read.

scikit-learn turns dates into numbers of nanoseconds, ignores the mask of a masked array, and hands
the indices of a sparse matrix to compiled code that does not look at their bounds. And rows whose
squares would overflow, or that are not whole.
"""

from collections.abc import Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from covshift.kernels.array_types import IntArray, Rows
from covshift.kernels.row_blocks import view_rows

TILE_BYTES = 2**22  # near the cache
DATES = ("date", "time", "duration", "period")  # how types of dates and times begin
DATE_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)  # of single values


def validate_rows(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
    """Return rows as scikit-learn's ``validate_data`` does, unless they cannot be read as numbers.

    Parameters
    ----------
    estimator : estimator
        Purpose of the rows.
    X : array, frame or sparse matrix of shape (n_samples, n_features)
        Rows.
    *args, **options
        Handed to ``validate_data``.
    """
    check_readable(X)
    return validate_data(estimator, X, *args, **options)


def check_rows(X: Any, *, input_name: str = "X", **options: Any) -> Any:
    """Return rows as scikit-learn's ``check_array`` does, unless they cannot be read as numbers.

    Parameters
    ----------
    X : array or frame of shape (n_samples, n_features)
        Rows.
    input_name : str, default="X"
        Name of the rows in errors.
    **options
        Handed to ``check_array``.
    """
    check_readable(X, name=input_name)
    return check_array(X, input_name=input_name, **options)


def check_readable(X: Any, *, name: str = "X", frames_of_dates: bool = False) -> None:
    """Raise ValueError for masked entries, dates, repeated names and indices out of bounds.

    Errors call the rows ``name``. ``frames_of_dates`` allows frames with dates, for a
    caller who hands them to others.
    """
    if isinstance(X, list | tuple):
        X = _listed_rows(X)
    if sparse.issparse(X):
        _check_indices(X)
    elif isinstance(X, np.ma.MaskedArray):
        check_unmasked(X, name, f"Fill the gaps, e.g. {name}.filled(np.nan), or drop the rows.")
    elif hasattr(X, "columns"):
        _check_names(list(X.columns))
        if not frames_of_dates:
            _check_types(X)
    elif isinstance(X, np.ndarray) and (X.dtype.kind in "mM" or _holds_dates(X)):
        raise ValueError(f"{name} holds dates or times ({X.dtype}). {HOW_TO_ENCODE}")


def _listed_rows(rows: Sequence[Any]) -> Any:
    """Return a list of rows as the array that it stands for; None if it does not stand for one."""
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        return np.ma.stack(rows)
    try:
        return np.asarray(rows)
    except ValueError:  # rows of several lengths: scikit-learn says so
        return None


def _holds_dates(array: Any) -> bool:
    """Return whether an array of objects holds dates: NumPy's would become nanoseconds or days."""
    return array.dtype == object and any(isinstance(value, DATE_TYPES) for value in array.flat)


HOW_TO_ENCODE = (
    "Turn them into numbers that mean something for your data, e.g. the day of the year or the "
    "days since an event."
)


def check_unmasked(array: Any, name: str, advice: str) -> None:
    """Raise ValueError if entries of a masked array are masked: the mask would be ignored."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        n_masked = int(np.ma.getmaskarray(array).sum())
        raise ValueError(
            f"{name} is a masked array with {n_masked} masked entries, whose mask would be "
            f"ignored. {advice}"
        )


def _check_names(names: list[Any]) -> None:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        shown = ", ".join(repr(name) for name in repeated[:5])
        raise ValueError(
            f"Column names must be unique, and these are repeated: {shown}. Rename or drop the "
            "repeated columns."
        )


def _check_types(X: Any) -> None:
    types = getattr(X, "dtypes", ())
    for name, dtype in zip(X.columns, types, strict=False):
        may_hold_dates = getattr(dtype, "kind", "") == "O"  # pandas' objects
        if str(dtype).lower().startswith(DATES) or (
            may_hold_dates and _holds_dates(X[name].to_numpy())
        ):
            raise ValueError(f"Column {str(name)!r} holds dates or times. {HOW_TO_ENCODE}")


def _check_indices(X: Any) -> None:
    try:
        if X.format in ("csr", "csc", "bsr"):
            # A view, since the check drops unused space from the matrix that it is called on.
            parts = (X.data, X.indices, X.indptr)
            type(X)(parts, shape=X.shape, copy=False).check_format(full_check=True)
        elif X.format == "coo":
            _check_coordinates(X)
    except ValueError as error:
        raise ValueError(
            f"X is a sparse matrix whose indices do not fit its shape {X.shape}: {error}. Build it "
            "again from rows, columns and values."
        ) from None


def _check_coordinates(X: Any) -> None:
    for index, size in ((X.row, X.shape[0]), (X.col, X.shape[1])):
        if len(index) and not (index.min() >= 0 and index.max() < size):
            raise ValueError(f"indices from {index.min()} to {index.max()} on an axis of {size}")


def largest_magnitude(dtype: Any) -> float:
    """Return the magnitude that checks of rows allow: squares can be summed in this precision.

    The cube root leaves a third of the exponents for the number of rows and for factors.
    """
    largest = float(np.finfo(dtype).max)
    return float(largest ** (1 / 3))


def check_magnitude(X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse rows whose squares, summed, would overflow; ``names`` are those of the columns."""
    values = X.data if sparse.issparse(X) else X
    limit = largest_magnitude(X.dtype)
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(flat @ flat)
    if squares < limit**2 / 2:  # then no value can be too large: one pass over them was enough
        return
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > limit:
        column = int(np.argmax(abs(X).max(axis=0)))
        raise ValueError(
            f"Column {column if names is None else repr(str(names[column]))} holds magnitudes up "
            f"to {largest:.1e}; above {limit:.0e} they overflow {X.dtype} once squared and summed. "
            "Scale the features, e.g. divide the column by a power of ten, in all rows alike, or "
            "remove values that are errors."
        )


def check_width(estimator: Any, shape: tuple[int, int], *, reset: bool) -> None:
    """Check the numbers of rows and features as scikit-learn does, on an array of that width."""
    validate_data(estimator, np.zeros((min(shape[0], 1), shape[1])), reset=reset)


def is_dask(X: Any) -> bool:
    """Check whether rows are an array or a frame of Dask, without importing it."""
    return type(X).__module__.startswith("dask.")


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


def refuse_dask(estimator: Any, X: Any) -> None:
    """Refuse rows of a Dask array where they are needed in memory: all would be loaded."""
    if is_dask(X):
        raise TypeError(
            f"{type(estimator).__name__} takes rows in memory, not a {type(X).__name__} of Dask: "
            "give it a sample of the rows, X[rows].compute()."
        )


def count_unreadable(rows: Rows, codes: IntArray, dtype: Any, limit: float) -> tuple[int, int, int]:
    """Return the numbers of entries of rows that are NaN, infinite, or beyond the limit."""
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
