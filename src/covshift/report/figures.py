"""Figures from plain arrays: data in the plane, filters, rows before and after, scores.

Figures are objects of their own: pyplot and its global state are never touched.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import IO, Any, TypedDict

import numpy as np
import numpy.typing as npt

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
except ImportError as error:
    raise ImportError(
        'Figures need matplotlib, which is not installed: pip install "covshift[report]"'
    ) from error

# Two of the colors of Okabe and Ito, distinct for every kind of color vision and in gray.
LABEL_COLOURS = ("#0072B2", "#E69F00")
# Grays leave both colors to stand out; their darkest third would swallow the blue.
GRAYS = colormaps["Greys"].resampled(256)
SHADES = ListedColormap(GRAYS(range(170)), name="light grays")
WIDTH = 10.0  # inches; with DPI, 1500 pixels, still legible when shown at 1000
DPI = 150
FONT_SIZE = 11
LINE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": LABEL_COLOURS[0], "linestyle": "-"},
    {"color": LABEL_COLOURS[1], "linestyle": "--"},
)


class Filters(TypedDict):
    """One filter bank over the plane, for `draw_filters`."""

    title: str
    x1: npt.NDArray[Any]  # (columns,)
    x2: npt.NDArray[Any]  # (rows,)
    Z: npt.NDArray[Any]  # (rows, columns, filters)
    names: Sequence[str]  # one per filter
    data: Mapping[str, npt.NDArray[Any]]


def draw_data_sets(
    data_sets: Mapping[str, Mapping[str, npt.NDArray[Any]]],
    axis_names: tuple[str, str] = ("$x_1$", "$x_2$"),
) -> Figure:
    """Draw data sets of two features, one panel each, two panels in a row.

    Parameters
    ----------
    data_sets : mapping of str to mapping
        Title of the panel -> arrays ``X_source``, ``y_source``, ``X_test`` and ``y_test``,
        labels 0 and 1.
    axis_names : pair of str
        Of both features.

    Returns
    -------
    Figure
    """
    n_rows = -(-len(data_sets) // 2)
    figure = Figure(figsize=(WIDTH, 0.6 + 3.4 * n_rows), dpi=DPI, layout="constrained")
    panels = figure.subplots(n_rows, 2, squeeze=False).flat
    for (title, data), axes in zip(data_sets.items(), panels, strict=False):
        _scatter(axes, data, size=22, shown=200)
        axes.set_title(title, fontsize=FONT_SIZE)
        axes.set_xlabel(axis_names[0], fontsize=FONT_SIZE)
        axes.set_ylabel(axis_names[1], fontsize=FONT_SIZE)
        axes.tick_params(labelsize=FONT_SIZE - 2)
    for axes in panels:  # zip left those without a data set
        axes.set_axis_off()
    _legend(figure)
    return figure


def draw_filters(banks: Sequence[Filters]) -> Figure:
    """Draw what each filter answers over the plane, with the rows on top.

    Parameters
    ----------
    banks : sequence of Filters
        Each a block of panels, one per filter, at most four in a row.

    Returns
    -------
    Figure
    """
    shapes = [_block_shape(bank["Z"].shape[-1]) for bank in banks]
    # A block of fewer columns has wider panels, and is given more height for them.
    heights = [0.5 + rows * (1.1 + 2.8 / columns) for rows, columns in shapes]
    figure = Figure(figsize=(WIDTH, 0.6 + sum(heights)), dpi=DPI, layout="constrained")
    blocks = figure.subfigures(len(banks), 1, height_ratios=heights, squeeze=False).flat
    for block, bank, shape in zip(blocks, banks, shapes, strict=True):
        _draw_bank(block, bank, shape)
    _legend(figure)
    return figure


def draw_histories(histories: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Figure:
    """Draw curves over iterations, one panel for each title, two panels in a row.

    Parameters
    ----------
    histories : mapping of str to mapping
        Title of the panel -> name of a curve -> its values from iteration 0.

    Returns
    -------
    Figure
    """
    n_rows = -(-len(histories) // 2)
    figure = Figure(figsize=(WIDTH, 2.6 * n_rows), dpi=DPI, layout="constrained")
    panels = figure.subplots(n_rows, 2, squeeze=False).flat
    for (title, curves), axes in zip(histories.items(), panels, strict=False):
        for (name, values), style in zip(curves.items(), LINE_STYLES, strict=False):
            axes.plot(values, label=name, linewidth=1.5, **style)
        axes.set_title(title, fontsize=FONT_SIZE)
        axes.set_xlabel("iteration", fontsize=FONT_SIZE)
        axes.set_ylabel("loss", fontsize=FONT_SIZE)
        axes.tick_params(labelsize=FONT_SIZE - 2)
        axes.legend(frameon=False, fontsize=FONT_SIZE - 1)
    for axes in panels:
        axes.set_axis_off()
    return figure


def draw_waveforms(waveforms: npt.NDArray[Any], rate: float) -> Figure:
    """Draw waveforms in time, and their amplitude spectra below, three pairs in a row.

    Parameters
    ----------
    waveforms : ndarray of shape (n, length)
        One in each row.
    rate : float
        Samples per second.

    Returns
    -------
    Figure
    """
    n_columns = min(3, len(waveforms))
    n_rows = -(-len(waveforms) // n_columns)
    figure = Figure(figsize=(WIDTH, 3.6 * n_rows), dpi=DPI, layout="constrained")
    panels = figure.subplots(2 * n_rows, n_columns, squeeze=False)
    length = waveforms.shape[1]
    milliseconds = 1000 * np.arange(length) / rate
    kilohertz = np.fft.rfftfreq(length, 1 / rate) / 1000
    for number in range(n_rows * n_columns):
        row, column = divmod(number, n_columns)
        in_time, in_frequency = panels[2 * row, column], panels[2 * row + 1, column]
        if number >= len(waveforms):
            in_time.set_axis_off()
            in_frequency.set_axis_off()
            continue
        in_time.plot(milliseconds, waveforms[number], linewidth=1.0, **LINE_STYLES[0])
        spectrum = np.abs(np.fft.rfft(waveforms[number]))
        in_frequency.plot(kilohertz, spectrum, linewidth=1.0, **LINE_STYLES[0])
        in_time.set_title(f"filter {number + 1}", fontsize=FONT_SIZE)
        for axes, label in ((in_time, "ms"), (in_frequency, "kHz")):
            axes.set_xlabel(label, fontsize=FONT_SIZE - 2)
            axes.set_yticks([])
            axes.tick_params(labelsize=FONT_SIZE - 2)
    return figure


def png_bytes(figure: Figure) -> bytes:
    """Return a figure as the contents of a PNG file."""
    file = BytesIO()
    save_png(figure, file)
    return file.getvalue()


def save_png(figure: Figure, file: IO[bytes]) -> None:
    """Write a figure as PNG to a binary file.

    Parameters
    ----------
    figure : Figure
        Figure.
    file : binary file
        Where to.
    """
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the page has it in text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format="png", dpi=DPI)


def as_written(name: str) -> str:
    """Return a name for Matplotlib, which takes what stands between two dollars for a formula."""
    return name.replace("$", r"\$")


def _block_shape(n_panels: int) -> tuple[int, int]:
    columns = min(n_panels, 4)
    return -(-n_panels // columns), columns


def _draw_bank(block: SubFigure, bank: Filters, shape: tuple[int, int]) -> None:
    block.suptitle(bank["title"], fontsize=FONT_SIZE, fontweight="bold")
    panels = block.subplots(*shape, sharex=True, sharey=True, squeeze=False)
    for index, name in enumerate(bank["names"]):
        axes = panels.flat[index]
        shading = _shade(axes, bank, index)
        _scatter(axes, bank["data"], size=10, shown=100)
        axes.set_title(name, fontsize=FONT_SIZE - 1)
        axes.tick_params(labelsize=FONT_SIZE - 2)
    for axes in panels.flat[len(bank["names"]) :]:
        axes.set_axis_off()
    block.supxlabel("$x_1$", fontsize=FONT_SIZE)
    block.supylabel("$x_2$", fontsize=FONT_SIZE)
    bar = block.colorbar(shading, ax=panels, pad=0.02, ticks=[0.0, 0.5, 1.0])
    bar.set_label("response to a target row", fontsize=FONT_SIZE)
    bar.ax.tick_params(labelsize=FONT_SIZE - 2)


def _shade(axes: Axes, bank: Filters, index: int) -> QuadMesh:
    return axes.pcolormesh(
        bank["x1"],
        bank["x2"],
        bank["Z"][..., index],
        cmap=SHADES,
        vmin=0.0,
        vmax=1.0,
        shading="nearest",
        rasterized=True,
    )


def _scatter(axes: Axes, data: Mapping[str, npt.NDArray[Any]], size: float, shown: int) -> None:
    """Source rows as filled dots, target rows as hollow triangles, colored by label.

    Only the first ``shown`` of each: more would cover each other. Rows come in random order.
    """
    X_source, y_source = data["X_source"][:shown], data["y_source"][:shown]
    X_test, y_test = data["X_test"][:shown], data["y_test"][:shown]
    for label, color in enumerate(LABEL_COLOURS):
        source, target = X_source[y_source == label], X_test[y_test == label]
        axes.scatter(
            source[:, 0], source[:, 1], s=size, c=color, marker="o", linewidths=0, alpha=0.8
        )
        axes.scatter(
            target[:, 0],
            target[:, 1],
            s=size,
            facecolors="none",
            edgecolors=color,
            marker="^",
            linewidths=0.8,
        )


def _legend(figure: Figure) -> None:
    figure.legend(
        handles=list(_legend_entries()),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=FONT_SIZE - 1,
    )


def _legend_entries() -> Iterable[Line2D]:
    for label, color in enumerate(LABEL_COLOURS):
        yield Line2D([], [], linestyle="", marker="o", color=color, label=f"source, label {label}")
    for label, color in enumerate(LABEL_COLOURS):
        yield Line2D(
            [],
            [],
            linestyle="",
            marker="^",
            color=color,
            markerfacecolor="none",
            label=f"target, true label {label}",
        )


# --- Figures of rows in the plane, before and after, and of intervals, drawn from plain arrays ---


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


# --- A figure of scores with their errors: systems side by side, drawn from plain numbers ---


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
