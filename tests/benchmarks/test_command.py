"""The command: a stranger's method from its file to the leaderboard, quick runs, lists."""

import csv
import shutil
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from covshift_bench import methods
from covshift_bench.command import main, sample_tasks, tasks_of_results
from covshift_bench.methods import all_methods
from covshift_bench.results import read_lines
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
    return folder


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
