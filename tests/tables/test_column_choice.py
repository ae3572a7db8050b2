"""Columns that are left out, kept by name, or named because they may mislead."""

import numpy as np
import pandas as pd
import pytest

from covshift.tables import (
    column_choice,
    match_tables,
)
from covshift.tables.table_words import say_repeated

N = 120
rng = np.random.default_rng(0)


BASE = pd.DataFrame(
    {"x": rng.normal(size=N).round(3), "label": np.repeat(["no", "yes"], N // 2)},
)


def notes_of(values, **options):
    train = BASE.assign(extra=values)
    matched = match_tables(train, train.drop(columns="label"), label="label", **options)
    # The new rows are the training rows here, which a note says as well.
    return matched, [note for note in matched.notes if note != say_repeated(1.0)]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.sort(rng.choice(5000, N, replace=False)), "increase from row to row"),
        ([f"the patient was seen on day {i % 70} by us" for i in range(N)], "free text"),
        (BASE["x"], "it repeats 'x'"),
        (pd.date_range("2024-01-01", periods=N, freq="h"), None),
        (pd.to_datetime(["2024-01-01", "2024-01-02"] * (N // 2)), "span too few days"),
    ],
)
def test_columns_left_out_and_kept_by_name(values, word):
    matched, notes = notes_of(values)
    if word is None:
        assert "extra" in matched.names
        return
    assert matched.names == ["x"]
    (note,) = [note for note in notes if "'extra'" in note]
    assert word in note
    assert note.endswith("To use it: --use extra.")
    assert "extra" in notes_of(values, keep=["extra"])[0].names


def test_a_column_that_gives_the_label_away_is_named_and_kept():
    outcome = np.where(BASE["label"] == "yes", 1.5, 0.5)
    outcome[0] = 1.5
    for values in (outcome, np.where(outcome > 1, "closed", "open")):
        matched, notes = notes_of(values)
        assert "extra" in matched.names
        (note,) = [note for note in notes if "'extra'" in note]
        assert "alone predicts the label" in note
        assert note.endswith("--ignore extra.")
    # Ids that are all different, and noise, give nothing away.
    assert notes_of(rng.normal(size=N))[1] == []
    assert notes_of(np.tile(["u", "v", "w"], N // 3))[1] == []


@pytest.mark.parametrize(
    ("values", "sentinel"),
    [
        (np.where(np.arange(N) % 9 == 0, -999, rng.uniform(0, 3000, N)), "-999"),
        (np.where(np.arange(N) % 9 == 0, -99, rng.normal(0, 5, N)), "-99"),
        (np.where(np.arange(N) % 9 == 0, 9999, rng.uniform(0, 100, N)), "9999"),
        (np.where(np.arange(N) % 9 == 0, 99, rng.uniform(0, 100, N)), None),
        (np.where(np.arange(N) % 9 == 0, -9, rng.normal(0, 20, N)), None),
    ],
)
def test_sentinels_are_named_and_not_assumed(values, sentinel):
    matched, notes = notes_of(values)
    np.testing.assert_array_equal(matched.X_train["extra"], values)
    said = [note for note in notes if "If they are missing" in note]
    assert [note.endswith(f"--missing={sentinel}.") for note in said] == [True] * bool(sentinel)


def test_text_of_many_values_is_said():
    _, notes = notes_of([f"S{i % 80}" for i in range(N)])
    assert notes == [
        "Column 'extra' has 80 different texts: the 30 most frequent are used, the others are one "
        "category. To leave it out: --ignore extra."
    ]


@pytest.mark.parametrize(("most", "n_notes"), [(1, 0), (2, 1)])
def test_case_is_looked_at_in_columns_of_few_texts(most, n_notes, monkeypatch):
    monkeypatch.setattr(column_choice, "MAX_SEARCHED_TEXTS", most)
    counts = pd.Series(["Yes", "yes", "Yes"]).value_counts()
    assert len(column_choice._case_note("member", counts)) == n_notes
