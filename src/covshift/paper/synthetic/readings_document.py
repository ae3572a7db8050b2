"""The readings that were tried, as a document: each beside the rebuild and the paper."""

from collections.abc import Sequence
from typing import Any

from covshift.paper.synthetic.cells import (
    accuracy_cell,
    figure_cell,
    mark_cell,
    trial_evidence,
    value_cell,
)
from covshift.paper.synthetic.printed import PRINTED_ACCURACY, PRINTED_MMD, REBUILT_ACCURACY
from covshift.paper.synthetic.summary import (
    Cell,
    Trials,
    agreement_with_paper,
    agreement_with_rebuild,
)
from covshift.paper.synthetic.systems import DATA_SETS, LEARNS_WITHOUT_TARGET, READINGS_TRIED
from covshift.report.document import make_column, make_document, make_section, make_table


def readings_document(trials: Trials, facts: Sequence[tuple[str, str]]) -> Any:
    """The whole report, from the trials of `declare_readings`."""
    return make_document(
        "Readings of the paper's systems",
        "Where the paper leaves open how a system was run, every way that was tried, beside the "
        "figures of an independent rebuild and those printed. The first reading of each system is "
        "the one used elsewhere.",
        sections=[_system_section(system, trials) for system in READINGS_TRIED],
        facts=facts,
        evidence=trial_evidence(trials),
    )


def _system_section(system: str, trials: Trials) -> Any:
    filters = system in ("SF", "PSF")
    columns = [
        make_column("reading"),
        make_column("data", "data set"),
        make_column("ours", numeric=True, help="accuracy without → with adaptation"),
        make_column("rebuilt", numeric=True, help="with adaptation, in an independent rebuild"),
        make_column("rebuild", "the rebuild", help="whether ours agrees with it"),
        make_column("printed", numeric=True, help="with adaptation, in the paper"),
        make_column("paper", "the paper", help="whether ours agrees with it"),
    ]
    if system in LEARNS_WITHOUT_TARGET:
        columns.append(make_column("alone", "no target", numeric=True, help="fitted without it"))
    if filters:
        columns.append(make_column("mmd", "MMD², %", numeric=True, help="its change"))
        columns.append(make_column("printed_mmd", "printed", numeric=True))
    rows = []
    for reading in READINGS_TRIED[system]:
        for data_set in DATA_SETS:
            cell = Cell(data_set, system, reading)
            records = trials.get(cell, [])
            row = {
                "reading": reading,
                "data": data_set,
                "ours": accuracy_cell(trials, cell),
                "rebuilt": figure_cell(REBUILT_ACCURACY.get((data_set, system))),
                "rebuild": mark_cell(agreement_with_rebuild(cell, records)),
                "printed": figure_cell(PRINTED_ACCURACY[data_set, system][1]),
                "paper": mark_cell(agreement_with_paper(cell, records)),
            }
            if system in LEARNS_WITHOUT_TARGET:
                row["alone"] = value_cell(trials, cell, "without_target")
            if filters:
                row["mmd"] = value_cell(trials, cell, "mmd_change", 1)
                row["printed_mmd"] = figure_cell(PRINTED_MMD[data_set, system], 1)
            rows.append(row)
    table = make_table(system, f"Readings of {system}", columns, rows)
    return make_section(system, system, tables=[table])
