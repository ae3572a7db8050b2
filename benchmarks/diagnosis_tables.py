"""Sum up what diagnoses said and what was true: the tables of ``docs/results/diagnosis.md``.

    python benchmarks/run.py DATA --out runs/results.jsonl --made-up 16 \
        --methods "diagnosis*" "expected accuracy*"
    python benchmarks/diagnosis_tables.py runs/results.jsonl --out runs/diagnosis

A hypothesis is *right* on a task if its balanced accuracy on the test rows exceeds that of all
others by .1. Advice *harms* if it loses more than .01.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from diagnosis_methods import ASKED, DIAGNOSIS, EXPECTED, RANDOM
from families import PAPER, SETS
from results import OK, decode_codes, read_results
from summary import score, tasks_of
from tasks import MADE_UP, SIZES

from covshift.diagnosis.expectation import Expectation, choose_expectation
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.report.document import make_cell, make_column, make_section, make_table
from covshift.report.markdown import table_markdown

MARGIN = 0.1  # by which one hypothesis is right
HARM = -0.01
ROWS = {"standard": "few rows", "large": "many rows"}
RULES_MADE_ON = ("thresholds set on", "first rules made on", "second rules made on")
# Families, and the size of their tasks; None: both.
GROUPS = {
    f"{name}, {ROWS[size]}": ([one for key in keys for one in SETS[key]], size)
    for name, keys in {
        "judged once": ("judged once",),
        "judged before the last rule": ("judged before the last rule",),
        "rules were made on": RULES_MADE_ON,
    }.items()
    for size in ("large", "standard")
} | {
    "cannot be determined": ([*SETS["beyond a gap"], *PAPER], None),
    "one source domain, near or far": (SETS["one source domain"], None),
}
COLUMNS = {
    "tasks": "tasks",
    "undecidable": "said undecidable",
    "survives": "right one survives",
    "leads": "leads",
    "adapts": "and is advised",
    "harmful": "advice harms",
    "nothing": "silent where nothing helps",
    "given": "accuracy stated",
    "covers": "covers",
    "width": "width",
}


def read_said(paths):
    """Return a dictionary for each task and size: what was said, and the truth."""
    lines = [one for size in SIZES for one in read_results(paths, size) if one["status"] == OK]
    tasks = {task.name: task for task in tasks_of(lines)}
    found = {}
    for line in lines:
        key = line["task"], line["size"]
        found.setdefault(key, {})[line["method"]] = line
    return [
        _said(tasks[name], size, by_method)
        for (name, size), by_method in found.items()
        if DIAGNOSIS in by_method
    ]


def _said(task, size, by_method):
    line = by_method[DIAGNOSIS]
    truth = decode_codes(line["truth"])
    made_up = task.collection == MADE_UP
    return line["extras"] | {
        "task": task.name.partition(": ")[2],
        "family": task.cluster if made_up else task.collection,
        "made_up": made_up,
        "size": size,
        "scores": [
            np.nan if text is None else score(truth, decode_codes(text), "balanced accuracy")
            for text in line["extras"]["by_hypothesis"]
        ],
        "labels": {
            name: by_method[name]["extras"]
            for name in (ASKED, RANDOM)
            if name in by_method and by_method[name]["extras"]["n_labels"]
        },
    }


def true_gain(said):
    """Gain over no adaptation of what was advised, on the test rows."""
    return said["scores"][said["followed"]] - said["scores"][0]


def right_one(said):
    """The hypothesis that is best on the test rows by the margin; None: there is none.

    In families in which nothing is shared none is right, whichever is ahead by chance.
    """
    if said["family"].startswith("nothing"):
        return None
    scores = np.nan_to_num(said["scores"])
    first, second = np.argsort(-scores)[:2]
    return int(first) if scores[first] - scores[second] >= MARGIN else None


def stated(said):
    """The estimate of accuracy that is stated first; None: none was."""
    return choose_expectation([Expectation(**one) for one in said["expected"]])


def covers(said):
    """Whether the stated interval holds the balanced accuracy on the test rows."""
    low, high = stated(said).balanced_accuracy_interval
    return low <= said["scores"][said["followed"]] <= high


def share(values):
    """A cell with a count and its share."""
    values = list(values)
    if not values:
        return None
    mean = float(np.mean(values))
    return make_cell(f"{sum(values)} of {len(values)} ({mean:.0%})", value=mean)


def number(value, form=".2f"):
    """A cell with a number."""
    return make_cell(format(value, form), value=float(value))


def sum_up(part):
    """Return a row of the main table."""
    clear = [one for one in part if right_one(one) is not None]
    expected = [one for one in part if stated(one) is not None]
    widths = [np.ptp(stated(one).balanced_accuracy_interval) for one in expected]
    silent = ("no adaptation", "undecidable", "not moved")
    nothing = [one for one in part if one["family"].startswith("nothing")]
    return {
        "tasks": number(len(part), "d"),
        "undecidable": share(one["kind"] == "undecidable" for one in part),
        "survives": share(right_one(one) in one["surviving"] for one in clear),
        "leads": share(right_one(one) == one["leading"] for one in clear),
        "adapts": share(one["kind"] == "adapt" for one in clear),
        "harmful": share(true_gain(one) < HARM for one in part if one["kind"] == "adapt"),
        "nothing": share(one["kind"] in silent for one in nothing),
        "given": share(stated(one) is not None for one in part),
        "covers": share(covers(one) for one in expected),
        "width": number(np.mean(widths)) if widths else None,
    }


def table(table_id, caption, rows, **columns):
    """A table whose first column is text, and the others numbers."""
    first, *others = columns.items()
    made = [make_column(*first), *(make_column(*one, numeric=True) for one in others)]
    return make_table(table_id, caption, made, rows)


def summary_table(table_id, caption, parts):
    """Return the main table, a row for each part of the tasks."""
    rows = [{"part": name} | sum_up(part) for name, part in parts.items()]
    return table(table_id, caption, rows, part="tasks of", **COLUMNS)


def label_table(groups):
    """Return what labels decide, of rows that were asked for and of random rows."""
    rows = []
    for name, part in groups.items():
        clear = [one for one in part if right_one(one) is not None and one["labels"]]
        if clear:
            row = {"part": name}
            for which in (ASKED, RANDOM):
                known = [one for one in clear if which in one["labels"]]
                row[which] = share(
                    one["labels"][which]["leading"] == right_one(one) for one in known
                )
            rows.append(row)
    columns = {ASKED: "right one leads: 20 rows it asked for", RANDOM: "20 random rows"}
    first = "tasks in which one is right by .1"
    return table("labels", "With 20 labels of target rows", rows, part=first, **columns)


def truth_table(made_up):
    """Return the mean balanced accuracy of every hypothesis, family by family."""
    rows = []
    for family in dict.fromkeys(one["family"] for one in made_up):
        scores = [one["scores"] for one in made_up if one["family"] == family]
        means = np.nanmean(np.array(scores), axis=0)
        rows.append({"family": family} | {str(h): number(m) for h, m in enumerate(means)})
    names = {str(h): one.name for h, one in enumerate(all_hypotheses())}
    caption = "Balanced accuracy on test rows, by labels"
    return table("truth", caption, rows, family="family", **names)


def collection_table(name, part):
    """Return every task of a real collection: what was said, what was true."""
    rows, hypotheses = [], all_hypotheses()
    for one in part:
        expected, best = stated(one), int(np.nanargmax(one["scores"]))
        interval = None
        if expected is not None:
            low, high = expected.balanced_accuracy_interval
            interval = f"{expected.balanced_accuracy:.2f} ({low:.2f} to {high:.2f})"
        gain = one["scores"][best] - one["scores"][0]
        rows.append(
            {
                "task": one["task"],
                "said": one["kind"],
                "leading": "" if one["leading"] is None else hypotheses[one["leading"]].name,
                "gain": number(true_gain(one), "+.2f") if one["followed"] else None,
                "best": f"{hypotheses[best].name} ({gain:+.2f})",
                "expected": interval,
                "true": number(one["scores"][one["followed"]]),
            }
        )
    columns = [
        make_column("task", "task"),
        make_column("said", "verdict"),
        make_column("leading", "leads"),
        make_column("gain", "true gain of the advice", numeric=True),
        make_column("best", "truly best (gain)"),
        make_column("expected", "accuracy stated"),
        make_column("true", "true", numeric=True),
    ]
    return make_table(f"real-{name}", name, columns, rows)


def expectation_table(paths):
    """Return how often expected accuracies are stated and cover, model by model.

    An interval of 90 % covers if it holds the accuracy on the test rows.
    """
    rows = []
    lines = [one for size in SIZES for one in read_results(paths, size) if one["status"] == OK]
    for name in EXPECTED:
        cases = [line for line in lines if line["method"] == name]
        errors, widths, covered = [], [], []
        for line in cases:
            expected = choose_expectation([Expectation(**e) for e in line["extras"]["expected"]])
            if expected is not None:
                codes = (decode_codes(line[key]) for key in ("truth", "predicted"))
                true = score(*codes, "accuracy")
                low, high = expected.accuracy_interval
                errors.append(expected.accuracy - true)
                widths.append(high - low)
                covered.append(low <= true <= high)
        if cases:
            row = {"model": name, "tasks": number(len(cases), "d"), "covers": share(covered)}
            if errors:
                row |= {"width": number(np.mean(widths), ".3f")}
                row |= {"error": number(np.sqrt(np.mean(np.square(errors))), ".3f")}
            rows.append(row)
    columns = {"tasks": "tasks", "covers": "covers, of those stated", "width": "width"}
    columns |= {"error": "root mean square error"}
    caption = "Expected accuracy of logistic regression"
    return table("expected", caption, rows, model="model", **columns)


def all_tables(paths):
    """Return all tables of some files of results."""
    said = read_said(paths)
    made_up = sorted((one for one in said if one["made_up"]), key=lambda one: one["family"])
    groups = {
        name: [o for o in made_up if o["family"] in families and size in (None, o["size"])]
        for name, (families, size) in GROUPS.items()
    }
    groups = {name: part for name, part in groups.items() if part}
    families, collections = {}, {}
    for one in made_up:
        families.setdefault(f"{one['family']}, {ROWS[one['size']]}", []).append(one)
    for one in said:
        if not one["made_up"]:
            collections.setdefault(one["family"], []).append(one)
    collections = dict(sorted(collections.items()))
    real = [one for part in collections.values() for one in part]
    return [
        summary_table("groups", "Made-up tasks", groups),
        summary_table("families", "Made-up tasks by family", families),
        label_table(groups),
        truth_table(made_up),
        summary_table("real", "Real collections", collections | ({"all": real} if real else {})),
        *(collection_table(name, part) for name, part in collections.items()),
        expectation_table(paths),
    ]


def main():
    """Print the tables, and write them where --out says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", help="files that run.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json")
    options = parser.parse_args()
    tables = all_tables(options.results)
    print("\n\n".join(table_markdown(one) for one in tables))
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"sections": [make_section("diagnosis", "Diagnosis", tables=tables)]}
    (options.out / "report.json").write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
