"""A progress bar of trials, with an estimate of the time left."""

from collections.abc import Iterator
from contextlib import contextmanager

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

from covshift.studies.runner import Progress as Report

# The speed is that of the last seconds: trials of one system are alike, and the next
# system may be slower. Rich's own 30 s are less than some trials take.
SPEED_WINDOW = 600.0


@contextmanager
def trial_progress(console: Console, unit: str = "trials") -> Iterator[Report]:
    """Show a bar while the block runs; yield what to tell it of trials done, all and failed.

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
