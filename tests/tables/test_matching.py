"""Two tables -> rows, labels, domains; every decision is said."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.tables import (
    TableEncoder,
    TableError,
    match_tables,
    read_pair,
    read_table,
)
from covshift.tables.column_choice import _is_identifier_name
from covshift.tables.file_pairs import _note_moved_columns
from covshift.tables.matching import code_domains
from covshift.tables.table_words import say_repeated

N = 60
rng = np.random.RandomState(0)
TRAIN = pd.DataFrame(
    {
        "age": rng.uniform(20, 60, N).round(1),
        "city": rng.choice(["Oslo", "Rome"], N),
        "site": np.repeat(["A", "B"], N // 2),
        "churned": rng.choice(["no", "yes"], N),
    }
)
NEW = pd.DataFrame(
    {"site": ["C"] * 30, "city": rng.choice(["Oslo", "Rome"], 30), "age": rng.uniform(30, 70, 30)}
)


def match(train=TRAIN, new=NEW, label="churned", **options):
    return match_tables(train, new, label=label, **options)


def test_the_record():
    matched = match(domain="site")
    assert matched.names == ["age", "city"]
    assert list(matched.X_new) == ["age", "city"]  # in the order of the training table
    assert matched.kinds == {"age": "number", "city": "text"}
    assert matched.domain_names == {0: "A", 1: "B", -1: "C"}
    assert matched.source_domain.tolist() == [0] * 30 + [1] * 30
    assert matched.target_domain.tolist() == [-1] * 30
    assert matched.y.tolist() == TRAIN["churned"].tolist()
    assert matched.notes == []


def test_it_gives_what_fit_wants():
    matched = match(domain="site")
    X, y, sample_domain = matched.stack()
    assert matched.stack().domain_names == matched.domain_names
    encoder = TableEncoder().fit(X, sample_domain=sample_domain)
    model = AdaptedClassifier(DomainStandardScaler(), LogisticRegression())
    model.fit(encoder.transform(X), y, sample_domain=sample_domain)
    assert set(model.predict(encoder.transform(matched.X_new))) <= {"no", "yes"}


def test_rows_of_domains_that_alternate_stay_with_their_labels():
    train = TRAIN.assign(site=["A", "B"] * 30, churned=["no", "yes"] * 30, age=np.arange(60) + 0.5)
    stacked = match(train, domain="site").stack()
    ages = stacked.X["age"][stacked.sample_domain >= 0]
    assert set(ages[stacked.y[:60] == "no"]) == set(train["age"][train["churned"] == "no"])


def test_frames_are_not_changed_and_polars_will_do():
    train, new = TRAIN.copy(), NEW.copy()
    expected = match(domain="site")
    pd.testing.assert_frame_equal(train, TRAIN)
    pd.testing.assert_frame_equal(new, NEW)
    found = match(pl.from_pandas(TRAIN), pl.from_pandas(NEW), domain="site")
    assert found.names == expected.names
    assert found.y.tolist() == expected.y.tolist()


def test_columns_in_one_table_only():
    train, new = TRAIN.assign(Income=1.5), NEW.assign(income=2.5, other=1)
    matched = match(train, new, domain="site")
    assert matched.names == ["age", "city"]
    assert matched.notes == [
        "Ignored 'Income': only the training table has it.",
        "Ignored 'income', 'other': only the new table has it.",
        "Is 'income' of the new table 'Income' of the training table? Rename it.",
    ]


@pytest.mark.parametrize("labels", ["yes", None, 3.5])
def test_labels_of_the_new_table_are_never_read(labels):
    matched = match(new=NEW.assign(churned=labels), domain="site")
    assert matched.notes == ["The new table has a column 'churned' too: it is not read."]
    assert "churned" not in matched.X_new
    pd.testing.assert_frame_equal(matched.X_new, match(domain="site").X_new)


def test_rows_without_label_are_dropped():
    train = TRAIN.copy()
    train.loc[[3, 7], "churned"] = None
    matched = match(train, domain="site")
    assert len(matched.X_train) == len(matched.y) == len(matched.source_domain) == N - 2
    assert 3 not in matched.train_rows
    assert matched.notes == ["2 of 60 training rows have no label and are left out."]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (np.full(N, 1.5), "constant"),
        (np.full(N, np.nan), "the training table has no value in it"),
        (["x"] * N, "constant"),
        (np.arange(N) + 1000, "one after the other"),
        # A counter for each of two sites, in another order.
        (np.r_[np.arange(N // 2) + 500, np.arange(N - N // 2)][::-1], "one after the other"),
        ([f"user {i}" for i in range(N)], "almost every value is unique"),
        ([f"text {min(i, 55)}" for i in range(N)], "almost every value is unique"),
    ],
)
def test_columns_to_leave_out(column, reason):
    train, new = TRAIN.assign(extra=column), NEW.assign(extra=column[0])
    if not isinstance(column, list) and np.isnan(column).all():
        new["extra"] = 1.0
    matched = match(train, new, domain="site")
    assert matched.names == ["age", "city"]
    assert any(reason in note and "'extra'" in note for note in matched.notes)
    assert "extra" in match(train, new, domain="site", keep=["extra"]).names


@pytest.mark.parametrize("step", [2, 10])
def test_whole_numbers_with_gaps_are_a_feature(step):
    values = np.random.default_rng(0).permutation(N) * step
    matched = match(TRAIN.assign(extra=values), NEW.assign(extra=1), domain="site")
    assert "extra" in matched.names


def test_names_of_identifiers():
    different = np.arange(N) * 37 % 1009
    train = TRAIN.assign(customer_id=different, shopId=[1, 2] * 30)
    matched = match(train, NEW.assign(customer_id=1, shopId=1), domain="site")
    assert matched.names == ["age", "city", "shopId"]
    assert matched.notes == [
        "Ignored 'customer_id': it looks like an identifier (every value is unique, and its "
        "name says so). To use it: --use customer_id.",
        "Kept 'shopId', though named like an identifier. If it is one: --ignore shopId.",
    ]
    ignored = match(train, NEW.assign(customer_id=1), domain="site", ignore=["shopId"])
    assert "shopId" not in "".join(ignored.notes)


def test_a_column_that_the_new_table_leaves_empty():
    matched = match(new=NEW.assign(age=np.nan), domain="site", keep=["age"])
    assert matched.names == ["city"]
    assert matched.notes == ["Ignored 'age': the new table has no value in it."]


def test_numbers_in_one_table_and_text_in_the_other():
    some = NEW.assign(age=["30", "40.5", "old"] * 10)
    matched = match(new=some, domain="site")
    assert matched.X_new["age"].tolist()[:2] == [30.0, 40.5]
    assert matched.notes == ["Column 'age': 10 new values are not numbers and are read as missing."]
    matched = match(new=NEW.assign(age=["old", "young", "3"] * 10), domain="site")
    assert matched.names == ["city"]
    assert matched.notes[0] == (
        "Ignored 'age': it holds numbers in the training table and text in the new one."
    )
    codes = match(TRAIN.assign(city=["1", "2"] * 30), NEW.assign(city=[1, 2] * 15), domain="site")
    assert codes.X_new["city"].tolist()[:2] == ["1", "2"]
    assert codes.notes == []


def test_dates_and_truth_values_of_other_types():
    days = pd.date_range("2024-01-01", periods=N)
    train = TRAIN.assign(day=days, flag=[True, False] * 30)
    matched = match(train, NEW.assign(day="2024-05-01", flag=[0, 1] * 15), domain="site")
    assert matched.names == ["age", "city", "day", "flag"]
    assert (matched.X_new["day"] == pd.Timestamp("2024-05-01")).all()
    assert match(train, NEW.assign(day=5, flag="x"), domain="site").names == ["age", "city"]


def test_unseen_categories_are_said():
    matched = match(new=NEW.assign(city=["Bonn", "Oslo"] * 15), domain="site")
    assert matched.notes == [
        "Column 'city': 15 new rows have values that no training row has: 'Bonn'."
    ]


def notes_of_repeated_rows(train, new):
    sentence = say_repeated(1.0).removeprefix("100")
    return [note for note in match(train, new, domain="site").notes if note.endswith(sentence)]


@pytest.mark.parametrize(("share", "said"), [(1.0, ["100"]), (0.5, ["50"]), (0.4, [])])
def test_new_rows_that_are_training_rows_are_said(share, said):
    n = int(share * N)
    train = TRAIN.assign(day=pd.Timestamp("2024-01-01"), age=TRAIN["age"].mask(TRAIN.index == 1))
    others = train.assign(age=train["age"] + 0.05)
    new = pd.concat([train[:n], others[n:]]).drop(columns="churned").sample(frac=1, random_state=0)
    assert [note.partition(" ")[0] for note in notes_of_repeated_rows(train, new)] == said


def test_training_rows_at_midnight_are_recognized():
    """As text, a time would be there or not, as the other rows have one."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(6 * np.arange(N), "h")
    train = TRAIN.assign(day=days)
    new = train[train["day"].dt.hour == 0].drop(columns="churned")
    assert len(new) > 10
    assert notes_of_repeated_rows(train, new)


