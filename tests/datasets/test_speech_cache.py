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

from covshift.datasets import load_speech_corpus, speech_extraction
from covshift.datasets.speech_extraction import default_cache_folder
from tests.datasets.recordings import voice, write, write_emodb

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    return write_emodb(tmp_path / "corpus")


@pytest.fixture
def computed(monkeypatch):
    """Grow with each file whose features are computed, not found."""
    count = []
    compute = speech_extraction.segment_features

    def counted(*arguments, **options):
        count.append(1)
        return compute(*arguments, **options)

    monkeypatch.setattr(speech_extraction, "segment_features", counted)
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
    assert default_cache_folder() == tmp_path / "home" / ".cache" / "covshift" / "speech"
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
    with pytest.raises(OSError, match=r"cannot be kept in .*cache=False"):
        load_speech_corpus(folder, "emodb", cache=tmp_path / "file")


def test_a_disk_that_runs_full(folder, tmp_path, monkeypatch):
    """What was kept stays, and the message names the folder."""
    cache = tmp_path / "cache"
    write_whole = speech_extraction.write_whole

    def full(path, write):
        if len(entries(cache)) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, write)

    monkeypatch.setattr(speech_extraction, "write_whole", full)
    with pytest.raises(OSError, match=rf"kept in {cache} \(No space left on device\): choose"):
        load_speech_corpus(folder, "emodb", cache=cache)
    assert len(entries(cache)) == 2


def test_a_user_without_a_home(folder, monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(OSError, match=r"no folder to be kept in .*XDG_CACHE_HOME"):
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
