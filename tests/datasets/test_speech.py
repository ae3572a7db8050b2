import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from covshift.datasets import load_speech_corpus, speech
from covshift.datasets.speech import _default_cache_folder
from covshift.datasets.speech_features import FEATURE_NAMES, segment_features
from tests.datasets.recordings import voice, write, write_emodb


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_what_comes_back(tmp_path):
    write(tmp_path / "08a01Wa.wav", 2.7, seed=1)
    write(tmp_path / "03a01Fa.wav", 1.0, seed=2)
    write(tmp_path / "deeper" / "03a02Ta.flac", 1.9, seed=3)
    speech = load_speech_corpus(tmp_path, "emodb")
    assert speech.data.shape == (4, 72)
    assert speech.data.dtype == np.float64
    files = ["03a01Fa.wav", "08a01Wa.wav", "08a01Wa.wav", "deeper/03a02Ta.flac"]
    assert speech.recording.tolist() == files
    assert speech.target.tolist() == ["positive", "negative", "negative", "negative"]
    assert speech.emotion.tolist() == ["happiness", "anger", "anger", "sadness"]
    assert speech.domain.tolist() == [0, 1, 1, 0]
    assert np.issubdtype(speech.domain.dtype, np.integer)
    assert speech.domain_names == {0: "03", 1: "08"}
    assert speech.feature_names == list(FEATURE_NAMES)
    assert speech.skipped == []
    for part in ("EMODB", "4 seconds", "3 negative, 1 positive", "2 speakers", "3 recordings"):
        assert part in speech.DESCR


def test_rows_are_the_features_of_the_seconds(tmp_path):
    sound = voice(2.5)
    write(tmp_path / "03a01Fa.wav", samples=sound, subtype="DOUBLE")
    expected = segment_features(sound, 16_000)
    np.testing.assert_array_equal(load_speech_corpus(tmp_path, "emodb").data, expected)


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [
        ("03a01Fa.wav", "PCM_16", 0.1),
        ("03a01Fa.wav", "PCM_24", 1e-3),
        ("03a01Fa.wav", "FLOAT", 1e-3),
        ("03a01Fa.WAV", "PCM_24", 1e-3),
        ("03a01Fa.flac", "PCM_16", 0.1),
        ("03a01Fa.FLAC", "PCM_24", 1e-3),
    ],
)
def test_formats(tmp_path, name, subtype, tolerance):
    write(tmp_path / name, samples=voice(2.5), subtype=subtype)
    expected = segment_features(voice(2.5), 16_000)
    found = load_speech_corpus(tmp_path, "emodb").data
    np.testing.assert_allclose(found, expected, atol=tolerance * expected.std())


def test_channels_are_averaged(tmp_path):
    one, other = voice(1.0, seed=1), voice(1.0, seed=2)
    write(tmp_path / "03a01Fa.wav", samples=np.column_stack([one, other]), subtype="DOUBLE")
    expected = segment_features((one + other) / 2, 16_000)
    np.testing.assert_allclose(load_speech_corpus(tmp_path, "emodb").data, expected, rtol=1e-9)


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 44_100, 48_000])
def test_whole_seconds_are_counted_at_the_rate_of_the_file(tmp_path, rate):
    write(tmp_path / "03a01Fa.wav", rate=rate, samples=voice(3, rate)[: 2 * rate])
    write(tmp_path / "03a01Fb.wav", rate=rate, samples=voice(3, rate)[: 2 * rate - 1])
    speech = load_speech_corpus(tmp_path, "emodb", bandwidth="narrow")
    assert speech.recording.tolist() == ["03a01Fa.wav"] * 2 + ["03a01Fb.wav"]


def test_low_rates_are_warned_of_also_from_the_cache(tmp_path):
    write(tmp_path / "03a01Fa.wav", rate=8000)
    write(tmp_path / "03a01Na.wav", rate=16_000)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"1 of 2 recordings.*bandwidth=\"narrow\""):
            load_speech_corpus(tmp_path, "emodb")
    load_speech_corpus(tmp_path, "emodb", bandwidth="narrow")


def test_silence_and_clipping(tmp_path):
    write(tmp_path / "03a01Fa.wav", samples=np.zeros(16_000))
    write(tmp_path / "03a01Fb.wav", samples=np.clip(50 * voice(1.0), -1, 1))
    speech = load_speech_corpus(tmp_path, "emodb")
    np.testing.assert_allclose(speech.data[0], 0, atol=1e-12)
    assert np.isfinite(speech.data).all()


