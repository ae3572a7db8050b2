"""``covshift score``: how good a model is on rows whose labels are known."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.errors import one_line_errors
from covshift.cli.models import load_model
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    Quiet,
    Reading,
    Signals,
    Trust,
    grouped,
)
from covshift.cli.printing import interval, print_json, print_notes, print_table
from covshift.cli.working import working

COMMAND = "score"


@grouped
def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    labelled: Annotated[
        Path, typer.Argument(metavar="LABELLED", help="Table with the true labels.")
    ],
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

    Intervals are of 95 %, for rows that are independent of each other. Windows of one recording
    are not: for a model that was learned with --signals, intervals are too narrow.
    """
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.tables import score_file
        from covshift.tables.recordings import RecordingTable

        # The model knows whether it reads recordings.
        table = Signals().table_for(model, reading.file_of(labelled))
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
            scores["notes"].append(
                "Windows of one recording resemble each other: the intervals are too narrow."
            )
    switch = f"covshift predict {shlex.quote(str(model))} NEW --plain --out FILE"
    if scores.get("hurt"):
        scores["switch"] = switch
    if as_json:
        print_json({**scores, "warnings": warned})
        return
    print_notes([*scores["notes"], *warned], quiet)
    typer.echo(f"Rows: {scores['n_rows']:,}")
    if scores["objective"]:
        typer.echo(f"Objective: {scores['objective']}.")
    models = {"the model": scores} | ({"plain model": scores["plain"]} if "plain" in scores else {})
    print_table(
        ["", "accuracy", "balanced accuracy"],
        [
            (name, interval(one["accuracy"]), interval(one["balanced_accuracy"]))
            for name, one in models.items()
        ],
    )
    if "gain" in scores:
        typer.echo(say_gain(scores["gain"], scores["objective"]))
    if scores.get("hurt"):
        who = "Adapting" if scores["adapts"] else "The ensemble"
        typer.echo(f"{who} hurt on these rows: the plain model is better. To switch: {switch}")
    if "expected" in scores:
        typer.echo(say_expected(scores["expected"]))
    print_table(
        ["class", "rows", "predicted", "recall"],
        [
            (str(one["name"]), one["n_rows"], one["n_predicted"], interval(one["recall"]))
            for one in scores["classes"]
        ],
    )
    if "domains" in scores:
        names = ("accuracy", "balanced_accuracy")
        print_table(
            ["domain", "rows", "accuracy", "balanced accuracy"],
            [
                (one["name"], one["n_rows"], *(interval(one[name]) for name in names))
                for one in scores["domains"]
            ],
        )
    if "mean_over_domains" in scores:
        typer.echo(f"Mean over domains: {interval(scores['mean_over_domains'])}")


def say_gain(gain: dict[str, float], objective: str | None) -> str:
    """Return how the model compares with the plain one."""
    if gain["value"] == gain["low"] == gain["high"] == 0:
        return "The model and the plain one are right on the same rows."
    measure = "balanced accuracy" if objective == "balanced_accuracy" else "accuracy"
    return (
        f"Gain of the model over the plain one: {gain['value']:+.3f} {measure} (95 % interval "
        f"{gain['low']:+.3f} to {gain['high']:+.3f})."
    )


def say_expected(expected: dict[str, float]) -> str:
    """Return the score that was expected when the model was made, and the one observed."""
    inside = "inside" if expected["covered"] else "outside"
    return (
        f"Expected {expected['value']:.2f} (90 % interval {expected['low']:.2f} to "
        f"{expected['high']:.2f}) when the model was made; observed {expected['observed']:.2f}, "
        f"{inside} the interval."
    )
