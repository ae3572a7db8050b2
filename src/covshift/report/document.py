"""Builders of documents: what studies and diagnoses call to say what they found.

Each builder checks its own piece, so that an error comes from the line that made it; the
pieces are plain dicts (`covshift.report.schema`). `make_document` checks the whole.

Examples
--------
>>> trials = make_evidence(
...     "radial, SF: 2 trials",
...     [make_column("seed", numeric=True), make_column("accuracy", numeric=True, digits=3)],
...     [{"seed": 0, "accuracy": 0.81}, {"seed": 1, "accuracy": 0.77}],
... )
>>> table = make_table(
...     "accuracy",
...     "Accuracy on target rows, mean over the trials",
...     [make_column("data", "data set"), make_column("SF", numeric=True)],
...     [{"data": "radial", "SF": make_cell("0.79", value=0.79, mark="helps", evidence="trials")}],
... )
>>> document = make_document(
...     "Four data sets",
...     "Sparse filtering helps on one of them.",
...     sections=[make_section("results", "Results", tables=[table])],
...     evidence={"trials": trials},
... )
>>> document["sections"][0]["tables"][0]["rows"][0]["SF"]["mark"]
'helps'
"""

from collections.abc import Mapping, Sequence
from typing import Any

from covshift.report.schema import (
    Chart,
    Column,
    Document,
    Evidence,
    Figure,
    FullCell,
    Mark,
    Number,
    Row,
    Section,
    Table,
)
from covshift.report.validation import (
    check_cell,
    check_column,
    check_evidence,
    check_figure,
    check_section,
    check_table,
    validate_document,
)

__all__ = [
    "make_cell",
    "make_column",
    "make_document",
    "make_evidence",
    "make_figure",
    "make_section",
    "make_table",
    "validate_document",
]

_NOT_GIVEN: Any = object()


def make_document(
    title: str,
    lead: str,
    *,
    sections: Sequence[Section],
    facts: Sequence[tuple[str, str]] = (),
    evidence: Mapping[str, Evidence] | None = None,
) -> Document:
    """Gather sections and evidence into a document.

    Parameters
    ----------
    title : str
        Title.
    lead : str
        One paragraph that says what was found.
    sections : sequence of Section
        From `make_section`.
    facts : sequence of (label, text)
        What the report was made from: command, date, versions, seeds.
    evidence : mapping of str to Evidence, optional
        From `make_evidence`, by the id that cells refer to.

    Returns
    -------
    Document
    """
    document: Document = {
        "title": title,
        "lead": lead,
        "facts": facts,
        "sections": sections,
        "evidence": {} if evidence is None else evidence,
    }
    validate_document(document)
    return document


def make_section(
    section_id: str,
    title: str,
    *,
    paragraphs: Sequence[str] = (),
    tables: Sequence[Table] = (),
    figures: Sequence[Figure] = (),
) -> Section:
    """Gather what a section says; it is shown in the order of the parameters.

    Parameters
    ----------
    section_id : str
        Unique among the sections.
    title : str
        Heading.
    paragraphs : sequence of str
        Plain text.
    tables, figures : sequence
        From `make_table` and `make_figure`.

    Returns
    -------
    Section
    """
    section: Section = {
        "id": section_id,
        "title": title,
        "paragraphs": paragraphs,
        "tables": tables,
        "figures": figures,
    }
    check_section(section)
    return section


def make_table(
    table_id: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]
) -> Table:
    """Make a table; the cells of its first column name the rows.

    Parameters
    ----------
    table_id : str
        Unique among the tables of the document; part of the name of its CSV file.
    caption : str
        What it shows, with the units.
    columns : sequence of Column
        From `make_column`.
    rows : sequence of mapping
        Column -> text, number, None or what `make_cell` returns.

    Returns
    -------
    Table
    """
    table: Table = {"id": table_id, "caption": caption, "columns": columns, "rows": rows}
    check_table(table)
    return table


def make_evidence(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Evidence:
    """Make the table behind a number, for example its trials.

    Parameters
    ----------
    title : str
        Which number it stands behind.
    columns, rows : sequence
        As in `make_table`; its cells refer to no evidence.

    Returns
    -------
    Evidence
    """
    evidence: Evidence = {"title": title, "columns": columns, "rows": rows}
    check_evidence(evidence)
    return evidence


def make_column(
    key: str,
    label: str | None = None,
    *,
    numeric: bool = False,
    help: str = "",
    digits: int | None = None,
) -> Column:
    """Describe a column.

    Parameters
    ----------
    key : str
        Its key in the rows, and its name in the CSV file.
    label : str, optional
        Its heading; the key by default.
    numeric : bool
        Whether every cell sorts by a number; aligned right.
    help : str
        What it means, shown on demand.
    digits : int, optional
        Decimals of numbers that have no text of their own; four significant digits by default.

    Returns
    -------
    Column
    """
    column: Column = {
        "key": key,
        "label": key if label is None else label,
        "numeric": numeric,
        "help": help,
        "digits": digits,
    }
    check_column(column)
    return column


def make_cell(
    text: str | None = None,
    *,
    value: Number | str | None = _NOT_GIVEN,
    mark: Mark | None = None,
    help: str = "",
    evidence: str | None = None,
) -> FullCell:
    """Make a cell that has more than a text or a number to say.

    Parameters
    ----------
    text : str, optional
        What is shown; the value by default.
    value : number, str or None, optional
        What it sorts by; the text by default. None: nothing, it sorts last.
    mark : {"agrees", "differs", "not reproduced", "helps", "harms", "unclear", "best"}, optional
        Verdict.
    help : str
        More, shown on demand.
    evidence : str, optional
        Id of the evidence behind it.

    Returns
    -------
    FullCell
    """
    cell: FullCell = {}
    if text is not None:
        cell["text"] = text
    if value is not _NOT_GIVEN:
        cell["value"] = value
    if mark is not None:
        cell["mark"] = mark
    if help:
        cell["help"] = help
    if evidence is not None:
        cell["evidence"] = evidence
    check_cell(cell)
    return cell


def make_figure(
    figure_id: str,
    caption: str,
    alt: str,
    *,
    png: bytes | None = None,
    svg: str | None = None,
    chart: Chart | None = None,
) -> Figure:
    """Make a figure from a picture that is drawn already, or from a chart that the page draws.

    Parameters
    ----------
    figure_id : str
        Unique among the figures of the document.
    caption : str
        What to see in it.
    alt : str
        What it shows, for those who cannot see it.
    png : bytes, optional
        Picture; either this or ``svg`` or ``chart``.
    svg : str, optional
        Picture.
    chart : Chart, optional
        Scores over time.

    Returns
    -------
    Figure
    """
    figure: Figure = {"id": figure_id, "caption": caption, "alt": alt}
    if png is not None:
        figure["png"] = png
    if svg is not None:
        figure["svg"] = svg
    if chart is not None:
        figure["chart"] = chart
    check_figure(figure)
    return figure
