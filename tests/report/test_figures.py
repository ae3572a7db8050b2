import sys

import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf

from covshift.report.figures import draw_differences, draw_planes, draw_scores, png_bytes


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "covshift.report.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "covshift\[report\]"'):
        import covshift.report.figures  # noqa: F401


ROWS = np.random.RandomState(0).standard_normal((5, 2))
FORMULA = r"$\bad{$ in $"  # of a user's column: no formula, and not even a valid one


def texts(figure):
    axes = figure.axes[0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *legend]


def test_pyplot_knows_of_no_figure():
    before = dict(Gcf.figs)
    png_bytes(draw_planes({"one": {"source": ROWS}}, ("a", "b")))
    assert dict(Gcf.figs) == before


def test_names_with_dollars_are_no_formulas():
    figure = draw_planes({FORMULA: {FORMULA: ROWS, "target": ROWS}}, (FORMULA, "b"))
    assert png_bytes(figure).startswith(b"\x89PNG")
    escaped = FORMULA.replace("$", r"\$")
    assert texts(figure) == [escaped, escaped, "b", escaped, "target"]
    scores = draw_scores({FORMULA: {FORMULA: {FORMULA: (0.5, 0.1)}}}, score_name="UAR")
    assert png_bytes(scores).startswith(b"\x89PNG")
    differences = draw_differences({FORMULA: {FORMULA: (0.5, 0.1)}}, difference_name="UAR")
    assert png_bytes(differences).startswith(b"\x89PNG")


def test_names_in_a_script_that_the_font_lacks_do_not_warn():
    figure = draw_planes({"before": {"病院": ROWS}}, ("a", "b"))
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_points_with_errors_in_every_panel():
    panels = {
        "emodb": {"oracle": {"SVM": (0.6, 0.02), "PSF": (0.7, None)}, "folds": {"PSF": (0.5, 0.1)}},
        "ravdess": {"oracle": {}, "folds": {"SVM": (0.5, 0.01)}},
    }
    figure = draw_scores(panels, score_name="UAR", chance=0.5)
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["emodb", "ravdess"]
    assert [label.get_text() for label in first.get_xticklabels()] == ["SVM", "PSF"]
    assert [label.get_text() for label in second.get_xticklabels()] == ["SVM"]
    points = [container[0].get_xydata() for container in first.containers]
    np.testing.assert_allclose(points[0][:, 1], [0.6, 0.7])
    assert points[0][1, 0] != points[1][0, 0]  # side by side, not on top of each other
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["oracle", "folds"]
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_differences_one_row_for_each_system():
    panels = {"vowels": {"CORAL": (0.2, 0.1), "SF": (-0.3, None)}, "images": {"SF": (0.0, 0.02)}}
    figure = draw_differences(panels, difference_name="balanced accuracy")
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["vowels", "images"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["CORAL", "SF"]
    np.testing.assert_allclose(first.containers[0][0].get_xydata(), [[0.2, 0], [-0.3, 1]])
    np.testing.assert_allclose(second.containers[0][0].get_xydata(), [[0.0, 1]])
    assert first.yaxis_inverted()
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_nothing_to_draw_is_an_empty_figure():
    assert png_bytes(draw_differences({}, difference_name="")).startswith(b"\x89PNG")
