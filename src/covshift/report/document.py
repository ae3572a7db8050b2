"""Documents: what studies and diagnoses say, as data, what builds and checks it, and its cells.

Pieces are plain dicts, whose types say what they hold; builders fill in omitted parts.
`make_document` checks what depends on the data; the types are for the type checker.

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

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, NotRequired, TypedDict, cast, get_args

import numpy as np

_NOT_GIVEN: Any = object()
Mark = Literal["agrees", "differs", "not reproduced", "helps", "harms", "unclear", "best"]
MARKS: tuple[Mark, ...] = get_args(Mark)
Number = int | float  # NumPy's numbers as well


class FullCell(TypedDict, total=False):
    """One place of a table, with more than a text or a number to say."""

    text: str  # what is shown; without it, the value
    value: Number | str | None  # what it sorts by; without it, the text; None sorts last
    mark: Mark | None  # a verdict, shown as symbol and word
    help: str  # shown on demand
    evidence: str  # id of what stands behind it


Cell = str | Number | FullCell | None  # None: nothing to show
Row = Mapping[str, Cell]  # a key that is left out is None


class Column(TypedDict):
    """One column of a table."""

    key: str
    label: str
    numeric: NotRequired[bool]  # aligned right, and every cell sorts by a number
    help: NotRequired[str]
    digits: NotRequired[int | None]  # decimals of numbers without a text of their own


class Table(TypedDict):
    """A table; the cells of its first column name the rows."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]


class Point(TypedDict):
    """One batch of a chart."""

    name: str
    kind: Literal["fine", "moved", "alert"]
    title: str  # all that is known of it, shown on demand
    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    observed: NotRequired[float | None]


class Chart(TypedDict):
    """Scores over time; the page draws it in its own colors."""

    points: Sequence[Point]
    # class ("reference" or "alert"), label, value: lines across the chart
    levels: Sequence[tuple[str, str, float]]


class Figure(TypedDict):
    """A picture, as PNG or as a chart that the page draws, one of them."""

    id: str
    caption: str
    alt: str  # what it shows, for those who cannot see it
    png: NotRequired[bytes]
    chart: NotRequired[Chart]


class Section(TypedDict):
    """A section: what is said, then its tables, then its figures."""

    id: str
    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]


class Evidence(TypedDict):
    """The rows behind a number, for example its trials."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]


class Document(TypedDict):
    """A whole report."""

    title: str
    lead: str  # one paragraph: what was found
    facts: Sequence[tuple[str, str]]  # label, text: command, date, versions, seeds
    sections: Sequence[Section]
    evidence: Mapping[str, Evidence]


def validate_document(document: Document) -> None:
    """Raise ValueError, with the place, unless names are unique and all that is cited is there."""
    sections, evidence = document["sections"], document["evidence"]
    tables = [table for section in sections for table in section["tables"]]
    figures = [figure for section in sections for figure in section["figures"]]
    _check_names("the title", [document["title"]])
    _check_names("sections", [section["id"] for section in sections])
    _check_names("tables", [table["id"] for table in tables])
    _check_names("figures", [figure["id"] for figure in figures])
    _check_names("alt", [figure["alt"] for figure in figures], unique=False)
    for table in tables:
        _check_rows(f"table {table['id']!r}", table["columns"], table["rows"])
        for cited in evidence_cited(table["rows"]):
            if cited not in evidence:
                raise ValueError(
                    f"table {table['id']!r} refers to evidence {cited!r}, which the document does "
                    "not hold."
                )
    for name, block in evidence.items():
        _check_rows(f"evidence {name!r}", block["columns"], block["rows"])
        if any(evidence_cited(block["rows"])):
            raise ValueError(f"evidence {name!r} refers to evidence: only tables may.")


def _check_rows(place: str, columns: Iterable[Column], rows: Iterable[Row]) -> None:
    """Raise unless columns have unique keys and cells fit their columns."""
    numeric = {column["key"]: column.get("numeric", False) for column in columns}
    _check_names(f"{place}, columns", [column["key"] for column in columns])
    for index, row in enumerate(rows):
        for key, cell in row.items():
            where = f"{place}, row {index}, {key!r}"
            if key not in numeric:
                raise ValueError(
                    f"{where} is not a column of the table; those are "
                    f"{', '.join(map(repr, numeric))}."
                )
            value = cell.get("value", "") if isinstance(cell, Mapping) else cell
            if numeric[key] and isinstance(value, str):
                raise ValueError(
                    f"{where}: the column is numeric, so {cell!r} must say what it sorts by: give "
                    '{"text": ..., "value": a number, or None where there is none}.'
                )
            mark = cell.get("mark") if isinstance(cell, Mapping) else None
            if mark is not None and mark not in MARKS:
                raise ValueError(f"{where}: mark must be one of {', '.join(MARKS)}, got {mark!r}.")


def evidence_cited(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the ids of the evidence that the cells of ``rows`` refer to, repeats included."""
    for row in rows:
        for cell in row.values():
            if isinstance(cell, Mapping) and "evidence" in cell:
                yield cell["evidence"]


