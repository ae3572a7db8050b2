"""Rows of an array, in memory or mapped from a file: its slices, without a copy."""

import mmap
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from covshift.kernels.row_views import view_rows
from covshift.streams.row_stream import RowStream, Run, add_up, working_dtype

# More parts than most machines have cores to spare, and few sums to add up.
PARTS = 8


def release(X: Any) -> None:
    """Let go of what was read of a memory map, or of a view of one; other arrays stay.

    Pages stay resident once they were read, and would add up to the whole file. They are read
    again from the file, or from the system's cache of it, when they are needed.
    """
    while isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
        X = X.base
    # Only of a map that cannot be written to: changes that no file holds would be lost.
    if isinstance(X, np.memmap) and X.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
        X._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class ArrayRows(RowStream):
    """Parts are runs of consecutive rows of ``X`` (n, m), dense or CSR."""

    def __init__(self, X: Any) -> None:
        self.is_sparse = bool(sparse.issparse(X))
        # A plain view: slices of a memmap cost ten times those of an array.
        self.X = X if self.is_sparse else np.asarray(X)
        self.shape = X.shape
        self.dtype = working_dtype(X.dtype)
        self._bounds = np.linspace(0, X.shape[0], min(PARTS, X.shape[0]) + 1).astype(int).tolist()

    def split(self, codes: Any) -> Any:
        """Codes as they are."""
        return codes

    def sums(
        self, function: Callable[..., tuple[Any, ...]], codes: Any, *arguments: Any, run: Run = map
    ) -> tuple[Any, ...]:
        """Sum ``function(rows, codes, *arguments)`` over all parts."""

        def of_part(bounds: tuple[int, int]) -> tuple[Any, ...]:
            start, stop = bounds
            rows = self.X[start:stop] if not self.is_sparse else view_rows(self.X, start, stop)
            return function(rows, codes[start:stop], *arguments)

        return add_up(run(of_part, list(pairwise(self._bounds))))

    def pick(self, rows: Any) -> Any:
        """These rows as an array in memory."""
        picked = self.X[rows].astype(self.dtype, copy=False)
        release(self.X)
        return picked
