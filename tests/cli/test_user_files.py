"""The commands on users' files, one after the other, as a user drives them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covshift import load
from covshift.tables import TableClassifier, read_table
from tests.cli.user_files import LAYOUTS, make_tables, run, succeed, write_tables
from tests.pages import run_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "your-own-files.md"
QUICK = ["--adapter", "standardise"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with tables as pandas writes them, and a model."""
    folder = tmp_path_factory.mktemp("made")
    paths = write_tables(folder)
    paths["model"] = folder / "model.skops"
    columns = ["--label", "churned", "--domain", "site"]
    succeed("adapt", paths["train"], paths["new"], *columns, *QUICK, "--out", paths["model"])
    return paths


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_command_in_sequence(layout, tmp_path):
    paths = write_tables(tmp_path, layout)
    model, later_model = tmp_path / "model.skops", tmp_path / "later.skops"
    columns = ["--label", "churned", "--domain", "site"]
    text = succeed("adapt", paths["train"], paths["new"], *columns, *QUICK, "--out", model)
    assert "Training rows: 200; new rows: 120; columns to learn from: 4" in text
    assert "it looks like an identifier (almost every value is unique)" in text
    assert text.splitlines()[-1] == f"Model: {model}"
    if layout == "spreadsheet":
        assert "Numbers are read with a decimal comma" in text

    out = tmp_path / "predictions.csv"
    text = succeed(
        "predict", model, paths["labeled"], "--out", out, "--proba", "--keep", "customer_id"
    )
    assert "The file has a column 'churned': it is not read." in text
    truth = make_tables()["labeled"]
    predictions = pd.read_csv(out)
    assert list(predictions) == [
        "customer_id", "prediction", "probability of no", "probability of yes",
    ]  # fmt: skip
    assert predictions["customer_id"].tolist() == truth["customer_id"].tolist()
    accuracy = (predictions["prediction"] == truth["churned"]).mean()
    assert accuracy > 0.9  # without adapting, all are "yes"
    assert np.allclose(predictions.iloc[:, 2:].sum(axis=1), 1)

    scores = json.loads(succeed("score", model, paths["labeled"], "--json"))
    assert scores["accuracy"]["value"] == accuracy
    succeed("monitor", model, paths["labeled"])
    assert "Moved" in succeed("monitor", model, paths["later"], code=3)
    assert "churned" in succeed("show", model)

    text = succeed("adapt", model, paths["later"], "--domain", "site", "--out", later_model)
    assert "Adapted to 120 rows of later.csv (domain D)." in text
    # With the option and without it, rows are of the domain that the column of training names.
    for domain in (["--domain", "site"], []):
        scores = json.loads(succeed("score", later_model, paths["later"], *domain, "--json"))
        assert scores["accuracy"]["value"] > 0.9
    # Nothing is left beside what was asked for.
    expected = {path.name for path in paths.values()}
    assert set(os.listdir(tmp_path)) == expected | {"model.skops", "later.skops", "predictions.csv"}


def test_layouts_give_the_same_model(tmp_path):
    """Files of other programs differ; models learned from them do not, up to rounding."""
    found = []
    for layout in LAYOUTS:
        folder = tmp_path / layout
        folder.mkdir()
        paths, model = write_tables(folder, layout), folder / "model.skops"
        columns = ["--label", "churned", "--domain", "site"]
        succeed("adapt", paths["train"], paths["new"], *columns, *QUICK, "--out", model)
        out = folder / "out.parquet"
        succeed("predict", model, paths["new"], "--out", out, "--proba")
        found.append(pd.read_parquet(out)["probability of yes"].to_numpy())
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)


def test_python_gets_the_same(made):
    """The saved model takes the user's frame, and is the one of the command."""
    model = load(made["model"])
    assert isinstance(model, TableClassifier)
    frame = read_table(made["labeled"]).frame
    assert model.score(frame, frame["churned"].to_numpy(dtype=str)) > 0.9
    assert model.predict(frame.iloc[:1], sample_domain="C").shape == (1,)
    assert model.label_ == "churned"
    assert dict(model.schema_.kinds) == {
        "age": "number", "income": "number", "city": "text", "since": "date",
    }  # fmt: skip


