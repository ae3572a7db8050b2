"""Output of the commands on users' files: text for people, JSON for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from covshift.cli.errors import printable

MAX_TEXT = 200
MAX_ENTRIES = 12  # of a list or table that fit on a screen


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result for a program: ASCII, so that no name in it steers a terminal."""
    typer.echo(json.dumps(result, indent=1, default=_plain))


def print_notes(notes: Sequence[str], quiet: bool = False) -> None:
    """Print what was decided, a line each; nothing if ``quiet``."""
    for note in [] if quiet else notes:
        typer.echo(f"- {printable(note, 600)}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in columns, numbers to the right."""
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


def interval(figure: Mapping[str, Any], show: Callable[[float], str] = "{:.3f}".format) -> str:
    """Return a figure with its interval, as far as it has one."""
    if figure["value"] is None:
        return "undefined"
    if figure["low"] is None:
        return f"{show(figure['value'])} (no interval)"
    return f"{show(figure['value'])} ({show(figure['low'])} to {show(figure['high'])})"


def counted(counts: Mapping[str, int]) -> str:
    """Return the names with their numbers of rows, the first few of many."""
    shown_counts = [f"{printable(name, 40)} {n:,}" for name, n in counts.items()]
    rest = len(shown_counts) - MAX_ENTRIES
    return ", ".join(shown_counts[:MAX_ENTRIES]) + (f" and {rest} more" if rest > 0 else "")


def shown(value: Any) -> str:
    """Return a value of any kind as short text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else printable(value, MAX_TEXT)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
