"""Output of the commands on users' files: text for people, JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from covshift.cli.command_words import HOW_TO_LABEL
from covshift.cli.errors import printable

MAX_TEXT = 200
MAX_RECORDINGS = 20  # with a line each


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result for a program: ASCII, so that no name in it steers a terminal."""
    typer.echo(json.dumps(result, indent=1, default=_plain))


def print_notes(notes: Sequence[str], quiet: bool = False) -> None:
    """Print what was decided, a line each; nothing if ``quiet``."""
    for note in [] if quiet else notes:
        typer.echo(f"- {printable(note, 600)}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in columns, numbers to the right."""
    headings = [printable(heading, 60) for heading in headings]
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    right = [bool(rows) and isinstance(cell, int | float) for cell in (rows[0] if rows else ())]
    for line in ([*headings], *cells):
        padded = [
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(line, widths, right or [False] * len(line), strict=True)
        ]
        typer.echo(f"  {'  '.join(padded)}".rstrip())


def shown(value: Any) -> str:
    """Return a value of any kind as short text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else printable(value, MAX_TEXT)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


# --- The assessment in a model's card, as the commands print it ---


def print_assessment(stored: Any) -> bool:
    """Print an assessment as a card stores it: advice, expected scores, basis.

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
    from covshift.selection.assessment_words import (
        describe_assessment,
        name_objective,
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
    """Return the `Assessment` of plain data; None: it is not one."""
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
