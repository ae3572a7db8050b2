"""The one exception of this package, and what its messages share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAX_SHOWN = 60  # characters of a cell or of a library's message that a line can take


class TableError(ValueError):
    """A table that cannot be read, matched or written; one line that says what to do."""

    reason = ""  # the message without the file, where it is about one


def table_error(path: Any, message: str) -> TableError:
    """Return the error for a file, on one line for any name.

    The file is the subject of a message that begins with a verb; others follow a colon.
    """
    goes_on = message.partition(" ")[0] in ("is", "has", "holds", "cannot")
    error = TableError(f"{one_line(os.fspath(path), 500)}{'' if goes_on else ':'} {message}")
    error.reason = message
    return error


def one_line(text: Any, limit: int = MAX_SHOWN) -> str:
    """Return text for a message: no line breaks or control characters, and not too long."""
    shown = "".join(character if character.isprintable() else " " for character in str(text))
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def listed(names: Any, limit: int = 5) -> str:
    """Return names for a message's sentence, the first few of many."""
    names = list(names)
    shown = ", ".join(f"'{one_line(name)}'" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


@contextmanager
def refused_as(path: str | Path, advice: str, *kinds: type[BaseException]) -> Iterator[None]:
    """Turn errors of the file system and of the readers into a `TableError` with its message."""
    try:
        yield
    except TableError:
        raise
    except FileNotFoundError:
        if os.fspath(path) == "-":
            raise table_error(
                path, "standard input is not read; save the table to a file."
            ) from None
        raise table_error(path, "no such file; check the name and the folder.") from None
    except IsADirectoryError:
        raise table_error(path, "is a folder; name a file in it.") from None
    except PermissionError:
        raise table_error(path, "cannot be opened; check its permissions.") from None
    except Exception as error:
        if not isinstance(error, (*kinds, OSError, MemoryError)):
            raise
        reason = one_line(getattr(error, "strerror", None) or error or type(error).__name__, 160)
        raise table_error(path, f"{advice} ({reason})") from error


def quoted(text: str) -> str:
    """Return text as messages quote it: an argument for a shell to paste, on one line."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    plain = shown and all(c.isalnum() or c in "_-.=:/+%" for c in shown)
    return shown if plain else f'"{shown}"'
