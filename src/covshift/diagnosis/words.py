"""What a diagnosis says, in words: for the terminal, the notebook and the report."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from covshift.diagnosis.expectation import choose_expectation
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.diagnosis.labelling import labels_needed

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

OBSTACLES = {
    "rows": "there are too few rows",
    "overlap": "too many target rows lie where the source has none",
    "effective size": "too few source rows would carry the weight",
    "tail": "a few source rows would carry nearly all of the weight",
    "left over": "weighted source rows still differ from the target's",
}


HOW_TO_LABEL = "Label the target rows of rows_to_label() and call update()"


def summarise(diagnosis: "Diagnosis", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Sentences: what moved, what holds, what to do, in this order.

    ``how_to_label`` tells the reader how to bring in labels; those of a program differ.
    """
    verdict = say_verdict(diagnosis, how_to_label)
    return [
        say_moved(diagnosis),
        say_weighting(diagnosis),
        *say_stability(diagnosis),
        *verdict,
    ]


def describe(diagnosis: "Diagnosis") -> str:
    """The sentences as a text of several lines."""
    return "\n".join([say_rows(diagnosis), *(f"- {one}" for one in summarise(diagnosis))])


def describe_html(diagnosis: "Diagnosis") -> str:
    """The sentences as a list, and the hypotheses with their gains, for a notebook."""
    sentences = "".join(f"<li>{escape(one)}</li>" for one in summarise(diagnosis))
    kinds = [kind for kind, _ in diagnosis.evidence.items()]
    head = "".join(f"<th>{escape(one)}</th>" for one in ("hypothesis", *kinds, "survives"))
    rows = ""
    for row in diagnosis.table:
        gains = [row[f"gain: {kind}"] for kind in kinds]
        shown = ["" if gain is None else f"{gain:+.3f}" for gain in gains]
        cells = [row["hypothesis"], *shown, "yes" if row["survives"] else "no"]
        rows += "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    return f"<ul>{sentences}</ul><table><tr>{head}</tr>{rows}</table>"


def say_rows(diagnosis: "Diagnosis") -> str:
    """How many rows there are, and how many of them were looked at."""
    n_source, n_target = diagnosis.n_rows
    sentence = f"Diagnosis of {n_source:,} source and {n_target:,} target rows"
    if diagnosis.n_rows_looked_at != diagnosis.n_rows:
        source, target = diagnosis.n_rows_looked_at
        sentence += f", of which {source:,} and {target:,} were drawn and looked at"
    return sentence


def say_moved(diagnosis: "Diagnosis") -> str:
    """Whether the rows have moved, and by how much."""
    movement = diagnosis.movement
    if not movement.moved:
        return "The rows have not moved: source and target cannot be told apart."
    told = f"The rows have moved: a row's side is told with AUC {movement.auc:.2f}"
    features = f"{movement.n_features_moved} of {movement.n_features} features moved"
    names = ", ".join(one.name for one in movement.features[: min(3, movement.n_features_moved)])
    sentence = f"{told}; {features}{f', {names} most' if names else ''}."
    if movement.share_explained >= 0.8:
        sentence += (
            " Other class shares alone would explain it; that they do cannot be seen in the rows."
        )
    return sentence


def say_weighting(diagnosis: "Diagnosis") -> str:
    """Whether weights can work."""
    weighting = diagnosis.weighting
    outside = f"{1 - weighting.overlap:.0%} of the target rows lie where the source has none"
    if weighting.possible:
        return f"Weighting can work: {outside}."
    reasons = "; ".join(OBSTACLES[name] for name in weighting.obstacles)
    return f"Weighting cannot work: {reasons} ({outside})."


def say_stability(diagnosis: "Diagnosis") -> list[str]:
    """Whether P(y | x) is the same in all source domains; nothing, if there is but one."""
    stability = diagnosis.stability
    if stability.obstacle == "one domain":
        return []
    if not stability.tested:
        return [
            "Whether the label depends on the features in the same way in all source domains "
            "cannot be seen: their rows lie apart."
        ]
    p = f"p = {stability.pvalue:.2g}"
    if stability.refuted:
        return [
            f"The label depends on the features in different ways in the source domains ({p}). "
            "Other class shares alone would look so, and so would a rule too bent for these rows "
            "to show."
        ]
    return [
        "No difference was seen between the source domains in how the label depends on the "
        f"features ({p})."
    ]


