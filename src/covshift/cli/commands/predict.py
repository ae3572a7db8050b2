"""``covshift predict``: a model file and a table to a file of predictions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import say_predicted, say_sets
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    OutFile,
    Quiet,
    Reading,
    Signals,
    Trust,
    grouped,
    load_model,
    split_at_commas,
)
from covshift.cli.terminal import (
    MAX_RECORDINGS,
    fail,
    one_line_errors,
    print_json,
    print_notes,
    print_table,
    working,
)

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
    sets: Annotated[
        float | None,
        typer.Option(
            metavar="ALPHA",
            help="Add for each row a set of classes that misses the true class with probability "
            "ALPHA, such as .1, and print whether that is promised. For numbers: an interval.",
        ),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Predict with the plain model, without adaptation.")
    ] = False,
    domain: ModelDomain = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLS", help="Columns of NEW to copy to the output, such as an identifier."
        ),
    ] = None,
    trust: Trust = None,
    *,
    signals: Signals,
    by_recording: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With recordings: output file with one line for each recording."
        ),
    ] = None,
    reading: Reading,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of NEW: one line each, in the same order, in bounded memory.

    --out ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet. In text files, cells that a spreadsheet
    program would run as formulas get an apostrophe in front.

    --sets writes the classes of a set as a JSON list, such as ["no", "yes"]; a set may be empty.
    For a model that predicts numbers, it writes the columns "prediction low" and "prediction high";
    an end is infinite where too few training rows resemble the row.

    A model that was learned with --signals reads a table of recordings. --out gets a line for
    each window; --by-recording gets one for each recording, with the most frequent class.
    """
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.tables.model_reader import plain_model
        from covshift.tables.predicting import predict_file
        from covshift.tables.recordings import FILE, START, RecordingTable
        from covshift.tables.writing import check_output, write_table

        new = reading.file_of(new)
        files = [new] if new.is_file() else new.glob("*") if new.is_dir() else []
        size = sum(file.stat().st_size for file in files)
        check_output(out, inputs=[model, new], min_free_bytes=(1 << 20) + size // ROOM)
        if sets is not None and not 0 < sets < 1:
            fail(COMMAND, f"--sets is a probability between 0 and 1; got {sets:g}.")
        kept, table = split_at_commas(keep), signals.table_for(model, new)
        recordings = isinstance(table, RecordingTable)
        if recordings:
            kept = [FILE, START, *(one for one in kept if one not in (FILE, START))]
        if by_recording is not None:
            if not recordings:
                fail(COMMAND, f"--by-recording needs a model of recordings; {model} has none.")
            check_output(by_recording, inputs=[model, new, out])
        fitted = load_model(model, trust)
        if plain:
            fitted = plain_model(fitted)
        with working("predicting", quiet) as update:
            result = predict_file(
                fitted,
                table,
                out,
                keep=kept,
                group=FILE if recordings else None,
                probabilities=proba,
                sets=sets,
                domain=domain,
                progress=lambda n_rows, share: update(f"predicting: {n_rows:,} rows", share),
                **reading.layout,
            )
        if recordings:
            result["recordings"] = [_of_recording(one) for one in result.pop("groups")]
        if by_recording is not None:
            import pandas as pd

            write_table(by_recording, [pd.DataFrame(result["recordings"])])
    if as_json:
        print_json({**result, "warnings": warned})
        return
    print_notes([*result["notes"], *warned], quiet)
    if result["objective"]:
        from covshift.predictors.objectives import name_objective  # here: --help stays fast

        typer.echo(f"Objective: {name_objective(result['objective'])}.")
    typer.echo(f"Rows predicted: {result['rows']:,} ({say_predicted(result)})")
    if "sets" in result:
        for sentence in say_sets(result["sets"]):
            typer.echo(sentence)
    if "recordings" in result:
        last = ("share", "share of windows") if "counts" in result else ("spread", "spread")
        first = ("recording", "windows", "prediction", last[0])
        print_table(
            ["recording", "windows", "prediction", last[1]],
            [[one[name] for name in first] for one in result["recordings"][:MAX_RECORDINGS]],
        )
        if len(result["recordings"]) > MAX_RECORDINGS:
            rest = len(result["recordings"]) - MAX_RECORDINGS
            typer.echo(f"({rest:,} more recordings; --by-recording FILE writes all)")
    typer.echo(f"Predictions: {out}")
    if by_recording is not None:
        typer.echo(f"Predictions of whole recordings: {by_recording}")


def _of_recording(group: dict[str, Any]) -> dict[str, Any]:
    """Return the prediction of a group of windows under the names of recordings."""
    names = {"file": "recording", "rows": "windows"}
    return {names.get(name, name): value for name, value in group.items()}
