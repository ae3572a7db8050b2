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
from covshift_bench.summary import LEADER, PLAIN
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


def is_shown(numbers, row, keys=("gain", "low", "high")):
    """Whether numbers on the page are a row's gain and interval, to three digits."""
    found = [row[key] for key in keys]
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
    [("held-out", "held-out tasks, 19 collections"), ("fresh", "all 294 fresh tasks, 37 clusters")],
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
        gain, low, high = map(value, numbers)
        same = any(
            is_shown(shown, row, keys)
            for row in known
            for shown, keys in (
                ((gain, low, high), ("gain", "low", "high")),
                ((gain, low, high), ("lead", "lead_low", "lead_high")),
                ((-gain, -high, -low), ("lead", "lead_low", "lead_high")),  # of a rival
            )
        )
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


def test_the_cost_of_the_run_is_that_of_its_calls():
    n_tasks = sum(len(read_tasks(LISTS[name])) for name in SUMMARIES)
    hours = {"auto": 0.0, "pick by SKADA: circular": 0.0, "pick by source CV": 0.0, "others": 0.0}
    start = PAGE.index("## The cost of a whole run")
    text = PAGE[start : PAGE.index("\n## ", start)]
    with (RESULTS / "benchmark-costs.csv").open(newline="", encoding="utf-8") as file:
        costs = list(csv.DictReader(file))
    for row in costs:
        n_calls = n_tasks * (3 if is_random(row["method"]) else 1)
        key = row["method"] if row["method"] in hours else "others"
        hours[key] += float(row["mean_seconds"]) * int(row["calls"]) / 3600
        if row["method"] == "pick by source CV":
            assert f"({row['calls']} of {n_calls:,} calls;" in text
            rest = (n_calls - int(row["calls"])) * float(row["mean_seconds"]) / 3600
            assert f"the rest would take {rest:.1f} hours" in text
        else:
            assert int(row["calls"]) == n_calls, row["method"]
    assert f"Both lists ({n_tasks} tasks), {len(costs)} methods" in text
    assert f"{sum(hours.values()):.1f} processor hours" in text
    shown = f"took {hours['auto']:.1f}, SKADA's scorers {hours['pick by SKADA: circular']:.1f}"
    assert shown in text
    assert f"other scorers {hours['pick by source CV']:.1f}" in text
    assert f"the {len(costs) - 3} other methods together {hours['others']:.1f}" in text
    most = max(float(row["most_seconds"]) for row in costs)
    assert f"No call took longer than {most + 1:.0f} seconds" in text


