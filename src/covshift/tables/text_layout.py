"""Which character separates the cells, and what the columns are called.

The separator is the one of tab, semicolon, bar and comma under which most of the first rows
have as many cells as the first row has, at least two; among equals the one with most cells.
Where none gives two cells alike, the table has one column. A first line ``sep=;``, as
spreadsheet programs write and read it, decides at once. Spaces separate cells only where all rows
agree and a column holds numbers.

R's ``write.table`` writes no name above its row names: all rows have one cell more than the first.
The first column is then nameless. So do rows that end in a separator: the last one is nameless.

Titles, comments and names of groups of columns may stand above the names. They are rows with one
cell filled, or at most half of the cells, or that begin with ``#`` and have another number of cells
than the table. They are skipped if the row below them can hold names: filled, all different, no
number among them.
"""

import csv
import io
import itertools
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field

from covshift.tables.messages import TableError, listed

SEPARATORS = ("\t", ";", "|", ",")
SEPARATOR_NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "spaces"}
SAMPLED_ROWS = 200
MIN_SHARE = 0.5  # share of sampled rows that must agree with the header
MAX_COLUMNS = 20_000
COMMENT = "#"
MIN_GROUPED = 4  # columns of a table that may have names of groups above its names
PANDAS_INDEX = re.compile(r"Unnamed: 0(\.\d+)?$|__index_level_\d+__$")


@dataclass(frozen=True)
class GivenLayout:
    """Facts about a text file from the user; None: detected.

    Attributes
    ----------
    separator : one character between cells.
    header : whether the first row holds the names of the columns.
    skip_rows : number of lines above the names, or above the first row if there are no names.
    encoding : name of a Python codec.
    """

    separator: str | None = None
    header: bool = True
    skip_rows: int | None = None
    encoding: str | None = None


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


def find_layout(sample: str, given: GivenLayout, *, complete: bool) -> TextLayout:
    """Find separator and header in the beginning of a text.

    Parameters
    ----------
    sample : str
        The beginning.
    given : GivenLayout
        Facts that are known and need not be detected.
    complete : bool
        Whether it is the whole text; if not, its last row is cut short.
    """
    separator = given.separator
    notes: list[str] = []
    hint = re.match(r"sep=(.)\r?\n", sample)
    start = hint.end() if hint else 0
    if separator is None and hint:
        separator = hint[1]
    if given.skip_rows:
        start += len("".join(_lines(sample[start:])[: given.skip_rows]))
    text = sample[start:]
    if separator is None:
        separator = _sniff_separator(text, complete)
    if given.header and given.skip_rows is None:
        n_lines, title = _lines_above(text, separator, complete)
        if n_lines:
            start += len("".join(_lines(text)[:n_lines]))
            text = sample[start:]
            notes.append(
                f"Skipped {n_lines} {'line' if n_lines == 1 else 'lines'} above the names of the "
                f"columns ({listed([title])}). If the names are there: --skip-rows 0."
            )
    names, length = _read_header(text, separator)
    if not complete and start + length >= len(sample):
        raise TableError(
            f"the first row does not end within 1 MiB; is it a row of names? {MAX_COLUMNS} columns "
            "at most are read."
        )
    if len(names) > MAX_COLUMNS:
        raise TableError(
            f"has {len(names)} columns, and {MAX_COLUMNS} at most are read; leave some out."
        )
    if not given.header:
        return TextLayout(separator, ("",) * len(names), start)
    if _reads_like_data(names):
        raise TableError(
            f"the first row holds only numbers ({listed(names, 3)}). If it is a row of data, use "
            "--no-header; else add a row of names above."
        )
    rows = _rows(text, separator, complete)[1:]
    if not rows or any(len(row) != len(names) + 1 for row in rows):
        return TextLayout(separator, tuple(names), start + length, notes)
    if not any(row[-1].strip() for row in rows):  # every row ends in a separator
        return TextLayout(separator, (*names, ""), start + length, notes)
    notes.append(
        "The first row has one name fewer than the rows have cells: the first column is read as "
        "row names, as R writes them. If they are not, name all columns."
    )
    return TextLayout(separator, ("", *names), start + length, notes)


def is_aligned(sample: str, *, complete: bool) -> bool:
    """Return whether the layout is by spaces: several between cells, columns below each other."""
    if "  " not in sample and "\n " not in sample:
        return False
    if _best_separator(sample, complete) is not None:
        return False
    return _is_separated_by_spaces(squeeze_spaces(sample.encode()).decode().lstrip(), complete)


def squeeze_spaces(data: bytes) -> bytes:
    """Return text laid out by spaces with one in place of several, and none at ends of lines."""
    return re.sub(rb" ?([\r\n]) ?", rb"\1", re.sub(rb"[ \t]+", b" ", data))


