"""Draw the figures of the results pages from the tables that lie beside them.

    python docs/result_figures.py                # all of them
    python docs/result_figures.py bearings       # one of them

A figure is the SVG file of the same name as its page. `FIGURES` has all of them. The tables are
written by the commands that the pages name.
"""

import argparse
import csv
import re
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parent / "results"
OURS, OTHERS, SECOND, THIRD = "#0b5cad", "#777f88", "#b3541e", "#4f7a28"
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
# Names of files do not say who drew the figure or when, so that drawing it again changes nothing.
PLAIN_SVG = {"Date": None, "Creator": None}


class Point(NamedTuple):
    """A value with an interval, if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


def read_table(name):
    """Return the rows of a table beside the pages, by the names of its columns."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_point(text, interval=""):
    """Return the value that a cell begins with, and its interval.

    ``interval``: the cell of the interval, where it has one of its own.

    Examples
    --------
    >>> read_point("+.046 (.022 to .075)")
    Point(value=0.046, low=0.022, high=0.075)
    >>> read_point("88.9 %"), read_point("0.5 ± 0.1")
    (Point(value=88.9, low=None, high=None), Point(value=0.5, low=0.4, high=0.6))
    """
    value = float(re.match(NUMBER, text)[0])
    if error := re.search(f"± ({NUMBER})", text):
        return Point(value, value - float(error[1]), value + float(error[1]))
    found = re.search(f"({NUMBER}) to ({NUMBER})", f"{text} {interval}")
    return Point(value, *map(float, found.groups())) if found else Point(value)


