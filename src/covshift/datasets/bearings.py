"""Vibration of bearings: Case Western Reserve, MFPT, or a folder of one's own with a table."""

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.io import loadmat, wavfile
from sklearn.utils import Bunch

from covshift.datasets.collection import UNREADABLE_ARRAYS, damaged_data, find_folder
from covshift.kernels.array_types import FloatArray
from covshift.shared_docs import documented_like

TABLE = "recordings.csv"
# Speeds of the Case Western rig, by load in horsepower; files mostly hold the measured one.
NOMINAL_RPM = {0: 1797, 1: 1772, 2: 1750, 3: 1730}
# Numbers of the original files, 12 kHz at the drive end: fault, size in mils and, of the outer
# race, the place of the load zone; then the files at 0, 1, 2 and 3 hp.
CWRU_NUMBERS = {
    "Normal": (97, 98, 99, 100),
    "IR007": (105, 106, 107, 108),
    "B007": (118, 119, 120, 121),
    "OR007@6": (130, 131, 132, 133),
    "OR007@3": (144, 145, 146, 147),
    "OR007@12": (156, 158, 159, 160),
    "IR014": (169, 170, 171, 172),
    "B014": (185, 186, 187, 188),
    "OR014@6": (197, 198, 199, 200),
    "IR021": (209, 210, 211, 212),
    "B021": (222, 223, 224, 225),
    "OR021@6": (234, 235, 236, 237),
    "OR021@3": (246, 247, 248, 249),
    "OR021@12": (258, 259, 260, 261),
    "IR028": (3001, 3002, 3003, 3004),
    "B028": (3005, 3006, 3007, 3008),
}
OF_NUMBER = {
    number: (label, load)
    for label, numbers in CWRU_NUMBERS.items()
    for load, number in enumerate(numbers)
}
# "IR007_0.mat", "OR007@6_1.mat", "Normal_0.mat": fault, size, place, load.
BY_LOAD = re.compile(r"(?:(IR|OR|B)(\d{3})(?:@(\d+))?|(Normal))_([0-3])", re.IGNORECASE)
# "1772_IR_7_DE12.npz", "1730_OR@6_21_DE12.npz", "1797_Normal.npz": speed, fault, place, size.
BY_SPEED = re.compile(r"(\d{4})_(?:(IR|OR|B)(?:@(\d+))?_(\d+)_DE12|(Normal))", re.IGNORECASE)
MFPT = re.compile(r"(baseline|InnerRaceFault|OuterRaceFault)(?:_vload)?_(\d+)", re.IGNORECASE)
MFPT_LABELS = {"baseline": "Normal", "innerracefault": "IR", "outerracefault": "OR"}

WHERE = (
    "It should hold files of Case Western Reserve (105.mat, IR007_0.mat or 1797_IR_7_DE12.npz), "
    f"of MFPT (InnerRaceFault_vload_1.mat), or your own with a table {TABLE}, whose columns "
    "are file, label and perhaps load, rpm, rate and domain."
)
CWRU_TEXT = """Bearings of Case Western Reserve University

Vibration of a 2 hp motor at loads of 0 to 3 hp, with faults of 7, 14, 21 or 28 mils (0.001 inch) in
the inner race (IR), the outer race (OR, at 3, 6 or 12 o'clock) or a ball (B) of the drive-end
bearing, 12,000 samples a second; healthy recordings (Normal) are taken to have 48,000. Each fault
at each load is one recording: a class cannot be distinguished from its recording.

Case Western Reserve University Bearing Data Center. No license is stated."""
MFPT_TEXT = """Bearings of the Society for Machinery Failure Prevention Technology (MFPT)

Vibration of a test rig at a shaft rate of 25 Hz and loads of 0 to 300 lb: healthy (Normal), faults
of the inner (IR) and of the outer race (OR). Sampled at 97,656 or 48,828 values a second.

E. Bechhoefer, "Condition based maintenance fault database for testing diagnostics and prognostic
algorithms", MFPT Data, 2013."""
OWN_TEXT = "Recordings of {folder}, described by {table}."


