"""Rows drawn from a table while it is read, in memory that its length does not change.

Every row gets a random number and the rows with the smallest are kept: a sample in which all rows
are equally likely, whatever their order in the file.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.tables.extra import pandas as pd

# Numbers and words of a table that are held in memory: some 160 MB, and copies of them.
MAX_CELLS = 20_000_000


def default_rows(n_columns: int) -> int:
    """Return the largest number of rows used of a table with this number of columns, by default."""
    return max(1, MAX_CELLS // max(1, n_columns))


def sample_frames(
    reader: Any,
    max_rows: int,
    *,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> tuple[Any, IntArray | None]:
    """Return at most ``max_rows`` rows of a `TableReader`, in their order, and their numbers.

    Numbers are None where all rows are returned. ``progress`` gets the number of rows read.
    """
    rng = np.random.default_rng(seed)
    frames: list[Any] = []
    keys: list[Any] = []
    numbers: list[Any] = []
    limit, n_held, n_read = np.inf, 0, 0
    for frame in reader:
        drawn = rng.random(len(frame))
        rows = np.flatnonzero(drawn < limit)
        frames.append(frame if len(rows) == len(frame) else frame.iloc[rows])
        keys.append(drawn[rows])
        numbers.append(n_read + rows)
        n_read += len(frame)
        n_held += len(rows)
        if n_held > 2 * max_rows:
            limit = _thin(frames, keys, numbers, max_rows)
            n_held = max_rows
        if progress is not None:
            progress(n_read)
    if n_held > max_rows:
        _thin(frames, keys, numbers, max_rows)
    table = pd.concat(frames, ignore_index=True)
    return table, None if len(table) == n_read else np.concatenate(numbers)


def _thin(frames: list[Any], keys: list[Any], numbers: list[Any], max_rows: int) -> float:
    """Keep the rows with the smallest keys; return the largest of these."""
    every = np.concatenate(keys)
    limit = float(np.partition(every, max_rows - 1)[max_rows - 1])
    for index, own in enumerate(keys):
        kept = np.flatnonzero(own <= limit)
        # A copy: a view would hold on to all rows of the frame.
        frames[index] = frames[index].iloc[kept].copy()
        keys[index], numbers[index] = own[kept], numbers[index][kept]
    frames[:] = [pd.concat(frames, ignore_index=True)]
    keys[:], numbers[:] = [np.concatenate(keys)], [np.concatenate(numbers)]
    return limit


def sample_note(n_used: int, n_rows: int) -> str:
    """Return the rows that were drawn, and how far shares among them may be off.

    By Hoeffding's inequality, with probability .95, for any one share.
    """
    error = np.sqrt(np.log(2 / 0.05) / (2 * n_used))
    return (
        f"{n_used:,} of {n_rows:,} rows are used, drawn at random: the share of any kind of row is "
        f"within {error:.4f} of that among all rows, with probability .95."
    )
