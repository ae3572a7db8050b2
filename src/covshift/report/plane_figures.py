"""Figures of rows in the plane, before and after, and of intervals, drawn from plain arrays."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from covshift.report.figures import DPI, FONT_SIZE, WIDTH, as_written
from covshift.report.score_figures import STYLES

MAX_SHOWN_ROWS = 400  # rows of each kind: more only hide each other
MAX_BOXES = 12  # domains


def draw_planes(
    panels: Mapping[str, Mapping[str, npt.NDArray[Any]]], axis_names: tuple[str, str]
) -> Figure:
    """Draw rows of several kinds in the plane, one panel beside the other.

    Parameters
    ----------
    panels : mapping
        Title of the panel -> kind of rows -> array of shape (n, 2). Every kind has its color and
        shape; of each, the first 400 rows are drawn.
    axis_names : pair of str
        Names of the axes.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(WIDTH, 4.6), dpi=DPI, layout="constrained")
    kinds = list(dict.fromkeys(kind for rows in panels.values() for kind in rows))
    for axes, (title, rows_of) in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels.items(), strict=True
    ):
        for kind, rows in rows_of.items():
            style = STYLES[kinds.index(kind) % len(STYLES)]
            look = {"s": 14, "alpha": 0.6, "linewidths": 0} | style
            axes.scatter(*rows[:MAX_SHOWN_ROWS].T, label=as_written(kind), **look)
        axes.set_title(as_written(title), fontsize=FONT_SIZE)
        axes.set_xlabel(as_written(axis_names[0]), fontsize=FONT_SIZE)
        axes.set_ylabel(as_written(axis_names[1]), fontsize=FONT_SIZE)
        axes.tick_params(labelsize=FONT_SIZE - 2)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(kinds), fontsize=FONT_SIZE)
    return figure


def draw_intervals(
    panels: Mapping[str, Mapping[str, tuple[float, float, float]]], about_zero: Collection[str] = ()
) -> Figure:
    """Draw values with their intervals, one panel above the other.

    Parameters
    ----------
    panels : mapping
        Label of the horizontal axis of the panel -> row -> (value, low end, high end), in the
        order from above.
    about_zero : collection of str
        Panels in which a line marks zero.

    Returns
    -------
    Figure
    """
    counts = [max(1, len(values)) for values in panels.values()]
    height = sum(1.0 + 0.32 * count for count in counts)
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    shared = figure.subplots(
        len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": [1.5 + n for n in counts]}
    )
    for axes, (name, values) in zip(shared.flat, panels.items(), strict=True):
        middles = [value for value, _, _ in values.values()]
        below = [max(0.0, value - low) for value, low, _ in values.values()]
        above = [max(0.0, high - value) for value, _, high in values.values()]
        places = range(len(values))
        axes.errorbar(middles, places, xerr=[below, above], linestyle="", capsize=3, **STYLES[1])
        if name in about_zero:
            axes.axvline(0, color="0.6", linewidth=1)
        axes.set_xlabel(as_written(name), fontsize=FONT_SIZE)
        axes.set_yticks(places, [as_written(row) for row in values])
        axes.tick_params(labelsize=FONT_SIZE - 1)
        axes.set_ylim(len(values) - 0.5, -0.5)
    return figure


def draw_predicted(
    truth: npt.NDArray[Any], predicted: npt.NDArray[Any], domain: npt.NDArray[Any]
) -> Figure:
    """Draw predicted against true numbers, and boxes of their differences by domain.

    Parameters
    ----------
    truth, predicted : ndarray of shape (n,)
        Of the rows; the first 400 of each domain are drawn.
    domain : ndarray of str of shape (n,)
        Domain of each row; the differences of the twelve with most rows are drawn.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(WIDTH, 4.2), dpi=DPI, layout="constrained")
    left, right = figure.subplots(1, 2)
    names, counts = np.unique(domain, return_counts=True)
    names = names[np.argsort(-counts, kind="stable")]
    look = {"s": 14, "alpha": 0.6, "linewidths": 0} | STYLES[1]
    for name in names:
        rows = np.flatnonzero(domain == name)[:MAX_SHOWN_ROWS]
        left.scatter(truth[rows], predicted[rows], **look)
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    left.plot(ends, ends, color="0.4", linewidth=1)
    left.set_xlabel("true", fontsize=FONT_SIZE)
    left.set_ylabel("predicted", fontsize=FONT_SIZE)
    shown = names[:MAX_BOXES]
    right.boxplot([(predicted - truth)[domain == name] for name in shown], orientation="horizontal")
    right.set_yticks(range(1, len(shown) + 1), [as_written(str(name)) for name in shown])
    right.axvline(0, color="0.6", linewidth=1)
    right.set_ylim(len(shown) + 0.5, 0.5)
    right.set_xlabel("prediction less truth", fontsize=FONT_SIZE)
    for axes in (left, right):
        axes.tick_params(labelsize=FONT_SIZE - 2)
    return figure