def test_durations_are_compared():
    train = TRAIN.assign(waited=pd.to_timedelta(np.arange(N), "h"))
    assert match(train, train[:20], domain="site").kinds["waited"] == "number"
    assert notes_of_repeated_rows(train, train[:20].drop(columns="churned"))


def test_rows_of_few_values_repeat_by_chance():
    train, new = TRAIN.drop(columns="age"), NEW.drop(columns="age")
    assert not notes_of_repeated_rows(train, new)
    assert not notes_of_repeated_rows(TRAIN, TRAIN[:9])


def test_a_domain_in_both_tables():
    matched = match(new=NEW.assign(site=["C", "A", None] * 10), domain="site")
    assert matched.domain_names == {0: "A", 1: "B", -1: "C", -2: "A (new)", -3: "(missing)"}
    assert matched.notes == [
        "Domain 'A' is in both tables: its new rows are a target of their own, 'A (new)'."
    ]
    assert set(matched.target_domain) == {-1, -2, -3}


def test_domains_as_numbers_and_absent_ones():
    matched = match(TRAIN.assign(site=[1.0, 2.0] * 30), NEW.assign(site=3), domain="site")
    assert matched.domain_names == {0: "1", 1: "2", -1: "3"}
    matched = match(new=NEW.drop(columns="site"), domain="site")
    assert matched.domain_names == {0: "A", 1: "B", -1: "new"}
    assert matched.notes == ["The new table has no column 'site': its rows are one domain."]
    matched = match(TRAIN.drop(columns="site"), NEW.drop(columns="site"))
    assert matched.domain_names == {0: "training", -1: "new"}
    many = match(TRAIN.assign(site=[f"s{i}" for i in range(N)]), domain="site")
    assert "60 values in 60 training rows" in many.notes[0]


