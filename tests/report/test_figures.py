import io
import sys
from itertools import combinations

import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from matplotlib.text import Text

from covshift.report.figures import (
    draw_data_sets,
    draw_differences,
    draw_filters,
    draw_planes,
    draw_scores,
    draw_waveforms,
    png_bytes,
    save_png,
)


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    return {
        "X_source": rng.standard_normal((60, 2)),
        "y_source": rng.randint(2, size=60),
        "X_test": rng.standard_normal((40, 2)),
        "y_test": rng.randint(2, size=40),
    }


def make_bank(data, title, n_filters):
    x1, x2 = np.linspace(-3, 3, 12), np.linspace(-2, 2, 9)
    Z = np.random.RandomState(1).uniform(size=(9, 12, n_filters))
    names = [f"{title} {index}" for index in range(n_filters)]
    return {"title": title, "x1": x1, "x2": x2, "Z": Z, "names": names, "data": data}


def pixels(figure):
    file = io.BytesIO()
    save_png(figure, file)
    file.seek(0)
    return imread(file)


def assert_no_text_overlaps(figure):
    """Compare titles, axis labels and legend; labels of ticks are shorter and left out."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for text in figure.findobj(Text) if len(text.get_text()) > 5]
    assert texts
    for one, other in combinations(texts, 2):
        boxes = [text.get_window_extent(renderer) for text in (one, other)]
        assert not boxes[0].overlaps(boxes[1]), (one, other)


def test_one_panel_per_data_set(data):
    figure = draw_data_sets({"radial": data, "periodic": data, "smooth": data, "diagonal": data})
    assert [axes.get_title() for axes in figure.axes] == [
        "radial",
        "periodic",
        "smooth",
        "diagonal",
    ]
    assert len(figure.legends) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "source, label 0",
        "source, label 1",
        "target, true label 0",
        "target, true label 1",
    ]


def test_every_row_is_drawn_in_the_color_of_its_label(data):
    (axes,) = draw_data_sets({"one": data}).axes[:1]
    drawn = [len(points.get_offsets()) for points in axes.collections]
    assert drawn == [
        sum(data[f"y_{part}"] == label) for label in (0, 1) for part in ("source", "test")
    ]


def test_odd_number_of_data_sets_leaves_an_empty_place(data):
    figure = draw_data_sets({"a": data, "b": data, "c": data})
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]


def test_one_panel_per_filter(data):
    figure = draw_filters([make_bank(data, "first", 2), make_bank(data, "second", 5)])
    panels = [axes for axes in figure.axes if axes.axison and axes.get_title()]
    assert [axes.get_title() for axes in panels] == [
        *(f"first {index}" for index in range(2)),
        *(f"second {index}" for index in range(5)),
    ]
    assert [block.get_suptitle() for block in figure.subfigs] == ["first", "second"]
    assert len(figure.legends) == 1


def test_shading_is_the_response(data):
    bank = make_bank(data, "bank", 2)
    for index, axes in enumerate(draw_filters([bank]).axes[:2]):
        np.testing.assert_array_equal(axes.collections[0].get_array(), bank["Z"][..., index])


@pytest.mark.parametrize("kind", ["data sets", "filters"])
def test_png_is_wide_enough_and_not_blank(kind, data):
    if kind == "data sets":
        figure = draw_data_sets({f"data set {index}": data for index in range(4)})
    else:
        figure = draw_filters([make_bank(data, "first", 2), make_bank(data, "second", 8)])
    image = pixels(figure)
    assert image.shape[1] == 1500
    for part in np.array_split(image, 4):  # something in every quarter of the height
        assert part.std() > 0.05
    assert_no_text_overlaps(figure)


def test_pyplot_knows_of_no_figure(data):
    before = dict(Gcf.figs)
    pixels(draw_data_sets({"one": data}))
    assert dict(Gcf.figs) == before


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "covshift.report.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "covshift\[report\]"'):
        import covshift.report.figures  # noqa: F401


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_waveforms_in_time_and_frequency(n):
    waveforms = np.sin(2 * np.pi * 3 * np.arange(100) / 100 * np.arange(1, n + 1)[:, None])
    figure = draw_waveforms(waveforms, rate=1000)
    shown = [axes for axes in figure.axes if axes.lines]
    assert len(shown) == 2 * n
    in_time, in_frequency = (
        [axes for axes in shown if axes.get_xlabel() == unit] for unit in ("ms", "kHz")
    )
    for k, (above, below) in enumerate(zip(in_time, in_frequency, strict=True), start=1):
        np.testing.assert_allclose(above.lines[0].get_ydata(), waveforms[k - 1])
        frequencies, amplitudes = below.lines[0].get_data()
        assert frequencies[np.argmax(amplitudes)] == pytest.approx(0.03 * k)  # 30 Hz and multiples


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
