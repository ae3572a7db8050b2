"""Judging the automatic choice on bearings: recordings, floors, halves."""

from types import SimpleNamespace

import numpy as np
from bearings import (
    RULES,
    Judged,
    by_recording,
    by_rules,
    choose_features,
    draw,
    pair_line,
    shared_directions,
    source_folds,
    summarize,
)
from segment_settings import halves

from covshift.paper.bearings.protocol import TASKS
from covshift.selection.expected_scores import Estimate


def test_accuracy_of_each_recording():
    recordings = np.array(["a", "a", "b", "b"])
    found = by_recording(np.array([1, 2, 3, 3]), np.array([1, 1, 3, 3]), recordings)
    assert found == {"a": 0.5, "b": 1.0}


def made_windows(n_recordings):
    """Two classes that both features show, or `other` alone; ten windows of each recording."""
    label = np.repeat(["a", "b"], n_recordings * 10)
    name = np.repeat([f"{one}{k}" for one in "ab" for k in range(n_recordings)], 10)
    source = np.ones(len(label), dtype=bool)
    task = SimpleNamespace(split=lambda windows: (source, ~source, label))
    return SimpleNamespace(recording=name), task, source, label


def test_folds_are_recordings_or_fifths_of_them():
    windows, _, source, label = made_windows(3)
    found = source_folds(windows, source, label)
    assert found.tolist() == [0] * 10 + [1] * 10 + [2] * 10 + [0] * 10 + [1] * 10 + [2] * 10
    windows, _, source, label = made_windows(1)
    assert source_folds(windows, source, label).tolist() == 2 * [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_the_first_features_that_know_the_classes_are_chosen():
    windows, task, _, label = made_windows(2)
    rng = np.random.default_rng(0)
    sharp = (label == "a")[:, None] + rng.normal(0, 0.1, (40, 3))
    noise = rng.normal(size=(40, 3))
    assert choose_features({"first": sharp, "other": sharp}, windows, task)[0] == "first"
    name, scores = choose_features({"first": noise, "other": sharp}, windows, task)
    assert name == "other"
    assert scores["other"] == 1


def results(auto):
    """One task of each shift, two recordings; no adaptation has .6."""
    tasks = [TASKS[0], TASKS[4], TASKS[6]]
    assert [task.shift for task in tasks] == ["loads", "sensors", "fault sizes"]
    return {
        (task.shift, task.name): {
            "none": {"a": 0.5, "b": 0.7},
            "auto": {"a": auto[i] - 0.1, "b": auto[i] + 0.1},
        }
        for i, task in enumerate(tasks)
    }


def test_floors():
    lines, kept = summarize(results([0.97, 0.92, 0.6]))
    assert kept == {"none": False, "auto": True}
    assert lines[-1].startswith("| auto | 0.970 (0.870 to 1.070) | 0.920 ")
    assert lines[-1].endswith("| +0.000 (fault sizes 7 → 14) | kept |")
    assert not summarize(results([0.97, 0.92, 0.54]))[1]["auto"]  # .06 below none
    assert not summarize(results([0.94, 0.92, 0.6]))[1]["auto"]


def made_judged(action, *, determinable=True, n_domains=1, interval=(0.0, 0.5)):
    """A plain model that says "a", a vote that says "b", and an assessment."""
    estimate = Estimate(0.25, *interval)
    assessment = SimpleNamespace(
        action=action, confidence="low", plain=estimate, recommended=estimate, vote_gain=estimate,
        determinability=SimpleNamespace(n_domains=n_domains, determinable=determinable),
    )  # fmt: skip
    return Judged(np.array(["a", "a"]), np.array(["b", "b"]), assessment)


def test_rules():
    def found(shared=0.6, features="spectrum", **judged):
        return [labels[0] for labels in by_rules(judged, features, shared).values()]

    adapts, keeps = made_judged("adapt"), made_judged("keep")
    assert found(spectrum=adapts) == ["b"] * len(RULES)
    assert found(spectrum=keeps) == ["a"] * len(RULES)
    assert found(spectrum=adapts, shared=0.4) == ["b", "b", "b", "b", "a"]
    assert found(spectrum=adapts, features="envelope", envelope=keeps) == ["b", "a", "b", "b", "b"]
    unknown = made_judged("adapt", determinable=False, n_domains=4)
    assert found(spectrum=adapts, loads=unknown) == ["b", "b", "b", "a", "b"]
    two = made_judged("adapt", determinable=False, n_domains=2)
    assert found(spectrum=adapts, loads=two) == ["b"] * len(RULES)


def test_a_pair_says_whether_intervals_hold():
    truth, recordings = np.array(["a", "b"]), np.array(["r", "s"])
    line = pair_line("7 → 14", made_judged("adapt"), truth, recordings)
    assert line == (
        "| 7 → 14 | 0.500 | 0.500 | 0.000 (-1.000 to 1.000) | adapt, low | "
        "0.25 (0.00 to 0.50), holds | 0.25 (0.00 to 0.50), holds | 0.25 (0.00 to 0.50), holds |"
    )
    line = pair_line("7 → 14", made_judged("adapt", interval=(0.1, 0.4)), truth, recordings)
    assert line.count("fails") == 3


def test_directions_are_shared_under_another_gain_and_not_by_another_vibration():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    loud = np.repeat(np.eye(6), 5, axis=1)[np.repeat([0, 1, 2], 20)]  # five bins for each class
    spectra = 5 * loud + rng.normal(0, 0.1, loud.shape) + 10
    gain = spectra * rng.uniform(1, 9, 30)
    other = np.roll(spectra, 15, axis=1)
    found = [
        shared_directions(SimpleNamespace(X_source=spectra, y_source=y, X_target=X))
        for X in (gain, other)
    ]
    assert found[0] > 0.9
    assert found[1] < 0.5


def test_loads_are_domains_of_their_own():
    load = np.tile([0, 3], 4)
    source = np.repeat([True, False], 4)
    task = SimpleNamespace(split=lambda windows: (source, ~source, np.array(["x"] * 8)))
    windows = SimpleNamespace(load=load, recording=np.arange(8))
    drawn, _ = draw(task, windows, np.zeros((8, 2)))
    assert set(drawn.source_domain) == {0}
    assert set(drawn.target_domain) == {-1}
    drawn, recordings = draw(task, windows, np.zeros((8, 2)), loads_apart=True)
    assert drawn.source_domain.tolist() == [0, 1, 0, 1]
    assert drawn.target_domain.tolist() == [-1, -2, -1, -2]
    assert recordings.tolist() == [4, 5, 6, 7]


def test_halves_of_recordings():
    windows = SimpleNamespace(
        recording=np.array(["a"] * 5 + ["b"] * 4), sensor=np.array(["DE"] * 9)
    )
    rows = np.arange(9) != 8
    first, second = halves(windows, rows)
    assert first.nonzero()[0].tolist() == [0, 1, 2, 5, 6]
    assert second.nonzero()[0].tolist() == [3, 4, 7]
