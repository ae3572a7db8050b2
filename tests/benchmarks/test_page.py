"""The leaderboard: its figures, and a browser that sorts and filters it."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest
from covshift_bench.page import cliques, critical_difference, family_of, leaderboard, mean_ranks
from covshift_bench.summary import PLAIN, score_results, summarize

from tests.benchmarks.test_summary import made_up_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


# Table 5(a) of Demsar (2006): the quantile q for 2 to 10 methods at 5 %.
@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_the_published_table(k, q):
    assert critical_difference(k, 14) == pytest.approx(q * (k * (k + 1) / 84) ** 0.5, rel=1e-3)


def test_ranks_share_ties_and_cliques_are_the_longest_runs():
    scores = np.array([[0.9, 0.8, 0.8, 0.1], [0.2, 0.4, 0.3, 0.1]])
    np.testing.assert_allclose(mean_ranks(scores), [2, 1.75, 2.25, 4])
    rng = np.random.default_rng(0)
    for _ in range(50):
        ranks, difference = sorted(rng.uniform(1, 9, size=8)), rng.uniform(0.1, 4)
        near = [
            (i, j)
            for i, j in itertools.combinations(range(8), 2)
            if ranks[j] - ranks[i] <= difference
        ]
        naive = [
            (i, j)
            for i, j in near
            if not any(a <= i and j <= b and (a, b) != (i, j) for a, b in near)
        ]
        assert cliques(ranks, difference) == naive


def test_families():
    assert family_of("auto, accuracy") == "automatic choice"
    assert family_of("none + forest") == family_of("plain best, accuracy") == "no adaptation"
    assert family_of("pick by SKADA: circular") == "picked by SKADA's scorers"
    assert family_of("SKADA CORAL + rbf") == "SKADA"
    assert family_of("coral + logistic") == "covshift adapter"
    assert family_of("my method") == "submitted"


@pytest.fixture(scope="module")
def scored():
    tasks, lines = made_up_results(seed=3)
    return score_results(lines, tasks)


def test_the_page_has_the_figures_of_the_summary_and_needs_no_network(scored):
    page = leaderboard(scored)
    data = json.loads(re.search(r'type="application/json" id="data">(.*?)</script>', page)[1])
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    for view in data["views"]:
        assert view["plain"] == PLAIN[view["metric"]]
        marks = {"tasks with a shift": ["shift"], "controls": ["control"]}.get(view["part"])
        part = scored if marks is None else scored[scored["mark"].isin(marks)]
        summary = summarize(part, view["metric"]).set_index("method")
        assert [one["method"] for one in view["methods"]] == list(summary.index)
        for one in view["methods"]:
            for key in ("score", "gain", "harm", "regret"):
                assert one[key] == pytest.approx(summary.loc[one["method"], key], rel=1e-4)
            assert len(one["by"]) == len(view["clusters"])
            assert np.mean(one["by"]) == pytest.approx(one["gain"], abs=1e-4)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_sorts_and_filters_it(scored, tmp_path, width):
    sync_api = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "page.html"
    path.write_text(leaderboard(scored), encoding="utf-8")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())

        def names():
            return page.locator("#table tbody td:first-child").all_text_contents()

        def column(number):
            cells = page.locator(f"#table tbody td:nth-child({number})").all_text_contents()
            return [float(cell) for cell in cells]

        assert column(2) == sorted(column(2), reverse=True)
        assert page.get_by_role("button", name="auto leads by").count() == 0  # auto was not run
        page.get_by_role("button", name="regret").click()
        assert column(9) == sorted(column(9), reverse=True)
        page.get_by_role("button", name="regret").click()
        assert column(9) == sorted(column(9))
        assert page.locator("th[aria-sort=ascending]").count() == 1
        page.locator("#text").fill("MINE")
        assert names() == ["mine"]
        page.locator("#text").fill("")
        page.get_by_label("no adaptation").uncheck()
        assert names() == ["mine"]
        page.locator("#part").select_option("controls")
        page.locator("#metric").select_option("balanced accuracy")
        assert page.locator("#ranks polyline").count() == 3
        assert page.locator("#by rect").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert errors == []
        browser.close()
