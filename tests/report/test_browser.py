"""The page in a real browser: Chromium from the system, never one that is downloaded."""

import re
import shutil

import pytest

from covshift.paper.synthetic.report import gather_trials, synthetic_document
from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_section,
    make_table,
)
from covshift.report.files import write_document
from tests.paper.synthetic.made_records import made_records
from tests.report.example import SCRIPT, example_document

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

PHONE = {"width": 360, "height": 740}
TABLE = "#table-sorting"
LINK = "#table-accuracy tbody tr:nth-child(2) td:nth-child(3) a"
EVIDENCE = "#evidence-periodic-SF"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_document(example_document(), folder, "example")
    write_document(sorting_document(), folder, "sorting")
    write_document(synthetic_document(gather_trials(made_records(2)), []), folder, "study")
    return folder


def sorting_document():
    """A table in which no column is sorted, with numbers that sort otherwise as text."""
    columns = [
        make_column("name"),
        make_column("number", numeric=True, digits=1, help="Help on the number"),
        make_column("mixed"),
    ]
    rows = [
        {"name": "item 10", "number": 9, "mixed": "b"},
        {"name": "item 9", "number": float("nan"), "mixed": 10},
        {"name": "Émile", "number": make_cell("about 100", value=100, mark="best"), "mixed": 9},
        {"name": "item 1", "mixed": "a"},
        {"name": SCRIPT, "number": -1.5, "mixed": make_cell("last", value="z")},
        {"name": "zero", "number": float("inf"), "mixed": None},
        {"name": "tie", "number": float("inf"), "mixed": make_cell(mark="unclear")},
        {"name": "low", "number": float("-inf"), "mixed": ""},
    ]
    table = make_table("sorting", "Sorting", columns, rows)
    return make_document("Sorting", "", sections=[make_section("s", "S", tables=[table])])


