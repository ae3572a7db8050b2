"""Work done in threads ahead of the one that uses its results, in the order of the items.

Worth it where both sides let other threads run, as Arrow and NumPy do. The queue is bounded.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def map_ahead(
    function: Callable[[Any], Any], items: Iterable[Any], n_threads: int
) -> Iterator[Any]:
    """Yield the function's result for each item; the next ones are computed meanwhile.

    Where not all results are used, calls in progress end by themselves, and what their items hold
    open is closed with them.
    """
    threads = ThreadPoolExecutor(n_threads)
    coming: deque[Any] = deque()
    try:
        for item in items:
            coming.append(threads.submit(function, item))
            # Twice as many as threads: none stands still while a result is in use.
            if len(coming) > 2 * n_threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        # Without waiting: the garbage collector may be what closes this generator, and it may run
        # in a thread that holds the lock which the end of another thread needs (seen with
        # Python 3.12, in a thread that was just starting).
        threads.shutdown(wait=False, cancel_futures=True)


def read_ahead(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, none of them None; the next ones are made meanwhile."""
    source = iter(items)
    coming = map_ahead(lambda _: next(source, None), itertools.count(), n_threads=1)
    return itertools.takewhile(lambda item: item is not None, coming)
