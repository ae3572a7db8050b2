"""The columns of a file and their kinds, found by reading it through once."""

from typing import Any

from covshift.tables.arrow_columns import arrow_kind
from covshift.tables.cells import ColumnTypes, Kind, NumberStyle, choose_style
from covshift.tables.errors import listed, table_error
from covshift.tables.schema import TableSchema


def find_schema(
    source: Any, style: NumberStyle | None
) -> tuple[TableSchema, NumberStyle | None, list[str]]:
    """Return the schema of a source of batches, the style of its numbers, and notes."""
    notes: list[str] = []
    if source.typed:
        kinds = _typed_kinds(source, notes)
    else:
        kinds, style = _text_kinds(source, style, notes)
    if row_names := [name for name in source.row_names if name in kinds]:
        notes.append(f"Row names are left out: {listed(row_names)}.")
    kinds = {name: kind for name, kind in kinds.items() if name not in row_names}
    if not kinds:
        raise table_error(source.path, "has no column that can be used.")
    return TableSchema(kinds, "," if style == "comma" else "."), style, notes


def _typed_kinds(source: Any, notes: list[str]) -> dict[str, Kind]:
    found = dict(zip(source.names, map(arrow_kind, source.types), strict=True))
    unusable = [name for name, kind in found.items() if kind is None]
    if unusable:
        notes.append(f"Columns with lists, records or bytes are left out: {listed(unusable)}.")
    return {name: kind for name, kind in found.items() if kind is not None}


def _text_kinds(
    source: Any, style: NumberStyle | None, notes: list[str]
) -> tuple[dict[str, Kind], NumberStyle]:
    columns = {name: ColumnTypes() for name in source.names}
    n_rows = 0
    for batch in source.read():
        n_rows += batch.num_rows
        for name, column in zip(source.names, batch.columns, strict=True):
            columns[name].look_at(column)
    if not n_rows:
        raise table_error(source.path, "has names of columns and no rows below them.")
    empty = [source.names[i] for i in source.nameless if not columns[source.names[i]].filled]
    if empty and len(empty) < len(columns):
        columns = {name: column for name, column in columns.items() if name not in empty}
        notes.append(f"{len(empty)} columns without name or cells are left out.")
    if style is None:
        style = choose_style(list(columns.values()), source.separator)
    kinds = {name: column.kind(style) for name, column in columns.items()}
    if codes := [name for name, column in columns.items() if column.codes]:
        notes.append(f"Numbers that begin with a zero are codes, read as text: {listed(codes)}.")
    grouped = [n for n, column in columns.items() if column.has_comma and kinds[n] == "number"]
    if style == "point" and grouped:
        notes.append(
            "Commas are read as separators of thousands, as in '1,234' (if they are decimal signs, "
            f"say so): {listed(grouped)}."
        )
    return kinds, style
