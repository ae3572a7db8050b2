"""The classifier of tables: encoding, domains by name, new targets, what is kept."""

import unicodedata
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    DomainStandardScaler,
    JointAlignmentClassifier,
    NothingToAdaptWarning,
    SubspaceAlignment,
    load,
    save,
)
from covshift.cli.options import split_at_commas
from covshift.persistence import read_card
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.tables import (
    Split,
    TableClassifier,
    TableEncoder,
    describe_model,
    match_tables,
    monitor_batch,
    predict_file,
    read_pair,
    score_file,
)
from covshift.tables.adapting import check_choice, list_members
from covshift.tables.errors import TableError
from covshift.tables.schema import parse_kinds
from covshift.tables.table_models import known_numbers
from tests.cli.user_files import make_tables

TABLES = make_tables()
MATCHED = match_tables(TABLES["train"], TABLES["new"], label="churned", domain="site")


def make_model(adapter=None, **options):
    return TableClassifier(AdaptedClassifier(adapter or DomainStandardScaler()), **options)


@pytest.fixture(scope="module")
def model():
    return make_model().fit_tables(MATCHED)


def test_numbers_too_large_are_refused_by_the_name_of_their_column():
    frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "income": np.arange(40.0)})
    y = np.arange(40) // 2 % 2
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler()))
    model.fit(frame, y, sample_domain=-(np.arange(40) % 2))
    frame.loc[7, "income"] = 1e150
    for method in (model.predict, lambda X: model.fit(X, y, sample_domain=-(np.arange(40) % 2))):
        with pytest.raises(ValueError, match=r"Column 'income' .* 1\.0e\+150; above 6e\+102"):
            method(frame)


def test_it_is_encoder_and_estimator_in_one(model):
    X, y, sample_domain = MATCHED.stack()
    encoder = TableEncoder().fit(X, sample_domain=sample_domain)
    inner = AdaptedClassifier(DomainStandardScaler())
    inner.fit(encoder.transform(X), y, sample_domain=sample_domain)
    rows = TABLES["labeled"]
    Z = encoder.transform(rows)
    assert_array_equal(model.encode(rows), Z)
    assert_array_equal(model.predict(rows), inner.predict(Z))
    assert_array_equal(model.predict_proba(rows), inner.predict_proba(Z))
    assert model.score(rows, rows["churned"]) == inner.score(Z, rows["churned"])
    assert_array_equal(model.predict(rows, sample_domain="A"), inner.predict(Z, sample_domain=0))
    assert_array_equal(model.predict(pl.from_pandas(rows)), inner.predict(Z))


def test_labels_of_the_target_are_not_read():
    X, y, sample_domain = MATCHED.stack()
    changed = y.copy()
    changed[sample_domain < 0] = "yes"
    rows = TABLES["labeled"]
    models = [make_model().fit(X, labels, sample_domain=sample_domain) for labels in (y, changed)]
    assert_array_equal(*(one.predict_proba(rows) for one in models))
    assert_array_equal(*(one.reference_ for one in models))


def test_the_caller_keeps_his_frames(model):
    rows = TABLES["labeled"].copy()
    model.predict(rows)
    model.encode(rows)
    pd.testing.assert_frame_equal(rows, TABLES["labeled"])


def test_a_file_gives_the_same_to_the_bit(model, tmp_path):
    save(model, tmp_path / "m", card={"by": "test"})
    loaded = load(tmp_path / "m")
    rows = TABLES["labeled"]
    assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    assert_array_equal(loaded.reference_, model.reference_)
    assert loaded.schema_ == model.schema_
    assert loaded.domain_names_ == {0: "A", 1: "B", -1: "C"}
    assert read_card(tmp_path / "m")["feature_names"] == ["age", "income", "city", "since"]
    loaded.adapt_target(TABLES["later"], domain="D")
    assert loaded.score(TABLES["later"], TABLES["later"]["churned"], sample_domain="D") > 0.9


def test_names_of_domains():
    new = pd.concat([TABLES["new"], TABLES["train"].tail(40).drop(columns="churned")])
    matched = match_tables(TABLES["train"], new, label="churned", domain="site")
    model = make_model().fit_tables(matched)
    assert model.domain_names_ == {0: "A", 1: "B", -1: "C", -2: "B (new)"}
    # B is a target since; A was in training only; X is unknown.
    assert model.domain_numbers(["A", "B", "C", "B (new)", "X"]).tolist() == [0, -2, -1, -2, -3]
    rows = TABLES["labeled"].head(3)
    by_name = model.predict_proba(rows, sample_domain=["A", "B", "C"])
    by_number = model.predict_proba(rows, sample_domain=[0, -2, -1])
    assert_array_equal(by_name, by_number)


