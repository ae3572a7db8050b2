"""The bearings' study: windows of made-up files, tasks, trials, and the command."""

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from covshift import SegmentSparseFiltering
from covshift.paper.bearings import study as study_module
from covshift.paper.bearings.protocol import (
    FAULTS,
    LENGTH,
    LOADS,
    N_WINDOWS,
    SENSORS,
    SHIFTS,
    SIZES,
    TASKS,
    BearingWindows,
    read_windows,
)
from covshift.paper.bearings.report import _draw_waveforms
from covshift.paper.bearings.study import SYSTEMS, _run_on_task, _strongest_filters, declare
from covshift.warning_filters import ignored_warnings
from tests.cli.user_files import run


def make_windows(n=4, length=200, seed=0):
    """Faults ring at frequencies of their own, louder with the load and at the fan end."""
    rng, t = np.random.default_rng(seed), np.arange(length)
    rows, columns = [], []
    for sensor in SENSORS:
        for i, fault in enumerate(FAULTS):
            for j, size in enumerate(SIZES):
                for load in LOADS:
                    gain = (1 + load) * (1 + SENSORS.index(sensor))
                    for number in range(n):
                        ringing = np.sin((0.3 + 0.3 * (3 * i + j)) * t + rng.uniform(0, 6))
                        rows.append(gain * (ringing + rng.normal(0, 0.2, length)))
                        columns.append((fault, size, load, sensor, int(number >= n // 2)))
    fault, size, load, sensor, half = map(np.array, zip(*columns, strict=True))
    return BearingWindows(np.float32(rows), fault, size, load, sensor, half)


def write_file(path, windows, **changes):
    """A file of windows, as other people publish them."""
    names = {
        "y_fault": (list(FAULTS), windows.fault),
        "domain_size": ([f"{size / 1000:.3f} in" for size in SIZES], windows.size),
        "domain_load": ([f"{load} hp" for load in LOADS], windows.load),
        "domain_sensor": (list(SENSORS), windows.sensor),
    }
    arrays = {"X": np.round(windows.X * 1000).astype(np.int16), "scale": 0.001}
    for key, (texts, values) in names.items():
        arrays[key] = np.unique(values, return_inverse=True)[1]
        arrays[f"{key}_names"] = json.dumps(texts)
    arrays |= {"recording_half": windows.half} | changes
    np.savez(path, **{name: one for name, one in arrays.items() if one is not None})
    return path


def write_folder(folder, missing=()):
    """Files as a mirror of the Case Western site has them; samples say where they stand."""
    rng = np.random.default_rng(0)
    speeds = dict(zip(LOADS, (1797, 1772, 1750, 1730), strict=True))
    for fault in FAULTS:
        for size in SIZES:
            for load in LOADS:
                name = f"{speeds[load]}_{'OR@6' if fault == 'OR' else fault}_{size}_DE12.npz"
                if name not in missing:
                    start = np.arange(LENGTH * N_WINDOWS + 7.0)
                    arrays = {"DE": start + rng.uniform(), "FE": -start - rng.uniform()}
                    np.savez(folder / name, **{k: v[:, None] for k, v in arrays.items()})
    return folder


def test_windows_of_a_file(tmp_path):
    windows = make_windows()
    found = read_windows(write_file(tmp_path / "windows.npz", windows))
    np.testing.assert_allclose(found.X, windows.X, atol=6e-4)
    for name in ("fault", "size", "load", "sensor", "half"):
        assert getattr(found, name).tolist() == getattr(windows, name).tolist()


def test_windows_of_a_folder(tmp_path):
    found = read_windows(write_folder(tmp_path))
    n_recordings = len(FAULTS) * len(SIZES) * len(LOADS)
    assert found.X.shape == (2 * n_recordings * N_WINDOWS, LENGTH)
    assert len(set(found.recording)) == n_recordings
    first = found.X[:, 0]
    assert ((first >= 0) == (found.sensor == "DE")).all()
    # The second half of a recording begins with its window 25.
    assert (found.half == (np.abs(first) >= LENGTH * N_WINDOWS / 2)).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_fault": None}, "has no array y_fault"),
        ({"domain_load_names": "oops"}, "cannot be read"),
        ({"domain_load": np.zeros(288, int)}, "lacks 27 recordings of the sensor DE"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, changes, words):
    path = write_file(tmp_path / "windows.npz", make_windows(), **changes)
    with pytest.raises(ValueError, match=words) as caught:
        read_windows(path)
    assert str(path) in str(caught.value)


def test_folders_that_cannot_be_used(tmp_path):
    write_folder(tmp_path, missing=["1797_IR_7_DE12.npz"])
    with pytest.raises(ValueError, match=r"lacks 1 recordings of the sensor DE \(IR007, 0 hp"):
        read_windows(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_windows(tmp_path / "nowhere")


def test_tasks_keep_sides_apart():
    windows = make_windows()
    assert [sum(task.shift == shift for task in TASKS) for shift in SHIFTS] == [4, 2, 6]
    for task in TASKS:
        source, target, labels = task.split(windows)
        assert not (source & target).any()
        assert set(labels[source]) == set(labels[target])
        assert len(set(labels[source])) == (3 if task.shift == "fault sizes" else 9)
        if task.shift != "sensors":  # both sensors record the same run
            assert not set(windows.recording[source]) & set(windows.recording[target])


@pytest.mark.parametrize("system", ["none", "standardize", "SF", "segments"])
def test_systems_on_a_task(system):
    windows, task = make_windows(), TASKS[0]
    result = _run_on_task(windows, task, system, seed=0)
    target = task.split(windows)[1]
    assert set(result["recordings"]) == set(windows.recording[target])
    assert result["accuracy"] == np.mean(list(result["recordings"].values()))
    if system == "standardize":  # another gain at all frequencies
        assert result["accuracy"] == 1.0


def test_filters_are_drawn_in_their_largest_unit():
    filters = _strongest_filters(make_windows(n=2), seed=0)
    assert filters.shape == (study_module.N_DRAWN, 100)
    np.testing.assert_allclose(np.abs(filters).max(axis=1), 1)


def test_drawn_waveforms_are_covariances_of_segments_and_responses():
    windows = make_windows(n=2)
    drawn = _strongest_filters(windows, seed=0)
    own = windows.X[(windows.sensor == "DE") & (windows.load == 0)]
    with ignored_warnings(ConvergenceWarning):
        filters = SegmentSparseFiltering(study_module.N_FILTERS, random_state=0).fit(own)
    segments = own.reshape(-1, 100) - own.reshape(-1, 100).mean(axis=0)
    best = filters.transform(own).mean(axis=0).argmax()
    naive = np.mean([(filters.components_[best] @ one) * one for one in segments], axis=0)
    np.testing.assert_allclose(drawn[0], naive / np.abs(naive).max(), atol=1e-6)


def instant_trials(trials, path):
    """Results of trials, not measured but made up."""
    found = []
    for trial in trials:
        settings = trial.settings
        if settings["kind"] == "filters":
            found.append({"filters": np.eye(study_module.N_DRAWN, 100).tolist()})
            continue
        score = {"none": 0.5, "ranks": 0.9}.get(settings["system"], 0.7)
        names = [f"IR007, {load} hp" for load in LOADS]
        recordings = dict(zip(names, [score - 0.1, score, score, score + 0.1], strict=True))
        more = {"auto": {"chosen": ["ranks + logistic"], "advice": "Advice: use ranks + logistic."}}
        found.append(
            {"accuracy": score, "recordings": recordings} | more.get(settings["system"], {})
        )
    return found


def test_command(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(study_module, "run_bearing_trials", instant_trials)
    data, out = write_file(tmp_path / "windows.npz", make_windows()), tmp_path / "out"
    result = run("reproduce", "bearings", "--data", data, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert f"{1 + len(SYSTEMS) * len(TASKS)} trials" in result.stdout
    assert "…" not in result.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    for text in ("across loads, ranks is best with 0.900 (automatic choice 0.700)",
                 "Learned filters", "ranks + logistic", "load 0 → 3", "+0.400"):  # fmt: skip
        assert text in page
    # Other systems are other trials of the same study.
    result = run(
        "reproduce", "bearings", "--data", data, "--out", out, "--system", "none", "--system", "SF"
    )
    assert result.exit_code == 0, result.output
    assert "ranks" not in result.stdout


def test_refused(tmp_path):
    nowhere = tmp_path / "nowhere"
    for options, word in ([], "does not exist"), (["--system", "magic"], "unknown name 'magic'"):
        result = run(
            "reproduce", "bearings", "--out", tmp_path / "out", "--data", nowhere, *options
        )
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1
        assert word in result.stderr


def test_declared_trials_have_keys_of_their_own():
    trials = [trial for task in declare("data", 0) for trial in task]
    assert len({trial.key for trial in trials}) == len(trials) == 1 + len(SYSTEMS) * len(TASKS)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_waveforms_in_time_and_frequency(n):
    waveforms = np.sin(2 * np.pi * 3 * np.arange(100) / 100 * np.arange(1, n + 1)[:, None])
    figure = _draw_waveforms(waveforms, rate=1000)
    shown = [axes for axes in figure.axes if axes.lines]
    assert len(shown) == 2 * n
    in_time, in_frequency = (
        [axes for axes in shown if axes.get_xlabel() == unit] for unit in ("ms", "kHz")
    )
    for k, (above, below) in enumerate(zip(in_time, in_frequency, strict=True), start=1):
        np.testing.assert_allclose(above.lines[0].get_ydata(), waveforms[k - 1])
        frequencies, amplitudes = below.lines[0].get_data()
        assert frequencies[np.argmax(amplitudes)] == pytest.approx(0.03 * k)  # 30 Hz and multiples
