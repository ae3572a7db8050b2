"""Tables that people hand over by mistake, or that programs put together without care."""

import datetime as dt
import unicodedata
from functools import partial

import numpy as np
import pandas as pd
import pytest

from covshift.tables import Intake, Split, TableError, open_table, read_pair, read_table


def people(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n_rows).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "city": rng.choice(["Oslo", "Rome"], n_rows),
            "churned": np.where(age > 40, "yes", "no"),
        }
    )


def write(path, frame, **options):
    frame.to_csv(path, index=False, **options)
    return path


def write_pair(folder, train, new):
    return write(folder / "train.csv", train), write(folder / "new.csv", new)


@pytest.mark.parametrize("quoting", [0, 1], ids=["plain", "quoted"])
def test_rows_that_repeat_the_names_are_left_out(tmp_path, quoting):
    frame = people()
    once = frame.to_csv(index=False, quoting=quoting)
    path = tmp_path / "joined.csv"
    path.write_text(once * 3)
    whole = write(tmp_path / "whole.csv", pd.concat([frame] * 3))
    table, expected = read_table(path), read_table(whole)
    assert table.schema == expected.schema
    pd.testing.assert_frame_equal(table.frame, expected.frame)
    note = "2 rows repeat the names of the columns: they are left out."
    assert note in table.notes
    reader = open_table(path, schema=table.schema)
    assert sum(len(part) for part in reader) == len(expected.frame)
    assert note in reader.notes
    path.write_text("name\nRome\nname\n")  # may be a word
    assert read_table(path).frame["name"].tolist() == ["Rome", "name"]


def test_a_table_without_a_value_is_not_called_empty(tmp_path):
    train, new = write_pair(tmp_path, people(), people(5).assign(age=None, city=None, churned=None))
    with pytest.raises(TableError, match="hold a value in 'age', 'city': 5 are empty"):
        read_pair(train, new, label="churned")


def test_names_on_the_command_line_may_have_spaces_as_in_the_file(tmp_path):
    frame = people().rename(columns={"churned": " has  churned "})
    train, new = write_pair(tmp_path, frame, people(20, 1))
    assert read_pair(train, new, label=" has  churned ").label == "has churned"


def test_dates_of_a_later_file_may_be_iso(tmp_path):
    days = pd.Timestamp("2024-01-13") + pd.to_timedelta(np.arange(60), "D")
    train = people().assign(since=days.strftime("%m/%d/%Y"))
    new = people(60, 1).drop(columns="churned").assign(since=days.strftime("%Y-%m-%d"))
    tables = read_pair(*write_pair(tmp_path, train, new), label="churned")
    assert tables.X_new["since"].tolist() == tables.X_train["since"].tolist() == days.tolist()
    assert not any("are not dates" in note for note in tables.notes)


def test_another_unit_is_named(tmp_path):
    train = people().assign(weight=[f"{value} kg" for value in range(60)])
    new = people(20, 1).assign(weight=[f"{value} lb" for value in range(20)])
    tables = read_pair(*write_pair(tmp_path, train, new), label="churned")
    said = "20 cells are not numbers with the unit 'kg' (first: '0 lb')"
    assert any(said in note for note in tables.notes)


def test_each_date_is_named_with_those_it_has_a_distance_to(tmp_path):
    """Not with those it has none to: the third date is a fixed time after the first."""

    def with_dates(frame, seed):
        order = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(frame)), "D")
        waits = np.random.default_rng(seed).integers(1, 9, len(frame))
        return frame.assign(
            order=order, delivery=order + pd.to_timedelta(waits, "D"),
            reminder=order + pd.Timedelta("30D"),
        )  # fmt: skip

    train, new = with_dates(people(), 0), with_dates(people(20, 1), 1)
    notes = read_pair(*write_pair(tmp_path, train, new), label="churned").notes
    for name, others in (
        ("order", "'delivery'"), ("delivery", "'order', 'reminder'"), ("reminder", "'delivery'")
    ):  # fmt: skip
        (said,) = [note for note in notes if note.startswith(f"Used the dates in '{name}' as")]
        assert f"the days between it and {others}. " in said


