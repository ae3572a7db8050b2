"""The design tasks: their rules on made-up rows, and the committed list on the files themselves."""

import os
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from covshift_bench.real_collections import Cut, read_cuts
from covshift_bench.tasks import (
    LIST,
    MAX_TASKS,
    SIZES,
    Task,
    declare_tasks,
    draw_rows,
    draw_task,
    halve,
    keep_apart,
    made_up_tasks,
    mark_tasks,
    measure_gap,
    read_tasks,
    thin,
    write_tasks,
)

# Rows of one recording each, for most classes: halved in time.
HALVED_IN_TIME = {"cwru_raw", "cwru_spectra", "mfpt_bearings"}


def make_task(sources=(0, 1), target=2):
    return Task("made: a > b", "made", "", "made", "left out", sources, target)


def make_cut(seed=0, n=900, n_classes=3, n_domains=3, n_units=60, **more):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 4)), rng.integers(n_classes, size=n)
    units = (rng.integers(n_units, size=n),)
    names = [f"domain {k}" for k in range(n_domains)]
    return Cut(X, y, rng.integers(n_domains, size=n), names, units=units, **more)


def test_the_list_is_large_enough_and_keeps_its_rules():
    tasks = read_tasks()
    assert len({task.cluster for task in tasks}) >= 45
    assert len(tasks) >= 250
    assert len({task.name for task in tasks}) == len(tasks)
    assert max(Counter(task.collection for task in tasks).values()) <= MAX_TASKS
    assert LIST.stat().st_size < 100_000
    for task in tasks:
        assert task.mark in ("shift", "control")
        assert task.kind == ("pair" if len(task.sources) == 1 else "left out")
        assert task.target not in task.sources
        assert 30 <= task.n_source <= 600
        assert task.n_target + task.n_test >= 30
        assert max(task.n_target, task.n_test) <= 600
        assert task.n_classes >= 2
        assert 0 <= min(task.none, task.within) <= max(task.none, task.within) <= 1
    shared = {task.cluster for task in tasks if task.collection.startswith("vowels")}
    assert shared == {"vowels"}


def test_a_written_list_reads_back(tmp_path):
    tasks = read_tasks()
    write_tasks(tasks, tmp_path / "tasks.csv")
    assert (tmp_path / "tasks.csv").read_bytes() == LIST.read_bytes()
    assert read_tasks(tmp_path / "tasks.csv") == tasks


def test_no_unit_is_on_two_sides():
    for seed in range(5):
        cut = make_cut(seed)
        source, target, test = draw_rows(make_task(), cut, 600)
        units = [set(cut.units[0][rows]) for rows in (source, target, test)]
        assert not units[0] & units[1]
        assert not units[0] & units[2]
        assert not units[1] & units[2]
        assert set(cut.domain[source]) == {0, 1}
        assert set(cut.domain[target]) == set(cut.domain[test]) == {2}


def test_units_of_both_sides_are_shared_out():
    unit = np.repeat(np.arange(10), 4)
    source, target = np.arange(0, 40, 2), np.arange(1, 40, 2)
    kept = keep_apart(source, target, unit, np.random.RandomState(0))
    in_source, in_target = (set(unit[rows]) for rows in kept)
    assert len(in_source) == len(in_target) == 5
    assert not in_source & in_target
    assert [len(rows) for rows in kept] == [10, 10]
    apart = keep_apart(np.arange(20), np.arange(20, 40), unit, np.random.RandomState(0))
    assert [len(rows) for rows in apart] == [20, 20]


def test_halves_have_the_same_classes():
    y = np.repeat([0, 1, 2], [7, 20, 101])
    adapted = halve(y, [], np.random.RandomState(0))
    counts = np.bincount(y[adapted]), np.bincount(y[~adapted])
    assert np.abs(counts[0] - counts[1]).max() <= 1
    assert abs(adapted.sum() - (~adapted).sum()) <= 1


