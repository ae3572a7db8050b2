"""Judging the automatic choice on bearings: recordings, floors, halves."""

from types import SimpleNamespace

import numpy as np
from bearings import by_recording, choose_features, source_folds, summarize
from segment_settings import halves

from covshift.paper.bearings.protocol import TASKS


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


def test_floors(capsys):
    assert summarize(results([0.97, 0.92, 0.6]))
    assert "fault sizes  auto" in capsys.readouterr().out
    assert not summarize(results([0.97, 0.92, 0.54]))  # above the floor, .06 below none
    assert not summarize(results([0.94, 0.92, 0.6]))
    assert capsys.readouterr().out.count("BELOW THE FLOOR") == 2


def test_halves_of_recordings():
    windows = SimpleNamespace(
        recording=np.array(["a"] * 5 + ["b"] * 4), sensor=np.array(["DE"] * 9)
    )
    rows = np.arange(9) != 8
    first, second = halves(windows, rows)
    assert first.nonzero()[0].tolist() == [0, 1, 2, 5, 6]
    assert second.nonzero()[0].tolist() == [3, 4, 7]