def test_unusable_files_are_listed(tmp_path):
    write(tmp_path / "03a01Fa.wav")
    whole = write(tmp_path / "03a02Fa.flac", 3).read_bytes()
    (tmp_path / "03a02Fa.flac").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "03a03Fa.wav").write_bytes(b"")
    (tmp_path / "03a04Fa.wav").write_text("This is a text. " * 100)
    write(tmp_path / "03a05Fa.wav", 0.9)
    write(tmp_path / "03a06Fa.wav", samples=np.full(20_000, np.nan), subtype="FLOAT")
    write(tmp_path / "03a07Fa.wav", rate=4000)
    write(tmp_path / "03a09Fa.wav", samples=1e200 * voice(1.5), subtype="DOUBLE")
    write(tmp_path / "03a08Fa.wav", samples=np.empty(0))
    write(tmp_path / "my own.wav")
    (tmp_path / "erkennung.txt").write_text("not a sound, and not meant to be one")
    write(tmp_path / "._03a09Fa.wav")
    write(tmp_path / ".hidden" / "03a09Fa.wav")
    (tmp_path / "03a10Fa.wav").mkdir()
    speech = load_speech_corpus(tmp_path, "emodb")
    assert set(speech.recording) == {"03a01Fa.wav"}
    reasons = dict(speech.skipped)
    assert len(reasons) == len(speech.skipped)
    for file, reason in {
        "03a02Fa.flac": "damaged or cut off",
        "03a03Fa.wav": "empty",
        "03a04Fa.wav": "not a readable sound file",
        "03a05Fa.wav": "shorter than one second",
        "03a06Fa.wav": "not numbers below 1e+30",
        "03a09Fa.wav": "not numbers below 1e+30",
        "03a07Fa.wav": "4000 samples per second",
        "03a08Fa.wav": "shorter than one second",
        "my own.wav": "not like 03a01Fa",
    }.items():
        assert reason in reasons.pop(file)
    assert not reasons
    assert load_speech_corpus(tmp_path, "emodb").skipped == speech.skipped


def test_a_wav_file_that_was_cut_off_gives_the_seconds_that_are_there(tmp_path):
    path = write(tmp_path / "03a01Fa.wav", 3)
    path.write_bytes(path.read_bytes()[: 44 + 2 * 40_000])
    assert load_speech_corpus(tmp_path, "emodb").data.shape == (2, 72)


@pytest.mark.parametrize("length", [0, 2**36 - 1])
def test_a_flac_file_with_a_false_length_is_listed(tmp_path, length):
    """None at all, as programs write it that do not know the end; or more than memory holds."""
    write(tmp_path / "03a01Fa.wav")
    contents = bytearray(write(tmp_path / "03a02Fa.flac", 2).read_bytes())
    contents[21] = contents[21] & 0xF0 | length >> 32  # 36 bits in the head
    contents[22:26] = (length & 0xFFFFFFFF).to_bytes(4, "big")
    (tmp_path / "03a02Fa.flac").write_bytes(contents)
    speech = load_speech_corpus(tmp_path, "emodb")
    assert set(speech.recording) == {"03a01Fa.wav"}
    [(file, reason)] = speech.skipped
    assert file == "03a02Fa.flac"
    assert "does not state a valid length" in reason


def test_a_file_that_may_not_be_read_is_listed(tmp_path, monkeypatch):
    write_emodb(tmp_path, 3)
    read_bytes = Path.read_bytes

    def refuse(path):
        if path.name.startswith("08"):
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    speech = load_speech_corpus(tmp_path, "emodb", cache=False)
    assert speech.skipped == [("08a01Wa.wav", "cannot be read (Permission denied)")]


def test_a_file_that_may_not_be_looked_at_is_listed(tmp_path, monkeypatch):
    """In a folder that can be listed, and no more."""
    write_emodb(tmp_path, 3)

    def refusing(method):
        def refuse(path):
            if path.name.startswith("08"):
                raise PermissionError(13, "Permission denied")
            return method(path)

        return refuse

    monkeypatch.setattr(Path, "is_file", refusing(Path.is_file))
    monkeypatch.setattr(Path, "read_bytes", refusing(Path.read_bytes))
    speech = load_speech_corpus(tmp_path, "emodb", cache=False)
    assert speech.skipped == [("08a01Wa.wav", "cannot be read (Permission denied)")]


def test_a_recording_counts_once(tmp_path):
    """Unpacked twice, or kept in two formats."""
    write(tmp_path / "Actor_01" / "03-01-03-01-01-01-01.wav")
    write(tmp_path / "audio" / "Actor_01" / "03-01-03-01-01-01-01.wav")
    write(tmp_path / "Actor_01" / "03-01-03-01-01-01-01.flac")
    speech = load_speech_corpus(tmp_path, "ravdess")
    assert set(speech.recording) == {"Actor_01/03-01-03-01-01-01-01.flac"}
    assert len(speech.skipped) == 2
    assert all("the same recording as" in reason for _, reason in speech.skipped)


