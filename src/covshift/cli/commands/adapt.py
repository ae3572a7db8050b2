"""``covshift adapt``: two tables to a model file; a model file and another table to another one."""

from pathlib import Path
from typing import Annotated, Any

import typer

from covshift.cli.command_words import (
    LEFT_THE_ENSEMBLE,
    OTHER_TYPES,
    print_assessment,
    say_adapted,
    say_data,
    say_labels,
    say_plain,
)
from covshift.cli.options import (
    AsJson,
    Bins,
    Cells,
    Debug,
    Domain,
    Estimator,
    EstimatorParams,
    Ignore,
    Jobs,
    MaxRisk,
    MaxRows,
    MinGain,
    NewTable,
    Objective,
    OutFile,
    Quiet,
    Reading,
    Seed,
    Signals,
    Splitting,
    Task,
    TimeBudget,
    Trust,
    Use,
    check_jobs,
    check_seed,
    grouped,
    load_model,
    own_model_option,
    split_at_commas,
    trust_options,
)
from covshift.cli.terminal import (
    MAX_TEXT,
    fail,
    one_line_errors,
    one_line_warnings,
    print_json,
    print_notes,
    print_table,
    printable,
    working,
)
from covshift.registry import MODEL_NAMES, NUMBER_MODEL_NAMES
from covshift.registry import names as adapter_names

COMMAND = "adapt"
MODEL_BYTES = 32 << 20  # generous size of a model file
with one_line_warnings():  # plug-ins are loaded here
    ADAPTERS_HELP = (
        "auto (default): tries all adapters, scores them without labels of the new rows, and "
        f"averages the best. Or one by name: {', '.join(adapter_names())}."
    )


