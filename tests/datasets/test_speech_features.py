import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter, resample_poly

from covshift.datasets import speech_features
from covshift.datasets.speech_features import (
    FEATURE_NAMES,
    _overlapping_frames,
    check_backend,
    mel_triangles,
    mfccs,
    segment_features,
    slopes,
)
from tests.datasets.recordings import voice
from tests.twins import mfcc_twin


def test_names():
    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == 72
    assert FEATURE_NAMES[:4] == ("mfcc1_mean", "mfcc1_std", "mfcc1_range", "mfcc2_mean")
    assert FEATURE_NAMES[36] == "delta_mfcc1_mean"
    assert FEATURE_NAMES[-1] == "delta_mfcc12_range"


@pytest.mark.parametrize("bandwidth", ["wide", "narrow"])
def test_features_follow_the_formulas(bandwidth):
    highest = {"wide": 8000.0, "narrow": 3800.0}[bandwidth]
    signal = voice(1.0, seed=4)
    expected = mfcc_twin.features(
        signal.tolist(),
        frame=400, hop=160, reach=2, n_coefficients=12,
        n_bands=26, n_fft=512, rate=16_000, lowest=0.0, highest=highest,
        preemphasis=0.97, lifter=22.0, floor=2.0**-30,
    )  # fmt: skip
    found = segment_features(signal, 16_000, bandwidth=bandwidth)
    np.testing.assert_allclose(found, [expected], rtol=1e-8, atol=1e-9)


def test_a_segment_is_described_by_its_own_samples_alone():
    signal = voice(3.2)
    whole = segment_features(signal, 16_000)
    assert whole.shape == (3, 72)
    for i in range(3):
        alone = segment_features(signal[i * 16_000 : (i + 1) * 16_000], 16_000)
        np.testing.assert_array_equal(alone, whole[[i]])


@settings(max_examples=25, deadline=None)
@given(
    rate=st.one_of(
        st.sampled_from([8000, 11_025, 22_050, 44_100, 48_000]), st.integers(8000, 9000)
    ),
    n=st.integers(0, 25_000),
    seed=st.integers(0, 9),
)
def test_whole_seconds_of_any_rate(rate, n, seed):
    signal = np.random.default_rng(seed).uniform(-1, 1, size=n)
    features = segment_features(signal, rate)
    assert features.shape == (n // rate, 72)
    assert features.dtype == np.float64
    assert np.isfinite(features).all()


@pytest.mark.parametrize("level", [0.0, 0.3, -1.0])
def test_silence_gives_zeros(level):
    """Also with an offset, except for a remainder in the lowest bands."""
    features = segment_features(np.full(16_000, level), 16_000)
    assert np.isfinite(features).all()
    if level == 0:
        np.testing.assert_allclose(features, 0, atol=1e-12)
    else:
        names = np.array(FEATURE_NAMES)
        still = [not name.startswith("mfcc") or not name.endswith("mean") for name in names]
        np.testing.assert_allclose(features[0, still], 0, atol=1e-9)


def test_clipping_is_no_error():
    loud = segment_features(np.clip(100 * voice(1.0), -1, 1), 16_000)
    beyond = segment_features(100 * voice(1.0), 16_000)  # a file of floats may exceed full scale
    assert np.isfinite(loud).all()
    np.testing.assert_allclose(beyond, segment_features(voice(1.0), 16_000), atol=0.05)


def standard_differences(one, other, spread):
    return np.abs(one - other) / spread


def test_rates_are_comparable():
    """One sound at three rates; differences are in standard deviations between segments."""
    wide = voice(8.0) + np.random.default_rng(5).normal(scale=0.003, size=8 * 16_000)
    reference = segment_features(wide, 16_000)
    spread = reference.std(axis=0)
    at_44100 = segment_features(resample_poly(wide, 441, 160), 44_100)
    assert np.median(standard_differences(at_44100, reference, spread)) < 0.1
    at_8000 = resample_poly(wide, 1, 2)
    missing = standard_differences(segment_features(at_8000, 8000), reference, spread)
    assert np.median(missing) > 1  # half of the bands are empty
    narrow = segment_features(wide, 16_000, bandwidth="narrow")
    found = segment_features(at_8000, 8000, bandwidth="narrow")
    assert np.median(standard_differences(found, narrow, narrow.std(axis=0))) < 0.2


def test_unknown_settings():
    with pytest.raises(ValueError, match=r"backend must be one of 'scipy', 'opensmile'"):
        check_backend("librosa", "wide")
    with pytest.raises(ValueError, match=r"bandwidth must be one of 'wide', 'narrow'"):
        check_backend("scipy", 8000)
    with pytest.raises(ValueError, match=r'bandwidth="narrow" needs backend="scipy"'):
        check_backend("opensmile", "narrow")


def test_missing_opensmile_names_the_extra_and_the_licence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"covshift\[speech-opensmile\].*not commercial use"):
        check_backend("opensmile", "wide")


