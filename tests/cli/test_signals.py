"""The commands on recordings: from a table of files to predictions of windows and recordings."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covshift.cli.command_words import say_rows_to_label
from covshift.cli.commands.diagnose import _adapt_command
from tests.cli.user_files import assert_refused, run, succeed

RATE, WINDOW, N_WINDOWS = 2000, 64, 40
COLUMNS = ["--label", "fault", "--domain", "load", "--rate", RATE, "--window", WINDOW]


def write_machine(folder, loads, labels=("inner", "outer"), seed=0, noise=0.5):
    """Recordings that ring at a frequency of their fault, louder with the load."""
    rng, t = np.random.default_rng(seed), np.arange(N_WINDOWS * WINDOW) / RATE
    rows = []
    for load in loads:
        for label in labels:
            ringing = np.sin(2 * np.pi * {"inner": 250, "outer": 500}[label] * t)
            samples = (1 + 2 * load) * (ringing + rng.normal(0, noise, len(t)))
            np.save(folder / f"{label}_{load}.npy", samples)
            rows.append(f"{label}_{load}.npy,{label},{load},{1797 - 20 * load}")
    path = folder / f"load_{'_'.join(map(str, loads))}.csv"
    path.write_text("\n".join(["file,fault,load,rpm", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with recordings of three loads, and a model for the last one."""
    folder = tmp_path_factory.mktemp("made")
    paths = {"all": write_machine(folder, (0, 1, 2)), "later": write_machine(folder, (5,), seed=1)}
    paths["model"] = folder / "model.skops"
    # As in the documents: the table stands after --signals.
    text = succeed(
        "adapt", "--signals", paths["all"], *COLUMNS, "--target-domain", "2", "--adapter",
        "standardize", "--reference-rows", "1000", "--out", paths["model"],
    )  # fmt: skip
    assert "known only after the outcome" not in text  # a frequency is measured before
    assert "Training rows: 160; new rows: 80; columns to learn from: 32, as 32 features." in text
    return paths


def test_predictions_of_windows_and_recordings(made, tmp_path):
    out, each = tmp_path / "windows.csv", tmp_path / "recordings.csv"
    text = succeed(
        "predict", made["model"], made["all"], "--signals", "--rate", RATE, "--out", out,
        "--by-recording", each, "--proba", "--keep", "rpm",
    )  # fmt: skip
    assert f"Predictions of whole recordings: {each}" in text
    windows, recordings = pd.read_csv(out), pd.read_csv(each)
    assert list(windows)[:4] == ["file", "start", "rpm", "prediction"]
    assert windows["start"].tolist() == [WINDOW * k for k in range(N_WINDOWS)] * 6
    assert recordings["recording"].tolist() == windows["file"].unique().tolist()
    assert recordings["windows"].tolist() == [N_WINDOWS] * 6
    truth = [name.partition("_")[0] for name in recordings["recording"]]
    assert recordings["prediction"].tolist() == truth
    for row in recordings.to_dict("records"):
        own = windows[windows["file"] == row["recording"]]
        assert row["share"] == (own["prediction"] == row["prediction"]).mean()
        mean = own["probability of inner"].mean()
        assert row["probability of inner"] == pytest.approx(mean)
    # The model knows that it reads recordings, and of which windows.
    result = json.loads(succeed("predict", made["model"], made["all"], "--out", out, "--json"))
    assert [one["prediction"] for one in result["recordings"]] == truth
    assert result["rows"] == 6 * N_WINDOWS
    scores = json.loads(succeed("score", made["model"], made["all"], "--json"))
    right = windows["prediction"] == windows["file"].str.partition("_")[0]
    assert scores["accuracy"]["value"] == right.mean()
    assert "the intervals are too narrow" in scores["notes"][-1]


def test_monitor_says_which_recordings_lie_outside(made, tmp_path):
    out = tmp_path / "windows.csv"
    found = json.loads(
        succeed("monitor", made["model"], made["later"], "--json", "--out", out, code=3)
    )
    assert found["moved"]
    assert [one["outside"] for one in found["recordings"]] == [1.0, 1.0]
    windows = pd.read_csv(out)
    assert list(windows) == ["file", "start", "distance", "outside"]
    assert windows["outside"].equals(windows["distance"] > 1)
    text = succeed("monitor", made["model"], made["all"], code=3)
    assert "inner_0.npy" in text
    usual = write_machine(tmp_path, (2,), seed=2)
    found = json.loads(succeed("monitor", made["model"], usual, "--json"))
    assert not found["moved"]
    assert max(one["outside"] for one in found["recordings"]) < 0.2


def test_a_model_learns_another_load(made, tmp_path):
    later, out = tmp_path / "later.skops", tmp_path / "windows.csv"
    text = succeed("adapt", made["model"], made["later"], "--out", later)
    assert "Adapted to 80 rows of load_5.csv (domain 5)." in text
    result = json.loads(succeed("predict", later, made["later"], "--out", out, "--json"))
    assert [one["prediction"] for one in result["recordings"]] == ["inner", "outer"]


