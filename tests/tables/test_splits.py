"""One file, split by domain or by time."""

import numpy as np
import pandas as pd
import pytest

from covshift.tables import Split, TableError, read_pair
from tests.cli.user_files import succeed

N = 200
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "x": rng.normal(size=N).round(3),
        "site": np.repeat(["A", "B", "C", "D"], N // 4),
        "day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) * 5, "D")).strftime(
            "%d.%m.%Y"
        ),
        "year": 2000 + np.arange(N) // 20,
        "label": rng.choice(["no", "yes"], N),
    }
).sample(N, random_state=0)


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
    assert len(tables.X_train) == len(tables.X_new) == N // 2
    expected = np.flatnonzero(FRAME["site"].isin(["C", "D"]))
    np.testing.assert_array_equal(tables.new_rows, expected)
    np.testing.assert_array_equal(tables.y, FRAME["label"].to_numpy()[tables.train_rows])
    np.testing.assert_array_equal(tables.X_new["x"], FRAME["x"].to_numpy()[expected])
    assert (
        "table.csv: Split the table into 100 training rows and 100 target rows, whose labels are "
        "not read." in tables.notes
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
