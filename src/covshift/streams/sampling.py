"""Rows drawn from a stream, where all of them are more than a method can use."""

import warnings
from typing import Any

import numpy as np

from covshift.kernels.arrays import IntArray


class SampledRowsWarning(UserWarning):
    """Something was learned from a sample of the rows, which is said with its error."""


def sample_rows(members: Any, n_rows: int, seed: Any = 0) -> IntArray:
    """Numbers of at most ``n_rows`` of the rows that a mask holds, drawn at random, ascending."""
    rows = np.flatnonzero(members)
    if len(rows) <= n_rows:
        return rows
    return np.sort(np.random.RandomState(seed).choice(rows, n_rows, replace=False))


def warn_sampled(what: str, n_drawn: int, n_rows: int, error: str) -> None:
    """Say what was learned from how many rows, and how far off that may be."""
    warnings.warn(
        f"{what} from {n_drawn:,} of {n_rows:,} rows, drawn at random: {error}.",
        SampledRowsWarning,
        stacklevel=5,
    )