@pytest.fixture
def visit(browser, folder):
    """Open a page; at the end nothing may have gone wrong nor been asked of the network."""
    problems, contexts = [], []

    def open_page(name="example", fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                problems.append(request.url)
                if not request.url.startswith(("file:", "data:"))
                else None
            ),
        )
        page.goto((folder / f"{name}.html").as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def wait_until(page, condition):
    """Ask again and again; Playwright's own waiting is `eval`, which the page's policy refuses."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never: {condition}")


def names(page):
    return page.locator(f"{TABLE} tbody th").all_inner_texts()


BY_NUMBER = ["low", SCRIPT, "item 10", "Émile", "zero", "tie"]
MISSING = ["item 9", "item 1"]  # NaN and nothing, in the order of the document


def test_a_click_sorts_numbers_as_numbers(visit):
    page = visit("sorting")
    before = names(page)
    heading = page.locator(f"{TABLE} thead th").nth(1)
    assert heading.get_attribute("aria-sort") is None
    heading.locator("button").click()
    assert names(page) == BY_NUMBER + MISSING
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.click(position={"x": 3, "y": 3})  # anywhere in it
    assert names(page) == ["zero", "tie", *BY_NUMBER[3::-1], *MISSING]
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").click()
    assert names(page) == before
    assert heading.get_attribute("aria-sort") is None


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts(key, visit):
    page = visit("sorting")
    button = page.get_by_role("button", name="Sort by number")
    button.focus()
    page.keyboard.press(key)
    assert names(page) == BY_NUMBER + MISSING
    page.keyboard.press(key)
    assert names(page)[-2:] == MISSING
    assert page.locator(f"{TABLE} [aria-sort]").count() == 1


def test_every_heading_is_reached_by_tab(visit):
    page = visit("sorting")
    page.locator(f"{TABLE} .scroll").focus()
    reached = []
    for _ in range(4):  # three buttons, and the label that has help
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert reached == ["Sort by name", None, "Sort by number", "Sort by mixed"]


def test_text_sorts_as_people_do_and_numbers_come_before_it(visit):
    page = visit("sorting")
    page.get_by_role("button", name="Sort by name").click()
    assert names(page) == [SCRIPT, "Émile", "item 1", "item 9", "item 10", "low", "tie", "zero"]
    page.get_by_role("button", name="Sort by mixed").click()
    assert names(page) == [
        "Émile",  # 9
        "item 9",  # 10
        "item 1",  # a
        "item 10",  # b
        "tie",  # unclear
        SCRIPT,  # z
        "zero",  # nothing
        "low",
    ]
    assert page.locator(f"{TABLE} [aria-sort]").count() == 1


def test_link_opens_its_evidence_and_back_returns(visit):
    page = visit()
    assert not page.locator(f"{EVIDENCE} table").is_visible()
    link = page.locator(LINK)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    link.click()
    page.locator(f"{EVIDENCE}[open] table").wait_for()
    assert page.locator("details[open]").count() == 1
    assert page.evaluate(f"document.activeElement.closest('{EVIDENCE}') !== null")
    top = page.locator(EVIDENCE).bounding_box()["y"]
    assert 0 <= top < 200
    page.go_back()
    wait_until(page, f"Math.abs(scrollY - {before}) < 5")
    assert page.evaluate("location.hash") == ""
    page.go_forward()
    wait_until(page, f"scrollY > {before} + 5")


def test_address_with_evidence_opens_it(visit):
    page = visit(fragment=EVIDENCE)
    assert page.locator(f"{EVIDENCE} table").is_visible()
    page = visit(fragment="#%E0%A4%A")  # cannot be decoded
    assert page.locator("details[open]").count() == 0


def test_works_without_script(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("button").count() == 0
    assert page.locator("#table-accuracy tbody tr").count() == 4
    page.locator(LINK).click()
    page.locator(f"{EVIDENCE} summary").click()
    assert page.locator(f"{EVIDENCE} table").is_visible()


def test_names_that_are_scripts_are_shown(visit):
    page = visit()
    row = page.locator("#table-paper tbody th").last
    assert row.inner_text() == f"class {SCRIPT}"
    assert page.evaluate("document.scripts.length") == 1


def test_policy_stops_scripts_that_come_later(browser, folder):
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto((folder / "example.html").as_uri())
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:9/x.png";
          document.body.append(image);
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert len(refused) == 2
    assert all("Content Security Policy" in text for text in refused)
    page.close()


def test_pictures_are_drawn(visit):
    page = visit()
    widths = page.evaluate("[...document.images].map((image) => image.naturalWidth)")
    assert widths == [1200, 1200]


@pytest.mark.parametrize("name", ["example", "sorting"])
@pytest.mark.parametrize("script", [True, False])
def test_page_never_scrolls_sideways(name, script, visit):
    page = visit(name, viewport=PHONE, java_script_enabled=script)
    if script:
        page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.evaluate("window.scrollTo(50, 0)")
    assert page.evaluate("window.scrollX") == 0


def test_first_column_stays_while_its_table_scrolls(visit):
    page = visit(viewport=PHONE)
    box = page.locator("#table-paper .scroll")
    assert box.evaluate("(box) => box.scrollWidth > box.clientWidth")
    first, second = (
        page.locator(f"#table-paper tbody tr:first-child > :nth-child({n})") for n in (1, 2)
    )
    left, before = first.bounding_box()["x"], second.bounding_box()["x"]
    box.evaluate("(box) => box.scrollLeft = 80")
    assert first.bounding_box()["x"] == pytest.approx(left, abs=1)
    assert second.bounding_box()["x"] == pytest.approx(before - 80, abs=1)


def test_caption_says_that_a_table_goes_on(visit):
    page = visit(viewport=PHONE)
    page.locator("#table-paper.overflows").wait_for()
    added = "(caption) => getComputedStyle(caption, '::after').content"
    assert "sideways" in page.locator("#table-paper figcaption").evaluate(added)
    page.set_viewport_size({"width": 1200, "height": 800})
    page.locator("#table-paper:not(.overflows)").wait_for()


@pytest.mark.parametrize("width", [1200, 1400, 1920])
def test_tables_of_seven_columns_fit_a_desktop(width, visit):
    page = visit("study", viewport={"width": width, "height": 800})
    sizes = page.evaluate(
        "[...document.querySelectorAll('section .scroll')].map((box) => "
        "[box.scrollWidth, box.clientWidth])"
    )
    assert len(sizes) >= 8
    assert all(wanted <= given for wanted, given in sizes)
    widest = "Math.max(...[...document.querySelectorAll('main p')].map((p) => p.clientWidth))"
    assert page.evaluate(widest) <= 42 * 16  # a readable measure all the same


def luminance(color):
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


COLORS = """() => {
  const background = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$/.test(color)) return color;
    }
  };
  const found = new Set();
  for (const element of document.querySelectorAll("body *:not(script)"))
    if ([...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
        || element.tagName === "BUTTON")
      found.add(`${getComputedStyle(element).color}|${background(element)}`);
  return [...found];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("media", ["screen", "print"])
def test_contrast(scheme, media, visit):
    page = visit(color_scheme=scheme)
    page.emulate_media(media=media, color_scheme=scheme)
    pairs = [pair.split("|") for pair in page.evaluate(COLORS)]
    assert len(pairs) >= 6 if media == "screen" else len(pairs) >= 4
    for text, paper in pairs:
        assert contrast(text, paper) >= 4.5, (text, paper)


def test_contrast_of_black_on_white_is_21():
    """Guards the test above."""
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)