class Recording(NamedTuple):
    """One recording: samples, and what is known of it; NaN where that is nothing."""

    file: str
    samples: Any
    label: str
    domain: str
    load: float
    rpm: float
    rate: float
    size: float = np.nan


@documented_like(find_folder)
def load_bearings(
    folder: str | os.PathLike[str],
    *,
    table: str = TABLE,
    channels: Sequence[str] = ("DE",),
) -> Bunch:
    r"""Load recordings of bearings, or of any machine, from a folder and those below it.

    Parameters
    ----------
    folder : path
        Folder of one of three kinds, recognized by what it holds:

        - your own recordings with a table: one row per recording, columns ``file`` and ``label``,
          and where known ``load``, ``rpm`` (revolutions per minute), ``rate`` (samples per second)
          and ``domain`` (default: the load). Files are ``.npy``, ``.npz``, ``.mat``, ``.csv`` or
          ``.wav``; an ``.npz`` or ``.mat`` file with several arrays needs a column ``variable``,
          which names one, or several as channels, with spaces between them. A first column of a
          ``.csv`` file that never falls is taken for the time and left out.
        - files of Case Western Reserve, 12 kHz at the drive end: ``105.mat``, ``IR007_0.mat`` or
          ``1797_IR_7_DE12.npz``;
        - files of MFPT: ``baseline_1.mat``, ``InnerRaceFault_vload_1.mat``, ...
    table : str, default="recordings.csv"
        Name of the table.
    channels : sequence of str, default=("DE",)
        Sensors of the Case Western files: "DE" (drive end), "FE" (fan end), "BA" (base).

    Returns
    -------
    Bunch
        ``recordings``, a list of arrays of shape (n_samples,) or (n_samples, n_channels), for
        `covshift.signals.cut_windows`; and one entry per recording in ``target`` (labels),
        ``domain``, ``load``, ``rpm``, ``rate``, ``size`` (of the fault, mils) and ``file_names``;
        NaN is unknown. ``domain_names`` and ``DESCR``. ``.npy`` and ``.wav`` files are memory maps,
        which may be larger than memory.

    Notes
    -----
    **Cost**: linear in the size of the files, time and memory, except for memory maps.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from covshift.datasets import load_bearings
    >>> from covshift.signals import cut_windows
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("monday", "tuesday"):
    ...     np.save(folder / f"{name}.npy", np.random.default_rng(0).normal(size=5000))
    >>> table = "file,label,load,rpm,rate\nmonday.npy,healthy,0,1800,12000\n"
    >>> table += "tuesday.npy,worn,2,1750,12000\n"
    >>> _ = (folder / "recordings.csv").write_text(table)
    >>> bearings = load_bearings(folder)
    >>> windows = cut_windows(bearings.recordings, length=1000)
    >>> bearings.target[windows.recording].tolist()[4:6], bearings.domain_names
    (['healthy', 'worn'], {0: '0', 1: '2'})
    """
    path = find_folder(folder, WHERE)
    if (path / table).is_file():
        found, text = _read_table(path, path / table), OWN_TEXT.format(folder=path, table=table)
    elif table != TABLE:
        raise FileNotFoundError(f"{path} has no table {table}. {WHERE}")
    else:
        files = sorted(one for one in path.rglob("*") if one.suffix.lower() in (".mat", ".npz"))
        mfpt = [one for one in files if MFPT.fullmatch(one.stem)]
        if mfpt:
            found, text = [_read_mfpt(one, path) for one in mfpt], MFPT_TEXT
        else:
            known = [(one, _describe_cwru(one)) for one in files]
            found = [_read_cwru(one, path, known, channels) for one, known in known if known]
            text = CWRU_TEXT
    if not found:
        raise FileNotFoundError(f"{path} has no recordings. {WHERE}")
    names = list(dict.fromkeys(one.domain for one in sorted(found, key=_by_load)))
    return Bunch(
        recordings=[one.samples for one in found],
        target=np.array([one.label for one in found]),
        domain=np.array([names.index(one.domain) for one in found], dtype=np.int64),
        domain_names=dict(enumerate(names)),
        load=np.array([one.load for one in found]),
        rpm=np.array([one.rpm for one in found]),
        rate=np.array([one.rate for one in found]),
        size=np.array([one.size for one in found]),
        file_names=[one.file for one in found],
        DESCR=text,
    )


