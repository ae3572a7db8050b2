"""Running a study from the command line: checks, progress, a table, the report."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import ModuleType

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from covshift.cli import INTERRUPTED
from covshift.cli.options import LARGEST_SEED, check_jobs
from covshift.cli.terminal import fail
from covshift.output_files import prepare_folder, software_versions
from covshift.studies.result_tables import import_pandas
from covshift.studies.runner import Outcome, WorkerDiedError, run_experiment
from covshift.studies.runner import Progress as Report
from covshift.studies.store import (
    Record,
    StoreError,
    stored_experiments,
    write_records,
)
from covshift.studies.study import Study, TextTable

# --- A progress bar of trials, with an estimate of the time left ---


# The speed is that of the last seconds: trials of one system are alike, and the next
# system may be slower. Rich's own 30 s are less than some trials take.
SPEED_WINDOW = 600.0


@contextmanager
def trial_progress(console: Console, unit: str = "trials") -> Iterator[Report]:
    """Show a bar of a study's trials; yield what to tell it of those done, all and failed.

    The bar goes away at the end. Output that is not a terminal gets nothing.

    Parameters
    ----------
    console : rich.console.Console
        Where to draw.
    unit : str, default="trials"
        Name of the counted things.

    Yields
    ------
    callable
        The ``progress`` of `covshift.studies.runner.run_experiment`. Work that the first
        call reports as done is from an earlier run, and does not count for the speed.
    """
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("[red]{task.fields[failures]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.file.isatty(),
        speed_estimate_period=SPEED_WINDOW,
    )
    task: TaskID | None = None

    def report(done: int, total: int, failed: int) -> None:
        nonlocal task
        failures = f"{failed} failed" if failed else ""
        if task is None:
            task = bar.add_task("", total=total, completed=done, failures=failures)
        else:
            bar.update(task, completed=done, failures=failures)

    with bar:
        yield report


def run_study(
    command: str, console: Console, study: Study, *, out: Path, jobs: int, fresh: bool
) -> None:
    """Run a study, or the rest of it, and write its report."""
    check_output(command, out, jobs)
    try:
        # Now, not after the trials: missing parts should not cost a minute.
        report = _import_report(command)
        with naming_folder(command, out):
            prepare_folder(out)
            outcome = _run(command, study, console, out, jobs, fresh)
            page = _write(study, out, outcome, report)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again to resume.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    # Last, so that a reader who goes away early (`| head`) does not cost the files.
    if study.table is not None:
        _print_table(console, study.table(outcome.records))
    if outcome.failures:
        typer.echo(_failures(command, outcome.failures), err=True)
    typer.echo(f"Report: {page}")
    if outcome.failures:
        raise typer.Exit(1)


def check_draws(command: str, n_trials: int, seed: int) -> None:
    """Refuse numbers of trials and seeds that a study cannot have."""
    if n_trials < 1:
        fail(command, f"--trials must be at least 1, got {n_trials}.")
    if not 0 <= seed <= LARGEST_SEED - n_trials + 1:
        fail(command, f"seeds must be from 0 to {LARGEST_SEED}: --seed {seed} --trials {n_trials}.")


def check_output(command: str, out: Path, jobs: int) -> None:
    """Refuse numbers of processes and folders that a study cannot have, before any work."""
    check_jobs(command, jobs)
    if not str(out).strip() or str(out) == ".":
        fail(command, "--out must name a folder of its own.")
    with naming_folder(command, out):  # even to look may be forbidden
        is_file = out.exists() and not out.is_dir()
    if is_file:
        fail(command, f"--out {out} is a file, not a folder.")


@contextmanager
def naming_folder(command: str, out: Path) -> Iterator[None]:
    """Turn the system's refusal to write a study into one line that names the folder."""
    try:
        yield
    except (StoreError, WorkerDiedError) as error:
        fail(command, str(error))
    except OSError as error:
        fail(command, f"cannot write to --out {out}: {error.strerror or error}.")


def _run(
    command: str, study: Study, console: Console, out: Path, jobs: int, fresh: bool
) -> Outcome:
    if not fresh:
        _check_study(study, out)
    # Not by the console: it would take brackets in the name for markup, and wrap a long one.
    typer.echo(f"{sum(map(len, study.tasks))} trials; results are kept in {out / 'trials.sqlite'}")
    with trial_progress(console) as progress:
        return run_experiment(
            study.tasks,
            study.function,
            out / "trials.sqlite",
            n_jobs=jobs,
            progress=progress,
            fresh=fresh,
            run_settings={"command": f"{command} {study.name}", **study.run_settings},
        )


def _check_study(study: Study, out: Path) -> None:
    """Refuse the folder of another study, whose report would be replaced."""
    own = {trial.experiment for task in study.tasks for trial in task}
    others = stored_experiments(out / "trials.sqlite") - own
    if others:
        raise StoreError(
            f"--out {out} holds the results of another study ({', '.join(sorted(others))}): choose "
            "another folder, or drop them with --fresh."
        )


def _write(study: Study, out: Path, outcome: Outcome, report: ModuleType) -> Path:
    write_records(outcome.records, out / "trials.csv")
    arguments = [Path(sys.argv[0]).name, *sys.argv[1:]]
    seeds = [record.trial.seed for record in outcome.records]
    facts = [
        ("command", shlex.join(arguments)),
        ("date", date.today().isoformat()),
        ("seeds", f"{min(seeds)} to {max(seeds)}"),
        ("software", ", ".join(f"{name} {text}" for name, text in software_versions().items())),
    ]
    document = study.document(outcome.records, facts)
    page: Path = report.write_document(document, out, "report")[0]
    return page


def _print_table(console: Console, text: TextTable) -> None:
    table = Table(title_justify="left")
    for heading in text.headings:
        table.add_column(heading, no_wrap=True)
    for group in text.groups:
        for row in group:
            table.add_row(*map(Text, row))  # names of users, whose brackets are not markup
        table.add_section()
    console.print(table)
    console.print(text.note, markup=False)


def _failures(command: str, failures: Sequence[Record]) -> str:
    """Say what failed, a line for each error of each system, and what to do."""
    found: dict[tuple[str, str], list[int]] = {}
    for record in failures:
        # Names of what was measured are texts; the rest, as recipes, would fill the screen.
        settings = record.trial.settings.values()
        where = ", ".join(value for value in settings if isinstance(value, str))
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
        import_pandas()
        from covshift.report import (
            figures,  # noqa: F401
            files,
        )
    except ImportError as error:
        fail(command, str(error))
    return files
