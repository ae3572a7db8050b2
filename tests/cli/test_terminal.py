"""Progress on a terminal while a command works."""

import ctypes
import io
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from covshift.cli import terminal as module
from covshift.cli.terminal import _say_seconds, _silenced, say_progress, working
from covshift.tables import TableClassifier, match_tables, open_table, read_pair
from tests.cli.user_files import make_tables, succeed, write_tables

LIBC = ctypes.CDLL(None) if sys.platform != "win32" else None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"),
     (3725, "1 h 2 min"), (86400, "24 h")],
)  # fmt: skip
def test_times(seconds, text):
    assert _say_seconds(seconds) == text


def test_shares_and_what_is_left():
    assert say_progress(None, 7.0, 0.0) == "7 s"
    assert say_progress(0.0, 7.0, 0.0) == "7 s"
    assert say_progress(0.5, 1.0, 1.0) == "50 %"  # too early for an estimate
    assert say_progress(0.5, 30.0, 30.0) == "50 %, about 30 s left"
    assert say_progress(0.5, 40.0, 30.0) == "50 %, about 20 s left"
    assert say_progress(0.5, 90.0, 30.0) == "50 %, about 1 s left"  # slower than expected
    assert say_progress(1.0, 90.0, 90.0) == "100 %"


@pytest.mark.skipif(LIBC is None, reason="needs the C library by its usual name")
def test_compiled_code_prints_nothing(capfd):
    LIBC.printf(b"before ")
    LIBC.fflush(None)
    with _silenced():
        LIBC.printf(b"from C ")  # held back until it is flushed
        os.write(2, b"WARNING: class label 0 specified in weight is not found\n")
    LIBC.printf(b"after")
    LIBC.fflush(None)
    assert tuple(capfd.readouterr()) == ("before after", "")


def test_libsvm_prints_nothing(capfd):
    """A class whose rows all have weight 0 makes it write to standard error."""
    rows, labels = np.arange(12.0)[:, None], np.arange(12) % 3
    weights = (labels < 2).astype(float)

    def fit():
        SVC().fit(rows, labels, sample_weight=weights)

    fit()
    if not (said := capfd.readouterr()).err + said.out:
        pytest.skip("this libsvm prints nothing")
    with _silenced():
        fit()
    assert tuple(capfd.readouterr()) == ("", "")


def test_streams_are_as_before_after_an_error(capfd):
    with pytest.raises(KeyError), _silenced():
        raise KeyError
    os.write(1, b"out")
    os.write(2, b"err")
    assert tuple(capfd.readouterr()) == ("out", "err")


def test_a_process_without_streams(monkeypatch):
    def refuse(stream):
        raise OSError

    monkeypatch.setattr(module.os, "dup", refuse)
    with _silenced() as terminal:
        assert terminal is None


def test_a_terminal_gets_share_and_time_left(monkeypatch):
    """In a pseudo-terminal, with the clock in our hands."""
    pty = pytest.importorskip("pty")
    clock = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    main, other = pty.openpty()
    with os.fdopen(other, "w") as terminal, module._bar(terminal, "reading") as update:
        clock[0] = 10.0
        update("reading a.csv: 5 rows", 0.25)
        print("from a library")
        time.sleep(0.3)  # it is drawn ten times a second
        update("reading b.csv: 1 rows")
        time.sleep(0.3)
    shown = os.read(main, 100_000).decode()
    os.close(main)
    assert "reading a.csv: 5 rows" in shown
    assert "25 %, about 30 s left" in shown
    assert "reading b.csv: 1 rows" in shown
    assert "from a library" not in shown


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_pipes_and_quiet_get_nothing(terminal, quiet, monkeypatch):
    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    monkeypatch.setattr(sys, "stderr", Stream())
    with working("reading", quiet) as update:
        update("more", 0.5)
    assert sys.stderr.getvalue() == ""


def test_quiet_leaves_results(tmp_path):
    files = write_tables(tmp_path)
    model = tmp_path / "model.skops"
    choice = ["--label", "churned", "--adapter", "standardize", "--out", model]
    said = succeed("adapt", files["train"], files["new"], *choice, "--quiet")
    assert f"Model: {model}" in said
    assert "- " not in said
    assert "- Ignored 'customer_id'" in succeed("adapt", files["train"], files["new"], *choice)
    for command in (
        ["predict", model, files["later"], "--out", tmp_path / "p.csv"],
        ["score", model, files["labeled"]],
        ["monitor", model, files["new"]],
    ):
        assert not any(line.startswith("- ") for line in succeed(*command, "-q").splitlines())


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "folder", "utf-16"])
def test_shares_of_files(ending, tmp_path):
    frame = pd.DataFrame({"x": np.arange(200_000) / 7, "y": "word"})
    path = tmp_path / f"table.{ending}"
    if ending == "folder":
        path.mkdir()
        for number in range(4):
            frame.to_parquet(path / f"{number}.parquet")
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, encoding="utf-16" if ending == "utf-16" else "utf-8")
    reader = open_table(path, chunk_bytes=1 << 20)
    shares = [reader.share_read for _ in reader]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] == 1


def test_the_automatic_choice_tells_of_its_scores():
    tables = make_tables()
    matched = match_tables(tables["train"], tables["new"], label="churned")
    told = []
    model = TableClassifier().set_params(estimator=None)
    model.fit_tables(matched, progress=lambda *one: told.append(one))
    steps, shares = zip(*told, strict=True)
    assert steps[0].startswith("score 1 of ")
    assert list(shares) == sorted(shares)
    assert 0 < shares[0] <= shares[-1] < 1
    assert model.estimator_.verbose == 0
    assert "_print" not in vars(model.estimator_)  # or it could not be saved


def test_reading_tells_its_share(tmp_path):
    files = write_tables(tmp_path)
    told = []
    read_pair(files["train"], files["new"], label="churned", progress=lambda *one: told.append(one))
    assert told[0] == ("reading train.csv: 200 rows", 1.0)


def test_interrupted_work_gives_the_terminal_back():
    code = (
        "import os, sys\n"
        "from covshift.cli.terminal import working\n"
        "try:\n"
        "    with working('x'):\n"
        "        os.write(1, b'hidden'); print('hidden'); raise KeyboardInterrupt\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ended\n", "")
