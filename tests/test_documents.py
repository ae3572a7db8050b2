"""What the README and CONTRIBUTING show is what happens."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn

from covshift.report.document import make_column, make_table

ROOT = Path(__file__).resolve().parent.parent


def code_blocks(name, language):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    return [code for found, code in blocks if found == language]


def test_readme_prints_what_it_says():
    program, (expected,) = code_blocks("README.md", "python")[0], code_blocks("README.md", "")
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout == expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_readme_goes_on_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes model files
    first, *others = code_blocks("README.md", "python")
    names = {}
    exec(first, names)
    names["X_new_clinic"] = names["data"].X_test + 1
    config = sklearn.get_config()
    try:
        for block in others:
            exec(block, names)
    finally:
        sklearn.set_config(**config)
    assert np.isfinite(names["search"].best_score_)
    assert names["stacked_model"].transform(names["data"].X_test).shape == (500, 8)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["clinic.onnx", "model.skops"]
    assert names["sites"].adapter_.norm_units_ == [-1, 0, 1, "source", "target"]


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
    inserted = module.insert_tables(page, document)
    assert "old" not in inserted
    assert "| new |" in inserted
    assert inserted.startswith("before\n<!-- table scores -->\n")
    assert inserted.endswith("<!-- end -->\nafter\n")
    assert module.insert_tables(inserted, document) == inserted
    with pytest.raises(SystemExit, match="no table others; it has scores"):
        module.insert_tables(page.replace("scores", "others"), document)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "results").glob("*.md")), ids=str)
def test_links_of_results_lead_somewhere(path):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
