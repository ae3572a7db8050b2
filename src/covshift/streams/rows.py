"""Rows of any kind: in memory, and those that are passed over in parts, of a file or of a cluster.

`open_rows` decides of which kind rows are. From there on estimators call the methods of `OpenRows`,
and none asks again.

A pass over a Dask array sends out the argument of the sums, of the size of the filters; the result
has the same size, added up as a tree on the way. A worker that is lost costs its blocks: Dask has
the graph and computes them again. Nothing is scattered, for what is scattered is lost with its
worker.

Left to itself, Dask gives a block to the worker that is free first. Shares then differ, and in
every pass blocks are moved to the worker that would be idle. So they are dealt out like cards.
(In consecutive runs, they were moved as well: tasks are assigned block by block, and the first
worker looked too busy for its run before the second had anything to do.) Where a worker is lost,
Dask is free to put its blocks elsewhere.
"""

import mmap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from covshift.domains import Unit, unit_codes
from covshift.kernels.array_types import IntArray
from covshift.kernels.row_blocks import view_rows
from covshift.row_checks import (
    check_magnitude,
    check_rows_of,
    check_width,
    count_unreadable,
    is_dask,
    largest_magnitude,
    refuse_dask,
    validate_rows,
)
from covshift.solvers.device_arrays import (
    bring_to_host,
    float_type,
    gather,
    is_tensor,
    namespace_of,
    put_beside,
    stays_on_device,
    working_dtype,
)
from covshift.solvers.threads import one_blas_thread

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
    in_parts, on_device : of which kind the rows are; in memory, if neither. For computations that
        are a different program for each kind; others call the methods.
    """

    shape: tuple[int, int]
    dtype: Any
    in_parts = False
    on_device = False
    place = "with numpy"  # the library that computes with them, and on which device

    def check_beside(self, fitted: Any) -> None:
        """Refuse rows that are elsewhere than a fitted array."""
        if _place_of(fitted) != self.place:
            raise ValueError(
                f"The filters were fitted {_place_of(fitted)} and X is {self.place}: they must be "
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
        return {
            unit: of_rows(_pick_ascending_rows(self._X, rows), unit) for unit, rows in units.items()
        }

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


def _pick_ascending_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows of X, whose numbers ascend; without a copy if they are one block."""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    return X[start:stop] if stop - start == len(rows) else X[rows]


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
    in_parts = True

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


def _place_of(array: Any) -> str:
    """Return the library of an array and, unless that is NumPy, its device."""
    if isinstance(array, np.ndarray):
        return OpenRows.place
    return f"with {type(array).__module__.partition('.')[0]} on {array.device}"


def bring_home(values: Any) -> Any:
    """Return what belongs to rows, labels, domains or a mask, in memory, if Dask has it."""
    return values.compute() if is_dask(values) else values


def sample_rows(members: Any, n_rows: int, seed: Any = 0) -> IntArray:
    """Draw at most ``n_rows`` numbers of a stream's rows, of those that a mask holds, ascending."""
    rows = np.flatnonzero(members)
    if len(rows) <= n_rows:
        return rows
    return np.sort(np.random.RandomState(seed).choice(rows, n_rows, replace=False))


