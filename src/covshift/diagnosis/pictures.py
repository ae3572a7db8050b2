"""Pictures of a diagnosis: rows before and after, expected scores and gains."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from covshift.kernels.arrays import FloatArray
from covshift.predictors.fitting import adapt_rows
from covshift.registry import NO_ADAPTATION
from covshift.selection.candidates import Candidate
from covshift.selection.problem import Problem, target_scene
from covshift.selection.words import name_objective, score_rows

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

GAINS = "expected gain over the plain model, by adapter"
MAX_FEATURES = 50  # two axes cannot represent more
MAX_CLASSES = 2  # shown in different colors
MAX_NAME = 30  # letters of a class in the legend; longer ones are numbered


def draw_expected(diagnosis: "Diagnosis") -> Any:
    """Return a figure of expected scores with 90 % intervals, and of the gain of each adapter."""
    from covshift.report.plane_figures import draw_intervals  # needs an extra

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
    """Return a figure of source and target before and after the leading adapter.

    None where there are too many features. Above two features, the first two principal axes of all
    rows shown.
    """
    from covshift.report.plane_figures import draw_planes  # needs an extra

    problem = diagnosis._bench.problem
    n_features = problem.X_source.shape[1]
    if not 2 <= n_features <= MAX_FEATURES:
        return None
    planes = {"before": _plane(problem.X_source, problem.X_target)}
    leader = leading_adapter(diagnosis)
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


def leading_adapter(diagnosis: "Diagnosis") -> Candidate | None:
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
        spread = rows.std(axis=0)
        rows = PCA(2, random_state=0).fit_transform(rows / np.where(spread > 0, spread, 1.0))
        return rows[: len(A)], rows[len(A) :]
    return A[:, :2], B[:, :2]


def _kinds(
    A: FloatArray, B: FloatArray, problem: Problem, classes: Sequence[str]
) -> dict[str, FloatArray]:
    """Return the source rows by class, if these are two, and target rows."""
    if problem.n_classes > MAX_CLASSES or problem.values is not None:
        return {"source": A, "target": B}
    if any(len(name) > MAX_NAME or not name.strip() for name in classes):
        classes = [f"class {k + 1}" for k in range(problem.n_classes)]
    kinds = {f"source: {name}": A[problem.codes == k] for k, name in enumerate(classes)}
    return kinds | {"target": B}