def test_halves_have_whole_units_of_the_coarsest_kind_that_will_do():
    y = np.tile([0, 1], 60)
    person, recording = np.repeat([0, 1], 60), np.repeat(np.arange(12), 10)
    adapted = halve(y, [person, recording], np.random.RandomState(0))
    assert {adapted[person == one].mean() for one in (0, 1)} == {0, 1}
    alone = halve(y, [np.zeros(120, dtype=int), recording], np.random.RandomState(0))
    assert {alone[recording == one].mean() for one in range(12)} == {0, 1}
    assert alone.sum() == 60


def test_a_single_recording_of_each_class_is_halved_in_time():
    y = np.repeat([0, 1, 2], 11)
    adapted = halve(y, [y], np.random.RandomState(0))
    for k in range(3):
        assert adapted[y == k].tolist() == [True] * 6 + [False] * 5


def test_thinned_rows_are_nested_and_in_proportion():
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2], [2000, 700, 50])
    y = (rng.uniform(size=2750) < 0.2).astype(int)
    rows = np.arange(2750)
    few, many = (thin(rows, domain, y, n, np.random.RandomState(1)) for n in (600, 1500))
    assert (len(few), len(many)) == (600, 1500)
    assert set(few) <= set(many)
    assert np.bincount(domain[few]).tolist() == [275, 275, 50]
    for one in (0, 1):
        share = y[domain == one].mean()
        assert y[few][domain[few] == one].mean() == pytest.approx(share, abs=2 / 275)
    assert thin(rows, domain, y, 5000, np.random.RandomState(1)) is rows


def test_classes_that_the_source_lacks_are_left_out():
    cut = make_cut(n_classes=4)
    y = cut.y.copy()
    y[(cut.domain == 0) & (y == 3)] = 2
    once = np.flatnonzero(cut.domain == 0)[0]
    y[once] = 3  # one row is too few
    cut = cut._replace(y=y, units=())
    parts = draw_rows(make_task(sources=(0,)), cut, 600)
    assert all(set(y[rows]) == {0, 1, 2} for rows in parts)


def test_missing_values_become_medians_of_the_source(monkeypatch):
    cut = make_cut(n=400)
    X = cut.X.copy()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.2] = np.nan
    X[:, 3] = np.nan
    cut = cut._replace(X=X)
    monkeypatch.setattr("covshift_bench.tasks.read_cuts", lambda data, collection: {"": cut})
    task = make_task()
    drawn = draw_task(task, "nowhere")
    source, target, test = draw_rows(task, cut, SIZES["standard"])
    median = [np.median(X[source, j][~np.isnan(X[source, j])]) for j in range(3)] + [0]
    for found, rows in ((drawn.X_source, source), (drawn.X_target, target), (drawn.X_test, test)):
        for j in range(4):
            expected = np.where(np.isnan(X[rows, j]), median[j], X[rows, j])
            np.testing.assert_array_equal(found[:, j], expected)
    np.testing.assert_array_equal(drawn.y_target, cut.y[target])
    assert set(drawn.source_domain) == {0, 1}
    assert set(drawn.target_domain) == {-1}
    hidden = drawn.without_target_labels()
    assert hidden.y_test is None
    assert hidden.y_target is None


def test_marks_are_published_or_measured():
    tasks = [
        make_task()._replace(collection="movies", none=0.5, within=0.9),  # published: control
        make_task()._replace(collection="new", none=0.5, within=0.6),
        make_task()._replace(collection="new", none=0.5, within=0.52),
        make_task()._replace(collection="other", none=0.5, within=0.54),
    ]
    assert [task.mark for task in mark_tasks(tasks)] == ["control", "shift", "shift", "control"]


