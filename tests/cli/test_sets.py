"""``covshift predict --sets`` and ``covshift adapt --keep-no-rows``."""

import csv
import json

import numpy as np
import pytest

from covshift import estimate_performance, load
from tests.cli.user_files import assert_refused, run, succeed


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two tables with a class that a comma cannot separate."""
    folder, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    for name, n in (("train", 200), ("new", 120)):
        a = rng.normal(size=n)
        label = np.where(a + rng.normal(size=n) > 0, 'yes, "sure"', "no")
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "label"] if name == "train" else ["a", "b"])
            for one in zip(a, rng.normal(size=n), label, strict=True):
                writer.writerow(one if name == "train" else one[:2])
    for options in ((), ("--keep-no-rows",)):
        out = folder / f"model{len(options)}.skops"
        succeed(
            "adapt", folder / "train.csv", folder / "new.csv", "--label", "label", "--adapter",
            "none", "--out", out, *options,
        )  # fmt: skip
    return folder


def test_sets_are_written_as_lists_and_the_promise_is_printed(tables, tmp_path):
    out = tmp_path / "predictions.csv"
    printed = succeed("predict", tables / "model0.skops", tables / "new.csv", "--sets", ".1",
                      "--out", out)  # fmt: skip
    assert "coverage of 90 % is promised (method: exchangeable)" in printed
    with out.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    sets = [json.loads(row["prediction set"]) for row in rows]
    assert len(sets) == 120
    assert {one for each in sets for one in each} == {"no", 'yes, "sure"'}
    model = load(tables / "model0.skops")
    assert 0 < estimate_performance(model, _frame(tables / "new.csv")).value < 1


def test_a_model_without_rows_says_so(tables, tmp_path):
    result = run("predict", tables / "model1.skops", tables / "new.csv", "--sets", ".1",
                 "--out", tmp_path / "p.csv")  # fmt: skip
    assert_refused(result, "predict", "This model keeps no held-out rows")
    assert load(tables / "model1.skops").held_out_ is None


def test_alpha_is_a_share(tables, tmp_path):
    result = run("predict", tables / "model0.skops", tables / "new.csv", "--sets", "2",
                 "--out", tmp_path / "p.csv")  # fmt: skip
    assert_refused(result, "predict", "--sets is a probability between 0 and 1; got 2")


def test_intervals_of_numbers_are_written_as_two_columns(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "new"):
        X = rng.normal(size=(160, 2))
        y = 100 + 10 * X[:, 0] + rng.normal(size=160)
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "price"])
            writer.writerows(np.column_stack([X, y]).tolist())
    succeed("adapt", tmp_path / "train.csv", tmp_path / "new.csv", "--label", "price", "--task",
            "regression", "--adapter", "none", "--out", tmp_path / "model.skops")  # fmt: skip
    out = tmp_path / "p.csv"
    printed = succeed("predict", tmp_path / "model.skops", tmp_path / "new.csv", "--sets", ".1",
                      "--keep", "price", "--out", out)  # fmt: skip
    assert "Intervals: coverage of 90 % is promised (method: exchangeable)" in printed
    assert "Mean width of an interval: " in printed
    with out.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    low, high, truth = (
        np.array([float(row[name]) for row in rows])
        for name in ("prediction low", "prediction high", "price")
    )
    assert abs(np.mean((low <= truth) & (truth <= high)) - 0.9) < 0.07
    found = json.loads(
        succeed("predict", tmp_path / "model.skops", tmp_path / "new.csv", "--sets", ".1",
                "--json", "--out", tmp_path / "q.csv")
    )["sets"]  # fmt: skip
    assert found["mean width"] == pytest.approx(np.mean(high - low))
    assert found["infinite"] == 0
    assert_refused(
        run("predict", tmp_path / "model.skops", tmp_path / "new.csv", "--sets", "2",
            "--out", tmp_path / "r.csv"),
        "predict", "--sets is a probability between 0 and 1; got 2",
    )  # fmt: skip


def _frame(path):
    import pandas as pd

    return pd.read_csv(path)
