"""A chart of scores over time as inline SVG: drawn from plain numbers, colored by the page.

The page's style sheet colors the classes of the chart, for light and dark screens; all text is
escaped by the template.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from covshift.report.document import Chart

WIDTH, HEIGHT = 720, 340  # of the view box
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 78
MAX_NAMES = 8  # below the axis
MAX_NAME = 14  # characters of each
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
RADIUS = 4.5


class Mark(NamedTuple):
    """A batch in the chart."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    observed: float | None
    kind: str  # "fine", "moved" or "alert"
    title: str


class Drawing(NamedTuple):
    """Places of everything in the view box, for the template."""

    width: int
    height: int
    left: int
    right: int
    bottom: int
    marks: list[Mark]
    band: str  # points of the polygon between the ends of the intervals
    line: str  # points of the line through the scores
    ticks: list[tuple[float, str]]
    names: list[tuple[float, str]]
    rules: list[tuple[float, str, str]]  # y, class, label
    radius: float


def draw_series(chart: Chart) -> Drawing:
    """Return where everything of a chart stands.

    Parameters
    ----------
    chart : Chart
        Points in their order, and levels to compare them with.

    Returns
    -------
    Drawing
    """
    points = chart["points"]
    low, high = _range(chart)
    inner = WIDTH - LEFT - RIGHT

    def place_x(number: int) -> float:
        return round(LEFT + inner * (number + 0.5) / max(1, len(points)), 1)

    def place_y(value: float | None) -> float | None:
        if value is None:
            return None
        share = (min(max(value, low), high) - low) / (high - low)
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)

    marks = [
        Mark(
            place_x(number),
            place_y(one.get("value")),
            place_y(one.get("low")),
            place_y(one.get("high")),
            place_y(one.get("observed")),
            one["kind"],
            one["title"],
        )
        for number, one in enumerate(points)
    ]
    shown = [one for one in marks if None not in (one.y, one.low, one.high)]
    band = [(one.x, one.high) for one in shown] + [(one.x, one.low) for one in reversed(shown)]
    rules = [
        (y, kind, label)
        for kind, label, value in chart["levels"]
        if (y := place_y(value)) is not None
    ]
    return Drawing(
        WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, marks,
        _joined(band) if len(shown) > 1 else "",
        _joined([(one.x, one.y) for one in shown]) if len(shown) > 1 else "",
        [(place_y(value) or 0.0, f"{value:.2f}") for value in _ticks(low, high)],
        _names(points, place_x), rules, RADIUS,
    )  # fmt: skip


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
