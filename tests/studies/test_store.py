import csv
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections import namedtuple
from functools import partial

import numpy
import pytest

from covshift import __version__
from covshift.output_files import software_versions
from covshift.studies import store
from covshift.studies.store import (
    MixedVersionsWarning,
    Record,
    StoreError,
    load_results,
    open_store,
    task_key,
    write_records,
)
from covshift.studies.trial import TaskOutcome, Trial

TRIALS = [Trial("study", {"system": system}, seed) for system in "ab" for seed in (10, 9)]
USES = [open_store, partial(open_store, fresh=True), load_results]


def outcome(trials, error=None, warned=()):
    results = None if error else [json.dumps({"value": trial.seed / 3}) for trial in trials]
    return TaskOutcome(0, results, error, error and "Traceback", list(warned), 0.25)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs [1] #2%3f é?" / "study.sqlite"


@pytest.fixture
def stored(path):
    with open_store(path) as opened:
        opened.save(TRIALS[:2], outcome(TRIALS[:2]))
    return path


def change_meta(path, **changes):
    with sqlite3.connect(path) as connection:
        for name, value in changes.items():
            connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))
    connection.close()


def test_what_is_saved_is_read_back(path):
    with open_store(path) as opened:
        opened.save(TRIALS[:3], outcome(TRIALS[:3], warned=[("UserWarning", "é\n", 3)]))
        opened.save(TRIALS[3:], outcome(TRIALS[3:], error="ValueError: no"))
        inside = opened.records()
    records = load_results(path)
    assert records == inside
    assert [record.trial for record in records] == [TRIALS[i] for i in (1, 0, 3, 2)]  # sorted
    good, bad = records[0], records[2]
    assert good == Record(
        *(TRIALS[1], {"value": 3.0}, None, None, [("UserWarning", "é\n", 3)], 0.25),
        finished=good.finished,
    )
    assert (bad.result, bad.error, bad.traceback) == (None, "ValueError: no", "Traceback")


def test_nothing_but_the_file_is_left(stored):
    assert os.listdir(stored.parent) == [stored.name]


def test_finished_tasks(path):
    whole, failed = TRIALS[:2], TRIALS[2:]
    with open_store(path) as opened:
        assert opened.finished_tasks() == set()
        opened.save(whole, outcome(whole))
        opened.save(failed, outcome(failed, error="ValueError: no"))
        assert opened.finished_tasks() == {task_key(whole)}
        opened.save(failed, outcome(failed))
        assert opened.finished_tasks() == {task_key(whole), task_key(failed)}
        # A trial stored again with another task: the rest of its old one is not a whole task.
        opened.save(TRIALS[1:2], outcome(TRIALS[1:2]))
        assert opened.finished_tasks() == {task_key(TRIALS[1:2]), task_key(failed)}
        assert len(opened.records()) == 4


def test_task_key_depends_on_the_trials_and_their_order():
    tasks = [TRIALS[:1], TRIALS[1:2], TRIALS[:2], TRIALS[1::-1]]
    assert len({task_key(task) for task in tasks}) == 4


def test_runs_are_recorded(stored):
    with open_store(stored, run_settings={"trials": 10, "out": "runs"}):
        pass
    connection = sqlite3.connect(stored)
    rows = connection.execute("SELECT started, versions, settings FROM runs").fetchall()
    meta = dict(connection.execute("SELECT * FROM meta"))
    connection.close()
    assert [json.loads(settings) for _, _, settings in rows] == [{}, {"out": "runs", "trials": 10}]
    assert json.loads(rows[0][1]) == software_versions()
    assert {"Python", "NumPy", "SciPy", "scikit-learn", "platform"} <= set(json.loads(rows[0][1]))
    assert (meta["format"], meta["covshift"]) == (store.FORMAT, __version__)


def test_bad_run_settings(path):
    with pytest.raises(TypeError, match=r"run_settings\['a'\] is a set"):
        open_store(path, run_settings={"a": {1}})
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"covshift": "0.0.1"}, [r"covshift 0\.0\.1", f"covshift {__version__}"]),
        ({"covshift": "0.0.1", "format": "0"}, ["format 0", r"covshift 0\.0\.1", "with format 1"]),
    ],
)
def test_another_version_is_refused(stored, changes, words):
    change_meta(stored, **changes)
    before = stored.read_bytes()
    way_out = ["choose another file", "move or delete", "fresh=True", "--fresh"]
    for word in [*words, *way_out, "study.sqlite"]:
        with pytest.raises(StoreError, match=word) as error:
            open_store(stored)
        assert "\n" not in str(error.value)
    assert stored.read_bytes() == before
    with open_store(stored, fresh=True) as opened:
        assert opened.records() == []
    assert load_results(stored) == []


