"""The kinds of rows: in memory, and those that are passed over in parts.

`covshift.streams.opening.open_rows` decides of which kind rows are. From there on estimators call
the methods of `OpenRows`, and none asks again. (Rows of Dask are in
`dask_rows`, because Dask is not always installed.)
"""

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import sklearn
from scipy import sparse
from sklearn.utils.validation import validate_data

from covshift.domains import Unit, pick_rows, unit_codes
from covshift.kernels.arrays import IntArray
from covshift.kernels.row_blocks import view_rows
from covshift.row_checks import largest_magnitude
from covshift.solvers.array_api import gather, namespace_of, to_numpy

# How parts are run: the built-in map, or that of a pool of threads.
Run: TypeAlias = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]
# Units with the numbers of their rows, and what learns from them: see `OpenRows.measure`.
Units: TypeAlias = Mapping[Unit, IntArray]
OfRows: TypeAlias = Callable[[Any, Unit], Any]
OfStream: TypeAlias = Callable[[Any, IntArray, int], list[Any]]
Method: TypeAlias = Callable[..., Any]
# More parts than most machines have cores to spare, and few sums to add up.
PARTS = 8
# Rows of a mapped file that a method gets at a time: a call costs nothing beside its work on them.
MAPPED_BYTES = 2**24


class OpenRows(ABC):
    """Rows (n, m) of any kind, checked.

    Attributes
    ----------
    shape : (n, m).
    dtype : working precision, that of every computation: float32 or float64.
    """

    shape: tuple[int, int]
    dtype: Any
    place = "with numpy"  # the library that computes with them, and on which device

    def check_beside(self, fitted: Any) -> None:
        """Refuse rows that are elsewhere than a fitted array."""
        if place_of(fitted) != self.place:
            raise ValueError(
                f"The filters were fitted {place_of(fitted)} and X is {self.place}: they must be "
                "in one place. Tensors need sklearn.config_context(array_api_dispatch=True) here "
                "as in fit; covshift.to_numpy(model) is the model for NumPy arrays."
            )

    @property
    @abstractmethod
    def data(self) -> Any:
        """Operands of formulas: an array of NumPy, SciPy or of a device, or a `RowStream`."""

    @abstractmethod
    def measure(self, units: Units, of_rows: OfRows, of_stream: OfStream) -> dict[Unit, Any]:
        """Learn something of each unit, given the numbers of its rows.

        Parameters
        ----------
        units : names of units, each with its rows.
        of_rows : takes the rows of one unit, in memory, and its name.
        of_stream : takes a `RowStream`, a code for each row, which says to which of some units that
            share no row it belongs, and the number of these; returns a list. Rows that have this
            number for a code belong to none.
        """

    @abstractmethod
    def draw(self, members: Any, n_rows: int) -> Any:
        """Return the rows that a mask holds, as an array; at most ``n_rows`` of those in parts."""

    @abstractmethod
    def pick(self, rows: Any) -> Any:
        """These rows, in ascending order, as an array in memory."""

    @abstractmethod
    def map(self, method: Method, of_rows: Method | None = None, sample_domain: Any = None) -> Any:
        """Apply to all rows what gives the same for a row whatever the other rows are.

        Parameters
        ----------
        method : public method of an estimator, which checks rows; it is called on each part.
        of_rows : what that method does with rows that are checked and in one place, and
            ``sample_domain``.
        sample_domain : None, one for all rows, or one per row; handed on unless it is None.
        """

    @abstractmethod
    def bring_home(self, *values: Any) -> tuple[Any, ...]:
        """Return labels, domains and masks as arrays in memory: one entry per row fits there."""


