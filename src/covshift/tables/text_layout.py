"""Which character separates the cells, and what the columns are called.

The separator is the one of tab, semicolon, bar and comma under which most of the first rows
have as many cells as the first row has, at least two; among equals the one with most cells.
Where none gives two cells alike, the table has one column. A first line ``sep=;``, as
spreadsheet programs write and read it, decides at once.
"""

import csv
import io
import itertools
import re
from dataclasses import dataclass

from covshift.tables.errors import TableError, listed

SEPARATORS = ("\t", ";", "|", ",")
SEPARATOR_NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "space"}
SAMPLED_ROWS = 200
MIN_SHARE = 0.5  # of the sampled rows that must agree with the header
MAX_COLUMNS = 20_000
PANDAS_INDEX = re.compile(r"Unnamed: 0(\.\d+)?$|__index_level_\d+__$")


@dataclass(frozen=True)
class TextLayout:
    """How a text is cut into cells.

    Attributes
    ----------
    separator : one character.
    names : of the columns as they stand in the header, spaces around them removed.
    header_length : characters up to the end of the header.
    """

    separator: str
    names: tuple[str, ...]
    header_length: int


def find_layout(sample: str, *, complete: bool, separator: str | None = None) -> TextLayout:
    """Find separator and header in the beginning of a text.

    Parameters
    ----------
    sample : str
        The beginning.
    complete : bool
        Whether it is the whole text; if not, its last row is cut short.
    separator : str or None
        Given by the user.
    """
    hint = re.match(r"sep=(.)\r?\n", sample)
    start = hint.end() if hint else 0
    if separator is None and hint:
        separator = hint[1]
    text = sample[start:]
    if separator is None:
        separator = _sniff_separator(text, complete)
    names, length = _read_header(text, separator)
    if not complete and start + length >= len(sample):
        raise TableError("the first row does not end; is it a row of names?")
    if len(names) > MAX_COLUMNS:
        raise TableError(
            f"has {len(names)} columns, and {MAX_COLUMNS} at most are read; leave some out."
        )
    if _reads_like_data(names):
        raise TableError(
            f"the first row holds only numbers ({listed(names, 3)}): add a row of names above."
        )
    return TextLayout(separator, tuple(names), start + length)


def column_names(header: tuple[str, ...]) -> tuple[list[str], list[int], list[str]]:
    """Return names, no two alike; which columns have none; notes about both.

    A name that repeats gets its number, ``x`` and ``x (2)``; a column without name is named by
    its position.
    """
    nameless = [i for i, name in enumerate(header) if not name]
    names: list[str] = []
    repeated: list[str] = []
    taken = set(header)
    for i, name in enumerate(header):
        stem = name or f"column {i + 1}"
        new, count = stem, 1
        while new in names or (new != name and new in taken):
            count += 1
            new = f"{stem} ({count})"
        if name and new != name:
            repeated.append(new)
        names.append(new)
        taken.add(new)
    notes = []
    if repeated:
        notes.append(f"Column names that repeat got a number: {listed(repeated)}.")
    return names, nameless, notes


def is_row_names(position: int, name: str) -> bool:
    """Whether a column holds row names: R's and pandas' first column, which has no name."""
    return (position == 0 and not name) or bool(PANDAS_INDEX.match(name))


def _sniff_separator(text: str, complete: bool) -> str:
    best, best_score = ",", (MIN_SHARE, 0)
    for separator in SEPARATORS:
        widths = _row_widths(text, separator, complete)
        if not widths or widths[0] < 2:
            continue
        below = widths[1:]
        share = sum(width == widths[0] for width in below) / len(below) if below else 1.0
        if (share, widths[0]) > best_score:
            best, best_score = separator, (share, widths[0])
    if best_score[1]:
        return best
    # One column. Its cells may hold decimal commas, so that a separator that is in none of
    # them is taken.
    return next((separator for separator in (*SEPARATORS, "\x1f") if separator not in text), "\x1f")


def _row_widths(text: str, separator: str, complete: bool) -> list[int]:
    widths = []
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator)
    try:
        for row in reader:
            if row:
                widths.append(len(row))
            if len(widths) > SAMPLED_ROWS:
                return widths
    except csv.Error:  # a cell beyond the limit of that module: what came before it counts
        return widths
    if not complete and len(widths) > 1:
        widths.pop()
    return widths


def _read_header(text: str, separator: str) -> tuple[list[str], int]:
    """Return the cells of the first row that has any, and the characters up to its end."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(iter(lines), delimiter=separator)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                length = sum(map(len, lines[: reader.line_num]))
                return [" ".join(cell.split()) for cell in row], length
    except csv.Error:
        raise TableError("the first row does not end; check its quotes.") from None
    raise TableError("holds no names of columns; a table needs a row of names and rows below.")


def _reads_like_data(names: list[str]) -> bool:
    """Whether the header is a row of numbers, and not 0, 1, 2, ... or years, as names may be."""
    filled = [name for name in names if name]
    try:
        numbers = [float(name) for name in filled]
    except ValueError:
        return False
    steps = {later - earlier for earlier, later in itertools.pairwise(numbers)}
    whole = all(number.is_integer() for number in numbers)
    return len(numbers) > 1 and not (whole and steps == {1.0})
