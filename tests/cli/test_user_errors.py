"""Errors in users' files: one line, an exit code, and no output."""

import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, DomainStandardScaler, save, stack_domains
from covshift.cli import terminal
from covshift.datasets import make_smooth_shift
from covshift.persistence import load
from tests.cli.user_files import assert_refused, make_tables, run, succeed, write_tables

QUICK = ["--label", "churned", "--adapter", "standardise"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    paths = write_tables(folder)
    paths["model"] = folder / "model.skops"
    succeed("adapt", paths["train"], paths["new"], *QUICK, "--out", paths["model"])
    return paths


def adapt(paths, out, *options):
    return run("adapt", paths["train"], paths["new"], "--out", out, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "chruned"], ["no column 'chruned'", "is it 'churned'?"]),
        (["--label", "churned", "--domain", "sitte"], ["is it 'site'?"]),
        (["--label", "churned", "--ignore", "age,cty"], ["is it 'city'?"]),
        (["--label", "churned", "--use", "customer"], ["is it 'customer_id'?"]),
        ([], ["--label COL is needed"]),
        (["--label", "churned", "--domain", "churned"], ["not two of them"]),
        (
            ["--label", "age"],
            ["The label 'age' is a number", "not a class", "--task regression", "--bins 4"],
        ),
        (
            [*QUICK, "--adapter", "magic"],
            ["Unknown adapter 'magic'. Choose from: none, standardize,"],
        ),
        ([*QUICK, "--model", "deep"], ["Unknown model 'deep'. Choose from: logistic, "]),
        ([*QUICK, "--reference-rows", "-1"], ["--reference-rows"]),
        ([*QUICK, "--decimal", ";"], ["decimal must be one of"]),
        ([*QUICK, "--separator", ";;"], ["separator must be one character"]),
        (["--label", "churned", "--jobs", "0", "--model", "linear"], ["--jobs"]),
        (["--label", "churned", "--seed", "-1", "--model", "linear"], ["--seed"]),
    ],
)
def test_adapt_says_what_to_do(made, tmp_path, options, words):
    assert_refused(adapt(made, tmp_path / "m", *options), "adapt", *words)
    assert os.listdir(tmp_path) == []


def test_model_files_and_tables_are_told_apart(made, tmp_path):
    out = ["--out", tmp_path / "m"]
    result = run("adapt", made["model"], made["new"], *out, "--label", "churned")
    assert_refused(result, "adapt", "is a model file: --label is for a training table")
    assert_refused(run("adapt", made["new"], made["model"], *out, *QUICK), "adapt", "churned")
    assert_refused(run("adapt", made["train"], made["model"], *out, *QUICK), "adapt", "model.skops")
    for command in (["predict", made["train"], made["new"], "--out", tmp_path / "p.csv"],
                    ["score", made["train"], made["new"]],
                    ["monitor", made["train"], made["new"]],
                    ["show", made["train"]]):  # fmt: skip
        assert_refused(run(*command), command[0], "train.csv")
    assert os.listdir(tmp_path) == []


def test_models_of_arrays_are_for_python(made, tmp_path):
    data = make_smooth_shift(random_state=0)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    save(model, tmp_path / "array.skops")
    for command in (["predict", "--out", tmp_path / "p.csv"], ["score"], ["monitor"]):
        name, *options = command
        result = run(
            name,
            tmp_path / "array.skops",
            made["labeled"],
            *options,
        )
        assert_refused(result, name)
    assert "covshift.AdaptedClassifier" in succeed("show", tmp_path / "array.skops")
    assert os.listdir(tmp_path) == ["array.skops"]


@pytest.mark.parametrize("name", ["absent.csv", ".", "empty.csv"])
def test_files_that_are_no_tables(made, tmp_path, name):
    (tmp_path / "empty.csv").touch()
    path = tmp_path / name
    for command in (
        ["adapt", path, made["new"], *QUICK, "--out", tmp_path / "m"],
        ["adapt", made["train"], path, *QUICK, "--out", tmp_path / "m"],
        ["adapt", made["model"], path, "--out", tmp_path / "m"],
        ["predict", made["model"], path, "--out", tmp_path / "p.csv"],
        ["score", made["model"], path],
        ["monitor", made["model"], path],
    ):
        assert_refused(run(*command), command[0])
    for command in (["show", path], ["monitor", path, made["new"]]):
        assert_refused(run(*command), command[0])
    assert os.listdir(tmp_path) == ["empty.csv"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keep", "customer"], ["no column 'customer'", "is it 'customer_id'?"]),
        (["--domain", "sit"], ["is it 'site'?"]),
        (["--out", "p.xlsx"], ["ends in one of .csv"]),
    ],
)
def test_predict_says_what_to_do(made, tmp_path, options, words):
    out = ["--out", tmp_path / "p.csv"]
    result = run("predict", made["model"], made["new"], *out, *options)
    assert_refused(result, "predict", *words)
    assert os.listdir(tmp_path) == []