class MemoryRows(OpenRows):
    """Rows of an array of NumPy or of a sparse matrix, checked."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    @property
    def data(self) -> Any:
        """The array."""
        return self._X

    def measure(self, units: Units, of_rows: OfRows, of_stream: OfStream) -> dict[Unit, Any]:
        """Learn something of each unit from its rows."""
        return {unit: of_rows(pick_rows(self._X, rows), unit) for unit, rows in units.items()}

    def draw(self, members: Any, n_rows: int) -> Any:
        """Return a copy of all rows that a mask holds."""
        return self._X[members]

    def pick(self, rows: Any) -> Any:
        """Return a copy of these rows."""
        return self._X[rows]

    def map(self, method: Method, of_rows: Method | None = None, sample_domain: Any = None) -> Any:
        """Apply a method to all rows at once."""
        return (of_rows or method)(self._X, sample_domain)

    def bring_home(self, *values: Any) -> tuple[Any, ...]:
        """Return the values as they are: their checks make arrays of them."""
        return values


class RowStream(OpenRows):
    """Rows (n, m) that can be passed over any number of times, in parts, and never as a whole.

    All that is ever computed of them are sums: a function of the rows and the codes of a part
    returns a tuple of arrays, and these are added up in the order of the parts. So the result
    depends neither on how many threads or workers there are nor on who is first.

    Attributes
    ----------
    is_sparse : whether parts are SciPy's CSR.
    """

    is_sparse: bool

    @property
    def data(self) -> Any:
        """The stream itself: its rows are never one array."""
        return self

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
    def map_parts(self, method: Callable[..., Any], sample_domain: Any, like: Any) -> Any:
        """Call a method on each part; ``like`` is its result for a row of zeros."""

    def measure(self, units: Units, of_rows: OfRows, of_stream: OfStream) -> dict[Unit, Any]:
        """Learn something of each unit, of those that share no row in the same passes."""
        names, found = list(units), {}
        for positions, codes in unit_codes(units, self.shape[0]):
            measured = of_stream(self, codes, len(positions))
            found.update(
                {names[index]: one for index, one in zip(positions, measured, strict=True)}
            )
        return {name: found[name] for name in names}

    def draw(self, members: Any, n_rows: int) -> Any:
        """At most ``n_rows`` of the rows that a mask holds, drawn at random."""
        return self.pick(sample_rows(members, n_rows))

    def map(self, method: Method, of_rows: Method | None = None, sample_domain: Any = None) -> Any:
        """Apply a method part by part: lazily to rows of Dask, to others at once."""
        n_rows, n_features = self.shape
        (domain,) = self.bring_home(sample_domain)
        if domain is not None and not isinstance(domain, str) and np.ndim(domain) > 0:
            domain = np.asarray(domain)
            if len(domain) != n_rows:
                raise ValueError(
                    f"sample_domain must hold one integer per row: expected shape ({n_rows},), got "
                    f"{domain.shape}."
                )
        like = np.asarray(method(np.zeros((1, n_features), self.dtype)))
        return self.map_parts(method, domain, like)

    def bring_home(self, *values: Any) -> tuple[Any, ...]:
        """Return the labels, domains and masks as arrays in memory."""
        return tuple(bring_home(value) for value in values)


def place_of(array: Any) -> str:
    """Return the library of an array and, unless that is NumPy, its device."""
    if isinstance(array, np.ndarray):
        return OpenRows.place
    return f"with {type(array).__module__.partition('.')[0]} on {array.device}"


def is_dask(X: Any) -> bool:
    """Return whether X is an array or a frame of Dask, without importing it."""
    return type(X).__module__.startswith("dask.")


def bring_home(values: Any) -> Any:
    """Return the labels, domains or a mask as an array in memory, if Dask has them."""
    return values.compute() if is_dask(values) else values


def sample_rows(members: Any, n_rows: int, seed: Any = 0) -> IntArray:
    """Numbers of at most ``n_rows`` of the rows that a mask holds, drawn at random, ascending."""
    rows = np.flatnonzero(members)
    if len(rows) <= n_rows:
        return rows
    return np.sort(np.random.RandomState(seed).choice(rows, n_rows, replace=False))


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
        """Return the codes as they are."""
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

    def map_parts(self, method: Callable[..., Any], sample_domain: Any, like: Any) -> Any:
        """Call a method on some rows at a time, and let go of them."""
        n_rows, n_features = self.shape
        step = max(1, MAPPED_BYTES // (n_features * self.X.dtype.itemsize))
        result = np.empty((n_rows, *like.shape[1:]), like.dtype)
        for start in range(0, n_rows, step):
            part = slice(start, start + step)
            rows = np.array(self.X[part])  # out of the map, or it would be taken for one
            release(self.X)
            result[part] = call_on_part(rows, domain_of_part(sample_domain, part), method)
        return result


def domain_of_part(domain: Any, part: slice) -> Any:
    """Return the domains of some rows: a part of them, or the one of all rows."""
    return domain[part] if isinstance(domain, np.ndarray) else domain


def call_on_part(rows: Any, domain: Any, method: Callable[..., Any]) -> Any:
    """Return the result of a method for some rows, of which there may be none."""
    if rows.shape[0] == 0:
        return np.asarray(method(np.zeros((1, rows.shape[1]))))[:0]
    where = {} if domain is None else {"sample_domain": domain}
    result = method(rows, **where)
    return result if sparse.issparse(result) else np.asarray(result)


# --- Rows that live on a device: which are taken, how they are checked, and where they go ---


def is_tensor(X: Any) -> bool:
    """Return whether X is a tensor of torch, without importing it."""
    return type(X).__module__.partition(".")[0] == "torch"


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than NumPy that follows the array API standard."""
    if isinstance(X, np.ndarray | np.generic) or type(X).__module__.startswith("dask."):
        return False
    return is_tensor(X) or hasattr(X, "__array_namespace__")


