"""Sentences of an assessment. Every sentence is made from its numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from covshift.predictors.objectives import ACCURACY, MAE, name_objective
from covshift.registry import find_record
from covshift.selection.expected_scores import MARGIN, NUMBER_MARGIN, Estimate

if TYPE_CHECKING:  # assessments print these sentences
    from covshift.selection.assessment import Assessment

PLAIN_ROW, RECOMMENDED_ROW = "plain model", "recommended model"
VOTE_ROW = "ensemble, not recommended"
HOW_TO_LABEL = "Label the target rows of rows_to_label() and call update()."
N_TO_LABEL = 20
# Of an expected score of a model on new rows.
SCORE_ASSUMPTION = (
    "The score falls as far as on real data in which confidence, class proportions and features "
    "moved as they did here. A change of the labels alone, while rows stay alike, cannot be seen."
)
DIGITS = 2  # digits of scores and gains
# Kinds of rehearsals, as `covshift.selection.rehearsals` names them, in words.
REHEARSALS = {
    "source CV": "cross-validation",
    "moved": "source rows moved like the target",
    "class shares": "other class proportions",
    "label shares": "another distribution of the label",
    "source domains": "each source domain left out",
}


def describe_assessment(assessment: "Assessment", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Return the sentences of an assessment: the advice, its effect, its basis, what would help.

    ``how_to_label`` tells the reader how to bring in labels; those of a program differ.
    """
    return [
        say_advice(assessment),
        say_gain(assessment),
        *_say_error(assessment),
        *_say_basis(assessment),
        _say_determinable(assessment),
        *_say_next(assessment, how_to_label),
    ]


def assessment_text(assessment: "Assessment") -> str:
    """Return the words of an assessment in several lines, the expected scores below the advice."""
    advice, *sentences = describe_assessment(assessment)
    return "\n".join([advice, *score_lines(assessment), *sentences])


def score_lines(assessment: "Assessment") -> list[str]:
    """Return an assessment's words for the expected score of each model, in a line each."""
    heading = score_heading(assessment.objective)
    return [
        f"{heading}, {model}: {show_estimate(score, assessment.objective)}."
        for model, score in score_rows(assessment)
    ]


def score_heading(objective: str) -> str:
    """Return an assessment's words for expected scores."""
    return f"Expected {name_objective(objective)} (90 % interval)"


def say_advice(assessment: "Assessment") -> str:
    """Return an assessment's words for the action, with its confidence."""
    sure = f"{assessment.confidence} confidence"
    names = [name for name, _ in assessment.members]
    if assessment.action == "keep":
        return f"Advice: keep the plain model, {name_candidate(assessment.plain_name)} ({sure})."
    if len(names) == 1:
        return f"Advice: use {name_candidate(names[0])} ({sure})."
    others = [name for name in names if name != assessment.plain_name]
    leading = name_candidate(others[0])
    with_plain = len(others) < len(names)
    if len(others) == 1:
        models = leading
    elif with_plain:
        models = f"{len(others)} others, led by {leading}"
    else:
        models = f"{len(others)} models, led by {leading}"
    if with_plain:
        models = f"the plain model and {models}"
    if assessment.action == "combine":
        return f"Advice: do not adapt; average unadapted models: {models} ({sure})."
    return f"Advice: adapt, with an ensemble of {models} ({sure})."


def name_candidate(name: str) -> str:
    """Return the words of an assessment for a candidate, in a sentence.

    Examples
    --------
    >>> from covshift.selection.assessment_words import name_candidate
    >>> name_candidate("coral + logistic"), name_candidate("none + logistic")
    ('coral + logistic', 'logistic without an adapter')
    """
    adapter, plus, model = name.partition(" + ")
    return f"{model} without an adapter" if plus and adapter == "none" else name


class Shown(NamedTuple):
    """Scores of plain model and vote, and the gain between them, in the digits that are printed."""

    plain: Estimate
    vote: Estimate
    gain: Estimate


def as_shown(assessment: "Assessment") -> Shown:
    """Return an assessment's scores and gain to two digits: the gain is their difference."""
    plain = _rounded(assessment.plain)
    wanted = plain.value + round(assessment.vote_gain.value, DIGITS)
    if assessment.objective == MAE:  # in units of the label: they have digits of their own
        return Shown(assessment.plain, assessment.vote, assessment.vote_gain)
    if assessment.plain_error is None:
        wanted = float(np.clip(wanted, 0, 1))
    vote = _rounded(assessment.vote, wanted)
    gain = _rounded(assessment.vote_gain, vote.value - plain.value)
    return Shown(plain, vote, gain)