def _add_up(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sum tuples of arrays, entry by entry, from the first to the last."""
    return reduce(_add, results)


def _add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


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

        return _add_up(run(of_part, list(pairwise(self._bounds))))

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
            result[part] = _call_on_part(rows, _domain_of_part(sample_domain, part), method)
        return result


def _domain_of_part(domain: Any, part: slice) -> Any:
    """Return the domains of some rows: a part of them, or the one of all rows."""
    return domain[part] if isinstance(domain, np.ndarray) else domain


def _call_on_part(rows: Any, domain: Any, method: Callable[..., Any]) -> Any:
    """Return the result of a method for some rows, of which there may be none."""
    if rows.shape[0] == 0:
        return np.asarray(method(np.zeros((1, rows.shape[1]))))[:0]
    where = {} if domain is None else {"sample_domain": domain}
    result = method(rows, **where)
    return result if sparse.issparse(result) else np.asarray(result)


# --- Rows that live on a device: which are taken, how they are checked, and where they go ---


def _check_device_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
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

    on_device = True

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.dtype, self.place = X, X.shape, float_type(X), _place_of(X)

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


@cache
def _check_compatibility(tensors: bool) -> None:
    if not tensors:
        return
    try:
        import array_api_compat.torch  # noqa: F401
    except ImportError:
        raise ImportError(
            "Fitting tensors on their device needs the extra gpu: pip install 'covshift[gpu]'."
        ) from None


# --- Rows of a Dask array: each block is summed where it lies, and the sums travel ---


# Sums added up by one task of the tree: fewer take more rounds, more take longer each.
FAN_IN = 8
# Share of the workers' memory that the blocks may take; Dask spills to disk near three quarters.
PERSISTED_SHARE = 0.6


class DaskRows(RowStream):
    """Parts are the blocks of a Dask array ``X`` (n, m), kept by the workers if there are any."""

    def __init__(self, X: Any) -> None:
        self.shape = X.shape
        self.dtype = working_dtype(X.dtype)
        self.is_sparse = bool(sparse.issparse(X._meta))
        lengths = np.array(X.chunks[0])
        filled = np.flatnonzero(lengths)
        ends = np.cumsum(lengths)[filled].tolist()
        self._bounds = list(pairwise([0, *ends]))
        self._X, self._filled = X, filled

    @cached_property
    def _blocks(self) -> list[Any]:
        blocks = self._X.to_delayed(optimize_graph=False).ravel()
        return [blocks[index] for index in self._filled]

    @cached_property
    def _owners(self) -> list[str | None]:
        return deal_blocks(self._X, len(self._filled))

    @cached_property
    def _kept(self) -> list[Any]:
        # Workers forget data without references: these references keep them. Where they have no
        # room for them, every pass reads the blocks from where they come.
        return _keep_at_workers(self._blocks, self._owners) if self._owners else self._blocks

    def split(self, codes: Any) -> Any:
        """Return the codes of each block, in as few bytes as they need."""
        import dask  # an extra

        codes = np.asarray(codes)
        low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
        compact = codes.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))
        parts = [dask.delayed(compact[start:stop]) for start, stop in self._bounds]
        if self._owners:  # beside their rows
            return _keep_at_workers(parts, self._owners)
        return list(dask.persist(*parts))

    def sums(
        self, function: Callable[..., tuple[Any, ...]], codes: Any, *arguments: Any, run: Run = map
    ) -> tuple[Any, ...]:
        """Sum ``function(rows, codes, *arguments)`` over all blocks; Dask runs them."""
        import dask

        shared = dask.delayed(_Call(function, arguments), pure=False)
        apply, add = dask.delayed(_apply, pure=False), dask.delayed(_add_up, pure=False)
        parts = [apply(shared, block, own) for block, own in zip(self._kept, codes, strict=True)]
        while len(parts) > 1:
            parts = [add(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        result: tuple[Any, ...] = parts[0].compute()
        return result

    def pick(self, rows: Any) -> Any:
        """These rows as an array in memory."""
        import dask

        rows = np.asarray(rows)
        place = dask.delayed(_pick)
        parts = [
            place(block, rows[(rows >= start) & (rows < stop)] - start)
            for block, (start, stop) in zip(self._blocks, self._bounds, strict=True)
        ]
        picked = dask.compute(*parts)
        stack = sparse.vstack if self.is_sparse else np.vstack
        return stack(picked).astype(self.dtype, copy=False)

    def map_parts(self, method: Callable[..., Any], sample_domain: Any, like: Any) -> Any:
        """Return a Dask array of what a method returns for each block, yet to be computed."""
        import dask
        import dask.array as da

        shared = dask.delayed(method, pure=False, traverse=False)
        call = dask.delayed(_call_on_part, pure=False)
        ends = np.cumsum([0, *self._X.chunks[0]]).tolist()
        blocks = self._X.to_delayed().ravel()
        mapped = [
            da.from_delayed(
                call(block, _domain_of_part(sample_domain, slice(start, stop)), shared),
                shape=(stop - start, *like.shape[1:]),
                dtype=like.dtype,
            )
            for block, (start, stop) in zip(blocks, pairwise(ends), strict=True)
        ]
        return da.concatenate(mapped, axis=0)


class _Call:
    """A function and its arguments, as one value that travels once to each worker."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments


def _apply(call: _Call, rows: Any, codes: Any) -> Any:
    # A worker's threads are its own: BLAS must not take more.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return call.function(rows, codes, *call.arguments)


def _pick(block: Any, rows: Any) -> Any:
    return block[rows]


def deal_blocks(X: Any, n_blocks: int) -> list[str | None]:
    """Name the worker that is to keep each block of a Dask array; None is any worker.

    Each worker's share is by its number of threads. Blocks that rest on what workers have already
    are left to Dask, which computes them there. Without a cluster, or where it has no room for
    the blocks, no worker keeps them and none is named.
    """
    client = _current_client()
    if client is None:
        return []
    from distributed import futures_of  # an extra

    # All of them: some versions of Dask name five workers unless asked.
    workers = client.scheduler_info(n_workers=-1)["workers"]
    limits = [worker["memory_limit"] for worker in workers.values()]
    if all(limits) and X.nbytes > PERSISTED_SHARE * sum(limits):
        return []
    if futures_of(X):
        return [None] * n_blocks
    seats = [address for address, worker in workers.items() for _ in range(worker["nthreads"])]
    return [seats[index % len(seats)] for index in range(n_blocks)]


def _keep_at_workers(parts: list[Any], owners: list[str | None]) -> list[Any]:
    """Have delayed parts, one for each block, computed and kept by the owner of that block."""
    client = _current_client()
    kept = list(parts)
    for owner in dict.fromkeys(owners):
        own = [index for index, other in enumerate(owners) if other == owner]
        # Other workers are allowed, in case that this one is lost.
        where = {} if owner is None else {"workers": [owner], "allow_other_workers": True}
        persisted = client.persist([parts[index] for index in own], **where)
        for index, part in zip(own, persisted, strict=True):
            kept[index] = part
    return kept


def _current_client() -> Any:
    try:
        from distributed import get_client  # an extra

        return get_client()
    except (ImportError, ValueError):
        return None


# --- The entrance: of which kind rows are is decided here, once, and they are checked ---


# A memory map of at most this size is read like any array. (joblib maps whatever is larger than
# a megabyte: results must not depend on that.)
SMALL_BYTES = 2**28
OWN = "own"  # precision of the rows themselves


def open_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    squared_in: Any = OWN,
    allow_nan: bool = False,
    accept_sparse: bool = False,
    accept_device: bool = False,
    look: bool = True,
    if_streamed: Callable[[], None] | None = None,
    if_on_device: Callable[[], None] | None = None,
) -> OpenRows:
    """Check rows as scikit-learn's `validate_data` does, wherever they are, and without a copy.

    Parameters
    ----------
    estimator : whose number and names of features are set (``reset``) or compared.
    X : rows as users give them.
    squared_in : precision in which rows are to be squared and summed, which must not overflow:
        their own, double, or None: never.
    allow_nan, accept_sparse : whether missing values and sparse rows are taken.
    accept_device : whether rows on a device stay there, if scikit-learn is told so.
    look : whether the values of rows in parts are looked at, which takes a pass over them; without,
        that is left to the reader of a part.
    if_streamed, if_on_device : raise an error where rows in parts, or on a device, cannot be taken.
    """
    if is_streamed(X):
        if if_streamed is not None:
            if_streamed()
        stream = open_stream(X)
        check_width(estimator, stream.shape, reset=reset)
        if look:
            _look_through(estimator, stream, squared_in, allow_nan)
        return stream
    if accept_device and stays_on_device(X):
        if if_on_device is not None:
            if_on_device()
        return DeviceRows(_check_device_rows(estimator, X, reset=reset))
    X = validate_rows(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if accept_sparse else False,
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan" if allow_nan else True,
    )
    # Sums in double precision overflow only where it is in double precision.
    if squared_in is not None and squared_in in (OWN, X.dtype):
        check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return MemoryRows(X)


