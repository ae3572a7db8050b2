"""What columns are recognized as, what is said about it, and how it is overruled."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from covshift import AdaptedClassifier, SourceStandardScaler, load, save
from covshift.tables import (
    Intake,
    TableClassifier,
    TableEncoder,
    TableError,
    TableSchema,
    column_choice,
    match_tables,
    open_table,
    read_pair,
    read_table,
    score_file,
    text_layout,
)
from covshift.tables.columns import column_numbers
from covshift.tables.label_column import read_labels

rng = np.random.default_rng(0)
N = 120


@pytest.fixture
def write(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def read_cells(write, cells, intake=None):
    path = write("a;b\n" + "".join(f'"{cell}";z\n' for cell in cells))
    table = read_table(path, intake=intake)
    schema = table.schema
    return schema.kinds["a"], schema.spellings.get("a", ""), table.frame["a"].tolist(), table.notes


@pytest.mark.parametrize(
    ("cells", "kind", "spelling", "first"),
    [
        (["5 kg", "7.5kg", "1,200 kg"], "number", "kg", 5.0),
        (["$5", "-$7.50", "$1,200"], "number", "$", 5.0),
        (["12 %", "5%"], "number", "%", 12.0),
        (["21.5 °C", "19 °C"], "number", "°C", 21.5),
        (["EUR 5", "EUR 1,200.50"], "number", "EUR", 5.0),
        (["5 kg", "500 g", "3 kg"], "text", "", "5 kg"),
        (["A12", "B7"], "text", "", "A12"),
        (["1st", "2nd", "3rd"], "text", "", "1st"),
        (["5", "?", "7"], "number", "", 5.0),
        (["5", "-", "."], "number", "", 5.0),
        (["+", "-", "+"], "text", "", "+"),
        (["05/31/2024", "12/01/2024"], "date", "mdy", pd.Timestamp("2024-05-31")),
        (["31/05/2024", "01/12/2024"], "date", "dmy", pd.Timestamp("2024-05-31")),
        (["01.05.2024", "02.05.2024"], "date", "dmy", pd.Timestamp("2024-05-01")),
        (["2024/05/31", "2024/6/1"], "date", "ymd", pd.Timestamp("2024-05-31")),
        (["31-May-24", "1 June 2024"], "date", "dby", pd.Timestamp("2024-05-31")),
        (["May 31, 2024", "June 1, 2024"], "date", "bdy", pd.Timestamp("2024-05-31")),
        (["20240531", "20240601", "20231231"], "date", "packed", pd.Timestamp("2024-05-31")),
        (["20240531", "20240601", "20249999"], "number", "", 20240531.0),
        (["2024-05", "2024-06"], "date", "month", pd.Timestamp("2024-05-01")),
        (["9:05 pm", "10:30 am"], "date", "time", pd.Timestamp("1970-01-01 21:05")),
        (["9:05 pm", "13:30 pm"], "text", "", "9:05 pm"),
        (["9:05 pm", "0:30 am"], "text", "", "9:05 pm"),
        (["05/31/2024 9:05 PM", "?"], "date", "mdy", pd.Timestamp("2024-05-31 21:05")),
        (["2024-05-31", "-", "2024-06-01"], "date", "", pd.Timestamp("2024-05-31")),
        (["31/05/2024", "05/31/2024"], "text", "", "31/05/2024"),
        (["3 Foo 2024", "4 Bar 2024"], "text", "", "3 Foo 2024"),
    ],
)
def test_what_cells_are(write, cells, kind, spelling, first):
    found, how, values, _ = read_cells(write, cells)
    assert (found, how, values[0]) == (kind, spelling, first)


def test_markers_are_missing_and_said(write):
    kind, _, values, notes = read_cells(write, ["1", "?", "3"])
    assert kind == "number"
    assert np.isnan(values[1])
    assert notes[-1] == (
        "Read '?' as missing in 'a' (1 cells). If it is a value: --not-missing \"?\"."
    )
    assert read_cells(write, ["1", "?", "3"], Intake(present=["?"]))[0] == "text"
    assert read_cells(write, ["x", "?", "y"])[2][1] is pd.NA
    assert read_cells(write, ["x", "?", "y"], Intake(present=["?"]))[2][1] == "?"
    assert read_cells(write, ["DE", "NA", "FR"], Intake(present=["NA"]))[2] == ["DE", "NA", "FR"]


def test_numbers_that_are_named_as_missing(write, tmp_path):
    kind, _, values, _ = read_cells(write, ["1", "-999", "-999.0", "3"], Intake(["-999"]))
    assert kind == "number"
    assert np.isnan(values[1:3]).all()
    frame = pd.DataFrame({"a": [1, -999, 3], "b": ["x", "y", "z"]})
    frame.to_parquet(tmp_path / "table")
    read = read_table(tmp_path / "table", intake=Intake(["-999"])).frame
    assert read["a"].isna().tolist() == [False, True, False]
    assert read_table(tmp_path / "table").frame["a"].notna().all()


def test_a_column_that_is_nearly_numbers_names_what_is_not(write):
    *_, notes = read_cells(write, ["1.5"] * 16 + ["unknown"] * 4)
    assert notes[-1] == (
        "Read 'a' as text: 4 of 20 cells are not numbers (most often 'unknown'). If these are "
        "missing: --missing unknown, or --as a=number."
    )
    for intake in (Intake(["unknown"]), Intake(kinds={"a": "number"})):
        kind, _, values, _ = read_cells(write, ["1.5"] * 16 + ["unknown"] * 4, intake)
        assert kind == "number"
        assert np.isnan(values).sum() == 4


def test_several_units_are_said(write):
    *_, notes = read_cells(write, ["5 kg", "500 g", "3 kg"])
    assert notes[-1] == (
        "Read 'a' as text: its numbers have several units ('kg', 'g'). Convert them to one unit."
    )


def test_which_comes_first_is_said_where_nothing_shows_it(write):
    _, spelling, _, notes = read_cells(write, ["01/02/2024", "03/04/2024"])
    assert spelling == "mdy"
    assert notes[-1].endswith("If it is the other: --as a=date:dmy.")
    intake = Intake(kinds={"a": "date:dmy"})
    _, spelling, values, notes = read_cells(write, ["01/02/2024", "03/04/2024"], intake)
    assert values[0] == pd.Timestamp("2024-02-01")
    assert "--as" not in "".join(notes)


@pytest.mark.parametrize("kind", ["integer", "date:xyz", "days:xyz"])
def test_kinds_that_are_not(write, kind):
    with pytest.raises(TableError, match="cannot be read as"):
        read_cells(write, ["1", "2"], Intake(kinds={"a": kind}))
    with pytest.raises(TableError, match="which --as names"):
        read_cells(write, ["1", "2"], Intake(kinds={"c": "text"}))


@pytest.mark.parametrize(
    "text",
    [
        'age,city\n"1",30,"Oslo"\n"2",40.5,"Rome"\n',  # R's write.table(sep = ",")
        '"age" "city"\n"1" 30 "Oslo"\n"2" 40.5 "Rome"\n',  # R's write.table
        "age city\n30 Oslo\n40.5 Rome\n",  # R's write.table(row.names = FALSE, quote = FALSE)
        "age,city\n30,Oslo,\n40.5,Rome,\n",  # every row ends in a separator
    ],
)
def test_headers_with_one_cell_fewer(write, text):
    frame = read_table(write(text)).frame
    assert frame.to_dict("list") == {"age": [30.0, 40.5], "city": ["Oslo", "Rome"]}


def test_words_in_one_column_are_not_cut(write):
    frame = read_table(write("full name\nAda Lovelace\nAlan Turing\n")).frame
    assert frame["full name"].tolist() == ["Ada Lovelace", "Alan Turing"]


def test_a_file_without_header(write):
    frame = read_table(write("30,Oslo\n40.5,Rome\n"), header=False).frame
    assert frame.to_dict("list") == {"column 1": [30.0, 40.5], "column 2": ["Oslo", "Rome"]}
    with pytest.raises(TableError, match="--no-header"):
        read_table(write("1,2.5\n3,4\n"))


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


BASE = pd.DataFrame(
    {"x": rng.normal(size=N).round(3), "label": np.repeat(["no", "yes"], N // 2)},
)


def notes_of(values, **options):
    train = BASE.assign(extra=values)
    matched = match_tables(train, train.drop(columns="label"), label="label", **options)
    return matched, matched.notes


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


def test_counts_are_no_classes_however_many_rows_they_have():
    train = pd.DataFrame({"x": rng.normal(size=5000), "label": np.arange(5000) % 200})
    with pytest.raises(TableError, match=r"is a number \(200 different values in 5,000 rows"):
        match_tables(train, train[["x"]], label="label")


def test_ranges_of_a_numeric_label(tmp_path):
    x = rng.normal(size=400)
    train = pd.DataFrame(
        {"x": x.round(4), "z": rng.normal(size=400), "price": (50 + 9 * x).round(2)}
    )
    train.to_csv(tmp_path / "train.csv", index=False)
    train[["x", "z"]].to_csv(tmp_path / "new.csv", index=False)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    tables = read_pair(*paths, label="price", bins=4)
    names, counts = np.unique(tables.y, return_counts=True)
    assert len(names) == 4
    assert np.abs(counts - 100).max() <= 1
    assert [name[:2] for name in names] == ["1:", "2:", "3:", "4:"]
    assert any("is cut into 4 ranges: '1: up to " in note for note in tables.notes)
    assert ((tables.y == names[0]) == (train["price"] <= tables.label_edges[0])).all()
    model = TableClassifier(AdaptedClassifier(SourceStandardScaler())).fit_tables(tables)
    assert score_file(model, paths[0])["accuracy"]["value"] > 0.6
    for bins, message in ((1, "from 2 to 50"), (51, "from 2 to 50")):
        with pytest.raises(TableError, match=message):
            read_pair(*paths, label="price", bins=bins)
    with pytest.raises(TableError, match="leave --bins out"):
        match_tables(BASE, BASE[["x"]], label="label", bins=3)


@pytest.mark.parametrize(("most", "n_notes"), [(1, 0), (2, 1)])
def test_case_is_looked_at_in_columns_of_few_texts(most, n_notes, monkeypatch):
    monkeypatch.setattr(column_choice, "MAX_SEARCHED_TEXTS", most)
    counts = pd.Series(["Yes", "yes", "Yes"]).value_counts()
    assert len(column_choice._case_note("member", counts)) == n_notes


def test_text_of_arrow_is_read_as_numbers():
    given = pa.array(["1.5", "much", None])
    np.testing.assert_array_equal(column_numbers(given), [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(column_numbers(pa.array([3, None])), [3.0, np.nan])


def test_fractions_and_huge_numbers_are_classes_as_text():
    for given, classes in (
        ([0.5, 1.5, 0.5], ["0.5", "1.5"]),
        ([2.0**60, 0.0, 2.0**60], ["0", "1.152921504606847e+18"]),
    ):
        labels, _ = read_labels(pd.Series(given, name="y"), "classification", [])
        assert sorted(set(labels.tolist())) == classes
    labels, _ = read_labels(pd.Series([2.0, 1.0, 2.0], name="y"), "classification", [])
    assert labels.dtype == np.int64


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_text_that_is_read_as_numbers_is_told_where_the_file_has_types(ending, tmp_path):
    frame, path = pd.DataFrame({"a": ["1", "2", "3"] * 10}), tmp_path / f"a.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    notes = " ".join(open_table(path).notes)
    assert ("Read 'a' as numbers: the file holds them as text" in notes) == (ending == "parquet")


def test_the_separator_of_a_single_row():
    assert text_layout._best_separator("a;b\n", True) == ";"
    assert text_layout._best_separator("a\n", True) is None
