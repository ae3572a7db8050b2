"""Progress of a command in a terminal: the step, the share done, the time left.

Nothing of what libraries print by themselves: libsvm, LightGBM and others write to the terminal
from compiled code, in the middle of the bar, about fits that the user never asked for.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

Tell = Callable[..., object]  # update(text, share=None)
STREAMS = (1, 2)  # file descriptors of standard output and error
FIRST_ESTIMATE = 2.0  # seconds of work, before which an estimate jumps


@contextmanager
def working(message: str, quiet: bool = False) -> Iterator[Tell]:
    """Show the progress on terminals; yield a function that changes the text and the share done.

    Parameters
    ----------
    message : str
        Shown until another one comes.
    quiet : bool, default=False
        Whether to show nothing.

    Yields
    ------
    callable
        ``update(text, share=None)``; the share is from 0 to 1, None: unknown.
    """
    shown = sys.stderr.isatty() and not quiet
    with silenced() as terminal:
        if not shown:
            yield lambda text, share=None: None
            return
        with _bar(terminal or sys.stderr, message) as update:
            yield update


@contextmanager
def silenced() -> Iterator[Any]:
    """Send what is printed in the block nowhere; yield standard error as it was.

    Where the process has no such streams, nothing is redirected and None is yielded.
    """
    try:
        kept = [os.dup(stream) for stream in STREAMS]
    except OSError:  # a service may have closed them
        yield None
        return
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in STREAMS:
        os.dup2(nowhere, stream)
    os.close(nowhere)
    try:
        with os.fdopen(os.dup(kept[1]), "w", errors="replace") as terminal:
            yield terminal
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        _flush_compiled_code()
        for copy, stream in zip(kept, STREAMS, strict=True):
            os.dup2(copy, stream)
            os.close(copy)


def _flush_compiled_code() -> None:
    """Write what the C library holds back, which would come out after the block."""
    try:
        ctypes.CDLL(None).fflush(None)
    except (OSError, AttributeError, TypeError):  # Windows has no library of that name
        return


@contextmanager
def _bar(file: Any, message: str) -> Iterator[Tell]:
    # Imported here: a pipe needs none of it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.text import Text

    class Done(ProgressColumn):
        """The share done and the time left, or the time so far."""

        def render(self, task: Any) -> Text:
            now, (share, start, told) = monotonic(), task.fields["done"]
            return Text(say_progress(share, now - start, told - start))

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        Done(),
        console=Console(file=file),
        transient=True,
        # Else what Python code prints would be shown above the bar.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    # The share done, and when: at the start of what it is a share of, and when it was told.
    task = bar.add_task(message, total=None, done=(None, monotonic(), monotonic()))

    def update(text: str, share: float | None = None) -> None:
        before, start, _ = bar.tasks[0].fields["done"]
        now = monotonic()
        if (share or 0.0) < (before or 0.0):  # another file, or another step
            start = now
        total = None if share is None else 1.0
        done = (share, start, now)
        bar.update(task, description=text, total=total, completed=share or 0.0, done=done)

    with bar:
        yield update


def say_progress(share: float | None, elapsed: float, since: float) -> str:
    """Return the share done and the time left, in words.

    Parameters
    ----------
    share : float or None
        Done, from 0 to 1, as it was ``since`` seconds after the start.
    elapsed, since : float
        Seconds from the start until now, and until the share was told.

    Returns
    -------
    str

    Examples
    --------
    >>> from covshift.cli.progress import say_progress
    >>> say_progress(0.25, 40.0, 30.0)  # three times 30 s less the 10 s since
    '25 %, about 1 min 20 s left'
    >>> say_progress(None, 40.0, 0.0)
    '40 s'
    """
    if not share:
        return say_seconds(elapsed)
    told = f"{share:.0%}".replace("%", " %")
    if elapsed < FIRST_ESTIMATE or share >= 1:
        return told
    left = since * (1 - share) / share - (elapsed - since)
    return f"{told}, about {say_seconds(max(left, 1.0))} left"


def say_seconds(seconds: float) -> str:
    """Return a time in words, to two places."""
    whole = round(seconds)
    for size, large, small in ((3600, "h", "min"), (60, "min", "s")):
        if whole >= size:
            rest = whole % size // (size // 60)
            return f"{whole // size} {large} {rest} {small}" if rest else f"{whole // size} {large}"
    return f"{whole} s"