def test_a_new_target_becomes_the_default_or_gets_a_name(model):
    later = TABLES["later"]
    default = clone(model).fit_tables(MATCHED).adapt_target(later)
    assert default.score(later, later["churned"]) > 0.9
    assert_array_equal(default.reference_, default.encode(later))
    named = clone(model).fit_tables(MATCHED).adapt_target(later, domain="D")
    assert named.domain_names_[-2] == "D"
    assert named.score(later, later["churned"]) < 0.7
    assert named.score(later, later["churned"], sample_domain="D") > 0.9
    assert len(named.reference_) == 240
    named.adapt_target(later.head(50), domain="D")  # again: what was known of it is replaced
    assert len(named.reference_) == 170
    assert (named.reference_domain_ == -2).sum() == 50


def test_a_target_that_cannot_be_learned_changes_nothing():
    model = make_model(SubspaceAlignment()).fit_tables(MATCHED)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="refit"):
        model.adapt_target(TABLES["later"], domain="D")
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_rows_that_are_kept():
    few = make_model(max_reference_rows=30).fit_tables(MATCHED)
    assert few.reference_.shape == (30, 9)
    rows = {tuple(row) for row in few.encode(TABLES["new"])}
    assert all(tuple(row) in rows for row in few.reference_)
    assert make_model(max_reference_rows=0).fit_tables(MATCHED).reference_.shape == (0, 9)
    again = make_model(max_reference_rows=30).fit_tables(MATCHED)
    assert_array_equal(again.reference_, few.reference_)


def test_without_domains_source_rows_are_kept():
    with pytest.warns(NothingToAdaptWarning):
        model = make_model().fit(MATCHED.X_train, MATCHED.y)
    assert len(model.reference_) == 200
    assert model.label_ is None


def test_it_knows_whether_it_adapts():
    assert make_model().fit_tables(MATCHED).adapts_
    plain = TableClassifier(AdaptedClassifier(None)).fit_tables(MATCHED)
    assert not plain.adapts_
    plain.adapt_target(TABLES["later"])
    candidates = [(None, make_pipeline(StandardScaler(), LogisticRegression()))]
    auto = AutoAdaptedClassifier(candidates=candidates, max_rows=100, random_state=0)
    with pytest.warns(NoRankedCandidateWarning):  # it takes all for one class
        assert not TableClassifier(auto).fit_tables(MATCHED).adapts_


@pytest.mark.parametrize(
    ("adapter", "name"),
    [("CORAL", "coral + logistic"), (None, "raw + logistic"), ("SA 8", "sa-8 + logistic")],
)
def test_the_card_has_the_names_of_the_leaderboard(adapter, name):
    model = TableClassifier(AdaptedClassifier(adapter)).fit_tables(MATCHED)
    assert list_members(model) == [{"candidate": name, "weight": 1.0}]


def test_the_plain_model_does_not_adapt():
    joint = JointAlignmentClassifier(random_state=0)
    model = TableClassifier(AdaptedClassifier("coral", joint)).fit_tables(MATCHED)
    assert model.adapts_
    assert not model.plain_.adapts_
    assert list_members(model.plain_)[0]["candidate"] == "none + logistic"


def test_the_model_is_named_once():
    assert check_choice("coral + LR", None) == ("coral", "logistic")
    with pytest.raises(TableError, match="Name the model once: in --adapter, --model"):
        check_choice("coral + logistic", "rbf")


def test_the_card_tells_of_rows_that_were_not_scored():
    candidates = [(DomainStandardScaler(), LogisticRegression())]
    for max_rows, told in ((100, True), (1000, False)):
        auto = AutoAdaptedClassifier(candidates=candidates, max_rows=max_rows, random_state=0)
        model = TableClassifier(auto).fit_tables(MATCHED)
        notes = describe_model(model, MATCHED, ["train.csv", "new.csv"])["notes"]
        assert any("scored on at most 100 rows" in note for note in notes) == told