def rows_in_memory(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Open rows for an estimator that needs them in memory, checked, and return the array.

    Those of a file are read, however large it is; those of Dask, which may be on many machines,
    are refused.
    """
    refuse_dask(estimator, X)
    X = validate_rows(estimator, X, reset=reset, dtype=(np.float64, np.float32))
    check_magnitude(X, getattr(estimator, "feature_names_in_", None))
    return X


def is_streamed(X: Any) -> bool:
    """Return whether rows are to be passed over in parts: Dask arrays, and large memory maps."""
    return is_dask(X) or (_is_mapped(X) and X.nbytes > SMALL_BYTES)


def _is_mapped(X: Any) -> bool:
    """Return whether an array is a memory map, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap.mmap)


def _look_through(estimator: Any, stream: RowStream, squared_in: Any, allow_nan: bool) -> None:
    """Refuse missing, infinite and large values, in one pass."""
    no_codes = stream.split(np.zeros(stream.shape[0], dtype=np.int8))
    precision = stream.dtype if isinstance(squared_in, str) else squared_in
    limit = np.inf if precision is None else largest_magnitude(precision)
    n_nan, n_infinite, n_large = stream.sums(count_unreadable, no_codes, stream.dtype, limit)
    if n_infinite:
        raise ValueError(f"Input X contains infinity, in {n_infinite} places.")
    if n_nan and not allow_nan:
        raise ValueError(
            f"Input X contains NaN, in {n_nan} places: fill them, or drop those rows. "
            f"{type(estimator).__name__} takes no missing values."
        )
    if n_large:
        raise ValueError(
            f"X holds {n_large} values of a magnitude above {limit:.0e}: they overflow {precision} "
            "once squared and summed. Scale the features first, e.g. by StandardScaler."
        )


