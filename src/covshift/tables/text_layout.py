"""Which character separates the cells, and what the columns are called.

The separator is the one of tab, semicolon, bar and comma under which most of the first rows
have as many cells as the first row has, at least two; among equals the one with most cells.
Where none gives two cells alike, the table has one column. A first line ``sep=;``, as
spreadsheet programs write and read it, decides at once. Spaces separate cells only where all rows
agree and a column holds numbers.

R's ``write.table`` writes no name above its row names: all rows have one cell more than the first.
The first column is then nameless. So do rows that end in a separator: the last one is nameless.
"""

import csv
import io
import itertools
import re
from dataclasses import dataclass, field

from covshift.tables.errors import TableError, listed

SEPARATORS = ("\t", ";", "|", ",")
SEPARATOR_NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "spaces"}
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
    notes : what was decided, in plain sentences.
    """

    separator: str
    names: tuple[str, ...]
    header_length: int
    notes: list[str] = field(default_factory=list)


def find_layout(
    sample: str, *, complete: bool, separator: str | None = None, header: bool = True
) -> TextLayout:
    """Find separator and header in the beginning of a text.

    Parameters
    ----------
    sample : str
        The beginning.
    complete : bool
        Whether it is the whole text; if not, its last row is cut short.
    separator : str or None
        Given by the user.
    header : bool
        Whether the first row holds names.
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
    if not header:
        return TextLayout(separator, ("",) * len(names), start)
    if _reads_like_data(names):
        raise TableError(
            f"the first row holds only numbers ({listed(names, 3)}). If it is a row of data, use "
            "--no-header; else add a row of names above."
        )
    rows = _rows(text, separator, complete)[1:]
    if not rows or any(len(row) != len(names) + 1 for row in rows):
        return TextLayout(separator, tuple(names), start + length)
    if not any(row[-1].strip() for row in rows):  # every row ends in a separator
        return TextLayout(separator, (*names, ""), start + length)
    note = (
        "The first row has one name fewer than the rows have cells: the first column is read as "
        "row names, as R writes them. If they are not, name all columns."
    )
    return TextLayout(separator, ("", *names), start + length, [note])


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
        if below and all(width == widths[0] + 1 for width in below):
            share = 1.0
        if (share, widths[0]) > best_score:
            best, best_score = separator, (share, widths[0])
    if best_score[1]:
        return best
    if _is_separated_by_spaces(text, complete):
        return " "
    # One column. Its cells may hold decimal commas, so that a separator that is in none of
    # them is taken.
    return next((separator for separator in (*SEPARATORS, "\x1f") if separator not in text), "\x1f")


def _is_separated_by_spaces(text: str, complete: bool) -> bool:
    """Whether one space stands between cells: in all rows alike, and some column is numbers."""
    first, *below = _rows(text, " ", complete) or [[]]
    if not below or len(first) < 2:
        return False
    n_cells = len(below[0])
    if n_cells not in (len(first), len(first) + 1) or any(len(row) != n_cells for row in below):
        return False
    return any(all(map(_is_number, cells)) for cells in zip(*below, strict=True))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == "NA"
    return True


def _row_widths(text: str, separator: str, complete: bool) -> list[int]:
    return [len(row) for row in _rows(text, separator, complete)]


def _rows(text: str, separator: str, complete: bool) -> list[list[str]]:
    """Return the cells of the first rows that are not empty."""
    rows: list[list[str]] = []
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator)
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) > SAMPLED_ROWS:
                return rows
    except csv.Error:  # a cell beyond the limit of that module: what came before it counts
        return rows
    if not complete and len(rows) > 1:
        rows.pop()
    return rows


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
