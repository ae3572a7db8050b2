"""The kinds of the columns of a file without a schema: found by reading all of its rows once.

`ColumnTypes` remembers what the cells of one column can still be, chunk after chunk; `find_schema`
decides when all were seen. A decision that could be wrong is a note that names the option that
overrules it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from covshift.tables.columns import (
    KINDS,
    MISSING,
    NUMBER_PATTERNS,
    PLACEHOLDERS,
    UNUSABLE,
    Kind,
    NumberStyle,
    arrow_kind,
    count_numbers,
    plain_column,
    plain_signs,
    to_dates,
    trim,
    without_unit,
)
from covshift.tables.dates import DAYS, MEANINGS, SPELLINGS
from covshift.tables.messages import listed, quoted, table_error
from covshift.tables.schema import Intake, TableSchema

# Real columns of numbers have a few odd cells ("see note", "<5"), and those of text some numbers.
LARGE_SHARE = 0.95  # of cells that must be numbers, or dates, for a column to be
POSSIBLE_SHARE = 0.5  # share of fitting cells below which a kind is excluded
MIN_PACKED = 3  # cells like 20240501 that must be, for whole numbers to be taken for dates
FIRST_CELLS = 200  # cells that select which spellings of dates are tried
MAX_EXAMPLES = 20  # examples kept of other cells, and of units
# Postal codes and account numbers lose their zeros as numbers, and 007 is not 7.
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
        # Cells that are missing everywhere are dropped without a count; markers are counted,
        # since a note names them.
        self._missing = [one for one in missing if one not in markers]
        self._markers = markers
        self._placeholders = [one for one in PLACEHOLDERS if one not in (*markers, *present)]
        self.filled = self.judged = 0
        self.marked: Counter[str] = Counter()
        self.placeholders: Counter[str] = Counter()
        self.numbers: dict[NumberStyle, int] = dict.fromkeys(NUMBER_PATTERNS, 0)
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
            # "-" and "." do not show the kind of the other cells. They count as filled: in
            # a column of text they are values.
            cells = _take_out(cells, self._placeholders, self.placeholders)
            # Once more: a column of numbers may have had a mark among them.
            if not self._take_plain_numbers(cells, counted=True) and len(cells):
                self.judged += len(cells)
                self._look_closely(cells)
        # A style or a spelling that most cells so far exclude is not tried on later chunks: of a
        # long column of text, only the first chunk is searched for numbers and dates.
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
        # A number without a point is one in both styles. With one, 1.234 is a number with a decimal
        # comma, and 1.5 is not.
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
            # Every spelling costs a pass over the cells. A few cells exclude most of the spellings.
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
                # An example for the note that tells why a column of dates is read as text.
                self._first_odd.setdefault(spelling, cells.filter(odd)[0].as_py())

    def _count_numbers(self, cells: Any) -> None:
        self.has_brackets |= _any(pa.compute.match_substring_regex(cells, r"^\(.*\d.*\)$"))
        counts = {style: count_numbers(cells, style) for style in self.numbers}
        # Units are looked for only where plain numbers are too few: the pattern is slow.
        if max(counts.values()) < LARGE_SHARE * len(cells):
            self._look_for_units(cells)
        # With the unit taken away, the cells are counted again; those that were bare before get a
        # note.
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
            odd = pa.compute.invert(pa.compute.match_substring_regex(cells, NUMBER_PATTERNS[best]))
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
        # A column of free text has as many values as rows: only some are remembered.
        for one in sorted(counts, key=lambda one: -one["counts"])[:MAX_EXAMPLES]:
            if one["values"] in counter or len(counter) < MAX_EXAMPLES:
                counter[one["values"]] += one["counts"]

    def is_number(self, style: NumberStyle) -> bool:
        """Return whether the cells are numbers of this style, except for a few."""
        share = self.numbers.get(style, 0) / max(self.judged, 1)
        return share >= LARGE_SHARE and not self.codes

    def kind(self, style: NumberStyle) -> Kind:
        """Return the kind, all chunks seen; a column without any cell is text."""
        packed = (self.dates or {}).get("packed", 0)
        # 20240501 is a date only if all cells are: by chance a few of many numbers look like dates.
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


def _choose_number_style(columns: list[ColumnTypes], separator: str) -> NumberStyle:
    """Return the style under which more cells of columns of numbers can be read.

    Where both serve alike, as for ``12,345``, commas are decimal only in a file that has a reason
    to separate its cells by semicolons, and no number with a point.
    """
    numeric = [column for column in columns if any(map(column.is_number, NUMBER_PATTERNS))]
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


# --- From what was seen of all columns to a schema, and what is said about it ---


MIN_CELLS_FOR_ADVICE = 5


@dataclass(frozen=True)
class FoundSchema:
    """Findings of one reading of a table.

    Attributes
    ----------
    schema : `TableSchema` of its columns.
    style : style of its numbers; None: its columns have types.
    notes : what was decided, in plain sentences.
    uneven : columns of numbers with cells that are not plain numbers.
    """

    schema: TableSchema
    style: NumberStyle | None
    notes: list[str]
    uneven: frozenset[str] = frozenset()


def find_schema(source: Any, style: NumberStyle | None, intake: Intake) -> FoundSchema:
    """Read a source of batches and return what its columns are."""
    notes: list[str] = []
    uneven: frozenset[str] = frozenset()
    unknown = [name for name in intake.kinds if name not in source.names]
    if unknown:
        raise table_error(source.path, f"has no column {listed(unknown)}, which --as names.")
    spellings: dict[str, str] = {}
    kinds = _typed_kinds(source, notes) if source.typed else {}
    if texts := text_columns(source):
        columns = _look_at_texts(source, texts, intake, notes)
        uneven = frozenset(name for name, column in columns.items() if not column.plain)
        found, spellings, style = _text_kinds(source, columns, style, intake, notes)
        # In the order of the file: the columns of text of a typed file are among the others.
        kinds = {name: found.get(name, kinds.get(name, "text")) for name in kinds or found}
    if row_names := [name for name in source.row_names if name in kinds]:
        notes.append(f"Ignored {listed(row_names)}: it holds row names.")
    kinds = {name: kind for name, kind in kinds.items() if name not in row_names}
    for name in kinds:
        if (named := intake.kind_of(name)) is not None:
            kinds[name], spellings[name] = _spelled(*named, kinds[name], spellings.get(name, ""))
    if not kinds:
        raise table_error(source.path, "has no column that can be used.")
    spelled = {name: one for name, one in spellings.items() if one and name in kinds}
    decimal = "," if style == "comma" else "."
    uneven &= {name for name, kind in kinds.items() if kind == "number"}
    return FoundSchema(
        TableSchema(kinds, decimal, spelled, intake.all_missing), style, notes, uneven
    )


def _spelled(kind: Kind, spelling: str, found: Kind, found_spelling: str) -> tuple[Kind, str]:
    """Return the kind that the user named, with the spelling found where none was named."""
    if spelling == DAYS and found == "date":
        return kind, f"{DAYS} {found_spelling}".strip()
    return kind, spelling or (found_spelling if kind == found else "")


def _typed_kinds(source: Any, notes: list[str]) -> dict[str, Kind]:
    found = dict(zip(source.names, map(arrow_kind, source.types), strict=True))
    unusable = [name for name, kind in found.items() if kind is None]
    if unusable:
        notes.append(f"Ignored {listed(unusable)}: {UNUSABLE} cannot be used.")
    return {name: kind for name, kind in found.items() if kind is not None}


def text_columns(source: Any) -> list[str]:
    """Detect which columns of a source of batches are text, whatever the cells mean.

    Not categories: who wrote them knew that they are text.
    """
    if not source.typed:
        return list(source.names)
    if getattr(source, "texts_stay", False):
        return []
    typed = zip(source.names, source.types, strict=True)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return [name for name, kind in typed if any(test(kind) for test in tests)]


def _look_at_texts(
    source: Any, names: list[str], intake: Intake, notes: list[str]
) -> dict[str, ColumnTypes]:
    """Read all rows and return what the cells of columns of text look like."""
    usual = [one for one in MISSING if one not in intake.present]
    columns = {name: ColumnTypes(usual, intake.markers, intake.present) for name in names}
    n_rows = 0
    for batch in source.read(missing=usual):
        n_rows += batch.num_rows
        for name, column in columns.items():
            column.look_at(plain_column(batch.column(name)))
    if not n_rows:
        raise table_error(source.path, "has column names, but no rows below them.")
    # Spreadsheets write separators for empty columns at the right. A column without a name that has
    # cells is kept.
    nameless = [source.names[i] for i in source.nameless]
    empty = [name for name in nameless if name in columns and not columns[name].filled]
    if empty and len(empty) < len(columns):
        columns = {name: column for name, column in columns.items() if name not in empty}
        notes.append(f"Ignored {len(empty)} columns without name or cells.")
    return columns


def _text_kinds(
    source: Any,
    columns: dict[str, ColumnTypes],
    style: NumberStyle | None,
    intake: Intake,
    notes: list[str],
) -> tuple[dict[str, Kind], dict[str, str], NumberStyle]:
    if style is None:
        style = _choose_number_style(list(columns.values()), source.separator)
    kinds = {name: column.kind(style) for name, column in columns.items()}
    spellings = {name: column.spelling(style) for name, column in columns.items()}
    # Nothing is said of what the user has decided.
    guessed = {
        name: column
        for name, column in columns.items()
        if intake.kind_of(name) is None and name not in source.row_names
    }
    if source.typed:
        _note_texts(guessed, kinds, notes)
    _note_missing(guessed, kinds, notes)
    _note_numbers(guessed, kinds, style, notes)
    _note_dates(guessed, kinds, spellings, notes)
    return kinds, spellings, style


def _note_texts(
    columns: Mapping[str, ColumnTypes], kinds: Mapping[str, Kind], notes: list[str]
) -> None:
    """Say which columns are text in a file whose columns have types, and are read otherwise."""
    for kind in KINDS[:-1]:
        if names := [name for name in columns if kinds[name] == kind]:
            notes.append(
                f"Read {listed(names)} as {kind}s: the file holds them as text. If they are text: "
                f"--as {quoted(f'{names[0]}=text')}."
            )


def _note_missing(
    columns: Mapping[str, ColumnTypes], kinds: Mapping[str, Kind], notes: list[str]
) -> None:
    met: dict[str, list[str]] = {}
    for name, column in columns.items():
        for marker in column.marked:
            met.setdefault(marker, []).append(name)
    for marker, names in met.items():
        n_cells = sum(columns[name].marked[marker] for name in names)
        notes.append(
            f"Read {listed([marker])} as missing in {listed(names)} ({n_cells:,} cells). If it is "
            f"a value: --not-missing {quoted(marker)}."
        )
    for name, column in columns.items():
        if column.placeholders and kinds[name] != "text":
            n_cells = sum(column.placeholders.values())
            notes.append(
                f"Read {listed(column.placeholders)} as missing in {listed([name])} ({n_cells:,} "
                f"cells): the others are {kinds[name]}s. If it is a value: "
                f"--as {quoted(f'{name}=text')}."
            )


def _note_numbers(
    columns: Mapping[str, ColumnTypes],
    kinds: Mapping[str, Kind],
    style: NumberStyle,
    notes: list[str],
) -> None:
    if codes := [name for name, column in columns.items() if column.codes]:
        notes.append(
            f"Read {listed(codes)} as text: numbers that begin with a zero are codes. If they are "
            f"numbers: --as {quoted(f'{codes[0]}=number')}."
        )
    grouped = [n for n, column in columns.items() if column.has_comma and kinds[n] == "number"]
    if style == "point" and grouped:
        notes.append(
            f"Read commas in {listed(grouped)} as separators of thousands, as in '1,234'. If they "
            "are decimal signs: --decimal ,"
        )
    if bracketed := [n for n, c in columns.items() if c.has_brackets and kinds[n] == "number"]:
        notes.append(
            f"Read numbers in brackets in {listed(bracketed)} as negative, as in '(5)'. If they "
            f"are not: --as {quoted(f'{bracketed[0]}=text')}."
        )
    other: NumberStyle = "comma" if style == "point" else "point"
    for name, column in columns.items():
        numbers = max(column.numbers.values(), default=0)
        if kinds[name] == "number" and column.unit:
            bare = f"; {column.n_bare:,} cells have none" if column.n_bare else ""
            notes.append(
                f"Read {listed([name])} as numbers with the unit {listed([column.unit])}{bare}. If "
                f"they are not: --as {quoted(f'{name}=text')}."
            )
        elif kinds[name] == "text" and column.is_number(other):
            notes.append(
                f"Read {listed([name])} as text: its numbers have a decimal {other}, and those of "
                f"other columns a decimal {style}. Write them alike."
            )
        elif kinds[name] == "text" and len(column.units) > 1 and column.unit:
            units = [unit for unit, _ in column.units.most_common(3)]
            notes.append(
                f"Read {listed([name])} as text: its numbers have several units ({listed(units)}). "
                "Convert them to one unit."
            )
        elif (
            kinds[name] == "text"
            and not column.codes
            and column.judged >= MIN_CELLS_FOR_ADVICE
            and POSSIBLE_SHARE * column.judged <= numbers < column.judged
            and column.others_than_numbers
        ):
            odd = column.others_than_numbers.most_common(1)[0][0]
            notes.append(
                f"Read {listed([name])} as text: {column.judged - numbers:,} of "
                f"{column.judged:,} cells are not numbers (most often {listed([odd])}). If these "
                f"are missing: --missing {quoted(odd)}, or --as {quoted(f'{name}=number')}."
            )


def _note_dates(
    columns: Mapping[str, ColumnTypes],
    kinds: Mapping[str, Kind],
    spellings: Mapping[str, str],
    notes: list[str],
) -> None:
    for name, column in columns.items():
        if kinds[name] == "text" and (odd := column.odd_dates):
            notes.append(
                f"Read {listed([name])} as text: {odd[0]:,} of {column.judged:,} cells are not "
                f"dates as the others are (first: {listed([odd[1]])}). Write all dates in one way, "
                f"or leave the column out: --ignore {quoted(name)}."
            )
        if kinds[name] != "date" or not spellings[name]:
            continue
        if column.date_is_ambiguous:
            other = "dmy" if spellings[name] == "mdy" else "mdy"
            notes.append(
                f"Read {listed([name])} as dates, {MEANINGS[spellings[name]]}; the cells do not "
                f"show which comes first. If it is the other: "
                f"--as {quoted(f'{name}=date:{other}')}."
            )
        elif spellings[name] == "packed":
            notes.append(
                f"Read {listed([name])} as dates, {MEANINGS['packed']}. If they are numbers: "
                f"--as {quoted(f'{name}=number')}."
            )
