"""Judging the automatic choice on bearings: recordings, floors, halves."""

from types import SimpleNamespace

import numpy as np
from bearings import by_recording, neighbor_agreement, summarize
from segment_settings import halves

from covshift.paper.bearings.protocol import TASKS


def test_accuracy_of_each_recording():
    recordings = np.array(["a", "a", "b", "b"])
    found = by_recording(np.array([1, 2, 3, 3]), np.array([1, 1, 3, 3]), recordings)
    assert found == {"a": 0.5, "b": 1.0}


def test_agreement_of_neighbors_equals_the_naive_twin():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 3)) * [1, 10, 100], rng.integers(2, size=30)
    Z, agree = (X - X.mean(axis=0)) / X.std(axis=0), []
    for i in range(30):
        nearest = np.argsort([np.inf if j == i else np.sum((Z[i] - Z[j]) ** 2) for j in range(30)])
        agree += [codes[j] == codes[i] for j in nearest[:5]]
    assert np.isclose(neighbor_agreement(X, codes), np.mean(agree))


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
