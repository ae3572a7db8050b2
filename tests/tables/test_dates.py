"""Dates as features: cycles, distances, and days where that is asked for."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from covshift import AdaptedClassifier, SourceStandardScaler, load, save
from covshift.tables import (
    Intake,
    TableClassifier,
    TableEncoder,
    TableSchema,
    open_table,
    read_pair,
)
from covshift.tables.dates import cycle_features, read_spelling

N = 120


def people(n=N, start="2020-01-01", seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    day = pd.Timestamp(start) + pd.to_timedelta(np.sort(rng.integers(0, 800, n)), "D")
    return pd.DataFrame(
        {
            "visit": day.strftime("%m/%d/%Y"),
            "until": (day + pd.to_timedelta(rng.integers(1, 90, n), "D")).strftime("%d.%m.%Y"),
            "mass": [f"{70 + 5 * v:.1f} kg" for v in x],
            "y": ["?" if rng.random() < 0.2 else f"{v:.3f}" for v in y],
            "grade": rng.choice(["a", "b", "?"], n),
            "label": np.where(x + y > 0, "yes", "no"),
        }
    )


def test_all_ways_to_features_agree(tmp_path):
    """A file by batches or frames, a frame of plain text, and the model saved and loaded."""
    train, new = people(), people(60, "2022-06-01", 1)
    train.to_csv(tmp_path / "train.csv", index=False)
    new.drop(columns="label").to_csv(tmp_path / "new.csv", index=False)
    tables = read_pair(tmp_path / "train.csv", tmp_path / "new.csv", label="label")
    model = TableClassifier(AdaptedClassifier(SourceStandardScaler())).fit_tables(tables)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert loaded.schema_ == model.schema_
    assert loaded.schema_.spellings == {"visit": "mdy", "until": "dmy", "mass": "kg"}
    expected = model.encode(tables.X_new)
    (batch,) = open_table(tmp_path / "new.csv", schema=loaded.schema_).batches()
    plain = pd.read_csv(tmp_path / "new.csv", dtype=str, keep_default_na=False)
    for rows in (batch, plain, new):
        np.testing.assert_array_equal(loaded.encode(rows), expected)
    schema = TableSchema.from_dict(loaded.schema_.to_dict())
    assert schema == loaded.schema_


def test_dates_are_cycles_and_distances():
    day = pd.date_range("2020-01-01", periods=800, freq="D")
    frame = pd.DataFrame({"a": day, "b": day + pd.to_timedelta(np.arange(800) % 13, "D")})
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    assert names == [
        *(
            f"a: {cycle} ({wave})"
            for cycle in ("time of year", "weekday")
            for wave in ("sin", "cos")
        ),
        *(
            f"b: {cycle} ({wave})"
            for cycle in ("time of year", "weekday")
            for wave in ("sin", "cos")
        ),
        "days from a to b",
    ]
    assert encoder.columns_of_features() == ["a"] * 4 + ["b"] * 4 + ["days from a to b"]
    later = frame + pd.Timedelta(days=7 * 365 * 4)
    features, moved = encoder.transform(frame), encoder.transform(later)
    np.testing.assert_array_equal(moved[:, [2, 3, 8]], features[:, [2, 3, 8]])
    assert np.abs(moved).max() <= 12
    missing = encoder.transform(frame.assign(a=pd.NaT))
    assert not missing[:, :4].any()
    assert (missing[:, 8] == 6).all()


@pytest.mark.parametrize("kind", ["days", "days:mdy"])
def test_a_date_may_be_used_as_a_number(tmp_path, kind):
    for name, frame in (("train.csv", people()), ("new.csv", people(60, "2022-06-01", 1))):
        frame.to_csv(tmp_path / name, index=False)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    tables = read_pair(*paths, label="label", intake=Intake(kinds={"visit": kind}))
    assert tables.kinds["visit"] == "number"
    first = (pd.to_datetime(people()["visit"].iloc[0]) - pd.Timestamp("1970-01-01")).days
    assert tables.X_train["visit"].iloc[0] == first
    encoder = TableEncoder().fit(tables.X_train, schema=tables.schema)
    raw = encoder.transform(people().drop(columns="label"))
    np.testing.assert_array_equal(raw, encoder.transform(tables.X_train))


@pytest.mark.parametrize(
    ("text", "hour"),
    [("12:30 am", 0), ("1:30 am", 1), ("11:30 am", 11), ("12:30 pm", 12), ("11:30 PM", 23),
     ("13:30 pm", None), ("0:30 pm", None)],
)  # fmt: skip
def test_hours_before_and_after_noon(text, hour):
    (found,) = read_spelling(pa.array([f"2024-05-01 {text}"]), "ymd").to_pylist()
    assert (found and found.hour) == hour


@pytest.mark.parametrize(
    ("text", "is_time"),
    [("23:59:59.999999", True), ("23:59:60", False), ("23:60:00", False), ("24:00:00", False)],
)
def test_the_last_moment_of_a_day(text, is_time):
    """A second more is not the next day: such a cell is not a date."""
    (found,) = read_spelling(pa.array([f"2016-12-31 {text}"]), "ymd").to_pylist()
    assert (found is not None) == is_time


def test_a_day_of_the_week_lasts_all_day():
    days = np.array([4.0, 4.25, 4.999, 5.0, np.nan])
    sine, cosine = cycle_features(days, "week")
    assert sine[0] == sine[1] == sine[2] != sine[3]
    assert cosine[0] == cosine[1] == cosine[2] != cosine[3]
    assert (sine[4], cosine[4]) == (0, 0)
