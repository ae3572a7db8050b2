"""``covshift reproduce``: rebuild the paper's studies beside its printed figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from covshift.cli.study import fail, run_study

# The second: every way to read what the paper leaves open of its systems.
STUDIES = ("synthetic", "readings")


def reproduce(
    study: Annotated[str, typer.Argument(help=f"Which study: {', '.join(STUDIES)}.")],
    out: Annotated[Path, typer.Option(help="Folder to write to, made if missing.")],
    trials: Annotated[int, typer.Option(help="Draws of each data set, at least 1.")] = 30,
    seed: Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1: all processors.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Three draws, whatever --trials.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Drop the results that the folder holds.")
    ] = False,
) -> None:
    """Rebuild a study of the paper, table by table, beside its printed figures.

    Results are kept in the folder as trials end: run the same command again after a stop of any
    kind, and it goes on from there.
    """
    if study not in STUDIES:
        fail("reproduce", f"there is no study {study!r}; there is {', '.join(STUDIES)}.")
    run_study(
        "reproduce",
        Console(highlight=False),
        study=study,
        out=out,
        n_trials=3 if quick else trials,
        seed=seed,
        jobs=jobs,
        fresh=fresh,
    )
