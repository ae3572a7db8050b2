"""Filters on arrays of other libraries: what comes out, where it is, and what is refused."""

import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from covshift import (
    PeriodicSparseFiltering,
    SparseFiltering,
    fit_each,
    fit_many,
    kernels,
    save,
    to_numpy,
)
from covshift.adapters import _filter_minimization
from covshift.solvers.device_arrays import copy_to_host as array_to_numpy
from tests.array_libraries import LIBRARIES, ON_GPU, ON_PROCESSOR, to_torch, without_torch
from tests.shifted import make_problem

X, y, SAMPLE_DOMAIN, X_NEW = make_problem()
QUICK = {"max_iter": 8, "random_state": 0}
SETTINGS = [
    PeriodicSparseFiltering(6, n_restarts=3, **QUICK),
    PeriodicSparseFiltering(9, label_reward=2.0, alpha=0.1, n_restarts=2, **QUICK),
    PeriodicSparseFiltering(6, activation="cos", norm_epsilon=1e-8, n_restarts=2, **QUICK),
    PeriodicSparseFiltering(4, loss="blockwise", n_restarts=2, **QUICK),
    PeriodicSparseFiltering(20, pooling="domain", min_domain_size=2, n_restarts=1, **QUICK),
    SparseFiltering(6, **QUICK),
    SparseFiltering(20, normalization="joint", **QUICK),
    SparseFiltering(3, normalization="batch", max_iter=0, random_state=0),
]
every_library = pytest.mark.parametrize("asarray", LIBRARIES)
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=repr)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def dispatch():
    if parse_version(scipy.__version__) < parse_version("1.14"):
        pytest.skip("scikit-learn dispatches with SciPy 1.14 or newer")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def assert_same_fit(ours, theirs, rtol=1e-6):
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.norm_units_ == theirs.norm_units_
    for name in ("components_", "feature_norms_", "loss_curve_", "restart_losses_"):
        values = array_to_numpy(getattr(ours, name))
        expected = getattr(theirs, name)
        assert_allclose(values, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@every_library
@every_setting
def test_the_same_as_with_numpy_and_in_the_same_place(asarray, setting, dispatch):
    theirs = clone(setting).fit(X, y, sample_domain=SAMPLE_DOMAIN)
    rows, kept = asarray(X), X.copy()
    ours = clone(setting).fit(rows, y, sample_domain=SAMPLE_DOMAIN)
    assert_same_fit(ours, theirs)
    assert_array_equal(array_to_numpy(rows), kept)
    Z = ours.transform(asarray(X_NEW))
    for array in (ours.components_, ours.feature_norms_, Z):
        assert type(array) is type(rows)
        assert array.device == rows.device
        assert array.dtype == rows.dtype
    assert_allclose(array_to_numpy(Z), theirs.transform(X_NEW), rtol=1e-6, atol=1e-8)
    if setting.normalization == "domain":
        for domain in (None, -7, "new"):
            ours.adapt_target(asarray(3 * X), domain)
            theirs.adapt_target(3 * X, domain)
        Z = array_to_numpy(ours.transform(asarray(X_NEW), sample_domain="new"))
        assert ours.norm_units_ == theirs.norm_units_
        assert_allclose(Z, theirs.transform(X_NEW, sample_domain="new"), rtol=1e-6, atol=1e-8)


@every_library
def test_labels_and_domains_from_anywhere(asarray, dispatch):
    names = np.array(["low", "middle", "top"])[y]
    theirs = clone(SETTINGS[0]).fit(X, y, sample_domain=SAMPLE_DOMAIN)
    for labels, domain in (
        (asarray(y), asarray(SAMPLE_DOMAIN)),
        (names, SAMPLE_DOMAIN),
        (y.tolist(), SAMPLE_DOMAIN.tolist()),
    ):
        ours = clone(SETTINGS[0]).fit(asarray(X), labels, sample_domain=domain)
        assert_same_fit(ours, theirs)
    mask = asarray(SAMPLE_DOMAIN >= 0)
    ours.fit(asarray(X), asarray(y), sample_domain=domain, label_mask=mask)
    assert_same_fit(ours, theirs)
    domain = np.arange(len(X_NEW)) % 2 - 1
    assert_allclose(
        array_to_numpy(ours.transform(asarray(X_NEW), sample_domain=asarray(domain))),
        theirs.transform(X_NEW, sample_domain=domain), rtol=1e-6, atol=1e-8,
    )  # fmt: skip


@every_library
def test_single_precision_stays_single(asarray, dispatch):
    ours = clone(SETTINGS[0]).fit(asarray(X.astype(np.float32)), y, sample_domain=SAMPLE_DOMAIN)
    theirs = clone(SETTINGS[0]).fit(X.astype(np.float32), y, sample_domain=SAMPLE_DOMAIN)
    assert_allclose(ours.restart_losses_, theirs.restart_losses_, rtol=1e-4)
    assert "float32" in str(ours.components_.dtype)
    assert "float32" in str(ours.transform(asarray(X_NEW.astype(np.float32))).dtype)


@every_library
def test_settings_of_other_shapes_are_one_batch(asarray, dispatch):
    rows = asarray(X)
    grid = [
        PeriodicSparseFiltering(L, activation=activation, label_reward=reward, **QUICK)
        for L in (20, 31, 26)
        for activation, reward in (("sin", 0.5), ("cos", 2.0))
    ]
    problems = [clone(setting)._state_problem(rows, y, SAMPLE_DOMAIN) for setting in grid]
    problems = [problem.on_rows_of(problems[0]) for problem in problems]
    (batch,) = _filter_minimization._batches(problems)
    assert len(batch) == 60
    together = fit_many(grid, rows, y, sample_domain=SAMPLE_DOMAIN)
    for setting, fitted in zip(grid, together, strict=True):
        alone = clone(setting).fit(X, y, sample_domain=SAMPLE_DOMAIN)
        assert fitted.components_.shape == alone.components_.shape
        assert_same_fit(fitted, alone)


@every_library
def test_batches_are_cut_by_their_size(asarray, dispatch, monkeypatch):
    monkeypatch.setattr(_filter_minimization, "BATCH_ACTIVATIONS", 13 * len(X))
    problem = (
        clone(SETTINGS[0]).set_params(n_restarts=5)._state_problem(asarray(X), y, SAMPLE_DOMAIN)
    )
    assert [len(batch) for batch in _filter_minimization._batches([problem])] == [2, 2, 1]


@every_library
def test_norms_are_measured_some_rows_at_a_time(asarray, dispatch, monkeypatch):
    whole = clone(SETTINGS[0]).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    monkeypatch.setattr(_filter_minimization, "DEVICE_ACTIVATIONS", 43)
    parts = clone(SETTINGS[0]).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    norms = (array_to_numpy(model.feature_norms_) for model in (whole, parts))
    assert_allclose(*norms, rtol=1e-12)


@every_library
def test_each_to_its_own_rows(asarray, dispatch):
    data = [(asarray(X), y, SAMPLE_DOMAIN), (X, y, SAMPLE_DOMAIN), (asarray(2 * X), y, None)]
    settings = [SETTINGS[0], SETTINGS[1], SETTINGS[5]]
    for setting, fitted, (rows, labels, domain) in zip(
        settings, fit_each(settings, data), data, strict=True
    ):
        alone = clone(setting).fit(array_to_numpy(rows), labels, sample_domain=domain)
        assert_same_fit(fitted, alone)


@every_library
@every_setting
def test_a_model_moves_to_numpy(asarray, setting, dispatch):
    ours = clone(setting).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    moved = to_numpy(ours)
    assert type(moved) is type(ours)
    assert isinstance(moved.components_, np.ndarray)
    assert type(ours.components_) is type(asarray(X))
    Z = array_to_numpy(ours.transform(asarray(X_NEW)))
    with sklearn.config_context(array_api_dispatch=False):
        assert_allclose(pickle.loads(pickle.dumps(moved)).transform(X_NEW), Z, rtol=1e-6)


def test_a_model_made_of_models_moves_to_numpy(dispatch):
    strict = pytest.importorskip("array_api_strict")
    inner = clone(SETTINGS[0]).fit(strict.asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    outer = Pipeline([("scale", StandardScaler()), ("filter", inner)])
    outer.itself = outer
    moved = to_numpy(outer)
    assert moved.itself is moved
    assert isinstance(moved["filter"].components_, np.ndarray)
    assert not isinstance(outer["filter"].components_, np.ndarray)


@without_torch
def test_tensors_are_not_saved(dispatch, tmp_path):
    pytest.importorskip("skops")
    ours = clone(SETTINGS[0]).fit(to_torch(X), y, sample_domain=SAMPLE_DOMAIN)
    with pytest.raises(TypeError, match=r"it holds tensors. Save covshift.to_numpy\(model\)"):
        save(ours, tmp_path / "model.skops")
    save(to_numpy(ours), tmp_path / "model.skops")


@every_library
def test_goes_on_from_an_earlier_fit(asarray, dispatch):
    model = PeriodicSparseFiltering(6, warm_start=True, **QUICK)
    first = model.fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN).loss_
    assert model.fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN).loss_ < first
    start = PeriodicSparseFiltering(6, init=model.components_, **QUICK)
    assert start.fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN).loss_ < first


