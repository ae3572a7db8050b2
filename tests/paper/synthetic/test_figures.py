"""Figures of the study: pictures of the first trial."""

import io
import struct
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from matplotlib.text import Text

from covshift.paper.synthetic import figures as synthetic_figures
from covshift.paper.synthetic.figures import _draw_data_sets, _draw_filters, draw_figures
from covshift.paper.synthetic.systems import DATA_SETS, READINGS
from covshift.paper.synthetic.trials import draw_trial
from covshift.report import figures
from covshift.report.document import make_document, make_section
from covshift.report.figures import save_png
from covshift.report.files import write_document


@pytest.fixture(scope="module")
def few_starts():
    """The recipes with two starts, for time."""
    recipes = {}
    for system in ("SF", "PSF"):
        adapter = READINGS["used well"][system]["adapter"]
        params = {**adapter["params"], "n_restarts": 2, "max_iter": 30}
        recipes[system] = {"adapter": {**adapter, "params": params}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic_figures, "READINGS", {"used well": recipes})
        yield


@pytest.fixture(scope="module")
def drawn(few_starts):
    before = dict(matplotlib.rcParams)
    found = draw_figures(0)
    assert dict(matplotlib.rcParams) == before
    return found


def test_pictures_are_pngs_of_the_usual_width(drawn):
    assert [figure["id"] for figure in drawn] == [
        "data-sets",
        "filters",
        "representations",
        "histories",
    ]
    for figure in drawn:
        assert figure["png"].startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", figure["png"][16:24])
        assert width == figures.WIDTH * figures.DPI
        assert 400 <= height <= 3 * width
        assert figure["alt"]
        assert figure["caption"]


def test_pictures_fit_into_a_report(drawn, tmp_path):
    section = make_section("figures", "Pictures", figures=drawn)
    page = write_document(make_document("Study", "Lead.", sections=[section]), tmp_path)[0]
    assert page.stat().st_size < 5e6


def test_no_global_state_is_touched(drawn):
    assert Gcf.figs == {}
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_representation_over_the_plane_is_that_of_target_rows(few_starts, monkeypatch):
    monkeypatch.setattr(synthetic_figures, "GRID_POINTS", 7)
    data, adapter = synthetic_figures._fit("periodic", "PSF", 0)
    bank = synthetic_figures._bank("periodic", "PSF", data, adapter)
    assert bank["Z"].shape == (7, 7, 4)
    point = [[bank["x1"][2], bank["x2"][5]]]
    np.testing.assert_allclose(bank["Z"][5, 2], adapter.transform(point, sample_domain=-1)[0])
    rows = np.concatenate([data.X_source, data.X_test])
    for axis, ticks in enumerate((bank["x1"], bank["x2"])):
        assert ticks[0] < rows[:, axis].min()
        assert ticks[-1] > rows[:, axis].max()
    assert bank["names"] == [f"filter {i + 1}, for label {i // 2}" for i in range(4)]


def test_panels_show_every_data_set_and_both_variants():
    panels = synthetic_figures._data_sets(0)
    assert [title.partition(":")[0] for title in panels] == [
        *DATA_SETS,
        "periodic, as printed",
        "diagonal, as printed",
    ]
    np.testing.assert_array_equal(
        panels["periodic, as printed"]["y_test"], draw_trial("periodic", 0, "printed").data.y_test
    )


def test_main_plane_keeps_distances_of_the_plane():
    rng = np.random.RandomState(0)
    source, test = rng.standard_normal((30, 2)), rng.standard_normal((20, 2)) + 3
    turned = synthetic_figures._main_plane(source, test)
    for before, after in zip((source, test), turned, strict=True):
        np.testing.assert_allclose(
            np.linalg.norm(before[:, None] - before, axis=-1),
            np.linalg.norm(after[:, None] - after, axis=-1),
            atol=1e-12,
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
    figure = _draw_data_sets({"radial": data, "periodic": data, "smooth": data, "diagonal": data})
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
    (axes,) = _draw_data_sets({"one": data}).axes[:1]
    drawn = [len(points.get_offsets()) for points in axes.collections]
    assert drawn == [
        sum(data[f"y_{part}"] == label) for label in (0, 1) for part in ("source", "test")
    ]


def test_odd_number_of_data_sets_leaves_an_empty_place(data):
    figure = _draw_data_sets({"a": data, "b": data, "c": data})
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]


def test_one_panel_per_filter(data):
    figure = _draw_filters([make_bank(data, "first", 2), make_bank(data, "second", 5)])
    panels = [axes for axes in figure.axes if axes.axison and axes.get_title()]
    assert [axes.get_title() for axes in panels] == [
        *(f"first {index}" for index in range(2)),
        *(f"second {index}" for index in range(5)),
    ]
    assert [block.get_suptitle() for block in figure.subfigs] == ["first", "second"]
    assert len(figure.legends) == 1


def test_shading_is_the_response(data):
    bank = make_bank(data, "bank", 2)
    for index, axes in enumerate(_draw_filters([bank]).axes[:2]):
        np.testing.assert_array_equal(axes.collections[0].get_array(), bank["Z"][..., index])


@pytest.mark.parametrize("kind", ["data sets", "filters"])
def test_png_is_wide_enough_and_not_blank(kind, data):
    if kind == "data sets":
        figure = _draw_data_sets({f"data set {index}": data for index in range(4)})
    else:
        figure = _draw_filters([make_bank(data, "first", 2), make_bank(data, "second", 8)])
    image = pixels(figure)
    assert image.shape[1] == 1500
    for part in np.array_split(image, 4):  # something in every quarter of the height
        assert part.std() > 0.05
    assert_no_text_overlaps(figure)


def test_pyplot_knows_of_no_figure(data):
    before = dict(Gcf.figs)
    pixels(_draw_data_sets({"one": data}))
    assert dict(Gcf.figs) == before
