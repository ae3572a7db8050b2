"""Running a study from the command line: checks, progress, a table, the report."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import typer
from rich.console import Console
from rich.table import Table

from covshift.cli import INTERRUPTED
from covshift.cli.progress import trial_progress
from covshift.experiments.paper import DATA_SETS, PRINTED_ACCURACY, SYSTEMS
from covshift.experiments.readings import declare_readings
from covshift.experiments.results_table import write_table
from covshift.experiments.runner import Outcome, WorkerDiedError, run_experiment
from covshift.experiments.software_versions import software_versions
from covshift.experiments.store import Record
from covshift.experiments.store_file import StoreError
from covshift.experiments.synthetic import declare, run_trials
from covshift.experiments.synthetic_summary import Cell, Trials, estimate, gather, values, verdict
from covshift.output_files import prepare_folder

LARGEST_SEED = 2**32 - 1  # that NumPy's RandomState takes
READINGS_SHOWN = ("as released", "used well")
ARROWS = {"helps": "↑", "harms": "↓", "unclear": " "}


def run_study(
    command: str,
    console: Console,
    *,
    study: str = "synthetic",
    out: Path,
    n_trials: int,
    seed: int,
    jobs: int,
    fresh: bool,
) -> None:
    """Run a study, or what is left of it, and write its report."""
    if n_trials < 1:
        fail(command, f"--trials must be at least 1, got {n_trials}.")
    if not 0 <= seed <= LARGEST_SEED - n_trials + 1:
        fail(command, f"seeds must be from 0 to {LARGEST_SEED}: --seed {seed} --trials {n_trials}.")
    if jobs == 0 or jobs < -1:
        fail(command, f"--jobs must be at least 1, or -1 for all processors, got {jobs}.")
    if not str(out).strip() or str(out) == ".":
        fail(command, "--out must name a folder of its own.")
    if out.exists() and not out.is_dir():
        fail(command, f"--out {out} is a file, not a folder.")
    try:
        # Now, not after the trials: what is missing should cost nobody a minute.
        report = _import_report(command)
        with naming_folder(command, out):
            prepare_folder(out)
            outcome = _run(command, study, console, out, n_trials, seed, jobs, fresh)
            page = _write(study, out, outcome, seed, report)
    except KeyboardInterrupt:
        typer.echo("Interrupted. The same command goes on from here.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    # Last, so that a reader who goes away early (`| head`) does not cost the files.
    if study == "synthetic":
        console.print(_table(gather(outcome.records)))
        console.print(
            "Accuracy on target rows without → with adaptation; ↑ helps, ↓ harms (t-test of the "
            "draws at 5 %)."
        )
    if outcome.failures:
        typer.echo(_failures(command, outcome.failures), err=True)
    typer.echo(f"Report: {page}")
    if outcome.failures:
        raise typer.Exit(1)


def fail(command: str, message: str) -> NoReturn:
    """End with one line that says what to do."""
    typer.echo(f"covshift {command}: {message}", err=True)
    raise typer.Exit(1)


@contextmanager
def naming_folder(command: str, out: Path) -> Iterator[None]:
    """Turn the system's refusal to write into one line that names the folder."""
    try:
        yield
    except (StoreError, WorkerDiedError) as error:
        fail(command, str(error))
    except OSError as error:
        fail(command, f"cannot write to --out {out}: {error.strerror or error}.")


def _run(
    command: str,
    study: str,
    console: Console,
    out: Path,
    n_trials: int,
    seed: int,
    jobs: int,
    fresh: bool,
) -> Outcome:
    tasks = (declare if study == "synthetic" else declare_readings)(n_trials, seed)
    # Not by the console: it would take brackets in the name for markup, and wrap a long one.
    typer.echo(f"{sum(map(len, tasks))} trials; results are kept in {out / 'trials.sqlite'}")
    with trial_progress(console) as progress:
        return run_experiment(
            tasks,
            run_trials,
            out / "trials.sqlite",
            n_jobs=jobs,
            progress=progress,
            fresh=fresh,
            run_settings={"command": f"{command} {study}", "trials": n_trials, "seed": seed},
        )


def _write(study: str, out: Path, outcome: Outcome, seed: int, report: ModuleType) -> Path:
    from covshift.experiments.readings_document import readings_document
    from covshift.experiments.synthetic_document import synthetic_document
    from covshift.experiments.synthetic_figures import draw_figures

    write_table(outcome.records, out / "trials.csv")
    arguments = [Path(sys.argv[0]).name, *sys.argv[1:]]
    facts = [
        ("command", shlex.join(arguments)),
        ("date", date.today().isoformat()),
        ("seeds", f"{seed} to {max(record.trial.seed for record in outcome.records)}"),
        ("software", ", ".join(f"{name} {text}" for name, text in software_versions().items())),
    ]
    trials = gather(outcome.records)
    if study == "synthetic":
        document = synthetic_document(trials, facts, draw_figures(seed))
    else:
        document = readings_document(trials, facts)
    page: Path = report.write_document(document, out, "report")[0]
    return page


def _table(trials: Trials) -> Table:
    table = Table(title_justify="left")
    for heading in ("data set", "system", "printed", *READINGS_SHOWN):
        table.add_column(heading, no_wrap=True)
    for data_set in DATA_SETS:
        for system in SYSTEMS:
            without, with_ = PRINTED_ACCURACY[data_set, system]
            cells = [
                _shown(trials.get(Cell(data_set, system, reading), []))
                for reading in READINGS_SHOWN
            ]
            table.add_row(
                data_set,
                system,
                f"{without.mean:.3f} → {with_.mean:.3f}",
                *cells,
                end_section=system == SYSTEMS[-1],
            )
    return table


def _shown(records: list[Record]) -> str:
    without, with_ = (estimate(values(records, name)) for name in ("without", "with"))
    if without is None or with_ is None:
        return "failed"
    return f"{without.mean:.3f} → {with_.mean:.3f} {ARROWS[verdict(records)]}"


def _failures(command: str, failures: list[Record]) -> str:
    """Say what failed, a line for each error of each system, and what to do."""
    found: dict[tuple[str, str], list[int]] = {}
    for record in failures:
        settings = record.trial.settings
        names = ("data_set", "variant", "system", "reading")
        where = ", ".join(settings[name] for name in names if name in settings)
        error = (record.error or "").partition("\n")[0]
        found.setdefault((where, error), []).append(record.trial.seed)
    lines = [
        f"{where}, {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}: {error}"
        for (where, error), seeds in found.items()
    ]
    head = f"covshift {command}: {len(failures)} trials failed; the same command tries them again:"
    return "\n".join([head, *lines])


def _import_report(command: str) -> ModuleType:
    """Import what writes the report, or say which extra is missing."""
    try:
        from covshift.report import (
            figures,  # noqa: F401
            files,
        )
    except ImportError as error:
        fail(command, str(error))
    return files
