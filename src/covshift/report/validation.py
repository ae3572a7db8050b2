"""Is this a document? Every error names the place and what is wanted there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

from covshift.report.schema import (
    MARKS,
    Chart,
    Column,
    Document,
    Evidence,
    Figure,
    FullCell,
    Point,
    Section,
    Table,
)

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Signature, length, "IHDR", width and height: less is no picture.
PNG_HEADER_LENGTH = 24
MAX_DIGITS = 17  # more than a float has


def validate_document(document: Any) -> None:
    """Raise unless ``document`` is one, with every id unique and every evidence there.

    Parameters
    ----------
    document : Document
        What `covshift.report.schema.Document` says.

    Raises
    ------
    TypeError, ValueError
        With the place, for example ``sections[0], tables[1], rows[3], "accuracy"``.
    """
    with _within("document"):
        _check_keys(document, Document)
        _check_text("title", document["title"])
        _check_text("lead", document["lead"], may_be_empty=True)
        _check_facts(document["facts"])
        _check_list("sections", document["sections"])
        _check_mapping("evidence", document["evidence"])
    for evidence_id, evidence in document["evidence"].items():
        with _within(f"evidence[{evidence_id!r}]"):
            _check_text("its id", evidence_id)
            check_evidence(evidence)
    for index, section in enumerate(document["sections"]):
        with _within(f"sections[{index}]"):
            check_section(section)
    sections = document["sections"]
    _check_unique("section", (section["id"] for section in sections))
    _check_unique("table", (table["id"] for section in sections for table in section["tables"]))
    _check_unique("figure", (figure["id"] for section in sections for figure in section["figures"]))
    _check_evidence_is_there(document)


def check_section(section: Any) -> None:
    """Raise unless ``section`` is one."""
    _check_keys(section, Section)
    for name in ("id", "title"):
        _check_text(name, section[name])
    for name in ("paragraphs", "tables", "figures"):
        _check_list(name, section[name])
    for index, paragraph in enumerate(section["paragraphs"]):
        _check_text(f"paragraphs[{index}]", paragraph)
    for index, table in enumerate(section["tables"]):
        with _within(f"tables[{index}]"):
            check_table(table)
    for index, figure in enumerate(section["figures"]):
        with _within(f"figures[{index}]"):
            check_figure(figure)


def check_table(table: Any) -> None:
    """Raise unless ``table`` is one."""
    _check_keys(table, Table)
    for name in ("id", "caption"):
        _check_text(name, table[name])
    _check_columns_and_rows(table)


def check_evidence(evidence: Any) -> None:
    """Raise unless ``evidence`` is one block of it."""
    _check_keys(evidence, Evidence)
    _check_text("title", evidence["title"])
    _check_columns_and_rows(evidence)


def check_figure(figure: Any) -> None:
    """Raise unless ``figure`` is one."""
    _check_keys(figure, Figure)
    for name in ("id", "caption", "alt"):
        _check_text(name, figure[name])
    if len({"png", "svg", "chart"} & set(figure)) != 1:
        raise ValueError("a figure has either png or svg or chart, one of them.")
    if "chart" in figure:
        _check_chart(figure["chart"])
    elif "svg" in figure:
        _check_text("svg", figure["svg"])
        if "<svg" not in figure["svg"]:
            raise ValueError("svg must hold an <svg> element.")
    elif not isinstance(figure["png"], bytes):
        raise TypeError(f"png must be bytes, got {type(figure['png']).__name__}.")
    elif not figure["png"].startswith(PNG_SIGNATURE) or len(figure["png"]) < PNG_HEADER_LENGTH:
        raise ValueError("png must be a PNG picture: it does not start as one.")


def _check_chart(chart: Any) -> None:
    _check_keys(chart, Chart)
    for index, point in enumerate(chart["points"]):
        with _within(f"points[{index}]"):
            _check_keys(point, Point)
            _check_text("name", point["name"])
            _check_text("title", point["title"])
            if point["kind"] not in ("fine", "moved", "alert"):
                raise ValueError(f"kind must be fine, moved or alert, got {point['kind']!r}.")
            for name in ("value", "low", "high", "observed"):
                if not (point.get(name) is None or is_number(point[name])):
                    raise TypeError(f"{name} must be a number or None, got {point[name]!r}.")
    for kind, label, value in chart["levels"]:
        if kind not in ("reference", "alert") or not is_number(value):
            raise ValueError(f"a level is reference or alert, with a number, got {kind!r}.")
        _check_text("label", label)


def check_column(column: Any) -> None:
    """Raise unless ``column`` is one."""
    _check_keys(column, Column)
    for name in ("key", "label"):
        _check_text(name, column[name])
    _check_text("help", column.get("help", ""), may_be_empty=True)
    if not isinstance(column.get("numeric", False), bool):
        raise TypeError(f"numeric must be True or False, got {column['numeric']!r}.")
    digits = column.get("digits")
    if digits is not None and (
        not isinstance(digits, int) or isinstance(digits, bool) or not 0 <= digits <= MAX_DIGITS
    ):
        raise ValueError(f"digits must be None or 0 to {MAX_DIGITS}, got {digits!r}.")


def check_cell(cell: Any, *, numeric: bool = False) -> None:
    """Raise unless ``cell`` is one, and in a numeric column unless it sorts by a number."""
    if cell is None or is_number(cell):
        return
    if isinstance(cell, str):
        if numeric:
            raise ValueError(
                f"the column is numeric, so the text {cell!r} must say what it sorts by: "
                'give {"text": ..., "value": a number, or None where there is none}.'
            )
        return
    if not isinstance(cell, Mapping):
        raise TypeError(f"a cell is text, a number, None or a dict, got {cell!r}.")
    _check_keys(cell, FullCell)
    if not {"text", "value", "mark"} & set(cell):
        raise ValueError("a cell needs a text, a value or a mark.")
    for name in ("text", "help", "evidence"):
        if name in cell:
            _check_text(name, cell[name], may_be_empty=name != "evidence")
    if cell.get("mark") is not None and cell["mark"] not in MARKS:
        raise ValueError(f"mark must be None or one of {', '.join(MARKS)}, got {cell['mark']!r}.")
    value = cell.get("value")
    if not (value is None or is_number(value) or isinstance(value, str)):
        raise TypeError(f"value must be a number, text or None, got {value!r}.")
    if numeric and ("value" not in cell or isinstance(value, str)):
        raise ValueError(
            "the column is numeric, so the cell must have a number as value, "
            f"or None where there is none, got {dict(cell)!r}."
        )


def is_number(value: Any) -> bool:
    """Whether ``value`` is a number of Python or NumPy; truth values are none."""
    return isinstance(value, Integral | Real) and not isinstance(value, bool)


def _check_columns_and_rows(table: Mapping[str, Any]) -> None:
    _check_list("columns", table["columns"])
    _check_list("rows", table["rows"])
    if not table["columns"]:
        raise ValueError("columns must hold at least one.")
    for index, column in enumerate(table["columns"]):
        with _within(f"columns[{index}]"):
            check_column(column)
    _check_unique("column", (column["key"] for column in table["columns"]))
    numeric = {column["key"]: column.get("numeric", False) for column in table["columns"]}
    for index, row in enumerate(table["rows"]):
        with _within(f"rows[{index}]"):
            _check_row(row, numeric)


def _check_row(row: Any, numeric: Mapping[str, bool]) -> None:
    if not isinstance(row, Mapping):
        raise TypeError(f"a row is a dict of column -> cell, got {row!r}.")
    for key, cell in row.items():
        if key not in numeric:
            known = ", ".join(map(repr, numeric))
            raise ValueError(f"there is no column {key!r}; the columns are {known}.")
        try:
            check_cell(cell, numeric=numeric[key])
        except (TypeError, ValueError) as error:
            raise type(error)(f"{key!r}: {error}") from None


def _check_evidence_is_there(document: Document) -> None:
    for section in document["sections"]:
        for table in section["tables"]:
            for evidence_id in evidence_cited(table["rows"]):
                if evidence_id not in document["evidence"]:
                    raise ValueError(
                        f"table {table['id']!r} refers to evidence {evidence_id!r}, which the "
                        "document does not hold."
                    )
    for title, block in document["evidence"].items():
        if any(evidence_cited(block["rows"])):
            raise ValueError(f"evidence {title!r} refers to evidence: only tables may.")


def evidence_cited(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ids of the evidence that the cells of ``rows`` refer to, repeats included."""
    for row in rows:
        for cell in row.values():
            if isinstance(cell, Mapping) and "evidence" in cell:
                yield cell["evidence"]


