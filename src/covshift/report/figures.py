"""Figures from plain arrays: rows in the plane, intervals, predictions, scores, differences.

Figures are objects of their own: pyplot and its global state are never touched. Panels are given by
their titles, in the order in which they are drawn.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import IO, Any

import numpy as np
import numpy.typing as npt

try:
    import matplotlib  # noqa: F401 - the error names it, not a module of it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError(
        'Figures need matplotlib, which is not installed: pip install "covshift[report]"'
    ) from error

WIDTH = 10.0  # inches; with DPI, 1500 pixels, still legible when shown at 1000
DPI = 150
FONT_SIZE = 11
# Four of the colors of Okabe and Ito, and a shape each, for those who see no colors.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#D55E00", "marker": "^"},
    {"color": "#0072B2", "marker": "o"},
    {"color": "#009E73", "marker": "s"},
    {"color": "#CC79A7", "marker": "D"},
)
FAINT: dict[str, Any] = {"s": 14, "alpha": 0.6, "linewidths": 0}  # dots of many rows
MAX_SHOWN_ROWS = 400  # rows of each kind: more only hide each other
MAX_BOXES = 12  # domains
SPREAD = 0.5  # share of the space between systems used for a system's points


def png_bytes(figure: Figure) -> bytes:
    """Return a figure as the contents of a PNG file."""
    file = BytesIO()
    save_png(figure, file)
    return file.getvalue()


def save_png(figure: Figure, file: IO[bytes]) -> None:
    """Write a figure as PNG to a binary file."""
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the page has it in text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format="png", dpi=DPI)


def _as_written(name: str) -> str:
    """Return a name for Matplotlib, which takes what stands between two dollars for a formula."""
    return name.replace("$", r"\$")


def new_figure(height: float) -> Figure:
    """Return an empty figure of the width of a report, and of this height in inches."""
    return Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")


def label_axes(axes: Axes, title: str = "", x: str = "", y: str = "", smaller: int = 1) -> None:
    """Write title and names of both axes, and numbers ``smaller`` points smaller."""
    axes.set_title(title, fontsize=FONT_SIZE)
    axes.set_xlabel(x, fontsize=FONT_SIZE)
    axes.set_ylabel(y, fontsize=FONT_SIZE)
    axes.tick_params(labelsize=FONT_SIZE - smaller)


def draw_planes(
    panels: Mapping[str, Mapping[str, npt.NDArray[Any]]], axis_names: tuple[str, str]
) -> Figure:
    """Draw a report's rows of several kinds in the plane, one panel beside the other.

    A panel maps kinds of rows to arrays of shape (n, 2). Every kind has its color and shape; of
    each, the first 400 rows are drawn.
    """
    figure = new_figure(4.6)
    kinds = _distinct(panels.values())
    for axes, (title, rows_of) in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels.items(), strict=True
    ):
        for kind, rows in rows_of.items():
            style = STYLES[kinds.index(kind) % len(STYLES)]
            axes.scatter(*rows[:MAX_SHOWN_ROWS].T, label=_as_written(kind), **FAINT | style)
        x, y = map(_as_written, axis_names)
        label_axes(axes, _as_written(title), x, y, smaller=2)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(kinds), fontsize=FONT_SIZE)
    return figure


def draw_intervals(
    panels: Mapping[str, Mapping[str, tuple[float, float, float]]], about_zero: Collection[str] = ()
) -> Figure:
    """Draw values with their intervals, one panel above the other.

    A panel, named as its horizontal axis, maps rows to (value, low end, high end), in the order
    from above. In panels ``about_zero``, a line marks zero.
    """
    counts = [max(1, len(values)) for values in panels.values()]
    figure = new_figure(sum(1.0 + 0.32 * count for count in counts))
    ratios = {"height_ratios": [1.5 + count for count in counts]}
    shared = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw=ratios)
    for axes, (name, values) in zip(shared.flat, panels.items(), strict=True):
        middles = [value for value, _, _ in values.values()]
        below = [max(0.0, value - low) for value, low, _ in values.values()]
        above = [max(0.0, high - value) for value, _, high in values.values()]
        places = range(len(values))
        axes.errorbar(middles, places, xerr=[below, above], linestyle="", capsize=3, **STYLES[1])
        if name in about_zero:
            axes.axvline(0, color="0.6", linewidth=1)
        axes.set_yticks(places, [_as_written(row) for row in values])
        label_axes(axes, x=_as_written(name))
        axes.set_ylim(len(values) - 0.5, -0.5)
    return figure


def draw_predicted(
    truth: npt.NDArray[Any], predicted: npt.NDArray[Any], domain: npt.NDArray[Any]
) -> Figure:
    """Draw predicted against true numbers, and boxes of their differences by domain.

    The first 400 rows of each domain are drawn, and the boxes of the twelve with most rows.
    """
    figure = new_figure(4.2)
    left, right = figure.subplots(1, 2)
    names, counts = np.unique(domain, return_counts=True)
    names = names[np.argsort(-counts, kind="stable")]
    for name in names:
        rows = np.flatnonzero(domain == name)[:MAX_SHOWN_ROWS]
        left.scatter(truth[rows], predicted[rows], **FAINT | STYLES[1])
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    left.plot(ends, ends, color="0.4", linewidth=1)
    label_axes(left, x="true", y="predicted", smaller=2)
    shown = names[:MAX_BOXES]
    right.boxplot([(predicted - truth)[domain == name] for name in shown], orientation="horizontal")
    right.set_yticks(range(1, len(shown) + 1), [_as_written(str(name)) for name in shown])
    right.axvline(0, color="0.6", linewidth=1)
    right.set_ylim(len(shown) + 0.5, 0.5)
    label_axes(right, x="prediction less truth", smaller=2)
    return figure


def draw_scores(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple[float, float | None]]]],
    *,
    score_name: str,
    chance: float | None = None,
) -> Figure:
    """Draw scores with error bars, one panel below the other.

    A panel maps series to systems, and these to (score, its error or None). Every series has its
    color and shape, every system its place on the axis; a line marks ``chance``.
    """
    figure = new_figure(0.6 + 3.2 * len(panels))
    names = _distinct(panels.values())
    for axes, (title, series) in zip(
        figure.subplots(len(panels), 1, squeeze=False).flat, panels.items(), strict=True
    ):
        systems = _distinct(series.values())
        for name, scores in series.items():
            shift = SPREAD * ((names.index(name) + 0.5) / len(names) - 0.5)
            axes.errorbar(
                [systems.index(system) + shift for system in scores],
                [score for score, _ in scores.values()],
                yerr=_errors(scores.values()),
                linestyle="",
                capsize=3,
                label=_as_written(name),
                **STYLES[names.index(name)],
            )
        if chance is not None:
            axes.axhline(chance, color="gray", linewidth=1, linestyle=":")
        axes.set_xticks(range(len(systems)), [_as_written(one) for one in systems])
        label_axes(axes, _as_written(title), y=score_name)
    handles, labels = figure.axes[0].get_legend_handles_labels() if panels else ([], [])
    figure.legend(
        handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=FONT_SIZE - 1
    )
    return figure


def draw_differences(
    panels: Mapping[str, Mapping[str, tuple[float, float | None]]], *, difference_name: str
) -> Figure:
    """Draw differences with their intervals, systems below each other, panels side by side.

    A panel maps systems to (difference, half of its interval or None).
    """
    systems = _distinct(panels.values())
    figure = new_figure(1.2 + 0.28 * len(systems))
    row = figure.subplots(1, max(1, len(panels)), squeeze=False, sharey=True)[0]
    for axes, (title, panel) in zip(row, panels.items(), strict=False):
        axes.axvline(0.0, color="gray", linewidth=1, linestyle=":")
        axes.errorbar(
            [difference for difference, _ in panel.values()],
            [systems.index(system) for system in panel],
            xerr=_errors(panel.values()),
            linestyle="",
            capsize=3,
            **STYLES[1],
        )
        label_axes(axes, _as_written(title), x=difference_name)
    row[0].set_yticks(range(len(systems)), [_as_written(one) for one in systems])
    row[0].invert_yaxis()  # the first above
    return figure


def _distinct(panels: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys of mappings, each once, as they come."""
    return list(dict.fromkeys(name for panel in panels for name in panel))


def _errors(scores: Iterable[tuple[float, float | None]]) -> Sequence[float]:
    return [0.0 if error is None else error for _, error in scores]
