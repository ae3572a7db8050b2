"""``covshift score``: how good a model is on rows whose labels are known."""

from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.errors import one_line_errors
from covshift.cli.options import AsJson, Debug, Decimal, Domain, Separator
from covshift.cli.printing import interval, print_json, print_notes, print_table, working

COMMAND = "score"


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    labelled: Annotated[
        Path, typer.Argument(metavar="LABELLED", help="Table with the true labels.")
    ],
    label: Annotated[
        str | None, typer.Option(metavar="COL", help="Label column; by default TRAIN's.")
    ] = None,
    domain: Domain = None,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare predictions with known labels: accuracy, per class, per domain, with intervals.

    Intervals are of 95 %, for rows that are independent of each other.
    """
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.persistence import load
        from covshift.tables import score_file

        fitted = load(model)
        with working("predicting"):
            scores = score_file(
                fitted, labelled, label=label, domain=domain, separator=separator, decimal=decimal
            )
    if as_json:
        print_json({**scores, "warnings": warned})
        return
    print_notes([*scores["notes"], *warned])
    typer.echo(f"Rows: {scores['n_rows']:,}")
    typer.echo(f"Accuracy:          {interval(scores['accuracy'])}")
    typer.echo(f"Balanced accuracy: {interval(scores['balanced_accuracy'])}")
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
