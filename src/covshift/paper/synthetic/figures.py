"""Figures of the synthetic study: the data, what filters make of them, how they were fitted."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from sklearn.exceptions import ConvergenceWarning

from covshift.datasets import ShiftedData
from covshift.domains import stack_domains
from covshift.kernels.array_types import FloatArray
from covshift.paper.synthetic.systems import DATA_SETS, READINGS, RECONSTRUCTED, build_part
from covshift.paper.synthetic.trials import draw_trial
from covshift.report.document import make_figure
from covshift.report.figures import FONT_SIZE, label_axes, new_figure, png_bytes  # needs an extra

# Whose assumption each data set is built on.
ASSUMPTIONS = {
    "radial": "sparse filtering (SF)",
    "periodic": "periodic sparse filtering (PSF)",
    "smooth": "importance weighting",
    "diagonal": "subspace alignment",
}
SHOWN = (("radial", "SF"), ("periodic", "PSF"))  # each filter where its assumption holds
GRID_POINTS = 200


def draw_figures(seed: int) -> list[Any]:
    """Return the figures of the synthetic trial with this seed, for the report."""
    fitted = {
        (data_set, system): _fit(data_set, system, seed)
        for data_set in DATA_SETS
        for system in ("SF", "PSF")
    }
    return [
        make_figure(
            "data-sets",
            "The four data sets. Dots are source rows, triangles target rows; colors are labels.",
            "Scatter plots of radial, periodic, smooth and diagonal, and of the printed variants "
            "of periodic and diagonal: target rows lie beside the source rows.",
            png=png_bytes(_draw_data_sets(_data_sets(seed))),
        ),
        make_figure(
            "filters",
            "Output of each filter over the plane, for rows of the target: used well, SF on "
            "radial and PSF on periodic.",
            "Shaded planes: the answers of SF fan out from the origin, those of PSF repeat in "
            "stripes along the first feature.",
            png=png_bytes(_draw_filters([_bank(*shown, *fitted[shown]) for shown in SHOWN])),
        ),
        make_figure(
            "representations",
            "The same rows before and after: the two main directions of the representation.",
            "Scatter plots: before, source and target lie apart; after, they lie on top of each "
            "other, and the labels stay separate.",
            png=png_bytes(
                _draw_data_sets(
                    {
                        title: data
                        for shown in SHOWN
                        for title, data in _before_and_after(*shown, *fitted[shown]).items()
                    },
                    ("first direction", "second direction"),
                )
            ),
        ),
        make_figure(
            "histories",
            "Loss of the kept start at every iteration.",
            "Falling curves of both filters on each data set.",
            png=png_bytes(
                _draw_histories(
                    {
                        data_set: {
                            system: fitted[data_set, system][1].loss_curve_
                            for system in ("SF", "PSF")
                        }
                        for data_set in DATA_SETS
                    }
                )
            ),
        ),
    ]


def _data_sets(seed: int) -> dict[str, Any]:
    panels = {
        f"{name}: the assumption of\n{ASSUMPTIONS[name]}": draw_trial(name, seed).data._asdict()
        for name in DATA_SETS
    }
    for name in RECONSTRUCTED:
        panels[f"{name}, as printed"] = draw_trial(name, seed, "printed").data._asdict()
    return panels


def _fit(data_set: str, system: str, seed: int) -> tuple[ShiftedData, Any]:
    data, start = draw_trial(data_set, seed)
    adapter = build_part(READINGS["used well"][system]["adapter"], data, start)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return data, adapter.fit(X, y, sample_domain=sample_domain)


def _bank(data_set: str, system: str, data: ShiftedData, adapter: Any) -> Any:
    """Return one block of the figure of filters."""
    rows = np.concatenate([data.X_source, data.X_test])
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.05 * (high - low)
    x1, x2 = np.linspace(low - margin, high + margin, GRID_POINTS).T
    Z = adapter.transform(np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2))
    names = [f"filter {index + 1}" for index in range(len(adapter.components_))]
    for label, group in enumerate(getattr(adapter, "feature_groups_", ())):
        for index in group.nonzero()[0]:
            names[index] += f", for label {label}"
    return {
        "title": f"{system} on {data_set}",
        "x1": x1,
        "x2": x2,
        "Z": Z.reshape(GRID_POINTS, GRID_POINTS, -1),
        "names": names,
        "data": data._asdict(),
    }


def _before_and_after(
    data_set: str, system: str, data: ShiftedData, adapter: Any
) -> dict[str, dict[str, Any]]:
    source = adapter.transform(data.X_source, sample_domain=0)
    test = adapter.transform(data.X_test)
    labels = {"y_source": data.y_source, "y_test": data.y_test}
    before = dict(zip(("X_source", "X_test"), _main_plane(data.X_source, data.X_test), strict=True))
    after = dict(zip(("X_source", "X_test"), _main_plane(source, test), strict=True))
    return {
        f"{data_set}, before": {**before, **labels},
        f"{data_set}, after {system}": {**after, **labels},
    }


def _main_plane(source: FloatArray, test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both along the two main directions of all of them together."""
    rows = np.concatenate([source, test])
    center = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - center, full_matrices=False)
    return (source - center) @ directions[:2].T, (test - center) @ directions[:2].T


# --- Drawing: data in the plane, answers of filters, losses ---