@grouped
def adapt(
    first: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="Table with labels, or a model file.")
    ],
    out: OutFile,
    new: NewTable = None,
    label: Annotated[
        str | None, typer.Option(metavar="COL", help="Label column of TRAIN; NEW does not need it.")
    ] = None,
    task: Task = None,
    bins: Bins = None,
    domain: Domain = None,
    *,
    splitting: Splitting,
    signals: Signals,
    ignore: Ignore = None,
    use: Use = None,
    adapter: Annotated[str | None, typer.Option(metavar="NAME", help=ADAPTERS_HELP)] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(MODEL_NAMES)}. By default, auto tries all but boosting and "
            "joint-no-graph, and a named adapter uses logistic. With --task regression: "
            f"{', '.join(NUMBER_MODEL_NAMES)}; a named adapter uses ridge."
        ),
    ] = None,
    estimator: Estimator = None,
    estimator_params: EstimatorParams = None,
    objective: Objective = None,
    reference_rows: Annotated[
        int | None,
        typer.Option(
            help="Rows of NEW that the model keeps, encoded, for `covshift monitor`: at most "
            "this number, by default 1000; 0: none."
        ),
    ] = None,
    keep_no_rows: Annotated[
        bool,
        typer.Option(
            "--keep-no-rows",
            help="Keep no training rows in the model. By default it keeps at most 1000 of them, "
            "held out, for `predict --sets` and for expected scores on later files.",
        ),
    ] = False,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Known labels of rows of NEW: the file of `diagnose --to-label`, filled in. They "
            "count for the expected scores and for the model.",
        ),
    ] = None,
    min_gain: MinGain = None,
    max_risk: MaxRisk = None,
    scores_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Scores of `diagnose --save-scores` on the same tables with the same options: the "
            "candidates are not scored again.",
        ),
    ] = None,
    time_budget: TimeBudget = None,
    max_rows: MaxRows = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    trust: Trust = None,
    reading: Reading,
    cells: Cells,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Learn from TRAIN a model for the rows of NEW, and save it.

    TRAIN may also be a model file: the model then learns NEW as a new target, without the
    training rows (with --domain, each of its domains). Members of the ensemble that cannot do so
    leave it and are named; if they have more than half of the weight, nothing is written.
    """
    check_jobs(COMMAND, jobs)
    check_seed(COMMAND, seed)
    with one_line_errors(COMMAND, debug) as warned:
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.persistence.model_files import is_model_file
        from covshift.tables.label_column import check_task
        from covshift.tables.recordings import as_windows
        from covshift.tables.writing import check_output

        check_output(
            out,
            inputs=[one for one in (first, new, labels, scores_from) if one],
            any_name=True,
            min_free_bytes=MODEL_BYTES,
        )
        if is_model_file(first):
            given = {
                "--label": label, "--task": task, "--ignore": ignore, "--use": use,
                "--adapter": adapter, "--model": model, "--objective": objective,
                "--reference-rows": reference_rows,
                "--labels": labels, "--min-gain": min_gain, "--max-risk": max_risk,
                "--from": scores_from,
                "--time-budget": time_budget, "--max-rows": max_rows, "--bins": bins,
                "--missing": cells.missing, "--not-missing": cells.not_missing,
                "--as": cells.as_kind, "--target-domain": splitting.target_domain,
                "--time": splitting.time, "--train-before": splitting.train_before,
                "--estimator": estimator, "--estimator-params": estimator_params,
                "--keep-no-rows": keep_no_rows or None,
            }  # fmt: skip
            for option, value in given.items():
                if value is not None:
                    fail(COMMAND, f"{first} is a model file: {option} is for a training table.")
            if new is None:
                fail(COMMAND, f"{first} is a model file: name the table to adapt it to.")
            new = signals.table_for(first, reading.file_of(new))
            result = _adapt_model(first, new, out, domain, trust, reading.layout, quiet)
        else:
            if trust:
                fail(COMMAND, f"--trust is for model files, and {first} is not one.")
            if label is None:
                fail(COMMAND, f"--label COL is needed: the column of {first} to predict.")
            adapter = adapter or "auto"
            if model is not None and estimator is not None:
                fail(COMMAND, "name the model once: in --model or in --estimator.")
            task = task or "classification"
            check_task(task, bins)
            own = own_model_option(estimator, estimator_params, adapter, seed, jobs, task)
            settings = {
                "objective": objective, "seed": seed, "n_jobs": jobs,
                "time_budget": time_budget, "keep_rows": not keep_no_rows,
            } | _automatic(adapter, min_gain, max_risk, scores_from)  # fmt: skip
            columns = {
                "ignore": split_at_commas(ignore), "keep": split_at_commas(use),
                "split": splitting.to_split(), "intake": cells.to_intake(),
            }  # fmt: skip
            first, new = reading.file_of(first), new and reading.file_of(new)
            if (windows := signals.settings()) is not None:
                first, new, others = as_windows(
                    first, new, windows, (label, domain, *columns["keep"])
                )
                columns["ignore"] += [one for one in others if one not in columns["ignore"]]
            result = _adapt_tables(
                (first, new), out, (adapter, model if own is None else own), settings,
                1000 if reference_rows is None else reference_rows,
                {"label": label, "domain": domain, "max_rows": max_rows, "bins": bins, "task": task}
                | columns | reading.layout,
                labels, quiet,
            )  # fmt: skip
        from covshift.persistence.model_files import untrusted_types

        result["untrusted types"] = untrusted_types(out)
    result["warnings"] = warned
    result["model"] = str(out)
    if as_json:
        print_json(result)
        return
    _print(result, quiet)


def _automatic(
    adapter: str, min_gain: float | None, max_risk: float | None, scores_from: Path | None
) -> dict[str, Any]:
    """Return the settings that only the automatic choice has."""
    given = {"min_gain": min_gain, "max_risk": max_risk, "scores_from": scores_from}
    options = {"--min-gain": min_gain, "--max-risk": max_risk, "--from": scores_from}
    for option, value in options.items():
        if value is not None and adapter != "auto":
            fail(COMMAND, f"{option} is for the automatic choice: leave out --adapter {adapter}.")
    if max_risk is not None and not 0 <= max_risk <= 1:
        fail(COMMAND, f"--max-risk is a probability, from 0 to 1; got {max_risk:g}.")
    if min_gain is not None and not min_gain >= 0:
        fail(COMMAND, f"--min-gain is a gain of at least 0; got {min_gain:g}.")
    return {name: value for name, value in given.items() if value is not None}


def _adapt_tables(
    files: tuple[Path, Path | None],
    out: Path,
    chosen: tuple[str, Any],
    settings: dict[str, Any],
    n_reference: int,
    matching: dict[str, Any],
    labels: Path | None,
    quiet: bool,
) -> dict[str, Any]:
    # Imported here: --help stays fast.
    from covshift.base import check_count
    from covshift.persistence import save
    from covshift.persistence.model_files import import_skops
    from covshift.tables.adapting import (
        adapt_tables,
        check_choice,
        choose_estimator,
        describe_model,
    )
    from covshift.tables.file_pairs import read_pair
    from covshift.tables.label_files import with_new_labels
    from covshift.tables.recordings import RecordingTable

    # Now, not after the work.
    import_skops()
    check_choice(*chosen, settings["objective"], matching["task"])
    check_count("--reference-rows", n_reference, minimum=0)
    with working("reading", quiet) as update:
        tables = read_pair(*files, progress=update, **matching)
        if labels is not None:
            tables = with_new_labels(tables, labels)  # in the layout of diagnose --to-label
    work = f"learning from {len(tables.X_train):,} rows"
    with working(work, quiet) as update:
        estimator = choose_estimator(tables, *chosen, **settings)
        fitted = adapt_tables(
            tables, estimator, max_reference_rows=n_reference,
            progress=lambda step, share: update(f"{work}: {step}", share),
        )  # fmt: skip
    card = describe_model(fitted, tables, files)
    if isinstance(files[0], RecordingTable):
        card["signals"] = files[0].settings.to_card()
    save(fitted, out, card=card)
    return card


def _adapt_model(
    path: Path,
    new: Path,
    out: Path,
    domain: str | None,
    trust: list[str] | None,
    reading: dict[str, Any],
    quiet: bool,
) -> dict[str, Any]:
    # Imported here: --help stays fast.
    from covshift.persistence import read_card, save
    from covshift.persistence.card_and_seal import given_entries
    from covshift.tables.adapting import adapt_model, list_members

    with working("adapting", quiet):
        model, target = adapt_model(load_model(path, trust), new, domain=domain, **reading)
    card = given_entries(read_card(path))
    card["later targets"] = [*card.get("later targets", []), target]
    card["reference rows"] = len(model.reference_)
    card["chosen"] = list_members(model)
    card.pop("assessment", None)  # the assessment belongs to the earlier target
    save(model, out, card=card)
    return {"target": target, "notes": target["notes"], "chosen": card["chosen"]}


def _print(result: dict[str, Any], quiet: bool) -> None:
    if "target" in result:
        target = result["target"]
        typer.echo(say_adapted(target))
        if target["left the vote"]:
            names = printable(", ".join(target["left the vote"]), MAX_TEXT)
            typer.echo(LEFT_THE_ENSEMBLE.format(names=names), err=True)
    else:
        data = result["data"]
        typer.echo(say_data(data))
        typer.echo(say_labels(result["label"], data))
    print_notes([*result["notes"], *result["warnings"]], quiet)
    if not print_assessment(result.get("assessment")) and "decision" in result:
        typer.echo(result["decision"])
    if "decision" in result or result["target"]["left the vote"]:
        rows = [(one["candidate"], one["weight"]) for one in result["chosen"]]
        print_table(["adapter + model in use", "weight"], rows)
    if result.get("objective"):
        from covshift.predictors.objectives import WORDS  # imported here: --help stays fast

        typer.echo(f"Objective: {WORDS[result['objective']]}.")
        if [one["candidate"] for one in result["chosen"]] != [result["plain model"]]:
            typer.echo(say_plain(result["plain model"]))
    typer.echo(f"Model: {result['model']}")
    if result["untrusted types"]:
        typer.echo(f"{OTHER_TYPES} {trust_options(result['untrusted types'])}")
