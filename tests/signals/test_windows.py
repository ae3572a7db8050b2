"""Windows of recordings: which samples, whose, and how much memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from covshift.signals import check_recordings_apart, cut_windows, iter_windows
from tests.twins.signal_twins import naive_windows

rng = np.random.default_rng(0)
SETS = {
    "one channel": [rng.normal(size=n) for n in (50, 20, 33)],
    "two channels": [rng.normal(size=(n, 2)) for n in (50, 20, 33)],
    "numbers of samples": [np.arange(40), list(range(60))],
    "int16": [np.arange(40, dtype=np.int16), np.arange(25, dtype=np.int16)],
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("overlap", "step"), [(0.0, 8), (0.5, 4), (0.25, 6), (0.99, 1)])
def test_equals_the_naive_twin(name, overlap, step):
    windows = cut_windows(SETS[name], 8, overlap=overlap)
    rows, numbers, starts = naive_windows(SETS[name], 8, step)
    np.testing.assert_array_equal(windows.X, rows)
    np.testing.assert_array_equal(windows.recording, numbers)
    np.testing.assert_array_equal(windows.start, starts)


@pytest.mark.parametrize("block_size", [1, 3, 1000])
def test_blocks_are_the_whole_in_parts(block_size):
    whole = cut_windows(SETS["two channels"], 8, overlap=0.5)
    blocks = list(iter_windows(SETS["two channels"], 8, overlap=0.5, block_size=block_size))
    assert max(len(block.X) for block in blocks) <= block_size
    for parts, all_of_it in zip(zip(*blocks, strict=True), whole, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), all_of_it)
    assert all(len(set(block.recording)) == 1 for block in blocks)


def test_at_most_so_many_of_each_recording():
    windows = cut_windows(SETS["one channel"], 8, max_windows=3)
    assert np.bincount(windows.recording).tolist() == [3, 2, 3]


def test_types_are_kept_and_windows_are_copies():
    recording = np.arange(40, dtype=np.int16)
    windows = cut_windows([recording], 8, overlap=0.5)
    assert windows.X.dtype == np.int16
    windows.X[:] = 0
    assert recording[-1] == 39
    (block,) = iter_windows([recording], 8)
    block.X[:] = 0
    assert recording[-1] == 39


def test_a_memory_map_is_read_block_by_block(tmp_path):
    path, n = tmp_path / "long.bin", 4_000_000
    np.memmap(path, np.float64, "w+", shape=(n,))[:] = 1.0
    recording = np.memmap(path, np.float64, "r")
    tracemalloc.start()
    total = sum(block.X.sum() for block in iter_windows([recording], 1000, block_size=64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == n
    assert peak < 4 * 64 * 1000 * 8  # of 32 MB


def resident_pages():
    """Kilobytes of files that are mapped and resident, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counted on Linux only")
def test_pages_of_a_memory_map_do_not_stay(tmp_path):
    path = tmp_path / "long.bin"
    np.memmap(path, np.float64, "w+", shape=(8_000_000,))[:] = 1.0
    recording = np.memmap(path, np.float64, "r")
    before = resident_pages()
    most = max(resident_pages() for _ in iter_windows([recording], 1000, block_size=64))
    assert most - before < 16_000  # of 64,000
    assert recording[::1000].sum() == 8000


def test_changes_to_a_private_map_stay(tmp_path):
    path = tmp_path / "long.bin"
    np.memmap(path, np.float64, "w+", shape=(100,))[:] = 1.0
    recording = np.memmap(path, np.float64, "c")
    recording[50] = 7.0
    (block,) = iter_windows([recording], 100)
    assert block.X[0, 50] == recording[50] == 7.0


@pytest.mark.parametrize(
    ("recordings", "options", "error", "match"),
    [
        (np.zeros(10), {}, TypeError, r"\[recording\]"),
        ([], {}, ValueError, "empty"),
        ([np.zeros(10), np.zeros(3)], {}, ValueError, "Recording 1 has 3 samples, fewer than"),
        ([np.zeros((10, 2)), np.zeros(10)], {}, ValueError, "Recording 1 has 1 channels"),
        ([np.zeros((2, 10))], {}, ValueError, "transpose"),
        ([np.zeros((2, 2, 2))], {}, ValueError, r"shape \(2, 2, 2\)"),
        ([np.array(["a"] * 10)], {}, TypeError, "Recording 0 must hold numbers"),
        ([np.zeros(10)], {"overlap": 1.0}, ValueError, "overlap"),
        ([np.zeros(10)], {"overlap": -0.1}, ValueError, "overlap"),
        ([np.zeros(10)], {"length": 0}, ValueError, "length"),
        ([np.zeros(10)], {"length": 2.5}, TypeError, "length"),
        ([np.zeros(10)], {"max_windows": 0}, ValueError, "max_windows"),
    ],
)
def test_bad_recordings(recordings, options, error, match):
    settings = {"length": 5, **options}
    with pytest.raises(error, match=match):
        cut_windows(recordings, **settings)
    with pytest.raises(error, match=match):
        iter_windows(recordings, **settings)  # before the first block is asked for


def test_bad_blocks():
    with pytest.raises(ValueError, match="block_size"):
        iter_windows([np.zeros(10)], 5, block_size=0)


def test_recordings_on_several_sides_are_named():
    check_recordings_apart(["a", "a", "b"], [True, True, False])
    with pytest.raises(ValueError, match="Recording b has windows on 2 sides: 0, 1"):
        check_recordings_apart(["a", "b", "b"], [0, 1, 0])
    with pytest.raises(ValueError, match="one value per window"):
        check_recordings_apart([0, 1], [0])


def test_what_is_given_per_recording_never_crosses_sides():
    windows = cut_windows(SETS["one channel"], 8, overlap=0.9)
    sides = np.array([0, 0, -1])[windows.recording]
    check_recordings_apart(windows.recording, sides)
    assert set(sides) == {0, -1}
