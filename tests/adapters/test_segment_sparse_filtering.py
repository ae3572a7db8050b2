"""Sparse filtering of segments: the naive twin, what it learns, channels, memory, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from covshift import (
    AdaptedClassifier,
    DomainStandardScaler,
    SegmentSparseFiltering,
    SparseFiltering,
    stack_domains,
)
from covshift.adapters import segment_sparse_filtering as module
from covshift.adapters.segment_sparse_filtering import (
    AT_USE,
    draw_segments,
    pooled_responses,
    whitening_matrix,
)
from covshift.streams import ArrayRows
from tests.twins import naive

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SMALL = {"n_components": 3, "segment_length": 4, "max_iter": 5, "random_state": 0}


def make_windows(n=12, length=20, seed=0):
    return np.random.default_rng(seed).normal(size=(n, length)).cumsum(axis=1)


@pytest.mark.parametrize("activation_at_use", [None, *AT_USE])
@pytest.mark.parametrize(("n_channels", "step"), [(1, None), (1, 1), (2, 3)])
@pytest.mark.parametrize("normalize", [True, False])
def test_transform_equals_the_naive_twin(activation_at_use, n_channels, step, normalize):
    X = make_windows()
    how = {"step": step, "activation_at_use": activation_at_use, "normalize": normalize}
    model = SegmentSparseFiltering(**SMALL, n_channels=n_channels, **how).fit(X)
    twin = naive.pooled_responses(
        X, model.components_, model.intercept_, n_channels, step or 4, activation_at_use or "abs",
        model.epsilon, normalize,
    )  # fmt: skip
    assert_allclose(model.transform(X), twin, rtol=1e-10)
    assert model.transform(X).shape == (12, 3 * n_channels)


def test_the_fit_is_sparse_filtering_of_whitened_segments():
    """Step by step, in the order of the formula, on all segments."""
    X = make_windows()
    model = SegmentSparseFiltering(**SMALL).fit(X)
    segments = np.array([x[start : start + 4] for x in X for start in range(17)])
    mean = segments.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(segments.T, bias=True))
    V = vectors @ np.diag((values + 1e-5 * values.mean()) ** -0.5) @ vectors.T
    white = (segments - mean) @ V
    assert_allclose(np.cov(white.T, bias=True), np.eye(4), atol=1e-3)
    sf = SparseFiltering(3, max_iter=5, random_state=0).fit(white)
    W = sf.components_ / np.sqrt(np.mean((white @ sf.components_.T) ** 2 + 1e-8, axis=0))[:, None]
    assert_allclose(model.components_, W @ V, rtol=1e-6)
    assert_allclose(model.intercept_, -W @ V @ mean, rtol=1e-6, atol=1e-8)
    assert_allclose(model.loss_, sf.loss_)
    assert model.n_segments_ == len(segments)


def test_without_whitening_filters_see_raw_segments():
    X = make_windows()
    model = SegmentSparseFiltering(**SMALL, whiten=False).fit(X)
    segments = np.array([x[start : start + 4] for x in X for start in range(17)])
    sf = SparseFiltering(3, max_iter=5, random_state=0).fit(segments / np.abs(segments).max())
    directions = [
        W / np.linalg.norm(W, axis=1)[:, None] for W in (model.components_, sf.components_)
    ]
    assert_allclose(*directions, rtol=1e-6)
    assert_array_equal(model.intercept_, 0)


def test_responses_have_unit_root_mean_square():
    X = make_windows(40, 100)
    model = SegmentSparseFiltering(
        **SMALL, step=1, activation_at_use="square", normalize=False
    ).fit(X)
    assert_allclose(model.transform(X).mean(axis=0), 1, rtol=1e-5)


def test_silence_is_zero_and_loudness_does_not_matter():
    X = make_windows()
    model = SegmentSparseFiltering(**SMALL, whiten=False, epsilon=0.0).fit(X)
    assert_allclose(model.transform(7 * X), model.transform(X))
    assert_array_equal(model.transform(0 * X), 0)


def test_gain_of_all_windows_changes_nothing():
    X = make_windows()
    ours, theirs = (SegmentSparseFiltering(**SMALL).fit(gain * X) for gain in (1, 1024))
    assert_allclose(ours.transform(X), theirs.transform(1024 * X), rtol=1e-9)


@pytest.mark.parametrize("normalize", [True, False])
def test_windows_much_larger_than_those_of_the_fit(normalize):
    model = SegmentSparseFiltering(**SMALL, normalize=normalize).fit(make_windows() * 1e-200)
    assert np.isfinite(model.transform(make_windows() * 1e-200)).all()
    with pytest.raises(ValueError, match=r"X holds magnitudes up to .*e\+0., for which"):
        model.transform(make_windows())


def test_segments_are_of_all_windows_channels_and_places():
    X = np.arange(3 * 2 * 10.0).reshape(3, 20)  # each sample its own number
    everything = draw_segments(ArrayRows(X), 4, 2, 1000, 0)
    starts = [20 * w + 10 * c + s for w in range(3) for c in range(2) for s in range(7)]
    assert_array_equal(everything[:, 0], starts)
    assert_array_equal(everything, everything[:, :1] + np.arange(4))
    some = draw_segments(ArrayRows(X), 4, 2, 41, 0)
    assert some.shape == (41, 4)
    assert set(some[:, 0]) <= set(starts)
    many = np.tile(X, (100, 1))
    drawn = draw_segments(ArrayRows(many), 4, 2, 4000, 0)[:, 0]
    counts = np.array([(drawn == start).sum() for start in starts])
    assert counts.sum() == 4000
    assert abs(counts - 4000 / 42).max() < 5 * np.sqrt(4000 / 42)


def test_memory_maps_and_dask_arrays(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    X = make_windows(50)
    settings = {**SMALL, "n_segments": 60}
    model = SegmentSparseFiltering(**settings).fit(X)
    monkeypatch.setattr(module, "WINDOW_BYTES", 20 * 8 * 7)  # seven windows at a time
    monkeypatch.setattr("covshift.streams.rows.SMALL_BYTES", 10)
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    for rows in (mapped, da.from_array(X, chunks=(20, -1))):
        streamed = clone(model).fit(rows, sample_domain=np.repeat([0, -1], 25))
        assert_array_equal(streamed.components_, model.components_)
        assert_allclose(np.asarray(streamed.transform(rows)), model.transform(X))
    mapped[:] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        clone(model).fit(mapped)


def test_blocks_of_responses_change_nothing(monkeypatch):
    X, W = make_windows(9)[:, None], np.random.default_rng(0).normal(size=(5, 4))
    whole = pooled_responses(X, W, np.ones(5), 2, "abs", 1e-8, True)
    monkeypatch.setattr(module, "BLOCK_RESPONSES", 50)
    assert_allclose(pooled_responses(X, W, np.ones(5), 2, "abs", 1e-8, True), whole)


def test_whitening_of_degenerate_segments():
    assert_array_equal(whitening_matrix(np.ones((5, 3))), np.eye(3))
    flat = np.random.default_rng(0).normal(size=(50, 1)) @ np.ones((1, 3))
    assert np.isfinite(whitening_matrix(flat)).all()


def test_the_loss_has_the_penalty():
    settings = {**SMALL, "max_iter": 0}
    with_it, without = (
        SegmentSparseFiltering(**settings, l1_penalty=weight).fit(make_windows())
        for weight in (2.5, 0.0)
    )
    start = np.random.RandomState(0).standard_normal((3, 4))
    assert_allclose(with_it.loss_ - without.loss_, naive.absolute_penalty(start, 2.5))


def test_the_penalty_makes_filters_sparse():
    """Of periodic filters: their loss depends on lengths, so that shrinking all does not pay."""
    X = make_windows(60, 60)
    settings = {**SMALL, "segment_length": 12, "max_iter": 60, "activation": "sin"}

    def share_of_small(l1_penalty):
        model = SegmentSparseFiltering(**settings, whiten=False, l1_penalty=l1_penalty).fit(X)
        return (np.abs(model.components_) < 1e-3 * np.abs(model.components_).max()).mean()

    assert share_of_small(0.0) < 0.1
    assert share_of_small(3.0) > 0.25


def test_finds_which_waveform_a_window_holds():
    """One of two bursts anywhere in noise, across a gain: no fixed place distinguishes them."""
    rng = np.random.default_rng(0)
    t = np.arange(40)
    bursts = np.exp(-t / 10) * np.sin(np.array([[0.6], [1.4]]) * t)

    def windows(gain, n=120):
        y = np.arange(n) % 2
        X = rng.normal(0, 0.2, (n, 400))
        for row, label in enumerate(y):
            for start in rng.integers(0, 360, 4):
                X[row, start : start + 40] += bursts[label]
        return gain * X, y

    (X_source, y_source), (X_target, y_target) = windows(1.0), windows(4.0)
    X, y, sample_domain = stack_domains(X_source, y_source, X_target)
    # Bursts are rare: segments with one should count for more than those of noise.
    filters = SegmentSparseFiltering(
        20, segment_length=40, n_segments=4000, normalize=False, max_iter=50, random_state=0
    )
    scores = {}
    for name, adapter in {
        "raw": DomainStandardScaler(),
        "segments": make_pipeline(filters, DomainStandardScaler()),
    }.items():
        model = AdaptedClassifier(adapter).fit(X, y, sample_domain=sample_domain)
        scores[name] = model.score(X_target, y_target)
    assert scores["segments"] > 0.95
    assert scores["raw"] < 0.8


def test_by_name():
    X = make_windows(40, 150)
    model = AdaptedClassifier("segment-sf").fit(
        X, X[:, 0] > 0, sample_domain=np.repeat([0, -1], 20)
    )
    assert model.transform(X).shape == (40, 100)
    assert model.adapter_.segment_length_ == 100


def test_a_saved_model_predicts_the_same(tmp_path):
    pytest.importorskip("skops")
    from covshift import load, save

    X = make_windows(40, 50)
    adapter = make_pipeline(SegmentSparseFiltering(**SMALL), DomainStandardScaler())
    model = AdaptedClassifier(adapter)
    model.fit(X, X[:, 0] > 0, sample_domain=np.repeat([0, -1], 20))
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.predict_proba(X[:1]), model.predict_proba(X[:1]))


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_an_early_end_is_said():
    with pytest.warns(ConvergenceWarning, match="SegmentSparseFiltering reached max_iter=5"):
        SegmentSparseFiltering(**SMALL).fit(make_windows())


def test_verbose(capsys):
    SegmentSparseFiltering(**SMALL, verbose=1).fit(make_windows())
    assert "restart 1: loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"segment_length": 21}, "segment_length=21 is more than the 20 samples of a window"),
        ({"segment_length": 0}, "segment_length"),
        ({"segment_length": 2.0}, "segment_length"),
        ({"n_channels": 3}, "cannot be 3 channels of equal length"),
        ({"n_channels": 10}, "segment_length=4 is more than the 2 samples"),
        ({"step": 0}, "step"),
        ({"n_segments": 0}, "n_segments"),
        ({"n_components": None}, "n_components"),
        ({"activation": "log"}, "activation must be one of"),
        ({"activation_at_use": "tanh"}, "activation_at_use must be one of"),
        ({"l1_penalty": -1}, "l1_penalty"),
        ({"whiten": "zca"}, "whiten must be one of"),
        ({"normalize": 2}, "normalize must be one of"),
        ({"max_iter": -1}, "max_iter"),
    ],
)
def test_bad_parameters(settings, match):
    model = SegmentSparseFiltering(**{**SMALL, **settings})
    with pytest.raises((TypeError, ValueError), match=match):
        model.fit(make_windows())
    assert not hasattr(model, "n_features_in_")
