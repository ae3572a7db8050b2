"""The page of results quotes the tables beside it."""

import csv
import json
import re
from pathlib import Path

import pytest
from covshift_bench.command import LISTS
from covshift_bench.methods import all_methods
from covshift_bench.methods.adapt_package import CLASSES
from covshift_bench.methods.skada_pipelines import ADAPTERS
from covshift_bench.summary import PLAIN
from covshift_bench.tasks import read_tasks

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
MINUS = "\N{MINUS SIGN}"
NUMBER = rf"[{MINUS}+]?\.\d{{3}}"
# Rows of the page's tables: methods for accuracy and for balanced accuracy.
METHODS = {
    "automatic choice": ("auto, accuracy", "auto"),
    "its vote": ("vote, accuracy", "vote, balanced"),
    "equal vote of the candidates": ("equal vote, accuracy", "equal vote, balanced"),
    "equal vote": ("equal vote, accuracy", "equal vote, balanced"),
    "forest, unadapted": ("none + forest", "none + forest"),
    "plain logistic regression": ("plain logistic", "plain logistic"),
    "boosted trees, unadapted": ("plain boosted trees", "plain boosted trees"),
}
ALL, SHIFT, CONTROLS = "all real tasks", "tasks with a shift", "controls"


def read_summary(name):
    with (RESULTS / f"benchmark-{name}.csv").open(newline="", encoding="utf-8") as file:
        return {(row["metric"], row["part"], row["method"]): row for row in csv.DictReader(file)}


SUMMARIES = {name: read_summary(name) for name in ("held-out", "fresh")}
PAGE = (RESULTS / "benchmark.md").read_text(encoding="utf-8")
# The rest is on the ground of others, with tables of its own.
OWN = PAGE[: PAGE.index("## The cost of a whole run")]


def value(text):
    return float(text.replace(MINUS, "-"))


def is_shown(numbers, row):
    """Whether numbers on the page are a row's gain and interval, to three digits."""
    found = [row[key] for key in ("gain", "low", "high")]
    return all(
        known and abs(float(known) - number) < 0.00051
        for known, number in zip(found, numbers, strict=True)
    )


def table_of(heading):
    """Rows of the table whose head begins with a cell that ends so."""
    rows, inside = [], False
    for line in OWN.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if inside and not line.startswith("|"):
            return rows[1:]  # without the line below the head
        if inside:
            rows.append(cells)
        inside |= line.startswith("|") and cells[0].endswith(heading)
    return rows[1:]


@pytest.mark.parametrize(
    ("name", "heading"),
    [("held-out", "held-out tasks, 19 collections"), ("fresh", "fresh tasks, all 37 clusters")],
)
def test_tables_have_the_figures_of_the_summary(name, heading):
    rows = table_of(heading)
    assert len(rows) >= 6
    for label, *cells in rows:
        method, _, which = (
            label.partition(", ") if "tasks" in label or "controls" in label else (label, "", "")
        )
        part = SHIFT if "shift" in which else CONTROLS if "controls" in which else ALL
        width = len(cells) // 2
        for metric, chosen, own in zip(
            PLAIN, METHODS[method], (cells[:width], cells[width:]), strict=True
        ):
            row = SUMMARIES[name][metric, part, chosen]
            assert is_shown([value(x) for x in re.findall(NUMBER, own[0])], row), (label, metric)
            for key, cell in zip(("harm", "sure_harm"), own[1:], strict=False):
                share = float(cell.removesuffix(" %")) / 100
                assert share == pytest.approx(float(row[key]), abs=0.00051), (label, metric, key)


def test_every_gain_with_an_interval_is_in_a_table():
    found = re.findall(rf"({NUMBER})[^.\d|]{{1,60}}?({NUMBER}) to ({NUMBER})", OWN)
    assert len(found) > 30
    assessment = (RESULTS / "assessment.md").read_text(encoding="utf-8")
    known = [row for summary in SUMMARIES.values() for row in summary.values()]
    for numbers in found:
        same = any(is_shown([value(x) for x in numbers], row) for row in known)
        assert same or f"({numbers[1]} to {numbers[2]})" in assessment, numbers


def test_the_readme_quotes_the_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    after = text[text.index("held-out tasks](docs/results/benchmark.md)") :]
    numbers = re.search(rf"({NUMBER})\s+accuracy \(({NUMBER}) to ({NUMBER})\)", after).groups()
    row = SUMMARIES["held-out"]["accuracy", ALL, "auto, accuracy"]
    assert is_shown([value(x) for x in numbers], row)
    assert f"[{row['tasks']} held-out tasks]" in text


