"""How commands end: exit codes, and errors on one line.

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

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from covshift.cli import INTERRUPTED
from covshift.registry import PluginWarning

ERROR, MOVED, ALERT = 1, 3, 4
MAX_LENGTH = 1000  # of an error message; libraries' messages can be longer
MAX_WARNINGS = 5


def fail(command: str, message: str) -> NoReturn:
    """End with one line that says what to do."""
    typer.echo(f"covshift {command}: {printable(message, MAX_LENGTH)}", err=True)
    raise typer.Exit(ERROR)


@contextmanager
def one_line_errors(command: str, debug: bool) -> Iterator[list[str]]:
    """Turn whatever goes wrong into one line, unless ``debug``; yield the warnings that came up.

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
    """Print warnings of the block on standard error, a line each, without their place in code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    _print_warnings(caught)


def printable(text: object, limit: int) -> str:
    """Return text on one line, without what would steer a terminal, and not too long."""
    shown = "".join(one if one.isprintable() else " " for one in str(text))
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
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