def test_the_default_tries_all_and_says_what_it_chose(tmp_path):
    paths = write_tables(tmp_path)
    options = ["--label", "churned", "--model", "linear", "--ignore", "site,since"]
    options += ["--out", tmp_path / "m", "--json"]
    result = json.loads(succeed("adapt", paths["train"], paths["new"], *options))
    assert len(result["leaderboard"]) == 8  # every automatic adapter around one model
    assert sum(one["weight"] for one in result["chosen"]) == pytest.approx(1, abs=1e-3)
    assert result["decision"].startswith("Advice: ")
    assert result["assessment"]["plain_name"] == result["plain model"]
    assert "since" not in result["data"]["columns"]
    card = json.loads(succeed("show", tmp_path / "m", "--json"))
    assert card["leaderboard"] == result["leaderboard"]
    assert card["assessment"] == result["assessment"]
    assert card["software"]["scikit-learn"]
    assert card["date"]
    assert card["notes"] == result["notes"]


@pytest.mark.parametrize("name", ["ranks", "coral", "monge", "psf"])
def test_adapters_by_name_learn_a_new_site(made, tmp_path, name):
    columns = ["--label", "churned", "--adapter", name, "--ignore", "since"]
    succeed("adapt", made["train"], made["new"], *columns, "--out", tmp_path / "m")
    text = succeed("adapt", tmp_path / "m", made["later"], "--out", tmp_path / "m2")
    assert "Adapted to 120 rows of later.csv." in text
    card = json.loads(succeed("show", tmp_path / "m2", "--json"))
    assert [one["file"] for one in card["later targets"]] == ["later.csv"]
    succeed("monitor", tmp_path / "m2", made["later"])


@pytest.mark.parametrize("name", ["sa", "ulsif"])
def test_adapters_that_cannot_say_refit(made, tmp_path, name):
    columns = ["--label", "churned", "--adapter", name, "--ignore", "since"]
    succeed("adapt", made["train"], made["new"], *columns, "--out", tmp_path / "m")
    result = run("adapt", tmp_path / "m", made["later"], "--out", tmp_path / "m2")
    assert result.exit_code == 1
    assert "refit" in result.stderr
    assert os.listdir(tmp_path) == ["m"]


def test_no_adapter_says_that_it_learns_nothing_new(made, tmp_path):
    columns = ["--label", "churned", "--adapter", "none"]
    succeed("adapt", made["train"], made["new"], *columns, "--out", tmp_path / "m")
    text = succeed("adapt", tmp_path / "m", made["later"], "--out", tmp_path / "m2")
    assert "does not adapt" in text


def test_scores_per_class_and_domain(made):
    text = succeed("score", made["model"], made["labeled"], "--domain", "site")
    number = r"0\.\d{3} \(0\.\d{3} to [01]\.\d{3}\)"
    assert re.search(rf"^  the model +{number} +{number}$", text, flags=re.MULTILINE)
    assert re.search(rf"^  plain model +{number} +{number}$", text, flags=re.MULTILINE)
    assert re.search(r"^Gain over the plain model: \+0\.\d{3} accuracy", text, re.MULTILINE)
    assert re.search(r"^  C +120 ", text, flags=re.MULTILINE)
    assert re.search(r"^  yes +\d+ ", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "classes",
    [
        (0, 1),
        ("True", "False"),
        ("TRUE", "FALSE"),
        (-1, 7),
        ("0.5", "1.5"),
        ("0.50", "1.50"),
        ("1.0", "2.0"),
        ("1e-7", "2.5E-7"),
        ("0.12345678", "0.12345679"),
        ("1,000", "2,000"),
    ],
)
def test_classes_are_written_as_they_stood(classes, tmp_path):
    tables = make_tables()
    for name in ("train", "labeled"):
        tables[name]["churned"] = np.where(tables[name]["churned"] == "yes", *classes)
    paths = {name: tmp_path / f"{name}.csv" for name in tables}
    for name, frame in tables.items():
        frame.to_csv(paths[name], index=False)
    model, out = tmp_path / "m", tmp_path / "p.csv"
    succeed("adapt", paths["train"], paths["new"], "--label", "churned", *QUICK, "--out", model)
    succeed("predict", model, paths["labeled"], "--out", out)
    scores = json.loads(succeed("score", model, paths["labeled"], "--json"))
    assert scores["accuracy"]["value"] > 0.9
    assert {one["name"] for one in scores["classes"]} == set(classes)
    predicted = pd.read_csv(out, dtype=str)["prediction"]
    assert set(predicted) == {str(name) for name in classes}
    truth = tables["labeled"]["churned"].astype(str)
    assert (predicted == truth).mean() == scores["accuracy"]["value"]


