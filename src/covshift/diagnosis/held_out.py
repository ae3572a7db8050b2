"""Numbers predicted for source rows that a fit left out, beside the true ones: a section.

The recommended model predicts every source row by fits that left it out, three folds, as a row of
its own domain. Labels of the target are not needed for that, and the errors there may be larger.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.measures.number_scores import score_numbers
from covshift.report.document import (
    Cell,
    Figure,
    Row,
    Section,
    make_cell,
    make_column,
    make_figure,
    make_section,
    make_table,
)
from covshift.selection.label_tasks import NumberTask
from covshift.selection.words import say_number

if TYPE_CHECKING:
    from covshift.diagnosis.diagnosis import Diagnosis

EXPLAINED = (
    "The recommended model predicts each source row by a fit that left it out. Errors on the "
    "target can be larger: the expected scores above allow for that. A domain whose mean error is "
    "far from zero has a level of its own, which the columns do not explain."
)
MAX_DOMAINS = 30  # in the table, those with the most rows first


class HeldOut(NamedTuple):
    """Source rows: true label, prediction by a fit that left the row out, domain."""

    truth: FloatArray
    predicted: FloatArray
    domain: IntArray


def held_out_numbers(diagnosis: "Diagnosis") -> HeldOut | None:
    """Return predictions of the recommended model for source rows that its fits left out.

    None where the label is a class, or no candidate has predicted all source rows.
    """
    bench, weights = diagnosis._bench, diagnosis._weights
    problem, task = bench.problem, bench.task
    if not isinstance(task, NumberTask) or problem.values is None:
        return None
    parts = [
        (weight, numbers[:, 0])
        for weight, numbers in zip(weights, bench.probabilities_left_out(), strict=True)
        if numbers is not None and weight > 0
    ]
    if not parts:
        return None
    mixed = np.average([one for _, one in parts], axis=0, weights=[weight for weight, _ in parts])
    return HeldOut(task.restore(problem.values), task.restore(mixed), problem.source_domain)


def held_out_section(diagnosis: "Diagnosis", domain_names: Mapping[int, str]) -> list[Section]:
    """Return a section with predicted against true numbers, and errors by domain, if it has one.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of a label that is a number; for classes the section is left out.
    domain_names : mapping of int to str
        Names of the source domains.

    Returns
    -------
    list of Section
        One or none.
    """
    found = held_out_numbers(diagnosis)
    if found is None:
        return []
    names = np.array([domain_names.get(int(one), str(one)) for one in found.domain])
    scores = score_numbers(found.truth, found.predicted, names)
    domains = sorted(scores["domains"], key=lambda one: -one["n_rows"])
    shown = domains[:MAX_DOMAINS] if len(domains) > 1 else []
    rows = [_row("all", scores), *(_row(one["name"], one) for one in shown)]
    columns = [
        make_column("domain", "source domain"),
        make_column("rows", "rows", numeric=True),
        make_column("bias", "mean error", numeric=True, help="prediction less truth"),
        make_column("mae", "mean absolute error (95 % interval)", numeric=True),
        make_column("r2", "R² (95 % interval)", numeric=True),
    ]
    rest = len(domains) - MAX_DOMAINS
    caption = "Errors on held-out source rows" + (f", {rest} more domains not shown" * (rest > 0))
    return [
        make_section(
            "held-out",
            "Predicted against true on held-out source rows",
            paragraphs=[EXPLAINED],
            tables=[make_table("residuals", caption, columns, rows)],
            figures=[_draw(found, names)],
        )
    ]


def _row(name: str, scores: Mapping[str, Any]) -> Row:
    return {
        "domain": name,
        "rows": scores["n_rows"],
        "bias": make_cell(say_number(scores["bias"]), value=scores["bias"]),
        "mae": _figure(scores["mae"], say_number),
        "r2": _figure(scores["r2"], "{:.2f}".format),
    }


def _figure(figure: Mapping[str, float | None], show: Any) -> Cell:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    if value is None:
        return "undefined"
    shown = show(value) if low is None else f"{show(value)} ({show(low)} to {show(high)})"
    return make_cell(shown, value=value)


def _draw(found: HeldOut, names: Any) -> Figure:
    from covshift.report.figures import png_bytes  # needs an extra
    from covshift.report.plane_figures import draw_predicted

    figure = draw_predicted(found.truth, found.predicted, names)
    caption = (
        "Left: predicted against true label; on the line both are the same. Right: prediction less "
        "truth by domain, the middle half in the box."
    )
    alt = "Scatter of predicted against true labels, and boxes of the errors of each domain."
    return make_figure("held-out", caption, alt, png=png_bytes(figure))