def read_tasks_table():
    with (RESULTS / "benchmark-held-out-tasks.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_is_said_of_single_tasks_is_in_the_table_of_tasks():
    rows = [row for row in read_tasks_table() if row["metric"] == "accuracy"]
    gains = {
        row["task"]: round(float(row["auto, accuracy"]) - float(row[PLAIN["accuracy"]]), 4)
        for row in rows
    }
    same = sum(gain == 0 for gain in gains.values())
    won = sum(gain > 0.01 for gain in gains.values())
    lost = sum(gain < -0.01 for gain in gains.values())
    assert f"on {same} of the {len(gains)} tasks; it gains more than .01 on {won}" in OWN
    assert f"loses more than .01 on {lost}" in OWN
    swiss = [f"swiss_travel: 6 > {k}" for k in (2, 1)]
    seattle = [f"seattle_weather: 2012 > {k}" for k in (2013, 2014)]
    offutt = [f"offutt_rain: 4540 to 6809 > {k}" for k in ("11350 to 13619", "15890 to 18158")]
    shoulders = [f"shoulder_exercises: {k}" for k in ("8 > 4", "6 > 4", "all others > 3")]
    for names, shown in (
        ([f"bike_hours: 1 > {k}" for k in (3, 2, 4)], f"({MINUS}.26, {MINUS}.09, {MINUS}.06)"),
        (swiss, f"({MINUS}.05, {MINUS}.04)"),
        (seattle, f"({MINUS}.03, {MINUS}.03)"),
        (offutt, "(+.08, +.07;"),
        (shoulders, "(+.12, +.09, +.02)"),
        (["swiss_travel: 3 > 5"], "(+.13)"),
        (["mall_incomes: all others > 3"], "(+.03)"),
    ):
        numbers = [f"{gains[name]:+.2f}".replace("0.", ".").replace("-", MINUS) for name in names]
        assert ", ".join(numbers) == shown.strip("(;)")
        assert shown in OWN


LEADS = {
    "ADAPT's best of 8 pipelines": "ADAPT ",
    "SKADA's best of 18 pipelines": "SKADA ",
    "SKADA's best of 6 scorers": "pick by SKADA: ",
    "SKADA's worst of 6 scorers": "pick by SKADA: ",
    "the best unadapted model": "plain best",
}


def test_leads_have_the_figures_of_the_summary():
    rows = table_of("the automatic choice leads")
    assert {row[0] for row in rows} >= set(LEADS)
    for label, *cells in rows:
        for number, (metric, cell) in enumerate(zip(PLAIN, cells, strict=True)):
            found = {
                name: row
                for (of, part, name), row in SUMMARIES["held-out"].items()
                if (of, part) == (metric, ALL)
            }
            if label in LEADS:
                names = [name for name in found if name.startswith(LEADS[label])]
                count = re.search(r"of (\d+)", label)
                assert count is None or int(count[1]) == len(names)
                which = max if "worst" in label else min
                own = which(names, key=lambda name, found=found: float(found[name]["lead"]))
                own = PLAIN[metric] if label == "the best unadapted model" else own
            else:
                own = METHODS[label][number]
            numbers = [value(x) for x in re.findall(NUMBER, cell)]
            assert is_shown(numbers, found[own], ("lead", "lead_low", "lead_high")), (label, metric)


def test_what_is_said_of_all_rivals():
    least, sure, sure_peers = {}, {}, []
    for metric in PLAIN:
        rows = {
            name: row
            for (of, part, name), row in SUMMARIES["held-out"].items()
            if (of, part) == (metric, ALL)
        }
        own = LEADER[metric]
        others = [row for name, row in rows.items() if name != own]
        sure[metric] = sum(float(row["lead_low"]) > 0 for row in others)
        peers = [row for name, row in rows.items() if "SKADA" in name or "ADAPT" in name]
        assert len(peers) == 8 + 18 + 6
        assert min(float(row["lead"]) for row in peers) > 0
        beyond = [row["method"] for row in peers if float(row["lead_low"]) > 0]
        picks = sum(name.startswith("pick by") for name in beyond)
        sure_peers.append((len(beyond) - picks, picks))
        harms = {name: float(row["harm"]) for name, row in rows.items() if "plain best" not in name}
        least[metric] = min(harms, key=harms.get)
        if metric == "accuracy":
            rest = [harm for name, harm in harms.items() if name != own]
            text = f"of all {len(harms)} methods: {harms[own]:.0%} of the tasks in accuracy, "
            text += f"where the others harm {min(rest):.0%} to {max(rest):.0%}."
            assert text.replace("%", " %").replace(" % to", " to") in OWN
    assert least == LEADER
    text = f"leads {sure['accuracy']} of the {len(others)} others beyond chance in accuracy"
    assert f"{text} and {sure['balanced accuracy']} in balanced accuracy;" in OWN
    (one, picked), (other, also_picked) = sure_peers
    text = f"of the 26 pipelines of SKADA and ADAPT {one} and {other}, of SKADA's scorers"
    assert f"{text} {picked} and {also_picked}." in OWN
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"ahead of 26 SKADA and ADAPT pipelines, of {one} beyond chance." in readme


def test_what_is_said_of_the_rivals_on_fresh_tasks():
    start = OWN.index("In accuracy it leads")
    text = OWN[start:]
    for metric in PLAIN:
        rows = {
            name: row
            for (of, part, name), row in SUMMARIES["fresh"].items()
            if (of, part) == (metric, ALL) and name != LEADER[metric]
        }
        leads = {name: float(row["lead"]) for name, row in rows.items()}
        sure = sum(float(row["lead_low"]) > 0 for row in rows.values())
        if metric == "accuracy":
            ahead = sum(lead > 0 for lead in leads.values())
            assert f"leads {ahead} of the {len(leads)} others, {sure} of them beyond" in text
            peers = {name: lead for name, lead in leads.items() if name[:5] in ("SKADA", "ADAPT")}
            first, *others = sorted(peers, key=peers.get)[:4]
            assert first == "SKADA KLIEPReweight + logistic"
            assert {name.partition(" + ")[0] for name in others} == {
                "ADAPT KLIEP", "ADAPT RULSIF", "ADAPT ULSIF"
            }  # fmt: skip
            assert sum(lead < 0 for lead in peers.values()) == 4
            assert all(float(rows[name]["lead_high"]) > 0 for name in (first, *others))
            numbers = [-float(rows[first][key]) for key in ("lead", "lead_high", "lead_low")]
            shown = "{:.3f} ({:.3f} to {:.3f})".format(*numbers).replace("0.", ".")
            assert f"SKADA's KLIEP is ahead by {shown.replace('-', MINUS)}" in text
            assert min(peers[name] for name in others) > -0.0015
        else:
            assert [name for name, lead in leads.items() if lead < 0] == ["vote, balanced"]
            assert f"leads all {len(leads)} but its own vote, {sure} of them beyond" in text
            for start, words in (
                ("pick by SKADA", "scorers by "),
                (("SKADA", "ADAPT"), "ADAPT by "),
            ):
                least = min(
                    (row for name, row in rows.items() if name.startswith(start)),
                    key=lambda row: float(row["lead"]),
                )
                numbers = [float(least[key]) for key in ("lead", "lead_low", "lead_high")]
                shown = "{:.3f} or more ({:.3f} to {:.3f})".format(*numbers).replace("0.", ".")
                assert words + shown in text


def test_failures_of_peers():
    failed = {
        name: int(row["failed"])
        for (metric, part, name), row in SUMMARIES["held-out"].items()
        if (metric, part) == ("accuracy", ALL) and name.startswith(("SKADA", "ADAPT"))
    }
    assert {name: n for name, n in failed.items() if n} == {
        "SKADA LinearOTMapping + logistic": 36,
        "SKADA LinearOTMapping + rbf": 36,
        "SKADA JDOT classifier": 8,
        "SKADA EntropicOTMapping + logistic": 6,
    }
    assert "fails on 36 of the tasks, its JDOT on 8 and its entropic transport on 6" in OWN
    fresh = SUMMARIES["fresh"]["accuracy", ALL, "SKADA LinearOTMapping + logistic"]
    assert f"SKADA's linear transport fails on {fresh['failed']} of the tasks" in OWN


def test_the_table_of_tasks_is_of_the_same_run():
    rows = read_tasks_table()
    for metric, own in LEADER.items():
        clusters = {}
        for row in rows:
            if row["metric"] == metric:
                gain = float(row[own]) - float(row[PLAIN[metric]])
                clusters.setdefault(row["cluster"], []).append(gain)
        mean = sum(sum(one) / len(one) for one in clusters.values()) / len(clusters)
        gain = float(SUMMARIES["held-out"][metric, ALL, own]["gain"])
        assert mean == pytest.approx(gain, abs=1e-4)
