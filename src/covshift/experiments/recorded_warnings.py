"""Counting the warnings of a task instead of showing them."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

# How often each warning came, by (category, message), in the order of their first appearance.
Counts: TypeAlias = dict[tuple[str, str], int]

MAX_KINDS = 20  # a message with a number in it may come in thousands of kinds
MAX_LENGTH = 300
OTHERS = ("Warning", "others")

_lock = threading.RLock()  # a destructor run inside may warn as well
_open: list[tuple[int, Counts]] = []  # each block inside: its thread and its counts
_restore = ExitStack()


@contextmanager
def recorded_warnings() -> Iterator[Counts]:
    """Count every warning raised inside the block; none is shown, none becomes an error.

    How Python treats warnings belongs to the process. Blocks that overlap in several threads
    share one change of it: the first to enter makes it and the last to leave undoes it.
    Warnings of a thread without a block, such as those a task starts, go to the oldest block.
    """
    counts: Counts = {}
    block = (threading.get_ident(), counts)
    with _lock:
        if not _open:
            # Both: with context-aware warnings (Python 3.14) the first restores only filters.
            _restore.callback(setattr, warnings, "showwarning", warnings.showwarning)
            _restore.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = _count  # type: ignore[assignment]
        _open.append(block)
    try:
        yield counts
    finally:
        with _lock:
            _open[:] = [other for other in _open if other is not block]
            if not _open:
                _restore.close()


def _count(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    kind = (category.__name__, str(message)[:MAX_LENGTH])
    with _lock:
        thread = threading.get_ident()
        counts = next((counts for owner, counts in _open if owner == thread), None)
        if counts is None:
            if not _open:  # the last block was left while this warning was on its way
                return
            counts = _open[0][1]
        if kind not in counts and len(counts) >= MAX_KINDS:
            kind = OTHERS
        counts[kind] = counts.get(kind, 0) + 1
