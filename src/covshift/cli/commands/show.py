"""``covshift show``: the card of a model file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import (
    MAX_ENTRIES,
    count_entries,
    print_assessment,
    restore_assessment,
)
from covshift.cli.options import AsJson, Debug
from covshift.cli.terminal import (
    one_line_errors,
    print_json,
    print_table,
    printable,
    shown,
)

COMMAND = "show"
MAX_DEPTH = 4
FIRST = (
    "class_name", "date", "task", "label", "classes", "objective", "decision", "assessment",
    "chosen", "plain model", "data", "notes",
)  # fmt: skip
LAST = ("domain_names", "model", "feature_names", "software")  # long, and seldom asked for
ONE_LINE = 80  # characters of a list that is not taken apart
# Entries of a card whose names say little to a user, in words.
IN_WORDS = {
    "class_name": "class",
    "chosen": "ensemble",
    "reference rows": "new rows kept for covshift monitor",
    "score": "how candidates were scored",
}
VALUES_IN_WORDS = {
    ("score", "rehearsals"): "on source rows taken as the target, with hidden labels",
    ("score", "source CV"): "by cross-validation on the source rows",
}
# Of a model of tables, "data" says the same with names.
SAID_BY_DATA = ("n_features", "domains")


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print a summary of a model file: task, advice, expected scores, ensemble."""
    with one_line_errors(COMMAND, debug):
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.persistence import read_card

        card = read_card(model)
        if as_json:
            print_json(card)
            return
        if "chosen" in card:  # a model of `covshift adapt`
            card.setdefault("plain model", "none (version 0.1 kept none)")
        middle = [name for name in card if name not in FIRST + LAST]
        for name in [name for name in (*FIRST, *middle, *LAST) if name in card]:
            if name == "decision" and restore_assessment(card.get("assessment")) is not None:
                continue  # the assessment begins with the advice
            if (name == "classes" and card[name] is None) or card[name] == []:
                continue  # a regression has no classes
            if name in SAID_BY_DATA and "data" in card:
                continue
            if name != "assessment" or not print_assessment(card[name]):
                value = card[name]
                if isinstance(value, str):  # a card may hold anything
                    value = VALUES_IN_WORDS.get((name, value), value)
                _print(IN_WORDS.get(name, name), value, 0)


def _print(name: str, value: Any, depth: int) -> None:
    """Print an entry of any kind, for a card may hold any; long ones are cut."""
    start = f"{'  ' * depth}{printable(name, 60)}:"
    if depth < MAX_DEPTH and isinstance(value, Mapping) and value:
        typer.echo(start)
        for key, inner in list(value.items())[:MAX_ENTRIES]:
            _print(str(key), inner, depth + 1)
        _print_rest(count_entries(value), depth)
    elif _is_table(value):
        typer.echo(start)
        print_table(list(value[0]), [list(one.values()) for one in value[:MAX_ENTRIES]])
        _print_rest(len(value), depth)
    elif isinstance(value, list) and (
        len(_flat(value)) > ONE_LINE or any(isinstance(one, dict) for one in value)
    ):
        typer.echo(start)
        for one in value[:MAX_ENTRIES]:
            typer.echo(f"{'  ' * depth}  - {_flat(one)}")
        _print_rest(len(value), depth)
    else:
        typer.echo(f"{start} {_flat(value)}")


def _is_table(value: Any) -> bool:
    """Return whether a list has rows with the same columns of plain values."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and one and list(one) == list(value[0]) for one in value)
        and not any(isinstance(cell, list | dict) for one in value for cell in one.values())
    )


def _print_rest(n_entries: int, depth: int) -> None:
    if n_entries > MAX_ENTRIES:
        typer.echo(f"{'  ' * depth}  ({n_entries - MAX_ENTRIES} more; --json shows more)")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        pairs = list(value.items())[:MAX_ENTRIES]
        return ", ".join(f"{printable(key, 60)} {shown(inner)}" for key, inner in pairs)
    if not isinstance(value, list):
        return shown(value)
    rest = f" and {len(value) - MAX_ENTRIES} more" if len(value) > MAX_ENTRIES else ""
    return ", ".join(map(shown, value[:MAX_ENTRIES])) + rest