def test_columns_of_the_model_that_a_file_lacks(made, tmp_path):
    frame = make_tables()["new"].rename(columns={"income": "incomes"})
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", made["model"], tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert_refused(result, "predict", "no column 'income'; is it 'incomes'?")


def test_no_probabilities(made, tmp_path):
    model = tmp_path / "m"
    succeed("adapt", made["train"], made["new"], *QUICK, "--model", "rbf", "--out", model)
    result = run("predict", model, made["new"], "--proba", "--out", tmp_path / "p.csv")
    assert_refused(result, "predict", "has no probabilities")


def test_monitor_needs_rows_to_compare(made, tmp_path):
    few = tmp_path / "few.csv"
    make_tables()["new"].head(5).to_csv(few, index=False)
    assert_refused(run("monitor", made["model"], few), "monitor", "5 rows, and 120 kept")
    model = tmp_path / "m"
    options = ["--reference-rows", "0", "--out", model]
    succeed("adapt", made["train"], made["new"], *QUICK, *options)
    assert_refused(run("monitor", model, made["new"]), "monitor", "keeps no rows")
    for level in (0, 1, "nan"):
        result = run("monitor", made["model"], made["new"], "--level", level)
        assert_refused(result, "monitor", "level")


def test_score_leaves_out_rows_without_labels(made, tmp_path):
    frame = make_tables()["labeled"]
    frame.loc[:9, "churned"] = None
    frame.loc[10, "churned"] = "perhaps"
    frame.to_csv(tmp_path / "some.csv", index=False)
    scores = json.loads(succeed("score", made["model"], tmp_path / "some.csv", "--json"))
    assert scores["n_rows"] == 110
    assert scores["notes"] == [
        "Column 'site': all 120 rows have values that no training row has ('C'); they have no "
        "effect there.",
        "10 rows have no label and are left out.",
        "Classes that the model has never seen count as errors: 'perhaps'.",
    ]
    frame["churned"] = None
    frame.to_csv(tmp_path / "none.csv", index=False)
    assert_refused(
        run("score", made["model"], tmp_path / "none.csv"), "score", "no row has a label"
    )
    result = run("score", made["model"], made["labeled"], "--label", "age")
    assert_refused(result, "score", "predicts from")


# Outputs


def test_outputs_that_cannot_be_are_found_first(made, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("work was done")

    for target in ("file_pairs.read_pair", "predicting.predict_file"):
        monkeypatch.setattr(f"covshift.tables.{target}", never)
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    bad = {
        tmp_path / "folder.csv": "is a folder",
        tmp_path / "file" / "out.csv": "cannot be written",
        made["new"]: "is read too",
        "/proc/none/x.csv": "",
    }
    for out, words in bad.items():
        assert_refused(adapt(made, out, *QUICK), "adapt", words)
        result = run("predict", made["model"], made["new"], "--out", out)
        assert_refused(result, "predict", words)
    assert_refused(adapt(made, "/dev/null", *QUICK), "adapt", "is not an ordinary file")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(1000))
    assert_refused(adapt(made, tmp_path / "m", *QUICK), "adapt", "0 MB are free")
    result = run("predict", made["model"], made["new"], "--out", tmp_path / "p.csv")
    assert_refused(result, "predict", "0 MB are free")

    def read_only(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)  # root may write anywhere
    assert_refused(adapt(made, tmp_path / "m", *QUICK), "adapt", "check the folder's permissions")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["adapt", "predict"])
def test_a_disk_that_fills_up(made, tmp_path, monkeypatch, command):
    full = Path("/dev/full")
    monkeypatch.setattr("covshift.output_files._open_unnamed", lambda _: full.open("wb"))
    out = tmp_path / "out.csv"
    out.write_text("old")
    first = [made["train"], made["new"], *QUICK]
    arguments = first if command == "adapt" else [made["model"], made["new"]]
    assert_refused(run(command, *arguments, "--out", out), command, "No space left on device")
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


