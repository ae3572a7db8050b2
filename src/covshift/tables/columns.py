r"""Columns of text, of Arrow and of frames -> numbers, truth values, dates or text.

Columns come as text, from text files; as columns of Arrow, from files with types; or as those of a
frame. All become one of four kinds. Arrays of Arrow go in and out where a file
is read (`as_kind`), NumPy's where rows become features (`column_numbers` and its siblings).

Numbers are written in one of two styles, one per file. Optional parts in brackets:

=======  ==============================================  ======================
style    a number                                        between thousands
=======  ==============================================  ======================
point    ``[+-]1234[.5][e-3]``, ``.5``, ``1,234,567.8``  comma, space, apostrophe
comma    ``[+-]1234[,5][e-3]``, ``,5``, ``1.234.567,8``  point, space, apostrophe
=======  ==============================================  ======================

A negative number may also be written ``(5)``, ``5-`` or with a longer dash in front. A separator of
thousands stands before each group of three digits or it is none. A whole number
with a zero in front is a code (``007``, a postcode): its column is text. A column of numbers may
hold other things, such as ``unknown``, in one cell of twenty: they are missing values. Infinite
numbers are missing values too. Truth values are ``true`` and ``false`` in any case.

A column may have a *spelling*, which the schema holds: the unit of its numbers (``kg``, ``%``,
``$``), or how its dates are written (`covshift.tables.dates`). Without one, numbers are
plain and dates are ISO 8601, ``2024-05-01``, with or without time and zone (read as UTC).
``days``, alone or before the spelling of a date, makes a number of a date: days since 1970.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal
from unicodedata import normalize

import numpy as np
import pandas as pd
import pyarrow as pa

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.tables.dates import as_days, date_spelling, is_days, read_spelling
from covshift.tables.text_layout import plain_name

Kind = Literal["number", "boolean", "date", "text"]
KINDS: tuple[Kind, ...] = ("number", "boolean", "date", "text")
NumberStyle = Literal["point", "comma"]

# Missing values as R, pandas, SQL and spreadsheet programs write them.
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"),
    *("#N/A", "#NA", "#N/A N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
)
# UCI's and Weka's files mark missing values so. New schemas hold it, those of earlier models do
# not.
MARKERS = ("?",)
# Of a column of numbers or dates these are missing values too. They are not markers, for text
# may mean something by them: "+" and "-" are results.
PLACEHOLDERS = ("-", "--", "---", ".", "..", "\N{EN DASH}", "\N{EM DASH}", *MARKERS)
# Patterns of RE2, which Arrow uses: \x{2019} is an apostrophe, \x{A0} and \x{202F} are spaces.
GROUPING: dict[NumberStyle, str] = {
    "point": r"[, '\x{2019}\x{A0}\x{202F}]",
    "comma": r"[. '\x{2019}\x{A0}\x{202F}]",
}
DECIMAL: dict[NumberStyle, str] = {"point": r"\.", "comma": ","}
UNSIGNED: dict[NumberStyle, str] = {
    style: rf"(?:(?:\d+|\d{{1,3}}(?:{GROUPING[style]}\d{{3}})+)(?:{DECIMAL[style]}\d*)?"
    rf"|{DECIMAL[style]}\d+)"
    for style in GROUPING
}
DASHES = r"\x{2212}\x{2013}"  # minus sign and en dash
# Notations of negative numbers by accountants and typesetters.
ODD_SIGN = rf"^[{DASHES}]|^\(.*\)$|[\d.,]-$"
WITH_PLAIN_SIGN: dict[NumberStyle, str] = {
    style: rf"^[+-]?{number}(?:[eE][+-]?\d+)?$" for style, number in UNSIGNED.items()
}
NUMBER_PATTERNS: dict[NumberStyle, str] = {
    style: rf"^(?:[+{DASHES}-]?{number}(?:[eE][+-]?\d+)?|\({number}\)|{number}-)$"
    for style, number in UNSIGNED.items()
}
ISO_DATE = r"^\d{4}-\d\d-\d\d(?:[T ]|$)"
ARROW_TYPES = {
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us"),
    "text": pa.string(),
}


def trim(cells: Any, missing: Sequence[str] = MISSING) -> Any:
    """Return a column's text without spaces around it, in NFC; what means nothing is missing."""
    # Each different text once: words repeat, and mostly there is nothing to do.
    different = pa.compute.unique(cells)
    if _trim_all(different, missing).equals(different):
        return from_start(cells)
    return _trim_all(cells, missing)


