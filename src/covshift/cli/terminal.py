"""Between a command and the terminal: errors and exit codes, results, progress.

Errors take one line. The exit code is

====  ==============================================================
code  meaning
====  ==============================================================
0     done
1     an error; one line on standard error, and no output file
2     the arguments make no command
3     ``covshift monitor``: a batch has moved
4     ``covshift monitor``: the expected score of a batch is below ``--alert``
130   interrupted (Ctrl-C)
====  ==============================================================
"""

import ctypes
import errno
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, NoReturn

import typer

from covshift.cli import INTERRUPTED
from covshift.registry import PluginWarning

# --- How commands end ---


ERROR, MOVED, ALERT = 1, 3, 4
MAX_LENGTH = 1000  # of an error message; libraries' messages can be longer
MAX_WARNINGS = 5


def fail(command: str, message: str) -> NoReturn:
    """End with one line on the terminal that says what to do."""
    typer.echo(f"covshift {command}: {printable(message, MAX_LENGTH)}", err=True)
    raise typer.Exit(ERROR)


@contextmanager
def one_line_errors(command: str, debug: bool) -> Iterator[list[str]]:
    """Show whatever goes wrong as one line on the terminal, unless ``debug``; yield the warnings.

    The list is complete once the block has ended. Warnings about plug-ins are not in it: they
    concern the installation, not the data, and go to standard error.
    """
    told: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield told
        plugins = [one for one in caught if issubclass(one.category, PluginWarning)]
        _print_warnings(plugins)
        others = [one for one in caught if one not in plugins and _is_user_warning(one)]
        texts = [printable(one.message, 200) for one in others]
        told += list(dict.fromkeys(texts))[:MAX_WARNINGS]
    except KeyboardInterrupt:
        typer.echo("Interrupted: nothing was written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        # Of a closed stream, `main` says so.
        if debug or (isinstance(error, OSError) and error.errno == errno.EBADF):
            raise
        fail(command, _message(error))


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings of the block on the terminal, a line each, without their place in code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    _print_warnings(caught)


def printable(text: object, limit: int) -> str:
    """Return text for the terminal, on one line, without what would steer it, and not too long."""
    shown = "".join(one if one.isprintable() else " " for one in str(text))
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        if where and error.errno == errno.ENOENT:
            return f"{where}no such file; check the name and the folder."
        return f"{where}{error.strerror}."
    if isinstance(error, MemoryError):
        return "There is not enough memory for this; try it with fewer rows."
    text = str(error) or type(error).__name__
    # An error of ours says what to do; others may need a look at where they come from.
    ours = type(error).__module__.startswith("covshift.") or isinstance(error, ImportError)
    return text if ours else f"{text} (--debug shows where)"


def _print_warnings(caught: list[warnings.WarningMessage]) -> None:
    for one in caught:
        if _is_user_warning(one):
            typer.echo(f"covshift: {printable(one.message, MAX_LENGTH)}", err=True)


def _is_user_warning(warning: warnings.WarningMessage) -> bool:
    developers = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
    return not issubclass(warning.category, (*developers, ResourceWarning))


# --- Results: text for people, JSON for programs ---


MAX_TEXT = 200
MAX_RECORDINGS = 20  # with a line each


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result for a program: ASCII, so that no name in it steers a terminal."""
    typer.echo(json.dumps(result, indent=1, default=_plain))


def print_notes(notes: Sequence[str], quiet: bool = False) -> None:
    """Print what was decided on the terminal, a line each; nothing if ``quiet``."""
    for note in [] if quiet else notes:
        typer.echo(f"- {printable(note, 600)}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on the terminal, in columns, numbers to the right."""
    headings = [printable(heading, 60) for heading in headings]
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    right = [bool(rows) and isinstance(cell, int | float) for cell in (rows[0] if rows else ())]
    for line in ([*headings], *cells):
        padded = [
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(line, widths, right or [False] * len(line), strict=True)
        ]
        typer.echo(f"  {'  '.join(padded)}".rstrip())


def shown(value: Any) -> str:
    """Return a value of any kind as short text for the terminal."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else printable(value, MAX_TEXT)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


# --- Progress: the step, the share done, the time left ---
#
# Nothing of what libraries print by themselves: libsvm, LightGBM and others write to the terminal
# from compiled code, in the middle of the bar, about fits that the user never asked for.


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
    with _silenced() as terminal:
        if not shown:
            yield lambda text, share=None: None
            return
        with _bar(terminal or sys.stderr, message) as update:
            yield update


@contextmanager
def _silenced() -> Iterator[Any]:
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
    """Return, for the terminal, the share done and the time left, in words.

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
    >>> from covshift.cli.terminal import say_progress
    >>> say_progress(0.25, 40.0, 30.0)  # three times 30 s less the 10 s since
    '25 %, about 1 min 20 s left'
    >>> say_progress(None, 40.0, 0.0)
    '40 s'
    """
    if not share:
        return _say_seconds(elapsed)
    told = f"{share:.0%}".replace("%", " %")
    if elapsed < FIRST_ESTIMATE or share >= 1:
        return told
    left = since * (1 - share) / share - (elapsed - since)
    return f"{told}, about {_say_seconds(max(left, 1.0))} left"


def _say_seconds(seconds: float) -> str:
    """Return a time in words, to two places."""
    whole = round(seconds)
    for size, large, small in ((3600, "h", "min"), (60, "min", "s")):
        if whole >= size:
            rest = whole % size // (size // 60)
            return f"{whole // size} {large} {rest} {small}" if rest else f"{whole // size} {large}"
    return f"{whole} s"