def _by_load(recording: Recording) -> tuple[float, str]:
    return (np.inf if np.isnan(recording.load) else recording.load, recording.domain)


# Case Western Reserve


def _describe_cwru(path: Path) -> tuple[str, int] | None:
    """Label and load by the name of a file; None for a file of another kind."""
    if path.stem.isdigit():
        return OF_NUMBER.get(int(path.stem))
    if found := BY_LOAD.fullmatch(path.stem):
        fault, size, place, normal, load = found.groups()
        return _cwru_label(fault, size, place, normal), int(load)
    if found := BY_SPEED.fullmatch(path.stem):
        rpm, fault, place, size, normal = found.groups()
        loads = {speed: load for load, speed in NOMINAL_RPM.items()}
        if int(rpm) in loads:
            return _cwru_label(fault, size, place, normal), loads[int(rpm)]
    return None


def _cwru_label(fault: Any, size: Any, place: Any, normal: Any) -> str:
    if normal:
        return "Normal"
    return f"{fault.upper()}{int(size):03d}" + (f"@{place}" if place else "")


def _read_cwru(
    path: Path, folder: Path, known: tuple[str, int], channels: Sequence[str]
) -> Recording:
    label, load = known
    if isinstance(channels, str) or not set(channels) <= {"DE", "FE", "BA"} or not channels:
        raise ValueError(f"channels must be some of 'DE', 'FE' and 'BA', got {channels!r}.")
    arrays = _read_arrays(path)
    columns = []
    for channel in channels:
        # 97.mat: X097_DE_time. Some files hold a second recording as well; theirs comes first.
        pattern = rf"(X\d+_)?{channel}(_time)?"
        if path.stem.isdigit() and f"X{int(path.stem):03d}_{channel}_time" in arrays:
            pattern = f"X{int(path.stem):03d}_{channel}_time"
        names = [name for name in arrays if re.fullmatch(pattern, name)]
        if not names:
            raise damaged_data(
                path, f"has no channel {channel} (arrays: {', '.join(arrays) or 'none'})"
            )
        columns.append(_check_samples(path, arrays[names[0]]))
    if len({len(one) for one in columns}) > 1:
        raise damaged_data(path, "has channels of different lengths")
    speeds = [values for name, values in arrays.items() if re.fullmatch(r"(X\d+)?RPM", name)]
    rpm = float(np.ravel(speeds[0])[0]) if speeds and np.size(speeds[0]) else NOMINAL_RPM[load]
    size = re.search(r"\d{3}", label)
    return Recording(
        str(path.relative_to(folder)),
        columns[0] if len(columns) == 1 else np.column_stack(columns),
        label,
        f"{load} hp",
        float(load),
        float(rpm),
        48_000.0 if label == "Normal" else 12_000.0,
        float(size[0]) if size else np.nan,
    )


# MFPT


def _read_mfpt(path: Path, folder: Path) -> Recording:
    bearing: Any = _read_arrays(path).get("bearing")
    fields = getattr(getattr(bearing, "dtype", None), "names", None) or ()
    missing = [name for name in ("gs", "sr", "load", "rate") if name not in fields]
    if missing:
        raise damaged_data(path, f"has no bearing.{', bearing.'.join(missing)}")
    values = {name: np.ravel(bearing[name])[0] for name in ("gs", "sr", "load", "rate")}
    try:
        sr, load, rate = (float(np.ravel(values[name])[0]) for name in ("sr", "load", "rate"))
    except (IndexError, TypeError, ValueError):
        raise damaged_data(
            path, "holds no number in bearing.sr, bearing.load or bearing.rate"
        ) from None
    match = MFPT.fullmatch(path.stem)
    label = MFPT_LABELS[match[1].lower()] if match else ""
    samples = _check_samples(path, values["gs"])
    return Recording(
        str(path.relative_to(folder)), samples, label, f"{load:g} lb", load, 60 * rate, sr
    )


