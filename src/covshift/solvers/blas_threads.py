"""Holding BLAS at one thread, for as long as anybody asks for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_limits: list[threadpool_limits] = []  # one entry per block inside; the first set the limit


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread inside the block.

    The limit belongs to the process. Blocks that overlap in several threads share one: the
    first to enter sets it and the last to leave restores what was before.
    """
    with _lock:
        _limits.append(_limits[0] if _limits else threadpool_limits(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()
