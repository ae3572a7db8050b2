"""A document -> one HTML page that needs nothing else: no network, no other file.

The template escapes all text. A content security policy in the page lets the browser run and
style only what is inlined here, by its hash, and load only pictures inside the page: text
that slipped through could not run or contact a server.
"""

import base64
import hashlib
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, NamedTuple

from covshift.report.document import (
    Cell,
    Chart,
    Column,
    Document,
    Figure,
    FullCell,
    Mark,
    evidence_cited,
    full_cell,
    shown_text,
    sort_value,
    validate_document,
)

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError as error:
    raise ImportError(
        'Reports need jinja2, which is not installed: pip install "covshift[report]"'
    ) from error

MAX_PAGE_BYTES = 5_000_000  # opens at once, and passes through mail
# Distinct without color; the words stand beside them.
SYMBOLS: dict[Mark, str] = {
    "agrees": "=",
    "differs": "≠",
    "not reproduced": "×",  # noqa: RUF001
    "helps": "↑",
    "harms": "↓",
    "unclear": "~",
    "best": "★",
}
UNBROKEN = re.compile(r"(?<!\S)--[a-z][a-z-]*|\b[\d.]+ %")  # options of a command, percentages
LONGEST = 60  # leaves room for a prefix and a number in names of files


def unique_slugs(ids: Iterable[str]) -> dict[str, str]:
    """Map the ids of an HTML page to names of ASCII letters, digits, ``.``, ``_`` and ``-``.

    Names that differ in capitals alone are equal, as on some file systems.

    Examples
    --------
    >>> unique_slugs(["accuracy", "radial, SF", "radial: sf", "<b>", "猫"])
    {'accuracy': 'accuracy', 'radial, SF': 'radial-SF', 'radial: sf': 'radial-sf-2', '<b>': 'b', '猫': 'item'}
    """  # noqa: E501
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for one in ids:
        plain = unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode()
        base = re.sub(r"[^A-Za-z0-9._]+", "-", plain)[:LONGEST].strip("-.") or "item"
        slug, number = base, 1
        while slug.lower() in taken:
            number += 1
            slug = f"{base}-{number}"
        taken.add(slug.lower())
        slugs[one] = slug
    return slugs


class PageTooLargeError(ValueError):
    """The page would be larger than allowed."""


class ShownCell(NamedTuple):
    """A cell as the template needs it."""

    text: str
    sorting: Mapping[str, str]  # data attributes that tell the script what it sorts by
    mark: Mark | None
    symbol: str
    help: str
    evidence: str | None


def render_page(document: Document, *, max_bytes: int = MAX_PAGE_BYTES) -> str:
    """Return the document as one self-contained HTML page; `PageTooLargeError` above a size."""
    validate_document(document)
    sections = document["sections"]
    anchors = {
        "section": unique_slugs(section["id"] for section in sections),
        "table": unique_slugs(table["id"] for section in sections for table in section["tables"]),
        "figure": unique_slugs(
            figure["id"] for section in sections for figure in section["figures"]
        ),
        "evidence": unique_slugs(document["evidence"]),
    }
    css, script = _inlined("document.css"), _inlined("document.js")
    page: str = (
        _environment()
        .get_template("document.html.jinja")
        .render(
            document=document,
            anchor=lambda kind, one: f"{kind}-{anchors[kind][one]}",
            css=css,
            script=script,
            policy=_policy(css, script),
            cited_in=_cited_in(document),
            show_cell=show_cell,
            picture=_picture_uri,
            size=_picture_size,
            draw=_draw_series,
        )
    )
    size = len(page.encode("utf-8", "replace"))
    if size > max_bytes:
        raise PageTooLargeError(_too_large(document, size, max_bytes))
    return page


def show_cell(cell: Cell, column: Column) -> ShownCell:
    """Return what the page's template needs to know of a cell of any kind."""
    full = full_cell(cell)
    text = shown_text(full, column)
    mark = full.get("mark")
    return ShownCell(
        text,
        _sorting(full, text, bool(column.get("numeric"))),
        mark,
        SYMBOLS[mark] if mark else "",
        full.get("help", ""),
        full.get("evidence"),
    )


def _picture_uri(figure: Figure) -> str:
    """Return the picture as a data URI."""
    return "data:image/png;base64," + _base64(figure["png"])


def _picture_size(figure: Figure) -> tuple[int, int]:
    """Return width and height of a PNG, which keep its place free while it is read."""
    width, height = struct.unpack(">II", figure["png"][16:24])
    return width, height


def _sorting(cell: FullCell, text: str, numeric: bool) -> dict[str, str]:
    """Say what a cell sorts by, as short as possible: evidence may have thousands of rows."""
    value = sort_value(cell)
    if value is None or value == "":
        return {"missing": ""}
    if isinstance(value, str):
        plain = value == text and not cell.get("mark")
        return {} if plain else {"text": value}
    number = repr(value).replace("inf", "Infinity")  # as the script reads it
    plain = numeric and number == text and not cell.get("mark")
    return {} if plain else {"number": number}


