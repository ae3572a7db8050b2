"""Two samples of rows, and weights on them, checked before anything is measured."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from covshift.kernels.array_types import FloatArray
from covshift.row_checks import check_readable
from covshift.streams import is_streamed
from covshift.streams.rows import open_stream, sample_rows, warn_sampled

# Rows of a sample that measures look at, where rows come in blocks: kernels of all pairs of more
# would take minutes.
MEASURED_ROWS = 20_000


def check_two_samples(
    A: Any, B: Any, *, min_rows: int = 1, names: tuple[str, str] = ("A", "B")
) -> tuple[FloatArray, FloatArray]:
    """Return both samples as finite arrays (n, d) and (k, d) of one precision.

    Single precision stays if both are single; a 1-D sample is one feature. Of rows that come in
    blocks 20,000 are drawn, the same ones of every array of that length, with a warning.
    """
    arrays = []
    for name, sample in zip(names, (A, B), strict=True):
        if is_streamed(sample):
            sample = _draw(sample, name)
        check_readable(sample, name=name)
        sample = sample if hasattr(sample, "ndim") else np.asarray(sample)
        if sample.ndim == 1:
            sample = np.asarray(sample).reshape(-1, 1)
        arrays.append(
            check_array(
                sample,
                dtype=(np.float64, np.float32),
                ensure_min_samples=min_rows,
                input_name=name,
                estimator=f"this measure ({name})",
            )
        )
    first, second = arrays
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same features, got {first.shape[1]} and "
            f"{second.shape[1]}."
        )
    dtype = np.result_type(first, second)
    return first.astype(dtype, copy=False), second.astype(dtype, copy=False)


def check_distances(A: FloatArray, B: FloatArray) -> None:
    """Check two samples: refuse those between whose rows a squared distance may overflow."""
    largest = max(float(np.abs(A).max(initial=0)), float(np.abs(B).max(initial=0)))
    limit = float(np.sqrt(np.finfo(A.dtype).max / (4 * max(A.shape[1], 1))))
    if largest > limit:
        raise ValueError(
            f"The samples hold magnitudes up to {largest:.1e}; above {limit:.0e} squared distances "
            f"overflow {A.dtype}. Scale the features of both samples alike, or remove values that "
            "are errors."
        )


def _draw(sample: Any, name: str) -> Any:
    if sample.ndim == 1:
        sample = sample.reshape(-1, 1)
    stream = open_stream(sample)
    rows = sample_rows(np.ones(stream.shape[0], dtype=bool), MEASURED_ROWS)
    if len(rows) < stream.shape[0]:
        error = np.sqrt(np.log(2 / 0.05) / (2 * len(rows)))
        warn_sampled(
            f"{name} is measured", len(rows), stream.shape[0],
            f"distribution functions are within {error:.4f} of those of all rows, with probability "
            f".95, and averages have a standard error of {100 * len(rows) ** -0.5:.1f} % of their "
            "spread",
        )  # fmt: skip
    return stream.pick(rows)


def check_weights(weights: Any, n_rows: int, name: str = "weights") -> FloatArray:
    """Check weights on a sample: return a non-negative array (n,) with a positive sum."""
    array: FloatArray = check_array(weights, dtype=np.float64, ensure_2d=False, input_name=name)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one number per row: expected shape ({n_rows},), got {array.shape}."
        )
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative.")
    if not array.any():
        raise ValueError(f"{name} must not all be zero.")
    return array