def open_stream(X: Any) -> RowStream:
    """Return rows as a stream, without checking their values."""
    check_rows_of(X)
    if is_dask(X):
        return DaskRows(X)
    return ArrayRows(X)


def map_rows(estimator: Any, method: str, X: Any, *, sample_domain: Any = None) -> Any:
    """Call a method of an estimator on every part of rows that are streamed; see `OpenRows.map`.

    Returns
    -------
    ndarray, or for a Dask array X a Dask array that is yet to be computed.
    """
    stream = open_stream(X)
    check_width(estimator, stream.shape, reset=False)
    return stream.map(getattr(estimator, method), sample_domain=sample_domain)


# --- Rows drawn from a stream, where all of them are more than a method can use ---


# Rows brought into memory for methods that need them there, as double precision.
IN_MEMORY_BYTES = 2**28


class SampledRowsWarning(UserWarning):
    """A statistic was computed from a sample of the rows; the message states its error."""


def draw_in_memory(
    X: Any, y: Any, sample_domain: Any, label_mask: Any, *, what: str
) -> tuple[Any, Any, Any, Any, IntArray]:
    """Bring as many rows as fit, with what is known of them, into memory; and their numbers.

    Of source rows and of target rows alike as many as are there, up to half of the room each.
    """
    stream = open_stream(X)
    n_rows, n_features = stream.shape
    given = {"y": y, "sample_domain": sample_domain, "label_mask": label_mask}
    for name, values in given.items():
        if values is not None and np.shape(values)[:1] != (n_rows,):
            raise ValueError(
                f"{name} must hold one entry per row: expected {n_rows}, got "
                f"{np.shape(values)[:1] or 'a single value'}."
            )
    limit = max(2, IN_MEMORY_BYTES // (n_features * 8))
    source = np.ones(n_rows, bool) if sample_domain is None else np.asarray(sample_domain) >= 0
    n_target = int((~source).sum())
    drawn = [sample_rows(source, max(limit // 2, limit - n_target))]
    drawn.append(sample_rows(~source, limit - len(drawn[0])))
    rows = np.union1d(*drawn)
    if len(rows) < n_rows:
        thinned = [len(own) for own, n in zip(drawn, (n_rows - n_target, n_target), strict=True)
                   if len(own) < n]  # fmt: skip
        error = np.sqrt(np.log(2 / 0.05) / (2 * min(thinned)))
        warn_sampled(
            what, len(rows), n_rows,
            f"the share of any kind of row is within {error:.4f} of that among all rows of its "
            "role, with probability .95",
        )  # fmt: skip
    picked = [None if values is None else np.asarray(values)[rows] for values in given.values()]
    return stream.pick(rows), picked[0], picked[1], picked[2], rows


def warn_sampled(what: str, n_drawn: int, n_rows: int, error: str) -> None:
    """Warn that ``what`` was learned from a sample of a stream's rows, with its size and error."""
    warnings.warn(
        f"{what} from {n_drawn:,} of {n_rows:,} rows, drawn at random: {error}.",
        SampledRowsWarning,
        stacklevel=5,
    )


BLOCK_BYTES = 2**26


def as_blocks(X: Any) -> Any:
    """Return a large memory map as a Dask array, whose rows are adapted block by block."""
    if is_dask(X):
        return X
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError(
            "Fitting a predictor to rows in blocks needs Dask, which is not installed: "
            'pip install "covshift[dask]". An adapter alone can be fitted without.'
        ) from error
    n_rows = max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    # Without a name Dask would read all rows to make one.
    return da.from_array(X, chunks=(n_rows, -1), name=False)
