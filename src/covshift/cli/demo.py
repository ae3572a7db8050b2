"""``covshift demo``: the synthetic study in its quick form."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from covshift.cli.study import run_study


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to, made if missing.")] = Path(
        "demo-output"
    ),
    trials: Annotated[int, typer.Option(help="Draws of each data set, at least 1.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1: all processors.")] = -1,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Drop the results that the folder holds.")
    ] = False,
) -> None:
    """Adapt to the shifts of the paper's four data sets, and show where that helps.

    The quick form of `covshift reproduce synthetic`, and like it goes on where it was stopped.
    """
    run_study(
        "demo",
        Console(highlight=False),
        out=out,
        n_trials=trials,
        seed=seed,
        jobs=jobs,
        fresh=fresh,
    )
