"""The page of results quotes the tables beside it."""

import csv
import json
import re
from pathlib import Path

import pytest
from covshift_bench.summary import PLAIN

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
OWN = PAGE[: PAGE.index("## The simulated part")]


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
