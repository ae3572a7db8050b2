"""A table of recordings is read as the windows of these, and says clearly where it cannot be."""

import numpy as np
import pytest
from scipy.io import wavfile

from covshift.signals import EnvelopeSpectrum, Spectrum, cut_windows
from covshift.tables import TableError, open_table, read_table
from covshift.tables.recordings import (
    RecordingBatches,
    RecordingTable,
    WindowSettings,
    as_windows,
    recording_places,
)

rng = np.random.default_rng(0)
WINDOW = 32


def write_recordings(folder, lengths=(100, 70), table="file,fault,load\na.npy,7,0\nb.npy,7,1\n"):
    signals = [rng.normal(size=n) for n in lengths]
    for name, samples in zip("abcdef", signals, strict=False):
        np.save(folder / f"{name}.npy", samples)
    (folder / "recordings.csv").write_text(table)
    return signals


def table_of(folder, **settings):
    return RecordingTable(folder, WindowSettings(**{"window": WINDOW} | settings))


@pytest.mark.parametrize(
    ("features", "transformer"), [("spectrum", Spectrum), ("envelope", EnvelopeSpectrum)]
)
def test_rows_are_the_features_of_windows(tmp_path, features, transformer):
    signals = write_recordings(tmp_path)
    found = read_table(table_of(tmp_path, rate=64, overlap=0.5, features=features))
    windows = cut_windows(signals, WINDOW, overlap=0.5)
    twin = transformer(64).fit(windows.X)
    names = [*twin.get_feature_names_out()]
    assert list(found.frame.columns) == ["file", "fault", "load", "start", *names]
    assert names[0] == "2 Hz"
    np.testing.assert_allclose(found.frame[names], twin.transform(windows.X), rtol=1e-12)
    assert found.frame["file"].tolist() == [("a.npy", "b.npy")[k] for k in windows.recording]
    assert found.frame["start"].tolist() == windows.start.tolist()
    # As written, so that names of classes and domains are those of the table.
    assert set(found.frame["fault"]) == {"7"}
    assert "2 recordings, cut into windows of 32 samples" in found.notes[0]


def test_blocks_give_the_rows_of_one_pass(tmp_path, monkeypatch):
    write_recordings(tmp_path)
    whole = read_table(table_of(tmp_path)).frame
    monkeypatch.setattr("covshift.tables.recordings.BLOCK_SAMPLES", 1)
    reader = open_table(table_of(tmp_path))
    assert [len(frame) for frame in reader] == [1] * 5
    assert read_table(table_of(tmp_path)).frame.equals(whole)


def test_channels_and_rates_of_files(tmp_path):
    samples = rng.integers(-1000, 1000, (100, 2)).astype(np.int16)
    wavfile.write(tmp_path / "a.wav", 640, samples)
    (tmp_path / "mine.csv").write_text("file;when\na.wav;2024-05-31\n")
    table = RecordingTable(tmp_path / "mine.csv", WindowSettings(WINDOW))
    found = RecordingBatches(table)
    assert (found.settings.rate, found.settings.n_channels) == (640.0, 2)
    frame = read_table(table).frame
    assert frame.columns[3] == "channel 0, 20 Hz"
    assert frame["when"].dtype.kind == "M"  # a column to split by
    expected = Spectrum(n_channels=2).fit_transform(cut_windows([samples * 1.0], WINDOW).X)
    np.testing.assert_allclose(frame.iloc[:, 3:], expected)


def test_a_model_ignores_what_describes_a_recording(tmp_path):
    write_recordings(tmp_path)
    train, new, ignore = as_windows(
        tmp_path, tmp_path / "recordings.csv", WindowSettings(WINDOW), ("fault", None)
    )
    assert ignore == ["file", "load", "start"]
    assert train.settings == new.settings == WindowSettings(WINDOW, n_channels=1)
    assert train.name == "recordings.csv"