def _cited_in(document: Document) -> dict[str, list[tuple[str, str]]]:
    """Return for each evidence the tables that refer to it: id and caption."""
    cited: dict[str, list[tuple[str, str]]] = {one: [] for one in document["evidence"]}
    for section in document["sections"]:
        for table in section["tables"]:
            for one in dict.fromkeys(evidence_cited(table["rows"])):
                cited[one].append((table["id"], table["caption"]))
    return cited


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("covshift.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _keep_together
    return environment


def _keep_together(text: str) -> Markup:
    """Return a text as HTML in which no line ends within an option or a percentage.

    Examples
    --------
    >>> _keep_together("To use it: --use <column>")
    Markup('To use it: <span class="unbroken">--use</span> &lt;column&gt;')
    """
    return Markup(UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', str(escape(text))))


def _inlined(name: str) -> Markup:
    """Return a file of ours, which the template must not escape."""
    # Opened as text, which makes every line end in \n, as the browser does before it hashes.
    return Markup((files("covshift.report") / "templates" / name).read_text(encoding="utf-8"))


def _policy(css: str, script: str) -> str:
    hashes = [_base64(hashlib.sha256(part.encode()).digest()) for part in (css, script)]
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _too_large(document: Document, size: int, max_bytes: int) -> str:
    pictures = sum(
        len(_picture_uri(figure))
        for section in document["sections"]
        for figure in section["figures"]
        if "chart" not in figure
    )
    rows = sum(len(evidence["rows"]) for evidence in document["evidence"].values())
    return (
        f"The page has {size / 1e6:.1f} MB, more than {max_bytes / 1e6:.1f}: figures take "
        f"{pictures / 1e6:.1f} MB, and there are {rows} rows of evidence. Draw the figures with "
        "fewer dots per inch, give fewer rows of evidence, or raise max_bytes."
    )


# --- A chart of scores over time as inline SVG: drawn from plain numbers, colored by the page ---
#
# The page's style sheet colors the classes of the chart, for light and dark screens; all text is
# escaped by the template.


CHART_WIDTH, CHART_HEIGHT = 720, 340  # size of the view box
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 78
MAX_NAMES = 8  # labels below the axis
MAX_NAME = 14  # characters of each
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
RADIUS = 4.5


def _draw_series(chart: Chart) -> SimpleNamespace:
    """Return where everything of a chart stands in the view box, for the template."""
    points = chart["points"]
    low, high = _range(chart)
    inner = CHART_WIDTH - LEFT - RIGHT

    def place_x(number: int) -> float:
        return round(LEFT + inner * (number + 0.5) / max(1, len(points)), 1)

    def place_y(value: float | None) -> float | None:
        if value is None:
            return None
        share = (min(max(value, low), high) - low) / (high - low)
        return round(TOP + (CHART_HEIGHT - TOP - BOTTOM) * (1 - share), 1)

    marks = [
        SimpleNamespace(
            x=place_x(number), y=place_y(one.get("value")), low=place_y(one.get("low")),
            high=place_y(one.get("high")), observed=place_y(one.get("observed")),
            kind=one["kind"], title=one["title"],
        )
        for number, one in enumerate(points)
    ]  # fmt: skip
    shown = [one for one in marks if None not in (one.y, one.low, one.high)]
    ends = [(one.x, one.high) for one in shown] + [(one.x, one.low) for one in reversed(shown)]
    return SimpleNamespace(
        width=CHART_WIDTH,
        height=CHART_HEIGHT,
        left=LEFT,
        right=CHART_WIDTH - RIGHT,
        bottom=CHART_HEIGHT - BOTTOM,
        marks=marks,
        band=_joined(ends) if len(shown) > 1 else "",  # polygon between the ends of the intervals
        line=_joined([(one.x, one.y) for one in shown]) if len(shown) > 1 else "",
        ticks=[(place_y(value), f"{value:.2f}") for value in _ticks(low, high)],
        names=_names(points, place_x),
        rules=[(place_y(value), kind, label) for kind, label, value in chart["levels"]],
        radius=RADIUS,
    )


def _range(chart: Chart) -> tuple[float, float]:
    """Return the lowest and highest value of the axis, on whole steps."""
    known = [
        (one.get("value"), one.get("low"), one.get("high"), one.get("observed"))
        for one in chart["points"]
    ]
    values = [value for four in known for value in four if value is not None]
    values += [value for _, _, value in chart["levels"]]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    margin = max(0.02, 0.06 * (high - low))
    return max(0.0, low - margin), min(1.0, high + margin) if high <= 1 else high + margin


def _ticks(low: float, high: float) -> list[float]:
    step = next((one for one in STEPS if (high - low) / one <= 6), STEPS[-1])
    first = int(low / step)
    found = [round(step * number, 4) for number in range(first, first + 9)]
    return [value for value in found if low <= value <= high]


def _names(points: Sequence[Any], place_x: Any) -> list[tuple[float, str]]:
    """Return the names below the axis: all of few batches, else some, the last included."""
    every = max(1, -(-len(points) // MAX_NAMES))
    shown = range(len(points) - 1, -1, -every)
    return [(place_x(i), _short(points[i]["name"])) for i in reversed(shown)]


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _joined(points: Sequence[tuple[Any, Any]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