def test_the_leaderboard_has_the_held_out_figures():
    page = (ROOT / "docs" / "_static" / "leaderboard.html").read_text(encoding="utf-8")
    views = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["views"]
    shown = {
        (view["metric"], view["part"], one["method"]): one
        for view in views
        for one in view["methods"]
    }
    assert set(shown) == set(SUMMARIES["held-out"])
    for key, row in SUMMARIES["held-out"].items():
        for column in ("score", "gain", "low", "high", "harm", "sure_harm"):
            assert shown[key][column] == pytest.approx(float(row[column]), rel=1e-3, abs=1e-9), key


def test_counts_of_tasks_clusters_and_methods():
    for name, summary in SUMMARIES.items():
        row = summary["accuracy", ALL, "auto, accuracy"]
        n_methods = len({method for _, part, method in summary if part == ALL})
        for text in (f"{row['tasks']} ", f"{row['clusters']} "):
            assert text in OWN, (name, text)
        assert f"{n_methods} methods" in OWN, name


def is_random(method):
    """Whether a method is run with three seeds, where its package is not installed, too."""
    adapter = method.removeprefix("ADAPT ").removeprefix("SKADA ").partition(" + ")[0]
    if method.startswith("ADAPT "):
        return CLASSES[adapter][1]
    if method.startswith("SKADA "):
        return ADAPTERS.get(adapter, False)
    return method.startswith("pick by SKADA") or all_methods()[method].random


def test_the_cost_of_a_whole_run_follows_from_the_costs_of_calls():
    n_tasks = sum(len(read_tasks(LISTS[name])) for name in SUMMARIES)
    hours = {"auto": 0.0, "pick by SKADA: circular": 0.0, "pick by source CV": 0.0, "others": 0.0}
    with (RESULTS / "benchmark-costs.csv").open(newline="", encoding="utf-8") as file:
        costs = list(csv.DictReader(file))
    for row in costs:
        n_calls = n_tasks * (3 if is_random(row["method"]) else 1)
        key = row["method"] if row["method"] in hours else "others"
        hours[key] += float(row["mean_seconds"]) * n_calls / 3600
    start = PAGE.index("## The cost of a whole run")
    text = PAGE[start : PAGE.index("\n## ", start)]
    assert f"Both lists ({n_tasks} tasks)" in text
    assert f"about {sum(hours.values()):.1f} processor hours" in text
    shown = f"takes {hours['auto']:.1f}, SKADA's scorers {hours['pick by SKADA: circular']:.1f}"
    assert shown in text
    assert f"other scorers {hours['pick by source CV']:.1f}" in text
    assert f"the {len(costs) - 3} other methods together {hours['others']:.1f}" in text
    calls = [int(row["calls"]) for row in costs]
    assert f"{min(calls)} to {max(calls)} calls" in text
    assert max(float(row["most_seconds"]) for row in costs) < 18


def read_tasks_table():
    with (RESULTS / "benchmark-held-out-tasks.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_is_said_of_single_tasks_is_in_the_table_of_tasks():
    rows = [row for row in read_tasks_table() if row["metric"] == "accuracy"]
    gains = {
        row["task"]: float(row["auto, accuracy"]) - float(row[PLAIN["accuracy"]]) for row in rows
    }
    same = sum(gain == 0 for gain in gains.values())
    won = sum(gain > 0.01 for gain in gains.values())
    lost = sum(gain < -0.01 for gain in gains.values())
    assert f"on {same} of the {len(gains)} tasks; it gains more than .01 on {won}" in OWN
    assert f"loses more than .01 on {lost}" in OWN
    for shown, names in {
        f"({MINUS}.25, {MINUS}.07, {MINUS}.07)": [f"bike_hours: 1 > {k}" for k in (3, 2, 4)],
        f"({MINUS}.14, {MINUS}.13)": ["swiss_travel: 6 > 2", "swiss_travel: 6 > 1"],
        f"({MINUS}.04)": ["seattle_weather: 2012 > 2013"],
    }.items():
        numbers = [f"{gains[name]:.2f}".replace("-0.", f"{MINUS}.") for name in names]
        assert shown == f"({', '.join(numbers)})"
        assert shown in OWN


def test_the_second_run_agrees_with_the_first():
    rows = read_tasks_table()
    for metric, own in (("accuracy", "auto, accuracy"), ("balanced accuracy", "auto")):
        clusters = {}
        for row in rows:
            if row["metric"] == metric:
                gain = float(row[own]) - float(row[PLAIN[metric]])
                clusters.setdefault(row["cluster"], []).append(gain)
        mean = sum(sum(one) / len(one) for one in clusters.values()) / len(clusters)
        first = float(SUMMARIES["held-out"][metric, ALL, own]["gain"])
        assert mean == pytest.approx(first, abs=0.00025)
