"""A small document as a study would make it: two sections, every mark, evidence, figures."""

import io
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_figure,
    make_section,
    make_table,
)

SCRIPT = "<script>alert(1)</script>"  # a class may be named so, and must show so
SYSTEMS = ("no adaptation", "SF", "PSF")
MEANS = {
    "radial": (0.354, 0.799, 0.420),
    "periodic": (0.488, 0.499, 0.963),
    "smooth": (0.894, 0.382, 0.546),
    "diagonal": (0.866, 0.562, 0.594),
}
MARKS = {
    "radial": (None, "helps", "helps"),
    "periodic": (None, "unclear", "best"),
    "smooth": ("best", "harms", "harms"),
    "diagonal": ("best", "harms", "harms"),
}
# Paper, ours, verdict.
READINGS = {
    "radial, SF": (0.779, 0.799, "agrees"),
    "periodic, PSF": (0.568, 0.702, "differs"),
    "smooth, SF": (0.476, 0.427, "agrees"),
    "diagonal, SSA": (0.932, 0.866, "not reproduced"),
    "diagonal, DAE": (0.514, float("nan"), "unclear"),
}


@cache
def example_document(n_trials=30):
    """Return the document, with ``n_trials`` rows of evidence behind each accuracy."""
    return make_document(
        "Four shifts, three systems",
        "Sparse filtering helps where labels depend on direction, periodic sparse filtering "
        "where they repeat. Elsewhere both harm: without adaptation the classifier does better.",
        facts=[
            ("Command", "covshift reproduce synthetic --out runs/synthetic --trials 30 --seed 0"),
            ("Date", "14 May 2025, 10:21 UTC"),
            ("Versions", "covshift 0.1.0, NumPy 2.2.5, scikit-learn 1.6.1, Python 3.12.3"),
            ("Seeds", f"0 to {n_trials - 1}, estimators seeded apart from the data"),
        ],
        sections=[_accuracy_section(), _paper_section()],
        evidence={
            _evidence_id(data_set, system): _trials(data_set, system, n_trials)
            for data_set in MEANS
            for system in SYSTEMS
        },
    )


def _evidence_id(data_set, system):
    return f"{data_set}, {system}"


def _accuracy_section():
    columns = [make_column("data", "data set", help="The paper's synthetic data, reconstructed")]
    columns += [
        make_column(system, numeric=True, help=f"{system}: mean ± standard error")
        for system in SYSTEMS
    ]
    rows = [
        {
            "data": data_set,
            **{
                system: make_cell(
                    f"{mean:.3f} ± 0.012",
                    value=mean,
                    mark=mark,
                    help="Paired t-test against no adaptation at 5 %" if mark else "",
                    evidence=_evidence_id(data_set, system),
                )
                for system, mean, mark in zip(
                    SYSTEMS, MEANS[data_set], MARKS[data_set], strict=True
                )
            },
        }
        for data_set in MEANS
    ]
    return make_section(
        "accuracy",
        "Accuracy on the target",
        paragraphs=[
            "Each system was fitted on 500 labeled source rows and 250 unlabeled target rows, "
            "and scored on 500 further target rows.",
            f"A class may have any name, {SCRIPT} and R&D included; all of them are shown as text.",
        ],
        tables=[
            make_table("accuracy", "Accuracy on target rows, mean of the trials", columns, rows)
        ],
        figures=[
            make_figure(
                "accuracy",
                "Accuracy of each system; bars of one color are one system.",
                "Bar chart: SF is highest on radial, PSF on periodic, no adaptation elsewhere.",
                png=_bars(),
            )
        ],
    )


def _paper_section():
    columns = [
        make_column("cell", "data set, system"),
        make_column("paper", numeric=True, digits=3),
        make_column("ours", numeric=True, digits=3),
        make_column("change", "change / %", numeric=True, digits=1, help="Ours against the paper"),
        make_column("verdict", help="Within three standard errors of the difference"),
        make_column("note"),
    ]
    rows = [
        {
            "cell": name,
            "paper": paper,
            "ours": np.float64(ours),
            "change": 100 * (ours - paper) / paper,
            "verdict": make_cell(mark=mark),
            "note": "W not trained" if name == "radial, SF" else None,
        }
        for name, (paper, ours, mark) in READINGS.items()
    ]
    rows.append({"cell": f"class {SCRIPT}", "paper": 0.1, "ours": -1.25, "change": float("-inf")})
    return make_section(
        "paper",
        "Beside the printed figures",
        paragraphs=["The paper's figures are means over ten trials."],
        tables=[make_table("paper", "Our figures and the paper's", columns, rows)],
        figures=[make_figure("again", "The same bars.", "Bars.", png=_bars())],
    )


def _trials(data_set, system, n_trials):
    rng = np.random.RandomState(len(data_set) + len(system))
    return make_evidence(
        f"{data_set}, {system}: accuracy of each trial",
        [
            make_column("seed", numeric=True),
            make_column("accuracy", numeric=True, digits=3),
            make_column("loss", numeric=True, help="At the iteration that was kept"),
            make_column("iterations", numeric=True),
            make_column("class", "hardest class"),
        ],
        [
            {
                "seed": seed,
                "accuracy": rng.uniform(),
                "loss": rng.uniform(0, 1000),
                "iterations": rng.randint(200),
                "class": SCRIPT if seed % 5 == 0 else "joy",
            }
            for seed in range(n_trials)
        ],
    )


def _bars():
    figure = Figure(figsize=(10, 3.4), dpi=120, layout="constrained")
    axes = figure.subplots()
    for index, (system, color) in enumerate(
        zip(SYSTEMS, ("#999999", "#0072B2", "#E69F00"), strict=True)
    ):
        heights = [means[index] for means in MEANS.values()]
        axes.bar(np.arange(4) + (index - 1) * 0.26, heights, 0.24, color=color, label=system)
    axes.set_xticks(range(4), list(MEANS))
    axes.set_ylabel("accuracy")
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15))
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
