"""The documentation is complete, as far as this shows without a build."""

import ast
import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from tests.test_import_direction import ORDER

ROOT = Path(__file__).resolve().parent.parent
DOCS, EXAMPLES = ROOT / "docs", sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
# Names in `__all__` of things without a docstring of their own.
PLAIN = {"covshift.domains": {"SOME_SOURCE", "SOME_TARGET", "Labels", "Unit"}}


def configuration():
    """Assignments of docs/conf.py that are plain values."""
    found = {}
    for node in ast.parse((DOCS / "conf.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            found |= {name.id: value for name in node.targets}
    return found


def documented_names():
    """Full names that the pages of the reference list."""
    for page in (DOCS / "reference").glob("*.rst"):
        module, inside = None, False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            inside = line.startswith(".. autosummary::") or (inside and line[:3] in ("", "   "))
            if inside and re.fullmatch(r"   \w+", line):
                yield f"{module}.{line.strip()}"


@pytest.mark.parametrize("module", configuration()["PUBLIC"])
def test_every_public_name_is_in_the_reference(module):
    names = set(importlib.import_module(module).__all__) - PLAIN.get(module, set())
    listed = set(documented_names())
    top = {f"covshift.{name}" for name in importlib.import_module("covshift").__all__}
    missing = {f"{module}.{name}" for name in names} - listed
    assert {name for name in missing if f"covshift.{name.rpartition('.')[2]}" not in top} == set()
    assert top <= listed


def test_the_reference_lists_nothing_that_is_not_there():
    names = list(documented_names())
    assert len(names) == len(set(names))
    for name in names:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name


def test_pictures_are_drawn_by_examples():
    drawn = {path.stem for path in EXAMPLES}
    for page in PAGES:
        for name in re.findall(r"images/sphx_glr_(\w+)_\d+\.png", page.read_text(encoding="utf-8")):
            assert name in drawn, f"{page}: {name}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_a_title_and_draw(path):
    """They run when the site is built; here, only what would make a page without sense."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, line = (ast.get_docstring(tree) or "").splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert "plt.show()" in path.read_text(encoding="utf-8")
    assert re.fullmatch(r"plot_\w+\.py", path.name)


def test_there_are_at_least_twelve_examples():
    assert len(EXAMPLES) >= 12


def test_the_house_has_every_folder():
    picture = (DOCS / "contributing" / "house.svg").read_text(encoding="utf-8")
    names = re.findall(r'class="name">(\w+)<', picture)
    order = [name for name in ORDER if not name.startswith("_")]
    assert sorted(names) == sorted(order)
    assert [name for name in order if name in names[:3]] == order[:3]


def test_links_between_pages_lead_somewhere():
    """Sphinx checks them as well; this is quicker, and says which file."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not target.startswith(("gallery/", "../gallery/")):  # made by the build
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_links_to_examples_lead_somewhere():
    names = {path.stem for path in EXAMPLES} | {"index"}
    for page in PAGES:
        for name in re.findall(r"gallery/(\w+)\.rst", page.read_text(encoding="utf-8")):
            assert name in names, f"{page}: {name}"


def test_everything_that_the_build_needs_is_in_its_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = " ".join(project["optional-dependencies"]["docs"])
    own = {path.stem for path in (DOCS / "_extensions").glob("*.py")}
    for name in {*configuration()["extensions"], configuration()["html_theme"]} - own:
        package = name.split(".")[0].replace("_", "-")
        assert package in extra, name
    assert "make docs" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere():
    """The site opens from disk without a network."""
    own = [*(DOCS / "_static").glob("*.css"), *(DOCS / "_extensions").glob("*.py")]
    for path in [DOCS / "conf.py", *own]:
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path
    assert configuration()["html_math_renderer"] == "mathml"


def test_the_check_of_the_built_site_sees_faults(tmp_path):
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "good.html").write_text('<a href="good.html#x">x</a> <a href="https://a.b">y</a>')
    assert module.find_faults(tmp_path) == (1, [])
    (tmp_path / "bad.html").write_text(
        '<script src="https://cdn/x.js"></script> <link rel="stylesheet" href="//cdn/x.css"> '
        '<a href="no%20page.html">z</a>'
    )
    (tmp_path / "style.css").write_text("@font-face { src: url(https://fonts/x.woff) }")
    _, faults = module.find_faults(tmp_path)
    assert sorted(fault.split(" ", 2)[2] for fault in faults) == [
        "//cdn/x.css", "https://cdn/x.js", "https://fonts/x.woff",
        "to no%20page.html, which is not there",
    ]  # fmt: skip
