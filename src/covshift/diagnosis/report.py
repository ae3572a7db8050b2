"""A diagnosis as a document: what moved, the evidence, the advice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from covshift.diagnosis.diagnosis_words import (
    EXPECTED_ALT,
    EXPECTED_CAPTION,
    ROWS_ALT,
    ROWS_CAPTION,
    TESTS_EXPLAINED,
    say_advised,
    say_expected_gain,
    say_moved,
    say_skipped,
    say_stability,
    say_title,
    say_weighting,
)
from covshift.kernels.array_types import FloatArray
from covshift.kernels.feature_scales import feature_scales
from covshift.predictors.fit_and_predict import adapt_rows
from covshift.predictors.objectives import name_objective
from covshift.registry import NO_ADAPTATION
from covshift.report.document import (
    Cell,
    Document,
    Figure,
    Section,
    Table,
    make_cell,
    make_column,
    make_document,
    make_figure,
    make_section,
    make_table,
)
from covshift.selection.assessment_words import (
    HOW_TO_LABEL,
    REHEARSALS,
    capitalized,
    percent,
    score_heading,
    score_rows,
    show_estimate,
)
from covshift.selection.bench import Problem, target_scene
from covshift.selection.candidates import Candidate

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis


# --- Pictures of a diagnosis: rows before and after, expected scores and gains ---


GAINS = "expected gain over the plain model, by adapter"
MAX_DRAWN_FEATURES = 50  # two axes cannot represent more
MAX_CLASSES = 2  # shown in different colors
MAX_CLASS_NAME = 30  # letters of a class in the legend; longer ones are numbered


def draw_expected(diagnosis: "Diagnosis") -> Any:
    """Return a diagnosis report's figure of expected scores with 90 % intervals, and of gains."""
    from covshift.report.figures import draw_intervals  # needs an extra

    panels: dict[str, dict[str, tuple[float, float, float]]] = {}
    if diagnosis.assessment is not None:
        panels[f"expected {name_objective(diagnosis.objective)}"] = {
            name: (score.value, score.low, score.high)
            for name, score in score_rows(diagnosis.assessment)
        }
    gains = [(row["adapter"], row["expected gain"]) for row in diagnosis.table]
    panels[GAINS] = {name: (gain, gain, gain) for name, gain in gains if np.isfinite(gain)}
    return draw_intervals(panels, about_zero=[GAINS])


def draw_rows(diagnosis: "Diagnosis") -> Any | None:
    """Return a diagnosis report's figure of rows before and after the leading adapter.

    None where there are too many features. Above two features, the first two principal axes of all
    rows shown.
    """
    from covshift.report.figures import draw_planes  # needs an extra

    problem = diagnosis._bench.problem
    n_features = problem.X_source.shape[1]
    if not 2 <= n_features <= MAX_DRAWN_FEATURES:
        return None
    planes = {"before": _plane(problem.X_source, problem.X_target)}
    leader = _leading_adapter(diagnosis)
    if leader is not None:
        planes[f"after {leader.adapter_name}"] = _plane(*_adapted(leader.adapter, problem))
    axes = ("first axis", "second axis")
    if n_features == 2 and len(planes) == 1:
        names = diagnosis.feature_names or ["x0", "x1"]
        axes = (names[0], names[1])
    classes = [str(one) for one in diagnosis.classes]
    return draw_planes(
        {title: _kinds(*rows, problem, classes) for title, rows in planes.items()}, axes
    )


def _leading_adapter(diagnosis: "Diagnosis") -> Candidate | None:
    """Return the heaviest member that adapts the representation of rows; None: there is none."""
    members = [] if diagnosis.assessment is None else diagnosis.assessment.members
    by_name = {one.name: one for one in diagnosis._bench.candidates}
    for name, _ in members:
        one = by_name[name]
        if one.adapts and one.adapter_name != NO_ADAPTATION and hasattr(one.adapter, "transform"):
            return one
    return None


def _adapted(adapter: Any, problem: Problem) -> tuple[FloatArray, FloatArray]:
    scene = target_scene(problem)
    classes = problem.codes if problem.values is None else None
    rows = adapt_rows(adapter, scene.X, classes, scene.domains, keep_all=True)
    Z = np.asarray(rows.everything)
    return Z[: len(problem.X_source)], Z[len(problem.X_source) :]


