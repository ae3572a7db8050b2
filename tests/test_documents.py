"""What the README and CONTRIBUTING show is what happens."""

import importlib.util
import re
from pathlib import Path

import pytest

from covshift.report.document import make_column, make_table
from tests.pages import blocks_of, excerpt, run_page

ROOT = Path(__file__).resolve().parent.parent


README = ROOT / "README.md"
RECORDS = ROOT / "docs" / "design"


def test_readme_shows_what_happens(tmp_path, monkeypatch):
    """Commands, what they print, and the same in Python."""
    monkeypatch.chdir(tmp_path)
    assert len(run_page(README)) == 4
    ((_, program),) = [one for one in blocks_of(README) if one[0] == "python"]
    assert len([line for line in program.splitlines() if line.strip()]) <= 6


def test_excerpts_show_lines_of_the_output():
    text = "a 1\nb\nc\nd 2\n"
    assert excerpt(text, "...\nb\n...\nd 3\n") == "...\nb\n...\nd 2\n"
    assert excerpt(text, "a 1\n...\n") == "a 1\n...\n"
    assert excerpt(text, "a 1\nc\n...\n") == "a 1\nb\n...\n"  # nothing marks a gap
    assert excerpt(text, "...\nb\n").endswith("(and 2 lines more)\n")
    assert "ends here" in excerpt(text, "...\ne\n")
    assert excerpt("a\n      b\n", "a\n      b\n") == "a\n      b\n"  # a heading of a table
    long = " ".join(["word"] * 30)
    shown = excerpt(f"{long}\nlast\n", f"{long[:59]}\n    {long[60:]}\nlast\n")
    assert shown == f"{long[:94]}\n    {long[95:]}\nlast\n"


def count_words(text):
    """As `wc -w` counts, code and marks included, without the frames of tables."""
    return len(re.sub(r"\|(?:-+:?\|)*", " ", text).split())


def test_design_records_fit_on_a_page():
    records = {path.name: count_words(path.read_text("utf-8")) for path in RECORDS.glob("0*.md")}
    assert len(records) > 30
    assert {name: n for name, n in records.items() if n > 600} == {}


def test_readme_is_short_and_has_a_picture():
    text = README.read_text(encoding="utf-8")
    assert count_words(text) <= 600
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).stat().st_size < 300_000


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_make_targets_named_in_the_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"make ([a-z-]+) ", (ROOT / name).read_text())) <= targets


def test_the_threat_model_names_tests_that_exist():
    """Every promise has a test: a file, a folder or a function."""
    page = (ROOT / "docs" / "contributing" / "threat-model.md").read_text(encoding="utf-8")
    promises = page.partition("## Promises")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", promises, flags=re.MULTILINE)[1:]
    assert len(rows) >= 10
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    for promise, cell in rows:
        names = re.findall(r"`([^`]+)`", cell)
        assert names, promise
        for name in names:
            exists = (ROOT / name).exists() if "/" in name else f"def {name}(" in sources
            assert exists, f"{promise} names {name}"


def test_tables_of_a_report_go_where_the_page_wants_them():
    spec = importlib.util.spec_from_file_location("insert_tables", ROOT / "docs/insert_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = make_table("scores", "Scores", [make_column("a")], [{"a": "new"}])
    document = {"sections": [{"tables": [table]}]}
    page = "before\n<!-- table scores -->\nold\n<!-- end -->\nafter\n"
    inserted, files = module.insert_tables(page, document)
    assert not files
    assert "old" not in inserted
    assert "| new |" in inserted
    assert inserted.startswith("before\n<!-- table scores -->\n")
    assert inserted.endswith("<!-- end -->\nafter\n")
    assert module.insert_tables(inserted, document) == (inserted, {})
    linked, files = module.insert_tables(page.replace("table s", "file s"), document, "p")
    assert files == {"p-scores.csv": "a\nnew\n"}
    assert "<!-- file scores -->\n[Scores](p-scores.csv)\n<!-- end -->" in linked
    with pytest.raises(SystemExit, match="no table others; it has scores"):
        module.insert_tables(page.replace("scores", "others"), document)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "results").glob("*.md")), ids=str)
def test_links_of_results_lead_somewhere(path):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("../gallery/"):  # made by the build; tests/test_site.py checks
            assert (path.parent / target).exists(), target
