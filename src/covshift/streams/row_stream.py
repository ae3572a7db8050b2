"""Interface of all streams of rows; rows of an array, in memory or mapped from a file."""

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from covshift.kernels.row_views import view_rows

# How parts are run: the built-in map, or that of a pool of threads.
Run: TypeAlias = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]
# More parts than most machines have cores to spare, and few sums to add up.
PARTS = 8


class RowStream(ABC):
    """Rows (n, m) that can be passed over any number of times, in parts, and never as a whole.

    All that is ever computed of them are sums: a function of the rows and the codes of a part
    returns a tuple of arrays, and these are added up in the order of the parts. So the result
    depends neither on how many threads or workers there are nor on who is first.

    Attributes
    ----------
    shape : (n, m).
    dtype : working precision, that of every computation: float32 or float64.
    is_sparse : whether parts are SciPy's CSR.
    """

    shape: tuple[int, int]
    dtype: Any
    is_sparse: bool

    @abstractmethod
    def split(self, codes: Any) -> Any:
        """Cut codes, one whole number per row, as the rows are; for `sums`."""

    @abstractmethod
    def sums(
        self, function: Callable[..., tuple[Any, ...]], codes: Any, *arguments: Any, run: Run = map
    ) -> tuple[Any, ...]:
        """Sum ``function(rows, codes, *arguments)`` over all parts.

        Parameters
        ----------
        function : of a module, so that it can be sent elsewhere.
        codes : from `split`.
        run : how the parts are run where that is for the caller to say.
        """

    @abstractmethod
    def pick(self, rows: Any) -> Any:
        """These rows, in ascending order, as an array in memory."""


def add_up(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sum tuples of arrays, entry by entry, from the first to the last."""
    return reduce(_add, results)


def _add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def working_dtype(dtype: Any) -> Any:
    """float32 and float64 as they are, float64 for other numbers, as scikit-learn has it."""
    dtype = np.dtype(dtype)
    if dtype in (np.float32, np.float64):
        return dtype
    if dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got {dtype}.")
    return np.dtype(np.float64)


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
    """Parts are runs of consecutive rows of ``X`` (n, m), dense or CSR; slices, without a copy."""

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
