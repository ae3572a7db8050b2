"""Sum up results of methods on tasks: the tables of every results page.

Tasks of a cluster are averaged first, then clusters. Intervals resample clusters. A method *harms*
on a task if it is more than .01 below the plain model. The harm is *sure* if the paired 95 %
interval excludes zero as well. Equal models differ by more than .01 on many small tasks by chance,
so the share of harm is that among tasks with at least 200 test rows. The *regret* is the distance
to the best of all methods on the task.

Gains and their intervals are those of `covshift.measures.labeled_scores.paired_gain`. Rows count
as independent: with several rows of one unit, the intervals are too short. A method that was run
with several seeds is compared with the plain model of the same seed, and averaged over seeds.

Where a method failed or ran out of time, a user is left with the plain model: its predictions are
used instead, and the failure is counted. Only tasks that every method has a result of are
compared. A prediction that comes with a method may be missing on some tasks (a candidate that needs
more features): it counts as failed there.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from covshift.measures import clustered_bootstrap_interval
from covshift.measures.labeled_scores import paired_gain
from covshift.report.document import make_cell, make_column, make_table
from covshift.report.files import table_markdown
from covshift_bench.results import FAILED, OK, decode_codes, decode_probabilities
from covshift_bench.tasks import LIST, MADE_UP, made_up_tasks, read_tasks

MARGIN = 0.01  # a loss above it is harm
MIN_TEST_ROWS = 200  # of the tasks that the share of harm is taken of
LEAST = 1e-4  # probabilities below it count as this in the log loss
# The plain model of each metric: it is chosen, and decides, for that metric.
PLAIN = {"accuracy": "plain best, accuracy", "balanced accuracy": "plain best, balanced"}
# The automatic choice that decides for each metric: its lead over every method is summed up, too.
LEADER = {"accuracy": "auto, accuracy", "balanced accuracy": "auto"}
# Combinations of candidates, and picks of one, cost what the method costs that returns them all.
SHARED_COSTS = {
    "auto": "auto",
    "equal vote": "auto",
    "plain best": "auto",
    "vote": "auto",
    "pick by SKADA": "pick by SKADA: circular",
    "pick by": "pick by source CV",
}
COSTS = ["seconds", "total_hours", "megabytes", "most_megabytes"]
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
    "regret": "regret",
    "log_loss": "log loss",
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


def log_loss(truth, P):
    """Return the mean negative logarithm of the probabilities of the true classes."""
    right = P[np.arange(len(truth)), truth] / P.sum(axis=1)
    return float(-np.log(np.maximum(right, LEAST)).mean())


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
        seeds = by_task.setdefault(line["task"], {}).setdefault(line["method"], {})
        seeds[line["seed"]] = line
    methods = list(dict.fromkeys(line["method"] for line in lines))
    # Predictions that come with a method have no costs of their own.
    run = {one["method"] for one in lines if one["status"] != OK or one["seconds"] is not None}
    known = {task.name: task for task in tasks}
    rows = []
    for name, found in by_task.items():
        usable = all(
            one in found and all(line["status"] == OK for line in found[one].values())
            for one in plain.values()
        )
        if usable and run <= set(found) and name in known:
            rows += _score_task(known[name], found, methods, plain)
    scored = pd.DataFrame(rows)
    if not scored.empty:
        best = scored.groupby(["task", "metric"])["score"].transform("max")
        scored["regret"] = best - scored["score"]
    return scored


def _score_task(task, found, methods, plain):
    truth = decode_codes(next(iter(next(iter(found.values())).values()))["truth"])
    missing = {"status": FAILED, "seconds": None, "megabytes": None}
    rows = []
    for metric, baseline in plain.items():
        first = next(iter(found[baseline].values()))
        for method in methods:
            lines = found.get(method, {0: missing})
            seeds = [
                _score_line(line, found[baseline].get(seed, first), truth, metric)
                for seed, line in lines.items()
            ]
            means = {key: float(np.mean([one[key] for one in seeds])) for key in seeds[0]}
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
                    "status": next((x["status"] for x in lines.values() if x["status"] != OK), OK),
                    "seeds": len(lines),
                    "failed": means["failed"] > 0,
                }
                | {key: value for key, value in means.items() if key != "failed"}
            )
    return rows


def _score_line(line, plain, truth, metric):
    """Scores of one prediction beside the plain model."""
    failed = line["status"] != OK
    shown = plain if failed else line
    predicted, of_plain = decode_codes(shown["predicted"]), decode_codes(plain["predicted"])
    paired = compare_paired(truth, predicted, of_plain, metric)
    P = shown.get("probabilities")
    return {
        "failed": failed,
        "score": score(truth, predicted, metric),
        "gain": paired.gain,
        "gain_low": paired.low,
        "gain_high": paired.high,
        "harm": paired.harm,
        "sure_harm": paired.sure_harm,
        "log_loss": np.nan if P is None else log_loss(truth, decode_probabilities(P, len(truth))),
        "seconds": np.nan if line["seconds"] is None else line["seconds"],
        "megabytes": np.nan if line["megabytes"] is None else line["megabytes"],
    }


def complete_lines(lines, plain=PLAIN):
    """Return the lines without methods that lack a result of a task of the plain model.

    Of a run that is not finished, `score_results` compares the tasks that every method has; this
    compares the methods that have every task.
    """
    wanted = {line["task"] for line in lines if line["method"] in plain.values()}
    found, owners, together = {}, {}, []
    for line in lines:
        together.append(line["method"])
        if line["status"] != OK or line["seconds"] is not None:  # it ends what it was made with
            found.setdefault(line["method"], set()).add(line["task"])
            owners |= dict.fromkeys(together, line["method"])
            together = []
    short = {method for method, tasks in found.items() if not wanted <= tasks}
    return [
        line for line in lines if line["task"] in wanted and owners.get(line["method"]) not in short
    ]


def tasks_of(lines, path=LIST):
    """Return the real tasks of a list, and the made-up ones that the lines may be of."""
    made_up = [line["task"] for line in lines if line["task"].startswith(MADE_UP)]
    seeds = [int(name.rpartition(" ")[2]) for name in made_up]
    return [*read_tasks(path), *made_up_tasks(max(seeds, default=-1) + 1)]


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
        ``score``, ``gain``, ``harm``, ``sure_harm``, ``regret`` and ``log_loss`` are means over
        clusters; ``lead`` is that of the automatic choice over the method, task by task, with its
        interval, NaN where the automatic choice was not run; ``worst`` is the largest loss on a
        task with at least 200 test rows; ``failed`` counts tasks; ``seconds`` and ``megabytes`` are
        medians, ``total_hours`` and ``most_megabytes`` the sum, of one seed, and the maximum.
        Single candidates of the automatic choice have no costs of their own.
    """
    rows, scored = [], scored[scored["metric"] == metric]
    leading = scored[scored["method"] == LEADER[metric]].set_index("task")["score"]
    for method, frame in scored.groupby("method", sort=False):
        frame = frame.assign(lead=frame["task"].map(leading) - frame["score"])
        large = frame[frame["n_test"] >= MIN_TEST_ROWS]
        low, high = _interval(frame, "gain")
        lead_low, lead_high = _interval(frame, "lead")
        rows.append(
            {
                "method": method,
                "tasks": len(frame),
                "clusters": frame["cluster"].nunique(),
                "score": cluster_mean(frame, "score"),
                "gain": cluster_mean(frame, "gain"),
                "low": low,
                "high": high,
                "lead": cluster_mean(frame, "lead"),
                "lead_low": lead_low,
                "lead_high": lead_high,
                "large_tasks": len(large),
                "harm": cluster_mean(large, "harm"),
                "sure_harm": cluster_mean(frame, "sure_harm"),
                "worst": max(0.0, -large["gain"].min()) if len(large) else np.nan,
                "failed": int(frame["failed"].sum()),
                "regret": cluster_mean(frame, "regret"),
                "log_loss": cluster_mean(frame, "log_loss"),
                "seconds": frame["seconds"].median(),
                "total_hours": frame["seconds"].sum(min_count=1) / 3600,
                "megabytes": frame["megabytes"].median(),
                "most_megabytes": frame["megabytes"].max(),
            }
        )
    summary = with_costs(pd.DataFrame(rows))
    return summary.sort_values("score", ascending=False, ignore_index=True, kind="stable")


