"""The chart over time: places, colors by the page, in a browser at phone width and in the dark."""

import shutil

import pytest

from covshift.report.document import make_document, make_figure, make_section
from covshift.report.files import document_json
from covshift.report.page import render_page
from covshift.report.series_chart import draw_series

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
HOSTILE = '"><script>alert(1)</script>'


def point(number, value=0.8, kind="fine", **more):
    name = f"batch {number}"
    low, high = (None, None) if value is None else (value - 0.1, value + 0.05)
    return {
        "name": name, "kind": kind, "title": f"{name} {HOSTILE}", "value": value,
        "low": low, "high": high, **more,
    }  # fmt: skip


def chart(*points, levels=(("reference", "held-out rows", 0.85),)):
    return {"points": list(points), "levels": list(levels)}


def page_of(one):
    figure = make_figure("scores", "Scores", "Scores over time", chart=one)
    section = make_section("time", "Over time", figures=[figure])
    return make_document("Monitoring", "Lead.", sections=[section])


def test_higher_scores_are_drawn_higher_and_later_batches_to_the_right():
    drawing = draw_series(chart(point(0, 0.7), point(1, 0.9), point(2, 0.8, observed=0.75)))
    first, second, third = drawing.marks
    assert first.x < second.x < third.x
    assert second.y < third.y < first.y
    assert third.high < third.y < third.low
    assert third.y < third.observed
    assert first.observed is None
    for mark in drawing.marks:
        assert drawing.left < mark.x < drawing.right
        assert 0 < mark.high <= mark.low < drawing.bottom
    values = [float(text) for _, text in drawing.ticks]
    assert values == sorted(values)
    assert len(values) >= 3


def test_few_names_of_many_batches_the_last_included():
    drawing = draw_series(chart(*(point(number) for number in range(100))))
    assert len(drawing.names) <= 8
    assert drawing.names[-1][1] == "batch 99"


@pytest.mark.parametrize("points", [[], [point(0)], [point(0, None)], [point(0), point(1, None)]])
def test_odd_charts_are_drawn(points):
    page = render_page(page_of(chart(*points, levels=[])))
    assert page.count("<g class=") == len(points) + 1


def test_text_is_escaped_and_numbers_are_in_the_json():
    document = page_of(chart(point(0), point(1, kind="moved"), point(2, kind="alert")))
    page = render_page(document)
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") == 3
    assert '"value": 0.8' in document_json(document)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"points": []}, "needs levels"),
        (chart({"name": "a", "title": "a", "kind": "odd"}), "kind must be"),
        (chart(point(0, value=None, observed="high")), "observed must be a number"),
        (chart(levels=[("other", "a", 1.0)]), "a level is"),
    ],
)
def test_charts_that_are_wrong(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make_figure("scores", "Scores", "Scores", chart=wrong)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_the_chart_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = tmp_path / "page.html"
    many = [point(n, 0.8 - 0.01 * n, "moved" if n > 5 else "fine") for n in range(10)]
    path.write_text(render_page(page_of(chart(*many))), encoding="utf-8")
    colors, problems = {}, []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        for scheme, width in (("light", 1200), ("dark", 360)):
            context = browser.new_context(
                color_scheme=scheme, viewport={"width": width, "height": 800}
            )
            page = context.new_page()
            page.on("console", lambda message: problems.append(message.text))
            page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
            page.on(
                "request",
                lambda request: (
                    None
                    if request.url.startswith(("file:", "data:"))
                    else problems.append(request.url)
                ),
            )
            page.goto(path.as_uri())
            assert page.locator("svg.series").is_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            colors[scheme] = page.evaluate(
                "['.mark-fine .point', '.mark-moved .point', '.tick'].map(one => "
                "getComputedStyle(document.querySelector('svg.series ' + one)).fill)"
            )
            context.close()
        browser.close()
    assert problems == []
    assert len(set(colors["light"])) == 3
    assert not set(colors["light"]) & set(colors["dark"])
