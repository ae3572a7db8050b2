"""Files and arguments that somebody mistook: what the commands say to do."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.user_files import assert_refused, run, succeed, write_tables


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with tables as pandas writes them, and a model."""
    folder = tmp_path_factory.mktemp("made")
    paths = write_tables(folder)
    paths["model"] = folder / "model.skops"
    options = ["--label", "churned", "--adapter", "standardise", "--out", paths["model"]]
    succeed("adapt", paths["train"], paths["new"], *options)
    return paths


def predict(made, path, *options):
    return run("predict", made["model"], path, "--out", path.parent / "out.csv", *options)


def test_another_separator_is_asked_for(made, tmp_path):
    path = tmp_path / "new.txt"
    pd.read_csv(made["new"]).to_csv(path, sep="#", index=False)
    words = ["none of the columns", "'age', 'income'", "customer_id#age", "--separator"]
    assert_refused(predict(made, path), "predict", *words)
    assert predict(made, path, "--separator", "#").exit_code == 0


@pytest.mark.parametrize("written", ["tab", "\\t", "\t"])
def test_a_tab_can_be_written_as_a_word(made, tmp_path, written):
    path = tmp_path / "new.txt"
    pd.read_csv(made["new"]).to_csv(path, sep="\t", index=False)
    assert predict(made, path, "--separator", written).exit_code == 0


def test_standard_input_is_said_not_to_be_read(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(predict(made, Path("-")), "predict", "standard input is not read")


def test_model_and_table_in_each_others_place(made, tmp_path):
    out = ["--out", tmp_path / "out.csv"]
    refused = run("predict", made["new"], made["new"], *out)
    assert_refused(refused, "predict", "not a model file", "covshift adapt")
    refused = run("predict", made["model"], made["model"], *out)
    assert_refused(refused, "predict", "is a model file; name a table")


@pytest.mark.parametrize("cell", ["", "inf", "unknown"])
def test_a_column_without_any_value_is_said(made, tmp_path, cell):
    path = tmp_path / "new.csv"
    pd.read_csv(made["new"]).assign(income=cell).to_csv(path, index=False)
    result = predict(made, path)
    assert result.exit_code == 0
    assert "No row has a value in 'income', which the model reads" in result.stdout
    assert "No row has" not in predict(made, made["labeled"]).stdout


def test_numbers_too_large_name_their_column(made, tmp_path):
    path = tmp_path / "new.csv"
    pd.read_csv(made["new"]).assign(income=1e150).to_csv(path, index=False)
    assert_refused(predict(made, path), "predict", "Column 'income'", "power of ten")
    options = ["--label", "churned", "--out", tmp_path / "model.skops"]
    refused = run("adapt", made["train"], path, *options)
    assert_refused(refused, "adapt", "Column 'income'", "up to 1.0e+150 (row 1)", "--ignore income")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_standard_output_that_is_full(made, tmp_path):
    program = "from covshift.cli import main; main()"
    arguments = ["predict", made["model"], made["new"], "--out", tmp_path / "out.csv"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program, *arguments], stdout=full, stderr=subprocess.PIPE
        )
    assert ended.returncode == 1
    assert ended.stderr.decode().startswith("covshift: cannot print the result: No space left")
    assert b"Traceback" not in ended.stderr