def _check_facts(facts: Any) -> None:
    _check_list("facts", facts)
    for index, fact in enumerate(facts):
        if not isinstance(fact, tuple | list) or len(fact) != 2:
            raise TypeError(f"facts[{index}] must be a pair of label and text, got {fact!r}.")
        for part in fact:
            _check_text(f"facts[{index}]", part)


def _check_keys(value: Any, kind: Any) -> None:
    """Raise unless the keys of a dict are those that its type asks for and allows."""
    name = kind.__name__
    if not isinstance(value, Mapping):
        raise TypeError(f"a {name} is a dict, got {type(value).__name__}.")
    missing = kind.__required_keys__ - set(value)
    unknown = set(value) - kind.__required_keys__ - kind.__optional_keys__
    if missing:
        raise ValueError(f"a {name} needs {', '.join(sorted(missing))}.")
    if unknown:
        allowed = ", ".join(sorted(kind.__required_keys__ | kind.__optional_keys__))
        raise ValueError(
            f"a {name} has no {', '.join(sorted(map(repr, unknown)))}; it has {allowed}."
        )


def _check_text(name: str, value: Any, *, may_be_empty: bool = False) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r}.")
    if not may_be_empty and not value.strip():
        raise ValueError(f"{name} must not be empty.")


def _check_list(name: str, value: Any) -> None:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a list, got {type(value).__name__}.")


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, got {type(value).__name__}.")


def _check_unique(kind: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise ValueError(f"two {kind}s have the name {one!r}; it must be unique.")
        seen.add(one)


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Put the place before the message of an error from inside."""
    try:
        yield
    except (TypeError, ValueError) as error:
        separator = ", " if str(error).startswith(("tables[", "figures[", "rows[")) else ": "
        raise type(error)(f"{place}{separator}{error}") from None