# A folder with a table


def _read_table(folder: Path, table: Path) -> list[Recording]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [one for one in ("file", "label") if one not in (reader.fieldnames or [])]
            if missing:
                raise ValueError(f"{table} has no column {' and '.join(missing)}. {WHERE}")
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged_data(table, f"cannot be read as CSV ({error})") from None
    nameless = [number for number, row in enumerate(rows, start=2) if not row["file"]]
    if nameless:
        raise ValueError(f"{table}, line {nameless[0]}: the file is empty.")
    absent = [row["file"] for row in rows if not (folder / row["file"]).is_file()]
    if absent:
        named = ", ".join(map(str, absent[:3]))
        named += f", and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise FileNotFoundError(f"{table} names files that are not in {folder}: {named}.")
    if twice := named_twice(rows):
        raise ValueError(f"{table} {twice}.")
    return [_read_row(folder, table, number, row) for number, row in enumerate(rows, start=2)]


def named_twice(rows: Sequence[dict[str, Any]]) -> str:
    """Say which recording of bearings two rows of a table share; "" if none is.

    It would be on two sides.
    """
    lines: dict[Any, int] = {}
    for number, row in enumerate(rows, start=2):
        key = row["file"], (row.get("variable") or "").strip()
        if key in lines:
            return (
                f"names the recording {row['file']} in lines {lines[key]} and {number}: keep one, "
                "since windows of one recording on two sides make every score too high"
            )
        lines[key] = number
    return ""


def _read_row(folder: Path, table: Path, number: int, row: dict[str, Any]) -> Recording:
    if not row["label"]:
        raise ValueError(f"{table}, line {number}: the label is empty.")
    known = {}
    for name in ("load", "rpm", "rate"):
        text = (row.get(name) or "").strip()
        try:
            known[name] = float(text) if text else np.nan
        except ValueError:
            raise ValueError(f"{table}, line {number}: {name} {text!r} is not a number.") from None
    samples, rate = read_recording(folder / row["file"], (row.get("variable") or "").strip())
    if np.isnan(known["rate"]):
        known["rate"] = rate
    domain = row.get("domain") or (row.get("load") or "").strip() or "all"
    return Recording(row["file"], samples, row["label"], domain, **known)


def read_recording(path: Path, variable: str = "") -> tuple[Any, float]:
    """Return the samples of a file of a machine, and their rate where the file knows it, else NaN.

    ``variable`` names an array of a file .npz or .mat, which may hold several; or several arrays,
    with spaces between them, which become channels. Files .npy and .wav become memory maps.
    """
    suffix = path.suffix.lower()
    if suffix in (".npz", ".mat"):
        return _named_samples(path, _read_arrays(path), variable), np.nan
    try:
        if suffix == ".npy":
            return _check_samples(path, np.load(path, mmap_mode="r", allow_pickle=False)), np.nan
        if suffix == ".wav":
            rate, samples = wavfile.read(path, mmap=True)
            # SciPy's map could be written to, so that pages read from it could not be let go of.
            samples = np.memmap(
                path, samples.dtype, mode="r", offset=samples.offset, shape=samples.shape
            )
            return _check_samples(path, samples), float(rate)
        if suffix in (".csv", ".txt"):
            return _check_samples(path, _read_text(path)), np.nan
    except UNREADABLE_ARRAYS as error:
        if str(path) in str(error):
            raise
        raise damaged_data(path, f"cannot be read ({error})") from error
    raise ValueError(
        f"{path}: files of type {suffix or 'none'} cannot be read. Save recordings as .npy, .npz, "
        ".mat, .csv, .txt or .wav."
    )


