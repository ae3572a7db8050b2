"""The paper's synthetic study, and the readings of its systems, as studies to be run."""

from collections.abc import Sequence
from typing import Any

from covshift.experiments.paper import DATA_SETS, PRINTED_ACCURACY, SYSTEMS
from covshift.experiments.store import Record
from covshift.experiments.study import Facts, Study, TextTable
from covshift.experiments.synthetic.document import synthetic_document
from covshift.experiments.synthetic.figures import draw_figures
from covshift.experiments.synthetic.readings import declare_readings
from covshift.experiments.synthetic.readings_document import readings_document
from covshift.experiments.synthetic.summary import Cell, estimate, gather, values, verdict
from covshift.experiments.synthetic.trials import declare, run_trials

READINGS_SHOWN = ("as released", "used well")
ARROWS = {"helps": "↑", "harms": "↓", "unclear": " "}


def synthetic_study(n_trials: int, seed: int) -> Study:
    """The synthetic study on draws of consecutive seeds."""

    def document(records: Sequence[Record], facts: Facts) -> Any:
        return synthetic_document(gather(records), facts, draw_figures(seed))

    return Study(
        name="synthetic",
        tasks=declare(n_trials, seed),
        function=run_trials,
        run_settings={"trials": n_trials, "seed": seed},
        document=document,
        table=accuracy_table,
    )


def readings_study(n_trials: int, seed: int) -> Study:
    """Every way to read what the paper leaves open, on draws of consecutive seeds."""
    return Study(
        name="readings",
        tasks=declare_readings(n_trials, seed),
        function=run_trials,
        run_settings={"trials": n_trials, "seed": seed},
        document=lambda records, facts: readings_document(gather(records), facts),
    )


def accuracy_table(records: Sequence[Record]) -> TextTable:
    """Accuracies beside the printed ones."""
    trials = gather(records)

    def row(data_set: str, system: str) -> list[str]:
        without, with_ = PRINTED_ACCURACY[data_set, system]
        printed = f"{without.mean:.3f} → {with_.mean:.3f}"
        cells = [trials.get(Cell(data_set, system, reading), []) for reading in READINGS_SHOWN]
        return [data_set, system, printed, *map(_shown, cells)]

    return TextTable(
        ["data set", "system", "printed", *READINGS_SHOWN],
        [[row(data_set, system) for system in SYSTEMS] for data_set in DATA_SETS],
        "Accuracy on target rows without → with adaptation; ↑ helps, ↓ harms (t-test of the draws "
        "at 5 %).",
    )


def _shown(records: list[Record]) -> str:
    without, with_ = (estimate(values(records, name)) for name in ("without", "with"))
    if without is None or with_ is None:
        return "failed"
    return f"{without.mean:.3f} → {with_.mean:.3f} {ARROWS[verdict(records)]}"