def test_diagnosis_names_windows_to_label(tmp_path):
    table, to_label = write_machine(tmp_path, (0, 1, 2), noise=4.0), tmp_path / "label.csv"
    options = [*COLUMNS, "--target-domain", "2", "--ask", "3", "--to-label", to_label]
    found = json.loads(succeed("diagnose", "--signals", table, *options, "--json"))
    asked = pd.read_csv(to_label)
    assert list(asked) == ["row_to_label", "fault", "file", "start"]
    places = [(one["recording"], one["start"]) for one in found["windows to label"]]
    assert places == list(zip(asked["file"], asked["start"], strict=True))
    assert all(name.endswith("_2.npy") for name, _ in places)
    assert asked["row_to_label"].tolist() == found["rows to label"]


def test_a_number_is_predicted_from_recordings(made, tmp_path):
    """Cells of the table of recordings are text, and the label is a number all the same."""
    table = pd.read_csv(made["all"])
    table["life"] = np.where(table["fault"] == "inner", 100, 400) + 10 * table["load"]
    path, model = made["all"].with_name("life.csv"), tmp_path / "life.skops"
    table.to_csv(path, index=False)
    shared = ["--signals", path, "--label", "life", *COLUMNS[2:], "--ignore", "fault"]
    shared += ["--target-domain", "2", "--adapter", "standardize"]
    text = succeed("adapt", *shared, "--task", "regression", "--out", model)
    assert "Label life: 100 to 410" in text
    result = json.loads(
        succeed("predict", model, path, "--out", tmp_path / "each.csv", "--json", "--quiet")
    )
    for one, truth in zip(result["recordings"], table["life"], strict=True):
        assert abs(one["prediction"] - truth) < 150  # of 300 between the two faults
        assert one["spread"] >= 0
    scores = json.loads(succeed("score", model, path, "--json"))
    assert scores["r2"]["value"] > 0.8
    text = succeed("adapt", *shared, "--bins", "2", "--out", tmp_path / "ranges.skops")
    assert "Rows of each class" in text
    named = [one if one != "life" else "fault" for one in shared[:-6]] + shared[-4:]
    assert_refused(
        run("adapt", *named, "--task", "regression", "--out", tmp_path / "no.skops"),
        "adapt", "holds text",
    )  # fmt: skip


def test_a_diagnosis_names_windows_by_recording():
    places = [{"recording": "a.npy", "start": 1200}, {"recording": "b.npy", "start": 0}]
    places.append({"recording": "a.npy", "start": 2400})
    assert say_rows_to_label("new.csv", [2, 5, 3], places) == (
        "Windows to label, by recording and first sample: a.npy at 1,200 and 2,400; b.npy at 0"
    )
    assert (
        say_rows_to_label("new.csv", [2, 5], [])
        == "Rows of new.csv to label (1 is the first row of data): 2, 5"
    )
    command = _adapt_command((Path("r.csv"), None), {"rate": 12000.0, "overlap": 0.5})
    assert "--rate 12000 --overlap 0.5" in command


def test_options_that_do_not_fit(made, tmp_path):
    out = tmp_path / "model.skops"
    split = ["--target-domain", "2", "--out", out]
    plain = ["adapt", made["all"], "--label", "fault", "--domain", "load", *split]
    assert_refused(run(*plain, "--window", 64), "adapt", "--window needs --signals")
    assert_refused(run(*plain, "--signals"), "adapt", "--signals needs --window SAMPLES")
    assert_refused(
        run(*plain, "--signals", "--window", 64, "--features", "wavelets"), "adapt", "--features"
    )
    predict = ["predict", made["model"], made["all"], "--out", tmp_path / "p.csv"]
    assert_refused(run(*predict, "--window", 32), "predict", "--window 32 differs", "64")
    tables = tmp_path / "plain.csv"
    pd.DataFrame(
        {"a": np.arange(40.0) % 7, "fault": ["x", "y"] * 20, "load": ["0"] * 20 + ["1"] * 20}
    ).to_csv(tables, index=False)
    other = tmp_path / "plain.skops"
    succeed(
        "adapt", tables, "--label", "fault", "--domain", "load", "--target-domain", "1",
        "--adapter", "standardize", "--out", other,
    )  # fmt: skip
    predict = ["predict", other, tables, "--out", tmp_path / "p.csv"]
    assert_refused(run(*predict, "--signals"), "predict", "was not made with --signals")
    needs = "needs a model of recordings"
    assert_refused(run(*predict, "--by-recording", tmp_path / "r.csv"), "predict", needs)
    assert_refused(run("monitor", other, tables, "--out", tmp_path / "p.csv"), "monitor", needs)
    assert not out.exists()
