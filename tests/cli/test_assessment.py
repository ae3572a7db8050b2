"""Expected scores in `adapt`, `show` and `score`, from one assessment."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import DomainStandardScaler, load, save
from covshift.cli.command_words import print_assessment, restore_assessment
from covshift.persistence import read_card
from covshift.report.document import to_plain
from covshift.selection import auto_adapted, bench
from covshift.selection.assessment_words import describe_assessment, score_rows, show_estimate
from covshift.selection.candidates import Candidate
from covshift.selection.choice import choose
from covshift.selection.expected_scores import Estimate
from covshift.selection.score_files import write_scores
from tests.cli.user_files import assert_refused, customers, make_tables, run, succeed, write_tables

OLD_MODEL = Path(__file__).parents[1] / "fixtures" / "models_0_1" / "table_vote.skops"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tables, a model of two candidates, what `adapt` printed, and the scores of its bench."""
    folder = tmp_path_factory.mktemp("made")
    paths, benches = write_tables(folder), []

    def two_candidates(size, label):
        model = LogisticRegression(max_iter=1000)
        return [
            Candidate("none", "logistic", None, model),
            Candidate("standardize-domains", "logistic", DomainStandardScaler(), model),
        ]

    def keep_bench(one, *arguments, **options):
        benches.append(one)
        return choose(one, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto_adapted, "default_candidates", two_candidates)
        patch.setattr(auto_adapted, "choose", keep_bench)
        paths["model"], paths["scores"] = folder / "model.skops", folder / "scores.npz"
        paths["printed"] = adapt(paths, paths["model"], "--max-risk", "1")
        write_scores(benches[0], paths["scores"])
        yield paths


def true_labels():
    """Labels of the new rows, which `make_tables` draws and leaves out."""
    rng = np.random.default_rng(0)
    drawn = [customers(*one, rng) for one in ((100, "A", 0), (100, "B", 0.2), (120, "C", 1))]
    assert drawn[2]["age"].tolist() == make_tables()["new"]["age"].tolist()
    return drawn[2]["churned"]


def adapt(paths, out, *options, columns=("--ignore", "since,customer_id")):
    return succeed(
        "adapt", paths["train"], paths["new"], "--label", "churned", "--domain", "site",
        *columns, "--out", out, *options,
    )  # fmt: skip


def test_adapt_show_card_and_model_agree(made):
    model, card = load(made["model"]), read_card(made["model"])
    found = model.estimator_.assessment_
    assert found.action == "adapt"
    assert card["assessment"] == json.loads(json.dumps(to_plain(found)))
    assert restore_assessment(card["assessment"]) == found
    assert [name for name, _ in found.members] == [one["candidate"] for one in card["chosen"]]
    shown = succeed("show", made["model"])
    for text in (made["printed"], shown):
        for name, estimate in score_rows(found):
            assert f"  {name}" in text
            assert show_estimate(estimate) in text
        assert "expected accuracy (90 % interval)" in text
        advice, gain, *_ = describe_assessment(found)
        assert advice in text
        assert gain in text
        assert text.count("Advice: ") == 1
    assert "decision:" not in shown
    result = json.loads(succeed("show", made["model"], "--json"))
    assert result["assessment"] == card["assessment"]


def test_no_risk_keeps_the_plain_model(made, tmp_path):
    out = tmp_path / "model.skops"
    text = adapt(made, out, "--max-risk", "0", "--from", made["scores"])
    assert "Advice: keep the plain model, logistic without an adapter (" in text
    assert "ensemble, not recommended" in text
    assert "The file also holds the plain model" not in text
    scored = succeed("score", out, made["labeled"])
    assert "Gain of the model" not in scored  # both are one model
    assert "To switch" not in scored
    assert " when the model was made; observed " in scored


@pytest.mark.parametrize("risk", ["1.5", "-0.1", "nan"])
def test_a_risk_is_a_probability(made, tmp_path, risk):
    result = run("adapt", made["train"], made["new"], "--label", "churned", "--max-risk", risk,
                 "--out", tmp_path / "m")  # fmt: skip
    assert_refused(result, "adapt", "--max-risk is a probability, from 0 to 1")


@pytest.mark.parametrize(
    "option", [["--max-risk", "0.5"], ["--from", "scores.npz"], ["--labels", "labels.csv"]]
)
def test_options_of_the_automatic_choice(made, tmp_path, option):
    out = ["--out", tmp_path / "m"]
    result = run("adapt", made["model"], made["new"], *option, *out)
    assert_refused(result, "adapt", f"is a model file: {option[0]} is for a training table")
    if option[0] != "--labels":
        columns = ["--label", "churned", "--adapter", "coral"]
        result = run("adapt", made["train"], made["new"], *columns, *option, *out)
        assert_refused(result, "adapt", f"{option[0]} is for the automatic choice")


