"""The command line: thin, computes nothing.

A command's module is imported when that command runs, so that ``covshift --help`` and
``covshift --version`` start at once.
"""

import os
import sys
from typing import Any

from covshift._version import __version__

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended: 128 + SIGINT

# Name: where the command is, and the first line of its help. The commands on users' files come
# first, in the order in which they are used; the studies come after.
COMMANDS = {
    "diagnose": (
        "covshift.cli.commands.diagnose:diagnose",
        "Report what moved from TRAIN to NEW, and advise a model with its expected score.",
    ),
    "adapt": (
        "covshift.cli.commands.adapt:adapt",
        "Learn from TRAIN a model for the rows of NEW, and save it.",
    ),
    "predict": (
        "covshift.cli.commands.predict:predict",
        "Predict the rows of NEW: one line each, in the same order, in bounded memory.",
    ),
    "score": (
        "covshift.cli.commands.score:score",
        "Compare predictions with known labels: accuracy, per class, per domain, with intervals.",
    ),
    "monitor": (
        "covshift.cli.commands.monitor:monitor",
        "Check BATCH against the model. Exit code 0: fine, 3: moved, 4: score below --alert.",
    ),
    "label": (
        "covshift.cli.commands.label:label",
        "Label rows of NEW on a local page, one by one; each label is saved at once.",
    ),
    "show": (
        "covshift.cli.commands.show:show",
        "Print a summary of a model file: task, advice, expected scores, ensemble.",
    ),
    "sample-data": (
        "covshift.cli.commands.sample_data:sample_data",
        "Write small made-up tables to try the commands on: train.csv, new.csv, checked.csv.",
    ),
    "demo": (
        "covshift.paper.commands:demo",
        "Adapt to the shifts of the paper's four data sets, and show where that helps.",
    ),
    "compare": (
        "covshift.cli.commands.compare:compare",
        "Try every adapter on every pair of domains, and report where it helps and where it harms.",
    ),
    "reproduce": (
        "covshift.paper.commands:reproduce",
        "Rebuild a study of the paper, table by table, beside its printed figures.",
    ),
}


def main() -> None:
    """Run ``covshift`` on the arguments of the process: the entry point in `covshift.cli`."""
    _open_closed_streams()
    # A terminal or pipe that cannot show a character gets "?" for it, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        try:
            _run(sys.argv[1:])
        finally:
            sys.stdout.flush()  # else it would fail when Python ends, with a code of its own
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
    except KeyboardInterrupt:  # while typer is imported; from then on typer handles it
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:  # standard output: errors of files are handled before
        if error.filename is not None or "--debug" in sys.argv:
            raise
        # The rest of the buffer is dropped, and not tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"covshift: cannot print the result: {error.strerror}.", file=sys.stderr)
        raise SystemExit(1) from None


def _open_closed_streams() -> None:
    """Give a process that was started with closed streams (``>&-``) some to hold their place.

    Else the next file that is opened would take the number of a stream, and prints would go to it.
    Standard output is opened so that writing to it fails, as it should: the output would be lost.
    """
    for name, number, mode, flags in (
        ("stdin", 0, "r", os.O_RDONLY),
        ("stdout", 1, "w", os.O_RDONLY),
        ("stderr", 2, "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _run(arguments: list[str]) -> None:
    # These two need no parser, whose import would take most of their time.
    if arguments == ["--version"]:
        print(f"covshift {__version__}")
        raise SystemExit(0)
    if arguments == ["--help"]:
        from covshift.cli.front_page import print_front_page  # needs an extra

        print_front_page({name: line for name, (_, line) in COMMANDS.items()})
        print()
        raise SystemExit(0)
    build_app()(prog_name="covshift")


def build_app() -> Any:
    """Return the Typer application of `covshift.cli`, importing its extra only now."""
    from covshift.cli.app import make_app

    return make_app(COMMANDS)