def _named_samples(path: Path, arrays: dict[str, Any], variable: str) -> Any:
    """Return the samples of one array of a file, or of several as channels."""
    if not variable:
        arrays = {name: one for name, one in arrays.items() if np.size(one) > 1}
        if len(arrays) != 1:
            raise ValueError(
                f"{path} holds {len(arrays)} arrays ({', '.join(arrays)}): name one in a column "
                "'variable' of the table, or several, with spaces between them, as channels."
            )
        variable = next(iter(arrays))
    names = [variable] if variable in arrays else variable.split()
    absent = [name for name in names if name not in arrays]
    if absent:
        raise ValueError(
            f"{path} has no array {', '.join(map(repr, absent))} (arrays: {', '.join(arrays)}). "
            "Correct the column 'variable' of the table."
        )
    columns = [_check_samples(path, arrays[name]) for name in names]
    if len(columns) == 1:
        return columns[0]
    if len({one.shape for one in columns}) > 1 or columns[0].ndim != 1:
        lengths = ", ".join(f"{name} {one.shape}" for name, one in zip(names, columns, strict=True))
        raise ValueError(
            f"{path} has channels of different lengths ({lengths}): cut them to the same length."
        )
    return np.column_stack(columns)


def _read_text(path: Path) -> FloatArray:
    """Return the numbers of a text, one row per sample; a first line of names is skipped.

    A first column that never falls is the time of the samples and is skipped as well.
    """
    with path.open(encoding="utf-8-sig") as file:
        first = file.readline()
    delimiter = next((mark for mark in (";", "\t", ",") if mark in first), None)
    try:
        [float(cell) for cell in first.split(delimiter)]
        names = 0
    except ValueError:
        names = 1
    found: FloatArray = np.loadtxt(path, delimiter=delimiter, skiprows=names, encoding="utf-8-sig")
    if found.ndim != 2 or found.shape[1] < 2:
        return found
    time = found[:, 0]
    if time[-1] > time[0] and (np.diff(time) >= 0).all():
        return found[:, 1:]
    # "0,25" fills two cells, and the second one never has a sign or a point.
    whole = delimiter == "," and not np.mod(found, 1).any()
    if whole and found.shape[1] == 2 and (found[:, 1] >= 0).all():
        raise ValueError(f"{path} seems to use a decimal comma: write numbers with a point.")
    return found


def _read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a file .mat or .npz by name."""
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        arrays = loadmat(path)
    except NotImplementedError:
        raise ValueError(
            f"{path} is a file of MATLAB 7.3 (HDF5), which cannot be read: save it again in MATLAB "
            "with save(..., '-v7'), or as .npy."
        ) from None
    # SciPy raises many errors for bytes that are not a file of MATLAB, or end too soon.
    except Exception as error:
        raise damaged_data(path, f"cannot be read ({error})") from error
    return {name: values for name, values in arrays.items() if not name.startswith("__")}


def _check_samples(path: Path, values: Any) -> Any:
    """Return samples as (n,) or (n, channels), a memory map unread."""
    samples = values if isinstance(values, np.ndarray) else np.asarray(values)
    if samples.dtype.kind not in "fiu":
        raise ValueError(f"{path} holds {samples.dtype} where real numbers should be.")
    if samples.ndim == 2 and 1 in samples.shape:
        samples = samples.reshape(-1)
    if samples.ndim not in (1, 2) or samples.size < 2:
        raise ValueError(
            f"{path} holds an array of shape {samples.shape}, which is not a recording: expected "
            "(n_samples,) or (n_samples, n_channels)."
        )
    if samples.ndim == 2 and samples.shape[1] > samples.shape[0]:
        raise ValueError(
            f"{path} has {samples.shape[0]:,} samples of {samples.shape[1]:,} channels: transpose "
            "it, so that rows are samples."
        )
    if not isinstance(samples, np.memmap) and not np.isfinite(samples).all():
        at = int(np.flatnonzero(~np.isfinite(samples).reshape(len(samples), -1).all(axis=1))[0])
        raise ValueError(
            f"{path} has samples that are not finite, the first at sample {at:,}: fill them, or "
            "leave the recording out."
        )
    return samples