def stays_on_device(X: Any) -> bool:
    """Return whether X is computed with where it is, by its own library.

    That takes scikit-learn's ``array_api_dispatch``; without it arrays in the memory of the
    processor are converted to NumPy's.
    """
    if not is_device_array(X):
        return False
    if sklearn.get_config()["array_api_dispatch"]:
        return True
    if is_tensor(X) and X.device.type != "cpu":
        raise TypeError(
            f"X is on the device {X.device}. To compute there, call this inside "
            "sklearn.config_context(array_api_dispatch=True); or give X.cpu()."
        )
    return False


def check_device_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check rows as scikit-learn's `validate_data` does, and that their squares do not overflow."""
    _check_compatibility(is_tensor(X))
    if is_tensor(X) and "strided" not in str(X.layout):
        raise TypeError(f"X is a sparse tensor ({X.layout}): give X.to_dense(), or a SciPy matrix.")
    xp = namespace_of(X)
    X = X.detach() if is_tensor(X) else X  # no gradients of the caller's are to be recorded
    X = validate_data(estimator, X, reset=reset, dtype=(xp.float64, xp.float32))
    limit = largest_magnitude(float_type(X))
    largest = max(float(xp.max(X)), -float(xp.min(X)))  # abs(X) would be a copy
    if largest > limit:
        raise ValueError(
            f"X holds magnitudes up to {largest:.1e}; above {limit:.0e} they overflow {X.dtype} "
            "once squared and summed. Scale the features first, e.g. by StandardScaler."
        )
    return X


class DeviceRows(OpenRows):
    """Rows of a tensor, or of another array on a device, checked; computed with where they are."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.dtype, self.place = X, X.shape, float_type(X), place_of(X)

    @property
    def data(self) -> Any:
        """The tensor."""
        return self._X

    def measure(self, units: Units, of_rows: OfRows, of_stream: OfStream) -> dict[Unit, Any]:
        """Learn something of each unit from a copy of its rows."""
        return {unit: of_rows(self.pick(rows), unit) for unit, rows in units.items()}

    def draw(self, members: Any, n_rows: int) -> Any:
        """Return all rows that a mask holds."""
        return self.pick(np.flatnonzero(members))

    def pick(self, rows: Any) -> Any:
        """These rows, where they are."""
        return gather(self._X, put_beside(rows, self._X))

    def map(self, method: Method, of_rows: Method | None = None, sample_domain: Any = None) -> Any:
        """Apply a method to all rows at once."""
        return (of_rows or method)(self._X, *self.bring_home(sample_domain))

    def bring_home(self, *values: Any) -> tuple[Any, ...]:
        """Return the labels, domains and masks as arrays of NumPy."""
        return tuple(bring_to_host(value) for value in values)


def float_type(X: Any) -> Any:
    """NumPy's name for the precision of rows."""
    if not is_device_array(X):
        return X.dtype
    return np.dtype(np.float32 if X.dtype == namespace_of(X).float32 else np.float64)


def put_beside(array: Any, X: Any) -> Any:
    """Copy an array of NumPy to the device of X."""
    return namespace_of(X).asarray(array, device=X.device)


def bring_to_host(values: Any) -> Any:
    """Return the labels, domains and masks on a device as arrays of NumPy; others as they are."""
    return to_numpy(values) if is_device_array(values) else values


@cache
def _check_compatibility(tensors: bool) -> None:
    if not tensors:
        return
    try:
        import array_api_compat.torch  # noqa: F401
    except ImportError:
        raise ImportError(
            "Fitting tensors where they are needs the extra gpu: pip install 'covshift[gpu]'."
        ) from None
