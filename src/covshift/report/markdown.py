"""A document -> Markdown: what it says and its tables, for a page of documentation."""

from covshift.report.cells import full_cell, shown_text
from covshift.report.document import Document, FullCell, Table

# Symbols of marks; other marks are shown as words.
SIGNS = {"helps": "↑", "harms": "↓", "unclear": ""}


def document_markdown(document: Document) -> str:
    """Return title, lead, facts, paragraphs and tables as Markdown; figures by their captions.

    Parameters
    ----------
    document : Document
        Document.

    Returns
    -------
    str
    """
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
    """Return a table with its caption as Markdown.

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
    # Alone in its cell a mark is a word: a sign there would say nothing.
    sign = SIGNS.get(mark, mark) if text else mark
    return f"{text} {sign}".strip()


def _in_cell(text: str) -> str:
    return _line(text).replace("\\", "\\\\").replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())
