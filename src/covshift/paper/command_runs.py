"""Runs of ``covshift demo`` and ``covshift reproduce``, once their arguments are read."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer
from joblib import effective_n_jobs
from rich.console import Console

from covshift.cli import INTERRUPTED
from covshift.cli.options import LARGEST_SEED, parse_paths
from covshift.cli.study import check_draws, check_output, naming_folder, run_study, trial_progress
from covshift.cli.terminal import fail
from covshift.datasets import load_speech_corpus
from covshift.datasets.speech_corpora import CORPORA
from covshift.output_files import prepare_folder
from covshift.paper.bearings.study import SYSTEMS, bearings_study
from covshift.paper.reviews.protocol import PLANS as REVIEW_PLANS
from covshift.paper.reviews.study import reviews_study
from covshift.paper.speech.plans import PLANS, estimated_seconds
from covshift.paper.speech.printed import ONLY_TRAINS
from covshift.paper.speech.protocol import (
    LEAVE_OUT,
    SpeechTable,
    corpora_to_test,
    save_tables,
    table_of,
)
from covshift.paper.speech.study import speech_study
from covshift.paper.synthetic.study import readings_study, synthetic_study
from covshift.studies.runner import Progress

COMMAND = "reproduce"


def run_draws(
    command: str, name: str, n_trials: int, seed: int, *, out: Path, jobs: int, fresh: bool
) -> None:
    """Run the command of a study of drawn data sets, "synthetic" or "readings"."""
    check_draws(command, n_trials, seed)
    make = {"synthetic": synthetic_study, "readings": readings_study}[name]
    study = make(n_trials, seed)
    run_study(command, Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)


def run_speech(
    corpora: Sequence[str],
    plan: str,
    leave_out: str | None,
    *,
    seed: int,
    out: Path,
    jobs: int,
    fresh: bool,
) -> None:
    """Run the command of the study of speech: first read the corpora, each given as NAME=FOLDER."""
    folders = parse_paths(COMMAND, "corpora", "NAME=FOLDER, such as emodb=DIR", corpora)
    for name in folders:
        _check_names("corpora", name, list(CORPORA))
    _check_names("plan", plan, list(PLANS))
    leave_out = ("corpus" if len(folders) > 1 else "speaker") if leave_out is None else leave_out
    _check_names("leave-out", leave_out, LEAVE_OUT)
    _check_sources(list(folders), leave_out)
    chosen = PLANS[plan]
    if not 0 <= seed <= LARGEST_SEED - chosen.n_test_trials:
        fail(COMMAND, f"--seed must be from 0 to {LARGEST_SEED - chosen.n_test_trials}.")
    check_output(COMMAND, out, jobs)
    console = Console(highlight=False)
    try:
        with naming_folder(COMMAND, out):
            prepare_folder(out)
        tables = _read_corpora(console, folders, jobs)
        study = speech_study(tables, chosen, leave_out, seed, out)
        with naming_folder(COMMAND, out):
            save_tables(tables, out)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again to resume.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except ValueError as error:  # halves of a corpus that cannot be tested
        fail(COMMAND, str(error))
    n_processes = effective_n_jobs(jobs)
    minutes = estimated_seconds(tables, study.tasks, n_processes) / 60
    typer.echo(f"Plan {plan}: {chosen.describe()}")
    typer.echo(
        f"About {minutes:.0f} minutes from the start in {n_processes} "
        f"{'process' if n_processes == 1 else 'processes'}, where nothing else runs."
    )
    run_study(COMMAND, console, study, out=out, jobs=jobs, fresh=fresh)


def run_reviews(data: Path, plan: str, *, seed: int, out: Path, jobs: int, fresh: bool) -> None:
    """Run the command of the study of reviews on the folder ``data``."""
    if plan not in REVIEW_PLANS:
        fail(COMMAND, f"--plan must be one of {', '.join(REVIEW_PLANS)}, got {plan!r}.")
    check_draws(COMMAND, REVIEW_PLANS[plan].n_draws, seed)
    check_output(COMMAND, out, jobs)
    try:
        study = reviews_study(str(data), REVIEW_PLANS[plan], seed)
    except (OSError, ValueError) as error:
        fail(COMMAND, str(error))
    run_study(COMMAND, Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)


def run_bearings(
    data: Path, systems: Sequence[str] | None, *, seed: int, out: Path, jobs: int, fresh: bool
) -> None:
    """Run the command of the study of bearings on the windows of ``data``."""
    for name in systems or ():
        _check_names("system", name, list(SYSTEMS))
    chosen = tuple(name for name in SYSTEMS if not systems or name in systems)
    check_draws(COMMAND, 1, seed)
    check_output(COMMAND, out, jobs)
    try:
        study = bearings_study(str(data), seed, chosen)
    except (OSError, ValueError) as error:
        fail(COMMAND, str(error))
    run_study(COMMAND, Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)


def _check_names(option: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        fail(COMMAND, f"--{option}: unknown name {name!r}. Choose from: {', '.join(names)}.")


def _check_sources(corpora: Sequence[str], leave_out: str) -> None:
    if not corpora_to_test(corpora):
        fail(COMMAND, f"{', '.join(ONLY_TRAINS)} is only trained on: add a corpus to test.")
    if leave_out == "corpus" and len(corpora) < 2:
        fail(COMMAND, "with one corpus, no other is left to train on: use --leave-out speaker.")


def _read_corpora(
    console: Console, folders: Mapping[str, Path], jobs: int
) -> dict[str, SpeechTable]:
    tables = {}
    for corpus, folder in folders.items():
        typer.echo(f"Features of {corpus}; they are kept, and read again by the next run.")
        try:
            with trial_progress(console, "recordings") as progress:
                bunch = load_speech_corpus(
                    folder, corpus, n_jobs=jobs, progress=_without_failures(progress)
                )
        except (OSError, ValueError, ImportError) as error:
            fail(COMMAND, str(error))
        skipped = f", {len(bunch.skipped)} sound files left out" if bunch.skipped else ""
        typer.echo(f"{len(bunch.data)} segments of {len(bunch.domain_names)} speakers{skipped}.")
        tables[corpus] = table_of(bunch)
    return tables


def _without_failures(report: Progress) -> Callable[[int, int], object]:
    """Return a counter of trials that counts files, none of which fails."""
    return lambda done, total: report(done, total, 0)
