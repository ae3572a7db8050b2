"""``covshift monitor``: whether the target has moved since the model was made."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.checks import check_seed
from covshift.cli.errors import MOVED, fail, one_line_errors
from covshift.cli.models import load_model
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    Quiet,
    Reading,
    Seed,
    Signals,
    Trust,
    grouped,
)
from covshift.cli.printing import print_json, print_notes, print_table
from covshift.cli.working import working

COMMAND = "monitor"
MAX_RECORDINGS = 20  # printed


@grouped
def monitor(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    batch: Annotated[Path, typer.Argument(metavar="BATCH", help="Table of rows of today.")],
    domain: ModelDomain = None,
    level: Annotated[
        float, typer.Option(help="How often a batch that has not moved may give an alarm.")
    ] = 0.01,
    seed: Seed = 0,
    trust: Trust = None,
    *,
    signals: Signals,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With recordings: write a line for each window here."),
    ] = None,
    reading: Reading,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare BATCH with the target rows that the model keeps. Exit code 0: unmoved, 3: moved.

    1 is an error. The model keeps up to 1,000 target rows, drawn at random when it was made; at
    most 1,000 rows of the batch, drawn at random too, are compared with them, by a classifier that
    tells old from new and by Kolmogorov-Smirnov tests of each feature.

    A model that was learned with --signals compares windows of recordings, and also says which
    share of each recording's windows lies outside of the kept ones; about 1 % is usual.
    """
    check_seed(COMMAND, seed)
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.tables import check_output, monitor_batch
        from covshift.tables.monitoring import monitor_recordings
        from covshift.tables.recordings import RecordingTable

        table = signals.table_for(model, reading.file_of(batch))
        recordings = isinstance(table, RecordingTable)
        if out is not None:
            if not recordings:
                fail(COMMAND, f"--out needs a model of recordings; {model} has none.")
            check_output(out, inputs=[model, table])
        compare = partial(monitor_recordings, out=out) if recordings else monitor_batch
        fitted = load_model(model, trust)
        with working("comparing", quiet):
            found = compare(
                fitted,
                table,
                domain=domain,
                level=level,
                seed=seed,
                **reading.layout,
            )
    if as_json:
        print_json({**found, "warnings": warned})
    else:
        print_notes([*found["notes"], *warned], quiet)
        typer.echo(
            f"{'Moved' if found['moved'] else 'Not moved'}: {found['rows_compared']:,} of "
            f"{found['rows']:,} rows against {found['reference_rows']:,} kept in the model, "
            f"p = {found['pvalue']:.2g} at level {level:g}."
        )
        typer.echo(
            f"Old and new rows are told apart with an AUC of {found['auc']:.3f} "
            f"({found['auc_low']:.3f} to {found['auc_high']:.3f}); .5 is chance."
        )
        if found["moved"] and found["features"]:
            print_table(
                ["feature", "KS distance", "mean before", "mean now"],
                [
                    (one["feature"], one["distance"], one["mean_before"], one["mean_now"])
                    for one in found["features"]
                ],
            )
        if "recordings" in found:
            print_table(
                ["recording", "windows", "share outside"],
                [tuple(one.values()) for one in found["recordings"][:MAX_RECORDINGS]],
            )
            if len(found["recordings"]) > MAX_RECORDINGS:
                rest = len(found["recordings"]) - MAX_RECORDINGS
                typer.echo(f"({rest:,} more recordings; --json shows all)")
        if out is not None:
            typer.echo(f"Of each window: {out}")
    if found["moved"]:
        raise typer.Exit(MOVED)
