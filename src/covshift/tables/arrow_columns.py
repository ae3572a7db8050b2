"""Columns of Arrow, of whatever type, as one of our kinds."""

from typing import Any

from covshift.tables.cells import ARROW_TYPES, Kind, NumberStyle, finite, read_cells
from covshift.tables.extra import pyarrow as pa


def arrow_kind(kind: Any) -> Kind | None:
    """Return what a type of Arrow is to us, or None."""
    if pa.types.is_dictionary(kind):
        return arrow_kind(kind.value_type)
    if pa.types.is_boolean(kind):
        return "boolean"
    if any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "date"
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_null,
    )
    return "text" if any(test(kind) for test in texts) else None


def plain_column(column: Any) -> Any:
    """Return a column of a file as one of our four types or as plain text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = arrow_kind(column.type)
    assert kind is not None
    if column.type == ARROW_TYPES[kind]:
        return column
    # Nanoseconds are cut; no date of a table needs them.
    return pa.compute.cast(column, ARROW_TYPES[kind], safe=False)


def as_text(column: Any) -> Any:
    """Return a plain column as text, whole numbers without a point."""
    return column if pa.types.is_string(column.type) else pa.compute.cast(column, pa.string())


def as_kind(column: Any, kind: Kind, style: NumberStyle) -> Any:
    """Return a plain column as another kind; what does not fit is missing."""
    if pa.types.is_string(column.type):
        return read_cells(column, kind, style)
    if column.type == ARROW_TYPES[kind]:
        return finite(column) if kind == "number" else column
    if kind == "number" and pa.types.is_boolean(column.type):
        return pa.compute.cast(column, pa.float64())
    return read_cells(as_text(column), kind, "point")
