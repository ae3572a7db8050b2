"""Coverage and width of 90 % prediction intervals of the automatic regressor, on real tasks.

    python benchmarks/prediction_intervals.py DATA --out runs/intervals.jsonl [--jobs 2]

For each task of `regression.py`, an `AutoAdaptedRegressor` is fitted; it and its plain model
predict intervals of the test rows, for which the target rows speak. Beside them stand unweighted
intervals, and those of a model whose residuals are calibrated on the test labels (ORACLE), in the
same run. Lines are added as they are computed; a second run resumes.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from covshift_bench.method import stacked
from joblib import Parallel, delayed
from regression import draw_numbers, number_tasks
from threadpoolctl import threadpool_limits

from covshift import AutoAdaptedRegressor
from covshift.predictors.prediction_sets import conformal_thresholds
from covshift.warning_filters import ignored_warnings

ALPHA = 0.1


def judge(model, drawn):
    """Return what is promised, and coverage and median width of each kind of intervals."""
    found = model.predict_interval(drawn.X_test, ALPHA, X_target=drawn.X_target)
    held, predicted = model.held_out_, model.predict(drawn.X_test)
    residuals = np.abs(held.y - held.scores)
    unweighted = conformal_thresholds(residuals, np.ones(len(residuals)), np.ones(1), ALPHA)[0]
    errors = np.abs(drawn.y_test - predicted)
    oracle = np.sort(errors)[int(np.ceil((1 - ALPHA) * len(errors))) - 1]
    inside = (found.low <= drawn.y_test) & (drawn.y_test <= found.high)
    return {
        "promised": found.promised,
        "method": found.method,
        "reason": found.reason,
        "covered": float(inside.mean()),
        "width": float(np.median(found.high - found.low)),
        "infinite": float(np.isinf(found.high).mean()),
        "unweighted": float((errors <= unweighted).mean()),
        "unweighted width": float(2 * unweighted),
        "oracle width": float(2 * oracle),
    }


def judge_task(task, data):
    """Return the records of a task: of the plain model and of the recommended one."""
    drawn = draw_numbers(task, data)
    if drawn is None:
        return []
    with threadpool_limits(1), ignored_warnings(Warning):
        model = AutoAdaptedRegressor(random_state=0)
        X, y, sample_domain = stacked(drawn)
        model.fit(X, y, sample_domain=sample_domain)
        facts = {"task": task.name, "cluster": task.cluster, "mark": task.mark}
        return [
            {**facts, "model": name, **judge(one, drawn)}
            for name, one in (("plain", model.plain_), ("recommended", model))
        ]


def table(frame):
    """Return promises, coverage and width as lines of a table."""
    lines = [
        "| | tasks | promised | coverage there | by cluster | width over oracle | unweighted there"
        " | unweighted, width over oracle | unweighted elsewhere |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    frame = frame.assign(
        ratio=frame["width"] / frame["oracle width"],
        plain=frame["unweighted width"] / frame["oracle width"],
    )
    for (model, mark), part in frame.groupby(["model", "mark"]):
        there, rest = part[part["promised"]], part[~part["promised"]]
        by_cluster = there.groupby("cluster")["covered"].mean().mean()
        lines.append(
            f"| {model}, {mark} | {len(part)} | {part['promised'].mean():.0%} | "
            f"{there['covered'].mean():.1%} | {by_cluster:.1%} | {there['ratio'].median():.2f} | "
            f"{there['unweighted'].mean():.1%} | {there['plain'].median():.2f} | "
            f"{rest['unweighted'].mean():.1%} |"
        )
    return "\n".join(lines)


def main():
    """Judge intervals of all tasks that are not in the file yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    if options.out.exists():
        lines = [json.loads(one) for one in options.out.read_text("utf-8").splitlines()]
    done = {one["task"] for one in lines}
    jobs = [
        delayed(judge_task)(task, options.data)
        for task in number_tasks(options.data)
        if task.name not in done
    ]
    with options.out.open("a", encoding="utf-8") as file:
        for records in Parallel(options.jobs, return_as="generator_unordered")(jobs):
            lines += records
            file.writelines(json.dumps(one) + "\n" for one in records)
            file.flush()
    frame = pd.DataFrame(lines)
    print(f"{frame['task'].nunique()} tasks in {frame['cluster'].nunique()} clusters")
    print(table(frame))
    print(frame[~frame["promised"]]["reason"].str.replace(r"[\d.]+", "N", regex=True)
          .value_counts().to_string())  # fmt: skip


if __name__ == "__main__":
    main()
