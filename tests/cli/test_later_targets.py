"""``covshift adapt MODEL NEW``: what a vote keeps when some of its members cannot go on."""

import json

import pytest
from sklearn.linear_model import LogisticRegression

from covshift import (
    AutoAdaptedClassifier,
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    load,
    save,
)
from covshift.persistence import read_card
from covshift.tables import adapt_tables, describe_model, read_pair
from tests.cli.user_files import assert_refused, run, write_tables

CANNOT = "CorrelationAlignment + LogisticRegression"


def save_vote(folder, *adapters):
    """Save a model in which these vote; return the paths of the tables and of the model."""
    paths = write_tables(folder)
    vote = AutoAdaptedClassifier(
        candidates=[(adapter, LogisticRegression()) for adapter in adapters],
        max_risk=1.0,
        random_state=0,
    )
    tables = read_pair(paths["train"], paths["new"], label="churned", domain="site")
    model = adapt_tables(tables, vote)
    paths["model"] = folder / "model.skops"
    save(
        model,
        paths["model"],
        card=describe_model(model, tables, [paths["train"], paths["new"]]),
    )
    assert CANNOT in model.estimator_.chosen_
    return paths


def test_members_that_cannot_learn_a_new_site_leave_the_vote(tmp_path):
    paths = save_vote(
        tmp_path, DomainStandardScaler(), DomainQuantileTransformer(), CorrelationAlignment()
    )
    second = tmp_path / "second.skops"
    result = run("adapt", paths["model"], paths["later"], "--out", second)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"These models left the ensemble, for all targets: {CANNOT}.")
    assert CANNOT not in result.stdout
    card = read_card(second)
    assert card["later targets"][0]["left the vote"] == [CANNOT]
    kept = [one["candidate"] for one in card["chosen"]]
    assert load(second).estimator_.chosen_ == kept
    assert CANNOT not in kept
    assert sum(one["weight"] for one in card["chosen"]) == pytest.approx(1, abs=1e-3)
    shown = run("adapt", paths["model"], paths["later"], "--out", second, "--json")
    assert json.loads(shown.stdout)["target"]["left the vote"] == [CANNOT]


def test_a_vote_that_would_be_another_is_refused(tmp_path):
    paths = save_vote(tmp_path, CorrelationAlignment())
    second = tmp_path / "second.skops"
    result = run("adapt", paths["model"], paths["later"], "--out", second)
    assert_refused(
        result, "adapt", "0.70 of the ensemble's weight", "To refit: covshift adapt TRAIN"
    )
    assert not second.exists()
