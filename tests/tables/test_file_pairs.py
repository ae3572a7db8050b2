"""Which columns account for the difference, and which are clocks."""

import numpy as np
import pandas as pd
import pytest

from covshift.tables import match_tables
from covshift.tables.file_pairs import note_moved_columns

N = 300


def tables(**moves):
    """Two tables of noise; ``moves``: columns of the training table and of the new one."""
    rng = np.random.default_rng(0)
    train, new = (
        pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd")).assign(
            city=rng.choice(["Oslo", "Rome"], N)
        )
        for _ in range(2)
    )
    train = train.assign(
        label=rng.choice(["no", "yes"], N), **{name: old for name, (old, _) in moves.items()}
    )
    new = new.assign(**{name: later for name, (_, later) in moves.items()})
    keep = [name for name in moves if name not in "abcd"]
    return match_tables(train, new, label="label", keep=keep)


def test_nothing_is_said_of_rows_that_have_not_moved():
    assert note_moved_columns(tables()) == []


def test_the_columns_that_account_for_it():
    rng = np.random.default_rng(1)
    moved = {name: (rng.normal(size=N), rng.normal(4 - i, 1, N)) for i, name in enumerate("ba")}
    (note,) = note_moved_columns(tables(**moved))
    assert "mostly by 'b' (alone 1.00), 'a' (alone 0.9" in note
    without = float(note.rpartition(": ")[2].rstrip("."))
    assert without < 0.6


def test_a_category_accounts_for_it():
    (note,) = note_moved_columns(
        tables(city=(["Oslo", "Rome", "Bonn", "Kiel"] * (N // 4), ["Rome"] * (N - 1) + ["Oslo"]))
    )
    assert "mostly by 'city' (alone 0.8" in note


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("counter", np.arange(N) * 3.0 + 0.5, np.arange(N) * 3.0 + 5000.5),
        ("year", np.repeat([2018, 2019, 2020], N // 3), np.full(N, 2021)),
    ],
)
def test_clocks_are_named_with_the_option_to_paste(name, old, new):
    notes = note_moved_columns(tables(**{name: (old, new)}))
    assert notes[0].startswith("A classifier separates training rows from new rows with AUC 1.00, ")
    assert f"mostly by '{name}' (alone 1.00)" in notes[0]
    assert notes[1] == (
        f"'{name}' looks like a clock: the new rows lie beyond the training rows because they are "
        f"later. To leave it out: --ignore {name}."
    )


def test_a_sensor_that_has_moved_is_not_a_clock():
    rng = np.random.default_rng(2)
    notes = note_moved_columns(tables(heat=(rng.uniform(0, 1, N), rng.uniform(5, 6, N))))
    assert len(notes) == 1


def test_a_date_of_another_season():
    days = pd.to_timedelta(np.arange(N) * 2, "D")
    old = pd.Timestamp("2020-01-01") + days
    new = pd.Timestamp("2022-07-01") + pd.to_timedelta(np.arange(N) % 20, "D")
    notes = note_moved_columns(tables(visit=(old, new)))
    assert "'visit' looks like a clock" in notes[-1]


def test_nothing_is_said_where_more_than_three_columns_account_for_it():
    rng = np.random.default_rng(1)
    moved = {name: (rng.normal(size=N), rng.normal(4, 1, N)) for name in "abcd"}
    assert note_moved_columns(tables(**moved)) == []
    (note,) = note_moved_columns(tables(**{name: moved[name] for name in "abc"}))
    assert all(f"'{name}' (alone" in note for name in "abc")
