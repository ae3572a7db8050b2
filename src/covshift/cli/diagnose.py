"""``covshift diagnose``: what moved between two tables, what holds, what to do."""

from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.checks import check_jobs, check_seed
from covshift.cli.errors import fail, one_line_errors
from covshift.cli.options import (
    AsJson,
    Bins,
    Cells,
    Debug,
    Domain,
    Ignore,
    Jobs,
    MaxRows,
    Objective,
    Quiet,
    Reading,
    Seed,
    Signals,
    Splitting,
    Use,
    column_names,
    grouped,
)
from covshift.cli.printing import print_json, print_notes, print_table
from covshift.cli.working import working

COMMAND = "diagnose"
N_STAGES = 7  # that `diagnose` tells of, with what to expect
MIN_FREE_BYTES = 8 << 20  # of a report, generously
HOW_TO_LABEL = (
    "Let --to-label FILE write rows of NEW, fill in their labels, and give them back with "
    "--labels FILE"
)


@grouped
def diagnose(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Table with labels.")],
    label: Annotated[str, typer.Option(metavar="COL", help="Label column; NEW needs none.")],
    new: Annotated[
        Path | None,
        typer.Argument(
            metavar="[NEW]",
            help="Table of rows to work on; without it, --target-domain or --time splits TRAIN.",
        ),
    ] = None,
    bins: Bins = None,
    domain: Domain = None,
    *,
    splitting: Splitting,
    signals: Signals,
    ignore: Ignore = None,
    use: Use = None,
    objective: Objective = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with tables and pictures.")
    ] = None,
    ask: Annotated[
        int, typer.Option(help="Rows of NEW to name whose labels would tell most.")
    ] = 20,
    to_label: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write these rows here, with an empty label column."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file of --to-label with labels filled in; some will do."
        ),
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Evidence that is late is left out.")
    ] = None,
    max_rows: MaxRows = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    reading: Reading,
    cells: Cells,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Tell what moved from TRAIN to NEW, which assumption the data meet, and what to do.

    Source domains (--domain) are what most of the evidence comes from: without them, and
    where NEW lies elsewhere, nobody can know. Then labels of a few rows of NEW tell: --to-label
    writes which, --labels takes them back, all other options being the same.
    """
    check_jobs(COMMAND, jobs)
    check_seed(COMMAND, seed)
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.base import check_count
        from covshift.diagnosis.words import say_rows, summarise
        from covshift.tables import check_output, diagnose_tables, read_pair
        from covshift.tables.adapting import unbalanced_note
        from covshift.tables.diagnosing import (
            rows_to_label,
            update_from_file,
            write_rows_to_label,
        )
        from covshift.tables.recordings import FILE, START, as_windows, window_places

        check_count("--ask", ask, minimum=1 if to_label else 0)
        inputs = [one for one in (train, new, labels) if one is not None]
        if report is not None:
            from covshift.tables.report import write_report

            import_report()
            check_output(report, inputs=inputs, any_name=True, min_free_bytes=MIN_FREE_BYTES)
        if to_label is not None:
            check_output(to_label, inputs=inputs, min_free_bytes=MIN_FREE_BYTES)
        train, new = reading.file_of(train), new and reading.file_of(new)
        left_out, keep = column_names(ignore), column_names(use)
        if (windows := signals.settings()) is not None:
            train, new, others = as_windows(train, new, windows, (label, domain, *keep))
            left_out += [one for one in others if one not in left_out]
        with working("reading", quiet) as update:
            tables = read_pair(
                train, new, label=label, domain=domain, ignore=left_out,
                keep=keep, max_rows=max_rows, bins=bins, progress=update,
                split=splitting.to_split(), intake=cells.to_intake(), **reading.layout,
            )  # fmt: skip
        work = f"diagnosing {len(tables.X_train):,} and {len(tables.X_new):,} rows"
        with working(work, quiet) as update:
            begun: list[str] = []

            def tell(stage: str) -> None:
                update(f"{work}: {stage}", len(begun) / N_STAGES)
                begun.append(stage)

            found = diagnose_tables(
                tables, objective=objective or "accuracy", random_state=seed, n_jobs=jobs,
                time_budget=time_budget, progress=tell,
            )  # fmt: skip
            tell("what to expect")
            _ = found.expectations  # computed when first asked for
        notes = [*tables.notes, *unbalanced_note(tables.y, found.objective)]
        if found.n_rows_looked_at != found.n_rows:
            notes.append(f"{say_rows(found)}.")
        if labels is not None:
            found, more = update_from_file(found, tables, labels, **reading.layout)
            notes += more
        rows = rows_to_label(found, tables, ask) if ask else []
        places = [] if windows is None else window_places(new or train, rows)
        result = found.to_dict() | {"summary": summarise(found, HOW_TO_LABEL)}
        if to_label is not None:
            if not rows:
                fail(COMMAND, "there is no row to label: whatever may hold predicts the same.")
            shown = None if windows is None else (FILE, START)
            write_rows_to_label(to_label, new or train, rows, label, shown, **reading.layout)
        if report is not None:
            files = f"{train.name}, {new.name}" if new else train.name
            write_report(
                report, found, tables, facts=[("files", files)], notes=notes,
                how_to_label=HOW_TO_LABEL,
            )  # fmt: skip
    result |= {"notes": notes, "rows to label": rows, "warnings": warned}
    if windows is not None:
        result["windows to label"] = places
    if as_json:
        print_json(result)
        return
    print_notes([*notes, *warned], quiet)
    typer.echo(f"Objective: {result['objective']}.")
    for sentence in result["summary"]:
        typer.echo(sentence)
    kinds = [kind for kind, _ in found.evidence.items()]
    print_table(
        ["what may be shared", *(f"gain: {kind}" for kind in kinds), "verdict"],
        [
            (
                row["hypothesis"],
                *(row[f"gain: {kind}"] for kind in kinds),
                "leads" if row["leads"] else "survives" if row["survives"] else "refuted",
            )
            for row in found.table
        ],
    )
    if found.verdict.kind == "undecidable" and rows:
        typer.echo(
            f"Rows of {(new or train).name} to label (the first is 1): {', '.join(map(str, rows))}"
        )
        if places:
            print_table(["recording", "first sample"], [tuple(one.values()) for one in places])
    if to_label is not None:
        typer.echo(f"To label: {to_label}")
    if report is not None:
        typer.echo(f"Report: {report}")


def import_report() -> None:
    """Fail now, not after the work, where the extra is missing."""
    import covshift.report.figures
    import covshift.report.page  # noqa: F401
