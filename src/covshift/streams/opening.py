"""The entrance of rows: of which kind they are is decided here, once, and they are checked."""

import mmap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from covshift.kernels.arrays import IntArray
from covshift.kernels.row_blocks import look_at
from covshift.row_checks import check_magnitude, largest_magnitude, validate_rows
from covshift.streams.rows import (
    ArrayRows,
    DeviceRows,
    MemoryRows,
    OpenRows,
    RowStream,
    check_device_rows,
    is_dask,
    sample_rows,
    stays_on_device,
)

# A memory map of at most this size is read like any array. (joblib maps whatever is larger than
# a megabyte: results must not depend on that.)
SMALL_BYTES = 2**28
OWN = "own"  # precision of the rows themselves


def open_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    squared_in: Any = OWN,
    allow_nan: bool = False,
    accept_sparse: bool = False,
    accept_device: bool = False,
    look: bool = True,
    if_streamed: Callable[[], None] | None = None,
    if_on_device: Callable[[], None] | None = None,
) -> OpenRows:
    """Check rows as scikit-learn's `validate_data` does, wherever they are, and without a copy.

    Parameters
    ----------
    estimator : whose number and names of features are set (``reset``) or compared.
    X : rows as users give them.
    squared_in : precision in which rows are to be squared and summed, which must not overflow:
        their own, double, or None: never.
    allow_nan, accept_sparse : whether missing values and sparse rows are taken.
    accept_device : whether rows on a device stay there, if scikit-learn is told so.
    look : whether the values of rows in parts are looked at, which takes a pass over them; without,
        that is left to the reader of a part.
    if_streamed, if_on_device : raise an error where rows in parts, or on a device, cannot be taken.
    """
    if is_streamed(X):
        if if_streamed is not None:
            if_streamed()
        stream = open_stream(X)
        check_width(estimator, stream.shape, reset=reset)
        if look:
            _look_through(estimator, stream, squared_in, allow_nan)
        return stream
    if accept_device and stays_on_device(X):
        if if_on_device is not None:
            if_on_device()
        return DeviceRows(check_device_rows(estimator, X, reset=reset))
    X = validate_rows(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan" if allow_nan else True,
    )
    # Sums in double precision overflow only where it is in double precision.
    if squared_in is not None and squared_in in (OWN, X.dtype):
        check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return MemoryRows(X)


def rows_in_memory(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check rows for an estimator that needs them in memory, and return the array.

    Those of a file are read, however large it is; those of Dask, which may be on many machines,
    are refused.
    """
    refuse_dask(estimator, X)
    X = validate_rows(estimator, X, reset=reset, dtype=(np.float64, np.float32))
    check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return X


def is_streamed(X: Any) -> bool:
    """Return whether rows are to be passed over in parts: Dask arrays, and large memory maps."""
    return is_dask(X) or (is_mapped(X) and X.nbytes > SMALL_BYTES)


def is_mapped(X: Any) -> bool:
    """Return whether an array is a memory map, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap.mmap)


def check_width(estimator: Any, shape: tuple[int, int], *, reset: bool) -> None:
    """Check the numbers of rows and features as scikit-learn does, on an array of that width."""
    validate_data(estimator, np.zeros((min(shape[0], 1), shape[1])), reset=reset)


def _look_through(estimator: Any, stream: RowStream, squared_in: Any, allow_nan: bool) -> None:
    """Refuse missing, infinite and large values, in one pass."""
    no_codes = stream.split(np.zeros(stream.shape[0], dtype=np.int8))
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


def open_stream(X: Any) -> RowStream:
    """Return rows as a stream, without checking their values."""
    check_rows_of(X)
    if is_dask(X):
        from covshift.streams.dask_rows import DaskRows  # needs an extra

        return DaskRows(X)
    return ArrayRows(X)


def map_rows(estimator: Any, method: str, X: Any, *, sample_domain: Any = None) -> Any:
    """Call a method of an estimator on every part of rows that are streamed; see `OpenRows.map`.

    Returns
    -------
    ndarray, or for a Dask array X a Dask array that is yet to be computed.
    """
    stream = open_stream(X)
    check_width(estimator, stream.shape, reset=False)
    return stream.map(getattr(estimator, method), sample_domain=sample_domain)


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
    """Raise for a Dask array, where rows are needed in memory: it would be loaded as a whole."""
    if is_dask(X):
        raise TypeError(
            f"{type(estimator).__name__} takes rows in memory, not a {type(X).__name__} of Dask: "
            "give it a sample of the rows, X[rows].compute()."
        )


# --- Rows drawn from a stream, where all of them are more than a method can use ---


# Rows brought into memory for methods that need them there, as double precision.
IN_MEMORY_BYTES = 2**28


class SampledRowsWarning(UserWarning):
    """Something was learned from a sample of the rows, which is said with its error."""


def draw_in_memory(
    X: Any, y: Any, sample_domain: Any, label_mask: Any, *, what: str
) -> tuple[Any, Any, Any, Any, IntArray]:
    """Bring as many rows as fit, with what is known of them, into memory; and their numbers.

    Of source rows and of target rows alike as many as are there, up to half of the room each.
    """
    stream = open_stream(X)
    n_rows, n_features = stream.shape
    given = {"y": y, "sample_domain": sample_domain, "label_mask": label_mask}
    for name, values in given.items():
        if values is not None and np.shape(values)[:1] != (n_rows,):
            raise ValueError(
                f"{name} must hold one entry per row: expected {n_rows}, got "
                f"{np.shape(values)[:1] or 'a single value'}."
            )
    limit = max(2, IN_MEMORY_BYTES // (n_features * 8))
    source = np.ones(n_rows, bool) if sample_domain is None else np.asarray(sample_domain) >= 0
    n_target = int((~source).sum())
    drawn = [sample_rows(source, max(limit // 2, limit - n_target))]
    drawn.append(sample_rows(~source, limit - len(drawn[0])))
    rows = np.union1d(*drawn)
    if len(rows) < n_rows:
        thinned = [len(own) for own, n in zip(drawn, (n_rows - n_target, n_target), strict=True)
                   if len(own) < n]  # fmt: skip
        error = np.sqrt(np.log(2 / 0.05) / (2 * min(thinned)))
        warn_sampled(
            what, len(rows), n_rows,
            f"the share of any kind of row is within {error:.4f} of that among all rows of its "
            "role, with probability .95",
        )  # fmt: skip
    picked = [None if values is None else np.asarray(values)[rows] for values in given.values()]
    return stream.pick(rows), picked[0], picked[1], picked[2], rows


def warn_sampled(what: str, n_drawn: int, n_rows: int, error: str) -> None:
    """Warn that ``what`` was learned from a sample, with its size and error."""
    warnings.warn(
        f"{what} from {n_drawn:,} of {n_rows:,} rows, drawn at random: {error}.",
        SampledRowsWarning,
        stacklevel=5,
    )
