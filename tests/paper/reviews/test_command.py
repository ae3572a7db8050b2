"""Output of `covshift reproduce reviews`."""

import numpy as np
import pytest

from covshift.paper.reviews.protocol import PLANS
from covshift.paper.reviews.study import reviews_study, run_review_trials
from tests.cli.user_files import assert_one_line, run
from tests.datasets.made_folders import make_review_arrays


def test_reviews(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    # Every trial at once, without measuring.
    monkeypatch.setattr("covshift.paper.reviews.study.run_review_trials", instant_reviews)
    data = make_review_arrays(tmp_path / "data")
    out = tmp_path / "out"
    result = run("reproduce", "reviews", "--data", data, "--out", out)
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
    assert_one_line(run("reproduce", "reviews", "--out", tmp_path / "out", *options), word)


def test_too_few_reviews(tmp_path):
    data = make_review_arrays(tmp_path / "data", n_rows=2)
    result = run("reproduce", "reviews", "--data", data, "--out", tmp_path / "out")
    assert_one_line(result, "too few reviews of books, dvd, electronics, kitchen", "3 positive")
    assert not (tmp_path / "out").exists()


def test_the_study_runs_its_own_trials(tmp_path):
    study = reviews_study(str(make_review_arrays(tmp_path)), PLANS["default"], 0)
    assert study.function.func is run_review_trials
