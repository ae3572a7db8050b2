"""A document -> files: the page, the same as JSON and Markdown, and each table as CSV."""

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covshift.output_files import write_whole
from covshift.report.document import (
    Document,
    Figure,
    FullCell,
    Table,
    full_cell,
    is_number,
    plain_number,
    shown_text,
    validate_document,
)
from covshift.report.page import MAX_PAGE_BYTES, render_page, unique_slugs

# Symbols of marks; other marks are shown as words.
SIGNS = {"helps": "↑", "harms": "↓", "unclear": ""}


def write_document(
    document: Document, folder: str | Path, name: str = "report", *, max_bytes: int = MAX_PAGE_BYTES
) -> list[Path]:
    """Write ``name.html``, ``name.json``, ``name.md`` and ``name-<table id>.csv`` for each table.

    Returns their paths, the page first. Each file is written atomically; files of the same names
    are replaced. The data come first: a page of more than ``max_bytes`` does not cost them.
    """
    validate_document(document)
    _check_name(name)
    folder = Path(folder)
    tables = [table for section in document["sections"] for table in section["tables"]]
    slugs = unique_slugs(table["id"] for table in tables)
    contents = {
        folder / f"{name}.json": document_json(document),
        folder / f"{name}.md": document_markdown(document),
    }
    contents |= {folder / f"{name}-{slugs[table['id']]}.csv": table_csv(table) for table in tables}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        _write(path, text)
    page = folder / f"{name}.html"
    _write(page, render_page(document, max_bytes=max_bytes))
    return [page, *contents]


def document_json(document: Document) -> str:
    """Return the document without its pictures as JSON, for a file.

    Numbers are numbers. JSON has no NaN, which becomes null, and no infinities, which become the
    texts "Infinity" and "-Infinity".
    """
    sections = [
        {**section, "figures": [_without_picture(figure) for figure in section["figures"]]}
        for section in document["sections"]
    ]
    data = _as_data({**document, "sections": sections})
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def table_csv(table: Table) -> str:
    """Return a table of a document as the CSV of a file, with the keys of its columns as header.

    A cell gives its value, or else its text, or else its mark. Where cells of a column have a
    text or a mark beside that, columns named ``key [text]`` and ``key [mark]`` follow it.
    """
    columns: dict[str, list[Any]] = {}
    for column in table["columns"]:
        key = column["key"]
        cells = [full_cell(row.get(key)) for row in table["rows"]]
        columns[key] = [_main_part(cell) for cell in cells]
        if any("value" in cell and "text" in cell for cell in cells):
            columns[f"{key} [text]"] = [shown_text(cell, column) for cell in cells]
        if any(cell.get("mark") and ("value" in cell or "text" in cell) for cell in cells):
            columns[f"{key} [mark]"] = [cell.get("mark") for cell in cells]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def document_markdown(document: Document) -> str:
    """Return title, lead, facts, paragraphs and tables as Markdown; figures by their captions."""
    parts = [f"# {_line(document['title'])}", _line(document["lead"])]
    if document["facts"]:
        parts.append(
            "\n".join(f"- {_line(name)}: {_line(text)}" for name, text in document["facts"])
        )
    for section in document["sections"]:
        parts.append(f"## {_line(section['title'])}")
        parts += [_line(paragraph) for paragraph in section["paragraphs"]]
        parts += [table_markdown(table) for table in section["tables"]]
        parts += [f"Figure: {_line(figure['caption'])}" for figure in section["figures"]]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    """Return a table of a document with its caption as Markdown, for a file.

    Examples
    --------
    >>> from covshift.report.document import make_cell, make_column, make_table
    >>> columns = [make_column("data", "data set"), make_column("SF", numeric=True)]
    >>> rows = [{"data": "radial", "SF": make_cell("0.79", value=0.79, mark="helps")}]
    >>> print(table_markdown(make_table("accuracy", "Accuracy", columns, rows)))
    Accuracy
    <BLANKLINE>
    | data set | SF |
    |---|---:|
    | radial | 0.79 ↑ |
    """
    columns = table["columns"]
    lines = [
        "| " + " | ".join(_in_cell(column["label"]) for column in columns) + " |",
        "|" + "|".join("---:" if column.get("numeric") else "---" for column in columns) + "|",
    ]
    for row in table["rows"]:
        cells = [full_cell(row.get(column["key"])) for column in columns]
        texts = [
            _in_cell(_with_mark(shown_text(cell, column), cell))
            for cell, column in zip(cells, columns, strict=True)
        ]
        lines.append("| " + " | ".join(texts) + " |")
    return f"{_line(table['caption'])}\n\n" + "\n".join(lines)


def _with_mark(text: str, cell: FullCell) -> str:
    mark = cell.get("mark")
    if mark is None:
        return text
    # Alone in its cell a mark is a word: a sign alone would be unclear.
    sign = SIGNS.get(mark, mark) if text else mark
    return f"{text} {sign}".strip()


def _in_cell(text: str) -> str:
    return _line(text).replace("\\", "\\\\").replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())


def _main_part(cell: FullCell) -> Any:
    if "value" not in cell:
        return cell.get("text", cell.get("mark"))
    value = cell["value"]
    return value if value is None or isinstance(value, str) else plain_number(value)


def _without_picture(figure: Figure) -> dict[str, Any]:
    return {key: part for key, part in figure.items() if key != "png"}


def _as_data(value: Any) -> Any:
    """Return what JSON can hold, at any depth."""
    if isinstance(value, Mapping):
        return {key: _as_data(part) for key, part in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if is_number(value):
        number = plain_number(value)
        if math.isnan(number):
            return None
        return number if math.isfinite(number) else f"{'-' if number < 0 else ''}Infinity"
    return [_as_data(part) for part in value]


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip(". ") or {"/", "\\", "\0"} & set(name):
        raise ValueError(f"name must be the start of a file's name, without folders, got {name!r}.")


def _write(path: Path, text: str) -> None:
    # Bytes, so that lines end alike everywhere; half of a surrogate pair becomes "?".
    write_whole(path, lambda file: file.write(text.encode("utf-8", "replace")))
