"""``covshift predict``: a model file and a table to a file of predictions."""

from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.errors import one_line_errors
from covshift.cli.models import load_model
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    OutFile,
    Quiet,
    Reading,
    Trust,
    column_names,
    grouped,
)
from covshift.cli.printing import counted, print_json, print_notes
from covshift.cli.working import working

COMMAND = "predict"
ROOM = 50  # predictions take about this part of the table's room; more is not asked for


@grouped
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="Table of rows to predict, or folder of Parquet.")
    ],
    out: OutFile,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Predict with the plain model, without adaptation.")
    ] = False,
    domain: ModelDomain = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLS", help="Columns of NEW to repeat, such as an identifier."),
    ] = None,
    trust: Trust = None,
    *,
    reading: Reading,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of NEW: one line each, in the same order, in bounded memory.

    --out ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet. In text files, cells that a spreadsheet
    program would run as formulas get an apostrophe in front.
    """
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.tables import check_output, predict_file
        from covshift.tables.model_frames import plain_model

        new = reading.file_of(new)
        files = [new] if new.is_file() else new.glob("*") if new.is_dir() else []
        size = sum(file.stat().st_size for file in files)
        check_output(out, inputs=[model, new], min_free_bytes=(1 << 20) + size // ROOM)
        fitted = load_model(model, trust)
        if plain:
            fitted = plain_model(fitted)
        with working("predicting", quiet) as update:
            result = predict_file(
                fitted,
                new,
                out,
                keep=column_names(keep),
                probabilities=proba,
                domain=domain,
                progress=lambda n_rows, share: update(f"predicting: {n_rows:,} rows", share),
                **reading.layout,
            )
    if as_json:
        print_json({**result, "warnings": warned})
        return
    print_notes([*result["notes"], *warned], quiet)
    if result["objective"]:
        typer.echo(f"Objective: {result['objective']}.")
    typer.echo(f"Rows predicted: {result['rows']:,} ({counted(result['counts'])})")
    typer.echo(f"Predictions: {out}")
