import numpy as np

from covshift.report.figures import png_bytes
from covshift.report.plane_figures import draw_planes
from covshift.report.score_figures import draw_differences, draw_scores

ROWS = np.random.RandomState(0).standard_normal((5, 2))
FORMULA = r"$\bad{$ in $"  # of a user's column: no formula, and not even a valid one


def texts(figure):
    axes = figure.axes[0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *legend]


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
