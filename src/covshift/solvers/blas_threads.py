"""Holding BLAS, or OpenMP, at one thread for as long as anybody asks for it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import threadpoolctl

_lock = threading.Lock()
_limits: list[Any] = []  # one entry per block inside; the first set the limit
_found: dict[str, Any] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread inside the block.

    The limit belongs to the process. Blocks that overlap in several threads share one: the
    first to enter sets it and the last to leave restores what was before.
    """
    with _lock:
        _limits.append(_limits[0] if _limits else _limit())
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                _let_any_thread_set_limits()
                limit.restore_original_limits()
                _let_any_thread_set_limits()


def _limit() -> Any:
    _let_any_thread_set_limits()
    return _find("blas").limit(limits=1)


def _let_any_thread_set_limits() -> None:
    """Undo threadpoolctl's rule that only the first thread to set OpenBLAS's limit may do so.

    Since 3.8 the others are ignored without a word, and here the thread that sets the limit,
    or the one that restores it, may be any.
    """
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Hold OpenMP at one thread inside the block, for the thread that enters it.

    Boosted trees of a few hundred rows take 0.2 s with one thread; with two, of which each waits
    for the other where programs share the cores, they took 5 s.
    """
    with _find("openmp").limit(limits=1):
        yield


def _find(user_api: str) -> Any:
    """Return the libraries of one kind: a limiter restores all that its controller holds."""
    # Finding them takes a millisecond or two, as long as a small fit. They are looked for again
    # when anything was imported since: a library comes with a module.
    if _found.get("n_modules") != len(sys.modules):
        _found.clear()
        _found["n_modules"] = len(sys.modules)
    if user_api not in _found:
        _found[user_api] = threadpoolctl.ThreadpoolController().select(user_api=user_api)
    return _found[user_api]