def test_one_file_given_twice_is_mentioned(tmp_path):
    path = write(tmp_path / "table.csv", people())
    said = "Both tables are the same file: no row of it can have moved."
    assert said in read_pair(path, path, label="churned").notes
    other = write(tmp_path / "other.csv", people())
    assert said not in read_pair(path, other, label="churned").notes


def test_columns_of_lists_are_not_said_to_be_missing(tmp_path):
    train, new = tmp_path / "train.parquet", tmp_path / "new.parquet"
    people().assign(tags=[[1, 2]] * 60).to_parquet(train)
    people(20, 1).assign(tags=[[1, 2]] * 20).to_parquet(new)
    notes = read_pair(train, new, label="churned").notes
    assert sum("'tags'" in note for note in notes) == 1


def test_texts_that_differ_only_in_case_are_named(tmp_path):
    new = people(20, 1)
    new["city"] = new["city"].str.lower()
    notes = read_pair(*write_pair(tmp_path, people(), new), label="churned").notes
    assert any("'oslo' differs from 'Oslo' only in case: write them alike." in n for n in notes)


@pytest.mark.parametrize("more", [b"40.0,Oslo,no\n", b"40.0,\xff\0,no,more\n"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, kind, more):
    path = tmp_path / f"table.{kind}"
    frame = people(100_000)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    reader = open_table(path, schema=open_table(path).schema, chunk_bytes=1 << 20)
    batches = iter(reader)
    next(batches)
    with path.open("ab") as file:
        file.write(more)
    with pytest.raises(TableError, match="changed while it was read; run the command again"):
        list(batches)
    path.unlink()


def test_accents_are_read_alike_however_they_are_encoded(tmp_path):
    """As macOS writes them, an accent is a character of its own behind its letter."""
    apart = partial(unicodedata.normalize, "NFD")
    train = people().rename(columns={"age": "größe"}).replace({"city": {"Rome": "Zürich"}})
    new = train.drop(columns="churned").rename(columns=apart)
    new["city"] = new["city"].map(apart)
    expected = read_pair(*write_pair(tmp_path, train, train), label="churned").X_new
    tables = read_pair(*write_pair(tmp_path, train, new), label="churned")
    pd.testing.assert_frame_equal(tables.X_new, expected)
    assert not any("größe" in note and "Ignored" in note for note in tables.notes)
    new.to_parquet(tmp_path / "new.parquet")
    table = read_pair(tmp_path / "train.csv", tmp_path / "new.parquet", label="churned")
    pd.testing.assert_frame_equal(table.X_new, expected)
    train.rename(columns={"churned": apart("größer")}).to_csv(tmp_path / "train.csv", index=False)
    assert read_pair(tmp_path / "train.csv", tmp_path / "new.csv", label="größer").label == "größer"


# Ohm, kelvin and angstrom have signs of their own, which Unicode composes to letters.
@pytest.mark.parametrize(
    "unit", ["\N{OHM SIGN}", "\N{KELVIN SIGN}", "\N{ANGSTROM SIGN}", "A\u030a"]
)
@pytest.mark.parametrize("later", ["as it was", "composed"])
def test_units_that_unicode_composes(tmp_path, unit, later):
    other = unicodedata.normalize("NFC", unit) if later == "composed" else unit
    train, new = people(), people(20, 1)
    expected = read_pair(*write_pair(tmp_path, train, new), label="churned").X_new["age"]
    paths = write_pair(
        tmp_path,
        train.assign(age=[f"{value} {unit}" for value in train["age"]]),
        new.assign(age=[f"{value} {other}" for value in new["age"]]),
    )
    tables = read_pair(*paths, label="churned")
    pd.testing.assert_series_equal(tables.X_new["age"], expected)
    assert not any("are not numbers" in note for note in tables.notes)


def test_options_are_read_as_names_and_cells_are(tmp_path):
    apart = partial(unicodedata.normalize, "NFD")
    numbers = np.where(np.arange(60) % 9, np.arange(60) * 7 % 11, "né")
    train = people().assign(café=numbers, été=["Orléans", "Évry"] * 30)
    train, new = write_pair(tmp_path, train, train.drop(columns="churned"))
    intake = Intake(missing=[apart("né")], kinds={apart("été"): "text"})
    tables = read_pair(train, new, label="churned", intake=intake)
    assert tables.kinds["café"] == "number"
    split = Split(target_domain=[apart("Évry")])
    tables = read_pair(train, label="churned", domain=apart("été"), split=split)
    assert tables.domain_names == {0: "Orléans", -1: "Évry"}
    with pytest.raises(TableError, match="--time: column 'café' holds text"):
        read_pair(train, label="churned", split=Split(time=apart("café"), train_before="3"))


def test_a_column_of_lists_cannot_be_the_label(tmp_path):
    path = tmp_path / "train.parquet"
    people().assign(tags=[["a"]] * 60).to_parquet(path)
    new = write(tmp_path / "new.csv", people(20, 1))
    with pytest.raises(TableError, match="The column 'tags' for the label holds lists, records"):
        read_pair(path, new, label="tags")
    with pytest.raises(TableError, match="The column 'tags' for the domain holds lists, records"):
        read_pair(path, new, label="churned", domain="tags")
    assert read_pair(path, new, label="churned", ignore=["tags"]).names == ["age", "city"]


def test_times_and_durations_of_arrow_are_named_as_what_they_are(tmp_path):
    times = [dt.time(hour % 24) for hour in range(60)]
    durations = pd.to_timedelta(np.arange(60), "s")
    people().assign(time=times, duration=durations).to_parquet(tmp_path / "table.parquet")
    (note,) = read_table(tmp_path / "table.parquet").notes
    assert "'time', 'duration': lists, records, bytes, times of day or durations" in note


def test_a_training_table_with_nothing_but_labels(tmp_path):
    train, new = write_pair(tmp_path, people()[["churned"]], people(20, 1))
    with pytest.raises(TableError, match="no column to learn from: all of its columns are the"):
        read_pair(train, new, label="churned")


@pytest.mark.parametrize("value", [-1e308, 1e150])
@pytest.mark.parametrize("which", ["training", "new"])
def test_numbers_whose_squares_overflow_are_named(tmp_path, which, value):
    train, new = people(), people(40, 1)
    (train if which == "training" else new).loc[4, "age"] = value
    said = rf"'age' of the {which} table holds magnitudes .* \(row 5\).*--ignore age"
    with pytest.raises(TableError, match=said):
        read_pair(*write_pair(tmp_path, train, new), label="churned")
    read_pair(*write_pair(tmp_path, train, new), label="churned", ignore=["age"])


def test_rows_without_a_label_count_among_the_rows_of_the_table(tmp_path):
    train = people()
    train.loc[:9, "churned"] = None
    train.loc[20, "age"] = 1e150
    with pytest.raises(TableError, match=r"\(row 21\)"):
        read_pair(*write_pair(tmp_path, train, people(40, 1)), label="churned")


def test_numbers_too_large_for_float32_are_numbers(tmp_path):
    train, new = people(), people(40, 1)
    train["age"] *= 1e40
    new["age"] *= 1e40
    tables = read_pair(*write_pair(tmp_path, train, new), label="churned")
    assert tables.X_new["age"].max() > 1e41
    # The label is whether the age is above 40: a tree of float32 still sees that.
    assert any("'age' alone predicts the label" in note for note in tables.notes)


def test_both_decimal_signs_in_one_file(tmp_path):
    train, new = people().assign(weight=np.arange(60) + 0.25), people(20, 1)
    new = new.assign(
        age=[f"{one:.1f}".replace(".", ",") for one in new["age"]],
        weight=[f"{one}.25" for one in range(20)],
    )
    paths = write_pair(tmp_path, train, new)
    new.to_csv(paths[1], index=False, sep=";")
    notes = read_pair(*paths, label="churned").notes
    (said,) = [note for note in notes if "They have a decimal" in note]
    assert "write all of its numbers alike" in said


def test_names_that_differ_in_case_only_are_called_so(tmp_path):
    table = read_table(write(tmp_path / "train.csv", people()))
    path = write(tmp_path / "new.csv", people().rename(columns=str.upper))
    with pytest.raises(TableError, match="Names differ only in case: write them alike"):
        open_table(path, schema=table.schema, allow_absent=True)
