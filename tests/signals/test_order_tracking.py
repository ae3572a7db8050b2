"""Order tracking: the same machine at another speed gives the same window."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from covshift.signals import OrderTracking, Spectrum

RATE, LENGTH = 2000.0, 500
t = np.arange(LENGTH) / RATE


def machine(angle):
    """Vibration at an angle of the shaft, in turns."""
    return np.sin(2 * np.pi * 2 * angle + 1) + 0.5 * np.cos(2 * np.pi * 5 * angle)


def naive_tracking(x, rpm, samples_per_turn, n_turns):
    """One value at a time: when the shaft is at its angle, and the spline there."""
    found = []
    for j in range(samples_per_turn * n_turns):
        seconds = j / samples_per_turn / (rpm / 60)
        found.append(float(CubicSpline(np.arange(len(x)) / RATE, x)(seconds)))
    return found


def test_equals_the_naive_twin():
    rng = np.random.default_rng(0)
    X, rpm = rng.normal(size=(4, LENGTH)), np.array([700.0, 800, 1000, 3000])
    tracking = OrderTracking(RATE, samples_per_turn=30, n_turns=2).fit(X)
    twin = [naive_tracking(x, speed, 30, 2) for x, speed in zip(X, rpm, strict=True)]
    np.testing.assert_allclose(tracking.transform(X, rpm=rpm), twin, atol=1e-9)


def test_speeds_no_longer_matter():
    rpm = np.array([700.0, 900, 1250])
    X = machine(rpm[:, None] / 60 * t)
    found = OrderTracking(RATE, samples_per_turn=40, n_turns=2).fit_transform(X, rpm=rpm)
    np.testing.assert_allclose(found, [machine(np.arange(80) / 40)] * 3, atol=1e-3)
    assert np.abs(X[0] - X[1]).max() > 1


def test_a_speed_that_changes_within_the_window():
    rpm = np.stack([700 + 2000 * t, 1500 - 1000 * t])
    turns = np.stack([(700 * t + 1000 * t**2) / 60, (1500 * t - 500 * t**2) / 60])
    tracking = OrderTracking(RATE, samples_per_turn=40, n_turns=2)
    found = tracking.fit_transform(machine(turns), rpm=rpm)
    np.testing.assert_allclose(found, [machine(np.arange(80) / 40)] * 2, atol=1e-3)


def test_orders_are_the_bins_of_the_spectrum():
    rpm = np.array([700.0, 1250])
    tracked = OrderTracking(RATE, samples_per_turn=40, n_turns=2).fit_transform(
        machine(rpm[:, None] / 60 * t), rpm=rpm
    )
    names = Spectrum(rate=40).fit(tracked).get_feature_names_out()  # in "Hz" of turns
    largest = Spectrum(rate=40).fit_transform(tracked).argsort(axis=1)[:, -2:]
    assert [set(names[one]) for one in largest] == [{"2 Hz", "5 Hz"}] * 2


def test_channels():
    rpm, X = 900.0, np.random.default_rng(0).normal(size=(3, 2 * LENGTH))
    one = OrderTracking(RATE, rpm=rpm, samples_per_turn=40)
    both = clone(one).set_params(n_channels=2).fit(X)
    each = [clone(one).fit_transform(X[:, :LENGTH]), clone(one).fit_transform(X[:, LENGTH:])]
    np.testing.assert_allclose(both.transform(X), np.hstack(each))
    assert both.get_feature_names_out()[[0, 41]].tolist() == [
        "channel 0, 0 turns", "channel 1, 0.025 turns",
    ]  # fmt: skip


def test_speeds_travel_through_a_pipeline():
    rpm = np.array([700.0, 900])
    X = machine(rpm[:, None] / 60 * t)
    with config_context(enable_metadata_routing=True):
        tracking = OrderTracking(RATE, samples_per_turn=40, n_turns=2)
        pipeline = make_pipeline(tracking.set_transform_request(rpm=True), Spectrum())
        found = pipeline.fit(X, rpm=rpm).transform(X, rpm=rpm)
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_types_and_frames():
    X = machine(900 / 60 * t)[None].astype(np.float32)
    tracking = OrderTracking(RATE, rpm=900, samples_per_turn=4).fit(X)
    assert tracking.transform(X).dtype == np.float32
    pytest.importorskip("pandas")
    frame = tracking.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["0 turns", "0.25 turns", "0.5 turns", "0.75 turns"]


@pytest.mark.parametrize(
    ("settings", "rpm", "match"),
    [
        ({}, None, "needs the speed of the shaft"),
        ({}, [900.0], "one for each of 2 windows"),
        ({}, [900.0, 0.0], "positive speeds"),
        ({}, [900.0, np.nan], "positive speeds"),
        ({"n_turns": 3}, [900.0, 700.0], "Window 1 holds 2.91 turns of the shaft, and n_turns=3"),
        ({"rpm": -3.0}, None, "rpm"),
        ({"samples_per_turn": 0}, 900.0, "samples_per_turn"),
        ({"n_turns": 0}, 900.0, "n_turns"),
        ({"rate": 0.0}, 900.0, "rate"),
    ],
)
def test_bad_speeds_and_parameters(settings, rpm, match):
    tracking = OrderTracking(**{"rate": RATE, **settings})
    with pytest.raises(ValueError, match=match):
        tracking.fit(np.zeros((2, LENGTH))).transform(np.zeros((2, LENGTH)), rpm=rpm)


def test_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array")
    X = da.zeros((2, LENGTH))
    with pytest.raises(TypeError, match="rows in memory"):
        OrderTracking(RATE, rpm=900).fit(X).transform(X)
