"""A table of recordings, read as a table of the features of their windows.

The user's table has one row per recording: a column ``file``, and columns such as the label and the
domain. The table has one row per window: the columns of its recording, the first sample of the
window in ``start``, and its spectrum. Whatever reads tables then works on windows; ``file`` says
which windows belong together.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from covshift.base import check_count, check_number, check_option
from covshift.signals import EnvelopeSpectrum, Spectrum, iter_windows
from covshift.signals.windows import window_step
from covshift.tables.columns import Kind
from covshift.tables.messages import TableError, listed, one_line, table_error
from covshift.tables.reading import TableReader, open_batches
from covshift.tables.text_layout import GivenLayout

FILE, VARIABLE, RATE, START = "file", "variable", "rate", "start"
FEATURES = {"spectrum": Spectrum, "envelope": EnvelopeSpectrum}
TABLE_BYTES = 4 << 20  # read at a time from the table of recordings
BLOCK_SAMPLES = 2**21  # samples of windows that are processed at a time
SAME_RATE = 1e-6  # relative: rates of files are rounded
PLAIN_LAYOUT = GivenLayout()  # everything is detected
NO_TABLES = (".npy", ".npz", ".mat", ".wav")  # recordings, given in place of a table


@dataclass(frozen=True)
class WindowSettings:
    """How recordings become rows; plain data, which a model's card keeps.

    Attributes
    ----------
    window : int
        Samples of a window.
    rate : float or None, default=None
        Samples per second of all recordings. None: as the table or the files say, and unknown
        where they do not.
    overlap : float, default=0
        Share of a window that the next one repeats.
    features : {"spectrum", "envelope"}, default="spectrum"
        Amplitudes of the signal, or of its envelope.
    n_channels : int or None, default=None
        Channels of all recordings. None: as many as the first one has.
    """

    window: int
    rate: float | None = None
    overlap: float = 0.0
    features: str = "spectrum"
    n_channels: int | None = None

    def __post_init__(self) -> None:
        check_count("--window", self.window, minimum=2)
        if self.rate is not None:
            check_number("--rate", self.rate, minimum=0, closed="neither")
        check_number("--overlap", self.overlap, minimum=0, maximum=1, closed="left")
        check_option("--features", self.features, tuple(FEATURES))
        if self.n_channels is not None:
            check_count("n_channels", self.n_channels, minimum=1)

    def to_card(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)

    @classmethod
    def from_card(cls, entry: Any) -> "WindowSettings":
        """Return the settings that a card keeps, or refuse a card that was changed."""
        try:
            return cls(**entry)
        except (TypeError, ValueError) as error:
            raise TableError(
                f"The model file's card does not say how windows are cut: {one_line(error, 200)}"
            ) from None


@dataclass(frozen=True)
class RecordingTable:
    """A table of recordings, or a folder with one, that `open_table` reads as windows.

    Attributes
    ----------
    path : path
        The table; its files are looked for beside it.
    settings : WindowSettings
    """

    path: Path
    settings: WindowSettings

    def __post_init__(self) -> None:
        # Here and below: tables without recordings need no loaders of data sets.
        from covshift.datasets.bearings import TABLE

        if self.path.is_dir():
            object.__setattr__(self, "path", self.path / TABLE)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    @property
    def name(self) -> str:
        """Name of the table's file."""
        return self.path.name

    def open_batches(self, given: GivenLayout) -> "RecordingBatches":
        """Return the windows as a source of batches; ``given`` are facts about the table."""
        return RecordingBatches(self, given)

    def holds_numbers(self, column: str) -> bool:
        """Return whether all recordings have a number in a column, whose cells stay text."""
        try:
            return all(
                np.isfinite(float(row[column])) for row in _read_rows(self.path, PLAIN_LAYOUT)[0]
            )
        except (KeyError, TypeError, ValueError):
            return False