def test_places_of_rows(tmp_path):
    write_recordings(tmp_path)
    table = table_of(tmp_path, overlap=0.5)
    frame = read_table(table).frame
    rows = list(range(1, len(frame) + 1))[::-1]
    found = [(one["recording"], one["start"]) for one in recording_places(table, rows)]
    assert found == list(zip(frame["file"], frame["start"], strict=True))[::-1]


def test_settings_go_through_a_card():
    settings = WindowSettings(1200, 12_000.0, 0.5, "envelope", 2)
    assert WindowSettings.from_card(settings.to_card()) == settings


@pytest.mark.parametrize(
    "entry",
    [None, {}, {"window": "1200"}, {"window": 0}, {"window": 4, "rate": -1.0},
     {"window": 4, "x": 1}, {"window": 4, "features": "os.system"}, {"window": 4, "overlap": 1.0}],
)  # fmt: skip
def test_changed_cards_are_refused(entry):
    with pytest.raises(TableError, match="card does not say how windows are cut"):
        WindowSettings.from_card(entry)


def refuse(folder, words, **settings):
    with pytest.raises(TableError, match=words) as caught:
        read_table(table_of(folder, **settings))
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_tables_that_cannot_be_read(tmp_path):
    with pytest.raises(TableError, match="no such file"):
        read_table(table_of(tmp_path))
    write_recordings(tmp_path, table="name,fault\na.npy,7\n")
    refuse(tmp_path, "has no column 'file'")
    write_recordings(tmp_path, table="file,fault\na.npy,7\nz.npy,7\n")
    refuse(tmp_path, "names files that are not beside it: 'z.npy'")
    write_recordings(tmp_path, table="file,fault\na.npy,7\n,7\n")
    refuse(tmp_path, "line 3: the cell of 'file' is empty")
    write_recordings(tmp_path, table="file,fault\na.npy,7\nb.npy,7\na.npy,8\n")
    refuse(tmp_path, "names the recording a.npy in lines 2 and 4: keep one")
    write_recordings(tmp_path, table="file,start\na.npy,7\n")
    refuse(tmp_path, "has a column 'start', as windows have; rename it")
    for rate in ("fast", "0", "-5", "inf", "1e400"):
        write_recordings(tmp_path, table=f"file,rate\na.npy,{rate}\n")
        refuse(tmp_path, f"line 2: rate '{rate}' is not a number of samples per second")
    alone = RecordingTable(tmp_path / "a.npy", WindowSettings(window=WINDOW))
    with pytest.raises(TableError, match=r"a\.npy is a recording\. Name it in a table"):
        read_table(alone)


def test_recordings_that_cannot_be_used(tmp_path):
    write_recordings(tmp_path, lengths=(100, 20))
    refuse(tmp_path, "recording 'b.npy' has 20 samples, fewer than a window of 32")
    long = RecordingTable(tmp_path, WindowSettings(window=10**14))  # more than there is memory for
    with pytest.raises(TableError, match=r"'a\.npy' has 100 samples, fewer than a window of"):
        read_table(long)
    np.save(tmp_path / "b.npy", rng.normal(size=(100, 2)))
    refuse(tmp_path, "recording 'b.npy' has 2 channels, not 1")
    np.save(tmp_path / "b.npy", np.where(np.arange(100) == 40, np.nan, 1.0))
    refuse(tmp_path, "recording 'b.npy' has samples that are not finite, from about sample 32 on")
    np.save(tmp_path / "b.npy", np.full(100, 1e308))
    refuse(tmp_path, "recording 'b.npy' has samples so large that their spectrum overflows")
    (tmp_path / "b.npy").write_bytes(b"nothing")
    refuse(tmp_path, "line 3: .*b.npy")
    write_recordings(tmp_path, table="file,rate\na.npy,64\nb.npy,128\n")
    refuse(tmp_path, "'b.npy' has 128 samples per second, and 64 are expected: resample it")
    refuse(tmp_path, "'a.npy' has 64 samples per second, and 100 are expected", rate=100)
