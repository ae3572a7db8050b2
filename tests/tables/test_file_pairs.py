"""Two files, or one that is split; columns that separate old rows from new rows, and clocks."""

import numpy as np
import pandas as pd
import pytest

from covshift.tables import Split, TableError, match_tables, read_pair
from covshift.tables.file_pairs import _note_moved_columns
from tests.cli.user_files import succeed

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
    assert _note_moved_columns(tables()) == []


def test_the_columns_that_account_for_it():
    rng = np.random.default_rng(1)
    moved = {name: (rng.normal(size=N), rng.normal(4 - i, 1, N)) for i, name in enumerate("ba")}
    (note,) = _note_moved_columns(tables(**moved))
    assert "mostly by 'b' (AUC 1.00 alone), 'a' (AUC 0.9" in note
    without = float(note.rpartition("without them the AUC is ")[2].rstrip("."))
    assert without < 0.6


def test_a_category_accounts_for_it():
    (note,) = _note_moved_columns(
        tables(city=(["Oslo", "Rome", "Bonn", "Kiel"] * (N // 4), ["Rome"] * (N - 1) + ["Oslo"]))
    )
    assert "mostly by 'city' (AUC 0.8" in note


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("counter", np.arange(N) * 3.0 + 0.5, np.arange(N) * 3.0 + 5000.5),
        ("year", np.repeat([2018, 2019, 2020], N // 3), np.full(N, 2021)),
    ],
)
def test_clocks_are_named_with_the_option_to_paste(name, old, new):
    notes = _note_moved_columns(tables(**{name: (old, new)}))
    assert notes[0].startswith("A classifier separates training rows from new rows with AUC 1.00, ")
    assert f"mostly by '{name}' (AUC 1.00 alone)" in notes[0]
    assert notes[1] == (
        f"'{name}' looks like a clock: the new rows lie beyond the training rows because they are "
        f"later. To leave it out: --ignore {name}."
    )


def test_a_column_that_is_constant_in_both_tables_is_not_a_clock():
    """SciPy's warning about a correlation that is not defined was one of the notes."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"x": rng.normal(size=60), "level": 0.1, "y": ["a", "b"] * 30})
    new = pd.DataFrame({"x": rng.normal(size=60), "level": 0.3})
    notes = _note_moved_columns(match_tables(train, new, label="y", keep=["level"]))
    assert [note for note in notes if "clock" in note] == []


def test_a_sensor_that_has_moved_is_not_a_clock():
    rng = np.random.default_rng(2)
    notes = _note_moved_columns(tables(heat=(rng.uniform(0, 1, N), rng.uniform(5, 6, N))))
    assert len(notes) == 1


def test_a_date_of_another_season():
    days = pd.to_timedelta(np.arange(N) * 2, "D")
    old = pd.Timestamp("2020-01-01") + days
    new = pd.Timestamp("2022-07-01") + pd.to_timedelta(np.arange(N) % 20, "D")
    notes = _note_moved_columns(tables(visit=(old, new)))
    assert "'visit' looks like a clock" in notes[-1]


def test_nothing_is_said_where_more_than_three_columns_account_for_it():
    rng = np.random.default_rng(1)
    moved = {name: (rng.normal(size=N), rng.normal(4, 1, N)) for name in "abcd"}
    assert _note_moved_columns(tables(**moved)) == []
    (note,) = _note_moved_columns(tables(**{name: moved[name] for name in "abc"}))
    assert all(f"'{name}' (AUC" in note for name in "abc")


N_ROWS = 200


rng = np.random.default_rng(0)


FRAME = pd.DataFrame(
    {
        "x": rng.normal(size=N_ROWS).round(3),
        "site": np.repeat(["A", "B", "C", "D"], N_ROWS // 4),
        "day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N_ROWS) * 5, "D")).strftime(
            "%d.%m.%Y"
        ),
        "year": 2000 + np.arange(N_ROWS) // 20,
        "label": rng.choice(["no", "yes"], N_ROWS),
    }
).sample(N_ROWS, random_state=0)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.csv"
    FRAME.to_csv(path, index=False)
    return path


def split(path, **options):
    domain = options.pop("domain", None)
    return read_pair(path, label="label", domain=domain, split=Split(**options))


def test_by_domain(path):
    tables = split(path, domain="site", target_domain=["C", "D"])
    assert set(tables.domain_names.values()) == {"A", "B", "C", "D"}
    assert len(tables.X_train) == len(tables.X_new) == N_ROWS // 2
    expected = np.flatnonzero(FRAME["site"].isin(["C", "D"]))
    np.testing.assert_array_equal(tables.new_rows, expected)
    np.testing.assert_array_equal(tables.y, FRAME["label"].to_numpy()[tables.train_rows])
    np.testing.assert_array_equal(tables.X_new["x"], FRAME["x"].to_numpy()[expected])
    assert (
        "table.csv: The table was split into 100 training rows and 100 target rows, whose labels "
        "are not read." in tables.notes
    )


@pytest.mark.parametrize(("before", "n_train"), [("2021-01-01", 74), ("0.8", 160), ("0.25", 50)])
def test_by_date(path, before, n_train):
    tables = split(path, time="day", train_before=before)
    assert len(tables.X_train) == n_train
    days = pd.to_datetime(FRAME["day"], format="%d.%m.%Y").to_numpy()
    assert days[tables.train_rows].max() < days[tables.new_rows].min()


def test_by_a_number_which_is_then_no_feature(path):
    tables = split(path, time="year", train_before="2008")
    assert len(tables.X_train) == 160
    assert "year" not in tables.names
    assert any("the rows are split by it" in note for note in tables.notes)
    assert len(split(path, time="year", train_before="0.75").X_train) == 140  # years stay whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "One table needs a split"),
        ({"time": "day"}, "belong together"),
        ({"target_domain": ["A"]}, "needs --domain"),
        ({"target_domain": ["a"], "domain": "site"}, "has no domain 'a'; it has 'A', 'B'"),
        ({"target_domain": ["A", "B", "C", "D"], "domain": "site"}, "leaves 0 training rows"),
        ({"time": "day", "train_before": "2030-01-01"}, "0 target rows"),
        ({"time": "day", "train_before": "soon"}, "is not a date"),
        ({"time": "site", "train_before": "0.5"}, "holds text, not dates"),
        ({"time": "when", "train_before": "0.5"}, "has no column 'when'"),
        ({"time": "year", "train_before": "2020-01-01"}, "is not a number"),
    ],
)
def test_splits_that_are_refused(path, options, message):
    with pytest.raises(TableError, match=message):
        split(path, **options)


def test_two_tables_or_a_split(path):
    with pytest.raises(TableError, match="A second table is needed, or a split"):
        read_pair(path, label="label")
    with pytest.raises(TableError, match="leave the second one out"):
        read_pair(path, path, label="label", split=Split(["A"]))


def test_the_command(path, tmp_path):
    options = ["--label", "label", "--domain", "site", "--target-domain", "D"]
    options += ["--adapter", "none", "--out", tmp_path / "model.skops"]
    assert "Training rows: 150; new rows: 50" in succeed("adapt", path, *options)


def test_columns_that_one_file_lacks_are_no_features(tmp_path):
    rows = pd.DataFrame({"a": np.arange(40.0) % 9, "b": 1.0, "c": np.arange(40) % 7})
    rows.assign(label=["no", "yes"] * 20).to_csv(tmp_path / "train.csv", index=False)
    rows.drop(columns="b").assign(d=3).to_csv(tmp_path / "new.csv", index=False)
    found = read_pair(tmp_path / "train.csv", tmp_path / "new.csv", label="label")
    assert list(found.X_train.columns) == list(found.X_new.columns) == ["a", "c"]
    notes = " ".join(found.notes)
    assert "'b'" in notes
    assert "'d'" in notes