def test_enterface(tmp_path):
    folder = tmp_path / "enterface database"
    write(folder / "subject 1" / "anger" / "sentence 1" / "s1_an_1.wav", rate=48_000)
    write(folder / "subject 2" / "anger" / "sentence 1" / "s1_an_1.wav", rate=48_000)  # misnamed
    write(folder / "subject 2" / "happiness" / "sentence 1" / "s2_ha_1.wav", rate=48_000)
    speech = load_speech_corpus(folder, "enterface")
    assert speech.domain_names == {0: "01", 1: "02"}
    assert speech.domain.tolist() == [0, 1, 1]
    assert speech.target.tolist() == ["negative", "negative", "positive"]


def test_vam(tmp_path):
    evaluations = {"Satz01001": "0.5 0 0", "Satz02001": "-0.1 0 0", "Satz02002": "0 0 0"}
    for sentence, evaluation in evaluations.items():
        path = write(tmp_path / "data" / f"Sprecher{sentence[4:6]}" / f"{sentence}.wav")
        path.with_suffix(".ewe").write_text(evaluation)
    write(tmp_path / "data" / "Sprecher03" / "Satz03001.wav")
    speech = load_speech_corpus(tmp_path, "vam")
    assert speech.target.tolist() == ["positive", "negative"]
    assert speech.emotion.tolist() == ["0.5", "-0.1"]
    assert [reason for _, reason in speech.skipped] == [
        "valence 0 is neither positive nor negative",
        "no evaluation Satz03001.ewe beside it",
    ]


def test_des(tmp_path):
    write(tmp_path / "KLA_GLAD_1.wav", rate=20_000)
    write(tmp_path / "HO_VRED_1.wav", rate=20_000)
    speech = load_speech_corpus(tmp_path, "des")
    assert speech.domain_names == {0: "HO", 1: "KLA"}
    assert speech.target.tolist() == ["negative", "positive"]


