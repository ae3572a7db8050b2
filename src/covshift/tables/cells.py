r"""Cells of text -> numbers, truth values, dates; arrays of Arrow in and out.

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

from covshift.tables.dates import read_spelling
from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa

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
DAYS = "days"  # the spelling of a number that is written as a date
DAY_MICROSECONDS = 86_400_000_000
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
PATTERNS: dict[NumberStyle, str] = {
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
    """Return text without the spaces around it; what stands for nothing is missing."""
    # Each different text once: words repeat, and mostly there is nothing to do.
    different = pa.compute.unique(cells)
    if _trim_all(different, missing).equals(different):
        return from_start(cells)
    return _trim_all(cells, missing)


def from_start(cells: Any) -> Any:
    """Return text that begins where its buffers begin, copied if it does not.

    Up to pyarrow 22 at least, ``if_else`` returns zero bytes for part of the texts of a slice.
    """
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([from_start(chunk) for chunk in cells.chunks], cells.type)
    return pa.concat_arrays([cells]) if cells.offset else cells


def _trim_all(cells: Any, missing: Sequence[str]) -> Any:
    trimmed = pa.compute.utf8_trim_whitespace(cells)
    nothing = pa.compute.is_in(trimmed, value_set=pa.array(missing, pa.string()))
    return pa.compute.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def to_numbers(cells: Any, style: NumberStyle, unit: str = "") -> Any:
    """Return text as float64; cells that are not a finite number of this style are missing.

    ``unit`` may stand before or behind a number.
    """
    if unit:
        cells = without_unit(cells, unit)
    if style == "point":
        try:  # ten times as fast as looking at each cell
            return finite(pa.compute.cast(cells, pa.float64()))
        except pa.ArrowInvalid:
            pass
    trimmed = plain_signs(trim(cells))
    numbers = pa.compute.match_substring_regex(trimmed, WITH_PLAIN_SIGN[style])
    plain = pa.compute.if_else(numbers, trimmed, pa.scalar(None, pa.string()))
    plain = pa.compute.replace_substring_regex(plain, GROUPING[style], "")
    if style == "comma":
        plain = pa.compute.replace_substring(plain, ",", ".")
    return finite(pa.compute.cast(plain, pa.float64()))


def to_booleans(cells: Any) -> Any:
    """Return text as truth values; 1 and 0 count too, anything else is missing."""
    lower = pa.compute.utf8_lower(trim(cells))
    true = pa.compute.is_in(lower, value_set=pa.array(["true", "1"]))
    false = pa.compute.is_in(lower, value_set=pa.array(["false", "0"]))
    return pa.compute.if_else(
        true, True, pa.compute.if_else(false, False, pa.scalar(None, pa.bool_()))
    )


def without_unit(cells: Any, unit: str) -> Any:
    """Return text without the unit before or behind it, and without the spaces between.

    Signs become plain ones: a unit may stand inside of brackets.
    """
    cells = plain_signs(cells)
    affix = rf"^[\s\x{{A0}}]*(?:{escaped(unit)}[\s\x{{A0}}]*)?"
    cells = pa.compute.replace_substring_regex(cells, affix, "")
    cells = pa.compute.replace_substring_regex(
        cells, rf"[\s\x{{A0}}]*(?:{escaped(unit)})?[\s\x{{A0}}]*$", "", max_replacements=1
    )
    # "-$5": the sign stands before the unit.
    return pa.compute.replace_substring_regex(cells, rf"^([+-]){escaped(unit)}", r"\1")


def plain_signs(cells: Any) -> Any:
    """Return text whose negative numbers begin with a plain minus: ``-5`` for ``(5)``."""
    if not pa.compute.any(pa.compute.match_substring_regex(cells, ODD_SIGN)).as_py():
        return cells
    cells = pa.compute.replace_substring_regex(cells, rf"^[{DASHES}]", "-")
    return pa.compute.replace_substring_regex(
        cells, r"^\(([^()+-]*\d[^()]*)\)$|^([^+-]*[\d.,])-$", r"-\1\2"
    )


def escaped(text: str) -> str:
    """Return text as a pattern of RE2 that matches it alone."""
    return "".join(one if one.isalnum() else f"\\x{{{ord(one):X}}}" for one in text)


def to_dates(cells: Any, spelling: str = "") -> Any:
    """Return text as timestamps without zone; cells that are not such a date are missing.

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
    """Return text as an array of this kind; ``missing``: what stands for nothing."""
    if kind == "number":
        if is_days(spelling):
            return as_days(to_dates(cells, date_spelling(spelling)))
        return drop_numbers(to_numbers(cells, style, spelling), missing)
    if kind == "boolean":
        return to_booleans(cells)
    return _dates_or_iso(cells, spelling) if kind == "date" else trim(cells, missing)


def _dates_or_iso(cells: Any, spelling: str) -> Any:
    """Return text as timestamps, of this spelling or ISO 8601, which can be taken for no other."""
    dates = to_dates(cells, spelling)
    if not spelling or dates.null_count == cells.null_count:
        return dates
    return pa.compute.coalesce(dates, to_dates(cells))


def is_days(spelling: str) -> bool:
    """Return whether numbers of this spelling are written as dates."""
    return spelling.partition(" ")[0] == DAYS


def date_spelling(spelling: str) -> str:
    """Return the spelling of the dates that numbers are written as."""
    return spelling[len(DAYS) :].strip()


def as_days(dates: Any) -> Any:
    """Return timestamps as days since 1970."""
    microseconds = pa.compute.cast(pa.compute.cast(dates, pa.int64()), pa.float64(), safe=False)
    return pa.compute.divide(microseconds, float(DAY_MICROSECONDS))


def drop_numbers(numbers: Any, missing: Sequence[str]) -> Any:
    """Return numbers, those that stand for nothing, such as ``-999``, as missing."""
    if missing is MISSING:
        return numbers
    named = [float(one) for one in missing if re.fullmatch(r"[+-]?\d+(\.\d*)?", one)]
    if not named:
        return numbers
    nothing = pa.compute.is_in(numbers, value_set=pa.array(named, pa.float64()))
    return pa.compute.if_else(nothing, pa.scalar(None, pa.float64()), numbers)


def finite(numbers: Any) -> Any:
    """Return numbers, those that are infinite or not numbers as missing."""
    usable = pa.compute.is_finite(numbers)
    if pa.compute.all(usable).as_py() is not False:  # None: only missing values
        return numbers
    return pa.compute.if_else(usable, numbers, pa.scalar(None, pa.float64()))


def guess_style(columns: list[Any], usual: NumberStyle) -> NumberStyle:
    """Return the style under which more cells of columns known to be numbers can be read.

    Where both serve alike it is the ``usual`` one, that of the training table.
    """
    trimmed = [pa.compute.drop_null(trim(column)) for column in columns]
    n_point = sum(count_numbers(column, "point") for column in trimmed)
    n_comma = sum(count_numbers(column, "comma") for column in trimmed)
    if n_point == n_comma:
        return usual
    return "point" if n_point > n_comma else "comma"


def count_numbers(cells: Any, style: NumberStyle) -> int:
    """Return how many cells, trimmed, are numbers of this style."""
    return int(
        pa.compute.sum(pa.compute.match_substring_regex(cells, PATTERNS[style])).as_py() or 0
    )
