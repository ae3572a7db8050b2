"""A method of a fitted estimator on rows in blocks: lazily for Dask arrays, else one by one."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from covshift.streams.opening import bring_home, check_rows_of, is_dask
from covshift.streams.row_stream import release

# Rows of a block, in bytes: large enough that a call costs nothing beside its work.
BLOCK_BYTES = 2**24


def map_rows(estimator: Any, method: str, X: Any, *, sample_domain: Any = None) -> Any:
    """Call a method on every block of rows.

    Its result for a row must not depend on the other rows. ``sample_domain`` is None, one for
    all rows, or one per row.

    Returns
    -------
    ndarray, or for a Dask array X a Dask array that is yet to be computed.
    """
    check_rows_of(X)
    n_rows, n_features = X.shape
    validate_data(estimator, np.zeros((min(n_rows, 1), n_features)), reset=False)
    domain = bring_home(sample_domain)
    if domain is not None and not isinstance(domain, str) and np.ndim(domain) > 0:
        domain = np.asarray(domain)
        if len(domain) != n_rows:
            raise ValueError(
                f"sample_domain must hold one integer per row: expected shape ({n_rows},), got "
                f"{domain.shape}."
            )
    # Shape and type of the result, from a row of zeros.
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    like = np.asarray(getattr(estimator, method)(np.zeros((1, n_features), dtype)))
    if is_dask(X):
        return _map_dask(estimator, method, X, domain, like)
    step = max(1, BLOCK_BYTES // (n_features * X.dtype.itemsize))
    result = np.empty((n_rows, *like.shape[1:]), like.dtype)
    for start in range(0, n_rows, step):
        part = slice(start, start + step)
        rows = np.array(X[part])  # out of the map, or it would be taken for one
        release(X)
        result[part] = _call(rows, _of_block(domain, part), estimator, method)
    return result


def _map_dask(estimator: Any, method: str, X: Any, domain: Any, like: Any) -> Any:
    import dask  # an extra
    import dask.array as da

    shared = dask.delayed(estimator, pure=False, traverse=False)
    call = dask.delayed(_call, pure=False)
    ends = np.cumsum([0, *X.chunks[0]]).tolist()
    blocks = [
        da.from_delayed(
            call(block, _of_block(domain, slice(start, stop)), shared, method),
            shape=(stop - start, *like.shape[1:]),
            dtype=like.dtype,
        )
        for block, start, stop in zip(X.to_delayed().ravel(), ends[:-1], ends[1:], strict=True)
    ]
    return da.concatenate(blocks, axis=0)


def _of_block(domain: Any, part: slice) -> Any:
    return domain[part] if isinstance(domain, np.ndarray) else domain


def _call(rows: Any, domain: Any, estimator: Any, method: str) -> Any:
    if rows.shape[0] == 0:
        like = getattr(estimator, method)(np.zeros((1, rows.shape[1])))
        return np.asarray(like)[:0]
    where = {} if domain is None else {"sample_domain": domain}
    result = getattr(estimator, method)(rows, **where)
    return result if sparse.issparse(result) else np.asarray(result)
