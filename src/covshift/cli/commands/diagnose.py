"""``covshift diagnose``: what moved between two tables, the advice, and expected scores."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import HOW_TO_LABEL, say_roles, say_rows_to_label
from covshift.cli.options import (
    AsJson,
    Bins,
    Cells,
    Debug,
    Domain,
    Ignore,
    Jobs,
    MaxRisk,
    MaxRows,
    MinGain,
    NewTable,
    Objective,
    Quiet,
    Reading,
    Seed,
    Signals,
    Splitting,
    Task,
    TimeBudget,
    Use,
    check_jobs,
    check_seed,
    grouped,
    split_at_commas,
)
from covshift.cli.terminal import (
    fail,
    one_line_errors,
    print_json,
    print_notes,
    print_table,
    printable,
    working,
)

COMMAND = "diagnose"
N_STAGES = 7  # stages that `diagnose` reports
REPORT_BYTES = 8 << 20  # generous size of a report
MODEL_FILE = "model.skops"  # output of the command that is printed last
MAX_ADAPTERS = 12  # printed, and those in use


@grouped
def diagnose(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Table with labels.")],
    label: Annotated[str, typer.Option(metavar="COL", help="Label column; NEW does not need it.")],
    new: NewTable = None,
    task: Task = None,
    bins: Bins = None,
    domain: Domain = None,
    *,
    splitting: Splitting,
    signals: Signals,
    ignore: Ignore = None,
    use: Use = None,
    objective: Objective = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report: an HTML page with tables and figures."),
    ] = None,
    min_gain: MinGain = None,
    max_risk: MaxRisk = None,
    ask: Annotated[int, typer.Option(help="Rows of NEW to label, drawn at random.")] = 20,
    to_label: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the rows to label to FILE, with an empty label column."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file of --to-label with some or all labels filled in."
        ),
    ] = None,
    save_scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save the candidates' scores; adapt --from FILE reuses them."
        ),
    ] = None,
    time_budget: TimeBudget = None,
    max_rows: MaxRows = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    reading: Reading,
    cells: Cells,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Report what moved from TRAIN to NEW, and advise a model with its expected score.

    `covshift adapt` with the same options follows the advice; the last line is that command.
    Labels of some rows of NEW make the advice more reliable. --to-label writes rows drawn at
    random; fill in their labels, and run the same command with --labels.
    """
    check_jobs(COMMAND, jobs)
    check_seed(COMMAND, seed)
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.base import check_count
        from covshift.diagnosis.diagnosis_words import say_rows, summarize
        from covshift.tables.adapting import check_objective, unbalanced_note
        from covshift.tables.diagnosing import diagnose_tables
        from covshift.tables.file_pairs import read_pair
        from covshift.tables.label_column import CLASSIFICATION, check_task
        from covshift.tables.label_files import rows_to_label, with_new_labels, write_rows_to_label
        from covshift.tables.recordings import FILE, START, as_windows, recording_places
        from covshift.tables.writing import check_output

        check_count("--ask", ask, minimum=1 if to_label else 0)
        check_task(task or CLASSIFICATION, bins)
        measured_in = check_objective(objective, task or CLASSIFICATION)
        inputs = [one for one in (train, new, labels) if one is not None]
        if report is not None:
            from covshift.tables.diagnosing import write_report

            _import_report()
            check_output(report, inputs=inputs, any_name=True, min_free_bytes=REPORT_BYTES)
        if to_label is not None:
            check_output(to_label, inputs=inputs, min_free_bytes=REPORT_BYTES)
        if save_scores is not None:
            check_output(save_scores, inputs=inputs, any_name=True, min_free_bytes=REPORT_BYTES)
        command = _adapt_command(
            (train, new),
            {
                "label": label, "task": task, "bins": bins, "domain": domain, **_given(splitting),
                **_given(signals),
                "ignore": ignore, "use": use, "objective": objective, "min_gain": min_gain,
                "max_risk": max_risk, "labels": labels, "from": save_scores,
                "time_budget": time_budget, "max_rows": max_rows,
                "seed": seed or None, "jobs": jobs if jobs != 1 else None,
                **_given(reading), **_given(cells),
            },
        )  # fmt: skip
        train, new = reading.file_of(train), new and reading.file_of(new)
        left_out, keep = split_at_commas(ignore), split_at_commas(use)
        if (windows := signals.settings()) is not None:
            train, new, others = as_windows(train, new, windows, (label, domain, *keep))
            left_out += [one for one in others if one not in left_out]
        with working("reading", quiet) as update:
            tables = read_pair(
                train, new, label=label, domain=domain, ignore=left_out,
                keep=keep, max_rows=max_rows, bins=bins, progress=update,
                task=task or CLASSIFICATION,
                split=splitting.to_split(), intake=cells.to_intake(), **reading.layout,
            )  # fmt: skip
            if labels is not None:
                tables = with_new_labels(tables, labels)  # in the layout of --to-label
        work = f"diagnosing {len(tables.X_train):,} and {len(tables.X_new):,} rows"
        with working(work, quiet) as update:
            begun: list[str] = []

            def tell(stage: str) -> None:
                update(f"{work}: {stage}", min(1.0, len(begun) / N_STAGES))
                begun.append(stage)

            given = {"min_gain": min_gain, "max_risk": max_risk}
            asked = {name: value for name, value in given.items() if value is not None}
            found = diagnose_tables(
                tables, objective=measured_in, random_state=seed, n_jobs=jobs,
                time_budget=time_budget, progress=tell, **asked,
            )  # fmt: skip
        notes = [*tables.notes, *unbalanced_note(tables, found.objective)]
        if found.n_rows_looked_at != found.n_rows:
            notes.append(f"{say_rows(found)}.")
        rows = rows_to_label(found, tables, ask) if ask else []
        places = [] if windows is None else recording_places(new or train, rows)
        result = found.to_dict() | {"summary": summarize(found, HOW_TO_LABEL), "command": command}
        if to_label is not None:
            if not rows:
                fail(COMMAND, "there is no row to label: all rows of NEW have labels.")
            shown = None if windows is None else (FILE, START)
            write_rows_to_label(to_label, new or train, rows, label, shown, **reading.layout)
        if save_scores is not None:
            found.save_scores(save_scores)
        if report is not None:
            files = f"{train.name}, {new.name}" if new else train.name
            write_report(
                report, found, tables, facts=[("files", files), ("to follow the advice", command)],
                notes=notes, how_to_label=HOW_TO_LABEL,
            )  # fmt: skip
    result |= {"notes": notes, "rows to label": rows, "warnings": warned}
    if windows is not None:
        result["windows to label"] = places
    if as_json:
        print_json(result)
        return
    print_notes([*notes, *warned], quiet)
    typer.echo(say_roles(found.n_rows, train.name, (new or train).name))
    _print(found)
    if to_label is not None:
        typer.echo(f"To label: {to_label}")
    if save_scores is not None:
        typer.echo(f"Scores: {save_scores}")
    elif rows and (found.assessment is None or found.assessment.confidence != "high"):
        typer.echo(say_rows_to_label((new or train).name, rows, places))
    if report is not None:
        typer.echo(f"Report: {report}")
    typer.echo("To follow the advice:")
    # Spaces inside quotes count; a character that would steer a terminal must not be printed.
    typer.echo(f"  {command if command.isprintable() else printable(command, len(command))}")


