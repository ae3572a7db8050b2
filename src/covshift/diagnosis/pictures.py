"""Pictures of a diagnosis: rows before and after, and gains with their intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.kernels.arrays import FloatArray
from covshift.predictors.fitting import adapt_rows
from covshift.selection.problem import Problem, target_scene

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

MAX_FEATURES = 50  # above which two axes show too little to be worth a picture
MAX_CLASSES = 2  # told apart in colours
MAX_NAME = 30  # letters of a class in the legend; longer ones are numbered


def draw_gains(diagnosis: "Diagnosis") -> Any:
    """A figure of the gains of all hypotheses, one panel for each kind of evidence."""
    from covshift.report.plane_figures import draw_intervals  # needs an extra

    panels = {}
    for kind, gains in diagnosis.evidence.items():
        panels[kind] = {
            hypothesis.name: (gains.gains[number], *gains.intervals[number])
            for number, hypothesis in enumerate(all_hypotheses())
            if number and not np.isnan(gains.gains[number])
        }
    return draw_intervals(panels, name="gain over no adaptation")


def draw_rows(diagnosis: "Diagnosis") -> Any | None:
    """A figure of source and target before and after the leading adapter; None: too many features.

    Above two features, the first two principal axes of all rows shown.
    """
    from covshift.report.plane_figures import draw_planes  # needs an extra

    problem = diagnosis._bench.problem
    n_features = problem.X_source.shape[1]
    if not 2 <= n_features <= MAX_FEATURES:
        return None
    planes = {"before": _plane(problem.X_source, problem.X_target)}
    variant = diagnosis.variants[diagnosis.verdict.followed]
    if diagnosis.verdict.kind == "adapt" and variant is not None:
        planes[f"after {variant.adapter_name}"] = _plane(*_adapted(variant.adapter, problem))
    axes = ("first axis", "second axis")
    if n_features == 2 and len(planes) == 1:
        names = diagnosis.feature_names or ["x0", "x1"]
        axes = (names[0], names[1])
    classes = [str(one) for one in diagnosis.classes]
    return draw_planes(
        {title: _kinds(*rows, problem, classes) for title, rows in planes.items()}, axes
    )


def _adapted(adapter: Any, problem: Problem) -> tuple[FloatArray, FloatArray]:
    scene = target_scene(problem)
    rows = adapt_rows(adapter, scene.X, problem.codes, scene.domains, keep_all=True)
    Z = np.asarray(rows.everything)
    return Z[: len(problem.X_source)], Z[len(problem.X_source) :]


def _plane(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both samples in two dimensions: as they are, or on their first two principal axes."""
    if A.shape[1] > 2:
        rows = np.concatenate([A, B])
        spread = rows.std(axis=0)
        rows = PCA(2, random_state=0).fit_transform(rows / np.where(spread > 0, spread, 1.0))
        return rows[: len(A)], rows[len(A) :]
    return A[:, :2], B[:, :2]


def _kinds(
    A: FloatArray, B: FloatArray, problem: Problem, classes: Sequence[str]
) -> dict[str, FloatArray]:
    """Source rows by class, if these are two, and target rows."""
    if problem.n_classes > MAX_CLASSES:
        return {"source": A, "target": B}
    if any(len(name) > MAX_NAME or not name.strip() for name in classes):
        classes = [f"class {k + 1}" for k in range(problem.n_classes)]
    kinds = {f"source: {name}": A[problem.codes == k] for k, name in enumerate(classes)}
    return kinds | {"target": B}
