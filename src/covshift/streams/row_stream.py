"""What every stream of rows can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

# How parts are run: the built-in map, or that of a pool of threads.
Run: TypeAlias = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]


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