def paper_color(page):
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def test_dark_has_other_colors_and_paper_does_not(visit):
    light, dark = (visit(color_scheme=scheme) for scheme in ("light", "dark"))
    assert luminance(paper_color(light)) > 0.9
    assert luminance(paper_color(dark)) < 0.05
    dark.emulate_media(media="print", color_scheme="dark")
    assert luminance(paper_color(dark)) > 0.9


def test_print_has_tables_and_headings_but_no_buttons(visit):
    page = visit()
    assert page.locator("button:visible").count() > 0
    page.emulate_media(media="print")
    assert page.locator("button:visible").count() == 0
    assert page.locator("details:visible").count() == 0
    assert page.locator("nav:visible").count() == 0
    assert page.locator("table:visible").count() == 2
    assert page.locator("#table-paper thead th .label:visible").count() == 6
    assert page.get_by_text("not on paper").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_help_by_keyboard_and_mouse(visit):
    page = visit("sorting")
    label, box = page.locator(".helped"), page.locator(".tooltip")
    assert not box.is_visible()
    label.focus()
    assert box.inner_text() == "Help on the number"
    page.keyboard.press("Escape")
    assert not box.is_visible()
    page.locator("h1").hover()
    label.hover()
    assert box.is_visible()
    inside = box.bounding_box()
    assert 0 <= inside["x"] < inside["x"] + inside["width"] <= 1200
    page.locator("h1").hover()
    box.wait_for(state="hidden")
    assert label.get_attribute("aria-description") == "Help on the number"


def test_skip_link_comes_first(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_thousands_of_rows_stay_fast(visit, folder):
    columns = [make_column("seed", numeric=True)]
    columns += [make_column(f"score {n}", numeric=True, digits=3) for n in range(4)]
    rows = [
        {"seed": seed, **{f"score {n}": (seed * 7919 + n) % 9973 / 9973 for n in range(4)}}
        for seed in range(5000)
    ]
    table = make_table(
        "t", "T", [make_column("a")], [{"a": make_cell("mean", value=0.5, evidence="trials")}]
    )
    document = make_document(
        "Many",
        "",
        sections=[make_section("s", "S", tables=[table])],
        evidence={"trials": make_evidence("Trials", columns, rows)},
    )
    write_document(document, folder, "many")
    page = visit("many")
    loaded = page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    page.locator(".evidence-link").click()
    took = page.evaluate(
        """() => {
          const start = performance.now();
          document.querySelectorAll("details button")[1].click();
          document.querySelector("details table").offsetHeight;
          return performance.now() - start;
        }"""
    )
    first = page.locator("details tbody tr").first.locator("td").first
    assert first.inner_text() == "0.000"
    # Far above what it takes on a slow machine; a cost that grows as the square would miss it.
    assert loaded < 5000
    assert took < 5000
