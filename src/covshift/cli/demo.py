"""``covshift demo``: run the paper's four data sets, print a table, write figures."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from covshift.cli import INTERRUPTED
from covshift.cli.progress import trial_progress
from covshift.experiments.demo import (
    ASSUMPTIONS,
    DATA_SETS,
    PAPER,
    SYSTEMS,
    Estimate,
    Trial,
    draw_trial,
    filter_grid,
    fit_system,
    run_trials,
    summarize,
    verdicts,
)
from covshift.experiments.output_files import prepare_folder, write_whole

if TYPE_CHECKING:
    from covshift.report.figures import Filters

FILTERS_SHOWN = (("radial", "SF"), ("periodic", "PSF"))
LARGEST_SEED = 2**32 - 1  # that NumPy's RandomState takes


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to, made if missing.")] = Path(
        "demo-output"
    ),
    trials: Annotated[int, typer.Option(help="Draws of each data set, at least 1.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")] = 0,
) -> None:
    """Adapt to the shifts of the paper's four data sets, and show where that helps."""
    if trials < 1:
        _fail(f"--trials must be at least 1, got {trials}.")
    if not 0 <= seed <= LARGEST_SEED - trials + 1:
        _fail(f"seeds must be between 0 and {LARGEST_SEED}: --seed {seed} --trials {trials}.")
    if not str(out).strip() or str(out) == ".":
        _fail("--out must name a folder of its own.")
    try:
        # Both now, not after the trials: what is missing should cost nobody half a minute.
        figures = _import_figures()
        if out.exists() and not out.is_dir():
            _fail(f"--out {out} is a file, not a folder.")
        with _naming_folder(out):
            prepare_folder(out)
        console = Console(highlight=False)
        results = _run(console, trials, seed)
        data_sets = {_title(name): draw_trial(name, seed)[0]._asdict() for name in DATA_SETS}
        filters = [_bank(*shown, seed) for shown in FILTERS_SHOWN]
        pictures = {
            "data-sets.png": figures.draw_data_sets(data_sets),
            "filters.png": figures.draw_filters(filters),
        }
        with _naming_folder(out):
            write_whole(out / "results.csv", partial(_write_csv, results))
            for name, figure in pictures.items():
                write_whole(out / name, partial(figures.save_png, figure))
        # Last, so that a reader who goes away early (`| head`) does not cost the files.
        console.print(_table(results), *_reading(results), sep="\n")
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(f"Wrote results.csv, {' and '.join(pictures)} to {out}")


def _run(console: Console, trials: int, seed: int) -> list[Trial]:
    """Run all trials, with a progress bar on a terminal."""
    total = len(DATA_SETS) * len(SYSTEMS) * trials
    console.print(f"{len(DATA_SETS)} data sets, {len(SYSTEMS)} systems, trials of each: {trials}")
    results = []
    with trial_progress(console) as progress:
        progress(0, total, 0)
        for trial in run_trials(trials, seed):
            results.append(trial)
            progress(len(results), total, 0)
    return results


def _table(results: list[Trial]) -> Table:
    """Accuracies, the best of each row marked, the paper's below them."""
    table = Table(title="Accuracy on target rows: mean ± standard error", title_justify="left")
    for heading in ("data set", *SYSTEMS):
        table.add_column(heading, no_wrap=True)
    summary = summarize(results)
    for name in DATA_SETS:
        cells = [summary[name, system] for system in SYSTEMS]
        best = max(round(cell.mean, 3) for cell in cells)  # as shown: equals share the mark
        ours = [
            f"[bold green]{_cell(cell)} *[/]" if round(cell.mean, 3) == best else _cell(cell)
            for cell in cells
        ]
        paper = [_cell(PAPER[name, system], digits=2) for system in SYSTEMS]
        table.add_row(f"[bold]{name}[/]", *ours)
        table.add_row("  in the paper", *paper, style="dim", end_section=True)
    return table


def _cell(estimate: Estimate, digits: int = 3) -> str:
    mean, error = estimate
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.{digits}f}"


def _reading(results: list[Trial]) -> Iterator[str]:
    """Say what the table shows, from its own numbers."""
    verdict = verdicts(results)
    phrases = {"helps": "helps on", "harms": "harms on", "unclear": "no clear change on"}
    if summarize(results)["radial", "SF"].standard_error is None:
        yield "* best of the row. A single trial cannot tell help from luck: raise --trials."
    else:
        yield "* best of the row. Against no adaptation, trial by trial (t-test at 5 %):"
        for system in dict.fromkeys(system for _, system in verdict):
            found = {
                phrase: ", ".join(name for name in DATA_SETS if verdict[name, system] == kind)
                for kind, phrase in phrases.items()
            }
            yield f"{system}: " + "; ".join(f"{phrase} {on}" for phrase, on in found.items() if on)
    yield (
        "[dim]Unlike the text of the paper, SF keeps its random filters (its printed figures "
        "ask for that) and PSF has 8 filters, not 2, from the best of 20 starts.[/]"
    )


def _title(data_set: str) -> str:
    return f"{data_set}: the assumption of\n{ASSUMPTIONS[data_set]}"


def _bank(data_set: str, system: str, seed: int) -> "Filters":
    """Gather one block of the figure of filters, from the first trial."""
    data, start = draw_trial(data_set, seed)
    adapter = fit_system(system, data, start).adapter_
    grid = filter_grid(adapter, data)
    names = [f"filter {index + 1}" for index in range(len(adapter.components_))]
    for label, group in enumerate(getattr(adapter, "feature_groups_", ())):
        for index in group.nonzero()[0]:
            names[index] += f", for label {label}"
    return {
        "title": f"{system} on {data_set}",
        "x1": grid.x1,
        "x2": grid.x2,
        "Z": grid.Z,
        "names": names,
        "data": data._asdict(),
    }


def _write_csv(results: list[Trial], file: IO[bytes]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Trial))
    writer.writerows(astuple(trial) for trial in results)
    file.write(text.getvalue().encode())


@contextmanager
def _naming_folder(out: Path) -> Iterator[None]:
    """Turn the system's refusal to write into one line that names the folder."""
    try:
        yield
    except OSError as error:
        _fail(f"cannot write to --out {out}: {error.strerror or error}.")


def _import_figures() -> ModuleType:
    """Import what draws, or say which extra is missing."""
    try:
        from covshift.report import figures
    except ImportError as error:
        _fail(str(error))
    return figures


def _fail(message: str) -> NoReturn:
    typer.echo(f"covshift demo: {message}", err=True)
    raise typer.Exit(1)