@every_library
def test_what_is_elsewhere_is_refused(asarray, dispatch):
    on_device = clone(SETTINGS[0]).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    with pytest.raises(ValueError, match=r"X is with numpy: they must .* covshift.to_numpy"):
        on_device.transform(X_NEW)
    on_host = clone(SETTINGS[0]).fit(X, y, sample_domain=SAMPLE_DOMAIN)
    with pytest.raises(ValueError, match="were fitted with numpy and X is with"):
        on_host.transform(asarray(X_NEW))


@every_library
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "Scale the features")]
)
def test_bad_rows(asarray, value, message, dispatch):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=message):
        clone(SETTINGS[0]).fit(asarray(bad), y, sample_domain=SAMPLE_DOMAIN)
    model = clone(SETTINGS[0]).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    with pytest.raises(ValueError, match="features"):
        model.transform(asarray(X[:, :1]))


@every_library
def test_early_stopping_is_refused(asarray, dispatch):
    model = PeriodicSparseFiltering(6, early_stopping="ks", **QUICK)
    with pytest.raises(ValueError, match=r"not done on a device: give NumPy arrays"):
        model.fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("asarray", [ON_PROCESSOR])
def test_tensors_are_converted_without_the_dispatch(asarray):
    ours = clone(SETTINGS[0]).fit(asarray(X), asarray(y), sample_domain=SAMPLE_DOMAIN)
    theirs = clone(SETTINGS[0]).fit(X, y, sample_domain=SAMPLE_DOMAIN)
    assert_array_equal(ours.components_, theirs.components_)
    assert isinstance(ours.transform(asarray(X_NEW)), np.ndarray)


