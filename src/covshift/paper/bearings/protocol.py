"""The bearings' study as data: windows of nine faults, and tasks across three kinds of shift.

Windows have 1,200 samples at 12 kHz; each recording gives its first 50, which do not overlap. The
faults are those of the inner race, of the outer race at 6 o'clock and of a ball, of 7, 14 and 21
mils, at loads of 0 to 3 hp, each seen by the sensors at the drive end (DE) and the fan end (FE).
Healthy recordings are not among them: at the usual place they have another sampling rate.
"""

import hashlib
import json
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from covshift.datasets import load_bearings
from covshift.datasets.collection import UNREADABLE_ARRAYS, damaged_data
from covshift.kernels.array_types import BoolArray
from covshift.signals import cut_windows

RATE, LENGTH, N_WINDOWS = 12_000, 1200, 50
SENSORS = ("DE", "FE")
FAULTS, SIZES, LOADS = ("B", "IR", "OR"), (7, 14, 21), (0, 1, 2, 3)
ARRAYS = ("X", "y_fault", "domain_size", "domain_load", "domain_sensor", "recording_half")


class BearingWindows(NamedTuple):
    """Windows, and what was recorded; arrays have one entry per window."""

    X: Any  # (n, LENGTH)
    fault: Any
    size: Any  # mils
    load: Any  # hp
    sensor: Any
    half: Any  # 0: first half of its recording, 1: second half

    @property
    def recording(self) -> Any:
        """Name of the run of the machine: both sensors record the same run."""
        parts = zip(self.fault, self.size, self.load, strict=True)
        return np.array([f"{fault}{size:03d}, {load} hp" for fault, size, load in parts])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of all that trials depend on: equal windows have equal fingerprints."""
        parts = b"".join(np.ascontiguousarray(one).tobytes() for one in self)
        return hashlib.sha256(parts).hexdigest()[:16]


class BearingTask(NamedTuple):
    """A shift: which windows are the source, which are the target, and what is predicted."""

    shift: str
    source: dict[str, Any]
    target: dict[str, Any]
    labels: tuple[str, ...] = ("fault", "size")

    @property
    def name(self) -> str:
        """Differences, for a table."""
        changed = [key for key in self.source if self.source[key] != self.target[key]]
        before, after = (" ".join(str(side[key]) for key in changed) for side in self[1:3])
        return f"{before} → {after}"

    def split(self, windows: BearingWindows) -> tuple[BoolArray, BoolArray, Any]:
        """Return which windows are source and target, and the labels of all windows."""
        sides = []
        for side in (self.source, self.target):
            found = np.ones(len(windows.X), dtype=bool)
            for key, value in side.items():
                found &= getattr(windows, key) == value
            sides.append(found)
        columns = [getattr(windows, name).astype(str) for name in self.labels]
        labels = np.array([" ".join(values) for values in zip(*columns, strict=True)])
        return sides[0], sides[1], labels


def _across_loads(before: int, after: int) -> BearingTask:
    return BearingTask("loads", {"sensor": "DE", "load": before}, {"sensor": "DE", "load": after})


TASKS = (
    *(_across_loads(*pair) for pair in ((0, 3), (1, 3), (0, 2), (3, 0))),
    *(
        BearingTask("sensors", {"load": 0, "sensor": before}, {"load": 0, "sensor": after})
        for before, after in permutations(SENSORS)
    ),
    # Of all loads; the first halves of the recordings, as in the first measurement of this table.
    *(
        BearingTask(
            "fault sizes",
            {"sensor": "DE", "half": 0, "size": before},
            {"sensor": "DE", "half": 0, "size": after},
            ("fault",),
        )
        for before, after in permutations(SIZES, 2)
    ),
)
SHIFTS = tuple(dict.fromkeys(task.shift for task in TASKS))


def read_windows(path: str | Path) -> BearingWindows:
    """Return the windows of the protocol: of a folder of Case Western files, or of a file of them.

    Parameters
    ----------
    path : path
        Folder, as `load_bearings` takes it, with all 36 recordings of the nine faults; or a file
        ``.npz`` with windows (``X``, times ``scale`` if there is one) and per window ``y_fault``,
        ``domain_size``, ``domain_load`` and ``domain_sensor``, which are numbers with names
        beside them (``y_fault_names``, ..., JSON lists), and ``recording_half``.

    Returns
    -------
    BearingWindows

    Raises
    ------
    OSError, ValueError
        If recordings are missing or damaged; the message names them.
    """
    path = Path(path)
    windows = _read_file(path) if path.suffix == ".npz" else _cut_folder(path)
    runs = {f"{one}{size:03d}, {load} hp" for one in FAULTS for size in SIZES for load in LOADS}
    for sensor in SENSORS:
        missing = sorted(runs - set(windows.recording[windows.sensor == sensor]))
        if missing:
            raise ValueError(
                f"{path} lacks {len(missing)} recordings of the sensor {sensor} ({missing[0]} is "
                f"the first); the study needs all {len(runs)}."
            )
    return windows


@lru_cache(maxsize=1)
def read_declared_windows(path: str, fingerprint: str) -> BearingWindows:
    """Read the windows of the bearings' protocol for trials declared on them; once in a process."""
    windows = read_windows(path)
    if windows.fingerprint != fingerprint:
        raise ValueError(f"{path} has changed since the run began: start again.")
    return windows


def _cut_folder(folder: Path) -> BearingWindows:
    bearings = load_bearings(folder, channels=SENSORS)
    labels = [label.removesuffix("@6") for label in bearings.target]
    wanted = {f"{fault}{size:03d}" for fault in FAULTS for size in SIZES}
    used = [number for number, label in enumerate(labels) if label in wanted]
    if not used:
        raise ValueError(f"{folder} has none of the faults of the study: {sorted(wanted)}.")
    recordings = [bearings.recordings[number] for number in used]
    windows = cut_windows(recordings, LENGTH, max_windows=N_WINDOWS)
    of = np.array(used)[windows.recording]
    fault = np.array([label.rstrip("0123456789") for label in labels])[of]
    both = len(SENSORS) * [of]
    halves = (windows.start >= LENGTH * (N_WINDOWS // 2)).astype(int)
    return BearingWindows(
        windows.X.reshape(len(of), len(SENSORS), LENGTH).swapaxes(0, 1).reshape(-1, LENGTH),
        np.concatenate([fault] * len(SENSORS)),
        np.concatenate([bearings.size[rows] for rows in both]).astype(int),
        np.concatenate([bearings.load[rows] for rows in both]).astype(int),
        np.repeat(SENSORS, len(of)),
        np.concatenate([halves] * len(SENSORS)),
    )


def _read_file(path: Path) -> BearingWindows:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        absent = [name for name in ARRAYS if name not in arrays]
        if absent:
            raise damaged_data(path, f"has no array {', '.join(absent)}")
        names = {key: json.loads(str(arrays[f"{key}_names"])) for key in ARRAYS[1:5]}
        fault, size, load, sensor = (np.array(names[key])[arrays[key]] for key in ARRAYS[1:5])
        return BearingWindows(
            np.float32(arrays["X"] * arrays.get("scale", 1.0)),
            fault,
            # "0.007 in" is 7 mils, "3 hp" is 3.
            np.array([round(1000 * float(text.split()[0])) for text in size]),
            np.array([int(text.split()[0]) for text in load]),
            sensor,
            arrays["recording_half"].astype(int),
        )
    except UNREADABLE_ARRAYS as error:
        if str(path) in str(error):
            raise
        raise damaged_data(path, f"cannot be read ({error})") from error
