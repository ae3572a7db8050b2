"""Labels of some rows of the new table: read, put where they belong, refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, AutoAdaptedClassifier, DomainStandardScaler
from covshift.tables import TableError, adapt_tables, match_tables, read_pair
from covshift.tables.adapting import describe_model
from covshift.tables.label_files import read_new_labels, with_new_labels
from tests.cli.user_files import make_tables, write_tables

CANDIDATES = [(None, LogisticRegression()), (DomainStandardScaler(), LogisticRegression())]


@pytest.fixture
def tables():
    """Rows of two new sites, which take turns in the table."""
    found = make_tables()
    new = found["labeled"].assign(site=["D", "C"] * 60).drop(columns="churned")
    return match_tables(found["train"], new, label="churned", domain="site", ignore=["since"])


def write_labels(path, rows, labels):
    pd.DataFrame({"row_to_label": rows, "churned": labels, "age": 1}).to_csv(path, index=False)
    return path


def test_labels_are_put_to_their_rows(tables, tmp_path):
    path = write_labels(tmp_path / "labels.csv", [120, 1, 4, 2], ["yes", "no", None, "yes"])
    labeled = with_new_labels(tables, path)
    X, y, sample_domain = labeled.stack()
    known = labeled.label_mask
    assert known[:200].all()
    assert known[200:].sum() == 3
    rows = np.flatnonzero(known[200:]) + 200
    truth = make_tables()["labeled"]
    ages = {truth["age"][119]: "yes", truth["age"][0]: "no", truth["age"][1]: "yes"}
    assert {X["age"].iloc[row]: y[row] for row in rows} == ages
    np.testing.assert_array_equal(y[:200], tables.stack().y[:200])
    np.testing.assert_array_equal(sample_domain, tables.stack().sample_domain)
    assert tables.label_mask is None
    assert labeled.notes[-1] == "3 labels of new rows are used."


def test_rows_of_a_sample_are_found_by_their_numbers(tmp_path):
    paths = write_tables(tmp_path)
    tables = read_pair(paths["train"], paths["new"], label="churned", max_rows=50)
    row = int(tables.new_rows[7])
    path = write_labels(tmp_path / "labels.csv", [row + 1], ["yes"])
    assert read_new_labels(tables, path).rows.tolist() == [7]
    absent = next(n for n in range(1, 121) if n - 1 not in tables.new_rows)
    with pytest.raises(TableError, match=f"row {absent} is not a row of the new table"):
        read_new_labels(tables, write_labels(path, [absent], ["yes"]))


def test_ranges_of_a_numeric_label(tmp_path):
    found = make_tables()
    tables = match_tables(found["train"], found["new"], label="income", bins=2)
    path = tmp_path / "labels.csv"
    path.write_text("row_to_label,income\n1,-5\n2,99999\n")
    assert with_new_labels(tables, path).new_labels.tolist() == np.unique(tables.y).tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("row_to_label,churned\n1,\n", "no row has a label yet: fill in the column 'churned'"),
        ("row_to_label,churned\n,yes\n", "no number in the column 'row_to_label'; put it back"),
        ("row_to_label,churned\n999,yes\n", "row 999 is not a row of the new table"),
        ("row_to_label,churned\n0,yes\n", "row 0 is not a row of the new table"),
        ("row_to_label,churned\n-3,yes\n", "row -3 is not a row of the new table"),
        ("row_to_label,churned\n1.5,yes\n", "row 1.5 is not a row of the new table"),
        ("row_to_label,churned\n1,yes\n2,no\n1,no\n", "row 1 has several labels; keep one"),
        ("row_to_label,churned\n1,yes\n2,maybe\n", "no training row has the label 'maybe'"),
        ("churned\nyes\n", "has no column 'row_to_label'"),
        ("row_to_label\n1\n", "has no column 'churned'"),
    ],
)
def test_files_that_cannot_be_used(tables, tmp_path, content, words):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(TableError, match=words) as error:
        with_new_labels(tables, path)
    assert "labels.csv" in str(error.value)


def test_labels_narrow_the_interval_and_enter_the_fit(tables, tmp_path):
    truth = make_tables()["labeled"]["churned"].tolist()
    path = write_labels(tmp_path / "labels.csv", range(1, 61), truth[:60])
    labeled = with_new_labels(tables, path)

    def widths(assessment):
        return [one.high - one.low for one in (assessment.plain, assessment.vote)]

    vote = AutoAdaptedClassifier(candidates=CANDIDATES, random_state=0)
    before, after = (adapt_tables(one, vote) for one in (tables, labeled))
    assert before.estimator_.assessment_.n_labels == 0
    assert after.estimator_.assessment_.n_labels == 60
    for few, many in zip(
        widths(before.estimator_.assessment_), widths(after.estimator_.assessment_), strict=True
    ):
        assert many < few
    card = describe_model(after, labeled, ["train.csv", "new.csv"])
    assert card["data"]["new rows with a label"] == 60
    assert "new rows with a label" not in describe_model(before, tables, ["a", "b"])["data"]
    # In the fit: the opposite labels give another model, of one adapter as well.
    opposite = [{"yes": "no", "no": "yes"}[one] for one in truth[:60]]
    wrong = with_new_labels(tables, write_labels(path, range(1, 61), opposite))
    named = AdaptedClassifier("standardize", LogisticRegression())
    P = [adapt_tables(one, named).predict_proba(tables.X_new) for one in (labeled, wrong)]
    assert np.abs(P[0] - P[1]).max() > 0.05
    members = [one.model.estimator_.coef_ for one in after.estimator_.members_]
    others = [one.model.estimator_.coef_ for one in before.estimator_.members_]
    assert not any(np.array_equal(a, b) for a in members for b in others)