def _plane(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both samples in two dimensions: as they are, or on their first two principal axes."""
    if A.shape[1] > 2:
        rows = np.concatenate([A, B])
        rows = PCA(2, random_state=0).fit_transform(rows / feature_scales(rows))
        return rows[: len(A)], rows[len(A) :]
    return A[:, :2], B[:, :2]


def _kinds(
    A: FloatArray, B: FloatArray, problem: Problem, classes: Sequence[str]
) -> dict[str, FloatArray]:
    """Return the source rows by class, if these are two, and target rows."""
    if problem.n_classes > MAX_CLASSES or problem.values is not None:
        return {"source": A, "target": B}
    if any(len(name) > MAX_CLASS_NAME or not name.strip() for name in classes):
        classes = [f"class {k + 1}" for k in range(problem.n_classes)]
    kinds = {f"source: {name}": A[problem.codes == k] for k, name in enumerate(classes)}
    return kinds | {"target": B}


def make_report(
    diagnosis: "Diagnosis",
    facts: Sequence[tuple[str, str]] = (),
    how_to_label: str = HOW_TO_LABEL,
) -> Document:
    """Return the document of a diagnosis; ``facts`` are pairs of a name and a text."""
    n_source, n_target = diagnosis.n_rows
    looked_at = diagnosis.n_rows_looked_at
    counts = [
        ("rows", f"{n_source:,} source, {n_target:,} target"),
        ("rows used", f"{looked_at[0]:,} source, {looked_at[1]:,} target"),
        ("objective", name_objective(diagnosis.objective)),
    ]
    return make_document(
        say_title(diagnosis),
        " ".join(say_advised(diagnosis, how_to_label)[:2]),
        sections=[_moved(diagnosis), _evidence(diagnosis), _advice(diagnosis, how_to_label)],
        facts=[*counts, *facts],
    )


def _moved(diagnosis: "Diagnosis") -> Section:
    return make_section(
        "moved",
        "What moved",
        paragraphs=[say_moved(diagnosis)],
        tables=[_features(diagnosis), _domains(diagnosis)],
        figures=_rows_figure(diagnosis),
    )


def _evidence(diagnosis: "Diagnosis") -> Section:
    paragraphs = [say_weighting(diagnosis), *say_stability(diagnosis), *say_skipped(diagnosis)]
    return make_section(
        "evidence",
        "Evidence",
        paragraphs=[*paragraphs, TESTS_EXPLAINED],
        tables=[*_rehearsals(diagnosis), _adapters(diagnosis)],
    )


def _advice(diagnosis: "Diagnosis", how_to_label: str) -> Section:
    tables: list[Table] = []
    figures: list[Figure] = []
    if diagnosis.assessment is not None:
        objective = diagnosis.objective
        rows: list[dict[str, Cell]] = [
            {"model": name, "score": make_cell(show_estimate(score, objective), value=score.value)}
            for name, score in score_rows(diagnosis.assessment)
        ]
        columns = [
            make_column("model", "model"),
            make_column("score", score_heading(diagnosis.objective), numeric=True),
        ]
        tables = [make_table("expected", "Expected scores on the target", columns, rows)]
        figure = draw_expected(diagnosis)
        figures = [_picture(figure, "expected", EXPECTED_CAPTION, EXPECTED_ALT)]
    return make_section(
        "advice",
        "Advice",
        paragraphs=say_advised(diagnosis, how_to_label),
        tables=tables,
        figures=figures,
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
            "overlap": None
            if np.isnan(one.overlap)
            else make_cell(percent(one.overlap), value=one.overlap),
        }
        for one in diagnosis.movement.domains
    ]
    columns = [
        make_column("domain", "target domain"),
        make_column("rows", "rows", numeric=True),
        make_column(
            "effect", "effect size", numeric=True, help="0: like the source; 1: completely separate"
        ),
        make_column("p", "p-value", numeric=True),
        make_column(
            "overlap",
            "overlap",
            numeric=True,
            help="share of rows that lie where the source has rows",
        ),
    ]
    return make_table("domains", "Target domains against the source", columns, rows)


def _rehearsals(diagnosis: "Diagnosis") -> list[Table]:
    if diagnosis.assessment is None:
        return []
    rows = [
        {
            "rehearsal": REHEARSALS[row["rehearsal"]],
            "plain": _number(row["plain"]),
            "vote": _number(row["vote"]),
        }
        for row in diagnosis.assessment.rehearsals
    ]
    columns = [
        make_column("rehearsal", "test"),
        make_column("plain", "plain model", numeric=True),
        make_column("vote", "ensemble", numeric=True),
    ]
    name = capitalized(name_objective(diagnosis.objective))
    return [make_table("rehearsals", f"{name} in tests on source rows", columns, rows)]


def _adapters(diagnosis: "Diagnosis") -> Table:
    rows = [
        {
            "adapter": row["adapter"],
            "candidate": row["candidate"],
            "gain": make_cell(
                say_expected_gain(row), value=_finite(row["expected gain"], row["disqualified"])
            ),
            "weight": _number(row["weight"]) if row["weight"] else None,
            "assumption": row["assumption"],
        }
        for row in diagnosis.table
    ]
    columns = [
        make_column("adapter", "adapter"),
        make_column("candidate", "best candidate"),
        make_column("gain", "expected gain", numeric=True),
        make_column("weight", "weight", numeric=True, help="in the recommended model"),
        make_column("assumption", "assumes"),
    ]
    return make_table("adapters", "Adapters", columns, rows)


def _rows_figure(diagnosis: "Diagnosis") -> list[Figure]:
    figure = draw_rows(diagnosis)
    if figure is None:
        return []
    return [_picture(figure, "rows", ROWS_CAPTION, ROWS_ALT)]


def _picture(figure: Any, figure_id: str, caption: str, alt: str) -> Figure:
    from covshift.report.figures import png_bytes  # needs an extra

    return make_figure(figure_id, caption, alt, png=png_bytes(figure))


def _finite(value: float, disqualified: str | None) -> float | None:
    return None if disqualified is not None or not np.isfinite(value) else float(value)


def _number(value: float, form: str = "{:.2f}") -> Cell:
    return None if np.isnan(value) else make_cell(form.format(value), value=float(value))
