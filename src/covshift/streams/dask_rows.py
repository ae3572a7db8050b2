"""Rows of a Dask array: each block is summed where it lies, and the sums travel.

A pass sends out the argument of the sums, of the size of the filters; the result has the same
size, added up as a tree on the way. A worker that is lost costs its blocks: Dask has the graph and
computes them again. Nothing is scattered, for what is scattered is lost with its worker.

Left to itself, Dask gives a block to the worker that is free first. Shares then differ, and in
every pass blocks are moved to the worker that would be idle. So they are dealt out like cards.
(In consecutive runs, they were moved as well: tasks are assigned block by block, and the first
worker looked too busy for its run before the second had anything to do.) Where a worker is lost,
Dask is free to put its blocks elsewhere.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy import sparse

from covshift.solvers.threads import one_blas_thread
from covshift.streams.rows import (
    RowStream,
    Run,
    add_up,
    call_on_part,
    domain_of_part,
    working_dtype,
)

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
        return keep_at_workers(self._blocks, self._owners) if self._owners else self._blocks

    def split(self, codes: Any) -> Any:
        """Return the codes of each block, in as few bytes as they need."""
        codes = np.asarray(codes)
        low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
        compact = codes.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))
        parts = [dask.delayed(compact[start:stop]) for start, stop in self._bounds]
        if self._owners:  # beside their rows
            return keep_at_workers(parts, self._owners)
        return list(dask.persist(*parts))

    def sums(
        self, function: Callable[..., tuple[Any, ...]], codes: Any, *arguments: Any, run: Run = map
    ) -> tuple[Any, ...]:
        """Sum ``function(rows, codes, *arguments)`` over all blocks; Dask runs them."""
        shared = dask.delayed(_Call(function, arguments), pure=False)
        apply, add = dask.delayed(_apply, pure=False), dask.delayed(add_up, pure=False)
        parts = [apply(shared, block, own) for block, own in zip(self._kept, codes, strict=True)]
        while len(parts) > 1:
            parts = [add(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        result: tuple[Any, ...] = parts[0].compute()
        return result

    def pick(self, rows: Any) -> Any:
        """These rows as an array in memory."""
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
        shared = dask.delayed(method, pure=False, traverse=False)
        call = dask.delayed(call_on_part, pure=False)
        ends = np.cumsum([0, *self._X.chunks[0]]).tolist()
        blocks = self._X.to_delayed().ravel()
        mapped = [
            da.from_delayed(
                call(block, domain_of_part(sample_domain, slice(start, stop)), shared),
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


def keep_at_workers(parts: list[Any], owners: list[str | None]) -> list[Any]:
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