def _rounded(estimate: Estimate, value: float | None = None) -> Estimate:
    """An estimate in the digits that are printed, about ``value`` if given, within its interval."""
    shown = round(estimate.value if value is None else value, DIGITS)
    low, high = round(estimate.low, DIGITS), round(estimate.high, DIGITS)
    return Estimate(shown, min(low, shown), max(high, shown))


def score_rows(assessment: "Assessment") -> list[tuple[str, Estimate]]:
    """Return an assessment's expected scores as printed: of the plain model, then of the vote."""
    shown = as_shown(assessment)
    rows = [(PLAIN_ROW, shown.plain)]
    if assessment.action != "keep":
        rows.append((RECOMMENDED_ROW, shown.vote))
    elif assessment.vote != assessment.plain:
        rows.append((VOTE_ROW, shown.vote))
    return rows


def say_gain(assessment: "Assessment") -> str:
    """Return an assessment's words for the expected gain, and the probability of a loss."""
    metric = name_objective(assessment.objective)
    if assessment.vote == assessment.plain:
        return "No other model is expected to do better."
    gain = _show_gain(as_shown(assessment).gain, assessment.objective)
    numbers = assessment.plain_error is not None
    margin = f"{NUMBER_MARGIN} in R²" if numbers else MARGIN
    loss = f"Probability of losing more than {margin}: {percent(assessment.vote_loss_probability)}."
    changes = "It would change" if assessment.action == "keep" else "The recommended model changes"
    changed = f"{changes} {percent(assessment.disagreement)} of the predictions."
    if numbers:
        changed = (
            f"{changes} predictions by {assessment.disagreement:.2f} standard deviations of the "
            "labels (root mean square)."
        )
    if assessment.objective == MAE and assessment.action == "keep":
        return f"The ensemble would lower the {metric} by {gain}. {changed} {loss}"
    if assessment.action == "keep":
        told = f"The ensemble would change {metric} by {gain}. {changed} {loss}"
        return f"{told} {_say_kept(assessment)}"
    return f"Expected gain in {metric} over the plain model: {gain}. {changed} {loss}"


def _say_kept(assessment: "Assessment") -> str:
    """Return why the ensemble is not recommended."""
    if assessment.vote_gain.value <= 0:
        return "It is not recommended because no gain is expected."
    if assessment.vote_gain.value < assessment.min_gain:
        # Rounded down: a gain of .0099 must not read as .01, which was asked for.
        gain = np.floor(1000 * assessment.vote_gain.value) / 1000
        return (
            f"It is not recommended because its expected gain, {gain:.3f}, is below the required "
            f"gain of {assessment.min_gain:g}."
        )
    return (
        "It is not recommended because the probability of a loss is above the accepted "
        f"{percent(assessment.max_risk)}."
    )


def _say_error(assessment: "Assessment") -> list[str]:
    """Return the expected absolute error where the label is a number and R² was asked for."""
    error = assessment.recommended_error
    if error is None or assessment.objective == MAE:
        return []
    shown = show_estimate(error, MAE)
    return [f"Expected mean absolute error, in units of the label: {shown}, 90 % interval."]


def _say_basis(assessment: "Assessment") -> list[str]:
    """Return what the advice assumes, and how tests on source rows ended."""
    sentences = []
    adapters = dict.fromkeys(name.partition(" + ")[0] for name, _ in assessment.members)
    if assessment.action == "adapt":
        leading = next((one for one in adapters if one != "none"), None)
        assumption = _assumption(leading)
        if assumption:
            sentences.append(f"Assumption of {leading}, the leading adapter: {assumption}")
    else:
        sentences.append(f"Assumption: {_assumption('none')}")
    sign = -1 if assessment.objective == MAE else 1
    better = [  # by the digits that are shown
        row
        for row in assessment.rehearsals
        if show_score(row["plain"], assessment.objective)
        != show_score(row["vote"], assessment.objective)
        and sign * (row["vote"] - row["plain"]) > 0
    ]
    if assessment.rehearsals:
        shown = "; ".join(
            f"{REHEARSALS[row['rehearsal']]} {show_score(row['plain'], assessment.objective)} "
            f"and {show_score(row['vote'], assessment.objective)}"
            for row in assessment.rehearsals
        )
        sentences += [
            "Tests on source rows take some of them as the target and hide their labels. The "
            f"ensemble beats the plain model in {len(better)} of {len(assessment.rehearsals)} "
            "kinds of test.",
            f"Scores of the plain model and of the ensemble in these tests: {shown}.",
        ]
    if assessment.n_labels:
        sentences.append(f"The estimates use {assessment.n_labels} known target labels.")
    return sentences


