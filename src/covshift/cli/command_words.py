"""Sentences that the commands print, made from their results.

Help stands beside its option; `tests/cli/snapshots/help.txt` has all of it.

The advice is in the words of `covshift.selection.assessment_words`, other texts about tables in
those of `covshift.tables.table_words` and `monitoring_words`. These are imported where they are
needed: --help stays fast.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from covshift.cli.terminal import print_table, printable

MAX_ENTRIES = 12  # of a list or table that fit on a screen
OMITTED = re.compile(r"\((\d+) more\)")  # an entry of a card that stands for others
HOW_TO_LABEL = (
    "Label some new rows. covshift diagnose writes them if you run it with the same files and "
    "options and --to-label FILE; fill in their labels, and run diagnose and adapt with "
    "--labels FILE."
)
LEFT_THE_ENSEMBLE = (
    "These models left the ensemble, for all targets: {names}. Without the training rows they "
    "cannot learn a new target; the remaining models share their weight. To compare all candidates "
    "for these rows: covshift adapt TRAIN NEW --label COL --out MODEL."
)


def count_entries(counts: Mapping[str, Any]) -> int:
    """Count the entries of a card for the words of a command, those left out included."""
    more = OMITTED.fullmatch(str(next(reversed(list(counts)), "")))
    return len(counts) if more is None else len(counts) - 1 + int(more[1])


def _say_counts(counts: Mapping[str, int]) -> str:
    """Return the names with their numbers of rows, the first few of many."""
    shown = [f"{printable(name, 40)} {n:,}" for name, n in list(counts.items())[:MAX_ENTRIES]]
    rest = count_entries(counts) - MAX_ENTRIES
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def say_interval(
    figure: Mapping[str, Any],
    show: Callable[[float], str] = "{:.3f}".format,
    confidence: str = "",
) -> str:
    """Return the words of a command on a figure and its interval, as far as it has one.

    ``confidence``: such as "90 %".
    """
    if figure["value"] is None:
        return "undefined"
    if figure["low"] is None:
        return f"{show(figure['value'])} (no interval)"
    name = f"{confidence} interval " if confidence else ""
    return f"{show(figure['value'])} ({name}{show(figure['low'])} to {show(figure['high'])})"


# --- diagnose ---


def say_roles(n_rows: tuple[int, int], source: str, target: str) -> str:
    """Return the words of the command ``covshift diagnose`` on which rows are source and target."""
    source, target = printable(source, 60), printable(target, 60)
    n_source, n_target = n_rows
    return f"Source: {n_source:,} labeled rows of {source}. Target: {n_target:,} rows of {target}."


def say_rows_to_label(name: str, rows: Sequence[int], places: Sequence[Mapping[str, Any]]) -> str:
    """Return the words of the command ``covshift diagnose`` on the rows to label.

    Windows are named by their recording and first sample.
    """
    if not places:
        return f"Rows of {name} to label (1 is the first row of data): {', '.join(map(str, rows))}"
    starts: dict[str, list[str]] = {}
    for one in places:
        starts.setdefault(one["recording"], []).append(f"{one['start']:,}")
    each = [f"{printable(file, 60)} at {' and '.join(own)}" for file, own in starts.items()]
    return f"Windows to label, by recording and first sample: {'; '.join(each)}"


# --- adapt ---

OTHER_TYPES = "The model file holds types of other packages. Commands that read it need:"


def say_adapted(target: Mapping[str, Any]) -> str:
    """Return the words of the command ``covshift adapt`` on the rows learned as new targets."""
    rows = target["rows"]
    told = f"Adapted to {sum(rows.values()):,} rows of {printable(target['file'], 60)}"
    if len(rows) > 1:
        return f"{told}: {_say_counts(rows)}."
    (name,) = rows
    return f"{told}." if name.startswith("(") else f"{told} (domain {printable(name, 40)})."


def say_plain(name: str) -> str:
    """Return the words of the command ``covshift adapt`` on the plain model in the file."""
    from covshift.selection.assessment_words import name_candidate

    return (
        f"The file also holds the plain model, {name_candidate(name)}: covshift predict --plain "
        "uses it."
    )


def say_labels(label: str, data: Mapping[str, Any]) -> str:
    """Return the words of the command ``covshift adapt`` on each class, or a number as label."""
    if "rows of each class" in data:
        return f"Rows of each class: {_say_counts(data['rows of each class'])}."
    from covshift.selection.assessment_words import say_number

    values = {name: say_number(value) for name, value in data["values of the label"].items()}
    return (
        f"Label {printable(label, 60)}: {values['smallest']} to {values['largest']}, median "
        f"{values['median']}, standard deviation {values['standard deviation']}."
    )


def say_data(data: Mapping[str, Any]) -> str:
    """Return the words of the command ``covshift adapt`` on numbers of rows, columns, features."""
    return (
        f"Training rows: {data['training rows']:,}; new rows: {data['new rows']:,}; "
        f"columns to learn from: {len(data['columns'])}, as {data['features']} features."
    )


# --- predict ---


def say_predicted(result: Mapping[str, Any]) -> str:
    """Return the words of the command ``covshift predict`` on each class, or the range."""
    if "counts" in result:
        return _say_counts(result["counts"])
    if result["values"] is None:
        return "none"
    from covshift.selection.assessment_words import say_number

    values = {name: say_number(value) for name, value in result["values"].items()}
    return f"{values['smallest']} to {values['largest']}, mean {values['mean']}"


def say_sets(sets: Mapping[str, Any]) -> list[str]:
    """Return the words of the command ``covshift predict`` on sets: the promise and their size."""
    from covshift.selection.assessment_words import percent, say_number

    covers = f"coverage of {percent(1 - sets['alpha'])}"
    verdict = f"{covers} cannot be promised."
    if sets["promised"]:
        verdict = f"{covers} is promised (method: {sets['method']})."
    intervals = "mean width" in sets
    name = "Intervals" if intervals else "Sets"
    sentences = [f"{name}: {verdict} {sets['reason']}"]
    if sets["alpha"] > 0.5:
        sentences.append(
            f"--sets {sets['alpha']:g} accepts that {percent(sets['alpha'])} of the rows miss "
            f"their label. For coverage of {percent(sets['alpha'])} give --sets "
            f"{1 - sets['alpha']:.3g}."
        )
    if not intervals:
        return [*sentences, f"Mean size of a set: {sets['mean size']:.2f} classes."]
    sentences.append(f"Mean width of an interval: {say_number(sets['mean width'])}.")
    if sets["infinite"]:
        sentences.append(
            f"{sets['infinite']:,} intervals have an infinite end, because too few training rows "
            "resemble these rows."
        )
    return sentences


# --- score ---

WINDOWS_NARROW = "Windows of one recording resemble each other: the intervals are too narrow."


def say_bias(bias: str, spread: str) -> str:
    """Return the words of the command ``covshift score`` on the mean error of numbers."""
    return (
        f"Mean error (prediction less truth): {bias}; standard deviation of the labels: {spread}."
    )


def say_gain(gain: Mapping[str, float | None], objective: str | None) -> str:
    """Return the words of the command ``covshift score`` on the gain over the plain model."""
    from covshift.predictors.objectives import NAMES

    if gain["value"] == gain["low"] == gain["high"] == 0:
        return "The model and the plain model are right on the same rows."
    if gain["value"] is None:
        return "The gain over the plain model is undefined on these rows."
    measure = NAMES.get(str(objective), NAMES["accuracy"])
    show = _signed if objective == "mae" else "{:+.3f}".format
    reach = "no interval"
    if gain["low"] is not None and gain["high"] is not None:
        reach = f"95 % interval {show(gain['low'])} to {show(gain['high'])}"
    less = ", by which it is lower" if objective == "mae" else ""
    return f"Gain over the plain model: {show(gain['value'])} {measure}{less} ({reach})."


def _signed(value: float) -> str:
    from covshift.selection.assessment_words import say_number

    return f"{'+' if value >= 0 else ''}{say_number(value)}"


def say_hurt(switch: str, *, adapts: bool) -> str:
    """Return the words of the command ``covshift score`` where the plain model is better."""
    who = "Adapting" if adapts else "The ensemble"
    return f"{who} hurt on these rows: the plain model is better. To switch: {switch}"


def say_expected(expected: Mapping[str, Any], objective: str | None) -> str:
    """Return the words of the command ``covshift score`` on scores expected and observed."""
    from covshift.selection.assessment_words import show_score

    # The digits of then: two roundings of one score would confuse.
    figures = {**expected, **expected["stated"]}
    value, low, high, observed = (
        show_score(figures[name], str(objective)) for name in ("value", "low", "high", "observed")
    )
    inside = "inside" if expected["covered"] else "outside"
    return (
        f"Expected {value} (90 % interval {low} to {high}) when the model was made; observed "
        f"{observed}, {inside} the interval."
    )


# --- monitor ---


def say_moved(found: Mapping[str, Any]) -> list[str]:
    """Return the words of the command ``covshift monitor`` on whether a batch moved, by test."""
    sentences = [
        f"{'Moved' if found['moved'] else 'Not moved'}: {found['rows_compared']:,} of "
        f"{found['rows']:,} rows were compared with {found['reference_rows']:,} rows kept in the "
        f"model (p = {found['pvalue']:.2g}, level {found['level']:g}).",
        f"A classifier separates the model's rows from new rows with AUC {found['auc']:.3f} "
        f"({found['auc_low']:.3f} to {found['auc_high']:.3f}); 0.5 is chance.",
    ]
    if found["moved"]:
        sentences.append(f"Moved by the tests of: {', '.join(found['what_moved'])}.")
    return sentences


def say_scores(one: Mapping[str, Any], measure: str, alert: float | None) -> list[str]:
    """Return the words of the command ``covshift monitor`` on scores, expected and observed."""
    estimate, observed, updated = one["estimate"], one["observed"], one["updated"]
    sentences = []
    if estimate is not None:
        sentences.append(
            f"Expected {measure}: {say_interval(estimate, confidence='90 %')}; on held-out "
            f"training rows it was {one['reference']:.3f}."
        )
    if observed is not None:
        expected = {
            True: "inside the expected interval",
            False: "outside the expected interval",
            None: "",
        }[one["covered"]]
        sentences.append(
            f"Observed {measure} on {one['n_labels']} labeled rows: "
            f"{say_interval(observed, confidence='95 %')}{expected and ', '}{expected}."
        )
    if updated is not None:
        shown = say_interval(updated, confidence="90 %")
        sentences.append(f"Expected {measure} with these labels: {shown}.")
    if one["below_alert"]:
        best = updated or estimate
        sentences.append(
            f"Alert: the expected {measure} is below {alert:g}."
            if best["value"] < alert
            else f"Alert: the batch moved, and its {measure} is below {alert:g} with probability "
            f"{best['chance_below']:.2f}."
        )
    return sentences


def say_series(found: Mapping[str, Any], measure: str, alert: float | None) -> list[str]:
    """Return the words of the command ``covshift monitor`` on several batches, and low ones."""
    from covshift.tables.monitoring_words import say_false_alarms

    first = found["batches"][0]
    level = first["level"]
    sentences = [f"Level of the test of each batch: {level:g}. {say_false_alarms(level)}"]
    if first["reference"] is not None:
        sentences.append(
            f"{measure.capitalize()} on held-out training rows: {first['reference']:.3f}."
        )
    if low := [one["name"] for one in found["batches"] if one["below_alert"]]:
        sentences.append(
            f"Alert ({measure} below {alert:g} is expected or likely enough): "
            f"{printable(', '.join(low), 400)}."
        )
    return sentences


# --- The assessment in a model's card, as the commands print it ---


def print_assessment(stored: Any) -> bool:
    """Print the words of a command on an assessment: advice, expected scores, basis.

    Parameters
    ----------
    stored : dict
        From the card of a model file, which may hold anything.

    Returns
    -------
    bool
        False, and nothing is printed, where it is not an assessment that this version knows.
    """
    # Imported here: --help stays fast.
    from covshift.predictors.objectives import name_objective
    from covshift.selection.assessment_words import (
        describe_assessment,
        score_rows,
        show_estimate,
    )

    assessment = restore_assessment(stored)
    if assessment is None:
        return False
    advice, *sentences = describe_assessment(assessment, HOW_TO_LABEL)
    typer.echo(printable(advice, 600))
    metric = name_objective(assessment.objective)
    print_table(
        ["model", f"expected {metric} (90 % interval)"],
        [(name, show_estimate(one, assessment.objective)) for name, one in score_rows(assessment)],
    )
    for sentence in sentences:
        typer.echo(printable(sentence, 1000))
    return True


def restore_assessment(stored: Any) -> Any:
    """Return the `Assessment` that a command puts in words, from a card; None: it is not one."""
    from covshift.selection.assessment import Assessment, Determinability
    from covshift.selection.expected_scores import Estimate

    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)  # JSON has no NaN

    try:
        later = Assessment._field_defaults  # cards of earlier versions lack these fields
        fields = {name: stored[name] for name in Assessment._fields if name not in later}
        for name in later:
            error = stored.get(name)
            fields[name] = None if error is None else Estimate(*(map(float, error.values())))
        for name in ("plain", "recommended", "gain", "vote", "vote_gain"):
            fields[name] = Estimate(*(float(stored[name][key]) for key in Estimate._fields))
        for name in ("loss_probability", "vote_loss_probability", "disagreement", "certainty"):
            fields[name] = float(stored[name])
        found = stored["determinability"]
        fields["determinability"] = Determinability(
            by_overlap=bool(found["by_overlap"]),
            by_domains=bool(found["by_domains"]),
            overlap=number(found["overlap"]),
            n_domains=int(found["n_domains"]),
            domain_shift=number(found["domain_shift"]),
            target_shift=number(found["target_shift"]),
        )
        fields["members"] = [(str(name), float(weight)) for name, weight in stored["members"]]
        fields["rehearsals"] = [
            {
                "rehearsal": str(row["rehearsal"]),
                "plain": float(row["plain"]),
                "vote": float(row["vote"]),
            }
            for row in stored["rehearsals"]
        ]
        fields["n_labels"] = int(stored["n_labels"])
        known = stored["action"] in ("adapt", "combine", "keep") and fields["members"]
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Assessment(**fields) if known else None
