"""``covshift reproduce``: rebuild the paper's studies beside its printed figures."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from covshift.cli.options import Draws, FirstSeed, Fresh, Jobs, Out
from covshift.cli.reviews import reviews
from covshift.cli.speech import speech
from covshift.cli.study import check_draws, run_study
from covshift.experiments.study import Study
from covshift.experiments.synthetic.study import readings_study, synthetic_study

Quick = Annotated[bool, typer.Option("--quick", help="Three draws, whatever --trials.")]

reproduce = typer.Typer(
    name="reproduce",
    help="Rebuild a study of the paper, table by table, beside its printed figures.\n\n"
    "Results are kept in the folder as trials end: run the same command again after a stop of any "
    "kind, and it goes on from there.",
    no_args_is_help=True,
)

reproduce.command()(speech)
reproduce.command()(reviews)


@reproduce.command()
def synthetic(
    out: Out,
    trials: Draws = 30,
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    quick: Quick = False,
    fresh: Fresh = False,
) -> None:
    """The four data sets in the plane: accuracies, MMD, controls, statements."""
    _run_draws(synthetic_study, 3 if quick else trials, seed, out, jobs, fresh)


@reproduce.command()
def readings(
    out: Out,
    trials: Draws = 30,
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    quick: Quick = False,
    fresh: Fresh = False,
) -> None:
    """Every way to read what the paper leaves open of its systems, on the same data sets."""
    _run_draws(readings_study, 3 if quick else trials, seed, out, jobs, fresh)


def _run_draws(
    make: Callable[[int, int], Study], n_trials: int, seed: int, out: Out, jobs: int, fresh: bool
) -> None:
    check_draws("reproduce", n_trials, seed)
    study = make(n_trials, seed)
    run_study("reproduce", Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)