def _print(found: Any) -> None:
    """Print what was found, the advice, expected scores and adapters."""
    # Imported here: --help stays fast.
    from covshift.diagnosis.diagnosis_words import say_advised, say_findings
    from covshift.predictors.objectives import WORDS
    from covshift.selection.assessment_words import score_heading, score_rows, show_estimate

    typer.echo(f"Objective: {WORDS[found.objective]}.")
    for sentence in say_findings(found):
        typer.echo(printable(sentence, 600))
    advice, *others = say_advised(found, HOW_TO_LABEL)
    typer.echo(printable(advice, 600))
    if found.assessment is not None:
        scores = [
            (name, show_estimate(score, found.objective))
            for name, score in score_rows(found.assessment)
        ]
        print_table(["model", f"e{score_heading(found.objective)[1:]}"], scores)
    for sentence in others:
        typer.echo(printable(sentence, 600))
    rows = [  # the longest text last: where a terminal breaks it, the numbers stay in columns
        (row["adapter"], row["expected gain"], row["weight"], row["assumption"])
        for number, row in enumerate(found.table)
        if (number < MAX_ADAPTERS and row["disqualified"] is None) or row["weight"] > 0
    ]
    print_table(["adapter", "expected gain", "weight", "assumes"], rows)


def _adapt_command(tables: tuple[Path, Path | None], options: dict[str, Any]) -> str:
    """Return the command that builds the advised model, quoted for a shell.

    Parameters
    ----------
    tables : pair of Path and Path or None
        As they were given.
    options : dict
        By the names of their parameters; None, False and empty lists: not given.

    Returns
    -------
    str

    Examples
    --------
    >>> from covshift.cli.commands.diagnose import _adapt_command
    >>> _adapt_command(("a b.csv", None), {"label": "y", "missing": ["-9"], "no_header": True})
    "covshift adapt 'a b.csv' --label y --missing=-9 --no-header --out model.skops"
    """
    words = ["covshift", "adapt", *(str(one) for one in tables if one is not None)]
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = {"as_kind": "--as"}.get(name, f"--{name.replace('_', '-')}")
        for one in value if isinstance(value, list) else [value]:
            text = "tab" if one == "\t" else str(one)
            if isinstance(one, float):  # 12000.0 was given as 12000
                text = text.removesuffix(".0")
            if one is True:
                words.append(option)
            elif text.startswith("-"):  # else it would be taken for an option
                words.append(f"{option}={text}")
            else:
                words += [option, text]
    return shlex.join([*words, "--out", MODEL_FILE])


def _given(group: Any) -> dict[str, Any]:
    """Return the options of a group."""
    return {one.name: getattr(group, one.name) for one in fields(group)}


def _import_report() -> None:
    """Fail now, not after the work, where the extra is missing."""
    import covshift.report.figures
    import covshift.report.page  # noqa: F401
