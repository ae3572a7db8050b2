"""What was said and what was true, summed up: the tables of ``docs/results/diagnosis.md``.

python benchmarks/diagnosis/said.py MADE_UP.jsonl REAL.jsonl --out FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np
from judged_tasks import ALONE, FOURTH, FRESH, FRESH_ALONE, LATER, SEEN, THIRD, UNDECIDABLE

from covshift.diagnosis.expectation import Expectation, choose_expectation
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.report.document import make_cell, make_column, make_section, make_table
from covshift.report.markdown import table_markdown

MARGIN = 0.1  # by which one hypothesis is right
HARM = -0.01


def _names(*sets):
    return [family.__name__ for families in sets for family in families]


# Families, and of which size their tasks are; None: there is but one.
GROUPS = {
    "judged once, many rows": (_names(FOURTH), "many"),
    "judged once, few rows": (_names(FOURTH), "few"),
    "judged before the last rule, many rows": (_names(THIRD), "many"),
    "judged before the last rule, few rows": (_names(THIRD), "few"),
    "rules were made on, many rows": (_names(SEEN, FRESH, LATER), "many"),
    "rules were made on, few rows": (_names(SEEN, FRESH, LATER), "few"),
    "nobody can know": ([*_names(FRESH_ALONE), *UNDECIDABLE], None),
    "one source domain, near or far": (_names(ALONE), None),
}


def in_group(line, group):
    """Whether a task is of the group."""
    families, size = group
    return line["family"] in families and size in (None, line.get("size", "few"))


def by_family(lines):
    """Lines of each family, and of each size where it has several."""
    parts = {}
    for line in lines:
        parts.setdefault(line["family"], {}).setdefault(line.get("size", "few"), []).append(line)
    return {
        family if len(sizes) == 1 else f"{family}, {size} rows": of_size
        for family, sizes in parts.items()
        for size, of_size in sizes.items()
    }


def true_gain(line):
    """Gain over no adaptation of what was advised, on the test rows."""
    return line["truth"][line["followed"]] - line["truth"][0]


def right_one(line):
    """The hypothesis that is best on the test rows by the margin; None: no such one.

    In families in which nothing is shared none is right, whoever is ahead by chance.
    """
    if line["family"].startswith("nothing"):
        return None
    truth = np.array(line["truth"], dtype=float)
    first, second = np.argsort(-np.nan_to_num(truth))[:2]
    return int(first) if truth[first] - truth[second] >= MARGIN else None


def stated_expectation(line):
    """The estimate of accuracy that is stated first; None: none was."""
    return choose_expectation([Expectation(**one) for one in line["expected"]])


def covers(line):
    """Whether the interval stated holds the balanced accuracy on the test rows."""
    low, high = stated_expectation(line).balanced_accuracy_interval
    return low <= line["truth"][line["followed"]] <= high


def share(values):
    """A cell: a count of so many, and the share."""
    values = list(values)
    if not values:
        return None
    mean = float(np.mean(values))
    return make_cell(f"{sum(values)} of {len(values)} ({mean:.0%})", value=mean)


def sum_up(lines):
    """One row of the main table."""
    clear = [line for line in lines if right_one(line) is not None]
    stated = [line for line in lines if line["kind"] == "adapt"]
    expected = [line for line in lines if stated_expectation(line) is not None]
    widths = [np.ptp(stated_expectation(line).balanced_accuracy_interval) for line in expected]
    silent = ("no adaptation", "undecidable", "not moved")
    nothing = [line for line in lines if line["family"].startswith("nothing")]
    return {
        "tasks": make_cell(str(len(lines)), value=len(lines)),
        "undecidable": share(line["kind"] == "undecidable" for line in lines),
        "survives": share(right_one(line) in line["surviving"] for line in clear),
        "leads": share(right_one(line) == line["leading"] for line in clear),
        "adapts": share(line["kind"] == "adapt" for line in clear),
        "harmful": share(true_gain(line) < HARM for line in stated),
        "nothing": share(line["kind"] in silent for line in nothing),
        "given": share(stated_expectation(line) is not None for line in lines),
        "covers": share(covers(line) for line in expected),
        "width": number(np.mean(widths)) if widths else None,
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


def summary_table(table_id, caption, parts):
    """The main table, a row for each part of the lines."""
    rows = [{"part": name} | sum_up(lines) for name, lines in parts.items()]
    columns = [make_column("part", "tasks of")] + [
        make_column(key, label, numeric=True) for key, label in COLUMNS.items()
    ]
    return make_table(table_id, caption, columns, rows)


def label_table(lines):
    """What twenty labels decide, asked for and drawn at random."""
    rows = []
    clear = [line for line in lines if right_one(line) is not None]
    for name, group in GROUPS.items():
        part = [one for one in clear if in_group(one, group)]
        if not part:
            continue
        row = {"part": name}
        for which in ("asked", "random"):
            known = [one for one in part if which in one["labels"]]
            row[which] = share(one["labels"][which]["leading"] == right_one(one) for one in known)
        rows.append(row)
    columns = [
        make_column("part", "tasks in which one is right by .1"),
        make_column("asked", "right one leads: 20 rows it asked for", numeric=True),
        make_column("random", "20 random rows", numeric=True),
    ]
    return make_table("labels", "With 20 labels of target rows", columns, rows)


def truth_table(lines):
    """Mean balanced accuracy of every hypothesis, family by family."""
    rows = []
    for family in dict.fromkeys(line["family"] for line in lines):
        truth = [line["truth"] for line in lines if line["family"] == family]
        means = np.nanmean(np.array(truth, dtype=float), axis=0)
        rows.append({"family": family} | {str(h): number(m) for h, m in enumerate(means)})
    columns = [make_column("family", "family")] + [
        make_column(str(h), one.name, numeric=True) for h, one in enumerate(all_hypotheses())
    ]
    return make_table("truth", "Balanced accuracy on test rows, by labels", columns, rows)


def collection_table(name, lines):
    """Every task of a real collection: what was said, what was true."""
    rows, hypotheses = [], all_hypotheses()
    for line in lines:
        stated, best = stated_expectation(line), int(np.nanargmax(_floats(line["truth"])))
        interval = None
        if stated is not None:
            low, high = stated.balanced_accuracy_interval
            interval = f"{stated.balanced_accuracy:.2f} ({low:.2f} to {high:.2f})"
        sources = ", ".join(line["sources"])
        if len(line["sources"]) > 4:
            sources = f"{len(line['sources'])} others"
        rows.append(
            {
                "task": f"{sources} → {line['target']}",
                "said": line["kind"],
                "leading": "" if line["leading"] is None else hypotheses[line["leading"]].name,
                "gain": number(true_gain(line), signed=True) if line["followed"] else None,
                "best": f"{hypotheses[best].name} ({line['truth'][best] - line['truth'][0]:+.2f})",
                "expected": interval,
                "true": number(line["truth"][line["followed"]]),
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


def number(value, *, signed=False):
    """A cell with two decimals."""
    return make_cell(f"{value:+.2f}" if signed else f"{value:.2f}", value=float(value))


def _floats(values):
    return np.array(values, dtype=float)


def read_lines(path):
    """Tasks of a file, in the order of their names."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(lines, key=lambda one: (str(one.get("target")), len(one.get("sources", []))))


def main():
    """Print the tables and write them to a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("made_up", type=Path)
    parser.add_argument("real", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    made_up, real = read_lines(options.made_up), read_lines(options.real)
    made_up = sorted(made_up, key=lambda one: (one["family"], one["seed"]))
    groups = {
        name: lines
        for name, group in GROUPS.items()
        if (lines := [one for one in made_up if in_group(one, group)])
    }
    families = by_family(made_up)
    collections = {
        name: [one for one in real if one["family"] == name]
        for name in sorted({one["family"] for one in real})
    }
    tables = [
        summary_table("groups", "Made-up tasks", groups),
        summary_table("families", "Made-up tasks by family", families),
        label_table(made_up),
        truth_table(made_up),
        summary_table("real", "Real collections", collections | {"all": real}),
        *(collection_table(name, lines) for name, lines in collections.items()),
    ]
    for table in tables:
        print(f"\n{table_markdown(table)}")
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"sections": [make_section("diagnosis", "Diagnosis", tables=tables)]}
    (options.out / "report.json").write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
