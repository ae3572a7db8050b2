"""Every command reports alike what the model does not know of a file."""

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.tables import (
    TableClassifier,
    adapt_model,
    match_tables,
    monitor_batch,
    predict_file,
    score_file,
)
from tests.cli.user_files import make_tables

TABLES = make_tables()
COLUMNS = ["age", "income", "city", "churned"]


@pytest.fixture(scope="module")
def model():
    matched = match_tables(TABLES["train"][COLUMNS], TABLES["new"][COLUMNS[:3]], label="churned")
    return TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(matched)


COMMANDS = {
    "adapt": lambda model, path: adapt_model(model, path)[1]["notes"],
    "predict": lambda model, path: predict_file(model, path, path.parent / "out.csv")["notes"],
    "score": lambda model, path: score_file(model, path)["notes"],
    "monitor": lambda model, path: monitor_batch(model, path)["notes"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reports_alike(model, tmp_path, command):
    path = tmp_path / "table.csv"
    frame = TABLES["labeled"][COLUMNS].assign(city="Lima", income=1e6)
    frame.loc[:29, "age"] = np.nan
    frame.to_csv(path, index=False)
    notes = [note.removeprefix("table.csv: ") for note in COMMANDS[command](model, path)]
    city, outside, missing = notes[:3]
    assert city == (
        "Column 'city': all 120 rows have values that no training row has ('Lima'); they have no "
        "effect there."
    )
    assert outside.startswith("Column 'income': all 120 rows lie outside the range that the model")
    assert missing.startswith("Column 'age': 30 of 120 rows have no value, and all training rows")


def test_many_columns_outside_their_ranges_share_a_note(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "loud.csv"
    train, new = (pd.DataFrame(rng.normal(size=(60, 40))).add_prefix("bin ") for _ in "ab")
    train["fault"] = ["inner", "outer"] * 30
    tables = match_tables(train, new, label="fault")
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(tables)
    new.abs().add(100).to_csv(path, index=False)
    (note,) = predict_file(model, path, tmp_path / "out.csv")["notes"]
    assert note.endswith(
        "40 of 40 columns have values outside the range that the model knows "
        "('bin 0', 'bin 1', 'bin 2' and 37 more), the first in all 60 rows. "
        "Check units and sensors before you use the predictions."
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_said_of_rows_like_those_known(model, tmp_path, command):
    path = tmp_path / "table.csv"
    TABLES["labeled"][COLUMNS].to_csv(path, index=False)
    assert not [note for note in COMMANDS[command](model, path) if "Column" in note]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_absent_column_is_refused_by_every_command(model, tmp_path, command):
    path = tmp_path / "table.csv"
    TABLES["labeled"][COLUMNS].rename(columns={"income": "Income"}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="has no column 'income'; is it 'Income'"):
        COMMANDS[command](model, path)


def test_a_file_with_one_row(model, tmp_path):
    path = tmp_path / "table.csv"
    frame = TABLES["labeled"][COLUMNS].head(1).assign(city="Lima", income=1e6, age=np.nan)
    frame.to_csv(path, index=False)
    notes = COMMANDS["predict"](model, path)
    assert notes[0].startswith("Column 'city': the row has values that no training row has")
    assert notes[1].startswith("Column 'income': the row lies outside the range")


def test_rare_texts_are_known(tmp_path):
    train = TABLES["train"][COLUMNS].assign(city=["Oslo"] * 100 + ["Rome"] * 98 + ["Bonn", "Kiel"])
    matched = match_tables(train, train.drop(columns="churned"), label="churned")
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(matched)
    assert model.encoder_.categories_["city"] == ["Oslo", "Rome", "(other)"]
    path = tmp_path / "table.csv"
    pd.DataFrame({"age": 40.0, "income": 3000.0, "city": ["Bonn", "Lima"] * 10}).to_csv(path)
    (note,) = [n for n in COMMANDS["predict"](model, path) if "city" in n]
    assert note == (
        "Column 'city': 10 of 20 rows have values that no training row has ('Lima'); they count as "
        "'(other)'."
    )
