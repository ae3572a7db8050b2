"""Holding OpenMP at one thread, for small fits of libraries that would start more."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import threadpoolctl

_found: dict[str, Any] = {}


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Hold OpenMP at one thread inside the block, for the thread that enters it.

    Boosted trees of a few hundred rows take 0.2 s with one thread; with two, of which each waits
    for the other where programs share the cores, they took 5 s.
    """
    # Finding the libraries takes a millisecond or two; a library comes with a module.
    if _found.get("n_modules") != len(sys.modules):
        _found["openmp"] = threadpoolctl.ThreadpoolController().select(user_api="openmp")
        _found["n_modules"] = len(sys.modules)
    with _found["openmp"].limit(limits=1):
        yield