def test_scores_of_an_earlier_run_change_nothing_but_the_time(made, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a candidate was scored again")

    monkeypatch.setattr(bench, "_run_scene", refuse)
    out = tmp_path / "model.skops"
    text = adapt(made, out, "--max-risk", "1", "--from", made["scores"])
    assert text.replace(str(out), "") == made["printed"].replace(str(made["model"]), "")
    first, second = load(made["model"]), load(out)
    rows = make_tables()["labeled"]
    np.testing.assert_array_equal(first.predict_proba(rows), second.predict_proba(rows))
    assert read_card(made["model"])["assessment"] == read_card(out)["assessment"]
    # The path is of this machine.
    assert second.estimator.scores_from is second.estimator_.scores_from is None
    assert "scores.npz" not in json.dumps(read_card(out))


def test_scores_of_other_rows_are_refused(made, tmp_path):
    options = ["--label", "churned", "--domain", "site", "--ignore", "since,customer_id,age"]
    out = tmp_path / "m"
    result = run("adapt", made["train"], made["new"], *options, "--from", made["scores"],
                 "--out", out)  # fmt: skip
    words = "The scores in scores.npz belong to other rows or settings. Run diagnose again"
    assert_refused(result, "adapt", words)
    assert not out.exists()


def test_labels_narrow_what_is_expected(made, tmp_path):
    path, out = tmp_path / "labels.csv", tmp_path / "model.skops"
    labels = pd.DataFrame({"row_to_label": np.arange(1, 61), "churned": true_labels()[:60]})
    labels.to_csv(path, index=False)
    result = json.loads(
        adapt(made, out, "--labels", path, "--from", made["scores"], "--max-risk", "1", "--json")
    )
    assert result["assessment"]["n_labels"] == 60
    assert result["data"]["new rows with a label"] == 60
    before = read_card(made["model"])["assessment"]
    for name in ("plain", "vote"):
        old, new = before[name], result["assessment"][name]
        assert new["high"] - new["low"] < old["high"] - old["low"]
    assert "60 known target labels" in succeed("show", out)
    path.write_text("row_to_label,churned\n1,maybe\n")
    refused = run("adapt", made["train"], made["new"], "--label", "churned", "--labels", path,
                  "--out", out)  # fmt: skip
    assert_refused(refused, "adapt", "no training row has the label 'maybe'", "'no', 'yes'")


def test_score_says_what_was_expected(made):
    text = succeed("score", made["model"], made["labeled"])
    scores = json.loads(succeed("score", made["model"], made["labeled"], "--json"))
    stated = load(made["model"]).estimator_.assessment_.recommended
    assert scores["expected"] == {
        **stated._asdict(),
        "observed": scores["accuracy"]["value"],
        "covered": stated.low <= scores["accuracy"]["value"] <= stated.high,
        "stated": scores["expected"]["stated"],
    }
    # The digits that `adapt` and `show` print, of which the gain is the difference.
    printed = next(line for line in succeed("show", made["model"]).splitlines()
                   if line.split()[:1] == ["recommended"])  # fmt: skip
    assert f"{scores['expected']['stated']['value']:.2f}" in printed
    assert f"Expected {scores['expected']['stated']['value']:.2f} (90 %" in text
    where = "inside" if scores["expected"]["covered"] else "outside"
    assert f"observed {scores['accuracy']['value']:.2f}, {where} the interval." in text
    assert scores["hurt"] is False
    assert "switch" not in scores
    assert "To switch" not in text


def test_score_says_that_adapting_hurt_and_how_to_switch(made, tmp_path):
    """Labels that the plain model gets right, and expectations that they do not meet."""
    model, path = load(made["model"]), tmp_path / "a b.skops"
    assessment = model.estimator_.assessment_
    high = Estimate(0.99, 0.98, 1.0)
    gain = Estimate(high.value - round(assessment.plain.value, 2), 0.0, 1.0)
    model.estimator_.assessment_ = assessment._replace(recommended=high, vote=high, vote_gain=gain)
    save(model, path)
    rows = make_tables()["labeled"]
    rows["churned"] = model.plain_.predict(rows)
    assert (rows["churned"] != model.predict(rows)).mean() > 0.2
    rows.to_csv(tmp_path / "rows.csv", index=False)
    text = succeed("score", path, tmp_path / "rows.csv")
    command = f"covshift predict '{path}' NEW --plain --out FILE"
    assert f"Adapting hurt on these rows: the plain model is better. To switch: {command}" in text
    assert "Expected 0.99 (90 % interval 0.98 to 1.00) when the model was made;" in text
    assert "outside the interval." in text
    scores = json.loads(succeed("score", path, tmp_path / "rows.csv", "--json"))
    assert scores["hurt"] is True
    assert scores["switch"] == command
    assert scores["expected"]["covered"] is False


def test_a_later_target_has_no_assessment(made, tmp_path):
    out = tmp_path / "later.skops"
    succeed("adapt", made["model"], made["later"], "--out", out)
    assert "assessment" not in read_card(out)
    assert "expected" not in json.loads(succeed("score", out, made["later"], "--json"))
    assert "Advice" not in succeed("show", out).replace("decision: Advice", "")


@pytest.mark.parametrize(
    "stored", [None, 3, [], {}, {"action": "adapt"}, {"plain": {}, "members": []}]
)
def test_cards_that_hold_something_else(stored, capsys):
    assert restore_assessment(stored) is None
    assert not print_assessment(stored)
    assert capsys.readouterr().out == ""


def test_cards_with_changed_entries_are_shown_all_the_same(made, tmp_path):
    """A card may hold anything; `show` prints it as any other entry."""
    model = load(made["model"])
    good = read_card(made["model"])["assessment"]
    path = tmp_path / "m"
    for change in (
        {"plain": "good"}, {"action": "dance"}, {"members": []}, {"members": 7},
        {"determinability": None}, {"rehearsals": [{}]}, {"n_labels": "many"},
    ):  # fmt: skip
        save(model, path, card={"assessment": good | change})
        assert "assessment:" in succeed("show", path)


def test_older_files_have_none():
    assert "Advice" not in succeed("show", OLD_MODEL)
