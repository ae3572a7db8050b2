"""Figures of the study: pictures of the first trial."""

import struct
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf

from covshift.paper.synthetic import figures as synthetic_figures
from covshift.paper.synthetic.figures import draw_figures
from covshift.paper.synthetic.systems import DATA_SETS, READINGS
from covshift.paper.synthetic.trials import draw_trial
from covshift.report import figures
from covshift.report.document import make_document, make_section
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