@pytest.mark.parametrize("asarray", [ON_GPU])
def test_a_gpu_needs_the_dispatch(asarray):
    with pytest.raises(TypeError, match=r"on the device cuda:0.*array_api_dispatch=True"):
        clone(SETTINGS[0]).fit(asarray(X), y, sample_domain=SAMPLE_DOMAIN)


@without_torch
def test_sparse_tensors_are_refused(dispatch):
    with pytest.raises(TypeError, match=r"sparse tensor .* give X.to_dense"):
        clone(SETTINGS[0]).fit(to_torch(X).to_sparse(), y, sample_domain=SAMPLE_DOMAIN)


@without_torch
def test_gradients_of_the_caller_are_not_recorded(dispatch):
    rows = to_torch(X).requires_grad_()
    model = clone(SETTINGS[0]).fit(rows, y, sample_domain=SAMPLE_DOMAIN)
    assert not model.components_.requires_grad
    assert not model.transform(rows).requires_grad


def test_eager_operations_serve_where_triton_cannot_compile(monkeypatch):
    def fail(device):
        raise RuntimeError("no compiler")

    fused = types.SimpleNamespace(try_out=fail)
    monkeypatch.setitem(sys.modules, "covshift.kernels.fused_filters", fused)
    monkeypatch.setattr(kernels, "fused_filters", fused, raising=False)
    with pytest.warns(UserWarning, match=r"Triton cannot compile for cuda:0 \(RuntimeError"):
        assert _filter_minimization._fused_filters.__wrapped__("cuda:0") is None


@without_torch
def test_the_page_on_gpus_runs():
    page = Path(__file__).parents[2] / "docs" / "gpu.md"
    (program,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(program, names)
    assert names["Z"].device.type == names["device"]
    assert isinstance(names["on_processor"].components_, np.ndarray)