def is_number(value: Any) -> bool:
    """Return whether a document takes ``value`` as a number; truth values are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_names(place: str, names: list[str], *, unique: bool = True) -> None:
    if any(not name.strip() for name in names):
        raise ValueError(f"{place}: a name must not be empty.")
    if unique and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{place}: the name {twice!r} must be unique.")


def make_document(
    title: str,
    lead: str,
    *,
    sections: Sequence[Section],
    facts: Sequence[tuple[str, str]] = (),
    evidence: Mapping[str, Evidence] | None = None,
) -> Document:
    """Gather sections and evidence, by the id that cells refer to, into a document; check it."""
    document: Document = {
        "title": title, "lead": lead, "facts": facts, "sections": sections,
        "evidence": {} if evidence is None else evidence,
    }  # fmt: skip
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
    """Gather what a section of a document says; it is shown in the order of the parameters."""
    return {
        "id": section_id, "title": title, "paragraphs": paragraphs, "tables": tables,
        "figures": figures,
    }  # fmt: skip


def make_table(
    table_id: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]
) -> Table:
    """Make a table of a document; its id is part of the name of its CSV file."""
    return {"id": table_id, "caption": caption, "columns": columns, "rows": rows}


def make_evidence(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Evidence:
    """Make the table behind a number of a document; its cells refer to no evidence."""
    return {"title": title, "columns": columns, "rows": rows}


def make_column(
    key: str,
    label: str | None = None,
    *,
    numeric: bool = False,
    help: str = "",
    digits: int | None = None,
) -> Column:
    """Describe a column of a document's table; its heading is the key unless a label is given."""
    heading = key if label is None else label
    return {"key": key, "label": heading, "numeric": numeric, "help": help, "digits": digits}


def make_cell(
    text: str | None = None,
    *,
    value: Number | str | None = _NOT_GIVEN,
    mark: Mark | None = None,
    help: str = "",
    evidence: str | None = None,
) -> FullCell:
    """Make a cell of a document that has more than a text or a number to say."""
    given = {"text": text, "mark": mark, "help": help or None, "evidence": evidence}
    cell = {name: part for name, part in given.items() if part is not None}
    return cast(FullCell, cell if value is _NOT_GIVEN else cell | {"value": value})


def make_figure(
    figure_id: str, caption: str, alt: str, *, png: bytes | None = None, chart: Chart | None = None
) -> Figure:
    """Make a document's figure from a PNG drawn already, or from a chart that the page draws."""
    figure: Figure = {"id": figure_id, "caption": caption, "alt": alt}
    if (png is None) == (chart is None):
        raise ValueError(f"figure {figure_id!r} must have either png or chart, one of them.")
    return {**figure, "chart": chart} if png is None else {**figure, "png": png}  # type: ignore


# --- What a cell shows, and what it sorts by ---


def full_cell(cell: Cell) -> FullCell:
    """Return any kind of cell of a document as a dict."""
    if cell is None:
        return {}
    if isinstance(cell, Mapping):
        return cast(FullCell, cell)
    if isinstance(cell, str):
        return {"text": cell}
    return {"value": cell}


def shown_text(cell: FullCell, column: Column) -> str:
    """Return the text of a cell of a document, or its value as text, or nothing."""
    if "text" in cell:
        return cell["text"]
    value = cell.get("value")
    if value is None:
        return ""
    return value if isinstance(value, str) else format_number(value, column.get("digits"))


def sort_value(cell: FullCell) -> Number | str | None:
    """Return what a document's cell sorts by; None, which sorts last, for NaN as well."""
    value: Any = cell["value"] if "value" in cell else cell.get("text") or cell.get("mark")
    if is_number(value):
        value = plain_number(value)
        return None if math.isnan(value) else value
    return cast(str | None, value)


def plain_number(value: Number) -> Number:
    """Return a number of NumPy as one of Python, as documents hold them."""
    return int(value) if isinstance(value, Integral) else float(value)


def format_number(value: Number, digits: int | None = None) -> str:
    """Return a number as a document shows it: whole ones whole, others with ``digits`` decimals.

    Without ``digits``, with four significant ones.

    Examples
    --------
    >>> format_number(1200), format_number(0.5, digits=3), format_number(0.000123456)
    ('1200', '0.500', '0.0001235')
    >>> format_number(float("nan")), format_number(float("-inf"))
    ('NaN', '-∞')
    """
    number = plain_number(value)
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return f"{number:.4g}" if digits is None else f"{number:.{digits}f}"


# --- Records as plain dictionaries ---


def to_plain(value: Any) -> Any:
    """Return a value of records and arrays as a document holds it: numbers, texts, lists, dicts.

    A number that is not finite becomes None: JSON has no other name for it. A field that holds
    anything else (a fitted object) is left out of its record.
    """
    if value is None or isinstance(value, str | bool | int | np.bool_ | np.integer):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return [to_plain(one) for one in value.tolist()]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in value.items() if _can_be_plain(one)}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} cannot be converted to plain types.")


def _can_be_plain(value: Any) -> bool:
    plain = (str, bool, int, float, list, tuple, dict, np.ndarray, np.generic)
    return value is None or isinstance(value, plain)
