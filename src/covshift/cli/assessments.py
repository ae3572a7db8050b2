"""The assessment in a model's card, as the commands print it."""

from typing import Any

import typer

from covshift.cli.errors import printable
from covshift.cli.printing import print_table

HOW_TO_LABEL = (
    "Write rows of NEW with covshift diagnose --to-label FILE, fill in their labels, and adapt "
    "with --labels FILE"
)


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
    from covshift.selection.words import (
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
    from covshift.selection.expectations import Estimate

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
