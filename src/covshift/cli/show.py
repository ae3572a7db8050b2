"""``covshift show``: the card of a model file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.errors import one_line_errors, printable
from covshift.cli.options import AsJson, Debug
from covshift.cli.printing import MAX_ENTRIES, print_json, shown

COMMAND = "show"
MAX_DEPTH = 4
LAST = ("model", "feature_names", "software")  # long, and seldom asked for


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print what a model file says of itself. Nothing of the model is built."""
    with one_line_errors(COMMAND, debug):
        from covshift.persistence import read_card

        card = read_card(model)
    if as_json:
        print_json(card)
        return
    names = [name for name in card if name not in LAST] + [name for name in LAST if name in card]
    for name in names:
        _print(name, card[name], 0)


def _print(name: str, value: Any, depth: int) -> None:
    """Print an entry of any kind, for a card may hold any; long ones are cut."""
    start = f"{'  ' * depth}{printable(name, 60)}:"
    if depth < MAX_DEPTH and isinstance(value, Mapping) and value:
        typer.echo(start)
        for key, inner in list(value.items())[:MAX_ENTRIES]:
            _print(str(key), inner, depth + 1)
        _print_rest(len(value), depth)
    elif isinstance(value, list) and any(isinstance(one, dict | str) for one in value):
        typer.echo(start)
        for one in value[:MAX_ENTRIES]:
            typer.echo(f"{'  ' * depth}  - {_flat(one)}")
        _print_rest(len(value), depth)
    else:
        typer.echo(f"{start} {_flat(value)}")


def _print_rest(n_entries: int, depth: int) -> None:
    if n_entries > MAX_ENTRIES:
        typer.echo(f"{'  ' * depth}  ({n_entries - MAX_ENTRIES} more; --json shows all)")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        pairs = list(value.items())[:MAX_ENTRIES]
        return ", ".join(f"{printable(key, 60)} {shown(inner)}" for key, inner in pairs)
    return ", ".join(map(shown, value[:MAX_ENTRIES])) if isinstance(value, list) else shown(value)