def label_table(tmp_path, rows):
    path = tmp_path / "labels.csv"
    lines = ["file,speaker,label", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_folder_of_one_s_own(tmp_path):
    write(tmp_path / "Zoë talks" / "første gang.wav", 2.0)
    write(tmp_path / "b.wav")
    write(tmp_path / "not labeled.wav")
    labels = label_table(tmp_path, [("Zoë talks/første gang.wav", "Zoë", "bored"),
                                    ("b.wav", "Bo", "keen")])  # fmt: skip
    speech = load_speech_corpus(tmp_path, "table", labels=labels)
    assert speech.target.tolist() == speech.emotion.tolist() == ["bored", "bored", "keen"]
    assert speech.domain_names == {0: "Bo", 1: "Zoë"}
    assert speech.recording[0] == "Zoë talks/første gang.wav"
    assert speech.skipped == [("not labeled.wav", "not in the table of labels")]


def test_a_table_takes_the_place_of_names(tmp_path):
    write(tmp_path / "x1.wav")
    write(tmp_path / "x2.wav")
    labels = label_table(tmp_path, [("x1.wav", "KLA", "surprise"), ("x2.wav", "HO", "anger")])
    assert load_speech_corpus(tmp_path, "des", labels=labels).target.tolist() == [
        "positive",
        "negative",
    ]
    labels = label_table(tmp_path, [("x1.wav", "5", "-.3"), ("x2.wav", "6", "0.0")])
    speech = load_speech_corpus(tmp_path, "vam", labels=labels)
    assert speech.target.tolist() == ["negative"]
    assert len(speech.skipped) == 1
    labels = label_table(tmp_path, [("x1.wav", "KLA", "joy")])
    with pytest.raises(ValueError, match="'joy' is not an emotion of Danish Emotional Speech"):
        load_speech_corpus(tmp_path, "des", labels=labels)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_any_number_of_jobs(tmp_path, n_jobs):
    write_emodb(tmp_path)
    (tmp_path / "03a07Fa.wav").write_bytes(b"")
    alone = load_speech_corpus(tmp_path, "emodb", cache=False)
    assert_same(load_speech_corpus(tmp_path, "emodb", cache=False, n_jobs=n_jobs), alone)
    assert_same(load_speech_corpus(tmp_path, "emodb", n_jobs=n_jobs), alone)  # keeps
    assert_same(load_speech_corpus(tmp_path, "emodb", n_jobs=n_jobs), alone)  # finds


def test_progress_counts_the_files(tmp_path):
    write_emodb(tmp_path, 4)
    calls = []
    load_speech_corpus(tmp_path, "emodb", progress=lambda *numbers: calls.append(numbers))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_progress_stops_and_what_was_computed_stays(tmp_path, n_jobs):
    write_emodb(tmp_path / "corpus")

    def progress(done, total):
        if done == 3:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        load_speech_corpus(
            tmp_path / "corpus", "emodb", cache=tmp_path / "kept", n_jobs=n_jobs, progress=progress
        )
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_rows_do_not_depend_on_other_files(tmp_path):
    write_emodb(tmp_path)
    together = load_speech_corpus(tmp_path, "emodb", cache=False)
    for path in tmp_path.glob("0*.wav"):
        path.unlink()
    alone = load_speech_corpus(tmp_path, "emodb", cache=False)
    same = np.isin(together.recording, alone.recording)
    np.testing.assert_array_equal(alone.data, together.data[same])


def test_wrong_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing does not exist: give .*unpacked"):
        load_speech_corpus(tmp_path / "missing", "emodb")
    file = write(tmp_path / "03a01Fa.wav")
    with pytest.raises(NotADirectoryError, match="is a file: give"):
        load_speech_corpus(file, "emodb")
    with pytest.raises(ValueError, match=r"None of the 1 .* '?ravdess.*03a01Fa.wav: .*labels="):
        load_speech_corpus(tmp_path, "ravdess")
    (tmp_path / "empty").mkdir()
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match="holds no WAV or FLAC file"):
            load_speech_corpus(tmp_path / "empty", "emodb", n_jobs=n_jobs)
    with pytest.raises(TypeError, match="folder must be a path"):
        load_speech_corpus(None, "emodb")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"corpus": "iemocap"}, ValueError, "corpus must be one of 'emodb', .*'table'"),
        ({"corpus": None}, ValueError, "corpus must be one of"),
        ({"corpus": "table"}, ValueError, "needs labels=.*file, speaker, label"),
        ({"labels": "missing.csv"}, FileNotFoundError, "missing.csv does not exist"),
        ({"labels": {}}, TypeError, "labels must be the path of a CSV file"),
        ({"backend": "librosa"}, ValueError, "backend must be one of"),
        ({"bandwidth": "full"}, ValueError, "bandwidth must be one of"),
        ({"cache": True}, TypeError, "cache must be a folder, None"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"n_jobs": "all"}, TypeError, "n_jobs must be a whole number"),
        ({"n_jobs": True}, TypeError, "n_jobs must be a whole number"),
        ({"progress": 1}, TypeError, "progress must be callable"),
    ],
)
def test_wrong_parameters(tmp_path, options, error, message):
    write(tmp_path / "03a01Fa.wav")
    with pytest.raises(error, match=message):
        load_speech_corpus(tmp_path, **{"corpus": "emodb", **options})


def test_the_extra_is_named_when_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ImportError, match=r'pip install "covshift\[speech\]"'):
        load_speech_corpus(tmp_path, "emodb")


