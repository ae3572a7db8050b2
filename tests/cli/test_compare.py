"""Output of `covshift compare`."""

import csv
from pathlib import Path

import numpy as np
import pytest

from covshift.registry import NO_ADAPTATION
from covshift.studies.comparison import collections
from covshift.studies.comparison import study as comparison
from covshift.studies.comparison.systems import systems, unadapted_models
from covshift.studies.runner import run_experiment
from tests.cli.user_files import assert_one_line, run
from tests.datasets.made_folders import make_vowels
from tests.studies.measuring import declaration, measure


@pytest.fixture
def few(monkeypatch):
    """Two pairs and two systems, so that a whole run takes a moment."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(collections, "MAX_PAIRS", 2)
    monkeypatch.setattr(comparison, "unadapted_models", lambda n: unadapted_models(n)[:2])

    def two(*shape):
        return {name: systems(*shape)[name] for name in (NO_ADAPTATION, "standardize")}

    monkeypatch.setattr(comparison, "systems", two)


@pytest.fixture
def folders(tmp_path):
    make_vowels(tmp_path / "vowels", n_speakers=6)
    rng = np.random.RandomState(0)
    np.savez(
        tmp_path / "mine.npz",
        X=rng.standard_normal((40, 3)),
        y=np.resize([0, 1], 40),
        domain=np.repeat(["site a", "site b"], 20),
    )
    return [f"vowels={tmp_path / 'vowels'}", f"mine={tmp_path / 'mine.npz'}"]


def test_compare_takes_several_collections_after_one_option(few, folders, tmp_path):
    out = tmp_path / "out"
    result = run("compare", "--data", *folders, "--out", out, "--trials", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert "…" not in result.stdout
    for text in ("vowels", "mine", NO_ADAPTATION, "standardize", "best without adapting"):
        assert text in result.stdout
    with (out / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2 * 3  # collections, pairs, seeds, systems
    assert {path.name for path in out.glob("*.csv")} == {
        "trials.csv", "report-vowels-systems.csv", "report-vowels-pairs.csv",
        "report-mine-systems.csv", "report-mine-pairs.csv",
    }  # fmt: skip


def test_compare_goes_on_where_it_was(few, folders, tmp_path):
    arguments = ("compare", "--data", folders[0], "--data", folders[1], "--out", tmp_path / "out")
    assert run(*arguments, "--trials", 1).exit_code == 0
    pages = [(tmp_path / "out" / name).read_bytes() for name in ("trials.csv",)]
    assert run(*arguments, "--trials", 1).exit_code == 0
    assert [(tmp_path / "out" / name).read_bytes() for name in ("trials.csv",)] == pages


def test_brackets_in_names_are_no_markup(few, folders, tmp_path):
    path = folders[1].partition("=")[2]
    result = run("compare", "--data", f"[/red]={path}", "--out", tmp_path / "o", "--trials", 1)
    assert result.exit_code == 0, result.output
    assert "[/red]" in result.stdout


def test_the_folder_of_another_study_is_left_alone(few, folders, tmp_path):
    out = tmp_path / "out"
    run_experiment(declaration(1), measure, out / "trials.sqlite")
    (out / "report.html").write_text("theirs")
    arguments = ("compare", "--data", folders[0], "--out", out, "--trials", 1)
    assert_one_line(run(*arguments), "another study (study)", "--fresh")
    assert (out / "report.html").read_text() == "theirs"
    assert run(*arguments, "--fresh").exit_code == 0
    assert run(*arguments).exit_code == 0  # more of its own is welcome


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["vowels"], ["NAME=PATH", "'vowels'"]),
        (["vowels="], ["NAME=PATH"]),
        (["vowels=/nowhere"], ["/nowhere does not exist"]),
        (["faces=/tmp"], ["Unknown collection 'faces'", "vowels"]),
        (["a=/nowhere.npz"], ["there is no file /nowhere.npz"]),
        (["a=/x.npz", "a=/y.npz"], ["names 'a' twice"]),
    ],
)
def test_compare_says_what_is_wrong_with_the_data(data, words, tmp_path):
    assert_one_line(run("compare", "--data", *data, "--out", tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "word"), [(["--trials", 0], "--trials"), (["--jobs", 0], "--jobs")]
)
def test_compare_checks_its_numbers(options, word, folders, tmp_path):
    result = run("compare", "--data", folders[0], "--out", tmp_path / "out", *options)
    assert_one_line(result, word)


def test_a_folder_that_may_not_be_looked_at(folders, tmp_path, monkeypatch):
    def forbidden(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", forbidden)
    result = run("compare", "--data", folders[0], "--out", tmp_path / "out")
    assert_one_line(result, f"cannot write to --out {tmp_path / 'out'}: Permission denied")


def test_names_with_line_breaks_take_one_line(tmp_path):
    result = run("compare", "--data", "a=two\nlines.npz", "--out", tmp_path / "out")
    assert_one_line(result, "there is no file two lines.npz")
