"""Which worker of a cluster keeps which blocks of rows.

Left to itself, Dask gives a block to the worker that is free first. Shares then differ, and in
every pass blocks are moved to the worker that would be idle. So they are dealt out like cards.
(In consecutive runs, they were moved as well: tasks are assigned block by block, and the first
worker looked too busy for its run before the second had anything to do.) Where a worker is lost,
Dask is free to put its blocks elsewhere.
"""

from typing import Any

# Share of the workers' memory that the blocks may take; Dask spills to disk near three quarters.
PERSISTED_SHARE = 0.6


def deal_blocks(X: Any, n_blocks: int) -> list[str | None]:
    """Name the worker that is to keep each block of a Dask array; None is any worker.

    Each worker's share is by its number of threads. Blocks that rest on what workers have already
    are left to Dask, which computes them there. Without a cluster, or where it has no room for
    the blocks, nobody keeps them and nobody is named.
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
