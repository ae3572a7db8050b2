"""All texts of a diagnosis: for the terminal, the notebook and the report.

The advice is in the words of `covshift.selection.assessment_words`, which the commands and model
cards use.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from covshift.selection.assessment_words import (
    HOW_TO_LABEL,
    describe_assessment,
    percent,
    score_heading,
    score_lines,
    score_rows,
    show_estimate,
)

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

OBSTACLES = {
    "rows": "there are too few rows",
    "overlap": "too many target rows lie where the source has none",
    "effective size": "too few source rows would carry the weight",
    "tail": "a few source rows would carry nearly all of the weight",
    "left over": "weighted source rows still differ from target rows",
}
TITLES = {
    "adapt": "Adapt to the target",
    "combine": "Do not adapt; average unadapted models",
    "keep": "Keep the plain model",
}
NO_ASSESSMENT = (
    "Expected scores cannot be given: the plain model failed to fit in tests on parts of the "
    "source rows, as it does if a class has very few. The leaderboard has the errors."
)
# How a shift of the label alone is called, and the end of a sentence about it.
LABEL_SHIFT = {
    "classification": ("Different class proportions", "they do"),
    "regression": ("A different distribution of the label (label shift)", "it does"),
}
# Of the report.
TESTS_EXPLAINED = (
    "Each test takes some source rows as the target, hides their labels from the models, and then "
    "scores the predictions. The expected gain of an adapter is that of its best candidate over "
    "the plain model."
)
EXPECTED_CAPTION = "Expected scores with 90 % intervals, and the expected gain of each adapter."
EXPECTED_ALT = "Points with intervals: scores of the plain and the recommended model; gains."
ROWS_CAPTION = "Source and target rows before adaptation and, if it is advised, after it."
ROWS_ALT = "Scatter of source and target rows in the plane."
MANY_EXPLAINED = 0.8  # share of the AUC above .5 that counts as explained by one cause


def say_title(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis's heading."""
    found = diagnosis.assessment
    return (
        "Diagnosis" if found is None else f"{TITLES[found.action]}: {found.confidence} confidence"
    )


def say_advised(diagnosis: "Diagnosis", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Return the words of a diagnosis on the assessment."""
    if diagnosis.assessment is None:
        return [NO_ASSESSMENT]
    return describe_assessment(diagnosis.assessment, how_to_label)


def summarize(diagnosis: "Diagnosis", how_to_label: str = HOW_TO_LABEL) -> list[str]:
    """Return a diagnosis in words: what moved, whether weights could work, stability, advice.

    ``how_to_label`` tells the reader how to bring in labels; those of a program differ.
    """
    return [*say_findings(diagnosis), *say_advised(diagnosis, how_to_label)]


def say_findings(diagnosis: "Diagnosis") -> list[str]:
    """Return the words of a diagnosis on what was found beside the advice."""
    return [
        say_moved(diagnosis),
        say_weighting(diagnosis),
        *say_stability(diagnosis),
        *say_skipped(diagnosis),
    ]


def describe(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis and the expected scores as a text of several lines."""
    lines = [say_rows(diagnosis), *(f"- {one}" for one in summarize(diagnosis))]
    if diagnosis.assessment is not None:
        lines += [f"- {one}" for one in score_lines(diagnosis.assessment)]
    return "\n".join(lines)


def describe_html(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis as a list, with scores and adapters, for a notebook."""
    sentences = "".join(f"<li>{escape(one)}</li>" for one in summarize(diagnosis))
    tables = ""
    if diagnosis.assessment is not None:
        scores = [
            (name, show_estimate(one, diagnosis.objective))
            for name, one in score_rows(diagnosis.assessment)
        ]
        tables += _html_table(("model", score_heading(diagnosis.objective)), scores)
    adapters = [
        (row["adapter"], row["candidate"], say_expected_gain(row), f"{row['weight']:.2f}")
        for row in diagnosis.table
    ]
    tables += _html_table(("adapter", "best candidate", "expected gain", "weight"), adapters)
    return f"<ul>{sentences}</ul>{tables}"


def _html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def say_expected_gain(row: dict[str, Any]) -> str:
    """Return the words of a diagnosis on an adapter's expected gain, or why it has none."""
    if row["disqualified"] is not None:
        return f"none: {row['disqualified']}"
    return f"{row['expected gain']:+.3f}"


def say_rows(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis on the number of rows, and how many were examined."""
    n_source, n_target = diagnosis.n_rows
    sentence = f"Diagnosis of {n_source:,} source and {n_target:,} target rows"
    if diagnosis.n_rows_looked_at != diagnosis.n_rows:
        source, target = diagnosis.n_rows_looked_at
        sentence += f"; {source:,} and {target:,} of them, drawn at random, were examined"
    return sentence


def say_moved(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis on whether rows moved, by how much, which features most."""
    movement = diagnosis.movement
    if movement.auc != movement.auc and not movement.moved:
        return "There are too few rows to detect whether they moved."
    separates = f"a classifier separates source rows from target rows with AUC {movement.auc:.2f}"
    if not movement.moved:
        return f"No shift was detected: {separates}, and 0.5 is chance."
    counted = f"{movement.n_features_moved} of {movement.n_features} features moved"
    names = ", ".join(one.name for one in movement.features[: min(3, movement.n_features_moved)])
    sentence = f"The rows have moved: {separates}; {counted}{f' (most: {names})' if names else ''}."
    if movement.share_explained >= MANY_EXPLAINED:
        cause, verb = LABEL_SHIFT[diagnosis.task]
        sentence += f" {cause} alone could explain this; the rows cannot show whether {verb}."
    return sentence


def say_weighting(diagnosis: "Diagnosis") -> str:
    """Return the words of a diagnosis on whether weights could work, and why not."""
    weighting = diagnosis.weighting
    inside = ""
    if weighting.overlap == weighting.overlap:
        inside = f"{percent(weighting.overlap)} of the target rows lie where the source has rows"
    if weighting.possible:
        return f"Weighting the source rows can work: {inside}."
    obstacles = OBSTACLES | ({"overlap": f"only {inside}"} if inside else {})
    reasons = "; ".join(obstacles[name] for name in weighting.obstacles)
    return f"Weighting the source rows does not suit these data: {reasons}."


def say_stability(diagnosis: "Diagnosis") -> list[str]:
    """Return the words of a diagnosis on whether P(y | x) is the same in all source domains.

    Nothing, if there is one domain.
    """
    stability = diagnosis.stability
    if stability.obstacle == "one domain":
        return []
    depends = "the label depends on the features in the same way in all source domains"
    if not stability.tested:
        return [f"Whether {depends} cannot be determined from these data: their rows lie apart."]
    p = f"p = {stability.pvalue:.2g}"
    if stability.refuted:
        return [
            f"The label depends on the features in different ways in the source domains ({p}). "
            f"{LABEL_SHIFT[diagnosis.task][0]}, or a non-linear rule, could also explain this."
        ]
    return [
        "No evidence was found that the label depends on the features in different ways in the "
        f"source domains ({p})."
    ]


def say_skipped(diagnosis: "Diagnosis") -> list[str]:
    """Return the words of a diagnosis on what there was no time for."""
    if not diagnosis.skipped:
        return []
    return [f"Skipped for lack of time: {', '.join(diagnosis.skipped)}."]
