"""``covshift monitor`` over batches: exit codes, JSON, history, page, update."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    CorrelationAlignment,
    DomainStandardScaler,
    load,
    save,
)
from covshift.persistence import read_card
from covshift.tables import (
    TableClassifier,
    adapt_tables,
    match_tables,
    monitoring_series,
    read_pair,
    read_table,
)
from covshift.tables.adapting import describe_model
from covshift.tables.model_updates import _reweigh_members
from tests.cli.user_files import assert_refused, run, succeed, write_tables
from tests.tables.test_monitoring_series import rows, say_estimate, write


@pytest.fixture(autouse=True)
def estimated(monkeypatch):
    monkeypatch.setattr(monitoring_series, "estimate_score", say_estimate)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitor")
    tables = match_tables(rows(300), rows(300, seed=1).drop(columns="label"), label="label")
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(tables)
    save(model, folder / "model.skops", card={"label": "label"})
    fine = write(folder / "fine.csv", rows(200, seed=2).drop(columns="label"))
    moved = write(folder / "moved.csv", rows(200, 1.5, seed=3).drop(columns="label"))
    days = pd.date_range("2024-01-01", periods=200, freq="2h").strftime("%Y-%m-%d %H:%M")
    dated = write(folder / "dated.csv", rows(200, seed=4).assign(at=days))
    return SimpleNamespace(
        folder=folder, model=folder / "model.skops", fine=fine, moved=moved, dated=dated
    )


def read_json(*arguments, code=0):
    return json.loads(succeed(*arguments, "--json", code=code))


def test_exit_codes(made):
    assert "Not moved" in succeed("monitor", made.model, made.fine)
    assert "Moved by the tests of: " in succeed("monitor", made.model, made.moved, code=3)
    # The double says .9.
    succeed("monitor", made.model, made.fine, "--alert", 0.89)
    shown = succeed("monitor", made.model, made.fine, "--alert", 0.91, code=4)
    assert "Alert: the expected accuracy is below 0.91." in shown
    succeed("monitor", made.model, made.moved, "--alert", 0.91, code=4)  # 4 takes precedence over 3
    succeed("monitor", made.model, made.fine, made.moved, code=3)


def test_what_is_said_of_one_batch(made):
    shown = succeed("monitor", made.model, made.fine)
    assert "Expected accuracy: 0.900 (90 % interval 0.800 to 0.990)" in shown
    assert "held-out training rows it was 0.950" in shown
    assert "Rows without labels cannot show whether rows like these now have other labels" in shown
    labeled = write(made.folder / "labeled.csv", rows(200, seed=2))
    shown = succeed("monitor", made.model, labeled, "--labels", labeled)
    assert "Observed accuracy on 200 labeled rows" in shown
    assert "inside the expected interval" in shown
    assert "cannot show" not in shown
    assert "held the accuracy on labeled rows in 1 of 1 batches" in shown


def test_json_of_one_batch_and_of_several(made):
    one = read_json("monitor", made.model, made.fine)
    assert {"moved", "pvalue", "auc", "auc_low", "auc_high", "features", "rows"} <= set(one)
    assert one["level"] == 0.01
    assert one["exit_code"] == 0
    two = read_json("monitor", made.model, made.fine, made.moved, code=3)
    assert [batch["moved"] for batch in two["batches"]] == [False, True]
    assert {batch["level"] for batch in two["batches"]} == {0.0025}
    assert two["exit_code"] == 3
    given = read_json("monitor", made.model, made.fine, made.moved, "--level", 0.02, code=3)
    assert {batch["level"] for batch in given["batches"]} == {0.02}


def test_a_history_grows_by_what_is_new(made, tmp_path):
    history = tmp_path / "history.jsonl"
    common = ("monitor", made.model, "--history", history)
    shown = succeed(*common, made.fine)
    assert "(1 batch, 1 new)" in shown
    assert "(1 batch, 0 new)" in succeed(*common, made.fine)
    found = read_json(*common, made.fine, made.moved, code=3)
    assert found["history"]["batches"] == 2
    assert len(history.read_text().splitlines()) == 2
    # Labels that arrive later are a line of their own, which has no name.
    labeled = write(tmp_path / "labeled.csv", rows(200, seed=2))
    assert "(3 batches, 1 new)" in succeed(*common, labeled)
    assert "(3 batches, 1 new)" in succeed(*common, labeled, "--labels", labeled)
    assert "(3 batches, 0 new)" in succeed(*common, labeled, "--labels", labeled)
    other = write(tmp_path / "table.csv", rows(3))
    assert_refused(run("monitor", made.model, made.fine, "--history", other), "monitor", "history")


def test_periods_and_a_page(made, tmp_path):
    report = tmp_path / "monitor.html"
    shown = succeed(
        "monitor", made.model, made.dated, "--time", "at", "--by", "day", "--report", report,
        "--alert", 0.5,
    )  # fmt: skip
    assert "2024-01-02" in shown
    assert "the probability of a false alarm is at most 5 %" in shown
    page = report.read_text(encoding="utf-8")
    # 200 rows, twelve a day; the last eight are too few for a batch.
    assert page.count('<g class="mark-fine"') == 16
    assert "alert below 0.5" in page


def test_requests_that_do_not_fit(made, tmp_path):
    model, fine = made.model, made.fine
    for words, *options in (
        ("--by needs --time", fine, "--by", "day"),
        ("--update needs --labels", fine, "--update", tmp_path / "m.skops"),
        ("--labels needs one file", fine, made.moved, "--labels", fine),
        ("is read too", fine, "--history", model),
        ("is read too", fine, "--report", fine),
        ("alert", fine, "--alert", 2),
        ("by must be", made.dated, "--time", "at", "--by", "hour"),
        ("no column 'when'", fine, "--time", "when"),
    ):
        assert_refused(run("monitor", model, *options), "monitor", words)


# --- Updates with labels ---


@pytest.fixture(scope="module")
def voted(tmp_path_factory):
    """A model in which three candidates vote, and rows of its target with labels."""
    folder = tmp_path_factory.mktemp("voted")
    paths = write_tables(folder)
    vote = AutoAdaptedClassifier(
        candidates=[(DomainStandardScaler(), LogisticRegression()), (None, LogisticRegression())],
        max_risk=1.0,
        random_state=0,
    )
    tables = read_pair(paths["train"], paths["new"], label="churned", domain="site")
    model = adapt_tables(tables, vote)
    files = [paths["train"], paths["new"]]
    save(model, folder / "model.skops", card=describe_model(model, tables, files))
    assert len(model.estimator_.members_) == 2
    return SimpleNamespace(folder=folder, model=folder / "model.skops", **paths)


def test_an_update_weighs_the_members_and_writes_another_file(voted, tmp_path):
    before = voted.model.read_bytes()
    new = tmp_path / "new.skops"
    found = read_json(
        "monitor", voted.model, voted.labeled, "--labels", voted.labeled, "--update", new
    )
    assert voted.model.read_bytes() == before
    told = found["update"]
    assert told["reweighed"]
    assert not told["adapted"]  # it has not moved
    assert told["right_after"] >= told["right_before"]
    old, updated = load(voted.model), load(new)
    names = {one.candidate.name for one in old.estimator_.members_}
    weights = {one.candidate.name: one.weight for one in updated.estimator_.members_}
    assert set(weights) <= names
    assert sum(weights.values()) == pytest.approx(1)
    assert updated.estimator_.assessment_ is None
    card = read_card(new)
    assert card["updates"][0]["labels"] == 120
    assert "assessment" not in card
    succeed("predict", new, voted.labeled, "--out", tmp_path / "p.csv")


def test_weights_are_those_of_the_rule_of_the_vote(voted):
    """A naive twin: expected gains and scores on the labels, averaged by their precisions."""
    model = load(voted.model)
    estimator = model.estimator_
    scaler, plain = estimator.members_
    gain_of = {row["candidate"]: row["expected gain"] for row in estimator.leaderboard_}
    frame = read_table(voted.labeled).frame
    Z = model.encode(frame)
    domain = model.domain_numbers(["C"] * len(Z))
    # By labels that only the plain model gets right, it leads.
    wrong = plain.probabilities(Z, 2, domain).argmax(axis=1)
    rights = [
        np.mean(one.probabilities(Z, 2, domain).argmax(axis=1) == wrong) for one in (scaler, plain)
    ]
    _reweigh_members(model, Z, domain, wrong)
    s = np.array([gain_of[one.candidate.name] for one in (scaler, plain)])
    s, a = s - s.mean(), np.array(rights) - np.mean(rights)
    shrunk = (np.array(rights) * len(Z) + 1) / (len(Z) + 2)
    v = shrunk * (1 - shrunk) / len(Z)
    sigma = max(0.04**2, np.mean((a - s) ** 2) - v.mean())
    combined = (s / sigma + a / v) / (1 / sigma + 1 / v)
    powers = np.exp((combined - combined.max()) / 0.01)
    expected = 0.7 * powers / powers.sum() + [0, 0.3]
    found = {one.candidate.name: one.weight for one in model.estimator_.members_}
    weights = [found.get(one.candidate.name, 0.0) for one in (scaler, plain)]
    assert weights == pytest.approx(expected.tolist())
    assert weights[1] > 0.9
    assert model.estimator_.chosen_[0] == plain.candidate.name


def test_a_batch_that_has_moved_becomes_the_target(voted, tmp_path):
    new = tmp_path / "new.skops"
    found = read_json(
        "monitor", voted.model, voted.later, "--labels", voted.later, "--update", new, code=3
    )
    assert found["update"]["adapted"]
    succeed("monitor", new, voted.later)  # no longer moved
    assert read_card(new)["later targets"][0]["rows"] == {"D": 120}


def test_updates_that_cannot_be_right_are_refused(made, voted, tmp_path):
    new = tmp_path / "new.skops"
    few = tmp_path / "few.csv"
    few.write_text("row_to_label,churned\n1,yes\n2,no\n")
    result = run("monitor", voted.model, voted.labeled, "--labels", few, "--update", new)
    assert_refused(result, "monitor", "at least 10 labels")
    single = write(tmp_path / "single.csv", rows(200, seed=2))
    result = run("monitor", made.model, single, "--labels", single, "--update", new)
    assert_refused(result, "monitor", "cannot be updated without the training rows", "refit")
    assert not new.exists()


def test_an_adapter_that_cannot_learn_targets_is_named(tmp_path):
    tables = match_tables(rows(300), rows(300, seed=1).drop(columns="label"), label="label")
    model = TableClassifier(AdaptedClassifier(CorrelationAlignment())).fit_tables(tables)
    save(model, tmp_path / "model.skops", card={"label": "label"})
    moved = write(tmp_path / "moved.csv", rows(200, 1.5, seed=3))
    result = run(
        "monitor", tmp_path / "model.skops", moved, "--labels", moved, "--update", tmp_path / "n"
    )
    assert_refused(result, "monitor", "could not adapt to the batch")