def test_importing_loads_no_extra():
    code = (
        "import sys, covshift, covshift.datasets\n"
        "loaded = {'soundfile', 'librosa', 'opensmile', 'scipy.signal'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    return write_emodb(tmp_path / "corpus")


@pytest.fixture
def computed(monkeypatch):
    """Grow with each file whose features are computed, not found."""
    count = []
    compute = speech.segment_features

    def counted(*arguments, **options):
        count.append(1)
        return compute(*arguments, **options)

    monkeypatch.setattr(speech, "segment_features", counted)
    return count


def entries(cache):
    return sorted(path for path in cache.iterdir())


def test_a_second_time_nothing_is_computed(folder, tmp_path, computed):
    cache = tmp_path / "not" / "there yet"
    first = load_speech_corpus(folder, "emodb", cache=cache)
    assert len(computed) == len(entries(cache)) == 6
    second = load_speech_corpus(folder, "emodb", cache=str(cache))
    assert len(computed) == 6
    np.testing.assert_array_equal(first.data, second.data)
    assert second.data.flags.writeable
    without = load_speech_corpus(folder, "emodb", cache=False)
    assert len(computed) == 12
    np.testing.assert_array_equal(first.data, without.data)


def test_entries_follow_contents_not_names(folder, tmp_path, computed):
    cache = tmp_path / "cache"
    load_speech_corpus(folder, "emodb", cache=cache)
    (folder / "03a00Fa.wav").rename(folder / "09a00Wa.wav")
    write(folder / "08a01Wa.wav", samples=voice(1.2, seed=77))
    load_speech_corpus(folder, "emodb", cache=cache)
    assert len(computed) == 7  # the changed one alone


def test_settings_do_not_share_entries(folder, tmp_path, computed, monkeypatch):
    cache = tmp_path / "cache"
    wide = load_speech_corpus(folder, "emodb", cache=cache)
    narrow = load_speech_corpus(folder, "emodb", cache=cache, bandwidth="narrow")
    assert len(computed) == 12
    assert not np.array_equal(wide.data, narrow.data)
    monkeypatch.setattr("covshift.datasets.speech_features.SETTINGS_VERSION", 0)
    load_speech_corpus(folder, "emodb", cache=cache)
    assert len(computed) == 18


@pytest.mark.parametrize(
    "damage",
    [
        lambda contents: b"",
        lambda contents: contents[:20],
        lambda contents: contents[:-8],
        lambda contents: contents + contents,
        lambda contents: contents[:100] + bytes([contents[100] ^ 1]) + contents[101:],
        lambda contents: bytes([contents[0] ^ 1]) + contents[1:],
    ],
    ids=["empty", "head", "short", "long", "flipped", "hash flipped"],
)
def test_damaged_entries_are_computed_anew(folder, tmp_path, computed, damage):
    cache = tmp_path / "cache"
    good = load_speech_corpus(folder, "emodb", cache=cache)
    entry = entries(cache)[0]
    contents = entry.read_bytes()
    entry.write_bytes(damage(contents))
    again = load_speech_corpus(folder, "emodb", cache=cache)
    np.testing.assert_array_equal(again.data, good.data)
    assert len(computed) == 7
    assert entry.read_bytes() == contents


def test_where_the_default_is(tmp_path, monkeypatch, folder):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert _default_cache_folder() == tmp_path / "home" / ".cache" / "covshift" / "speech"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    load_speech_corpus(folder, "emodb")
    assert len(entries(tmp_path / "elsewhere" / "covshift" / "speech")) == 6
    assert not (tmp_path / "home").exists()


def test_no_cache_leaves_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    load_speech_corpus(folder, "emodb", cache=False)
    assert not (tmp_path / "elsewhere").exists()


def test_a_cache_that_cannot_be_written_to(folder, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot be stored in .*cache=False"):
        load_speech_corpus(folder, "emodb", cache=tmp_path / "file")


def test_a_disk_that_runs_full(folder, tmp_path, monkeypatch):
    """Stored features stay, and the message names the folder."""
    cache = tmp_path / "cache"
    write_whole = speech.write_whole

    def full(path, write):
        if len(entries(cache)) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, write)

    monkeypatch.setattr(speech, "write_whole", full)
    with pytest.raises(OSError, match=rf"stored in {cache} \(No space left on device\): choose"):
        load_speech_corpus(folder, "emodb", cache=cache)
    assert len(entries(cache)) == 2


def test_a_user_without_a_home(folder, monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(OSError, match=r"No folder to store features in .*XDG_CACHE_HOME"):
        load_speech_corpus(folder, "emodb")
    assert len(load_speech_corpus(folder, "emodb", cache=False).data)


def test_equal_files_in_threads(tmp_path):
    """Two workers that find the same contents do not get into each other's way."""
    for i in range(8):
        write(tmp_path / "corpus" / f"03a0{i}Fa.wav", 1.2, seed=0)
    with parallel_config(backend="threading"):
        data = load_speech_corpus(
            tmp_path / "corpus", "emodb", cache=tmp_path / "cache", n_jobs=4
        ).data
    assert len(data) == 8
    np.testing.assert_array_equal(data, data[[0] * 8])
    assert len(entries(tmp_path / "cache")) == 1


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize(("n_jobs", "kill_after"), [(1, 1), (1, 4), (2, 3)])
def test_a_kill_loses_the_files_in_flight_at_most(folder, tmp_path, computed, n_jobs, kill_after):
    cache = tmp_path / "cache"
    module = "tests.datasets.recordings"
    arguments = [str(folder), str(cache), str(n_jobs), str(kill_after)]
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", module, *arguments],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        process.wait(timeout=120)
        kept = len(entries(cache))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # workers may outlive it
    assert process.returncode == -signal.SIGKILL
    assert kept == kill_after
    resumed = load_speech_corpus(folder, "emodb", cache=cache)
    assert len(computed) == 6 - kill_after
    np.testing.assert_array_equal(
        resumed.data, load_speech_corpus(folder, "emodb", cache=False).data
    )
