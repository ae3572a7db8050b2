"""Windows of long recordings, each with the number of the recording that it comes from."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from covshift.base import check_count, check_number
from covshift.kernels.array_types import IntArray
from covshift.streams import release


class Windows(NamedTuple):
    """Windows as rows.

    Attributes
    ----------
    X : ndarray of shape (n_windows, n_channels * length)
        Samples: all of the first channel, then all of the second, and so on.
    recording : ndarray of shape (n_windows,)
        Position of the recording of each window. It maps values of recordings to windows,
        ``labels[recording]``, and serves as ``groups`` in scikit-learn.
    start : ndarray of shape (n_windows,)
        First sample of each window in its recording.
    """

    X: Any
    recording: IntArray
    start: IntArray


def cut_windows(
    recordings: Sequence[Any],
    length: int,
    *,
    overlap: float = 0.0,
    max_windows: int | None = None,
) -> Windows:
    """Cut recordings into windows, all of them in memory.

    Parameters
    ----------
    recordings : sequence of arrays of shape (n_samples,) or (n_samples, n_channels)
        Recordings of any length, memory maps included.
    length : int
        Samples of a window.
    overlap : float, default=0
        Share of a window that the next one repeats, at least 0 and below 1.
    max_windows : int, default=None
        Windows of a recording, its first ones. None: as many as it has.

    Returns
    -------
    Windows

    Notes
    -----
    Samples after the last whole window are ignored. Windows of one recording resemble each other,
    and overlapping ones share samples: keep each recording on one side of every comparison. Labels
    and domains that are given per recording and taken by ``windows.recording`` do so;
    `check_recordings_apart` checks others.

    **Cost**: linear in the samples of all windows, time and memory. `iter_windows` needs memory for
    one block of them.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.signals import cut_windows
    >>> windows = cut_windows([np.arange(5), np.arange(10, 14)], length=2, overlap=0.5)
    >>> windows.X.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4], [10, 11], [11, 12], [12, 13]]
    >>> labels = np.array(["healthy", "worn"])
    >>> labels[windows.recording].tolist()
    ['healthy', 'healthy', 'healthy', 'healthy', 'worn', 'worn', 'worn']
    """
    plan = _Plan(recordings, length, overlap, max_windows)
    n_windows = sum(plan.counts)
    dtype = np.result_type(*(recording.dtype for recording in plan.recordings))
    X = np.empty((n_windows, plan.n_channels * length), dtype)
    recording, start = np.empty(n_windows, np.int64), np.empty(n_windows, np.int64)
    filled = 0
    for block in plan.blocks(1024):
        part = slice(filled, filled + len(block.X))
        X[part], recording[part], start[part] = block
        filled = part.stop
    return Windows(X, recording, start)


def iter_windows(
    recordings: Sequence[Any],
    length: int,
    *,
    overlap: float = 0.0,
    max_windows: int | None = None,
    block_size: int = 1024,
) -> Iterator[Windows]:
    """Yield the windows of `cut_windows` in blocks, for recordings larger than memory.

    Parameters
    ----------
    recordings, length, overlap, max_windows
        As in `cut_windows`.
    block_size : int, default=1024
        Most windows of a block. A block holds windows of one recording.

    Yields
    ------
    Windows
        The next block.

    Notes
    -----
    **Cost**: linear in the samples of all windows; memory for one block. Of a memory map, only the
    samples of the block are read.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.signals import iter_windows
    >>> blocks = iter_windows([np.zeros(100), np.ones(40)], length=20, block_size=3)
    >>> [(len(block.X), block.recording[0].item()) for block in blocks]
    [(3, 0), (2, 0), (2, 1)]
    """
    check_count("block_size", block_size, minimum=1)
    return _Plan(recordings, length, overlap, max_windows).blocks(block_size)


def check_recordings_apart(recording: Any, side: Any) -> None:
    """Raise an error if windows of one recording are on several sides of a split.

    Windows of one recording resemble each other far more than windows of two recordings. A model
    that is trained on some of them and tested on others is tested on what it has seen.

    Parameters
    ----------
    recording : array-like of shape (n_windows,)
        Recording of each window.
    side : array-like of shape (n_windows,)
        Side of each window: a domain, a fold, or whether it is a training window.

    Raises
    ------
    ValueError
        If a recording is on several sides. The message names it.

    Notes
    -----
    **Cost**: O(n log n) for n windows.

    Examples
    --------
    >>> from covshift.signals import check_recordings_apart
    >>> check_recordings_apart([0, 0, 1, 1], [0, 0, -1, -1])
    >>> check_recordings_apart([0, 0, 1, 1], [0, -1, -1, -1])
    Traceback (most recent call last):
        ...
    ValueError: Recording 0 has windows on 2 sides: -1, 0. Give each recording to one side.
    """
    recordings, sides = np.asarray(recording), np.asarray(side)
    if recordings.ndim != 1 or recordings.shape != sides.shape:
        raise ValueError(
            "recording and side must hold one value per window: got shapes "
            f"{recordings.shape} and {sides.shape}."
        )
    names, numbers = np.unique(recordings, return_inverse=True)
    side_names, side_numbers = np.unique(sides, return_inverse=True)
    pairs = np.unique(np.column_stack([numbers, side_numbers]), axis=0)
    found, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        first = found[counts > 1][0]
        on = ", ".join(str(side_names[pair[1]]) for pair in pairs if pair[0] == first)
        raise ValueError(
            f"Recording {names[first]} has windows on {counts[counts > 1][0]} sides: {on}. Give "
            "each recording to one side."
        )


def window_step(length: int, overlap: float) -> int:
    """Return the samples from the start of a window to that of the next."""
    return max(1, round(length * (1 - overlap)))


class _Plan:
    """Checked recordings, and where their windows start."""

    def __init__(self, recordings: Any, length: int, overlap: float, max_windows: Any) -> None:
        check_count("length", length, minimum=1)
        check_number("overlap", overlap, minimum=0, maximum=1, closed="left")
        if max_windows is not None:
            check_count("max_windows", max_windows, minimum=1)
        if isinstance(recordings, np.ndarray) and recordings.dtype != object:
            raise TypeError("recordings must be a list of arrays: for a single one, [recording].")
        self.length, self.step = length, window_step(length, overlap)
        self.recordings = [_check_recording(one, at) for at, one in enumerate(recordings)]
        if not self.recordings:
            raise ValueError("recordings is empty: give at least one recording.")
        self.n_channels = self.recordings[0].shape[1]
        for at, one in enumerate(self.recordings):
            if one.shape[1] != self.n_channels:
                raise ValueError(
                    f"Recording {at} has {one.shape[1]} channels, and recording 0 has "
                    f"{self.n_channels}: choose channels that all recordings have."
                )
            if len(one) < length:
                raise ValueError(
                    f"Recording {at} has {len(one)} samples, fewer than a window of {length}. "
                    "Shorten the window, or leave this recording out."
                )
        whole = [1 + (len(one) - length) // self.step for one in self.recordings]
        self.counts = whole if max_windows is None else [min(n, max_windows) for n in whole]

    def blocks(self, block_size: int) -> Iterator[Windows]:
        for number, (samples, count) in enumerate(zip(self.recordings, self.counts, strict=True)):
            for first in range(0, count, block_size):
                n_windows = min(block_size, count - first)
                starts = self.step * np.arange(first, first + n_windows)
                # Only this slice is read, and copied once.
                part = np.asarray(samples[starts[0] : starts[-1] + self.length])
                views = sliding_window_view(part, self.length, axis=0)[:: self.step]
                X = np.array(views, order="C").reshape(n_windows, -1)
                release(samples)
                yield Windows(X, np.full(n_windows, number), starts)


def _check_recording(recording: Any, position: int) -> Any:
    """Return a recording as samples by channels, without a copy of an array."""
    samples = recording if isinstance(recording, np.ndarray) else np.asarray(recording)
    if samples.dtype.kind not in "fiu":
        raise TypeError(f"Recording {position} must hold numbers, got {samples.dtype}.")
    if samples.ndim == 1:
        return samples[:, None]
    if samples.ndim != 2 or samples.shape[1] == 0:
        raise ValueError(
            f"Recording {position} has shape {samples.shape}: expected (n_samples,) or "
            "(n_samples, n_channels)."
        )
    if samples.shape[1] > samples.shape[0]:
        raise ValueError(
            f"Recording {position} has more channels than samples, shape {samples.shape}: "
            "transpose it, so that rows are samples."
        )
    return samples
