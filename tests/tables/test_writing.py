"""Tables of results: complete or absent, and harmless in a spreadsheet program."""

import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from covshift.tables import TableError, check_output, read_table, write_table, writing

FRAME = pd.DataFrame(
    {
        "row": [1, 2, 3],
        "score": [-0.25, 1e-300, np.nan],
        "label": pd.array(["yes", 'a "b", c', None], dtype=pd.StringDtype("pyarrow")),
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
        "sure": [True, False, True],
    }
)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.TSV.GZ", "a.parquet"])
def test_what_is_written_can_be_read(tmp_path, name):
    path = tmp_path / name
    assert write_table(path, iter([FRAME, FRAME.iloc[:1]])) == 4
    frame = read_table(path).frame
    frame["day"] = frame["day"].astype(FRAME["day"].dtype)  # pandas 2.2 minds the unit of time
    pd.testing.assert_frame_equal(
        frame,
        pd.concat([FRAME, FRAME.iloc[:1]], ignore_index=True),
        check_dtype=False,
        check_exact=True,
    )
    assert os.listdir(tmp_path) == [name]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(tmp_path / name, [FRAME])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


RISKY = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "=-5"]
HARMLESS = ["-5", "+1.5", "-1e-3", "a=b", "", "<script>", "'=quoted", "5-3", None]


def test_formulas_become_text(tmp_path):
    path = tmp_path / "a.csv"
    frame = pd.DataFrame({"=name": RISKY + HARMLESS, "number": -np.arange(17.0)})
    write_table(path, [frame])
    read = pd.read_csv(path, keep_default_na=False)
    assert list(read) == ["'=name", "number"]
    cells = read.iloc[:, 0].tolist()
    assert cells == [f"'{cell}" for cell in RISKY] + [cell or "" for cell in HARMLESS]
    assert read["number"].tolist() == frame["number"].tolist()
    write_table(path, [frame], escape_formulas=False)
    assert pd.read_csv(path)["=name"].tolist()[:2] == RISKY[:2]


@pytest.mark.parametrize("dtype", ["object", "string[python]", "category"])
def test_formulas_of_any_type_of_text(tmp_path, dtype):
    write_table(tmp_path / "a.tsv", [pd.DataFrame({"x": pd.Series(RISKY, dtype=dtype)})])
    read = pd.read_csv(tmp_path / "a.tsv", sep="\t")
    assert read["x"].str.startswith("'").all()


def test_parquet_keeps_formulas_as_they_are(tmp_path):
    write_table(tmp_path / "a.parquet", [pd.DataFrame({"x": RISKY})])
    assert pd.read_parquet(tmp_path / "a.parquet")["x"].tolist() == RISKY


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_an_error_leaves_what_was_there(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"before")

    def frames():
        yield FRAME
        raise TableError("new.csv: is damaged.")

    with pytest.raises(TableError, match=r"^new\.csv: is damaged\.$"):
        write_table(path, frames())
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [name]


def test_a_killed_process_leaves_no_file(tmp_path):
    program = """
import sys, time
import pandas as pd
from covshift.tables import write_table
def frames():
    while True:
        yield pd.DataFrame({"x": range(10_000)})
        print("written", flush=True)
write_table(sys.argv[1], frames())
"""
    path = tmp_path / "a.csv"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "written\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not path.exists()
    if sys.platform == "linux":
        assert os.listdir(tmp_path) == []  # nor a hidden part of it


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "there are no rows"),
        ([FRAME, FRAME[["row"]]], "same columns"),
        ([pd.DataFrame({"x": [1.5]}), pd.DataFrame({"x": ["a"]})], "cannot be written"),
        ([pd.DataFrame({"x": [1, "a"]})], "cannot be written"),
    ],
)
def test_frames_that_cannot_be_written(tmp_path, frames, message):
    with pytest.raises(TableError, match=message) as raised:
        write_table(tmp_path / "a.csv", frames)
    assert "\n" not in str(raised.value)
    assert os.listdir(tmp_path) == []


def test_outputs_are_tried_first(tmp_path, monkeypatch):
    assert check_output(tmp_path / "new" / "a.csv") == tmp_path / "new" / "a.csv"
    (tmp_path / "link.csv").symlink_to(tmp_path / "elsewhere" / "b.csv")
    check_output(tmp_path / "link.csv")
    write_table(tmp_path / "link.csv", [pd.DataFrame({"a": [1]})])
    assert (tmp_path / "elsewhere" / "b.csv").exists()
    assert (tmp_path / "new").is_dir()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        check_output(tmp_path / "folder.csv")
    for name in ("a.xlsx", "a", ".csv", "a.gz"):
        with pytest.raises(TableError, match="ends in one of"):
            check_output(tmp_path / name)
        with pytest.raises(TableError, match="ends in one of"):
            write_table(tmp_path / name, [FRAME])
    with pytest.raises(TableError, match="is read too"):
        check_output(tmp_path / "a.csv", inputs=[tmp_path / "." / "a.csv"])
    (tmp_path / "file").write_text("x")
    with pytest.raises(TableError, match="cannot be written"):
        check_output(tmp_path / "file" / "a.csv")
    with pytest.raises(TableError, match="folder is not there"):
        write_table(tmp_path / "absent" / "a.csv", [FRAME])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unnamed", [False, True])
def test_a_full_disk_is_said(tmp_path, monkeypatch, unnamed):
    full = FullDisk(tmp_path)
    monkeypatch.setattr(
        "covshift.output_files._open_unnamed", lambda folder: full.open("wb") if unnamed else None
    )
    monkeypatch.setattr("covshift.output_files.temporary_beside", lambda path: FullDisk(path))
    with pytest.raises(TableError, match=r"cannot be written\. \(No space left on device\)"):
        write_table(tmp_path / "a.csv", [FRAME])
    assert os.listdir(tmp_path) == []


class FullDisk:
    """A temporary file on a disk that is full."""

    def __init__(self, path):
        self.path = path

    def open(self, mode):
        return open("/dev/full", mode)

    def unlink(self, missing_ok):
        pass


def test_gzip_holds_the_same_text(tmp_path):
    write_table(tmp_path / "a.csv", [FRAME])
    write_table(tmp_path / "a.csv.gz", [FRAME])
    content = gzip.decompress((tmp_path / "a.csv.gz").read_bytes())
    assert content == (tmp_path / "a.csv").read_bytes()


def test_a_folder_without_permission_is_said(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writing, "write_whole", refuse)
    with pytest.raises(TableError, match="cannot be written; check the folder's permissions"):
        writing.write_table(tmp_path / "out.csv", [pd.DataFrame({"a": [1]})])