def draw_rows(axes, names, series, *, ours=(), zero=False):
    """Draw a dot with its interval for each name, from top to bottom.

    Parameters
    ----------
    axes : Axes
    names : sequence of str
    series : dict
        Points for each name, by the name of the series, three at most. Where there are several,
        they differ in color and shape.
    ours : sequence of str
        Names to highlight where there is one series.
    zero : bool
        Whether a line marks zero.
    """
    places = range(len(names))[::-1]
    styles = [(OURS, "o"), (SECOND, "^"), (THIRD, "s")]
    for number, ((label, points), (color, marker)) in enumerate(
        zip(series.items(), styles, strict=False)
    ):
        for place, name, point in zip(places, names, points, strict=True):
            if point is None:
                continue
            shown = color if len(series) > 1 or name in ours else OTHERS
            height = place + 0.12 * (len(series) - 1) - 0.24 * number
            if point.low is not None:
                axes.plot([point.low, point.high], [height, height], color=shown, linewidth=2)
            axes.plot(point.value, height, marker, color=shown)
        if len(series) > 1:
            axes.plot([], [], marker, color=color, label=label)
    if zero:
        axes.axvline(0, color="#1d2329", linewidth=1)
    axes.set_yticks(list(places), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.grid(axis="x", color="#d5d9dd", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(series) > 1:
        axes.legend(loc="best", frameon=True)


def draw_assessment():
    """Errors of the expected accuracy by the way it is estimated."""
    rows = read_table("assessment-accuracy-errors")
    names = ["assessment", "CBPE", "DoC", "ATC", "left-out domains", "source CV"]
    words = {"source CV": "cross-validation", "assessment": "covshift's assessment"}
    by_name = {row["method"]: row for row in rows}
    series = {
        label: [read_point(by_name[name][f"plain model on {part}"]) for name in names]
        for label, part in (("tasks with a shift", "shift"), ("controls", "controls"))
    }
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    draw_rows(axes, [words.get(name, name) for name in names], series)
    axes.set_xlim(0, None)
    axes.set_xlabel("mean absolute error of the expected accuracy, plain model")
    return figure


def draw_gains(tables, names, pick):
    """Gains over the plain model on tasks with a shift and on controls, one above the other."""
    figure = Figure(figsize=(6.5, 1.2 + 0.52 * len(names)), layout="constrained")
    titles = ("tasks with a shift", "controls")
    for axes, title, rows in zip(figure.subplots(2, 1, sharex=True), titles, tables, strict=True):
        points = [pick(rows[name], title) for name in names]
        shown = [label for label in names.values()]
        draw_rows(axes, shown, {"gain": points}, ours=shown[:1], zero=True)
        axes.set_title(title, fontsize=10)
    axes.set_xlabel("gain in accuracy over the plain model, 95 % interval")
    return figure


def draw_real_tasks():
    """Gains of the vote, of single candidates and of SKADA's pipelines."""
    names = {
        'vote, objective="accuracy"': "automatic choice (vote)",
        "equal vote, accuracy": "equal vote",
        "ranks + joint": "ranks + joint",
        "none + forest": "none + forest",
        "SKADA LinearOTMapping + logistic": "SKADA, linear OT",
        "SKADA CORAL + logistic": "SKADA, CORAL",
        "SKADA KMMReweight + logistic": "SKADA, KMM",
        "sf + linear-svm": "sf + linear-svm",
    }
    tables = [
        {row["method"]: row for row in read_table(f"real-tasks-accuracy-{part}")}
        for part in ("shift", "controls")
    ]
    return draw_gains(
        tables, names, lambda row, _: read_point(row["gain over plain"], row["95 % interval"])
    )


def draw_selection():
    """Gain over the plain model by the way the candidates are weighted."""
    names = {
        "7 members, temperature 0.01, plain 0.3": "covshift's vote",
        "7 members, temperature 0.01, plain 0": "without the plain model",
        "equal": "equal vote",
        "stacking": "stacking",
        "IWA": "IWA",
    }
    rows = {row["weights"]: row for row in read_table("selection-weights-accuracy")}
    parts = {"tasks with a shift": "design, shift", "controls": "design, controls"}
    figure = draw_gains([rows, rows], names, lambda row, title: read_point(row[parts[title]]))
    figure.axes[-1].set_xlabel("gain in accuracy over the plain model ± standard error")
    return figure


def draw_bearings():
    """Balanced accuracy of the adapters, for each kind of shift."""
    rows = [row for row in read_table("bearings-systems") if row["measured"] == "reproduced"]
    automatic = {row["shift across"]: row for row in read_table("bearings-automatic")}
    names = ["none", "standardize", "ranks", "SF", "segments", "PSF", "coral"]
    figure = Figure(figsize=(6.5, 6.4), layout="constrained")
    for axes, row in zip(figure.subplots(3, 1, sharex=True), rows, strict=True):
        part = row["shift across"]
        points = [read_point(automatic[part]["automatic choice"])._replace(low=None)]
        points += [read_point(row[name]) for name in names]
        shown = ["automatic choice", *names]
        draw_rows(axes, shown, {"score": points}, ours=["automatic choice"])
        axes.axvline(read_point(row["none"]).value, color="#1d2329", linewidth=1, linestyle=":")
        axes.set_title(f"shift across {part}", fontsize=10)
    axes.set_xlim(0, 1.03)
    axes.set_xlabel("balanced accuracy on target windows; dotted: without adaptation")
    return figure


def draw_prediction_sets():
    """Coverage of sets that are given with a promise."""
    rows = {row["group"]: row for row in read_table("prediction-sets-groups")}
    groups = [
        f"{tasks}: {model}, {kind}"
        for tasks in ("design", "fresh")
        for model in ("plain", "vote")
        for kind in ("shift", "control")
    ]
    words = {"plain": "plain model", "shift": "shift", "control": "controls"}
    shown = [re.sub(r"\w+", lambda one: words.get(one[0], one[0]), name) for name in groups]
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    series = {
        "clusters weigh the same": [read_point(rows[name]["by cluster"]) for name in groups],
        "tasks weigh the same": [read_point(rows[name]["coverage there"]) for name in groups],
    }
    draw_rows(axes, shown, series)
    axes.axvline(90, color="#1d2329", linewidth=1)
    axes.set_xlabel("coverage of promised 90 % sets, in percent")
    return figure


def draw_monitoring():
    """Changes that give an alarm or an alert within two batches."""
    rows = read_table("monitoring-detection")[:-1]
    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = figure.subplots()
    columns = {
        "alarm (exit code 3)": "alarm within two batches",
        "alert (exit code 4)": "alert within two batches",
    }
    series = {label: [read_point(row[column]) for row in rows] for label, column in columns.items()}
    draw_rows(axes, [row["change that the rows show"] for row in rows], series)
    axes.set_xlabel(f"runs with an alarm or an alert, of {rows[0]['runs']}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def draw_regression():
    """Difference in R² to the plain model."""
    rows = [row for row in read_table("regression-peers") if "recommended" not in row["model"]]
    names = [row["model"].replace("AutoAdaptedRegressor", "automatic choice") for row in rows]
    names = [
        name.replace("kernel mean matching", "KMM").replace("linear optimal transport", "linear OT")
        for name in names
    ]
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    points = [read_point(row["at least -1"]) for row in rows]
    draw_rows(axes, names, {"difference": points}, ours=names[:1], zero=True)
    axes.set_xlabel("mean difference in R² to the plain model, each at least -1")
    return figure


def draw_engine():
    """Times of an evaluation in units of its two matrix products, where they are one number."""
    rows = [row for row in read_table("engine-compiled") if "times the floor" in row["case"]]
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    series = {label: [read_point(row[label]) for row in rows] for label in ("NumPy", "compiled")}
    names = []
    for row in rows:
        case, system = row["case"].split(": ")
        parts = re.sub(r"L 110, m 72, n 7,000, |times the floor( of two)?", "", case).split(", ")
        names.append(", ".join([system, *filter(None, parts)]))
    draw_rows(axes, names, series)
    axes.axvline(1, color="#1d2329", linewidth=1, linestyle=":")
    axes.set_xlim(0, None)
    axes.set_xlabel("time of an evaluation over that of its matrix products")
    return figure


def draw_larger_than_memory():
    """Seconds of an evaluation of rows in passes, measured and by the cost model."""
    rows = read_table("larger-than-memory-model")
    kinds = ("sine", "soft absolute value")
    series = {
        label: [read_point(row[f"{kind}, {column}"]) for kind in kinds for row in rows]
        for label, column in (("measured", "seconds"), ("cost model", "model"))
    }
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    draw_rows(axes, [f"{kind}: {row['n, m, L']}" for kind in kinds for row in rows], series)
    axes.set_xlim(0, None)
    axes.legend(loc="lower right")
    axes.set_xlabel("seconds of an evaluation, by n, m and L")
    return figure


def draw_paper_autoencoder():
    """Accuracies of the auto-encoder, by the reading "named code"."""
    rows = read_table("paper-autoencoder")
    rows = [row for row in rows if row["reading"] == "named code"]
    columns = {"ours": "ours", "rebuild": "rebuilt", "paper": "printed"}
    series = {label: [read_point(row[name]) for row in rows] for label, name in columns.items()}
    figure = Figure(figsize=(6.5, 2.8), layout="constrained")
    axes = figure.subplots()
    draw_rows(axes, [row["data"] for row in rows], series)
    axes.set_xlabel("accuracy on test rows ± standard error")
    return figure


def draw_paper_comparison_systems():
    """Accuracies of LSPC without and with weights, by the published reading."""
    rows = read_table("paper-comparison-systems")
    rows = [row for row in rows if row["reading"] == "IW+LSPC, published"]
    series = {
        label: [
            read_point(row[f"{label}, {column}"])
            for row in rows
            for column in ("without adaptation" if label == "ours" else "without", "with")
        ]
        for label in ("ours", "rebuilt")
    }
    names = [f"{row['data']}, {word}" for row in rows for word in ("LSPC", "IW+LSPC")]
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    draw_rows(axes, names, series)
    axes.set_xlabel("accuracy on test rows ± standard error")
    return figure


def draw_paper_mmd():
    """Changes of MMD by both filters on the four data sets, beside the paper's."""
    rows = read_table("paper-mmd")
    series = {
        label: [read_point(row[column]) for row in rows]
        for label, column in {"ours": "ours", "rebuild": "rebuilt", "paper": "printed"}.items()
    }
    figure = Figure(figsize=(6.5, 5.2), layout="constrained")
    axes = figure.subplots()
    draw_rows(axes, [f"{row['data']}: {row['reading']}" for row in rows], series)
    axes.set_xlabel("change of MMD² in percent ± standard error")
    return figure


def draw_speech(name, corpora):
    """UAR of every system with settings that read no target label."""
    figure = Figure(figsize=(6.5, 0.6 + 2.4 * len(corpora)), layout="constrained")
    panels = figure.subplots(len(corpora), 1, sharex=True, squeeze=False)[:, 0]
    for axes, corpus in zip(panels, corpora, strict=True):
        rows = read_table(f"{name}-uar-{corpus}")
        columns = {"settings by source folds": "source folds", "printed settings": "printed"}
        series = {
            label: [read_point(row[column]) for row in rows] for label, column in columns.items()
        }
        draw_rows(axes, [row["system"] for row in rows], series)
        axes.axvline(0.5, color="#1d2329", linewidth=1, linestyle=":")
        axes.set_title(f"tested on {corpus.upper()}", fontsize=10)
    axes.set_xlabel("UAR ± standard error; dotted: chance")
    return figure


FIGURES = {
    "assessment": draw_assessment,
    "bearings": draw_bearings,
    "engine": draw_engine,
    "larger-than-memory": draw_larger_than_memory,
    "monitoring": draw_monitoring,
    "paper-autoencoder": draw_paper_autoencoder,
    "paper-comparison-systems": draw_paper_comparison_systems,
    "paper-mmd": draw_paper_mmd,
    "prediction-sets": draw_prediction_sets,
    "real-tasks": draw_real_tasks,
    "regression": draw_regression,
    "selection": draw_selection,
    "speech-speakers": lambda: draw_speech("speech-speakers", ["emodb"]),
    "speech-study": lambda: draw_speech("speech-study", ["emodb", "ravdess"]),
}


def main(arguments=None):
    """Draw the figures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FIGURES))
    given = parser.parse_args(arguments)
    for name in given.names or FIGURES:
        if name not in FIGURES:
            parser.error(f"unknown figure {name}; choose from: {', '.join(FIGURES)}")
        path = FOLDER / f"{name}.svg"
        settings = {"svg.hashsalt": name, "svg.fonttype": "path", "font.size": 9}
        with mpl.rc_context(settings):
            FIGURES[name]().savefig(path, metadata=PLAIN_SVG)
        print(path.relative_to(FOLDER.parent.parent))


if __name__ == "__main__":
    main()
