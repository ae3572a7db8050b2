import numpy as np
import pytest

from covshift.datasets.speech_features import mel_triangles, mfccs, overlapping_frames, slopes
from tests.twins import mfcc_twin

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
    frames = overlapping_frames(np.arange(16_000.0), 400, 160)
    assert frames.shape == (98, 400)
    np.testing.assert_array_equal(frames[:, 0], 160 * np.arange(98))
    np.testing.assert_array_equal(frames[5], np.arange(800, 1200))
