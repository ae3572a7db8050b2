"""Figures of the results pages come from the tables beside them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "result_figures.py")
figures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(figures)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_has_all_values_of_its_table(name):
    figure = figures.FIGURES[name]()
    dots = [
        line
        for axes in figure.axes
        for line in axes.lines
        if line.get_marker() in ("o", "^") and len(line.get_xdata())
    ]
    labels = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    assert len(dots) >= len(labels) >= 4
    assert (ROOT / "docs" / "results" / f"{name}.svg").is_file()


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_page_shows_its_figure_and_how_to_draw_it(name):
    page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert f"]({name}.svg)" in page
    assert f"python docs/result_figures.py {name}\n" in page


def test_a_cell_is_read_with_its_interval():
    assert figures.read_point("-.1", "-.2 to .3") == (-0.1, -0.2, 0.3)
    assert figures.read_point("147 (86 %)") == (147, None, None)
