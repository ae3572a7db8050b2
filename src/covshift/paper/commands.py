"""``covshift demo`` and ``covshift reproduce``: the paper's studies beside its printed figures.

This module holds the arguments alone: what runs is in `covshift.paper.command_runs`, imported when
a command runs, so that ``--help`` stays fast.
"""

from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.options import Draws, FirstSeed, Fresh, Jobs, Out

# The keys of `covshift.datasets.speech_corpora.CORPORA`, which `covshift.datasets` would import
# together with NumPy.
CORPORA = ("emodb", "des", "vam", "enterface", "ravdess")
Quick = Annotated[bool, typer.Option("--quick", help="Three draws; --trials is ignored.")]

reproduce = typer.Typer(
    name="reproduce",
    help="Rebuild a study of the paper, table by table, beside its printed figures.\n\n"
    "Each finished trial is saved in the folder. After a stop of any kind, run the same command "
    "again to resume.",
    no_args_is_help=True,
)


def demo(
    out: Out = Path("demo-output"),
    trials: Draws = 3,
    seed: FirstSeed = 0,
    jobs: Jobs = -1,
    fresh: Fresh = False,
) -> None:
    """Adapt to the shifts of the paper's four data sets, and show where that helps.

    This is the quick form of `covshift reproduce synthetic`. After a stop, run the same command
    again to resume.
    """
    _run_draws("demo", "synthetic", trials, seed, out, jobs, fresh)


@reproduce.command()
def speech(
    out: Out,
    corpora: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=FOLDER...",
            help="Corpora and their folders, e.g. emodb=DIR ravdess=DIR. Names: "
            f"{', '.join(CORPORA)}.",
        ),
    ],
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=FOLDER]...", hidden=True)
    ] = None,
    plan: Annotated[
        str,
        typer.Option(
            help="default: a part of the grids; full: all of them; quick: a check of one minute."
        ),
    ] = "default",
    leave_out: Annotated[
        str | None,
        typer.Option(
            help="Rows left out of training with the tested speaker: the whole corpus, or the "
            "speaker alone. By default the corpus, if there are several."
        ),
    ] = None,
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    fresh: Fresh = False,
) -> None:
    """Emotional speech: average recall (UAR) of each system on left-out speakers, with tests."""
    from covshift.paper.command_runs import run_speech  # here: --help stays fast

    folders = [*corpora, *(more or [])]
    run_speech(folders, plan, leave_out, seed=seed, out=out, jobs=jobs, fresh=fresh)


@reproduce.command()
def reviews(
    out: Out,
    data: Annotated[Path, typer.Option(help="Folder of the reviews (Blitzer et al. 2007).")],
    plan: Annotated[
        str, typer.Option(help="default: a part of the grids, three draws; full: all, ten draws.")
    ] = "default",
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    fresh: Fresh = False,
) -> None:
    """Product reviews: from DVDs to other products; then all pairs, and larger vocabularies."""
    from covshift.paper.command_runs import run_reviews  # here: --help stays fast

    run_reviews(data, plan, seed=seed, out=out, jobs=jobs, fresh=fresh)


@reproduce.command()
def bearings(
    out: Out,
    data: Annotated[
        Path, typer.Option(help="Folder of the Case Western Reserve files, or windows as .npz.")
    ],
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="System to run, by default all. May be repeated."),
    ] = None,
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    fresh: Fresh = False,
) -> None:
    """Bearing faults across loads, sensors and fault sizes: all systems, and learned filters."""
    from covshift.paper.command_runs import run_bearings  # here: --help stays fast

    run_bearings(data, system, seed=seed, out=out, jobs=jobs, fresh=fresh)


def _add_draws(study: str, line: str) -> None:
    """Add a command that runs a study of drawn data sets."""

    def run(
        out: Out,
        trials: Draws = 30,
        seed: FirstSeed = 0,
        jobs: Jobs = 1,
        quick: Quick = False,
        fresh: Fresh = False,
    ) -> None:
        _run_draws("reproduce", study, 3 if quick else trials, seed, out, jobs, fresh)

    reproduce.command(study, help=line)(run)


def _run_draws(
    command: str, study: str, n_trials: int, seed: int, out: Path, jobs: int, fresh: bool
) -> None:
    from covshift.paper.command_runs import run_draws  # here: --help stays fast

    run_draws(command, study, n_trials, seed, out=out, jobs=jobs, fresh=fresh)


_add_draws("synthetic", "Four data sets in the plane: accuracies, MMD, controls, statements.")
_add_draws(
    "readings",
    "The same data sets, with every reading of the details that the paper leaves open.",
)