@pytest.mark.parametrize(
    ("labels", "dtype", "classes"),
    [
        (["a", "b"], "U", ["a", "b"]),
        ([True, False], "b", [False, True]),
        ([0, 1], "i", [0, 1]),
        ([-1.0, 1.0], "i", [-1, 1]),
        ([0.5, 1.5], "U", ["0.5", "1.5"]),
        (["1", "02"], "U", ["02", "1"]),
    ],
)
def test_classes_of_any_type(labels, dtype, classes):
    matched = match(TRAIN.assign(churned=labels * 30), domain="site")
    assert matched.y.dtype.kind == dtype
    assert np.unique(matched.y).tolist() == classes


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * N, "one class only, 'a'"),
        ([None] * N, "No row of the training table has a label"),
        (
            np.linspace(0, 1, N),
            r"is a number \(60 different values in 60 rows, 0 to 1\), not a class",
        ),
        (np.arange(N) // 2, "Use --task regression to predict the number, --bins 4"),
        ([f"note {i}" for i in range(N)], "these are not classes"),
        (pd.date_range("2024-01-01", periods=N), "holds dates"),
    ],
)
def test_labels_that_cannot_be(labels, message):
    with pytest.raises(TableError, match=message):
        match(TRAIN.assign(churned=labels))


def test_many_whole_classes_with_enough_rows_each():
    train = pd.concat([TRAIN] * 10, ignore_index=True)
    train["churned"] = np.arange(600) % 30
    assert len(np.unique(match(train, domain="site").y)) == 30


