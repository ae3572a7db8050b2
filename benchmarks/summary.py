"""Sum up results of methods on the design tasks: the tables of every results page.

    python benchmarks/summary.py results.jsonl [more.jsonl ...] [--size standard] [--out FOLDER]
        [--methods "auto*" "plain*"]

Tasks of a cluster are averaged first, then clusters. Intervals resample clusters. A method *harms*
on a task if it is more than .01 below the plain model. The harm is *sure* if the paired 95 %
interval excludes zero as well. Equal models differ by more than .01 on many small tasks by chance,
so the share of harm is that among tasks with at least 200 test rows.

Gains and their intervals are those of `covshift.measures.prediction_scores.paired_gain`. Rows count
as independent: with several rows of one unit, the intervals are too short.

Where a method failed or ran out of time, a user is left with the plain model: its predictions stand
in, and the failure is counted. Only tasks that every method has a result of are compared. A
prediction that comes with a method may be missing on some tasks (a candidate that needs more
features): it counts as failed there.
"""

import argparse
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from results import FAILED, OK, decode_codes, read_results
from tasks import MADE_UP, made_up_tasks, read_tasks

from covshift.measures import clustered_bootstrap_interval
from covshift.measures.prediction_scores import paired_gain
from covshift.report.document import make_cell, make_column, make_table
from covshift.report.files import table_markdown

MARGIN = 0.01  # a loss above it is harm
MIN_TEST_ROWS = 200  # of the tasks that the share of harm is taken of
# The plain model of each metric: it is chosen, and decides, for that metric.
PLAIN = {"accuracy": "plain best, accuracy", "balanced accuracy": "plain best, balanced"}
PARTS = {
    "all real tasks": ("shift", "control"),
    "tasks with a shift": ("shift",),
    "controls": ("control",),
    "made-up tasks": ("unknown",),
}
COLUMNS = {
    "method": "method",
    "score": "score",
    "gain": "gain over plain",
    "interval": "95 % interval",
    "harm": "harm",
    "sure_harm": "sure harm",
    "worst": "largest loss",
    "failed": "failed",
    "seconds": "seconds",
    "megabytes": "MB",
}


class Paired(NamedTuple):
    """A difference of two methods on the same rows, and its 95 % interval."""

    gain: float
    low: float
    high: float

    @property
    def harm(self):
        """Whether the loss exceeds the margin."""
        return self.gain < -MARGIN

    @property
    def sure_harm(self):
        """Whether it does and the 95 % interval excludes zero."""
        return self.harm and self.high < 0


def score(truth, predicted, metric):
    """Return the accuracy or balanced accuracy of class numbers."""
    right = truth == predicted
    if metric == "accuracy":
        return float(right.mean())
    return float(np.mean([right[truth == k].mean() for k in np.unique(truth)]))


def compare_paired(truth, predicted, plain, metric):
    """Return the gain of a method over the plain model on the same rows."""
    return Paired(*paired_gain(truth, predicted, plain, metric.replace(" ", "_")).values())


def score_results(lines, tasks, plain=PLAIN):
    """Return a frame with a row for each task, method and metric.

    Parameters
    ----------
    lines : list of dict
        Of `results.read_results`.
    tasks : list of Task
        All tasks; those without results are ignored.
    plain : dict
        Name of the plain method for each metric.

    Returns
    -------
    DataFrame
        Only tasks that all methods have a result of, and the plain ones a prediction.
    """
    by_task = {}
    for line in lines:
        by_task.setdefault(line["task"], {})[line["method"]] = line
    methods = list(dict.fromkeys(line["method"] for line in lines))
    # Predictions that come with a method have no costs of their own.
    run = {one["method"] for one in lines if one["status"] != OK or one["seconds"] is not None}
    known = {task.name: task for task in tasks}
    rows = []
    for name, found in by_task.items():
        usable = all(found.get(one, {}).get("status") == OK for one in plain.values())
        if usable and run <= set(found) and name in known:
            rows += _score_task(known[name], found, methods, plain)
    return pd.DataFrame(rows)


def _score_task(task, found, methods, plain):
    truth = decode_codes(next(iter(found.values()))["truth"])
    missing = {"status": FAILED, "seconds": None, "megabytes": None}
    rows = []
    for metric, baseline in plain.items():
        of_plain = decode_codes(found[baseline]["predicted"])
        for method in methods:
            line = found.get(method, missing)
            failed = line["status"] != OK
            predicted = of_plain if failed else decode_codes(line["predicted"])
            paired = compare_paired(truth, predicted, of_plain, metric)
            rows.append(
                {
                    "task": task.name,
                    "collection": task.collection,
                    "cluster": task.cluster,
                    "mark": task.mark,
                    "kind": task.kind,
                    "n_test": len(truth),
                    "method": method,
                    "metric": metric,
                    "status": line["status"],
                    "failed": failed,
                    "score": score(truth, predicted, metric),
                    "gain": paired.gain,
                    "gain_low": paired.low,
                    "gain_high": paired.high,
                    "harm": paired.harm,
                    "sure_harm": paired.sure_harm,
                    "seconds": np.nan if line["seconds"] is None else line["seconds"],
                    "megabytes": np.nan if line["megabytes"] is None else line["megabytes"],
                }
            )
    return rows


def tasks_of(lines):
    """Return all real tasks, and the made-up ones that the lines may be of."""
    made_up = [line["task"] for line in lines if line["task"].startswith(MADE_UP)]
    seeds = [int(name.rpartition(" ")[2]) for name in made_up]
    return [*read_tasks(), *made_up_tasks(max(seeds, default=-1) + 1)]


