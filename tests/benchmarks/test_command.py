"""The command: a stranger's method from its file to the leaderboard, quick runs, lists."""

import csv
import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from covshift_bench import methods
from covshift_bench.command import main, sample_tasks, tasks_of_results
from covshift_bench.methods import all_methods
from covshift_bench.results import open_results, read_lines
from covshift_bench.summary import PLAIN
from covshift_bench.tasks import read_tasks

TASK = "made up: shift_and_scale, seed 0"


@pytest.fixture
def stranger(tmp_path):
    """A copy of the template with other names, as the page says."""
    folder = tmp_path / "mine"
    folder.mkdir()
    text = Path(methods.__file__).with_name("template.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 20
    text = text.replace("my centered logistic", "stranger's logistic")
    (folder / "stranger_method.py").write_text(text, encoding="utf-8")
    before = set(sys.modules)
    yield folder
    sys.path[:] = [one for one in sys.path if one != str(folder)]
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.filterwarnings("ignore")
def test_a_stranger_s_method_is_seen_on_the_leaderboard(stranger, tmp_path, capsys):
    out, page = tmp_path / "results.jsonl", tmp_path / "page.html"
    chosen = ["--methods-from", str(stranger), "--methods", "auto", "stranger*"]
    made_up = ["--made-up", "1", "--tasks", TASK]
    main(["run", *made_up, *chosen, "--seeds", "1", "--out", str(out)])
    assert {line["status"] for line in read_lines(out)} == {"ok"}
    main(["run", *made_up, *chosen, "--seeds", "1", "--out", str(out)])
    assert "2 of them done before" in capsys.readouterr().out
    main(["summary", str(out), "--out", str(tmp_path / "summary")])
    assert "stranger's logistic" in capsys.readouterr().out
    scores = pd.read_parquet(tmp_path / "summary" / "scores.parquet")
    assert "stranger's logistic" in set(scores["method"])
    main(["page", str(out), "--out", str(page)])
    assert "stranger's logistic" in page.read_text(encoding="utf-8")


def test_methods_of_a_folder_come_last_and_names_are_unique(stranger):
    found = all_methods([stranger])
    assert list(found)[-1] == "stranger's logistic"
    shutil.copy(stranger / "stranger_method.py", stranger / "stranger_twin.py")
    with pytest.raises(ValueError, match="two methods are named"):
        all_methods([stranger])


def test_a_quick_run_takes_one_small_task_of_each_cluster():
    tasks = read_tasks()
    sample = sample_tasks(tasks)
    clusters = [task.cluster for task in sample]
    assert len(clusters) == len(set(clusters)) == len({task.cluster for task in tasks})
    size = {task.name: task.n_source + task.n_target + task.n_test for task in tasks}
    for task in sample:
        others = [size[one.name] for one in tasks if one.cluster == task.cluster]
        assert size[task.name] == min(others)


def test_random_methods_have_three_seeds_and_the_others_one(tmp_path):
    out = tmp_path / "results.jsonl"
    names = ["--methods", "plain logistic", "sf + logistic"]
    main(["run", "--made-up", "1", "--tasks", TASK, *names, "--out", str(out)])
    seeds = {}
    for line in read_lines(out):
        assert line["status"] == "ok"
        seeds.setdefault(line["method"], []).append(line["seed"])
    assert seeds == {"plain logistic": [0], "sf + logistic": [0, 1, 2]}


def test_results_of_published_protocols_find_their_tasks():
    assert len(tasks_of_results([], Namespace(list="simulated", data=None))) == 100
    with pytest.raises(SystemExit, match="--list skada needs --data FOLDER"):
        tasks_of_results([], Namespace(list="skada", data=None))


def test_nothing_to_run_is_said(tmp_path):
    with pytest.raises(SystemExit, match="Name the folder"):
        main(["run", "--out", str(tmp_path / "results.jsonl")])
    with pytest.raises(SystemExit, match="No name matches"):
        main(["run", "--made-up", "1", "--methods", "nothing"])


def stopped(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return str(stop.value)


def test_missing_files_and_files_without_methods_are_named(stranger, tmp_path):
    run = ["run", "--made-up", "1", "--out", str(tmp_path / "results.jsonl")]
    nowhere = str(tmp_path / "nowhere")
    assert stopped([*run, "--methods-from", nowhere]) == f"{nowhere} is not a folder."
    (stranger / "helping.py").write_text("")
    assert "helping.py has no list METHODS" in stopped([*run, "--methods-from", str(stranger)])
    (stranger / "helping.py").rename(stranger / "calendar.py")
    assert "another module is named 'calendar'" in stopped([*run, "--methods-from", str(stranger)])
    assert "nowhere does not exist" in stopped(["summary", nowhere])
    (tmp_path / "empty.jsonl").touch()
    empty = ["page", str(tmp_path / "empty.jsonl")]
    assert "Run the method auto" in stopped(empty)
    assert "held-out, simulated" in stopped([*empty, "--list", "held"])
    assert "held-out, simulated" in stopped(["run", str(tmp_path), "--list", "held"])
    assert "held-out, simulated" in stopped(["tasks", str(tmp_path), "--list", "held"])


def test_results_of_a_task_that_was_drawn_anew_are_left_out(tmp_path, capsys):
    out = tmp_path / "results.jsonl"
    main(
        ["run", "--made-up", "1", "--tasks", TASK, "--methods", "plain logistic", "--out", str(out)]
    )
    line = read_lines(out)[0]
    for name in PLAIN.values():
        text = json.dumps(line | {"method": name, "seconds": None})
        out.write_text(out.read_text() + text + "\n")
    main(["summary", str(out)])
    assert "2 methods" not in capsys.readouterr().out
    out.write_text(out.read_text().replace('"rows": ""', '"rows": "other"'))
    assert "None of 0 tasks" in stopped(["summary", str(out)])


@pytest.mark.skipif(os.name == "nt", reason="needs limits of the size of a file")
def test_a_full_disk_and_a_second_run_stop_with_a_word_and_lose_nothing(tmp_path):
    out = tmp_path / "results.jsonl"
    run = ["run", "--made-up", "1", "--tasks", TASK, "--out", str(out)]
    run += ["--methods", "plain logistic", "plain SVC", "plain nearest neighbors"]
    with open_results(out):
        assert stopped(run).startswith(f"Stopped: {out} is in use by another run.")
    code = (
        "import resource, sys; from covshift_bench.command import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *run]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert found.stderr.startswith("Stopped: [Errno 27]")
    before = read_lines(out)
    assert 1 <= len(before) < 3
    assert out.stat().st_size == 6000  # the line that did not fit is there in part
    main(run)
    lines = read_lines(out)
    assert lines[: len(before)] == before
    assert [line["status"] for line in lines] == ["ok"] * 3


def test_a_list_of_other_collections_is_written_and_checked(tmp_path, capsys):
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(3), 80)
    y = rng.integers(2, size=240)
    X = rng.standard_normal((240, 3)) + y[:, None] + domain[:, None]
    names = {
        "feature_names": '["a", "b", "c"]',
        "class_names": '["no", "yes"]',
        "domain_names": '["x", "y", "z"]',
        "ordered": "false",
    }
    arrays = {"X": X.astype("f4"), "y": y, "domain": domain}
    np.savez(tmp_path / "mine.npz", **arrays, **{k: np.array(v) for k, v in names.items()})
    path = tmp_path / "mine.csv"
    main(["tasks", str(tmp_path), "--list", str(path), "--write"])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert {row["mark"] for row in rows} <= {"shift", "control"}
    main(["tasks", str(tmp_path), "--list", str(path)])
    assert "8 tasks in 1 clusters" in capsys.readouterr().out
    out = tmp_path / "results.jsonl"
    run = ["run", str(tmp_path), "--list", str(path), "--methods", "plain logistic"]
    main([*run, "--out", str(out), "--minutes", "0"])
    assert read_lines(out) == []
    main([*run, "--out", str(out)])
    assert len(read_lines(out)) == 8
    path.write_text(path.read_text() + path.read_text().splitlines()[1].replace("mine", "other"))
    capsys.readouterr()
    main(["list", str(tmp_path), "--list", str(path), "--methods", "plain logistic"])
    assert "does not have them: other\n" in capsys.readouterr().out