def with_costs(summary):
    """Fill in the costs of predictions that come with those of another method."""
    costs = summary.set_index("method")[COSTS]
    filled = summary.copy()
    for number, row in filled[filled["seconds"].isna()].iterrows():
        owners = (own for start, own in SHARED_COSTS.items() if row["method"].startswith(start))
        owner = next(owners, None)
        if owner in costs.index:
            filled.loc[number, COSTS] = costs.loc[owner].to_numpy()
    return filled


def _interval(frame, column):
    """95 % interval of a column's mean, by resampling clusters."""
    if frame["cluster"].nunique() < 2 or frame[column].isna().any():
        return np.nan, np.nan
    values, clusters = frame[column].to_numpy(), frame["cluster"].to_numpy()
    return clustered_bootstrap_interval(values, clusters, random_state=0)


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


def task_table(scored):
    """Return the score of each method on each task: a row a task and metric, a column a method."""
    about = ["metric", "task", "cluster", "mark", "n_test"]
    wide = scored.pivot(index=about, columns="method", values="score")
    return wide[list(dict.fromkeys(scored["method"]))].reset_index()


def cost_table(lines):
    """Return what the calls of each method cost, on tasks that are not compared as well."""
    calls = pd.DataFrame([line for line in lines if line["seconds"] is not None])
    return (
        calls.groupby("method")
        .agg(
            calls=("seconds", "size"),
            mean_seconds=("seconds", "mean"),
            most_seconds=("seconds", "max"),
            most_megabytes=("megabytes", "max"),
        )
        .sort_values("mean_seconds", ascending=False)
        .reset_index()
    )


def run_text(scored):
    """Return how much was compared, and what it cost with all seeds, as one line."""
    first = scored[scored["metric"] == next(iter(PLAIN))]
    hours = (first["seconds"] * first["seeds"]).sum() / 3600
    return (
        f"{first['method'].nunique()} methods on {first['task'].nunique()} tasks in "
        f"{first['cluster'].nunique()} clusters: {hours:.2f} processor hours"
    )


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
        "score": shown(row["score"], ".3f"),
        "gain": shown(row["gain"], "+.3f"),
        "interval": _interval_cell(row["low"], row["high"]),
        "harm": shown(row["harm"], ".1%"),
        "sure_harm": shown(row["sure_harm"], ".1%"),
        "worst": shown(row["worst"], ".3f"),
        "failed": shown(row["failed"], "d"),
        "regret": shown(row["regret"], ".3f"),
        "log_loss": shown(row["log_loss"], ".3f"),
        "seconds": shown(row["seconds"], ".2f"),
        "megabytes": shown(row["megabytes"], ".0f"),
    }


def shown(value, form):
    """Return the cell of a number; None where there is none."""
    return None if np.isnan(value) else make_cell(format(value, form), value=float(value))


def _interval_cell(low, high):
    return None if np.isnan(low) else make_cell(f"{low:+.3f} to {high:+.3f}", value=float(low))
