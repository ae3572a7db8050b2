"""Output of `covshift reproduce speech`."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from covshift.paper import command_runs
from covshift.studies.store import load_results
from tests.cli.user_files import run
from tests.paper.speech.made_corpora import TINY_PLAN

RATE = 16_000
PROGRAM = (
    "from covshift.cli import main\n"
    "from covshift.paper import command_runs\n"
    "from tests.paper.speech.made_corpora import TINY_PLAN\n"
    "command_runs.PLANS = {'quick': TINY_PLAN}\n"
    "main()\n"
)


def reproduce(*arguments):
    return run("reproduce", "speech", *arguments)


def write_sounds(folder, names, seed):
    """A second and a bit of noise each, colored by who speaks and how."""
    rng = np.random.RandomState(seed)
    folder.mkdir()
    for number, name in enumerate(names):
        noise = rng.standard_normal(int(1.1 * RATE))
        smooth = np.convolve(noise, np.ones(1 + number % 4) / 4, mode="same")
        soundfile.write(folder / f"{name}.wav", 0.1 * smooth, RATE)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora of two speakers and eight recordings each."""
    folder = tmp_path_factory.mktemp("corpora")
    emodb = [
        f"{speaker}a0{n}{letter}a"
        for speaker in ("03", "08")
        for n, letter in enumerate("FWNLFWNL")
    ]
    ravdess = [
        f"03-01-{emotion}-01-01-0{take}-{actor}"
        for actor in ("01", "02")
        for take in (1, 2)
        for emotion in ("01", "03", "04", "05")
    ]
    write_sounds(folder / "emodb", emodb, 0)
    write_sounds(folder / "ravdess", ravdess, 1)
    return [f"{name}={folder / name}" for name in ("emodb", "ravdess")]


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(command_runs, "PLANS", {"quick": TINY_PLAN, "default": TINY_PLAN})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")


def test_from_sounds_to_the_report_and_again(corpora, tmp_path):
    out = tmp_path / "out"
    arguments = ["--corpora", *corpora, "--plan", "quick", "--out", out]
    result = reproduce(*arguments)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "16 segments of 2 speakers." in lines
    assert any(line.startswith("Plan quick: 2 of 20 values of C") for line in lines)
    assert any(line.startswith("About 0 minutes from the start in 1 process,") for line in lines)
    assert lines[-1] == f"Report: {out / 'report.html'}"
    assert "emodb: with the printed settings" in result.stdout
    names = {"report.html", "report.md", "report-uar-emodb.csv", "trials.csv"}
    assert names <= set(os.listdir(out))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Does PSF help here?" in page
    stored = (out / "trials.csv").read_bytes()
    assert reproduce(*arguments).exit_code == 0  # nothing is left to do
    assert (out / "trials.csv").read_bytes() == stored


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--corpora", "emodb"], "takes NAME=FOLDER, such as emodb=DIR, got 'emodb'"),
        (["--corpora", "emo=x"], "unknown name 'emo'. Choose from: emodb, des, vam"),
        (["--corpora", "emodb=x", "emodb=y"], "'emodb' twice"),
        (["--corpora", "vam=x"], "vam is only trained on: add a corpus to test"),
        (["--corpora", "emodb=x", "--leave-out", "corpus"], "use --leave-out speaker"),
        (["--corpora", "emodb=x", "--leave-out", "me"], "unknown name 'me'. Choose from: corpus"),
        (["--corpora", "emodb=x", "--plan", "all"], "unknown name 'all'. Choose from: quick"),
        (["--corpora", "emodb=x", "--plan", "quick", "--seed", "-1"], "--seed must be from 0 to"),
        (["--corpora", "emodb=x", "--plan", "quick", "--jobs", "0"], "--jobs must be at least 1"),
        (["--corpora", "emodb=/no/such", "--plan", "quick"], "/no/such does not exist: give"),
    ],
)
def test_refusals_in_one_line(arguments, words, tmp_path):
    result = reproduce(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("covshift reproduce: ")
    assert words in result.stderr


def test_a_corpus_that_cannot_be_tested(tmp_path):
    """Speakers of one class each."""
    write_sounds(tmp_path / "one", ["03a01Fa", "03a02Fa", "08a01Wa", "08a02Wa"], 0)
    result = reproduce(
        "--corpora", f"emodb={tmp_path / 'one'}", "--plan", "quick", "--out", tmp_path / "o"
    )
    assert result.exit_code == 1
    assert "Every half of a speaker's recordings in emodb lacks a class" in result.stderr


def test_corpora_that_leave_nobody_to_train_on(corpora, tmp_path):
    one_speaker = [f"03a0{n}{letter}a" for n, letter in enumerate("FWNLFWNL")]
    write_sounds(tmp_path / "speaker", one_speaker, 0)
    one_class = [f"03-01-05-01-01-0{n}-{actor}" for n in (1, 2) for actor in ("01", "02")]
    write_sounds(tmp_path / "class", one_class, 1)
    for arguments, words in (
        ([f"emodb={tmp_path / 'speaker'}"], "emodb has a single speaker"),
        ([f"ravdess={tmp_path / 'class'}", corpora[0]], "recordings in ravdess lacks a class"),
        (
            [corpora[0], f"ravdess={tmp_path / 'class'}"],
            "The training recordings for emodb are all negative",
        ),
    ):
        out = tmp_path / "out"
        result = reproduce("--corpora", *arguments, "--plan", "quick", "--out", out)
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1
        assert words in result.stderr
        assert not os.listdir(out)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_killed_while_features_are_extracted(corpora, tmp_path):
    """Features that are there are not computed again, and the run goes on to its end."""
    out, cache = tmp_path / "out", tmp_path / "cache" / "covshift" / "speech"
    arguments = ["reproduce", "speech", "--corpora", *corpora, "--plan", "quick", "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while not (cache.is_dir() and len(os.listdir(cache)) >= 3):
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    kept = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(cache)}
    assert len([name for name in kept if not name.startswith(".")]) >= 3
    result = reproduce(*arguments[2:])
    assert result.exit_code == 0, result.output
    after = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(cache)}
    assert len([name for name in after if not name.startswith(".")]) == 32
    assert all(after.get(name, time_) == time_ for name, time_ in kept.items())
    assert all(record.error is None for record in load_results(out / "trials.sqlite"))
