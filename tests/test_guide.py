"""Every page that shows code, run from its first line to its last."""

import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

from tests.pages import pages_with_code, refresh_page, run_page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [DOCS / "start.md", DOCS / "theory.md", *sorted((DOCS / "guide").glob("*.md"))]
WITH_CODE = [page for page in pages_with_code() if page in PAGES]  # the other: tests/cli
# SKADA changes a setting of scikit-learn when it is imported: in a process of its own.
APART = "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
APART += "from tests.pages import run_page; run_page(Path(sys.argv[2]))"


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_page_shows_what_happens(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem == "skada":
        command = [sys.executable, "-W", "error", "-c", APART, str(ROOT), str(page)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return
    with sklearn.config_context():  # pages may set it
        run_page(page)


def test_pages_show_code_that_is_run():
    """No page shows Python in a form that the test above would not see."""
    assert len(WITH_CODE) > 10
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "```py\n" not in text
        assert ">>> " not in text


def test_pages_are_refreshed_with_what_is_printed_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "One.\n```python\nx = 2\nprint(x + 1)\n```\n\n```text\n7\n```\nTwo.\n"
        "```console\n$ echo new\nold\n$ covshift show absent.skops\n$ echo $?\n0\n```\n"
        "```sh\nas it is\n```\n"
    )
    text = refresh_page(page)
    page.write_text(text)
    assert "```text\n3\n```\nTwo." in text
    assert "$ echo new\nnew\n$ covshift show absent.skops\n$ echo $?\n1\n```" in text
    assert text.startswith("One.\n```python\nx = 2\nprint(x + 1)\n```\n")
    assert text.endswith("```sh\nas it is\n```\n")
    assert run_page(page) == ["covshift show absent.skops"]
