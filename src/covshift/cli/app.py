"""The Typer application, which imports a command's module when that command runs."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from covshift._version import __version__
from covshift.cli.front_page import DESCRIPTION, OPTIONS, print_front_page


def make_app(commands: Mapping[str, tuple[str, str]]) -> typer.Typer:
    """Return the Typer application of these commands.

    Parameters
    ----------
    commands : mapping of str to tuple
        Path and first line of help of each command. The path is "module:function", or
        "module:application" for a command with subcommands.
    """

    class Commands(TyperGroup):
        """Placeholders with a name and a line of help; the command that runs is loaded."""

        # Called to run a command, to print its own help, and to complete its options.
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None:
                command = load_command(name, commands[name][0])
            return name, command, rest

        def format_help(self, ctx: Any, formatter: Any) -> None:
            print_front_page({name: line for name, (_, line) in commands.items()})

    # No pretty tracebacks: errors of the user have one line, those of the program are shown
    # by Python as usual.
    app = typer.Typer(
        name="covshift",
        cls=Commands,
        help=DESCRIPTION,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=_show_version, is_eager=True, help=OPTIONS["--version"]
        ),
    ) -> None:
        pass

    for name, (_, line) in commands.items():
        app.command(name, help=line)(lambda: None)
    return app


def load_command(name: str, path: str) -> Any:
    """Import a command and return it in the form that the parser runs."""
    module, _, attribute = path.partition(":")
    command = getattr(import_module(module), attribute)
    alone = typer.Typer()
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name)
    else:
        alone.command(name)(command)
    loaded = get_group(alone).commands[name]
    for one in [loaded, *getattr(loaded, "commands", {}).values()]:
        one.help = _unwrapped(one.help)
    return loaded


def _unwrapped(text: str) -> str:
    """Return each paragraph as one line, which Typer wraps as wide as the terminal is."""
    return "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"covshift {__version__}")
        raise typer.Exit
