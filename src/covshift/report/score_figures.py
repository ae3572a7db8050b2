"""A figure of scores with their errors: systems side by side, drawn from plain numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from covshift.report.figures import DPI, FONT_SIZE, WIDTH, as_written

# Four of the colors of Okabe and Ito, and a shape each, for those who see no colors.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#D55E00", "marker": "^"},
    {"color": "#0072B2", "marker": "o"},
    {"color": "#009E73", "marker": "s"},
    {"color": "#CC79A7", "marker": "D"},
)
SPREAD = 0.5  # share of the space between systems used for a system's points


def draw_scores(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple[float, float | None]]]],
    *,
    score_name: str,
    chance: float | None = None,
) -> Figure:
    """Draw scores with error bars, one panel below the other.

    Parameters
    ----------
    panels : mapping
        Title of the panel -> series -> system -> (score, its error or None). Every series has
        its color and shape, every system its place on the axis.
    score_name : str
        Label of the vertical axis.
    chance : float, optional
        Where to draw a line.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(WIDTH, 0.6 + 3.2 * len(panels)), dpi=DPI, layout="constrained")
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    styles = dict(zip(names, STYLES, strict=False))
    for axes, (title, series) in zip(
        figure.subplots(len(panels), 1, squeeze=False).flat, panels.items(), strict=True
    ):
        systems = list(dict.fromkeys(system for scores in series.values() for system in scores))
        for name, scores in series.items():
            shift = SPREAD * ((names.index(name) + 0.5) / len(names) - 0.5)
            places = [systems.index(system) + shift for system in scores]
            axes.errorbar(
                places,
                [score for score, _ in scores.values()],
                yerr=_errors(list(scores.values())),
                linestyle="",
                capsize=3,
                label=as_written(name),
                **styles[name],
            )
        if chance is not None:
            axes.axhline(chance, color="gray", linewidth=1, linestyle=":")
        axes.set_title(as_written(title), fontsize=FONT_SIZE)
        axes.set_ylabel(score_name, fontsize=FONT_SIZE)
        axes.set_xticks(range(len(systems)), [as_written(one) for one in systems])
        axes.tick_params(labelsize=FONT_SIZE - 1)
    handles, labels = figure.axes[0].get_legend_handles_labels() if panels else ([], [])
    figure.legend(
        handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=FONT_SIZE - 1
    )
    return figure


def draw_differences(
    panels: Mapping[str, Mapping[str, tuple[float, float | None]]], *, difference_name: str
) -> Figure:
    """Draw differences with their intervals, systems below each other, panels side by side.

    Parameters
    ----------
    panels : mapping
        Title of the panel -> system -> (difference, half of its interval or None).
    difference_name : str
        Labels of the horizontal axes.

    Returns
    -------
    Figure
    """
    systems = list(dict.fromkeys(system for panel in panels.values() for system in panel))
    figure = Figure(figsize=(WIDTH, 1.2 + 0.28 * len(systems)), dpi=DPI, layout="constrained")
    row = figure.subplots(1, max(1, len(panels)), squeeze=False, sharey=True)[0]
    for axes, (title, panel) in zip(row, panels.items(), strict=False):
        axes.axvline(0.0, color="gray", linewidth=1, linestyle=":")
        axes.errorbar(
            [difference for difference, _ in panel.values()],
            [systems.index(system) for system in panel],
            xerr=_errors(list(panel.values())),
            linestyle="",
            capsize=3,
            **STYLES[1],
        )
        axes.set_title(as_written(title), fontsize=FONT_SIZE)
        axes.set_xlabel(difference_name, fontsize=FONT_SIZE)
        axes.tick_params(labelsize=FONT_SIZE - 1)
    row[0].set_yticks(range(len(systems)), [as_written(one) for one in systems])
    row[0].invert_yaxis()  # the first above
    return figure


def _errors(scores: Sequence[tuple[float, float | None]]) -> list[float]:
    return [0.0 if error is None else error for _, error in scores]