def _composed(cells: Any) -> Any:
    """Return text in NFC: macOS writes an accent apart from its letter, other systems as one.

    So are the signs of ohm, kelvin and angstrom, which look like letters, and become these.
    """
    if pa.compute.all(pa.compute.string_is_ascii(cells)).as_py() is not False:
        return cells
    # Not by `utf8_normalize`: that of pyarrow 17 only takes accents apart.
    different = pa.compute.unique(cells)
    texts = [None if text is None else normalize("NFC", text) for text in different.to_pylist()]
    normal = pa.array(texts, cells.type)
    if normal.equals(different):
        return cells
    return pa.compute.take(normal, pa.compute.index_in(cells, value_set=different))


def from_start(cells: Any) -> Any:
    """Return a column of text that begins where its buffers begin, copied if it does not.

    Up to pyarrow 22 at least, ``if_else`` returns zero bytes for part of the texts of a slice.
    """
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([from_start(chunk) for chunk in cells.chunks], cells.type)
    return pa.concat_arrays([cells]) if cells.offset else cells


def _trim_all(cells: Any, missing: Sequence[str]) -> Any:
    trimmed = _composed(pa.compute.utf8_trim_whitespace(cells))
    nothing = pa.compute.is_in(trimmed, value_set=_composed(pa.array(missing, pa.string())))
    return pa.compute.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def _to_numbers(cells: Any, style: NumberStyle, unit: str = "") -> Any:
    """Return a column of text as float64; cells that are not a finite number are missing.

    ``unit`` may stand before or behind a number.
    """
    if unit:
        cells = without_unit(cells, unit)
    if style == "point":
        try:  # ten times as fast as looking at each cell
            return _finite(pa.compute.cast(cells, pa.float64()))
        except pa.ArrowInvalid:
            pass
    trimmed = plain_signs(trim(cells))
    numbers = pa.compute.match_substring_regex(trimmed, WITH_PLAIN_SIGN[style])
    plain = pa.compute.if_else(numbers, trimmed, pa.scalar(None, pa.string()))
    plain = pa.compute.replace_substring_regex(plain, GROUPING[style], "")
    if style == "comma":
        plain = pa.compute.replace_substring(plain, ",", ".")
    return _finite(pa.compute.cast(plain, pa.float64()))


def to_booleans(cells: Any) -> Any:
    """Convert a column of text to truth values; 1 and 0 count too, anything else is missing."""
    lower = pa.compute.utf8_lower(trim(cells))
    true = pa.compute.is_in(lower, value_set=pa.array(["true", "1"]))
    false = pa.compute.is_in(lower, value_set=pa.array(["false", "0"]))
    return pa.compute.if_else(
        true, True, pa.compute.if_else(false, False, pa.scalar(None, pa.bool_()))
    )


def without_unit(cells: Any, unit: str) -> Any:
    """Return a column of text without the unit before or behind it, and without spaces between.

    Signs become plain ones: a unit may stand inside of brackets.
    """
    cells = plain_signs(_composed(cells))
    unit = _escaped(plain_name(unit))
    affix = rf"^[\s\x{{A0}}]*(?:{unit}[\s\x{{A0}}]*)?"
    cells = pa.compute.replace_substring_regex(cells, affix, "")
    cells = pa.compute.replace_substring_regex(
        cells, rf"[\s\x{{A0}}]*(?:{unit})?[\s\x{{A0}}]*$", "", max_replacements=1
    )
    # "-$5": the sign stands before the unit.
    return pa.compute.replace_substring_regex(cells, rf"^([+-]){unit}", r"\1")


def plain_signs(cells: Any) -> Any:
    """Convert a column of text to one whose negative numbers begin with a minus: ``-5``.

    The cell may have been ``(5)``.
    """
    if not pa.compute.any(pa.compute.match_substring_regex(cells, ODD_SIGN)).as_py():
        return cells
    cells = pa.compute.replace_substring_regex(cells, rf"^[{DASHES}]", "-")
    return pa.compute.replace_substring_regex(
        cells, r"^\(([^()+-]*\d[^()]*)\)$|^([^+-]*[\d.,])-$", r"-\1\2"
    )


def _escaped(text: str) -> str:
    """Return text as a pattern of RE2 that matches it alone."""
    return "".join(one if one.isalnum() else f"\\x{{{ord(one):X}}}" for one in text)


def to_dates(cells: Any, spelling: str = "") -> Any:
    """Convert a column of text to timestamps without zone; cells that are not dates are missing.

    No spelling: ISO 8601.
    """
    if spelling:
        return read_spelling(cells, spelling)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            dates = pa.compute.cast(cells, kind)
        except pa.ArrowInvalid:
            continue
        return pa.compute.cast(dates, pa.timestamp("us"))
    trimmed = trim(cells)
    iso = pa.compute.match_substring_regex(trimmed, ISO_DATE)
    shown = pa.compute.if_else(iso, trimmed, pa.scalar(None, pa.string()))
    dates = pd.to_datetime(
        pd.Series(shown.to_pylist(), dtype="object"), format="ISO8601", errors="coerce", utc=True
    )
    return pa.array(dates.dt.tz_localize(None).astype("datetime64[us]"), pa.timestamp("us"))


