"""Ignore or record warnings without harm to other threads.

Python keeps the filters of warnings once per process, and ``warnings.catch_warnings`` puts back
what it found when it began. Two threads that overlap put back each other's filters, which then stay
for good. One thread alone cannot do this harm, so filters are changed in the main thread only. In
other threads the warning is shown, or goes where the caller's filters send it.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ignored_warnings(*categories: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of some categories, in the main thread of the process.

    Parameters
    ----------
    *categories : type of warning
        What to ignore.
    message : str, default=""
        Regular expression for the beginning of the text of warnings to ignore.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        for category in categories:
            warnings.filterwarnings("ignore", message, category)
        yield


@contextmanager
def recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record all warnings instead of showing them, in the main thread of the process.

    Yields
    ------
    list of WarningMessage
        Filled as warnings come. It stays empty in other threads, whose warnings are shown.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
