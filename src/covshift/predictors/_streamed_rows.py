"""What predictors do with rows that come in blocks."""

from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.predictors._adapting import represent, steps_of
from covshift.streams.opening import is_dask, open_stream
from covshift.streams.sampling import sample_rows, warn_sampled

# Adapted rows that an estimator is fitted to: it needs them in memory, and copies of its own.
ESTIMATOR_BYTES = 2**28
BLOCK_BYTES = 2**26


def as_blocks(X: Any) -> Any:
    """A large memory map as a Dask array: what is made of its rows is made block by block."""
    if is_dask(X):
        return X
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError(
            "Fitting a predictor to rows in blocks needs Dask, which is not installed: "
            'pip install "covshift[dask]". An adapter alone can be fitted without.'
        ) from error
    n_rows = max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    # Without a name Dask would read all rows to make one.
    return da.from_array(X, chunks=(n_rows, -1), name=False)


def check_rowwise(adapter: Any) -> None:
    """Refuse an adapter for which a row depends on the other rows of the call."""
    for step in steps_of(adapter):
        if getattr(step, "normalization", None) == "batch":
            raise ValueError(
                f"{type(step).__name__} with normalization='batch' takes the norms of all rows of "
                "a call, which come in blocks here: fit with normalization='domain' or 'joint'."
            )


def represent_some(
    adapter: Any, X: Any, label_mask: BoolArray, sample_domain: Any = None
) -> tuple[FloatArray, IntArray]:
    """Represent as many labelled rows as fit into memory; return them, and which they are.

    Returns
    -------
    Z : rows as the adapter represents them.
    chosen : their numbers among the labelled rows.
    """
    check_rowwise(adapter)
    stream = open_stream(X)
    labelled = np.flatnonzero(label_mask)

    def represented(rows: IntArray) -> Any:
        where = {} if sample_domain is None else {"sample_domain": sample_domain[rows]}
        return represent(adapter, stream.pick(rows), **where)

    row_bytes = represented(labelled[:1]).nbytes
    limit = max(1, ESTIMATOR_BYTES // row_bytes)
    chosen = sample_rows(np.ones(len(labelled), dtype=bool), limit)
    if len(chosen) < len(labelled):
        warn_sampled(
            "The estimator is fitted", len(chosen), len(labelled),
            "the adapter saw all rows; what the estimator learns varies "
            f"{(len(labelled) / len(chosen)) ** 0.5:.1f} times as much as from all of them",
        )  # fmt: skip
    return represented(labelled[chosen]), chosen
