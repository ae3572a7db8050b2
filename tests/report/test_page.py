"""The HTML, read by a parser: nothing is run here."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from covshift.report.document import (
    MARKS,
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_figure,
    make_section,
    make_table,
)
from covshift.report.files import document_json
from covshift.report.page import SYMBOLS, PageTooLargeError, _draw_series, render_page, show_cell
from tests.report.example import SCRIPT, example_document

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
VOID = {"meta", "link", "img", "br"}


class Reader(HTMLParser):
    """Elements in order, each with its attributes and the text inside; checks the nesting."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        assert len(attributes) == len(dict(attributes)), f"an attribute twice: {attributes}"
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


@pytest.fixture(scope="module")
def html():
    return render_page(example_document())


@pytest.fixture(scope="module")
def page(html):
    return Reader(html)


def hostile_document(text):
    """Every text of the document is the same one."""
    columns = [make_column(text, help=text)]
    cell = make_cell(text, value=text, mark="best", help=text, evidence=text)
    section = make_section(
        text,
        text,
        paragraphs=[text],
        tables=[make_table(text, text, columns, [{text: cell}, {text: text}])],
        figures=[make_figure(text, text, text, png=PNG)],
    )
    evidence = {text: make_evidence(text, columns, [{text: make_cell(text, help=text)}])}
    return make_document(text, text, facts=[(text, text)], sections=[section], evidence=evidence)


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        '"\' onmouseover="alert(1)" x=\'',
        "</style><img src=x onerror=alert(1)>",
        "{{ 7 * 7 }} {% raw %}",
        "javascript:alert(1)",
        "&amp;<!--",
    ],
)
def test_all_text_is_text(text):
    page = Reader(render_page(hostile_document(text)))
    assert [len(page.all(tag)) for tag in ("script", "style", "img")] == [1, 1, 1]
    assert not any(name.startswith("on") for element in page.elements for name in element)
    for tag in ("title", "h1", "p", "dt", "dd", "figcaption", "summary", "td", "th", "li"):
        assert any(text in element["text"] for element in page.all(tag)) or tag == "td", tag
    (image,) = page.all("img")
    assert image["alt"] == text
    titles = [element["title"] for element in page.elements if "title" in element]
    assert set(titles) == {text}
    links = [element["href"] for element in page.all("a", "link")]
    assert all(re.fullmatch(r"#[A-Za-z0-9._-]+|data:,", link) for link in links)


def test_ids_are_unique_and_links_lead_to_them(page):
    ids = [element["id"] for element in page.elements if "id" in element]
    assert len(ids) == len(set(ids))
    links = [element["href"] for element in page.all("a")]
    assert {link[1:] for link in links} <= set(ids)
    named = [
        element["aria-labelledby"] for element in page.elements if "aria-labelledby" in element
    ]
    assert set(named) <= set(ids)


def test_every_evidence_is_linked_and_leads_back(page):
    details = {element["id"] for element in page.all("details")}
    cells = [element for element in page.all("a") if element.get("class") == "evidence-link"]
    assert len(details) == 12
    assert {element["href"][1:] for element in cells} == details
    back = [element for element in page.all("a") if element["href"] == "#table-accuracy"]
    assert len(back) == 12


def test_nothing_is_loaded(html, page):
    assert not re.search(r"https?://|url\(|@import|//[a-z]+\.[a-z]", html)
    for element in page.elements:
        assert element.get("src", "data:").startswith("data:")
        assert element["tag"] not in {"iframe", "object", "embed", "form", "base"}
    assert all("src" not in element for element in page.all("script"))


def test_policy_comes_before_what_it_rules(page):
    tags = [element["tag"] for element in page.elements]
    policy = next(e for e in page.all("meta") if e.get("http-equiv"))["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.elements.index(page.all("meta")[1]) < tags.index("style")


def test_pictures_have_alt_text_caption_and_size(page):
    png, again = page.all("img")
    assert png["alt"].startswith("Bar chart")
    assert (png["width"], png["height"]) == ("1200", "408")
    assert png["src"].startswith("data:image/png;base64,")
    assert again["alt"] == "Bars."
    captions = [element["text"] for element in page.all("figcaption")]
    assert "The same bars." in captions
    assert len(captions) == 4


def test_structure(page):
    (root,) = page.all("html")
    assert root["lang"] == "en"
    headings = [element["tag"] for element in page.all("h1", "h2", "h3", "h4")]
    assert headings == ["h1", "h2", "h2", "h2", "h2"]
    first_link = page.all("a")[0]
    assert (first_link["class"], first_link["href"]) == ("skip", "#main")
    contents = [element["text"] for element in page.all("li")]
    assert contents == ["Accuracy on the target", "Beside the printed figures", "Evidence"]
    for table in page.all("table"):
        assert "aria-labelledby" in table
    assert {element["scope"] for element in page.all("th")} == {"col", "row"}
    assert not any("open" in element for element in page.all("details"))


def test_marks_are_words_with_symbols(page):
    marks = {e["text"] for e in page.all("span") if e.get("class", "").startswith("mark ")}
    assert marks == {f"{symbol} {mark}" for mark, symbol in SYMBOLS.items()}
    assert len(set(SYMBOLS.values())) == len(SYMBOLS) == len(MARKS)


@pytest.mark.parametrize(
    ("cell", "numeric", "sorting"),
    [
        (3, True, {}),
        (0.5, True, {}),
        (1 / 3, True, {"number": repr(1 / 3)}),
        (3, False, {"number": "3"}),
        ("a", False, {}),
        ("", False, {"missing": ""}),
        (None, True, {"missing": ""}),
        (float("nan"), True, {"missing": ""}),
        (float("-inf"), True, {"number": "-Infinity"}),
        ({"text": "a", "value": "b"}, False, {"text": "b"}),
        ({"text": "a", "mark": "best"}, False, {"text": "a"}),
        ({"value": 3, "mark": "best"}, True, {"number": "3"}),
        ({"mark": "best"}, False, {"text": "best"}),
    ],
)
def test_what_the_script_is_told_to_sort_by(cell, numeric, sorting):
    assert show_cell(cell, make_column("key", numeric=numeric)).sorting == sorting


def test_columns_need_only_key_and_label():
    table = {"id": "t", "caption": "c", "columns": [{"key": "k", "label": "l"}], "rows": []}
    section = make_section("s", "S", tables=[table])
    assert "No rows." in render_page(make_document("T", "", sections=[section]))


def test_same_document_same_page(html):
    assert render_page(example_document()) == html


def test_size(html):
    assert len(html.encode()) < 300_000
    with pytest.raises(PageTooLargeError, match=r"fewer dots per inch.*raise max_bytes"):
        render_page(example_document(), max_bytes=20_000)


def test_missing_jinja_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "covshift.report.page")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "covshift\[report\]"'):
        import covshift.report.page  # noqa: F401


@pytest.mark.parametrize("module", ["covshift", "covshift.report.document"])
def test_extras_are_imported_only_when_used(module):
    program = f"import sys, {module}; print({{'jinja2', 'matplotlib'}} & set(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "set()\n"


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
    drawing = _draw_series(chart(point(0, 0.7), point(1, 0.9), point(2, 0.8, observed=0.75)))
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
    drawing = _draw_series(chart(*(point(number) for number in range(100))))
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