def test_results_of_another_version_can_be_read(stored):
    change_meta(stored, covshift="0.0.1")
    assert len(load_results(stored)) == 2
    change_meta(stored, format="0")
    with pytest.raises(StoreError, match="format 0"):
        load_results(stored)


def test_fresh_starts_over(stored):
    with open_store(stored, fresh=True) as opened:
        assert opened.records() == []
        opened.save(TRIALS[3:], outcome(TRIALS[3:]))
    assert [record.trial for record in load_results(stored)] == TRIALS[3:]


def test_fresh_without_a_file(path):
    with open_store(path, fresh=True) as opened:
        assert opened.finished_tasks() == set()


def test_other_versions_of_libraries_are_a_warning(stored, monkeypatch):
    monkeypatch.setattr(numpy, "__version__", "0.1")
    now = software_versions()["NumPy"]
    with pytest.warns(MixedVersionsWarning, match=rf"NumPy .* then, {now} now\)"):
        open_store(stored).close()
    # Nothing was computed with it: the file is still of one version.
    monkeypatch.undo()
    open_store(stored).close()


def test_a_warning_that_is_an_error_leaves_the_file_unlocked(stored, monkeypatch):
    monkeypatch.setattr(numpy, "__version__", "0.1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MixedVersionsWarning):
            open_store(stored)
    assert len(load_results(stored)) == 2


@pytest.mark.parametrize(
    "use", [open_store, lambda path: open_store(path, fresh=True), load_results]
)
@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty, not a file of results"),
        (b"mine", "is not a file of results"),
        (b"key,value\n" * 10_000, "is not a file of results"),
        (None, "is a folder, not a file of results"),
    ],
)
def test_junk_is_refused_and_left_alone(tmp_path, use, contents, message):
    path = tmp_path / "file"
    path.mkdir() if contents is None else path.write_bytes(contents)
    with pytest.raises(
        StoreError, match=f"{path} {message}: choose another file, or move"
    ) as error:
        use(path)
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == ["file"]
    assert contents is None or path.read_bytes() == contents


def test_database_of_another_program(tmp_path):
    path = tmp_path / "mine.sqlite"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE trials (mine)")
    connection.close()
    before = path.read_bytes()
    for options in ({}, {"fresh": True}):
        with pytest.raises(StoreError, match="database of another program: choose another"):
            open_store(path, **options)
    with pytest.raises(StoreError, match="database of another program"):
        load_results(path)
    assert path.read_bytes() == before


def test_damaged_file(stored):
    with open_store(stored) as opened:
        many = [Trial("study", {}, seed) for seed in range(500)]
        opened.save(many, outcome(many))
    os.truncate(stored, stored.stat().st_size // 2)
    with pytest.raises(StoreError, match=r"is damaged \(.*\): choose another file"):
        load_results(stored)


def test_no_file_to_read(tmp_path):
    with pytest.raises(StoreError, match=r"there is no file .*missing"):
        load_results(tmp_path / "missing")
    assert os.listdir(tmp_path) == []


def test_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=r"cannot write to the folder .*file"):
        open_store(tmp_path / "file" / "study.sqlite")


def test_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    # Permissions do not bind root, who may run these tests: the system's answer is feigned.
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(StoreError, match=f"folder {tmp_path}: Permission denied"):
        open_store(tmp_path / "study.sqlite")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind root")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            open_store(tmp_path / "study.sqlite")
    finally:
        tmp_path.chmod(0o700)


def test_too_little_room(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100e6, 51e6, 49e6))
    with pytest.raises(StoreError, match=f"{tmp_path}: 49 MB are free there, 50 MB are needed"):
        open_store(tmp_path / "study.sqlite")
    assert os.listdir(tmp_path) == []


def test_full_disk_stores_all_of_a_task_or_nothing(stored):
    many = [Trial("study", {"long": "x" * 1000}, seed) for seed in range(100)]
    with open_store(stored) as opened:
        (pages,) = opened.connection.execute("PRAGMA page_count").fetchone()
        opened.connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreError, match="the disk is full: what was stored stays; make room"):
            opened.save(many, outcome(many))
        assert len(opened.records()) == 2
        opened.save(TRIALS[2:3], outcome(TRIALS[2:3]))  # a small one still fits
    assert len(load_results(stored)) == 3


