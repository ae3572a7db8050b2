r"""Cells of text -> numbers, truth values, dates; arrays of Arrow in and out.

Numbers are written in one of two styles, one per file. Optional parts in brackets:

=======  ==============================================  ======================
style    a number                                        between thousands
=======  ==============================================  ======================
point    ``[+-]1234[.5][e-3]``, ``.5``, ``1,234,567.8``  comma, apostrophe
comma    ``[+-]1234[,5][e-3]``, ``,5``, ``1.234.567,8``  point, space, apostrophe
=======  ==============================================  ======================

A separator of thousands stands before each group of three digits or it is none. A whole number
with a zero in front is a code (``007``, a postcode): its column is text. A column of numbers may
hold other things, such as ``unknown``, in one cell of twenty: they are missing values. Infinite
numbers are missing values too. Dates are ISO 8601, ``2024-05-01``, with or without time and zone
(read as UTC); truth values are ``true`` and ``false`` in any case.
"""

from typing import Any, Literal

import numpy as np

from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa

Kind = Literal["number", "boolean", "date", "text"]
KINDS: tuple[Kind, ...] = ("number", "boolean", "date", "text")
NumberStyle = Literal["point", "comma"]

# What R, pandas, SQL and spreadsheet programs write where there is nothing.
MISSING = (
    *("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"),
    *("#N/A", "#NA", "#N/A N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"),
)
# Patterns of RE2, which Arrow uses: \x{2019} is an apostrophe, \x{A0} and \x{202F} are spaces.
GROUPING: dict[NumberStyle, str] = {
    "point": r"[,'\x{2019}]",
    "comma": r"[. '\x{2019}\x{A0}\x{202F}]",
}
DECIMAL: dict[NumberStyle, str] = {"point": r"\.", "comma": ","}
PATTERNS: dict[NumberStyle, str] = {
    style: rf"^[+-]?(?:(?:\d+|\d{{1,3}}(?:{GROUPING[style]}\d{{3}})+)(?:{DECIMAL[style]}\d*)?"
    rf"|{DECIMAL[style]}\d+)(?:[eE][+-]?\d+)?$"
    for style in GROUPING
}
NUMBER_SHARE = 0.95  # of the cells of a column of numbers that must be numbers
POSSIBLE_SHARE = 0.5  # below which a column is not looked at further
CODE = r"^[+-]?0\d+$"
ISO_DATE = r"^\d{4}-\d\d-\d\d(?:[T ]|$)"
ARROW_TYPES = {
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us"),
    "text": pa.string(),
}


def trim(cells: Any) -> Any:
    """Return text without the spaces around it; what stands for nothing is missing."""
    # Each different text once: words repeat, and mostly there is nothing to do.
    different = pa.compute.unique(cells)
    if _trim_all(different).equals(different):
        return cells
    return _trim_all(cells)


def _trim_all(cells: Any) -> Any:
    trimmed = pa.compute.utf8_trim_whitespace(cells)
    missing = pa.compute.is_in(trimmed, value_set=pa.array(MISSING, pa.string()))
    return pa.compute.if_else(missing, pa.scalar(None, pa.string()), trimmed)


def to_numbers(cells: Any, style: NumberStyle) -> Any:
    """Return text as float64; what is no finite number of this style is missing."""
    if style == "point":
        try:  # ten times as fast as looking at each cell
            return finite(pa.compute.cast(cells, pa.float64()))
        except pa.ArrowInvalid:
            pass
    trimmed = trim(cells)
    numbers = pa.compute.match_substring_regex(trimmed, PATTERNS[style])
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


def to_dates(cells: Any) -> Any:
    """Return text as timestamps without zone; what is no ISO date is missing."""
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


def read_cells(cells: Any, kind: Kind, style: NumberStyle) -> Any:
    """Return text as an array of this kind."""
    if kind == "number":
        return to_numbers(cells, style)
    if kind == "boolean":
        return to_booleans(cells)
    return to_dates(cells) if kind == "date" else trim(cells)


def finite(numbers: Any) -> Any:
    """Return numbers, those that are infinite or not numbers as missing."""
    usable = pa.compute.is_finite(numbers)
    if pa.compute.all(usable).as_py() is not False:  # None: nothing but missing values
        return numbers
    return pa.compute.if_else(usable, numbers, pa.scalar(None, pa.float64()))


