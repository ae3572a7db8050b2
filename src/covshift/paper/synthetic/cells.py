"""Cells of the synthetic study's tables, and the trials behind them."""

from typing import Any

from covshift.paper.synthetic.summary import Cell, Trials, values, verdict
from covshift.report.document import make_cell, make_column, make_evidence
from covshift.studies.report import Figure, estimate, figure_text


def trial_evidence(trials: Trials) -> dict[str, Any]:
    """The trials behind each cell."""
    evidence = {}
    for cell, records in trials.items():
        names = [name for name in records[0].result or {} if name != "statements"]
        columns = [make_column("seed", numeric=True)]
        columns += [make_column(name, numeric=True, digits=4) for name in names]
        columns.append(make_column("trial", help="key in the results file"))
        evidence[_evidence_id(cell)] = make_evidence(
            ", ".join(_parts(cell)),
            columns,
            [
                {"seed": record.trial.seed, **{name: (record.result or {})[name] for name in names},
                 "trial": record.trial.key[:12]}
                for record in records
            ],
        )  # fmt: skip
    return evidence


def _evidence_id(cell: Cell) -> str:
    return "|".join(_parts(cell))


def _parts(cell: Cell) -> list[str]:
    named = [cell.data_set, cell.system, cell.reading, cell.variant]
    rows = ["without rows beyond zero"] if cell.without_crossing else []
    return [part for part in named if part is not None] + rows


def accuracy_cell(trials: Trials, cell: Cell) -> Any:
    """Without → with, marked by what the adaptation does."""
    records = trials.get(cell, [])
    with_, without = (estimate(values(records, name)) for name in ("with", "without"))
    if with_ is None:
        return None
    text = figure_text(with_) if without is None else f"{without.mean:.3f} → {figure_text(with_)}"
    return make_cell(
        text,
        value=with_.mean,
        mark=None if without is None else verdict(records),
        evidence=_evidence_id(cell),
    )


def value_cell(trials: Trials, cell: Cell, name: str, digits: int = 3) -> Any:
    """Mean and standard error of one result of the trials."""
    found = estimate(values(trials.get(cell, []), name))
    if found is None:
        return None
    return make_cell(figure_text(found, digits), value=found.mean, evidence=_evidence_id(cell))


def figure_cell(figure: Figure | None, digits: int = 3) -> Any:
    """A figure of the paper or of the rebuild."""
    return None if figure is None else make_cell(figure_text(figure, digits), value=figure.mean)


def pair_cell(without: Figure, with_: Figure) -> Any:
    """Two such figures, without and with adaptation."""
    return make_cell(f"{without.mean:.3f} → {figure_text(with_)}", value=with_.mean)


def mark_cell(mark: Any) -> Any:
    """A mark alone."""
    return None if mark is None else make_cell(mark=mark)