HOLDING = """
import sys
from covshift.studies.store import open_store
with open_store(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused(stored):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(stored)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"open\n"
        for use in USES:
            with pytest.raises(StoreError, match="is in use: wait for the end of the run") as error:
                use(stored)
            assert "\n" not in str(error.value)
        holder.kill()  # the lock ends with its owner
    assert len(load_results(stored)) == 2
    open_store(stored).close()


def test_the_same_process_is_refused_too(stored):
    with open_store(stored):
        for use in (open_store, load_results):
            with pytest.raises(StoreError, match="is in use"):
                use(stored)
        # And the attempts did not take the first one's lock away.
        with pytest.raises(StoreError, match="is in use"):
            open_store(stored)


def test_without_hard_links(path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    with open_store(path) as opened:
        opened.save(TRIALS, outcome(TRIALS))
    assert os.listdir(path.parent) == [path.name]
    assert len(load_results(path)) == 4


def test_a_file_made_by_somebody_else_meanwhile_is_kept(stored, monkeypatch):
    store._make(stored)
    assert len(load_results(stored)) == 2
    assert os.listdir(stored.parent) == [stored.name]


def test_a_file_half_made_is_never_seen(path, monkeypatch):
    monkeypatch.setattr(store, "SCHEMA", ("CREATE TABLE meta (", *store.SCHEMA))
    with pytest.raises(StoreError, match="cannot be read or written"):
        open_store(path)
    assert os.listdir(path.parent) == []


def test_room_for_trials(path):
    """The comment beside the least room is true: a trial of ordinary size takes less than 1 kB."""
    settings = {"data_set": "diagonal", "system": "IW+LSPC", "reading": "published", "C": 0.25}
    with open_store(path) as opened:
        for start in range(0, 1000, 10):
            task = [Trial("synthetic", settings, seed) for seed in range(start, start + 10)]
            opened.save(task, outcome(task))
    assert path.stat().st_size < 1000 * store.MIN_FREE_TRIAL_BYTES / 50_000


# The table


def record(settings, seed=0, result=None, error=None):
    return Record(Trial("e", settings, seed), result, error, None, [], 1.5, "2026-01-01T00:00:00")


RECORDS = [
    record({"b": "SF", "a": [1, None]}, 3, {"value": 0.1 + 0.2, "nan": float("nan")}),
    record({"b": 'say "hi",\n\udce9'}, 4, {"value": -math.inf, "fine": True, "seed": "x"}),
    record({}, 5, error="ValueError: no"),
]


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv(tmp_path):
    write_records(RECORDS, tmp_path / "t.csv")
    rows = read_csv(tmp_path / "t.csv")
    assert list(rows[0]) == [
        *("experiment", "settings.a", "settings.b", "seed"),
        *("result.fine", "result.nan", "result.seed", "result.value", "error"),
    ]
    assert rows[0]["settings.a"] == "[1, null]"
    assert float(rows[0]["result.value"]) == 0.1 + 0.2
    assert math.isnan(float(rows[0]["result.nan"]))
    assert rows[1]["settings.b"] == 'say "hi",\n\\udce9'
    assert float(rows[1]["result.value"]) == -math.inf
    assert (rows[1]["result.fine"], rows[1]["result.seed"]) == ("true", "x")
    assert rows[2]["error"] == "ValueError: no"
    assert rows[2]["result.value"] == ""


def test_json(tmp_path):
    def refuse(name):
        raise AssertionError(f"{name} is not strict JSON")

    write_records(RECORDS, tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text(), parse_constant=refuse)
    assert rows[0] == {
        "experiment": "e",
        "settings": {"a": [1, None], "b": "SF"},
        "seed": 3,
        "result": {"value": 0.1 + 0.2, "nan": "NaN"},
        "error": None,
    }
    assert float(rows[1]["result"]["value"]) == -math.inf
    assert rows[2]["result"] is None


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_timings_only_when_asked_for(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_records(RECORDS, path)
    assert "2026" not in path.read_text()
    write_records(RECORDS, path, timings=True)
    assert path.read_text().count("2026-01-01T00:00:00") == 3
    assert path.read_text().count("1.5") == 3
    assert os.listdir(tmp_path) == [path.name]


def test_no_records(tmp_path):
    write_records([], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "experiment,seed,error\n"
    write_records([], tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text() == "[]\n"


def test_other_endings(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .csv or .json, got 't.xlsx'"):
        write_records(RECORDS, tmp_path / "t.xlsx")


def test_the_old_table_stays_when_the_new_one_fails(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_records(RECORDS, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]
