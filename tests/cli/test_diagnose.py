"""``covshift diagnose``: verdict, report, JSON, rows to label, refusals."""

import json

import numpy as np
import pandas as pd
import pytest

from covshift.tables import diagnose_tables
from tests.cli.user_files import LAYOUTS, assert_refused, customers, run, succeed, write_tables

FOUND = {}


@pytest.fixture(autouse=True)
def diagnosed_once(monkeypatch):
    """The same tables with the same options have the same diagnosis: it is made once."""

    def remember(tables, *, progress, **options):
        frames = [frame.to_csv() for frame in (tables.X_train, tables.X_new)]
        domains = [tables.source_domain.tolist(), tables.target_domain.tolist()]
        key = str([frames, tables.y.tolist(), domains, tables.domain_names, tables.schema, options])
        if key not in FOUND:
            FOUND[key] = diagnose_tables(tables, progress=progress, **options)
            _ = FOUND[key].expectations  # computed when first asked for
        return FOUND[key]

    monkeypatch.setattr("covshift.tables.diagnose_tables", remember)


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


def diagnosed(files, *options):
    return succeed(
        "diagnose", files["train"], files["new"], "--label", "churned", "--domain", "site",
        "--ignore", "since", *options,
    )  # fmt: skip


def test_verdict_and_report(files, tmp_path):
    printed = diagnosed(files, "--report", tmp_path / "report.html")
    assert "The rows have moved" in printed
    assert "Undecidable from these data" in printed  # sites A and B hardly differ
    assert f"Report: {tmp_path / 'report.html'}" in printed
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What moved" in page
    assert "income" in page
    assert "moved by, in standard deviations" in page
    assert "What the files look like" in page


def test_rows_that_were_not_read_or_not_looked_at_are_told(tmp_path):
    rng = np.random.default_rng(0)
    paths, page = (tmp_path / "train.csv", tmp_path / "new.csv"), tmp_path / "report.html"
    customers(1200, "A", 0, rng).to_csv(paths[0], index=False)
    customers(1100, "C", 1, rng).to_csv(paths[1], index=False)
    printed = succeed(
        "diagnose", *paths, "--label", "churned", "--ignore", "since", "--time-budget", 0,
        "--max-rows", 1050, "--report", page,
    )  # fmt: skip
    for text in (" ".join(printed.split()), page.read_text(encoding="utf-8")):
        assert "1,050 of 1,200 rows are used" in text
        assert "of 1,050 source and 1,050 target rows, of which 1,000 and 1,000 were" in text


def test_rows_to_label_are_rows_of_the_new_table(files):
    result = json.loads(diagnosed(files, "--json", "--ask", 7))
    rows = result["rows to label"]
    assert len(set(rows)) == 7
    assert min(rows) >= 1
    assert max(rows) <= 120
    assert result["verdict"]["kind"] == "undecidable"
    assert len(result["hypotheses"]) == 7


def test_labels_are_asked_for_in_a_file_and_given_back(files, tmp_path):
    to_label, page = tmp_path / "to label.csv", tmp_path / "report.html"
    printed = diagnosed(files, "--to-label", to_label, "--ask", 40, "--report", page)
    assert "rows_to_label()" not in printed
    assert "rows_to_label()" not in page.read_text(encoding="utf-8")
    assert "give them back with --labels FILE" in printed
    assert f"To label: {to_label}" in printed
    asked = pd.read_csv(to_label, dtype=str)
    assert list(asked.columns[:3]) == ["row_to_label", "churned", "customer_id"]
    assert asked["churned"].isna().all()
    new = pd.read_csv(files["new"], dtype=str)
    numbers = asked["row_to_label"].astype(int) - 1
    assert (new["customer_id"].iloc[numbers].to_numpy() == asked["customer_id"]).all()

    # The site's own means divide the classes: shift and scale is right.
    ages, incomes = new["age"].astype(float), new["income"].astype(float)
    truth = (ages - 55) / 10 + (incomes - 5000) / 800 > 0
    asked["churned"] = np.where(truth.iloc[numbers], "yes", "no")
    asked.loc[3, "churned"] = ""
    asked.to_csv(to_label, index=False, sep=";")
    told = json.loads(diagnosed(files, "--labels", to_label, "--json"))
    assert told["labels"]["n_labels"] == 39
    assert told["verdict"]["kind"] == "adapt"


def test_files_of_labels_that_cannot_be_used(files, tmp_path):
    path = tmp_path / "labels.csv"
    options = ["--label", "churned", "--domain", "site", "--time-budget", 0, "--labels", path]
    for text, words in {
        "row_to_label,churned\n1,\n": "no row has a label yet: fill in the column 'churned'",
        "row_to_label,churned\n,yes\n": "no number in the column 'row_to_label'; put it back",
        "row_to_label,churned\n999,yes\n": "row 999 of the new table was not looked at",
        "churned\nyes\n": "has no column 'row_to_label'",
    }.items():
        path.write_text(text)
        assert_refused(run("diagnose", files["train"], files["new"], *options), "diagnose", words)
    path.write_text("row_to_label,churned\n1,maybe\n2,yes\n")
    printed = succeed("diagnose", files["train"], files["new"], *options)
    assert "No training row has these labels; all are wrong there: 'maybe'." in printed
    over = ["--label", "churned", "--to-label", files["new"]]
    assert_refused(run("diagnose", files["train"], files["new"], *over), "diagnose", "is read too")


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_the_same_of_every_layout(tmp_path, layout):
    files = write_tables(tmp_path, layout)
    result = json.loads(diagnosed(files, "--json", "--time-budget", 0))
    moved = [one["name"] for one in result["movement"]["features"][:2]]
    assert sorted(moved) == ["age", "income"]
    assert result["skipped"] == ["source domains", "common support", "rows moved"]


def test_class_names_and_columns_are_text_in_the_report(tmp_path):
    rng = np.random.default_rng(0)
    train = pd.concat([customers(60, "A", 0, rng), customers(60, "B", 1, rng)])
    train["churned"] = train["churned"].map({"yes": "<script>alert(1)</script>", "no": "=cmd()"})
    train = train.rename(columns={"income": "<b>income</b>"}).drop(columns="since")
    new = customers(60, "C", 2, rng).rename(columns={"income": "<b>income</b>"})
    train.to_csv(tmp_path / "train.csv", index=False)
    new.drop(columns=["churned", "since"]).to_csv(tmp_path / "new.csv", index=False)
    files = {"train": tmp_path / "train.csv", "new": tmp_path / "new.csv"}
    succeed(
        "diagnose", files["train"], files["new"], "--label", "churned", "--domain", "site",
        "--report", tmp_path / "r.html", "--time-budget", 0,
    )  # fmt: skip
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>income" not in page
    assert "<script>alert" not in page


def test_refusals(files, tmp_path):
    train, new = files["train"], files["new"]
    assert_refused(run("diagnose", train, new, "--label", "churn"), "diagnose", "'churned'")
    refused = run("diagnose", train, new, "--label", "churned", "--report", tmp_path)
    assert_refused(refused, "diagnose", str(tmp_path))
    few = tmp_path / "few.csv"
    pd.read_csv(new).head(5).to_csv(few, index=False)
    refused = run("diagnose", train, few, "--label", "churned")
    assert_refused(refused, "diagnose", "at least 20")