class RecordingBatches:
    """Windows of the recordings of a table; a source, as `covshift.tables.reading` says.

    Recordings are opened one after the other, and windows are read in blocks: memory is bounded
    by a block, or by the largest file that is not ``.npy`` or ``.wav``.
    """

    typed = examined = True
    texts_stay = True  # labels and domains keep their spelling
    separator = ""

    def __init__(self, table: RecordingTable, given: GivenLayout = PLAIN_LAYOUT):
        self.path = table.path
        self._rows, self._dates = _read_rows(table.path, given)
        self.described = list(self._rows[0])
        self._check_files()
        samples, rate = self._open(0)
        self._check_length(0, samples, table.settings)
        n_channels = 1 if samples.ndim == 1 else samples.shape[1]
        wanted = table.settings
        n_channels = wanted.n_channels or n_channels
        known = wanted.rate if wanted.rate is not None or np.isnan(rate) else rate
        self.settings = replace(wanted, rate=known, n_channels=n_channels)
        self._features = FEATURES[wanted.features](known, n_channels=n_channels)
        self._features.fit(np.zeros((1, n_channels * wanted.window)))
        names = [*self.described, START, *self._features.get_feature_names_out()]
        twice = sorted({name for name in self.described if names.count(name) > 1})
        if twice:
            raise table_error(
                self.path, f"has a column {listed(twice)}, as windows have; rename it."
            )
        self.names = names
        texts = [pa.timestamp("us") if name in self._dates else pa.string() for name in names]
        n_texts = len(self.described)
        n_numbers = len(names) - n_texts - 1
        self.types = [*texts[:n_texts], pa.int64(), *[pa.float64()] * n_numbers]
        self.nameless: list[int] = []
        self.row_names: list[str] = []
        n_recordings = len(self._rows)
        self.notes = [
            f"{n_recordings:,} recording{'s' * (n_recordings > 1)}, cut into windows of "
            f"{self.settings.window:,} samples; "
            f"rows are windows."
        ]
        self._done = 0.0

    @property
    def share_read(self) -> float | None:
        """Share of the recordings that were read in this pass."""
        return self._done / len(self._rows)

    def read(
        self, types: dict[str, Any] | None = None, missing: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Yield the windows of all recordings; ``types`` and ``missing`` are for text files."""
        for number in range(len(self._rows)):
            self._done = float(number)
            samples, rate = self._open(number)
            self._check_recording(number, samples, rate)
            block_size = max(1, BLOCK_SAMPLES // self._features.n_features_in_)
            blocks = iter_windows(
                [samples],
                self.settings.window,
                overlap=self.settings.overlap,
                block_size=block_size,
            )
            for block in blocks:
                yield self._batch(number, block)
                self._done = number + min(1.0, float(block.start[-1]) / len(samples))
        self._done = float(len(self._rows))

    def places(self, rows: Any) -> list[dict[str, Any]]:
        """Return the recording and the first sample of windows by their numbers, from 0."""
        lengths = np.array([len(self._open(number)[0]) for number in range(len(self._rows))])
        step = window_step(self.settings.window, self.settings.overlap)
        first = np.concatenate([[0], np.cumsum(1 + (lengths - self.settings.window) // step)])
        recording = np.searchsorted(first, rows, side="right") - 1
        return [
            {"recording": self._rows[at][FILE], "start": int(step * (row - first[at]))}
            for row, at in zip(rows, recording, strict=True)
        ]

    def _batch(self, number: int, block: Any) -> Any:
        X = block.X if block.X.dtype == np.float32 else block.X.astype(np.float64)
        if not np.isfinite(X).all():
            at = int(block.start[~np.isfinite(X).all(axis=1)][0])
            raise self._bad(number, f"has samples that are not finite, from about sample {at:,} on")
        with np.errstate(over="ignore", invalid="ignore"):
            amplitudes = np.asfortranarray(self._features.transform(X), dtype=np.float64)
        if not np.isfinite(amplitudes).all():
            raise self._bad(number, "has samples so large that their spectrum overflows: scale it")
        row = self._rows[number]
        columns = [
            pa.array([row[name]] * len(X), type=self.types[i])
            for i, name in enumerate(self.described)
        ]
        columns += [pa.array(block.start), *map(pa.array, amplitudes.T)]
        return pa.RecordBatch.from_arrays(columns, names=self.names)

    def _open(self, number: int) -> tuple[Any, float]:
        """Return the samples of a recording, and their rate or NaN."""
        from covshift.datasets.bearings import read_recording

        row = self._rows[number]
        try:
            samples, rate = read_recording(
                self.path.parent / row[FILE], (row.get(VARIABLE) or "").strip()
            )
        except (OSError, ValueError) as error:
            raise table_error(self.path, f"line {number + 2}: {one_line(error, 300)}") from error
        said = (row.get(RATE) or "").strip()
        try:
            found = float(said) if said else rate
        except ValueError:
            found = 0.0
        if found <= 0 or np.isinf(found):  # NaN: not known
            raise table_error(
                self.path,
                f"line {number + 2}: rate {said or rate!r} is not a number of samples per second.",
            )
        return samples, found

    def _check_files(self) -> None:
        from covshift.datasets.bearings import named_twice

        nameless = [number for number, row in enumerate(self._rows, start=2) if not row[FILE]]
        if nameless:
            raise table_error(self.path, f"line {nameless[0]}: the cell of {FILE!r} is empty.")
        absent = [row[FILE] for row in self._rows if not (self.path.parent / row[FILE]).is_file()]
        if absent:
            raise table_error(
                self.path,
                f"names files that are not beside it: {listed(absent, 3)}. Paths start at the "
                "table's folder.",
            )
        if twice := named_twice(self._rows):
            raise table_error(self.path, f"{twice}.")

    def _check_recording(self, number: int, samples: Any, rate: float) -> None:
        wanted = self.settings
        # NaN is an unknown rate, and compares as equal to any.
        if wanted.rate is not None and abs(rate - wanted.rate) > SAME_RATE * wanted.rate:
            raise self._bad(
                number,
                f"has {rate:g} samples per second, and {wanted.rate:g} are expected: resample it, "
                "or leave it out",
            )
        n_channels = 1 if samples.ndim == 1 else samples.shape[1]
        if n_channels != wanted.n_channels:
            raise self._bad(
                number,
                f"has {n_channels} channels, not {wanted.n_channels}: keep the channels that all "
                "recordings have",
            )
        self._check_length(number, samples, wanted)

    def _check_length(self, number: int, samples: Any, wanted: WindowSettings) -> None:
        if len(samples) < wanted.window:
            raise self._bad(
                number,
                f"has {len(samples):,} samples, fewer than a window of {wanted.window:,}: shorten "
                "the window, or leave it out",
            )

    def _bad(self, number: int, problem: str) -> TableError:
        return table_error(self.path, f"recording {listed([self._rows[number][FILE]])} {problem}.")


def as_windows(
    train: Path, new: Path | None, settings: WindowSettings, used: Sequence[str | None]
) -> tuple[Any, Any, list[str]]:
    """Return two tables of recordings as tables of windows, and the columns to ignore.

    Parameters
    ----------
    train, new : path
        Tables of recordings, or folders with one; the second may be None.
    settings : WindowSettings
        Where the rate or the channels are not given, those of the first recording hold for all.
    used : sequence of str or None
        Columns of the tables that have a part of their own, such as the label.

    Returns
    -------
    train, new : RecordingTable
    ignore : list of str
        Columns that describe a recording: a model of its windows does not learn from them.
    """
    found = RecordingBatches(RecordingTable(train, settings))
    ignore = [name for name in (*found.described, START) if name not in used]
    second = None if new is None else RecordingTable(new, found.settings)
    return RecordingTable(train, found.settings), second, ignore


def recording_places(table: Any, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Return the recording and the first sample of rows of a `RecordingTable`, numbered from 1."""
    return RecordingBatches(table).places(np.array(rows, dtype=int) - 1)


def _read_rows(path: Path, given: GivenLayout) -> tuple[list[dict[str, Any]], set[str]]:
    """Return the rows of the user's table as text, and which columns are dates."""
    if path.suffix.lower() in NO_TABLES and path.is_file():
        raise table_error(
            path,
            f"is a recording. Name it in a table, a text file with a line {FILE!r} and a line "
            f"{path.name!r}, and give that.",
        )
    found = TableReader(open_batches(path, given, TABLE_BYTES), None, None, False)
    kinds = found.schema.kinds
    if FILE not in kinds:
        raise table_error(
            path,
            f"has no column {FILE!r}, which names the file of each recording; it has "
            f"{listed(kinds)}.",
        )
    dates = {name for name, kind in kinds.items() if kind == "date" and name != FILE}
    texts: dict[str, Kind] = {name: "date" if name in dates else "text" for name in kinds}
    schema = found.schema.with_kinds(texts)
    reader = TableReader(open_batches(path, given, TABLE_BYTES), schema, None, False)
    rows = [row for batch in reader.batches() for row in batch.to_pylist()]
    return rows, dates