def test_bad_input(model):
    with pytest.raises(NotFittedError):
        make_model().predict(TABLES["new"])
    with pytest.raises(ValueError, match="absent: 'age'"):
        model.predict(TABLES["new"].drop(columns="age"))
    with pytest.raises(ValueError, match="is not a domain"):
        model.predict(TABLES["new"], sample_domain="Z")
    with pytest.raises(ValueError, match="max_reference_rows"):
        make_model(max_reference_rows=-1).fit_tables(MATCHED)
    with pytest.raises(ValueError, match="rows are too few"):
        clone(model).fit_tables(MATCHED).adapt_target(TABLES["later"].head(3))
    failed = make_model()
    with pytest.raises(ValueError, match="max_categories"):
        failed.set_params(encoder=TableEncoder(max_categories=0)).fit_tables(MATCHED)
    assert not hasattr(failed, "encoder_")


def test_a_name_in_a_later_table_is_that_of_the_target():
    names = {0: "A", 1: "B", -1: "A (new)", -2: "C"}
    assert known_numbers(names) == {"A": -1, "B": 1, "A (new)": -1, "C": -2}


# macOS may write an accent as a character of its own behind its letter.
apart = partial(unicodedata.normalize, "NFD")


def accented(n_rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n_rows).round(1)
    site, city = (rng.choice(names, n_rows) for names in (["Süd", "Nord"], ["Zürich", "Oslo"]))
    label = np.where(age + 20 * (city == "Oslo") > 50, "größer", "kleiner")
    return pd.DataFrame({"âge": age, "ville détaillée": city, "région": site, "étiquette": label})


def decomposed(frame):
    return frame.map(lambda cell: apart(cell) if isinstance(cell, str) else cell).rename(
        columns=apart
    )


def raw_state(value):
    """Return what a model learned, with names and texts as version 0.1 read them."""
    if isinstance(value, str):
        return apart(value)
    if isinstance(value, dict):
        return {raw_state(name): raw_state(one) for name, one in value.items()}
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype == object):
        return type(value)(map(raw_state, value)) if isinstance(value, list) else value
    return value


def test_older_models_read_accents_however_they_are_encoded(tmp_path):
    """Version 0.1 kept names, categories, domains and classes as its training table had them."""
    train, new = accented(300, 0), accented(80, 1)
    train.to_csv(tmp_path / "train.csv", index=False)
    new.to_csv(tmp_path / "composed.csv", index=False)
    decomposed(new).to_csv(tmp_path / "apart.csv", index=False)
    tables = read_pair(
        tmp_path / "train.csv", tmp_path / "composed.csv", label="étiquette", domain="région"
    )
    model = make_model().fit_tables(tables)
    expected = model.predict(tables.X_new, sample_domain=tables.target_domain)

    older = make_model().fit_tables(replace(tables, y=np.array([apart(one) for one in tables.y])))
    older.encoder_.__dict__.update(raw_state(vars(older.encoder_)))
    older.label_, older.domain_ = apart(older.label_), apart(older.domain_)
    older.domain_names_ = raw_state(older.domain_names_)
    older.feature_names_in_ = np.array([apart(name) for name in older.feature_names_in_], object)
    save(older, tmp_path / "model.skops")
    older = load(tmp_path / "model.skops")
    assert older.classes_.tolist() == [apart("größer"), "kleiner"]
    for name in ("composed.csv", "apart.csv"):
        predict_file(older, tmp_path / name, tmp_path / "out.csv")
        predicted = pd.read_csv(tmp_path / "out.csv")["prediction"]
        assert predicted.map(partial(unicodedata.normalize, "NFC")).tolist() == expected.tolist()
        assert score_file(older, tmp_path / name)["accuracy"]["value"] > 0.8
        found = monitor_batch(older, tmp_path / name)
        assert not any("no training row has" in note for note in found["notes"])


def test_names_of_options_may_be_encoded_otherwise(tmp_path):
    train, new = accented(300, 0), accented(80, 1)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    for path, frame in zip(paths, (train, new), strict=True):
        frame.to_csv(path, index=False)
    model = make_model().fit_tables(read_pair(*paths, label="étiquette"))
    scores = score_file(model, paths[1], label=apart("étiquette"), domain=apart("région"))
    assert [one["name"] for one in scores["domains"]] == ["Nord", "Süd"]
    split = Split(time=apart("âge"), train_before="40")
    assert read_pair(paths[0], label="étiquette", split=split).label == "étiquette"
    assert split_at_commas([apart("âge,région")]) == ["âge", "région"]
    assert parse_kinds([apart("âge=text")]) == {"âge": "text"}


def test_frames_are_compared_in_one_form():
    encoder = TableEncoder().fit(decomposed(accented(100, 0)))
    new = accented(20, 1)
    assert_array_equal(encoder.transform(new), encoder.transform(decomposed(new)))
