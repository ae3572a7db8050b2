"""Types of the columns of a text file, from all of their cells, chunk after chunk."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from covshift.tables.cells import (
    KINDS,
    MISSING,
    PATTERNS,
    PLACEHOLDERS,
    Kind,
    NumberStyle,
    count_numbers,
    plain_signs,
    to_dates,
    trim,
    without_unit,
)
from covshift.tables.dates import SPELLINGS
from covshift.tables.extra import pyarrow as pa

LARGE_SHARE = 0.95  # of cells that must be numbers, or dates, for a column to be
POSSIBLE_SHARE = 0.5  # share of fitting cells below which a kind is excluded
MIN_PACKED = 3  # cells like 20240501 that must be, for whole numbers to be taken for dates
FIRST_CELLS = 200  # cells that select which spellings of dates are tried
MAX_REMEMBERED = 20  # examples kept of other cells, and of units
CODE = r"^[+-]?0\d+$"
# Patterns of RE2: a number, whatever its style, and what stands before or behind it.
CURRENCIES = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
WITH_UNIT = (
    rf"^[+-]?(?P<before>{CURRENCIES})?[\s\x{{A0}}]*[+-]?\d[\d.,'\x{{2019}}]*(?:[eE][+-]?\d+)?"
    r"[\s\x{A0}]*(?P<behind>(?:[%\x{2030}\x{B0}\x{B5}\x{B2}\x{B3}/$€£¥₹]|\pL)"
    r"(?:[\x{B0}\x{B5}\x{B2}\x{B3}/.*^\d]|\pL){0,11})?$"
)


class ColumnTypes:
    """Which kinds a column of text can still be, chunk after chunk.

    Parameters
    ----------
    missing : texts that stand for nothing.
    markers : those of them that are counted, for a note.
    present : texts that are values.

    Attributes
    ----------
    filled : number of cells that hold something.
    judged : those that are not among `PLACEHOLDERS`.
    marked, placeholders : how often which marker, and which placeholder, was met.
    numbers : how many cells are numbers, in each style that is still possible.
    unit : unit of the numbers, "" if there is none.
    units, others_than_numbers : what was met beside plain numbers, and how often.
    dates : how many cells are dates, in each spelling that is still possible.
    has_comma, has_point : whether numbers are written with one.
    has_brackets : whether negative numbers are written in brackets.
    codes : whether it would be numbers, were it not for zeros in front.
    n_bare : how many numbers have no unit, in a column with one.
    plain : whether all cells are plain numbers, or missing.
    """

    def __init__(
        self,
        missing: Sequence[str] = MISSING,
        markers: Sequence[str] = (),
        present: Sequence[str] = (),
    ) -> None:
        self._missing = [one for one in missing if one not in markers]
        self._markers = markers
        self._placeholders = [one for one in PLACEHOLDERS if one not in (*markers, *present)]
        self.filled = self.judged = 0
        self.marked: Counter[str] = Counter()
        self.placeholders: Counter[str] = Counter()
        self.numbers: dict[NumberStyle, int] = dict.fromkeys(PATTERNS, 0)
        self.unit = ""
        self.units: Counter[str] = Counter()
        self.others_than_numbers: Counter[str] = Counter()
        self.dates: dict[str, int] | None = None  # not looked for yet
        self.boolean = True
        self.has_comma = self.has_point = self.has_brackets = self.codes = False
        self.n_bare = 0
        self.plain = True
        self._first_odd: dict[str, str] = {}  # cell that is not a date, by spelling

    def look_at(self, cells: Any) -> None:
        """Take in one chunk."""
        cells = pa.compute.drop_null(cells)
        if not self._take_plain_numbers(cells):
            self.plain &= not len(cells)
            cells = pa.compute.drop_null(trim(cells, self._missing))
            cells = _take_out(cells, self._markers, self.marked)
            self.filled += len(cells)
            cells = _take_out(cells, self._placeholders, self.placeholders)
            # Once more: a column of numbers may have had a mark among them.
            if not self._take_plain_numbers(cells, counted=True) and len(cells):
                self.judged += len(cells)
                self._look_closely(cells)
        for style, count in list(self.numbers.items()):
            if count < POSSIBLE_SHARE * self.judged:
                del self.numbers[style]
        for spelling, count in list((self.dates or {}).items()):
            if self.dates and count < POSSIBLE_SHARE * self.judged:
                del self.dates[spelling]

    def _take_plain_numbers(self, cells: Any, counted: bool = False) -> bool:
        """Take in a chunk of numbers that need no closer look: most chunks of most columns."""
        if "point" not in self.numbers or not len(cells):
            return False
        try:
            numbers = pa.compute.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return False
        # Only whole numbers can be codes; a look at a few spares most columns a slow search.
        if np.array_equal(numbers[:1000], np.floor(numbers[:1000])) and _has_codes(cells):
            return False
        self.filled += 0 if counted else len(cells)
        self.judged += len(cells)
        self.n_bare += len(cells)
        self.boolean = False
        self._count_packed(cells, numbers)
        self.numbers["point"] += len(cells)
        if "comma" in self.numbers:
            points = _any(pa.compute.match_substring(cells, "."))
            self.has_point |= points
            self.numbers["comma"] += count_numbers(cells, "comma") if points else len(cells)
        return True

    def _count_packed(self, cells: Any, numbers: Any) -> None:
        """Count dates among whole numbers: eight digits that are all valid dates."""
        if self.dates is None:
            self.dates = {"packed": 0}
        if "packed" in self.dates:
            possible = numbers.min() >= 1900_01_01 and numbers.max() <= 2099_12_31
            dates = to_dates(cells, "packed") if possible else None
            if dates is None or dates.null_count:
                del self.dates["packed"]
            else:
                self.dates["packed"] += len(cells)

    def _look_closely(self, cells: Any) -> None:
        if self.numbers:
            self._count_numbers(cells)
        if self.boolean:
            lower = pa.compute.utf8_lower(cells)
            self.boolean = _all(pa.compute.is_in(lower, value_set=pa.array(["true", "false"])))
        if self.dates is None:
            first = cells.slice(0, FIRST_CELLS)
            found = {spelling: _count_dates(first, spelling) for spelling in ("", *SPELLINGS)}
            self.dates = {
                spelling: 0
                for spelling, count in found.items()
                if count >= POSSIBLE_SHARE * len(first)
            }
        for spelling in self.dates:
            odd = to_dates(cells, spelling).is_null()
            n_odd = int(pa.compute.sum(odd).as_py() or 0)
            self.dates[spelling] += len(cells) - n_odd
            if n_odd:
                self._first_odd.setdefault(spelling, cells.filter(odd)[0].as_py())

    def _count_numbers(self, cells: Any) -> None:
        self.has_brackets |= _any(pa.compute.match_substring_regex(cells, r"^\(.*\d.*\)$"))
        counts = {style: count_numbers(cells, style) for style in self.numbers}
        if max(counts.values()) < LARGE_SHARE * len(cells):
            self._look_for_units(cells)
        if self.unit:
            bare = without_unit(cells, self.unit)
            unchanged = pa.compute.equal(bare, plain_signs(cells))
            self.n_bare += int(pa.compute.sum(unchanged).as_py() or 0)
            cells = bare
            counts = {style: count_numbers(cells, style) for style in self.numbers}
        for style, count in counts.items():
            self.numbers[style] += count
        if max(counts.values()) < len(cells):
            best = max(counts, key=lambda style: counts[style])
            odd = pa.compute.invert(pa.compute.match_substring_regex(cells, PATTERNS[best]))
            self._remember(self.others_than_numbers, cells.filter(odd))
        self.has_comma |= _any(pa.compute.match_substring(cells, ","))
        self.has_point |= _any(pa.compute.match_substring(cells, "."))
        self.codes |= _has_codes(cells)

    def _look_for_units(self, cells: Any) -> None:
        parts = pa.compute.extract_regex(plain_signs(cells), WITH_UNIT)
        parts = parts.filter(parts.is_valid())
        before, behind = (pa.compute.struct_field(parts, name) for name in ("before", "behind"))
        units = pa.compute.if_else(pa.compute.equal(before, ""), behind, before)
        units = units.filter(pa.compute.not_equal(units, ""))
        self._remember(self.units, units)
        if not self.unit and len(units):
            unit, count = self.units.most_common(1)[0]
            if count >= POSSIBLE_SHARE * len(cells):
                self.unit = unit

    @staticmethod
    def _remember(counter: Counter[str], texts: Any) -> None:
        counts = pa.compute.value_counts(texts).to_pylist()
        for one in sorted(counts, key=lambda one: -one["counts"])[:MAX_REMEMBERED]:
            if one["values"] in counter or len(counter) < MAX_REMEMBERED:
                counter[one["values"]] += one["counts"]

    def is_number(self, style: NumberStyle) -> bool:
        """Return whether the cells are numbers of this style, except for a few."""
        share = self.numbers.get(style, 0) / max(self.judged, 1)
        return share >= LARGE_SHARE and not self.codes

    def kind(self, style: NumberStyle) -> Kind:
        """Return the kind, all chunks seen; a column without any cell is text."""
        packed = (self.dates or {}).get("packed", 0)
        if self.is_number(style) and not (packed == self.judged >= MIN_PACKED):
            return "number"
        possible: set[Kind] = {"boolean"} if self.boolean else set()
        if self._date_spellings():
            possible.add("date")
        return next((kind for kind in KINDS if kind in possible and self.judged), "text")

    def spelling(self, style: NumberStyle) -> str:
        """Return the unit of numbers, or how dates are written; "" if it is the usual way."""
        kind = self.kind(style)
        if kind == "number":
            return self.unit
        return self._date_spellings()[0] if kind == "date" else ""

    @property
    def date_is_ambiguous(self) -> bool:
        """Whether day and month could change places in all dates."""
        return self._date_spellings()[:1] in (["dmy"], ["mdy"]) and (
            (self.dates or {}).get("dmy") == (self.dates or {}).get("mdy")
        )

    @property
    def odd_dates(self) -> tuple[int, str] | None:
        """Number of cells that are not dates where most are, and the first; None: no column."""
        dates = self.dates or {}
        best = max(dates, key=lambda one: dates[one], default=None)
        if best is None or not self.judged or dates[best] < POSSIBLE_SHARE * self.judged:
            return None
        n_odd = self.judged - dates[best]
        return (n_odd, self._first_odd[best]) if best in self._first_odd else None

    def _date_spellings(self) -> list[str]:
        """Return the spellings of enough cells, the best first."""
        dates = self.dates or {}
        fit = [one for one in dates if dates[one] >= LARGE_SHARE * max(self.judged, 1)]
        # Day first where points are between: months never come first there.
        order = ["", "ymd", *(("dmy", "mdy") if self.has_point else ("mdy", "dmy"))]
        place = {one: i for i, one in enumerate(order)}
        return sorted(fit, key=lambda one: (-dates[one], place.get(one, len(order))))


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


def _take_out(cells: Any, texts: Sequence[str], counter: Counter[str]) -> Any:
    """Return the cells that are none of these texts, and count those that are."""
    if not texts or not len(cells):
        return cells
    found = pa.compute.is_in(cells, value_set=pa.array(texts, pa.string()))
    if not _any(found):
        return cells
    for one in pa.compute.value_counts(cells.filter(found)).to_pylist():
        counter[one["values"]] += one["counts"]
    return cells.filter(pa.compute.invert(found))


def _count_dates(cells: Any, spelling: str) -> int:
    return len(cells) - int(to_dates(cells, spelling).null_count)


def _has_codes(cells: Any) -> bool:
    """Return whether some whole number has a zero in front."""
    return _any(pa.compute.match_substring_regex(cells, CODE))


def _all(values: Any) -> bool:
    return bool(np.all(pa.compute.all(values).as_py()))


def _any(values: Any) -> bool:
    return bool(pa.compute.any(values).as_py())