class StandInTable(dict):
    """As much of a data frame as is used: columns by name, as one row of numbers."""

    def __getitem__(self, names):
        values = [dict.__getitem__(self, name) for name in names]
        return SimpleNamespace(to_numpy=lambda dtype: np.array([values], dtype=dtype))


class StandInSmile:
    """openSMILE with columns in its own order, whose values tell which they are."""

    def __init__(self, feature_set, feature_level):
        assert (feature_set, feature_level) == ("emobase", "func")

    def process_signal(self, signal, rate):
        assert (len(signal), rate) == (16_000, 16_000)
        return StandInTable(
            (f"mfcc_sma{'_de' * domain}[{j}]_{statistic}", 1000 * domain + 10 * j + k)
            for domain in (0, 1)
            for j in range(13)
            for k, statistic in enumerate(["max", "range", "amean", "stddev"])
        )


def test_columns_of_opensmile(monkeypatch):
    module = SimpleNamespace(
        Smile=StandInSmile,
        FeatureSet=SimpleNamespace(emobase="emobase"),
        FeatureLevel=SimpleNamespace(Functionals="func"),
    )
    monkeypatch.setitem(sys.modules, "opensmile", module)
    speech_features._opensmile_extractor.cache_clear()
    try:
        features = segment_features(voice(2.2, 8000), 8000, backend="opensmile")
    finally:
        speech_features._opensmile_extractor.cache_clear()
    expected = [1000 * d + 10 * j + k for d in (0, 1) for j in range(1, 13) for k in (2, 3, 1)]
    np.testing.assert_array_equal(features, [expected, expected])


def test_opensmile_itself_agrees():
    pytest.importorskip("opensmile", reason="openSMILE is not installed")
    # Noises with resonances at different places: their means differ far more than the smoothing,
    # and the frames at the ends, that openSMILE treats otherwise.
    rng = np.random.default_rng(0)
    sounds = [
        lfilter([0.01], [1, -1.8 * np.cos(angle), 0.81], rng.normal(size=16_000))
        for angle in np.linspace(0.1, 3.0, 12)
    ]
    ours, theirs = (
        np.concatenate([segment_features(sound, 16_000, backend=backend) for sound in sounds])
        for backend in ("scipy", "opensmile")
    )
    means = [name.startswith("mfcc") and name.endswith("mean") for name in FEATURE_NAMES]
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(ours.T, theirs.T, strict=True)]
    assert np.min(np.array(correlations)[means]) > 0.99


SETTINGS = {"preemphasis": 0.97, "lifter": 22.0, "floor": 2.0**-30}


@pytest.mark.parametrize("highest", [8000.0, 3800.0])
def test_triangles_follow_the_formula(highest):
    T = mel_triangles(26, 512, 16_000, 0.0, highest).toarray()
    expected = [
        [mfcc_twin.triangle(b, f, 26, 512, 16_000, 0.0, highest) for f in range(257)]
        for b in range(1, 27)
    ]
    np.testing.assert_allclose(T, expected, atol=1e-12)
    assert (T.sum(axis=1) > 0).all()  # no band is empty
    assert np.count_nonzero(T, axis=0).max() <= 2


def test_coefficients_follow_the_formula():
    frames = np.random.default_rng(0).normal(size=(3, 200)) * [
        [1.0],
        [1e-3],
        [1e-6],
    ]  # the last: at the floor
    bands = {"n_bands": 20, "n_fft": 256, "rate": 8000, "lowest": 100.0, "highest": 3500.0}
    C = mfccs(frames, mel_triangles(*bands.values()), 12, **SETTINGS)
    expected = [mfcc_twin.mfcc(frame, 12, **bands, **SETTINGS) for frame in frames]
    np.testing.assert_allclose(C, expected, rtol=1e-10, atol=1e-10)


def test_a_gain_changes_nothing():
    frames = np.random.default_rng(1).normal(size=(4, 400))
    T = mel_triangles(26, 512, 16_000, 0.0, 8000.0)
    one, other = (mfccs(gain * frames, T, 12, **SETTINGS) for gain in (1.0, 0.03))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_silence_has_no_coefficients():
    T = mel_triangles(26, 512, 16_000, 0.0, 8000.0)
    np.testing.assert_allclose(mfccs(np.zeros((2, 400)), T, 12, **SETTINGS), 0, atol=1e-12)


@pytest.mark.parametrize("reach", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_slopes_are_those_of_fitted_lines(n, reach):
    values = np.random.default_rng(2).normal(size=(n, 3))
    expected = [
        [mfcc_twin.slope(column.tolist(), t, reach) for column in values.T] for t in range(n)
    ]
    np.testing.assert_allclose(slopes(values, reach), expected, atol=1e-12)


def test_frames_are_whole_and_evenly_spaced():
    frames = _overlapping_frames(np.arange(16_000.0), 400, 160)
    assert frames.shape == (98, 400)
    np.testing.assert_array_equal(frames[:, 0], 160 * np.arange(98))
    np.testing.assert_array_equal(frames[5], np.arange(800, 1200))
