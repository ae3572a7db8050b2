"""The classifier of tables: encoding, domains by name, new targets, what is kept."""

import unicodedata

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
from covshift.persistence import read_card
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.tables import (
    TableClassifier,
    TableEncoder,
    describe_model,
    match_tables,
    predict_file,
    read_pair,
    score_file,
)
from covshift.tables.adapting import check_choice, list_members
from covshift.tables.messages import TableError
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


def take_apart(value):
    """Return texts as macOS writes them, wherever they are in a fitted attribute."""
    if isinstance(value, str):
        return unicodedata.normalize("NFD", value)
    if isinstance(value, dict):
        return {take_apart(name): take_apart(one) for name, one in value.items()}
    return [take_apart(one) for one in value] if isinstance(value, list) else value


def test_models_of_earlier_versions_have_accents_as_their_files(tmp_path):
    """Names, categories, units and classes were not composed when they were read."""
    frame = pd.DataFrame(
        {
            "âge": [f"{value} \N{ANGSTROM SIGN}" for value in np.linspace(20, 60, 80)],
            "cité": ["Orléans", "Rome"] * 40,
            "état": ["Évry", "Besançon"] * 40,
            "année": ["été", "hiver"] * 20 + ["été"] * 40,
        }
    )
    frame.to_csv(tmp_path / "train.csv", index=False)
    tables = read_pair(tmp_path / "train.csv", tmp_path / "train.csv", label="année", domain="état")
    expected = make_model().fit_tables(tables)
    X, y, sample_domain = tables.stack()
    old = make_model().fit(
        X,
        np.array(list(map(take_apart, y))),
        sample_domain=sample_domain,
        domain_names=take_apart(tables.stack().domain_names),
        schema=tables.schema,
    )
    old.label_, old.domain_ = take_apart("année"), take_apart("état")
    for name, value in vars(old.encoder_).items():
        setattr(old.encoder_, name, take_apart(value))
    save(old, tmp_path / "old.skops")
    loaded = load(tmp_path / "old.skops")
    scores = score_file(expected, tmp_path / "train.csv")
    for path in (tmp_path / "train.csv", tmp_path / "apart.csv"):
        path.write_text(take_apart((tmp_path / "train.csv").read_text()))
        found = score_file(loaded, path, domain=take_apart("état"))
        assert found["accuracy"] == scores["accuracy"]
        assert found["notes"] == scores["notes"]


def test_names_of_a_frame_are_those_of_its_file(tmp_path):
    """Files are read with composed accents and single spaces; frames are as they come."""
    frame = pd.DataFrame({take_apart("âge"): np.arange(40.0), "the  city": ["Oslo", "Rome"] * 20})
    y, sample_domain = np.arange(40) // 2 % 2, -(np.arange(40) % 2)
    model = make_model().fit(frame, y, sample_domain=sample_domain)
    frame.to_csv(tmp_path / "new.csv", index=False)
    predict_file(model, tmp_path / "new.csv", tmp_path / "out.csv")
    expected = model.predict(frame)
    assert_array_equal(pd.read_csv(tmp_path / "out.csv")["prediction"], expected)
    composed = frame.set_axis(["âge", "the city"], axis="columns")
    assert_array_equal(model.predict(composed), expected)
    with pytest.raises(ValueError, match="different names; repeated: 'âge'"):
        model.fit(frame.assign(âge=1.0), y, sample_domain=sample_domain)


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
