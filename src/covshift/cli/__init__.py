"""The command line: thin, computes nothing."""

import os
import sys
from typing import Any

from covshift._version import __version__

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended: 128 + SIGINT


def main() -> None:
    """Run ``covshift`` on the arguments of the process."""
    try:
        app = build_app()
    except ModuleNotFoundError as error:
        # The name of a module of theirs counts too: typer imports rich by parts.
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        print(
            f"covshift: the command line needs {error.name}, which is not installed: "
            'pip install "covshift[cli]"',
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    # A terminal or pipe that cannot show a character gets "?" for it, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        try:
            app(prog_name="covshift")
        finally:
            sys.stdout.flush()  # else it would fail when Python ends, with a code of its own
    except OSError as error:  # those of files have become one line already
        if error.filename is not None or "--debug" in sys.argv:
            raise
        # What is left in the buffer goes nowhere, and is not tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"covshift: cannot print what was found: {error.strerror}.", file=sys.stderr)
        raise SystemExit(1) from None


def build_app() -> Any:
    """Return the Typer application, importing its extra only now."""
    import typer

    from covshift.cli.adapt import adapt
    from covshift.cli.compare import compare
    from covshift.cli.demo import demo
    from covshift.cli.diagnose import diagnose
    from covshift.cli.monitor import monitor
    from covshift.cli.predict import predict
    from covshift.cli.reproduce import reproduce
    from covshift.cli.score import score
    from covshift.cli.show import show

    # No pretty tracebacks: errors of the user have one line, those of the program are shown
    # by Python as ever.
    app = typer.Typer(
        name="covshift",
        help="Covariate shift adaptation whose assumptions you can check.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"covshift {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        pass

    # In the order in which they are used on files of one's own; the paper comes after.
    for command in (diagnose, adapt, predict, score, monitor, show, demo, compare):
        app.command()(command)
    app.add_typer(reproduce)
    return app