def _say_determinable(assessment: "Assessment") -> str:
    """Return whether these data can show what continues in the target, and why."""
    found = assessment.determinability
    inside = f"{percent(found.overlap)} of the target rows lie where the source has rows"
    if found.by_overlap:
        return f"Tests on source rows apply to the target: {inside}."
    if found.by_domains:
        return (
            "Tests on source rows apply to the target: the source domains differ from each other "
            f"by {found.domain_shift:.2f} standard deviations of a feature, comparable to the "
            f"target's {found.target_shift:.2f}."
        )
    why = "there is one source domain"
    if found.n_domains == 2:
        why = "there are only two source domains"
    elif found.n_domains > 2:
        why = (
            "the source domains differ from each other far less than the target from them "
            f"({found.domain_shift:.2f} against {found.target_shift:.2f} standard deviations)"
        )
    known = "" if found.overlap != found.overlap else f", and only {inside}"
    if known and percent(found.overlap) == percent(0):
        known = ", and no target row lies where the source has rows"
    ends = (
        "The labels decide."
        if assessment.n_labels
        else "The advice is the choice that did best on real data in this situation."
    )
    return f"Which model is right cannot be determined from these data: {why}{known}. {ends}"


def _say_next(assessment: "Assessment", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Return what would settle the matter, unless it is settled."""
    if assessment.confidence == "high":
        return []
    more = "More labels narrow the intervals further."
    if not assessment.n_labels:
        more = f"{N_TO_LABEL} labels already narrow the intervals."
    domains = assessment.determinability.n_domains < 3
    also = " More source domains would help, too." if domains else ""
    return [f"To be more certain: {how_to_label[:1].lower()}{how_to_label[1:]} {more}{also}"]


def say_number(value: float) -> str:
    """Return an assessment's words for a number: to four digits, large ones in full.

    Examples
    --------
    >>> from covshift.selection.assessment_words import say_number
    >>> say_number(5060.66), say_number(0.012345), say_number(40.0)
    ('5,061', '0.01235', '40')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def show_score(value: float, objective: str = ACCURACY) -> str:
    """Return an assessment's words for a score; errors are in label units, to four digits."""
    return say_number(value) if objective == MAE else f"{value:.2f}"


def show_estimate(estimate: Estimate, objective: str = ACCURACY) -> str:
    """Return an assessment's words for a score with its interval."""
    value, low, high = (show_score(one, objective) for one in estimate)
    return f"{value} ({low} to {high})"


def _show_gain(estimate: Estimate, objective: str = ACCURACY) -> str:
    """Return a gain with its interval."""
    if objective == MAE:
        value, low, high = (f"{'+' if one >= 0 else ''}{say_number(one)}" for one in estimate)
        return f"{value} (90 % interval {low} to {high})"
    value = _signed(estimate.value) if round(estimate.value, DIGITS) else "less than 0.01"
    return f"{value} (90 % interval {_signed(estimate.low)} to {_signed(estimate.high)})"


def percent(share: float) -> str:
    """Return an assessment's words for a share: in percent; NaN: unknown."""
    return "an unknown share" if share != share else f"{100 * share:.0f} %"


def _signed(value: float) -> str:
    return f"{value:+.{DIGITS}f}" if round(value, DIGITS) else f"{0:.{DIGITS}f}"


def _assumption(adapter: str | None) -> str | None:
    """Return the assumption of an adapter of the registry; None: it is a user's own."""
    if adapter is None:
        return None
    try:
        return find_record(adapter).assumption
    except ValueError:
        return None


def adapter_rows(leaderboard: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return words on each adapter of a leaderboard: its best candidate, and what it assumes.

    The weights are those of all its candidates in the ensemble. In the order of the expected gain.
    """
    rows: dict[str, dict[str, Any]] = {}
    for one in leaderboard:
        row = rows.setdefault(
            one["adapter"],
            {
                "adapter": one["adapter"],
                "assumption": _assumption(one["adapter"]),
                "candidate": one["candidate"],
                "expected gain": float("nan"),
                "weight": 0.0,
                "disqualified": one["disqualified"],
            },
        )
        row["weight"] += one["weight"]
        gain = one["expected gain"]
        if one["disqualified"] is None and not row["expected gain"] >= gain:
            row |= {
                "candidate": one["candidate"],
                "expected gain": gain,
                "disqualified": None,
            }
    return sorted(
        rows.values(),
        key=lambda row: -row["expected gain"] if row["disqualified"] is None else float("inf"),
    )


def capitalized(text: str) -> str:
    """Return words with a capital as first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]