# How errors are shown


def test_debug_shows_the_traceback(made, tmp_path):
    result = adapt(made, tmp_path / "m", "--label", "chruned", "--debug")
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "TableError"


def test_arguments_that_make_no_command(made):
    assert run("predict", made["model"]).exit_code == 2
    assert run("adapt", made["train"], made["new"], "--label", "churned").exit_code == 2


def test_interruptions(made, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("covshift.tables.predicting.predict_file", stop)
    result = run("predict", made["model"], made["new"], "--out", tmp_path / "p.csv")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: nothing was written.\n"


def test_errors_of_the_program_are_one_line_too(made, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division\nby \x1b[31mzero")

    monkeypatch.setattr("covshift.tables.scoring.score_file", broken)
    result = run("score", made["model"], made["labeled"])
    assert_refused(result, "score", "division by", "--debug shows where")
    monkeypatch.setattr("covshift.tables.scoring.score_file", lambda *_, **__: [][MemoryError()])
    assert_refused(run("score", made["model"], made["labeled"]), "score")


def test_memory_and_modules():
    assert "fewer rows" in terminal._message(MemoryError())
    assert terminal._message(ImportError("no skops")) == "no skops"
    denied = OSError(13, "Permission denied", "a.csv")
    assert terminal._message(denied) == "a.csv: Permission denied."


@pytest.mark.parametrize("module", ["pandas", "skops"])
def test_an_extra_that_is_missing_is_named(made, tmp_path, module):
    program = (
        f"import sys; sys.modules[{module!r}] = None; from covshift.cli import main; "
        f"sys.argv[0] = 'covshift'; main()"
    )
    arguments = ["adapt", made["train"], made["new"], *QUICK, "--out", tmp_path / "m"]
    shown = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True
    )
    assert shown.returncode == 1
    assert 'pip install "covshift[' in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


# Hostile input

HOSTILE = ["=cmd|' /C calc'!A1", "<script>alert(1)</script>", "[bold red]x[/]", "\x1b[31mred"]


def test_cells_and_classes_that_are_formulas_or_markup(tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 120
    label = np.array(HOSTILE)[rng.integers(3, size=n_rows)]
    frame = pd.DataFrame(
        {
            "=name()": rng.normal(size=n_rows) + (label == HOSTILE[0]),
            "[red]text[/red]": np.array(HOSTILE)[rng.integers(4, size=n_rows)],
            "@site": np.array(HOSTILE)[rng.integers(4, size=n_rows)],
            "class": label,
        }
    )
    train, new = tmp_path / "train.csv", tmp_path / "new [b].csv"
    frame.to_csv(train, index=False)
    frame.drop(columns="class").to_csv(new, index=False)
    model, out = tmp_path / "m", tmp_path / "[i]p.csv"
    shown = succeed(
        "adapt", train, new, "--label", "class", "--domain", "@site", "--adapter", "standardise",
        "--out", model,
    )  # fmt: skip
    shown += succeed(
        "predict", model, new, "--out", out, "--proba", "--domain", "@site", "--keep", "@site",
    )  # fmt: skip
    shown += succeed("score", model, train, "--domain", "@site")
    shown += run("monitor", model, new).output
    shown += succeed("show", model)
    assert HOSTILE[1] in shown
    assert HOSTILE[2] in shown  # no markup
    assert "\x1b" not in shown
    header, *lines = out.read_text(encoding="utf-8").splitlines()
    assert header.startswith('"\'@site","prediction","probability of ')
    cells = [cell for line in lines for cell in line.split('","')]
    assert not any(cell.lstrip('"').startswith(("=", "@", "+")) for cell in cells)
    assert "'=cmd|" in "".join(lines)
    assert load(model).classes_.tolist() == sorted(HOSTILE[:3])
    text = succeed("show", model, "--json")
    assert text.isascii()


def test_a_card_of_anything_is_shown(tmp_path):
    data = make_smooth_shift(random_state=0)
    model = AdaptedClassifier().fit(data.X_source, data.y_source)
    deep = {}
    for _ in range(50):
        deep = {"\x1b]0;title\x07": [deep, None, 1e300, {"a": [1, {"b": 2}]}]}
    card = {"deep": deep, "many": list(range(10**4)), "rows": [{"a": 1}, {"a": None}], "": True}
    save(model, tmp_path / "m", card=card)
    text = succeed("show", tmp_path / "m")
    assert text.replace("\n", "").isprintable()
    assert len(text) < 20_000
