"""``covshift diagnose``: advice, report, JSON, rows to label, the command at the end, refusals."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from covshift import load
from covshift.cli.commands.diagnose import MODEL_FILE, _adapt_command
from covshift.report.document import to_plain
from covshift.tables import diagnose_tables
from tests.cli.user_files import LAYOUTS, assert_refused, customers, run, succeed, write_tables
from tests.diagnosis.made_domains import CANDIDATES, few_candidates

FOUND = {}


@pytest.fixture(autouse=True)
def cheap_and_once(monkeypatch):
    """Few candidates; the same tables with the same options have the same diagnosis."""
    monkeypatch.setattr(CANDIDATES, few_candidates)

    def remember(tables, *, progress, **options):
        frames = [frame.to_csv() for frame in (tables.X_train, tables.X_new)]
        domains = [tables.source_domain.tolist(), tables.target_domain.tolist()]
        known = None if tables.labeled_rows is None else tables.labeled_rows.tolist()
        key = str([frames, tables.y.tolist(), domains, tables.domain_names, tables.schema, options])
        key += str([known, tables.new_labels])
        if key not in FOUND:
            FOUND[key] = diagnose_tables(tables, progress=progress, **options)
        return FOUND[key]

    monkeypatch.setattr("covshift.tables.diagnosing.diagnose_tables", remember)


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


def diagnosed(files, *options):
    return succeed(
        "diagnose", files["train"], files["new"], "--label", "churned", "--domain", "site",
        "--ignore", "since", *options,
    )  # fmt: skip


def test_advice_and_report(files, tmp_path):
    printed = diagnosed(files, "--report", tmp_path / "report.html")
    result = json.loads(diagnosed(files, "--json"))
    for start in (
        "Objective: accuracy, ", "The rows have moved", "Advice: ", "To follow the advice:",
    ):  # fmt: skip
        assert any(line.startswith(start) for line in printed.splitlines())
    plain = result["assessment"]["plain"]
    assert f"plain model {plain['value']:.2f} (" in " ".join(printed.split())
    assert "expected accuracy (90 % interval)" in printed
    assert f"Report: {tmp_path / 'report.html'}" in printed
    assert printed.splitlines()[-1].strip() == result["command"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What moved" in page
    assert "income" in page
    assert "moved by, in standard deviations" in page
    assert ">Files</h2>" in page
    assert "to follow the advice" in page


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
        assert "of 1,050 source and 1,050 target rows; 600 and 600 of them, drawn" in text


def test_rows_to_label_are_rows_of_the_new_table(files):
    result = json.loads(diagnosed(files, "--json", "--ask", 7))
    rows = result["rows to label"]
    assert len(set(rows)) == 7
    assert min(rows) >= 1
    assert max(rows) <= 120
    assert result["assessment"]["n_labels"] == 0
    assert {"adapter", "assumption", "expected gain", "weight"} <= set(result["adapters"][0])


def test_labels_are_asked_for_in_a_file_and_given_back(files, tmp_path):
    to_label, page = tmp_path / "to label.csv", tmp_path / "report.html"
    printed = diagnosed(files, "--to-label", to_label, "--ask", 40, "--report", page)
    assert "rows_to_label()" not in printed
    assert "rows_to_label()" not in page.read_text(encoding="utf-8")
    assert f"To label: {to_label}" in printed
    asked = pd.read_csv(to_label, dtype=str)
    assert list(asked.columns[:3]) == ["row_to_label", "churned", "customer_id"]
    assert asked["churned"].isna().all()
    new = pd.read_csv(files["new"], dtype=str)
    numbers = asked["row_to_label"].astype(int) - 1
    assert (new["customer_id"].iloc[numbers].to_numpy() == asked["customer_id"]).all()

    # The site's own means divide the classes.
    ages, incomes = new["age"].astype(float), new["income"].astype(float)
    truth = (ages - 55) / 10 + (incomes - 5000) / 800 > 0
    asked["churned"] = np.where(truth.iloc[numbers], "yes", "no")
    asked.loc[3, "churned"] = ""
    asked.to_csv(to_label, index=False, sep=";")
    told = json.loads(diagnosed(files, "--labels", to_label, "--json"))
    assert told["assessment"]["n_labels"] == 39
    assert told["assessment"]["action"] == "adapt"
    assert f"--labels '{to_label}'" in told["command"]
    assert not set(told["rows to label"]) & set((numbers.drop(3) + 1).tolist())
    before = json.loads(diagnosed(files, "--json"))["assessment"]["plain"]
    after = told["assessment"]["plain"]
    assert after["high"] - after["low"] < before["high"] - before["low"]


def test_files_of_labels_that_cannot_be_used(files, tmp_path):
    path = tmp_path / "labels.csv"
    options = ["--label", "churned", "--domain", "site", "--time-budget", 0, "--labels", path]
    for text, words in {
        "row_to_label,churned\n1,\n": "no row has a label yet: fill in the column 'churned'",
        "row_to_label,churned\n,yes\n": "no number in the column 'row_to_label'; put it back",
        "row_to_label,churned\n999,yes\n": "row 999 is not a row of the new table",
        "row_to_label,churned\n0,yes\n": "row 0 is not a row of the new table",
        "churned\nyes\n": "has no column 'row_to_label'",
        "row_to_label,churned\n1,maybe\n2,yes\n": "no training row has the label 'maybe'",
    }.items():
        path.write_text(text)
        assert_refused(run("diagnose", files["train"], files["new"], *options), "diagnose", words)
    over = ["--label", "churned", "--to-label", files["new"]]
    assert_refused(run("diagnose", files["train"], files["new"], *over), "diagnose", "is read too")


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_the_same_of_every_layout(tmp_path, layout):
    files = write_tables(tmp_path, layout)
    result = json.loads(diagnosed(files, "--json", "--time-budget", 0))
    moved = [one["name"] for one in result["movement"]["features"][:2]]
    assert sorted(moved) == ["age", "income"]
    assert "source domains" in result["skipped"]


# The command at the end builds the advised model


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, ["--domain", "site"]),
        (1, ["--objective", "balanced_accuracy", "--seed", "3"]),
        (2, ["--domain", "site", "--objective", "balanced_accuracy", "--max-rows", "90"]),
        (3, ["--use", "customer_id", "--missing", "Oslo", "--as", "age=number", "--seed", "5"]),
    ],
)
def test_adapt_does_what_diagnose_advises(tmp_path, monkeypatch, seed, options):
    rng = np.random.default_rng(seed)
    sites = [customers(50, name, moved, rng) for name, moved in (("B", 0), ("A", 1), ("D", -1))]
    train = pd.concat(sites).sample(frac=1, random_state=seed)
    new = pd.concat([customers(40, "E", 2, rng), customers(40, "C", 0.5, rng)])
    new = new.sample(frac=1, random_state=seed).drop(columns="churned")
    if seed % 2:  # unbalanced
        train = train.drop(train.index[train["churned"] == "yes"][::2])
    monkeypatch.chdir(tmp_path)
    train.to_csv("train of 'us'.csv", index=False)
    new.to_csv("new.csv", index=False)
    told = json.loads(succeed("diagnose", "train of 'us'.csv", "new.csv", "--label", "churned",
                              "--ignore", "since", *options, "--json"))  # fmt: skip
    program, *arguments = shlex.split(told["command"])
    assert program == "covshift"
    succeed(*arguments)
    model = load(MODEL_FILE).estimator_
    assert to_plain(model.assessment_) == told["assessment"]
    members = [[one.candidate.name, one.weight] for one in model.members_]
    assert members == told["assessment"]["members"]
    weights = {row["adapter"]: row["weight"] for row in told["adapters"]}
    for name, weight in weights.items():
        of_adapter = [w for member, w in members if member.startswith(f"{name} + ")]
        assert weight == pytest.approx(sum(of_adapter))
    assert model.decision_ in told["summary"]


def test_the_command_repeats_what_was_given():
    options = {
        "label": "it's", "bins": 4, "domain": None, "target_domain": ["A,B", "C"], "time": None,
        "use": ["a b"], "max_risk": 0.2, "separator": "\t", "no_header": True, "db": None,
        "missing": ["-999", "?"], "as_kind": ["x=number:$"], "jobs": None, "seed": 7,
    }  # fmt: skip
    command = _adapt_command(("a b.csv", "SELECT * FROM t"), options)
    assert shlex.split(command) == [
        "covshift", "adapt", "a b.csv", "SELECT * FROM t", "--label", "it's", "--bins", "4",
        "--target-domain", "A,B", "--target-domain", "C", "--use", "a b", "--max-risk", "0.2",
        "--separator", "tab", "--no-header", "--missing=-999", "--missing", "?", "--as",
        "x=number:$", "--seed", "7", "--out", MODEL_FILE,
    ]  # fmt: skip


def test_a_risk_that_is_accepted(files):
    told = json.loads(diagnosed(files, "--json", "--max-risk", 0))
    assert told["assessment"]["max_risk"] == 0
    assert told["assessment"]["action"] == "keep"
    assert "--max-risk 0" in told["command"]
    refused = run("diagnose", files["train"], files["new"], "--label", "churned", "--max-risk", 2)
    assert_refused(refused, "diagnose", "max_risk is a probability")


# Odd files


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


def test_few_rows_get_advice_too(files, tmp_path):
    few = tmp_path / "few.csv"
    pd.read_csv(files["new"]).head(5).to_csv(few, index=False)
    printed = succeed("diagnose", files["train"], few, "--label", "churned", "--ignore", "since")
    assert "Advice: " in printed