def read_cells(
    cells: Any,
    kind: Kind,
    style: NumberStyle,
    spelling: str = "",
    missing: Sequence[str] = MISSING,
) -> Any:
    """Convert a column of text to an array of this kind; ``missing``: what means nothing."""
    if kind == "number":
        if is_days(spelling):
            return as_days(to_dates(cells, date_spelling(spelling)))
        return _drop_numbers(_to_numbers(cells, style, spelling), missing)
    if kind == "boolean":
        return to_booleans(cells)
    return _dates_or_iso(cells, spelling) if kind == "date" else trim(cells, missing)


def _dates_or_iso(cells: Any, spelling: str) -> Any:
    """Return text as timestamps, of this spelling or ISO 8601, which can be taken for no other."""
    dates = to_dates(cells, spelling)
    if not spelling or dates.null_count == cells.null_count:
        return dates
    return pa.compute.coalesce(dates, to_dates(cells))


def _drop_numbers(numbers: Any, missing: Sequence[str]) -> Any:
    """Return numbers, those that stand for nothing, such as ``-999``, as missing."""
    if missing is MISSING:
        return numbers
    named = [float(one) for one in missing if re.fullmatch(r"[+-]?\d+(\.\d*)?", one)]
    if not named:
        return numbers
    nothing = pa.compute.is_in(numbers, value_set=pa.array(named, pa.float64()))
    return pa.compute.if_else(nothing, pa.scalar(None, pa.float64()), numbers)


def _finite(numbers: Any) -> Any:
    """Return numbers, those that are infinite or not numbers as missing."""
    usable = pa.compute.is_finite(numbers)
    if pa.compute.all(usable).as_py() is not False:  # None: only missing values
        return numbers
    return pa.compute.if_else(usable, numbers, pa.scalar(None, pa.float64()))


def guess_number_style(columns: list[Any], usual: NumberStyle) -> NumberStyle:
    """Return the style by which several columns of text are converted to numbers.

    The one under which more of the cells can be read.

    Where both serve alike it is the ``usual`` one, that of the training table.
    """
    trimmed = [pa.compute.drop_null(trim(column)) for column in columns]
    n_point = sum(count_numbers(column, "point") for column in trimmed)
    n_comma = sum(count_numbers(column, "comma") for column in trimmed)
    if n_point == n_comma:
        return usual
    return "point" if n_point > n_comma else "comma"


def count_numbers(cells: Any, style: NumberStyle) -> int:
    """Return how many cells of a text column are numbers of this style."""
    return int(
        pa.compute.sum(pa.compute.match_substring_regex(cells, NUMBER_PATTERNS[style])).as_py() or 0
    )


# --- Columns of pandas frames and of Arrow, of whatever type, as NumPy arrays or text ---


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
MISSING_DOMAIN = "(missing)"  # name of the domain of rows that name none
DAY = np.timedelta64(86_400_000_000, "us")


def as_columns(X: Any) -> tuple[dict[str, Any], int]:
    """Return the columns of rows by their plain names, and the number of rows.

    Batches of `covshift.tables.TableReader` are taken as they are, all else as a frame.
    """
    if isinstance(X, pa.RecordBatch) and PLAIN_TYPES.issuperset(X.schema.types):
        return dict(zip(X.schema.names, X.columns, strict=True)), X.num_rows
    frame = as_frame(X)
    return {plain_name(str(name)): column for name, column in frame.items()}, len(frame)


def as_frame(X: Any) -> Any:
    """Return columns of rows as a pandas frame; polars frames and arrays will do."""
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    values = np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"Expected a frame, or rows and columns; got {values.ndim} dimensions.")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


def column_kind(column: Any) -> Kind:
    """Return the kind of a column: number, truth value, date or text."""
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
        kept = _drop_numbers(pa.array(numbers, from_pandas=True), missing)
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
        numbers = _to_numbers(column_text(column), "point", unit).to_numpy(zero_copy_only=False)
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
    """Convert a column of dates to days since 1970; NaN where a cell is not a date.

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


def domain_texts(column: Any, missing: Sequence[str] = MISSING) -> list[str]:
    """Convert a column of domains to names."""
    names: list[str] = column_text(column, missing).fill_null(MISSING_DOMAIN).to_pylist()
    return names


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
    floats = _to_numbers(column_text(column), "point", unit) if text else column.cast(pa.float64())
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


# Columns whose types `arrow_kind` does not name.
UNUSABLE = "lists, records, bytes, times of day or durations"


def arrow_kind(kind: Any) -> Kind | None:
    """Return the kind that columns of this type of Arrow have, or None."""
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
        return _drop_numbers(_finite(column), missing) if kind == "number" else column
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