def test_made_up_tasks_have_the_same_form():
    tasks = made_up_tasks(2)
    assert len({task.name for task in tasks}) == len(tasks)
    assert {task.cut for task in tasks} == {"selection", "diagnosis"}
    for task in (tasks[0], tasks[-1], tasks[len(tasks) // 2 - 1]):
        drawn = draw_task(task)
        assert len(drawn.X_source) == len(drawn.y_source) == len(drawn.source_domain)
        assert len(drawn.X_target) == len(drawn.y_target) == len(drawn.target_domain)
        assert len(drawn.X_test) == len(drawn.y_test)
        assert set(drawn.target_domain) == {-1}
        assert task.mark == "unknown"


def checksum(drawn):
    """Of all rows, without their last bits, which differ between machines."""
    total = 0
    for values in drawn:
        rounded = np.round(values.astype(np.float64), 6) + 0.0  # no negative zeros
        total = zlib.crc32(rounded.astype("<f8").tobytes(), total)
    return f"{total:08x}"


@pytest.mark.parametrize(
    ("family", "standard", "large"),
    [
        ("affine", "40aaa9e8", "40aaa9e8"),
        ("selection_bias", "82fe4a65", "82fe4a65"),
        ("vowels_of_speakers", "5292d7a2", "e5dbd509"),
        ("nothing_but_own_signs", "4d7ee0bf", "bd2ffb1a"),
        ("outer_ring_alone", "8a599511", "d44e9247"),
        ("periodic, printed", "70c2eb9e", "70c2eb9e"),
        ("diluted_samples", "77986685", "9bb64288"),
        ("clocks", "606307ec", "b3363dec"),
        ("bent_overlapping", "0fa5df63", "853417cf"),
    ],
)
def test_made_up_tasks_are_drawn_as_ever(family, standard, large):
    """Results name tasks: another draw under the same name would mix up results."""
    task = next(one for one in made_up_tasks(3) if one.name == f"made up: {family}, seed 2")
    assert checksum(draw_task(task)) == standard
    assert checksum(draw_task(task, size="large")) == large


# The collections themselves, where they are


@pytest.fixture
def data():
    if "COVSHIFT_DATA" not in os.environ:
        pytest.skip("COVSHIFT_DATA, the folder with the public data sets, is not set")
    folder = Path(os.environ["COVSHIFT_DATA"])
    if not (folder / "real_domains").is_dir():
        pytest.skip("COVSHIFT_DATA has no folder real_domains")
    return str(folder)


def test_the_list_follows_from_the_files(data):
    unmarked = [t._replace(mark="unknown", none=0.0, within=0.0) for t in read_tasks()]
    assert [t._replace(none=0.0, within=0.0) for t in declare_tasks(data)] == unmarked


def test_rows_of_the_real_tasks_keep_the_rules(data):
    for task in read_tasks():
        cut = read_cuts(data, task.collection)[task.cut]
        parts = draw_rows(task, cut, SIZES["standard"])
        source, target, test = parts
        assert not set(target) & set(test)
        assert [len(rows) for rows in parts] == [task.n_source, task.n_target, task.n_test]
        assert set(cut.domain[source]) <= set(task.sources)
        assert set(cut.domain[target]) == set(cut.domain[test]) == {task.target}
        assert set(cut.y[target]) | set(cut.y[test]) <= set(cut.y[source])
        if cut.ordered:
            assert max(task.sources) < task.target
        units = [[set(unit[rows]) for rows in parts] for unit in cut.units]
        assert all(not (one[0] & one[1] or one[0] & one[2]) for one in units[:1])
        if task.collection not in HALVED_IN_TIME and units:
            assert any(not one[1] & one[2] for one in units)


@pytest.mark.parametrize(
    "name", ["vowels_pb52: men > women", "chess: all before > games, block 8 to 11"]
)
def test_measured_figures_can_be_measured_again(data, name):
    task = next(task for task in read_tasks() if task.name == name)
    assert measure_gap(draw_task(task, data)) == pytest.approx((task.none, task.within), abs=0.005)


def test_the_large_size_contains_the_standard_one(data):
    task = next(task for task in read_tasks() if task.name == "abalone: female > male")
    drawn = [draw_task(task, data, size) for size in SIZES]
    assert [len(one.X_source) for one in drawn] == [600, 1307]
    assert len(drawn[1].X_test) == 764
