"""The synthetic study as a document: tables beside the printed ones, controls, statements."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from covshift.paper.synthetic.cells import accuracy_cell, figure_cell, trial_evidence
from covshift.paper.synthetic.printed import NOT_REPRODUCED, PRINTED_ACCURACY
from covshift.paper.synthetic.summary import Cell, Trials, agreement_with_rebuild, values, verdict
from covshift.paper.synthetic.systems import DATA_SETS, SYSTEMS
from covshift.paper.synthetic.tables import (
    RELEASED,
    WELL,
    accuracy_section,
    change_section,
    controls_section,
    mmd_section,
    supplement_section,
    variants_section,
)
from covshift.paper.synthetic.trials import STATEMENTS
from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_section,
    make_table,
)
from covshift.studies.report import estimate, figure_text
from covshift.studies.store import Record


def synthetic_document(
    trials: Trials, facts: Sequence[tuple[str, str]], figures: Sequence[Any] = ()
) -> Any:
    """The whole report of the study, from its trials and its figures."""
    sections = [
        accuracy_section(trials),
        controls_section(trials),
        variants_section(trials),
        _identifiability_section(trials),
        change_section(trials),
        mmd_section(trials),
        supplement_section(trials),
        _statements_section(trials),
    ]
    if figures:
        sections.append(make_section("figures", "Pictures of the first trial", figures=figures))
    return make_document(
        "The paper's synthetic study, rebuilt",
        _lead(trials),
        sections=sections,
        facts=facts,
        evidence=trial_evidence(trials),
    )


class Agreements(NamedTuple):
    """How many of the accuracies that the rebuild could reproduce come out here."""

    agreeing: int
    compared: int  # those of which there are trials enough
    reproducible: int


def count_agreements(trials: Trials) -> Agreements:
    """Count the cells that agree with the rebuild."""
    cells = [
        Cell(data_set, system, RELEASED)
        for data_set in DATA_SETS
        for system in SYSTEMS
        if (data_set, system) not in NOT_REPRODUCED
    ]
    marks = [agreement_with_rebuild(cell, trials.get(cell, [])) for cell in cells]
    return Agreements(marks.count("agrees"), len(marks) - marks.count(None), len(marks))


def _lead(trials: Trials) -> str:
    agreeing, compared, reproducible = count_agreements(trials)
    untold = reproducible - compared
    lead = [
        f"{agreeing} of the {reproducible} accuracies that an independent rebuild of the paper "
        "could reproduce come out here too"
        + (f" (too few trials to tell: {untold})." if untold else ".")
    ]
    well, mirrored = (
        estimate(values(trials.get(Cell("periodic", "PSF", WELL, variant), []), "with"))
        for variant in ("reconstructed", "printed")
    )
    if well is not None and mirrored is not None:
        printed = PRINTED_ACCURACY["periodic", "PSF"][1]
        lead.append(
            f"Used well, periodic sparse filtering scores {figure_text(well)} on the data set made "
            f"for it, where the paper prints {figure_text(printed)}, and {figure_text(mirrored)} "
            "on its twin, which shares all but a few of the rows and labels that a method may see."
        )
    both = _help_here_and_harm_there(trials)
    if both:
        lead.append(
            f"With the same settings, {' and '.join(both)} help on some data sets and harm on "
            "others; without target labels, or knowing more, nobody can tell which is which."
        )
    return " ".join(lead)


def _help_here_and_harm_there(trials: Trials) -> list[str]:
    """Readings with systems that do both: "SF, PSF as released"."""
    found = []
    for reading in (RELEASED, WELL):
        systems = []
        for system in SYSTEMS:
            verdicts = {verdict(trials.get(Cell(name, system, reading), [])) for name in DATA_SETS}
            if {"helps", "harms"} <= verdicts:
                systems.append(system)
        if systems:
            found.append(f"{', '.join(systems)} {reading}")
    return found


def _identifiability_section(trials: Trials) -> Any:
    columns = [
        make_column("system"),
        make_column("reading"),
        make_column("reconstructed", numeric=True),
        make_column("printed", numeric=True),
        make_column("sum", "sum of both", numeric=True),
        make_column("apart", "largest distance from one", numeric=True, help="over the draws"),
    ]
    rows = []
    for reading in (RELEASED, WELL):
        for system in SYSTEMS:
            cells = [
                Cell("periodic", system, reading, variant, without_crossing=True)
                for variant in ("reconstructed", "printed")
            ]
            sums = _sums(*(trials.get(cell, []) for cell in cells))
            if not sums:
                continue
            rows.append(
                {
                    "system": system,
                    "reading": reading,
                    "reconstructed": accuracy_cell(trials, cells[0]),
                    "printed": accuracy_cell(trials, cells[1]),
                    "sum": figure_cell(estimate(sums)),
                    "apart": make_cell(value=max(abs(total - 1) for total in sums)),
                }
            )
    return make_section(
        "identifiability",
        "What nobody can know",
        paragraphs=[
            "The two variants of periodic share every row and every source label, but for the "
            ".08 % of rows that lie on the other side of zero, which are left out here. Their "
            "target labels are opposite. So every method, seeing the same, predicts the same, and "
            "its two accuracies add up to one: what one variant gives, the other takes.",
            "For users: without labels from the target, no method and no score can tell which "
            "structure continues there. A few labelled target rows can; so can knowing how the "
            "labels come about.",
        ],
        tables=[make_table("identifiability", "Accuracies on the twins", columns, rows)],
    )


def _sums(some: Sequence[Record], others: Sequence[Record]) -> list[float]:
    """Accuracies on both twins of a draw added up, for the draws of which both are known."""
    one, other = (
        {record.trial.seed: record.result["with"] for record in records if record.result}
        for records in (some, others)
    )
    return [one[seed] + other[seed] for seed in sorted(one.keys() & other.keys())]


def _statements_section(trials: Trials) -> Any:
    held: dict[str, list[bool]] = {name: [] for name in STATEMENTS}
    for records in trials.values():
        for record in records:
            for name, holds in ((record.result or {}).get("statements") or {}).items():
                held[name].append(holds)
    rows: list[dict[str, Any]] = [
        {
            "statement": STATEMENTS[name],
            "held": make_cell(f"{sum(found)} of {len(found)}", value=sum(found)),
        }
        for name, found in held.items()
        if found
    ]
    return make_section(
        "statements",
        "The paper's statements, on the filters of this run",
        tables=[
            make_table(
                "statements",
                "Fitted filters for which each holds",
                [make_column("statement"), make_column("held", "holds for", numeric=True)],
                rows,
            )
        ],
    )