class ColumnTypes:
    """Which kinds a column of text can still be, chunk after chunk.

    Attributes
    ----------
    filled : number of cells that hold something.
    numbers : how many of them are numbers, in each style that is still possible.
    has_comma, has_point : whether numbers are written with one.
    codes : whether it would be numbers, were it not for zeros in front.
    """

    def __init__(self) -> None:
        self.filled = 0
        self.numbers: dict[NumberStyle, int] = dict.fromkeys(PATTERNS, 0)
        self.others: set[Kind] = {"boolean", "date"}
        self.has_comma = self.has_point = self.codes = False

    def look_at(self, cells: Any) -> None:
        """Take in one chunk."""
        if not self.numbers and not self.others:
            self.filled += len(cells) - cells.null_count
            return
        cells = pa.compute.drop_null(cells)
        if len(cells) and not self._take_plain_numbers(cells):
            cells = pa.compute.drop_null(trim(cells))
            if len(cells):
                self._look_closely(cells)
        self.filled += len(cells)
        for style, count in list(self.numbers.items()):
            if count < POSSIBLE_SHARE * self.filled:
                del self.numbers[style]

    def _take_plain_numbers(self, cells: Any) -> bool:
        """Take in a chunk of numbers that need no closer look: most chunks of most columns."""
        if "point" not in self.numbers:
            return False
        try:
            numbers = pa.compute.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return False
        # Only whole numbers can be codes; a look at a few spares most columns a slow search.
        if np.array_equal(numbers[:1000], np.floor(numbers[:1000])) and _has_codes(cells):
            return False
        self.others.clear()
        self.numbers["point"] += len(cells)
        if "comma" in self.numbers:
            points = _any(pa.compute.match_substring(cells, "."))
            self.has_point |= points
            self.numbers["comma"] += _count_numbers(cells, "comma") if points else len(cells)
        return True

    def _look_closely(self, cells: Any) -> None:
        for style in self.numbers:
            self.numbers[style] += _count_numbers(cells, style)
        if self.numbers:
            self.has_comma |= _any(pa.compute.match_substring(cells, ","))
            self.has_point |= _any(pa.compute.match_substring(cells, "."))
            self.codes |= _has_codes(cells)
        if "boolean" in self.others:
            lower = pa.compute.utf8_lower(cells)
            if not _all(pa.compute.is_in(lower, value_set=pa.array(["true", "false"]))):
                self.others.discard("boolean")
        if "date" in self.others and to_dates(cells).null_count:
            self.others.discard("date")

    def is_number(self, style: NumberStyle) -> bool:
        """Whether the cells are numbers of this style, but for a few."""
        share = self.numbers.get(style, 0) / max(self.filled, 1)
        return share >= NUMBER_SHARE and not self.codes

    def kind(self, style: NumberStyle) -> Kind:
        """Return the kind, all chunks seen; a column without any cell is text."""
        if self.is_number(style):
            return "number"
        return next((kind for kind in KINDS if kind in self.others and self.filled), "text")


def choose_style(columns: list[ColumnTypes], separator: str) -> NumberStyle:
    """Return the style under which more cells of columns of numbers can be read.

    Where both serve alike, as for ``12,345``, commas are decimal only in a file that has a reason
    to separate its cells by semicolons, and no number with a point.
    """
    numeric = [column for column in columns if any(map(column.is_number, PATTERNS))]
    n_point = sum(column.numbers.get("point", 0) for column in numeric)
    n_comma = sum(column.numbers.get("comma", 0) for column in numeric)
    if n_point != n_comma:
        return "point" if n_point > n_comma else "comma"
    commas = any(column.has_comma for column in numeric)
    points = any(column.has_point for column in numeric)
    return "comma" if separator == ";" and commas and not points else "point"


def guess_style(columns: list[Any], usual: NumberStyle) -> NumberStyle:
    """Return the style under which more cells of columns known to be numbers can be read.

    Where both serve alike it is the ``usual`` one, that of the training table.
    """
    trimmed = [pa.compute.drop_null(trim(column)) for column in columns]
    n_point = sum(_count_numbers(column, "point") for column in trimmed)
    n_comma = sum(_count_numbers(column, "comma") for column in trimmed)
    if n_point == n_comma:
        return usual
    return "point" if n_point > n_comma else "comma"


def _count_numbers(cells: Any, style: NumberStyle) -> int:
    return int(
        pa.compute.sum(pa.compute.match_substring_regex(cells, PATTERNS[style])).as_py() or 0
    )


def _has_codes(cells: Any) -> bool:
    """Whether some whole number has a zero in front."""
    return _any(pa.compute.match_substring_regex(cells, CODE))


def _all(values: Any) -> bool:
    return bool(np.all(pa.compute.all(values).as_py()))


def _any(values: Any) -> bool:
    return bool(pa.compute.any(values).as_py())
