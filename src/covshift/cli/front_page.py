"""``covshift --help``: options and commands, laid out as Typer lays out its pages.

Typer imports a Markdown parser and a syntax highlighter before it prints help, which doubles the
time of the whole call (`benchmarks/startup.py`).
"""

from collections.abc import Mapping

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

DESCRIPTION = "Adapt models to rows from a new place or time that have no labels yet."
# The last three are added by Typer, in these words.
OPTIONS = {
    "--version": "Show the version.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "--help": "Show this message and exit.",
}


def print_front_page(commands: Mapping[str, str]) -> None:
    """Print usage, options and commands.

    Parameters
    ----------
    commands : mapping of str to str
        First line of the help of each command.
    """
    console = Console(highlight=False)
    usage = Text.assemble(("Usage: ", "yellow"), "covshift [OPTIONS] COMMAND [ARGS]...")
    console.print(Padding(usage, 1), style="bold")
    console.print(Padding(DESCRIPTION, (0, 1, 1, 1)))
    options = _table()
    for name, text in OPTIONS.items():
        kind = Text.from_markup("[dim]<[/]bool[dim]>[/]", style="bold yellow", overflow="fold")
        # Typer's columns of short and of negated names are empty here.
        options.add_row(Text(name, style="bold cyan"), "", "", "", kind, Columns([text]))
    _print_panel(console, "Options", options)
    listed = _table()
    listed.add_column(style="bold cyan", no_wrap=True)
    listed.add_column(ratio=1)
    for name, line in commands.items():
        listed.add_row(name, Text(line))
    _print_panel(console, "Commands", listed)


def _table() -> Table:
    return Table(show_header=False, expand=True, box=None, pad_edge=False)


def _print_panel(console: Console, title: str, table: Table) -> None:
    console.print(Panel(table, title=title, title_align="left", border_style="dim"))