def test_regression():
    train = TRAIN.assign(churned=np.linspace(0, 1, N))
    matched = match(train, domain="site", task="regression")
    np.testing.assert_array_equal(matched.y, np.linspace(0, 1, N))
    with pytest.raises(TableError, match="--task regression needs numbers"):
        match(task="regression")


@pytest.mark.parametrize("which", ["training", "new"])
def test_tables_without_rows(which):
    train, new = (TRAIN[:0], NEW) if which == "training" else (TRAIN, NEW[:0])
    with pytest.raises(TableError, match=f"The {which} table has no rows"):
        match(train, new)


def test_a_rare_class_is_said():
    train = TRAIN.copy()
    train.loc[0, "churned"] = "maybe"
    assert match(train, domain="site").notes == ["Classes with a single row: 'maybe'."]


def test_domains_of_one_class_are_said():
    """Which site a row comes from then tells its class, and the features may only tell the site."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame(
        {"x": rng.normal(size=40), "pump": np.repeat([1, 2, 3, 4], 10), "worn": "no"}
    )
    train.loc[train["pump"] == 2, "worn"] = "yes"
    new = pd.DataFrame({"x": rng.normal(size=10), "pump": 5})
    said = "Each value of 'pump' has one class of 'worn' only"
    assert any(said in n for n in match_tables(train, new, label="worn", domain="pump").notes)
    train.loc[0, "worn"] = "yes"
    assert not any(said in n for n in match_tables(train, new, label="worn", domain="pump").notes)
    assert not any(said in n for n in match_tables(train, new, label="worn").notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label": "churn"},
            "The training table has no column 'churn' for the label; is it 'churned'",
        ),
        ({"label": "zzz"}, "it has 'age', 'city', 'site', 'churned'"),
        ({"domain": "sit"}, "no column 'sit' for the domain"),
        ({"ignore": ["x"]}, "no column 'x' to ignore"),
        ({"keep": ["x"]}, "no column 'x' to use"),
        ({"ignore": "age"}, "ignore must be a list of names"),
        ({"domain": "churned"}, "not two of them"),
        ({"ignore": ["churned"]}, "not two of them"),
        ({"ignore": ["age", "city", "site"]}, "no column to learn from: all of its columns are"),
        ({"new": NEW.iloc[:0]}, "The new table has no rows"),
        ({"train": TRAIN.iloc[:0]}, "The training table has no rows"),
        ({"new": pd.DataFrame({"other": [1]})}, "No column is left"),
        ({"new": pd.concat([NEW, NEW], axis=1)}, "new table has columns with the same name"),
        ({"task": "ranking"}, "task must be one of"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message) as raised:
        match(**options)
    assert "\n" not in str(raised.value)


@pytest.fixture
def files(tmp_path):
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    NEW.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "train.csv", tmp_path / "new.csv"


def test_files_give_what_their_frames_give(files):
    matched, expected = read_pair(*files, label="churned", domain="site"), match(domain="site")
    assert matched.names == expected.names
    assert matched.y.tolist() == expected.y.tolist()
    assert matched.domain_names == expected.domain_names
    np.testing.assert_allclose(matched.X_new["age"], expected.X_new["age"], rtol=1e-12)
    assert matched.notes == [*expected.notes, *_note_moved_columns(expected)]


def test_the_training_file_decides_the_kinds_of_the_new_one(files, tmp_path):
    train = TRAIN.assign(zip=np.where(rng.rand(N) < 0.5, "01234", "9876"))
    train.to_csv(files[0], index=False)
    (tmp_path / "new.csv").write_text(
        "site;city;age;zip;churned;more\n"
        "C;Oslo;30,5;9876;=cmd();1\n"
        "C;Rome;40,5;01234;;1\n"
        "C;Rome;old;12;;1\n"
    )
    matched = read_pair(*files, label="churned", domain="site")
    assert matched.X_new["zip"].tolist() == ["9876", "01234", "12"]
    assert matched.X_new["age"].tolist()[:2] == [30.5, 40.5]
    assert matched.notes == [
        "train.csv: Read 'zip' as text: numbers that begin with a zero are codes. If they are "
        "numbers: --as zip=number.",
        "new.csv: Cells are separated by semicolon.",
        "new.csv: Numbers are read with a decimal comma, as in '1.234,5'.",
        "new.csv: Column 'age': 1 cells are not numbers (first: 'old') and are read as missing.",
        "The new table has a column 'churned' too: it is not read.",
        "Ignored 'more': only the new table has it.",
        "Column 'zip': 1 new row has a value that no training row has: '12'.",
    ]


def test_domains_that_are_numbers_in_one_file_and_names_in_the_other(files):
    TRAIN.assign(site=[1, 2] * 30).to_csv(files[0], index=False)
    NEW.assign(site=["C", "2"] * 15).to_csv(files[1], index=False)
    matched = read_pair(*files, label="churned", domain="site")
    assert matched.domain_names == {0: "1", 1: "2", -1: "C", -2: "2 (new)"}


def test_later_files_are_read_as_the_training_file_was(files, tmp_path):
    for path, frame in zip(files, (TRAIN, NEW), strict=True):
        frame.to_csv(path, index=False, sep=";", decimal=",")
    matched = read_pair(*files, label="churned", domain="site")
    assert matched.schema.kinds == {"age": "number", "city": "text"}
    assert matched.schema.decimal == ","
    (tmp_path / "later.csv").write_text("city;age\nOslo;12,345\n")
    later = read_table(tmp_path / "later.csv", schema=matched.schema)
    assert later.frame["age"].tolist() == [12.345]


def test_errors_of_files_name_the_file(files, tmp_path):
    with pytest.raises(TableError, match=r"absent\.csv: no such file"):
        read_pair(files[0], tmp_path / "absent.csv", label="churned")
    with pytest.raises(TableError, match="is it 'churned'"):
        read_pair(*files, label="churn")


def test_a_model_from_files(files):
    matched = read_pair(*files, label="churned", domain="site")
    X, y, _ = matched.stack()
    model = make_pipeline(TableEncoder(), LogisticRegression())
    model.fit(X.iloc[: len(matched.y)], y[: len(matched.y)])
    assert len(model.predict(matched.X_new)) == len(NEW)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("id", True), ("customer_id", True), ("customerId", True), ("row number", True),
     ("paid", False), ("humidity", False), ("PAID", False)],
)  # fmt: skip
def test_names_that_identifiers_have(name, is_one):
    assert _is_identifier_name(name) == is_one


def test_infinite_labels_are_said():
    train = TRAIN.assign(churned=np.where(np.arange(N) < 3, np.inf, np.arange(N) % 2))
    found = match(train)
    assert "The label 'churned' is infinite in 3 rows: read as missing." in found.notes
    assert len(found.y) == N - 3


def test_dates_in_words_are_dates_again():
    days = pd.date_range("2024-01-01", periods=N, freq="7D")
    train, new = TRAIN.assign(day=days), NEW.assign(day=days[:30].astype(str))
    assert str(match(train, new).X_new["day"].dtype).startswith("datetime64")
    assert "day" not in match(train, NEW.assign(day=1.0)).kinds


def test_too_many_domains_are_said():
    def notes_of(names):
        notes = []
        train, new = pd.DataFrame({"site": names}), pd.DataFrame({"site": ["new"]})
        code_domains(train, new, "site", notes)
        return notes

    assert "has 4 values in 6 training rows: too few rows" in notes_of(list("abcdda"))[0]
    assert notes_of(list("abccba")) == []


def test_without_a_domain_column_all_new_rows_are_one_target():
    sources, targets, names = code_domains([1, 2], [3], None, [])
    assert (sources.tolist(), targets.tolist()) == ([0, 0], [-1])
    assert names == {0: "training", -1: "new"}
