"""The README and CONTRIBUTING show real output."""

import importlib.util
import re
from pathlib import Path

import numpy as np
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


def test_the_gradient_of_the_errata():
    """Their derivation against differences, and the cosines that the page states."""
    path = ROOT / "benchmarks" / "gradient_cosine.py"
    spec = importlib.util.spec_from_file_location("gradient_cosine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.RandomState(0)
    W, X, G = rng.standard_normal((3, 2)), rng.standard_normal((7, 2)), rng.uniform(size=(7, 3))

    def loss(W):
        T = 1 + module.EPSILON + np.sin(X @ W.T)
        T = T / np.linalg.norm(T, axis=0)
        return np.sum(G * T / np.linalg.norm(T, axis=1, keepdims=True))

    steps = 1e-6 * np.eye(6).reshape(6, 3, 2)
    differences = [(loss(W + step) - loss(W - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(module.gradient(W, X, G).ravel(), differences, rtol=1e-5)

    page = " ".join((ROOT / "docs" / "errata.md").read_text(encoding="utf-8").split())
    first, second = (
        np.array([module.cosine(seed, reward) for seed in range(module.N_DRAWS)])
        for reward in (1.0, 10.0)
    )
    said = (
        f"median of {np.median(first):.2f} on `periodic` with λ = 1 and is negative on "
        f"{np.mean(first < 0):.0%} of the draws; with λ = 10 {np.median(second):.2f} and "
        f"{np.mean(second < 0):.0%}"
    )
    # As the page writes numbers.
    assert said.replace("0.", ".").replace("-", "\N{MINUS SIGN}").replace("%", " %") in page


@pytest.mark.parametrize("name", ["errata", "theory"])
def test_both_pages_say_when_the_bound_of_the_mean_holds(name):
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    plain = re.sub(r"[\\$ ]|sqrt", lambda one: "√" if one[0] == "sqrt" else "", page)
    assert "ifn√L≤1/ε" in plain.replace("le1/epsilon", "≤1/ε")
    assert "1/(n√L)" in plain or "frac{1}{n√L}" in plain