@pytest.mark.parametrize(("n", "told"), [(12, "has only 12 rows"), (1, "has one row")])
def test_few_new_rows_are_said(n, told, tmp_path):
    paths = write_tables(tmp_path)
    make_tables()["new"].head(n).to_csv(paths["new"], index=False)
    options = ["--label", "churned", *QUICK, "--out", tmp_path / "m"]
    printed = succeed("adapt", paths["train"], paths["new"], *options)
    assert f"The new table {told}: too few to learn about the target." in printed


def test_columns_to_keep_are_repeated_as_they_are(made, tmp_path):
    frame = make_tables()["new"]
    frame["code"] = [f"{number:05d}" for number in range(len(frame))]
    frame['a "b", c'] = " x"
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    keep = ["--keep", 'code,"a ""b"", c"', "--keep", "age"]
    succeed("predict", made["model"], tmp_path / "new.csv", "--out", out, *keep)
    written = pd.read_csv(out, dtype=str)
    assert list(written) == ["code", 'a "b", c', "age", "prediction"]
    assert written["code"].tolist() == frame["code"].tolist()
    assert written["age"].astype(float).tolist() == frame["age"].tolist()


def test_domains_that_the_model_does_not_know_are_said(made, tmp_path):
    out = tmp_path / "out.csv"
    text = succeed("predict", made["model"], made["later"], "--domain", "site", "--out", out)
    assert "120 rows are of domains that the model does not know ('D')" in text


def test_json_is_plain_ascii_on_standard_output(made, tmp_path):
    out = tmp_path / "out.csv"
    for command in (
        ["predict", made["model"], made["new"], "--out", out],
        ["monitor", made["model"], made["new"]],
        ["show", made["model"]],
    ):
        text = succeed(*command, "--json")
        assert text.isascii()
        assert isinstance(json.loads(text), dict)


def test_completion_for_shells():
    assert "--install-completion" in succeed("--help")


def test_the_page_shows_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = run_page(PAGE)
    assert {command.split()[1] for command in commands} == {
        "diagnose", "adapt", "predict", "score", "monitor", "show",
    }  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("command", ["adapt", "predict"])
def test_killed_commands_leave_nothing(command, made, tmp_path):
    """kill -9 while the output is being written."""
    program = f"""
import os, sys, time
told = os.fdopen(os.dup(1), "w")  # standard output is silenced while a command works
import covshift.output_files as files
opened = files._open_unnamed
def open_slowly(folder):
    file = opened(folder)
    assert file is not None
    write = file.write
    class Slow:
        def __enter__(self): return self
        def __exit__(self, *error): file.close()
        def __getattr__(self, name): return getattr(file, name)
        def write(self, data):
            n = write(bytes(data)[: len(data) // 2 + 1])
            file.flush()
            print("half", file=told, flush=True)
            time.sleep(60)
            return n
    return Slow()
files._open_unnamed = open_slowly
from covshift.cli import build_app
build_app()({[command]!r} + sys.argv[1:])
"""
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without names")
    arguments = {
        "adapt": [made["train"], made["new"], "--label", "churned", *QUICK],
        "predict": [made["model"], made["new"]],
    }[command]
    out = tmp_path / "out.csv"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments), "--out", str(out)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "half\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert os.listdir(tmp_path) == []
