"""Columns of Arrow, of whatever type, as one of our kinds, and frames of such columns."""

from collections.abc import Sequence
from typing import Any

from covshift.tables.cells import (
    ARROW_TYPES,
    MISSING,
    Kind,
    NumberStyle,
    as_days,
    drop_numbers,
    finite,
    is_days,
    read_cells,
    trim,
)
from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa

# Text that repeats: each different text once, and its place for each row.
CATEGORIES = pa.dictionary(pa.int32(), ARROW_TYPES["text"])
READ_TYPES = ARROW_TYPES | {"text": CATEGORIES}
PANDAS_TYPES = {pa.string(): pd.StringDtype("pyarrow"), pa.bool_(): pd.BooleanDtype()}


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
    """Return a column of a file as one of our four types, as text or as categories of text."""
    if pa.types.is_dictionary(column.type):
        if column.type == CATEGORIES and not column.dictionary.null_count:
            return column
        column = column.dictionary_decode()
    kind = arrow_kind(column.type)
    assert kind is not None
    if column.type == ARROW_TYPES[kind]:
        return column
    # Nanoseconds are cut; no date of a table needs them.
    return pa.compute.cast(column, ARROW_TYPES[kind], safe=False)


def as_text(column: Any) -> Any:
    """Return a plain column as text, whole numbers without a point."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column if pa.types.is_string(column.type) else pa.compute.cast(column, pa.string())


def as_kind(
    column: Any,
    kind: Kind,
    style: NumberStyle,
    spelling: str = "",
    missing: Sequence[str] = MISSING,
) -> Any:
    """Return a plain column as another kind; what does not fit is missing."""
    if column.type == CATEGORIES and kind == "text":
        return _trim_categories(column, missing)
    if arrow_kind(column.type) == "text":
        return read_cells(as_text(column), kind, style, spelling, missing)
    if kind == "number" and pa.types.is_timestamp(column.type) and is_days(spelling):
        return as_days(column)
    if column.type == ARROW_TYPES[kind]:
        return drop_numbers(finite(column), missing) if kind == "number" else column
    if kind == "number" and pa.types.is_boolean(column.type):
        return pa.compute.cast(column, pa.float64())
    return read_cells(as_text(column), kind, "point", spelling, missing)


def to_frame(batch: Any) -> Any:
    """Return plain columns as a pandas frame."""
    arrays = [as_text(a) if a.type == CATEGORIES else a for a in batch.columns]
    table = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
    # Columns stay where they are: gathering them in blocks would copy all numbers.
    return table.to_pandas(types_mapper=PANDAS_TYPES.get, split_blocks=True)


def _trim_categories(column: Any, missing: Sequence[str]) -> Any:
    """Return categories as they are if there is nothing to trim, else as text."""
    texts = column.dictionary
    trimmed = trim(texts, missing)
    return column if trimmed is texts else trimmed.take(column.indices)