def say_verdict(diagnosis: "Diagnosis", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """What to do, and what to expect of it."""
    verdict = diagnosis.verdict
    if verdict.kind == "undecidable":
        return say_undecidable(diagnosis, how_to_label)
    if verdict.kind == "not moved":
        return ["No adaptation is needed.", *say_expected(diagnosis)]
    if verdict.kind == "no adaptation":
        sentence = f"No adaptation: by the {verdict.decided_by}, nothing is sure to help here."
        return [sentence, *say_unsure(diagnosis), *say_expected(diagnosis)]
    leading = all_hypotheses()[verdict.followed]
    sentences = [
        f"Adapt: by the {verdict.decided_by}, {leading.name} leads ({leading.assumption}). Use "
        f"{leading.remedy}: {_say_gain(diagnosis)}."
    ]
    if not np.isnan(verdict.agreement):
        sentences.append(
            "That does not hinge on single source domains: without one of them, it says nearly the "
            f"same of the target ({_say_agreement(verdict.agreement)})."
        )
    others = [name for name in diagnosis.surviving if name != leading.name]
    if others:
        sentences.append(f"Not refuted either: {', '.join(others)}; so they vote together.")
    return [*sentences, *say_expected(diagnosis)]


def say_unsure(diagnosis: "Diagnosis") -> list[str]:
    """What leads without being sure to help, if anything."""
    verdict = diagnosis.verdict
    if not verdict.leading:
        return []
    leading = all_hypotheses()[verdict.leading]
    nearest = f"What comes nearest is {leading.name} ({leading.remedy}): {_say_gain(diagnosis)}."
    if verdict.hinges:
        nearest += (
            " But that hinges on single source domains: without one of them, it says other things "
            f"of the target ({_say_agreement(verdict.agreement)})."
        )
    return [f"{nearest} More source domains, or some labels of target rows, would tell."]


def _say_agreement(agreement: float) -> str:
    return f"agreement {agreement:.2f}; 1: all the same, 0: as by chance"


def _say_gain(diagnosis: "Diagnosis") -> str:
    """What the leading hypothesis changes on the target, and gains."""
    verdict = diagnosis.verdict
    low, high = verdict.gain_interval
    return (
        f"it predicts {diagnosis.share_changed:.0%} of the target rows otherwise and gains "
        f"{verdict.gain:+.3f} {diagnosis.objective.replace('_', ' ')} there, probably {low:+.3f} "
        f"to {high:+.3f}"
    )


def say_undecidable(diagnosis: "Diagnosis", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Why nobody can know, what would follow from each hypothesis, and what would decide."""
    decidability, labels = diagnosis.decidability, diagnosis.labels
    if labels is not None:
        why = f"{labels.n_labels} labelled rows do not decide yet."
    elif diagnosis.skipped:
        why = f"There was no time for the evidence of {', '.join(diagnosis.skipped)}."
    elif decidability.n_domains < 2:
        why = "There is one source domain, and the target lies where it has too few rows."
    else:
        why = (
            "The source domains differ from each other far less than the target from them "
            f"({decidability.domain_shift:.2f} against {decidability.target_shift:.2f} standard "
            "deviations), and the target lies where they have too few rows."
        )
    sentences = [f"Undecidable from these data. {why}"]
    moved = diagnosis.evidence.rows_moved
    for number in diagnosis.verdict.surviving[1:]:
        hypothesis = all_hypotheses()[number]
        if moved is not None and not np.isnan(moved.gains[number]):
            sentences.append(
                f"If {hypothesis.assumption}: {hypothesis.remedy}; nothing here tests that."
            )
    sentences.append(
        f"{how_to_label}: about {labels_needed()} of them settle between two hypotheses."
    )
    return sentences


def say_expected(diagnosis: "Diagnosis") -> list[str]:
    """The accuracy to expect, or that it cannot be told, and why."""
    found = choose_expectation(diagnosis.expectations)
    if found is None:
        untold = "What accuracy to expect on the target cannot be told without labels"
        not_carried = [one for one in diagnosis.expectations if "not carried over" in one.reasons]
        if not not_carried:
            return [f"{untold}."]
        reached = not_carried[0].evidence
        return [
            f"{untold}: this model hardly carries over from source domain to source domain. By its "
            f"own rows, one is predicted with balanced accuracy "
            f"{reached['own_balanced_accuracy']:.2f}, by the others' with "
            f"{reached['mean_balanced_accuracy']:.2f}, on average."
        ]
    name = diagnosis.objective
    low, high = getattr(found, f"{name}_interval")
    return [
        f"Expected {name.replace('_', ' ')} on the target: {getattr(found, name):.2f} ({low:.2f} "
        f"to {high:.2f}), if {found.assumption}."
    ]