# Two of the colors of Okabe and Ito, distinct for every kind of color vision and in gray.
LABEL_COLORS = ("#0072B2", "#E69F00")
# Grays leave both colors to stand out; their darkest third would swallow the blue.
SHADES = ListedColormap(colormaps["Greys"].resampled(256)(range(170)), name="light grays")
LINE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": LABEL_COLORS[0], "linestyle": "-"},
    {"color": LABEL_COLORS[1], "linestyle": "--"},
)


class Filters(TypedDict):
    """One filter bank over the plane, for `_draw_filters`."""

    title: str
    x1: npt.NDArray[Any]  # (columns,)
    x2: npt.NDArray[Any]  # (rows,)
    Z: npt.NDArray[Any]  # (rows, columns, filters)
    names: Sequence[str]  # one per filter
    data: Mapping[str, npt.NDArray[Any]]


def _draw_data_sets(
    data_sets: Mapping[str, Mapping[str, npt.NDArray[Any]]],
    axis_names: tuple[str, str] = ("$x_1$", "$x_2$"),
) -> Figure:
    """Draw data sets of two features, one panel each, two panels in a row.

    A panel has arrays ``X_source``, ``y_source``, ``X_test`` and ``y_test``, labels 0 and 1.
    """
    n_rows = -(-len(data_sets) // 2)
    figure = new_figure(0.6 + 3.4 * n_rows)
    panels = figure.subplots(n_rows, 2, squeeze=False).flat
    for (title, data), axes in zip(data_sets.items(), panels, strict=False):
        _scatter(axes, data, size=22, shown=200)
        label_axes(axes, title, *axis_names, smaller=2)
    for axes in panels:  # zip left those without a data set
        axes.set_axis_off()
    _add_legend(figure)
    return figure


def _draw_filters(banks: Sequence[Filters]) -> Figure:
    """Draw what each filter answers over the plane, with the rows on top.

    Each bank is a block of panels, one per filter, at most four in a row.
    """
    n_columns = [min(bank["Z"].shape[-1], 4) for bank in banks]
    n_rows = [-(-bank["Z"].shape[-1] // n) for bank, n in zip(banks, n_columns, strict=True)]
    # A block of fewer columns has wider panels, and is given more height for them.
    heights = [0.5 + n * (1.1 + 2.8 / m) for n, m in zip(n_rows, n_columns, strict=True)]
    figure = new_figure(0.6 + sum(heights))
    blocks = figure.subfigures(len(banks), 1, height_ratios=heights, squeeze=False).flat
    for block, bank, *shape in zip(blocks, banks, n_rows, n_columns, strict=True):
        _draw_bank(block, bank, *shape)
    _add_legend(figure)
    return figure


def _draw_histories(histories: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Figure:
    """Draw curves over iterations, from 0, one panel for each title, two panels in a row."""
    n_rows = -(-len(histories) // 2)
    figure = new_figure(2.6 * n_rows)
    panels = figure.subplots(n_rows, 2, squeeze=False).flat
    for (title, curves), axes in zip(histories.items(), panels, strict=False):
        for (name, values), style in zip(curves.items(), LINE_STYLES, strict=False):
            axes.plot(values, label=name, linewidth=1.5, **style)
        label_axes(axes, title, "iteration", "loss", smaller=2)
        axes.legend(frameon=False, fontsize=FONT_SIZE - 1)
    for axes in panels:
        axes.set_axis_off()
    return figure


def _draw_bank(block: SubFigure, bank: Filters, n_rows: int, n_columns: int) -> None:
    block.suptitle(bank["title"], fontsize=FONT_SIZE, fontweight="bold")
    panels = block.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for index, name in enumerate(bank["names"]):
        axes = panels.flat[index]
        shading = axes.pcolormesh(
            bank["x1"], bank["x2"], bank["Z"][..., index], cmap=SHADES, vmin=0.0, vmax=1.0,
            shading="nearest", rasterized=True,
        )  # fmt: skip
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


def _scatter(axes: Axes, data: Mapping[str, npt.NDArray[Any]], size: float, shown: int) -> None:
    """Source rows as filled dots, target rows as hollow triangles, colored by label.

    Only the first ``shown`` of each: more would cover each other. Rows come in random order.
    """
    X_source, y_source = data["X_source"][:shown], data["y_source"][:shown]
    X_test, y_test = data["X_test"][:shown], data["y_test"][:shown]
    for label, color in enumerate(LABEL_COLORS):
        dots: dict[str, Any] = {"s": size, "c": color, "marker": "o", "linewidths": 0}
        axes.scatter(*X_source[y_source == label].T, alpha=0.8, **dots)
        hollow: dict[str, Any] = {"s": size, "facecolors": "none", "edgecolors": color}
        axes.scatter(*X_test[y_test == label].T, marker="^", linewidths=0.8, **hollow)


def _add_legend(figure: Figure) -> None:
    dots = [
        Line2D([], [], linestyle="", marker="o", color=color, label=f"source, label {label}")
        for label, color in enumerate(LABEL_COLORS)
    ]
    hollow: dict[str, Any] = {"linestyle": "", "marker": "^", "markerfacecolor": "none"}
    triangles = [
        Line2D([], [], color=color, label=f"target, true label {label}", **hollow)
        for label, color in enumerate(LABEL_COLORS)
    ]
    figure.legend(
        handles=[*dots, *triangles], loc="outside lower center", ncols=4, frameon=False,
        fontsize=FONT_SIZE - 1,
    )  # fmt: skip
