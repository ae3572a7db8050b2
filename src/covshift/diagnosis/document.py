"""A diagnosis as a document: what moved, what holds, what to do, in this order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from covshift.diagnosis.expectation import Expectation
from covshift.diagnosis.gains import Gains
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.diagnosis.pictures import draw_gains, draw_rows
from covshift.diagnosis.words import (
    HOW_TO_LABEL,
    say_moved,
    say_stability,
    say_verdict,
    say_weighting,
)
from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_figure,
    make_section,
    make_table,
)
from covshift.report.schema import Cell, Document, Evidence, Figure, Mark, Section, Table

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

HEADLINES = {
    "adapt": "Adapt: {leading}",
    "no adaptation": "No adaptation: nothing is sure to help here",
    "not moved": "No adaptation is needed: nothing has moved",
    "undecidable": "Undecidable from these data",
}
WHAT_KINDS_SAY = (
    "How every remedy does where source rows play the target, against no adaptation, on the same "
    "rows. Source domains are real shifts. The common support are source rows like the target's. "
    "Rows moved like the target take for granted that the target is the source moved: they decide "
    "nothing."
)


def make_report(
    diagnosis: "Diagnosis",
    facts: Sequence[tuple[str, str]] = (),
    how_to_label: str = HOW_TO_LABEL,
) -> Document:
    """The document of a diagnosis; ``facts`` are pairs of a name and a text."""
    headline = HEADLINES[diagnosis.verdict.kind].format(leading=diagnosis.leading)
    n_source, n_target = diagnosis.n_rows
    looked_at = diagnosis.n_rows_looked_at
    counts = [
        ("rows", f"{n_source:,} source, {n_target:,} target"),
        ("looked at", f"{looked_at[0]:,} source, {looked_at[1]:,} target"),
    ]
    return make_document(
        headline,
        " ".join(say_verdict(diagnosis)[:1]),
        sections=[_moved(diagnosis), _holds(diagnosis), _to_do(diagnosis, how_to_label)],
        facts=[*counts, *facts],
        evidence=_scenes(diagnosis),
    )


def _moved(diagnosis: "Diagnosis") -> Section:
    return make_section(
        "moved",
        "What moved",
        paragraphs=[say_moved(diagnosis), say_weighting(diagnosis)],
        tables=[_features(diagnosis), _domains(diagnosis)],
        figures=_rows_figure(diagnosis),
    )


def _holds(diagnosis: "Diagnosis") -> Section:
    gains = draw_gains(diagnosis) if any(True for _ in diagnosis.evidence.items()) else None
    figures = []
    if gains is not None:
        figures.append(
            _picture(
                gains,
                "gains",
                "Gain of each remedy over no adaptation, with 95 % intervals.",
                "Gains with intervals, one panel for each kind of evidence.",
            )
        )
    return make_section(
        "holds",
        "What holds",
        paragraphs=[*say_stability(diagnosis), WHAT_KINDS_SAY],
        tables=[_hypotheses(diagnosis)],
        figures=figures,
    )


def _to_do(diagnosis: "Diagnosis", how_to_label: str) -> Section:
    return make_section(
        "do",
        "What to do",
        paragraphs=say_verdict(diagnosis, how_to_label),
        tables=[_expected(diagnosis.expectations, diagnosis.objective)],
    )


def _features(diagnosis: "Diagnosis") -> Table:
    rows = [
        {
            "feature": one.name,
            "distance": make_cell(f"{one.distance:.2f}", value=one.distance),
            "p": make_cell(f"{one.pvalue:.2g}", value=one.pvalue),
            "before": make_cell(f"{one.mean_before:.2f}", value=one.mean_before),
            "after": make_cell(f"{one.mean_after:.2f}", value=one.mean_after),
            "spread": _number(one.spread_ratio),
        }
        for one in diagnosis.movement.features
    ]
    columns = [
        make_column("feature", "feature"),
        make_column("distance", "distance", numeric=True, help="Kolmogorov-Smirnov, 0 to 1"),
        make_column("p", "p-value", numeric=True, help="adjusted for all features (Holm)"),
        make_column("before", "mean, source", numeric=True, help="in standard deviations"),
        make_column("after", "mean, target", numeric=True, help="in the same units"),
        make_column("spread", "spread, target / source", numeric=True),
    ]
    return make_table("features", "Features that moved most", columns, rows)


def _domains(diagnosis: "Diagnosis") -> Table:
    rows = [
        {
            "domain": one.name,
            "rows": one.n_rows,
            "effect": _number(one.effect_size),
            "p": _number(one.pvalue, "{:.2g}"),
            "overlap": _number(one.overlap, "{:.0%}"),
        }
        for one in diagnosis.movement.domains
    ]
    columns = [
        make_column("domain", "target domain"),
        make_column("rows", "rows", numeric=True),
        make_column("effect", "effect size", numeric=True, help="0: as the source; 1: all apart"),
        make_column("p", "p-value", numeric=True),
        make_column("overlap", "where the source has rows", numeric=True),
    ]
    return make_table("domains", "Target domains against the source", columns, rows)


def _hypotheses(diagnosis: "Diagnosis") -> Table:
    kinds = dict(diagnosis.evidence.items())
    rows = []
    for number, hypothesis in enumerate(all_hypotheses()):
        variant = diagnosis.variants[number]
        row: dict[str, Cell] = {
            "hypothesis": make_cell(hypothesis.name, help=hypothesis.assumption),
            "remedy": hypothesis.remedy,
            "variant": None if variant is None else variant.name,
            "fate": _fate(diagnosis, number),
        }
        for kind, gains in kinds.items():
            row[kind] = _gain(gains, number, kind)
        rows.append(row)
    columns = [
        make_column("hypothesis", "what may be shared"),
        make_column("remedy", "remedy"),
        make_column("variant", "tried best as"),
        *(make_column(kind, f"gain: {kind}", numeric=True) for kind in kinds),
        make_column("fate", "verdict"),
    ]
    return make_table("hypotheses", "What source and target may have in common", columns, rows)


def _fate(diagnosis: "Diagnosis", number: int) -> str:
    if number == diagnosis.verdict.leading:
        return "leads" if number == diagnosis.verdict.followed else "leads, not for sure"
    return "survives" if number in diagnosis.verdict.surviving else "refuted"


def _gain(gains: Gains, number: int, kind: str) -> Cell:
    gain = float(gains.gains[number])
    if np.isnan(gain):
        return None
    sure = gains.pvalues[number] <= 0.05
    mark: Mark | None = None
    if number:
        mark = ("helps" if gain > 0 else "harms") if sure else "unclear"
    return make_cell(f"{gain:+.3f}", value=gain, mark=mark, evidence=kind)


def _expected(expectations: Sequence[Expectation], objective: str) -> Table:
    rows = []
    for one in expectations:
        low, high = getattr(one, f"{objective}_interval")
        known = f"{getattr(one, objective):.2f} ({low:.2f} to {high:.2f})"
        rows.append(
            {
                "method": one.method,
                "assumption": one.assumption,
                "score": f"refuted: {', '.join(one.reasons)}" if one.refuted else known,
            }
        )
    columns = [
        make_column("method", "estimated by"),
        make_column("assumption", "if"),
        make_column("score", f"{objective.replace('_', ' ')} on the target"),
    ]
    return make_table("expected", "What to expect, without labels of the target", columns, rows)


def _scenes(diagnosis: "Diagnosis") -> dict[str, Evidence]:
    """Scores of every hypothesis in every scene, behind the gains."""
    columns = [make_column("scene", "scene")] + [
        make_column(one.name, one.name, numeric=True, digits=3) for one in all_hypotheses()
    ]
    tables = {}
    name = diagnosis.objective.replace("_", " ").capitalize()
    for kind, gains in diagnosis.evidence.items():
        rows: list[dict[str, Cell]] = []
        for number, scores in enumerate(gains.by_scene):
            row: dict[str, Cell] = {"scene": f"{kind} {number + 1}"}
            for hypothesis, score in zip(all_hypotheses(), scores, strict=True):
                row[hypothesis.name] = _number(float(score))
            rows.append(row)
        tables[kind] = make_evidence(f"{name}: {kind}", columns, rows)
    return tables


def _rows_figure(diagnosis: "Diagnosis") -> list[Figure]:
    figure = draw_rows(diagnosis)
    if figure is None:
        return []
    caption = "Source and target rows, before and, where it is adapted, after."
    return [_picture(figure, "rows", caption, "Scatter of source and target rows in the plane.")]


def _picture(figure: Any, figure_id: str, caption: str, alt: str) -> Figure:
    from covshift.report.figures import png_bytes  # needs an extra

    return make_figure(figure_id, caption, alt, png=png_bytes(figure))


def _number(value: float, form: str = "{:.2f}") -> Cell:
    return None if np.isnan(value) else make_cell(form.format(value), value=float(value))
