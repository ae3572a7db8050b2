"""The figure of the results page: gains over the plain model with their intervals."""

from matplotlib.figure import Figure

from covshift_bench.page import family_of
from covshift_bench.summary import PLAIN, summarize

OWN = ("automatic choice", "equal vote")
N_OTHERS = 8  # of the other methods: the best by mean


def draw_gains(scored, path):
    """Write a figure of the best methods, and of the automatic choice, for each metric.

    Parameters
    ----------
    scored : DataFrame
        Of `summary.score_results`.
    path : path
        An SVG or PNG file.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, metric in zip(figure.subplots(1, 2), PLAIN, strict=True):
        rows = chosen_rows(summarize(scored, metric), metric)[::-1]
        for height, row in enumerate(rows):
            color = "#0b5cad" if family_of(row["method"]) in OWN else "#777f88"
            axes.plot([row["low"], row["high"]], [height, height], color=color, linewidth=2)
            axes.plot(row["gain"], height, "o", color=color)
        axes.axvline(0, color="#1d2329", linewidth=1)
        axes.set_yticks(range(len(rows)), [row["method"] for row in rows], fontsize=8)
        axes.set_xlabel("gain over the plain model, 95 % interval")
        axes.set_title(metric)
    figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)


def chosen_rows(summary, metric):
    """Return the rows to show, the best first: of our own those that decide for this metric."""
    balanced = metric == "balanced accuracy"
    rows, n_others = [], 0
    for _, row in summary.sort_values("gain", ascending=False).iterrows():
        name = row["method"]
        if family_of(name) in OWN:
            if name.endswith(", accuracy") != balanced:
                rows.append(row)
        elif name not in PLAIN.values() and n_others < N_OTHERS:
            rows.append(row)
            n_others += 1
    return rows
