"""Columns of pandas frames, of whatever type, and of Arrow as numbers, dates or text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.tables.cells import (
    ARROW_TYPES,
    MISSING,
    Kind,
    NumberStyle,
    as_days,
    date_spelling,
    drop_numbers,
    finite,
    is_days,
    read_cells,
    to_booleans,
    to_dates,
    to_numbers,
    trim,
)
from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa

OBJECT_KINDS: dict[str, Kind] = {
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
}
# Text that repeats: each different text once, and its place for each row.
CATEGORIES = pa.dictionary(pa.int32(), ARROW_TYPES["text"])
PLAIN_TYPES = {*ARROW_TYPES.values(), CATEGORIES}
DAY = np.timedelta64(86_400_000_000, "us")


def as_columns(X: Any) -> tuple[dict[str, Any], int]:
    """Return the columns of rows by name, and the number of rows.

    Batches of `covshift.tables.TableReader` are taken as they are, all else as a frame.
    """
    if isinstance(X, pa.RecordBatch) and PLAIN_TYPES.issuperset(X.schema.types):
        return dict(zip(X.schema.names, X.columns, strict=True)), X.num_rows
    frame = as_frame(X)
    return {str(name): column for name, column in frame.items()}, len(frame)


def as_frame(X: Any) -> Any:
    """Return rows as a pandas frame; polars frames and arrays will do."""
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    values = np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"Expected a frame, or rows and columns; got {values.ndim} dimensions.")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


def column_kind(column: Any) -> Kind:
    """Return what a column holds."""
    if isinstance(column, pa.Array):
        kind = arrow_kind(column.type)
        assert kind is not None
        return kind
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return column_kind(dtype.categories.to_series())
    types = pd.api.types
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype):
        return "date"
    if types.is_object_dtype(dtype):
        return OBJECT_KINDS.get(types.infer_dtype(column, skipna=True), "text")
    return "text"


def column_numbers(column: Any, spelling: str = "", missing: Sequence[str] = MISSING) -> FloatArray:
    """Return a column as numbers; what is none, or infinite, is NaN. Dates are none.

    ``spelling`` is the unit of numbers that are text, or makes numbers of dates (`cells`).
    """
    if is_days(spelling) and column_kind(column) in ("date", "text"):
        return column_days(column, date_spelling(spelling))
    numbers = _plain_numbers(column, spelling)
    if missing is not MISSING:
        kept = drop_numbers(pa.array(numbers, from_pandas=True), missing)
        numbers = kept.to_numpy(zero_copy_only=False)
    return numbers


def _plain_numbers(column: Any, unit: str) -> FloatArray:
    if isinstance(column, pa.Array):
        numbers = _arrow_numbers(column, unit)
    elif isinstance(dtype := column.dtype, np.dtype) and dtype.kind in "fiub":
        numbers = column.to_numpy(dtype=np.float64)
    elif pd.api.types.is_timedelta64_dtype(dtype):
        numbers = column.to_numpy() / DAY
    elif pd.api.types.is_datetime64_any_dtype(dtype):
        return np.full(len(column), np.nan)
    elif pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif column_kind(column) in ("number", "boolean"):  # objects
        missing = column.isna().to_numpy()
        pairs = zip(column.tolist(), missing, strict=True)
        numbers = np.array([np.nan if absent else float(value) for value, absent in pairs])
    else:
        numbers = to_numbers(column_text(column), "point", unit).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        numbers = np.where(np.isinf(numbers), np.nan, numbers)
    return numbers


def column_truth(column: Any) -> FloatArray:
    """Return a column of truth values as 1 and 0; text that says neither is NaN."""
    if column_kind(column) != "text":
        return column_numbers(column)
    truth = pa.compute.cast(to_booleans(column_text(column)), pa.float64())
    return truth.to_numpy(zero_copy_only=False)


def column_days(column: Any, spelling: str = "") -> FloatArray:
    """Return a column of dates as days since 1970; NaN where a cell is not a date.

    ``spelling`` is how dates that are text, or whole numbers, are written.
    """
    kind = column_kind(column)
    if kind not in ("text", "date") and not (kind == "number" and spelling == "packed"):
        return np.full(len(column), np.nan)
    if isinstance(column, pa.Array) and kind == "date":
        dates = column.to_numpy(zero_copy_only=False)
    elif kind != "date":
        dates = to_dates(column_text(column), spelling).to_numpy(zero_copy_only=False)
    elif not pd.api.types.is_datetime64_any_dtype(column.dtype):
        dates = to_dates(column_text(column)).to_numpy(zero_copy_only=False)
    else:
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        dates = column.to_numpy(dtype="datetime64[us]")
    days = (dates - np.datetime64(0, "us")) / DAY
    return np.where(np.isnat(dates), np.nan, days)


def column_text(column: Any, missing: Sequence[str] = MISSING) -> Any:
    """Return a column as text of Arrow, trimmed; whole numbers have no point."""
    return trim(_as_text(column), missing)


def column_categories(
    column: Any, missing: Sequence[str] = MISSING
) -> tuple[list[str | None], IntArray]:
    """Return the different texts of a column, some perhaps twice, and each row's place there."""
    if isinstance(column, pa.DictionaryArray):
        texts = trim(column.dictionary, missing).to_pylist()
        return [*texts, None], column.indices.fill_null(len(texts)).to_numpy()
    encoded = _as_text(column).dictionary_encode(null_encoding="encode")
    # Trimmed once each, not once per row: two texts may be alike then.
    texts = trim(encoded.dictionary, missing).to_pylist()
    return texts, encoded.indices.to_numpy(zero_copy_only=False)


def _arrow_numbers(column: Any, unit: str) -> FloatArray:
    kind = arrow_kind(column.type)
    if kind == "date":
        return np.full(len(column), np.nan)
    text = kind == "text"
    floats = to_numbers(column_text(column), "point", unit) if text else column.cast(pa.float64())
    return floats.to_numpy(zero_copy_only=False)


def _as_text(column: Any) -> Any:
    if isinstance(column, pa.Array):
        if arrow_kind(column.type) == "text":
            return as_text(column)
        # Numbers, dates and truth values are spelled as those of frames are.
        column = to_frame(pa.RecordBatch.from_arrays([column], names=["column"]))["column"]
    if isinstance(column.dtype, pd.StringDtype):
        try:
            text = pa.array(column, type=pa.string())
        except UnicodeEncodeError:
            return _as_text(column.astype(object))
        # Frames put together of several have their chunks still.
        return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _as_text(column.astype(column.cat.categories.dtype))
    missing = column.isna().to_numpy()
    shown = [
        None if absent else _shown(value)
        for value, absent in zip(column.tolist(), missing, strict=True)
    ]
    return pa.array(shown, type=pa.string())


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Text from other programs may hold halves of characters, which no file can.
    return str(value).encode("utf-8", "replace").decode("utf-8")


# --- Columns of Arrow, of whatever type, as one of our kinds, and frames of such columns ---


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
