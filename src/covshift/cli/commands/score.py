"""``covshift score``: how good a model is on rows whose labels are known."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import (
    WINDOWS_NARROW,
    say_bias,
    say_expected,
    say_gain,
    say_hurt,
    say_interval,
)
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    Quiet,
    Reading,
    Signals,
    Trust,
    grouped,
    load_model,
)
from covshift.cli.terminal import one_line_errors, print_json, print_notes, print_table, working

COMMAND = "score"
INTERVAL = "(95 % interval)"


@grouped
def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    labeled: Annotated[Path, typer.Argument(metavar="LABELED", help="Table with the true labels.")],
    label: Annotated[
        str | None, typer.Option(metavar="COL", help="Label column; by default TRAIN's.")
    ] = None,
    domain: ModelDomain = None,
    trust: Trust = None,
    *,
    reading: Reading,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare predictions with known labels: accuracy, per class, per domain, with intervals.

    For a model made with --task regression: R² and the mean absolute error, per domain.

    Intervals have a confidence of 95 %, for rows that are independent of each other. Windows of one
    recording are not: for a model that was learned with --signals, intervals are too narrow.
    """
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.tables.recordings import RecordingTable
        from covshift.tables.scoring import score_file

        # The model knows whether it reads recordings.
        table = Signals().table_for(model, reading.file_of(labeled))
        fitted = load_model(model, trust)
        with working("predicting", quiet) as update:
            scores = score_file(
                fitted,
                table,
                label=label,
                domain=domain,
                progress=lambda n_rows, share: update(f"predicting: {n_rows:,} rows", share),
                **reading.layout,
            )
        if isinstance(table, RecordingTable):
            scores["notes"].append(WINDOWS_NARROW)
    switch = f"covshift predict {shlex.quote(str(model))} NEW --plain --out FILE"
    if scores.get("hurt"):
        scores["switch"] = switch
    if as_json:
        print_json({**scores, "warnings": warned})
        return
    print_notes([*scores["notes"], *warned], quiet)
    typer.echo(f"Rows: {scores['n_rows']:,}")
    if scores["objective"]:
        from covshift.predictors.objectives import name_objective  # here: --help stays fast

        typer.echo(f"Objective: {name_objective(scores['objective'])}.")
    measures = _measures(scores["task"])
    models = {"the model": scores} | ({"plain model": scores["plain"]} if "plain" in scores else {})
    print_table(
        ["", *(heading for heading, _ in measures.values())],
        [(name, *_figures(one, measures)) for name, one in models.items()],
    )
    if "gain" in scores:
        typer.echo(say_gain(scores["gain"], scores["objective"]))
    if scores.get("hurt"):
        typer.echo(say_hurt(switch, adapts=scores["adapts"]))
    if "expected" in scores:
        typer.echo(say_expected(scores["expected"], scores["objective"]))
    if "classes" in scores:
        _print_classes(scores["classes"])
    else:
        show = measures["mae"][1]
        typer.echo(say_bias(show(scores["bias"]), show(scores["spread"])))
    if "domains" in scores:
        print_table(
            ["domain", "rows", *(heading for heading, _ in measures.values())],
            [(one["name"], one["n_rows"], *_figures(one, measures)) for one in scores["domains"]],
        )
    if "mean_over_domains" in scores:
        show = measures["mae"][1] if "mae" in measures else "{:.3f}".format
        of = " of the mean absolute errors" if "mae" in measures else ""
        mean = say_interval(scores["mean_over_domains"], show, confidence="95 %")
        typer.echo(f"Mean over domains{of}: {mean}.")


def _measures(task: str) -> dict[str, tuple[str, Any]]:
    """Return the measures of a task: name -> heading, and how its figures are shown."""
    from covshift.predictors.objectives import NAMES, OBJECTIVES  # here: --help stays fast
    from covshift.selection.assessment_words import say_number

    if task == "regression":
        shown = {"r2": "{:.3f}".format, "mae": say_number}
    else:
        shown = {name: "{:.3f}".format for name in OBJECTIVES}
    return {name: (f"{NAMES[name]} {INTERVAL}", show) for name, show in shown.items()}


def _figures(scores: dict[str, Any], measures: dict[str, tuple[str, Any]]) -> list[str]:
    """Return each measure with its interval."""
    return [say_interval(scores[name], show) for name, (_, show) in measures.items()]


def _print_classes(classes: list[dict[str, Any]]) -> None:
    print_table(
        ["class", "rows", "predicted", f"recall {INTERVAL}"],
        [
            (str(one["name"]), one["n_rows"], one["n_predicted"], say_interval(one["recall"]))
            for one in classes
        ],
    )
