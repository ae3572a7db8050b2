"""Spectra and envelope spectra beside their twins, and as transformers of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from covshift.signals import EnvelopeSpectrum, Spectrum
from covshift.signals import spectra as blocks
from tests.twins.signal_twins import naive_envelope_spectrum, naive_prewhitened, naive_spectrum

rng = np.random.default_rng(0)


# The checks ask for windows of one sample, which have no frequency but zero.
ONE_SAMPLE = {"check_fit2d_1feature": "a window of one sample has no spectrum"}


@parametrize_with_checks(
    [Spectrum(), EnvelopeSpectrum(rate=10.0), EnvelopeSpectrum(prewhiten=True)],
    expected_failed_checks=lambda _: ONE_SAMPLE,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("length", [2, 3, 16, 17])
def test_spectrum_equals_the_naive_twin(length):
    X = rng.normal(size=(4, length)) + 3
    found = Spectrum().fit_transform(X)
    assert found.shape == (4, length // 2)
    np.testing.assert_allclose(found, [naive_spectrum(x) for x in X], atol=1e-12)


@pytest.mark.parametrize("length", [2, 3, 16, 17])
def test_envelope_spectrum_equals_the_naive_twin(length):
    X = rng.normal(size=(4, length)) + 3
    found = EnvelopeSpectrum().fit_transform(X)
    np.testing.assert_allclose(found, [naive_envelope_spectrum(x) for x in X], atol=1e-12)


@pytest.mark.parametrize("band", [(100, 300), (0, 250), (250, 500), (300, 9999)])
@pytest.mark.parametrize("length", [40, 41])
def test_band_equals_the_naive_twin(band, length):
    X = rng.normal(size=(3, length)) - 1
    found = EnvelopeSpectrum(rate=1000, band=band).fit_transform(X)
    twin = [naive_envelope_spectrum(x, *band, rate=1000) for x in X]
    np.testing.assert_allclose(found, twin, atol=1e-12)


@pytest.mark.parametrize("length", [2, 3, 16, 17, 41])
def test_prewhitened_envelope_equals_the_naive_twin(length):
    X = rng.normal(size=(3, length)) + 2
    found = EnvelopeSpectrum(prewhiten=True).fit_transform(X)
    twin = [naive_envelope_spectrum(naive_prewhitened(x)) for x in X]
    np.testing.assert_allclose(found, twin, atol=1e-12)


def test_prewhitened_envelopes_do_not_depend_on_gain_or_path():
    """A path that delays nothing multiplies each frequency by a positive number."""
    X = rng.normal(size=(4, 64))
    path = rng.uniform(0.1, 10, 33)
    other = 7 * np.fft.irfft(np.fft.rfft(X) * path, 64)
    transformer = EnvelopeSpectrum(band=(0.1, 0.4), prewhiten=True).fit(X)
    found = transformer.transform(X)
    np.testing.assert_allclose(transformer.transform(other), found, atol=1e-12)
    np.testing.assert_array_equal(transformer.transform(np.zeros((1, 64))), np.zeros((1, 32)))


def test_a_fault_is_seen_in_the_envelope_and_not_in_the_spectrum():
    """Impacts 90 times a second that ring at 3 kHz, under a strong shaft."""
    rate, t = 12_000, np.arange(12_000) / 12_000
    ringing = np.exp(-800 * (t % (1 / 90))) * np.sin(2 * np.pi * 3000 * (t % (1 / 90)))
    window = (ringing + 2 * np.sin(2 * np.pi * 30 * t) + rng.normal(0, 0.1, len(t)))[None]
    names = list(Spectrum(rate).fit(window).get_feature_names_out())
    envelope = EnvelopeSpectrum(rate, band=(2000, 4000)).fit_transform(window)[0]
    assert names[envelope.argmax()] == "90 Hz"
    assert names[Spectrum(rate).fit_transform(window)[0].argmax()] == "30 Hz"


@pytest.mark.parametrize("transformer", [Spectrum(100.0), EnvelopeSpectrum(100.0, band=(10, 40))])
def test_channels_are_transformed_by_themselves(transformer):
    X = rng.normal(size=(5, 60))
    both = clone(transformer).set_params(n_channels=2).fit(X)
    each = [clone(transformer).fit_transform(X[:, part]) for part in (slice(30), slice(30, 60))]
    np.testing.assert_allclose(both.transform(X), np.hstack(each))
    names = both.get_feature_names_out()
    assert len(names) == 30
    assert names[0].startswith("channel 0, ")
    assert names[-1].startswith("channel 1, ")


def test_names():
    X = np.zeros((1, 1200))
    names = Spectrum(12_000).fit(X).get_feature_names_out()
    assert names[[0, 1, -1]].tolist() == ["10 Hz", "20 Hz", "6000 Hz"]
    assert Spectrum().fit(X).get_feature_names_out()[0] == "bin 1"


def test_output_as_a_frame():
    pd = pytest.importorskip("pandas")
    found = Spectrum(10.0).set_output(transform="pandas").fit_transform(np.ones((2, 10)))
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["1 Hz", "2 Hz", "3 Hz", "4 Hz", "5 Hz"]


def test_blocks_change_nothing(monkeypatch):
    X = rng.normal(size=(50, 20))
    whole = Spectrum().fit_transform(X)
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 45)
    np.testing.assert_array_equal(Spectrum().fit_transform(X), whole)


@pytest.mark.parametrize("transformer", [Spectrum(), EnvelopeSpectrum()])
def test_maps_and_dask_arrays(transformer, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    X = rng.normal(size=(50, 20))
    whole = transformer.fit(X).transform(X)
    blocks_of = clone(transformer).fit(da.from_array(X, chunks=(20, -1)))
    lazily = blocks_of.transform(da.from_array(X, chunks=(20, -1)))
    assert isinstance(lazily, da.Array)
    np.testing.assert_array_equal(lazily.compute(), whole)
    monkeypatch.setattr("covshift.streams.rows.SMALL_BYTES", 10)
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    np.testing.assert_array_equal(clone(transformer).fit(mapped).transform(mapped), whole)


def test_in_a_pipeline():
    t = np.arange(64)
    y = np.repeat([0, 1], 30)
    X = np.sin(2 * np.pi * (5 + 3 * y[:, None]) * t / 64 + rng.uniform(0, 6, (60, 1)))
    model = make_pipeline(Spectrum(), LogisticRegression()).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) == 1


@pytest.mark.parametrize(
    ("transformer", "match"),
    [
        (Spectrum(rate=0), "rate"),
        (Spectrum(rate="fast"), "rate"),
        (Spectrum(n_channels=3), "20 columns, which cannot be 3 channels"),
        (Spectrum(n_channels=20), "no spectrum"),
        (Spectrum(n_channels=0), "n_channels"),
        (EnvelopeSpectrum(rate=20, band=(5, 2)), "lower one first"),
        (EnvelopeSpectrum(rate=20, band=7), "two frequencies"),
        (EnvelopeSpectrum(rate=20, band=(-3, 2)), "two frequencies"),
        (EnvelopeSpectrum(rate=20, band=(1.1, 1.9)), "multiples of 1 up to 10 Hz"),
        (EnvelopeSpectrum(band=(0.51, 1)), "multiples of 0.05 up to 0.5 periods per sample"),
    ],
)
def test_bad_parameters(transformer, match):
    with pytest.raises((TypeError, ValueError), match=match):
        transformer.fit(np.zeros((2, 20)))
    assert not hasattr(transformer, "n_features_in_")
