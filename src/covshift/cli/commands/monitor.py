"""``covshift monitor``: whether the target has moved since the model was made."""

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import say_interval, say_moved, say_scores, say_series
from covshift.cli.options import (
    AsJson,
    Debug,
    ModelDomain,
    Quiet,
    Reading,
    Seed,
    Signals,
    Trust,
    check_seed,
    grouped,
    load_model,
)
from covshift.cli.terminal import (
    ALERT,
    MAX_RECORDINGS,
    MOVED,
    fail,
    one_line_errors,
    print_json,
    print_notes,
    print_table,
    printable,
    working,
)

COMMAND = "monitor"


@grouped
def monitor(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    batch: Annotated[
        list[Path], typer.Argument(metavar="BATCH", help="Tables of new rows, each a batch.")
    ],
    domain: ModelDomain = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of dates: each period of time is a batch."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="PERIOD", help="With --time: day, week (default), month.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels of some rows, as covshift label writes them; or BATCH, if it has labels.",
        ),
    ] = None,
    alert: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="Exit code 4 if the score is expected, or likely enough, to be below this.",
        ),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            help="How often a batch that has not moved may give an alarm; 0.01 by default, 0.0025 "
            "for a series of batches."
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of JSON lines, one for each batch checked so far."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with a chart over time (.html)."),
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --labels: write a model that has learned from them."
        ),
    ] = None,
    seed: Seed = 0,
    trust: Trust = None,
    *,
    signals: Signals,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With recordings: output file with one line for each window."
        ),
    ] = None,
    reading: Reading,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check BATCH against the model. Exit code 0: fine, 3: moved, 4: score below --alert.

    Exit code 1 is an error; 4 takes precedence over 3. The model keeps up to 1,000 target rows,
    drawn at random when it was made. They are compared with at most 1,000 rows of each batch, drawn
    at random too. The tests are of all features together (by a classifier), each feature, its
    spread, the predictions and the predicted class proportions. The expected score is estimated
    from held-out training rows in the model; for models that predict numbers it is not estimated.

    Use both exit codes. The code is 4 if the expected score is below --alert, or if the batch moved
    and its score is below --alert with a probability above .3. Code 4 misses most losses in which
    the model stays confident, such as a noisy sensor or a new group of rows. Code 3 reports these,
    and also changes that cost nothing. Neither detects labels that changed while rows did not.

    With --history, --time or several files, batches are a series: in 20 batches that have not
    moved, the probability of any alarm is at most 5 %.

    A model that was learned with --signals compares windows of recordings. It also prints which
    share of each recording's windows lies outside of the kept windows; about 1 % is usual.
    """
    check_seed(COMMAND, seed)
    if by is not None and time is None:
        fail(COMMAND, "--by needs --time COLUMN, the column of dates.")
    if update is not None and labels is None:
        fail(COMMAND, "--update needs --labels FILE, the labels to learn from.")
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.persistence import read_card
        from covshift.tables.writing import check_output

        if "signals" in read_card(model) or signals.signals:
            others = {
                "--time": time, "--labels": labels, "--alert": alert, "--history": history,
                "--report": report, "--update": update,
            }  # fmt: skip
            _refuse_for_recordings(model, batch, others)
            found = _monitor_recordings(
                model, batch[0], signals, reading, quiet, trust, out,
                domain=domain, level=0.01 if level is None else level, seed=seed,
            )  # fmt: skip
        else:
            signals.table_for(model, batch[0])  # refuses options for recordings
            if out is not None:
                fail(COMMAND, f"--out needs a model of recordings; {model} has none.")
            inputs = [model, *batch, *([labels] if labels else [])]
            for path in (history, report, update):
                if path is not None:
                    check_output(path, inputs=inputs, any_name=True)
            series = history is not None or time is not None or len(batch) > 1
            found = _monitor(
                model, [reading.file_of(one) for one in batch], labels, history, update,
                quiet, trust, domain=domain, time=time, by=by or "week",
                level=level if level is not None else 0.0025 if series else 0.01,
                alert=alert, seed=seed, **reading.layout,
            )  # fmt: skip
            if report is not None:
                from covshift.tables.monitoring_report import write_monitor_report

                write_monitor_report(report, found, alert=alert, model=model.name)
                found["report"] = str(report)
    code = ALERT if found.get("below_alert") else MOVED if found["moved"] else 0
    if as_json:
        print_json({**found, "exit_code": code, "warnings": warned})
    elif "recordings" in found:
        print_notes([*found["notes"], *warned], quiet)
        _print_moved(found)
        _print_recordings(found, out)
    else:
        print_notes([*found["notes"], *warned], quiet)
        _print_series(found, alert)
    if code:
        raise typer.Exit(code)


def _monitor(
    model: Path,
    batches: list[Path],
    labels: Path | None,
    history: Path | None,
    update: Path | None,
    quiet: bool,
    trust: list[str] | None,
    **settings: Any,
) -> dict[str, Any]:
    # Imported here: --help stays fast.
    from covshift.tables.monitoring_history import (
        append_history,
        count_covered,
        history_lines,
        read_history,
    )
    from covshift.tables.monitoring_series import monitor_series
    from covshift.tables.monitoring_words import CANNOT_SEE

    digest = sha256(model.read_bytes()).hexdigest()
    fitted = load_model(model, trust)
    if history is not None:
        read_history(history)  # now, not after the work: refuses other files
    with working("comparing", quiet):
        found = monitor_series(fitted, batches, labels=labels, model_digest=digest, **settings)
    found["cannot_see"] = None if labels is not None else CANNOT_SEE
    past = found["batches"]
    if history is not None:
        lines = history_lines(found)
        added = append_history(history, lines)
        past, notes = read_history(history)
        # Labels that arrived count for the batch that they are of.
        new = [
            line.get("of", line["key"]) for line, is_new in zip(lines, added, strict=True) if is_new
        ]
        found["notes"] += notes
        found["history"] = {"file": str(history), "batches": len(past), "added": len(set(new))}
    found["past"] = past
    found["coverage"] = count_covered(past)
    if update is not None:
        from covshift.tables.model_updates import update_model

        with working("updating", quiet):
            found["update"] = update_model(
                model, fitted, batches[0], labels, update,
                domain=settings["domain"], moved=found["moved"], **_layout(settings),
            )  # fmt: skip
    # One batch alone: its figures are on the first level too, as programs have read them so far.
    return {**found["batches"][0], **found} if len(found["batches"]) == 1 else found


def _layout(settings: dict[str, Any]) -> dict[str, Any]:
    names = ("separator", "decimal", "header", "skip_rows", "encoding")
    return {name: settings[name] for name in names}


def _refuse_for_recordings(model: Path, batch: list[Path], options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            fail(COMMAND, f"{option} is for tables; {model} reads recordings.")
    if len(batch) > 1:
        fail(COMMAND, f"{model} reads recordings: name one table of them.")


def _monitor_recordings(
    model: Path,
    batch: Path,
    signals: Signals,
    reading: Reading,
    quiet: bool,
    trust: list[str] | None,
    out: Path | None,
    **settings: Any,
) -> dict[str, Any]:
    # Imported here: --help stays fast.
    from covshift.tables.monitoring_batch import monitor_recordings
    from covshift.tables.writing import check_output

    table = signals.table_for(model, reading.file_of(batch))
    if out is not None:
        check_output(out, inputs=[model, table])
    compare = partial(monitor_recordings, out=out)
    fitted = load_model(model, trust)
    with working("comparing", quiet):
        found: dict[str, Any] = compare(fitted, table, **settings, **reading.layout)
    return found


def _print_series(found: dict[str, Any], alert: float | None) -> None:
    from covshift.tables.monitoring_words import say_covered  # imported here: --help stays fast

    measure = found["objective"].replace("_", " ")
    if len(found["batches"]) == 1:
        (one,) = found["batches"]
        _print_moved(one)
        sentences = say_scores(one, measure, alert)
    else:
        print_table(
            ["batch", "rows", "moved", "what moved", f"expected {measure}", "observed"],
            [_row(one) for one in found["batches"]],
        )
        sentences = say_series(found, measure, alert)
    told = found["coverage"]
    if told["batches"]:
        sentences.append(say_covered(measure, told["covered"], told["batches"]))
    for sentence in sentences:
        typer.echo(sentence)
    if found["cannot_see"]:
        typer.echo(found["cannot_see"])
    if "history" in found:
        past = found["history"]
        batches = "1 batch" if past["batches"] == 1 else f"{past['batches']:,} batches"
        typer.echo(f"History: {past['file']} ({batches}, {past['added']} new)")
    if "update" in found:
        for line in found["update"]["lines"]:
            typer.echo(printable(line, 600))
    if "report" in found:
        typer.echo(f"Report: {found['report']}")


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    estimate, observed = one["updated"] or one["estimate"], one["observed"]
    return (
        one["name"],
        one["rows"],
        one["moved"],
        ", ".join(one["what_moved"]) or "-",
        say_interval(estimate) if estimate else "-",
        f"{observed['value']:.3f} ({one['n_labels']} labels)" if observed else "-",
    )


def _print_moved(found: dict[str, Any]) -> None:
    for sentence in say_moved(found):
        typer.echo(sentence)
    if not found["moved"]:
        return
    if found["features"]:
        print_table(
            ["feature", "KS distance", "mean before", "mean now"],
            [
                (one["feature"], one["distance"], one["mean_before"], one["mean_now"])
                for one in found["features"]
            ],
        )
    if "class proportions" in found["what_moved"]:
        print_table(
            ["predicted class", "share before", "share now"],
            [(one["class"], one["before"], one["now"]) for one in found["classes"]],
        )


def _print_recordings(found: dict[str, Any], out: Path | None) -> None:
    print_table(
        ["recording", "windows", "share outside"],
        [tuple(one.values()) for one in found["recordings"][:MAX_RECORDINGS]],
    )
    if len(found["recordings"]) > MAX_RECORDINGS:
        rest = len(found["recordings"]) - MAX_RECORDINGS
        typer.echo(f"({rest:,} more recordings; --json shows all)")
    if out is not None:
        typer.echo(f"Of each window: {out}")