def cluster_mean(frame, column):
    """Return the mean over clusters of the means over their tasks; NaN without tasks."""
    if frame.empty:
        return np.nan
    return float(frame.groupby("cluster")[column].mean().mean())


def summarize(scored, metric):
    """Return a frame with a row for each method, best first.

    Parameters
    ----------
    scored : DataFrame
        Of `score_results`, or a part of it.
    metric : {"accuracy", "balanced accuracy"}
        What is summed up.

    Returns
    -------
    DataFrame
        ``score``, ``gain``, ``harm`` and ``sure_harm`` are means over clusters; ``worst`` is the
        largest loss on a task with at least 200 test rows; ``failed`` counts tasks; ``seconds`` and
        ``megabytes`` are medians, ``total_hours`` and ``most_megabytes`` the sum and the maximum.
    """
    rows = []
    for method, frame in scored[scored["metric"] == metric].groupby("method", sort=False):
        large = frame[frame["n_test"] >= MIN_TEST_ROWS]
        low, high = _interval(frame)
        rows.append(
            {
                "method": method,
                "tasks": len(frame),
                "clusters": frame["cluster"].nunique(),
                "score": cluster_mean(frame, "score"),
                "gain": cluster_mean(frame, "gain"),
                "low": low,
                "high": high,
                "large_tasks": len(large),
                "harm": cluster_mean(large, "harm"),
                "sure_harm": cluster_mean(frame, "sure_harm"),
                "worst": max(0.0, -large["gain"].min()) if len(large) else np.nan,
                "failed": int(frame["failed"].sum()),
                "seconds": frame["seconds"].median(),
                "total_hours": frame["seconds"].sum() / 3600,
                "megabytes": frame["megabytes"].median(),
                "most_megabytes": frame["megabytes"].max(),
            }
        )
    summary = pd.DataFrame(rows)
    return summary.sort_values("score", ascending=False, ignore_index=True, kind="stable")


def _interval(frame):
    """95 % interval of the mean gain, by resampling clusters."""
    if frame["cluster"].nunique() < 2:
        return np.nan, np.nan
    gains, clusters = frame["gain"].to_numpy(), frame["cluster"].to_numpy()
    return clustered_bootstrap_interval(gains, clusters, random_state=0)


def summarize_all(scored):
    """Return the summaries of every metric and part of the tasks in one frame."""
    summaries = []
    for metric in PLAIN:
        for part, marks in PARTS.items():
            chosen = scored[scored["mark"].isin(marks)]
            if not chosen.empty:
                summary = summarize(chosen, metric)
                summary.insert(0, "metric", metric)
                summary.insert(1, "part", part)
                summaries.append(summary)
    return pd.concat(summaries, ignore_index=True)


def summary_markdown(summaries):
    """Return the tables of `summarize_all` as Markdown."""
    tables = []
    for (metric, part), frame in summaries.groupby(["metric", "part"], sort=False):
        first = frame.iloc[0]
        caption = (
            f"{metric.capitalize()}, {part}: {first['tasks']} tasks in {first['clusters']} "
            f"clusters; harm on the {first['large_tasks']} with at least {MIN_TEST_ROWS} test rows"
        )
        columns = [
            make_column(key, label, numeric=key != "method") for key, label in COLUMNS.items()
        ]
        rows = [_cells(row) for _, row in frame.iterrows()]
        tables.append(table_markdown(make_table(f"{metric}, {part}", caption, columns, rows)))
    return "\n\n".join(tables) + "\n"


def _cells(row):
    return {
        "method": row["method"],
        "score": _shown(row["score"], ".3f"),
        "gain": _shown(row["gain"], "+.3f"),
        "interval": _interval_cell(row["low"], row["high"]),
        "harm": _shown(row["harm"], ".1%"),
        "sure_harm": _shown(row["sure_harm"], ".1%"),
        "worst": _shown(row["worst"], ".3f"),
        "failed": _shown(row["failed"], "d"),
        "seconds": _shown(row["seconds"], ".2f"),
        "megabytes": _shown(row["megabytes"], ".0f"),
    }


def _shown(value, form):
    return None if np.isnan(value) else make_cell(format(value, form), value=float(value))


def _interval_cell(low, high):
    return None if np.isnan(low) else make_cell(f"{low:+.3f} to {high:+.3f}", value=float(low))


def main():
    """Print the tables; write them, and the score of each task, where --out says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", help="files that run.py wrote")
    parser.add_argument("--size", default="standard")
    parser.add_argument("--methods", nargs="+", default=["*"], help="names or patterns to show")
    parser.add_argument("--out", type=Path, help="folder for summary.md, summary.csv, scores.csv")
    options = parser.parse_args()
    lines = read_results(options.results, options.size)
    scored = score_results(lines, tasks_of(lines))
    n_tasks = len({line["task"] for line in lines})
    if scored.empty:
        parser.error(f"none of {n_tasks} tasks has a result of every method and of {PLAIN}.")
    if scored["task"].nunique() < n_tasks:
        print(f"{scored['task'].nunique()} of {n_tasks} tasks have a result of every method.\n")
    shown = [any(fnmatchcase(name, one) for one in options.methods) for name in scored["method"]]
    summaries = summarize_all(scored[shown])
    text = summary_markdown(summaries)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "summary.md").write_text(text, encoding="utf-8")
        summaries.to_csv(options.out / "summary.csv", index=False, float_format="%.5g")
        scored.to_csv(options.out / "scores.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
