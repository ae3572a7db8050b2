"""What a document is: plain dicts, here as types.

A document says everything that a report shows, as data: it can be tested without HTML, stored
as JSON and drawn by any template. All text in it is plain text; whoever draws it escapes it.
Ids may be any text that is not empty; within its kind each is unique.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, get_args

Mark = Literal["agrees", "differs", "not reproduced", "helps", "harms", "unclear", "best"]
MARKS: tuple[Mark, ...] = get_args(Mark)
Number = int | float  # NumPy's numbers as well


class FullCell(TypedDict, total=False):
    """One place of a table, with more than a text or a number to say."""

    text: str  # what is shown; without it, the value
    value: Number | str | None  # what it sorts by; without it, the text; None sorts last
    mark: Mark | None  # a verdict, shown as symbol and word
    help: str  # shown on demand
    evidence: str  # id of what stands behind it


Cell = str | Number | FullCell | None  # None: nothing to show
Row = Mapping[str, Cell]  # a key that is left out is None


class Column(TypedDict):
    """One column of a table."""

    key: str
    label: str
    numeric: NotRequired[bool]  # aligned right, and every cell sorts by a number
    help: NotRequired[str]
    digits: NotRequired[int | None]  # decimals of numbers without a text of their own


class Table(TypedDict):
    """A table; the cells of its first column name the rows."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]


class Point(TypedDict):
    """One batch of a chart."""

    name: str
    kind: Literal["fine", "moved", "alert"]
    title: str  # all that is known of it, shown on demand
    value: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    observed: NotRequired[float | None]


class Chart(TypedDict):
    """Scores over time; the page draws it in its own colors."""

    points: Sequence[Point]
    # class ("reference" or "alert"), label, value: lines across the chart
    levels: Sequence[tuple[str, str, float]]


class Figure(TypedDict):
    """A picture, as PNG, as SVG or as a chart that the page draws, one of them."""

    id: str
    caption: str
    alt: str  # what it shows, for those who cannot see it
    png: NotRequired[bytes]
    svg: NotRequired[str]
    chart: NotRequired[Chart]


class Section(TypedDict):
    """A section: what is said, then its tables, then its figures."""

    id: str
    title: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]


class Evidence(TypedDict):
    """The rows behind a number, for example its trials."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]


class Document(TypedDict):
    """A whole report."""

    title: str
    lead: str  # one paragraph: what was found
    facts: Sequence[tuple[str, str]]  # label, text: command, date, versions, seeds
    sections: Sequence[Section]
    evidence: Mapping[str, Evidence]