def plain_name(name: str) -> str:
    """Return what a layout calls a column: with single spaces, accented letters as one (NFC)."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def names_of_header(header: tuple[str, ...]) -> tuple[list[str], list[int], list[str]]:
    """Return names for the cells of a layout's header, no two alike; which lack one; notes.

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
    """Return whether a column of the layout holds row names: R's and pandas' unnamed first one."""
    return (position == 0 and not name) or bool(PANDAS_INDEX.match(name))


def _sniff_separator(text: str, complete: bool) -> str:
    best = _best_separator(text, complete)
    if best is not None:
        return best
    if _is_separated_by_spaces(text, complete):
        return " "
    # One column. Its cells may hold decimal commas, so that a separator that is in none of
    # them is taken.
    return next((separator for separator in (*SEPARATORS, "\x1f") if separator not in text), "\x1f")


def _best_separator(text: str, complete: bool) -> str | None:
    """Return the separator under which the rows agree best; None: under none of them."""
    best, best_score = None, (MIN_SHARE, 0)
    for separator in SEPARATORS:
        rows = _rows(text, separator, complete)
        widths = [len(row) for row in rows[_count_above(rows) :]]
        if not widths or widths[0] < 2:
            continue
        below = widths[1:]
        share = sum(width == widths[0] for width in below) / len(below) if below else 1.0
        if below and all(width == widths[0] + 1 for width in below):
            share = 1.0
        if (share, widths[0]) > best_score:
            best, best_score = separator, (share, widths[0])
    return best


def _lines_above(text: str, separator: str, complete: bool) -> tuple[int, str]:
    """Return the number of lines above the names of the columns, and what the first says."""
    numbered = _numbered_rows(text, separator, complete)
    n_rows = _count_above([row for row, _ in numbered])
    if not n_rows:
        return 0, ""
    titles = [cell.strip() for row, _ in numbered[:n_rows] for cell in row if cell.strip()]
    return numbered[n_rows - 1][1], (titles or [""])[0]


def _count_above(rows: list[list[str]]) -> int:
    """Return how many of the first rows are titles, comments or names of groups of columns."""
    width = max(Counter(map(len, rows)).items(), key=lambda one: one[::-1], default=(0, 0))[0]
    alike = [row for row in rows if len(row) == width]
    # Spreadsheets may have empty columns at the right.
    n_used = max((i + 1 for row in alike for i, cell in enumerate(row) if cell.strip()), default=0)
    if n_used < 2:
        return 0
    n_above = 0
    while n_above < len(rows) and _is_above(rows[n_above], n_used, width):
        n_above += 1
    if not 0 < n_above < len(rows) - 1:
        return 0
    names = [cell.strip() for cell in rows[n_above][:n_used]]
    filled = [name for name in names if name]
    # R's and pandas' row names have no name.
    if len(filled) < n_used - 1 or not all(names[1:]) or len(set(filled)) < len(filled):
        return 0
    if any(map(_is_number, filled)):
        return 0
    # A comma in each line of a text of one column does not make two columns of it.
    columns = zip(*(row for row in rows[n_above + 1 :] if len(row) == width), strict=True)
    numeric = any(all(_is_number(cell) for cell in cells if cell.strip()) for cells in columns)
    return n_above if n_used > 2 or numeric else 0


def _is_above(row: list[str], n_used: int, width: int) -> bool:
    """Return whether a row can be a title, a comment or names of groups of columns."""
    n_filled = sum(bool(cell.strip()) for cell in row)
    if row[0].lstrip().startswith(COMMENT) and len(row) != width:
        return True
    if n_filled <= 1:
        return bool(row[0].strip()) or not n_filled
    return n_used >= MIN_GROUPED and n_filled <= n_used / 2


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


def _lines(text: str) -> list[str]:
    return io.StringIO(text, newline="").readlines()


def _rows(text: str, separator: str, complete: bool) -> list[list[str]]:
    """Return the cells of the first rows that are not empty."""
    return [row for row, _ in _numbered_rows(text, separator, complete)]


def _numbered_rows(text: str, separator: str, complete: bool) -> list[tuple[list[str], int]]:
    """Return the cells of the first rows that are not empty, each with its number of lines.

    That is the number of lines of the text up to the end of the row.
    """
    rows: list[tuple[list[str], int]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            if row:
                rows.append((row, reader.line_num))
            if len(rows) > SAMPLED_ROWS:
                return rows
    except csv.Error:  # a cell beyond the limit of that module: what came before it counts
        return rows
    if not complete and len(rows) > 1:
        rows.pop()
    return rows


def _read_header(text: str, separator: str) -> tuple[list[str], int]:
    """Return the cells of the first row that has any, and the characters up to its end."""
    lines = _lines(text)
    reader = csv.reader(iter(lines), delimiter=separator)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                length = sum(map(len, lines[: reader.line_num]))
                return [plain_name(cell) for cell in row], length
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
