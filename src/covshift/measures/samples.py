"""Two samples of rows, and weights on them, checked before anything is measured."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from covshift.kernels.arrays import FloatArray


def check_two_samples(
    A: Any, B: Any, *, min_rows: int = 1, names: tuple[str, str] = ("A", "B")
) -> tuple[FloatArray, FloatArray]:
    """Return both samples as finite arrays (n, d) and (k, d) of one precision.

    Single precision stays if both are single; a 1-D sample is one feature.
    """
    arrays = []
    for name, sample in zip(names, (A, B), strict=True):
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


def check_weights(weights: Any, n_rows: int, name: str = "weights") -> FloatArray:
    """Return weights as a non-negative array (n,) with a positive sum."""
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
