"""What a person sees of `covshift compare` and `covshift reproduce reviews`."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from covshift.cli import build_app
from covshift.experiments.comparison import trials as comparison
from covshift.experiments.comparison.recipes import NONE, systems, unadapted_models
from covshift.experiments.reviews import trials as reviews_trials
from tests.datasets.made_folders import make_review_arrays, make_vowels


def invoke(*arguments):
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


def assert_one_line(result, *words):
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


@pytest.fixture
def few(monkeypatch):
    """Two pairs and two systems, so that a whole run takes a moment."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(comparison, "MAX_PAIRS", 2)
    monkeypatch.setattr(comparison, "unadapted_models", lambda n: unadapted_models(n)[:2])

    def two(n_features):
        return {name: systems(n_features)[name] for name in (NONE, "DomainStandardScaler")}

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
    result = invoke("compare", "--data", *folders, "--out", out, "--trials", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert "…" not in result.stdout
    for text in ("vowels", "mine", NONE, "DomainStandardScaler", "best without adapting"):
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
    assert invoke(*arguments, "--trials", 1).exit_code == 0
    pages = [(tmp_path / "out" / name).read_bytes() for name in ("trials.csv",)]
    assert invoke(*arguments, "--trials", 1).exit_code == 0
    assert [(tmp_path / "out" / name).read_bytes() for name in ("trials.csv",)] == pages


def test_brackets_in_names_are_no_markup(few, folders, tmp_path):
    path = folders[1].partition("=")[2]
    result = invoke("compare", "--data", f"[/red]={path}", "--out", tmp_path / "o", "--trials", 1)
    assert result.exit_code == 0, result.output
    assert "[/red]" in result.stdout


def test_the_folder_of_another_study_is_left_alone(few, folders, tmp_path, monkeypatch):
    out = tmp_path / "out"
    arguments = ("compare", "--data", folders[0], "--out", out, "--trials", 1)
    assert invoke(*arguments).exit_code == 0
    page = (out / "report.html").read_bytes()
    monkeypatch.setattr("covshift.experiments.reviews.study.run_review_trials", instant_reviews)
    reviews = ("reproduce", "reviews", "--data", make_review_arrays(tmp_path / "r"), "--out", out)
    assert_one_line(invoke(*reviews), "another study (compare)", "--fresh")
    assert (out / "report.html").read_bytes() == page
    assert invoke(*arguments).exit_code == 0  # more of its own is welcome
    assert invoke(*reviews, "--fresh").exit_code == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["vowels"], ["NAME=PATH", "'vowels'"]),
        (["vowels="], ["NAME=PATH"]),
        (["vowels=/nowhere"], ["/nowhere does not exist"]),
        (["faces=/tmp"], ["there is no loader for 'faces'", "vowels"]),
        (["a=/nowhere.npz"], ["there is no file /nowhere.npz"]),
        (["a=/x.npz", "a=/y.npz"], ["names 'a' twice"]),
    ],
)
def test_compare_says_what_is_wrong_with_the_data(data, words, tmp_path):
    assert_one_line(invoke("compare", "--data", *data, "--out", tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "word"), [(["--trials", 0], "--trials"), (["--jobs", 0], "--jobs")]
)
def test_compare_checks_its_numbers(options, word, folders, tmp_path):
    result = invoke("compare", "--data", folders[0], "--out", tmp_path / "out", *options)
    assert_one_line(result, word)


def test_a_folder_that_may_not_be_looked_at(folders, tmp_path, monkeypatch):
    def forbidden(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", forbidden)
    result = invoke("compare", "--data", folders[0], "--out", tmp_path / "out")
    assert_one_line(result, f"cannot write to --out {tmp_path / 'out'}: Permission denied")


def test_names_with_line_breaks_take_one_line(tmp_path):
    result = invoke("compare", "--data", "a=two\nlines.npz", "--out", tmp_path / "out")
    assert_one_line(result, "there is no file two lines.npz")


def test_reviews(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    # Every trial at once, whatever it would measure.
    monkeypatch.setattr("covshift.experiments.reviews.study.run_review_trials", instant_reviews)
    data = make_review_arrays(tmp_path / "data")
    out = tmp_path / "out"
    result = invoke("reproduce", "reviews", "--data", data, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert "…" not in result.stdout
    assert "0.625 ± 0.000" in result.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    for text in ("oracle", "4000", "IW+LSPC", "default"):
        assert text in page


def instant_reviews(trials, folder):
    return [instant_result(trial.settings) for trial in trials]


def instant_result(settings):
    if settings["kind"] == "wide":
        return {"test_uar": 0.6}
    shape = len(settings["settings"]), len(settings["costs"])
    if settings["kind"] == "fold":
        return {"fold_uar": np.full(shape, 0.7).tolist()}
    return {
        "test_uar": np.full(shape, 0.625).tolist(),
        "oracle_uar": np.full(shape, 0.7).tolist(),
    }


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--data", "/nowhere"], "/nowhere does not exist"),
        (["--data", "/tmp", "--plan", "all"], "--plan must be one of default, full, got 'all'"),
        (["--data", "/tmp", "--seed", "-1"], "--seed"),
    ],
)
def test_reviews_says_what_is_wrong(options, word, tmp_path):
    assert_one_line(invoke("reproduce", "reviews", "--out", tmp_path / "out", *options), word)


def test_too_few_reviews(tmp_path):
    data = make_review_arrays(tmp_path / "data", n_rows=2)
    result = invoke("reproduce", "reviews", "--data", data, "--out", tmp_path / "out")
    assert_one_line(result, "too few reviews of books, dvd, electronics, kitchen", "3 positive")
    assert not (tmp_path / "out").exists()


def test_the_study_runs_its_own_trials(tmp_path):
    from covshift.experiments.reviews.paper import PLANS
    from covshift.experiments.reviews.study import reviews_study

    study = reviews_study(str(make_review_arrays(tmp_path)), PLANS["default"], 0)
    assert study.function.func is reviews_trials.run_review_trials
