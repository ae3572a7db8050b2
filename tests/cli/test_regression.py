"""The commands on a numeric label: from two tables to predictions, scores and messages."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from covshift import estimate_performance, load
from covshift.tables import (
    TableError,
    TableRegressor,
    adapt_tables,
    choose_estimator,
    match_tables,
    read_pair,
    read_table,
)
from tests.cli.user_files import assert_refused, run, succeed

QUICK = ["--label", "price", "--task", "regression", "--adapter", "standardize"]


def flats(n_rows, city, moved, rng):
    """Flats of a city: larger where it has moved, at the same prices for its usual size."""
    size = rng.standard_normal(n_rows)
    age = rng.integers(0, 90, n_rows)
    price = 300_000 + 60_000 * size - 800 * age + rng.normal(0, 10_000, n_rows)
    return pd.DataFrame(
        {
            "area": (70 + 30 * moved + 15 * size).round(1),
            "age": age,
            "heating": rng.choice(["gas", "electric"], n_rows),
            "city": city,
            "price": price.round(-2),
        }
    )


def make_flats():
    rng = np.random.default_rng(0)
    train = [flats(80, "Bonn", 0, rng), flats(80, "Ulm", 0.2, rng)]
    return {
        "train": pd.concat(train, ignore_index=True),
        "new": flats(100, "Rome", 1, rng).drop(columns="price"),
        "labeled": flats(100, "Rome", 1, rng),
    }


TABLES = make_flats()


def in_euros(frame):
    return frame.assign(price=[f"€{value:,.0f}" for value in frame["price"]])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Prices written as people write them, and the model of a named adapter."""
    folder = tmp_path_factory.mktemp("flats")
    for name, frame in TABLES.items():
        shown = in_euros(frame) if "price" in frame else frame
        shown.to_csv(folder / f"{name}.csv", index=False)
    paths = {name: folder / f"{name}.csv" for name in TABLES} | {"model": folder / "m.skops"}
    paths["printed"] = succeed(
        "adapt", paths["train"], paths["new"], *QUICK, "--domain", "city", "--out", paths["model"]
    )
    return paths


def test_adapt_says_what_the_label_is_like(files):
    lines = files["printed"].splitlines()
    price = TABLES["train"]["price"]
    assert lines[1].startswith(f"Label price: {price.min():,.0f} to {price.max():,.0f}, median ")
    assert any("Read 'price' as numbers with the unit '€'" in line for line in lines)
    assert "Objective: R², the share of the label's variance that predictions explain." in lines
    assert any(
        line.startswith("The file also holds the plain model, ridge without") for line in lines
    )


def test_command_line_python_and_file_agree(files, tmp_path):
    options = {"label": "price", "domain": "city"}
    tables = read_pair(files["train"], files["new"], task="regression", **options)
    fitted = adapt_tables(tables, choose_estimator(tables, "standardize"))
    frames = match_tables(TABLES["train"], TABLES["new"], task="regression", **options)
    of_frames = adapt_tables(frames, choose_estimator(frames, "standardize"))
    loaded = load(files["model"])
    assert isinstance(loaded, TableRegressor)
    rows = read_table(files["new"]).frame
    expected = fitted.predict(rows)
    np.testing.assert_array_equal(loaded.predict(rows), expected)
    np.testing.assert_array_equal(of_frames.predict(TABLES["new"]), expected)
    for plain, model in ((False, loaded), (True, loaded.plain_)):
        out = tmp_path / f"{plain}.csv"
        options = ["--plain"] if plain else []
        succeed("predict", files["model"], files["new"], "--out", out, *options)
        written = pd.read_csv(out)["prediction"]
        np.testing.assert_array_equal(written, model.predict(rows, sample_domain="Rome"))


def test_predict_says_the_range_of_its_predictions(files, tmp_path):
    out = tmp_path / "p.csv"
    found = json.loads(succeed("predict", files["model"], files["new"], "--out", out, "--json"))
    written = pd.read_csv(out)["prediction"]
    assert found["values"]["smallest"] == written.min()
    assert found["values"]["largest"] == written.max()
    assert found["values"]["mean"] == pytest.approx(written.mean())
    plain = succeed("predict", files["model"], files["new"], "--plain", "--out", out)
    price = TABLES["train"]["price"]
    n_outside = (~pd.read_csv(out)["prediction"].between(price.min(), price.max())).sum()
    assert n_outside > 5
    assert f"{n_outside} of 100 predictions lie outside the range of the training labels" in plain


def test_score(files):
    scores = json.loads(succeed("score", files["model"], files["labeled"], "--json"))
    model, truth = load(files["model"]), TABLES["labeled"]["price"]
    for found, one in ((scores, model), (scores["plain"], model.plain_)):
        predicted = one.predict(TABLES["labeled"], sample_domain="Rome")
        assert found["r2"]["value"] == pytest.approx(r2_score(truth, predicted))
        assert found["mae"]["value"] == pytest.approx(mean_absolute_error(truth, predicted))
    assert scores["objective"] == "r2"
    assert scores["gain"]["low"] > 0
    assert not scores["hurt"]
    assert [one["name"] for one in scores["domains"]] == ["Rome"]
    lines = succeed("score", files["model"], files["labeled"]).splitlines()
    assert any("R²" in line and "mean absolute error" in line for line in lines)
    assert any(line.startswith("Gain over the plain model: +") for line in lines)


def test_show_and_monitor(files):
    shown = succeed("show", files["model"])
    assert "task: regression\n" in shown
    assert "classes" not in shown
    assert "Moved" in succeed("monitor", files["model"], files["train"], code=3)
    assert "Not moved" in succeed("monitor", files["model"], files["labeled"])


def test_a_later_target(files, tmp_path):
    rng = np.random.default_rng(5)
    later, out = tmp_path / "later.csv", tmp_path / "later.skops"
    truth = flats(100, "Oslo", 3, rng)
    truth.drop(columns="price").to_csv(later, index=False)
    succeed("adapt", files["model"], later, "--out", out)
    model = load(out)
    assert r2_score(truth["price"], model.predict(truth, sample_domain="Oslo")) > 0.8


def test_known_labels_of_new_rows(files, tmp_path):
    asked = pd.DataFrame({"row_to_label": [1, 2, 50], "price": ["€310,000", "", "250000"]})
    asked.to_csv(tmp_path / "asked.csv", index=False)
    out = tmp_path / "m.skops"
    options = [*QUICK, "--labels", tmp_path / "asked.csv", "--out", out, "--json"]
    card = json.loads(succeed("adapt", files["train"], files["new"], *options))
    assert card["data"]["new rows with a label"] == 2
    assert card["task"] == "regression"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--objective", "accuracy"], ["--objective accuracy is for classes", "r2 (default)"]),
        (["--objective", "mae"], ["--adapter standardize leaves no choice"]),
        (["--objective", "rmse"], ["Unknown objective 'rmse'. Choose r2 (default) or mae."]),
        (["--bins", "4"], ["use one of them"]),
        (["--model", "logistic"], ["'logistic' does not predict a number", "ridge, "]),
        (["--adapter", "psf"], ["psf cannot be used with --task regression", "by class"]),
        (["--estimator", "sklearn.svm.SVC"], ["SVC is not a regressor", "LGBMRegressor"]),
        (["--label", "heating"], ["holds text (first: 'electric', row 1)", "Leave --task out"]),
        (["--task", "ranking"], ["task must be one of", "'regression'"]),
    ],
)
def test_options_that_do_not_fit(files, tmp_path, options, words):
    command = ["adapt", files["train"], files["new"], *QUICK, "--out", tmp_path / "m.skops"]
    assert_refused(run(*command, *options), "adapt", *words)
    assert not (tmp_path / "m.skops").exists()


def test_options_of_a_regression_without_the_task(files, tmp_path):
    command = ["adapt", files["train"], files["new"], "--label", "price", "--out"]
    command += [tmp_path / "m.skops", "--adapter", "coral"]
    assert_refused(run(*command), "adapt", "is a number", "Use --task regression", "--bins 4")
    objective = run(*command, "--bins", "3", "--objective", "mae")
    assert_refused(objective, "adapt", "--objective mae is for a numeric label")
    svr = run(*command, "--bins", "3", "--estimator", "sklearn.svm.SVR")
    assert_refused(svr, "adapt", "SVR is not a classifier", "add --task regression")


def test_other_commands_on_a_model_of_numbers(files, tmp_path):
    out = tmp_path / "p.csv"
    refused = run("predict", files["model"], files["new"], "--proba", "--out", out)
    assert_refused(refused, "predict", "predicts numbers, which have no probabilities")
    refused = run("score", files["model"], files["new"])
    assert_refused(refused, "score", "has no column 'price'")


def write(tmp_path, train, new=None):
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    train.to_csv(paths[0], index=False)
    (TABLES["new"] if new is None else new).to_csv(paths[1], index=False)
    return [*paths, *QUICK, "--out", tmp_path / "m.skops"]


def test_odd_labels(tmp_path):
    train = TABLES["train"]
    refused = run("adapt", *write(tmp_path, train.assign(price=5)))
    assert_refused(refused, "adapt", "'price' is 5 in all rows that have one", "different numbers")
    refused = run("adapt", *write(tmp_path, train.assign(price=np.nan)))
    assert_refused(refused, "adapt", "No row of the training table has a label in 'price'")
    some = train["price"].where(np.arange(len(train)) > 20)
    printed = succeed("adapt", *write(tmp_path, train.assign(price=some)))
    assert "21 of 160 training rows have no label and are left out." in printed
    few = train.assign(price=np.arange(len(train)) % 3)
    assert "leave --task out" in succeed("adapt", *write(tmp_path, few))


def test_infinite_labels_of_a_frame():
    train = TABLES["train"].copy()
    train.loc[[3, 5], "price"] = [np.inf, -np.inf]
    train.loc[7, "price"] = np.nan
    options = {"label": "price", "task": "regression", "domain": "city"}
    matched = match_tables(train, TABLES["new"], **options)
    assert len(matched.y) == 157
    assert np.isfinite(matched.y).all()
    assert "The label 'price' is infinite in 2 rows: read as missing." in matched.notes
    assert "3 of 160 training rows have no label and are left out." in matched.notes
    with pytest.raises(TableError, match="holds true and false, and --task regression"):
        match_tables(train.assign(price=train["age"] > 40), TABLES["new"], **options)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(train["age"], "D")
    with pytest.raises(TableError, match="holds dates, and --task regression"):
        match_tables(train.assign(price=dates), TABLES["new"], **options)


def test_text_among_the_numbers():
    prices = [f"{value:g}" if value > 3e5 else "on request" for value in TABLES["train"]["price"]]
    n_numbers = sum(price != "on request" for price in prices)
    train = TABLES["train"].assign(price=prices)
    with pytest.raises(TableError, match=f"all but the {n_numbers} rows.*--as price=number"):
        match_tables(train, TABLES["new"], label="price", task="regression")


def test_the_automatic_choice(files, tmp_path):
    """The model that `auto` saves predicts the same in Python."""
    model, out = tmp_path / "auto.skops", tmp_path / "p.csv"
    command = ["adapt", files["train"], files["new"], "--label", "price", "--task", "regression"]
    command += ["--domain", "city", "--objective", "mae", "--out", model]
    card = json.loads(succeed(*command, "--json"))
    assert len(card["chosen"]) > 2
    assert card["objective"] == "mae"
    options = {"label": "price", "domain": "city", "task": "regression"}
    tables = read_pair(files["train"], files["new"], **options)
    fitted = adapt_tables(tables, choose_estimator(tables, objective="mae", n_jobs=1))
    succeed("predict", model, files["new"], "--out", out)
    expected = fitted.predict(TABLES["new"], sample_domain="Rome")
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected, rtol=1e-12)
    scores = json.loads(succeed("score", model, files["labeled"], "--json"))
    error, plain = scores["mae"]["value"], scores["plain"]["mae"]["value"]
    assert scores["gain"]["value"] == pytest.approx(plain - error)
    assert error < plain


def test_diagnose_and_what_follows(files, tmp_path):
    """The advice is what `adapt` builds; the report shows held-out source rows."""
    pair = [files["train"], files["new"], "--label", "price", "--task", "regression"]
    pair += ["--domain", "city"]
    report, scores, asked = (tmp_path / name for name in ("r.html", "s.npz", "l.csv"))
    options = ["--report", report, "--save-scores", scores, "--to-label", asked]
    found = json.loads(succeed("diagnose", *pair, *options, "--json"))
    assert "--task regression" in found["command"]
    assert found["objective"] == "r2"
    page = report.read_text()
    assert "Predicted against true on held-out source rows" in page
    assert "prediction less truth" in page
    labels = pd.read_csv(asked)
    assert len(labels) == 20
    assert labels["price"].isna().all()
    model = tmp_path / "m.skops"
    card = json.loads(succeed("adapt", *pair, "--from", scores, "--out", model, "--json"))
    assert card["assessment"] == found["assessment"]
    shown = succeed("show", model)
    assert "expected R² (90 % interval)" in shown
    assert "Expected mean absolute error, in units of the label: " in shown
    scored = json.loads(succeed("score", model, files["labeled"], "--json"))
    assert scored["expected"]["observed"] == scored["r2"]["value"]
    refused = run("diagnose", *pair, "--objective", "accuracy")
    assert_refused(refused, "diagnose", "--objective accuracy is for classes")


def test_a_column_that_gives_the_label_away():
    train = TABLES["train"]
    train = train.assign(tax=(0.035 * train["price"]).round(), floor=[-999, 2, 3, 4] * 40)
    new = TABLES["new"].assign(tax=train["tax"][:100], floor=train["floor"][:100])
    matched = match_tables(train, new, label="price", task="regression")
    (told,) = [note for note in matched.notes if "alone predicts the label" in note]
    assert "Column 'tax' alone predicts the label with R² 0.9" in told
    assert "--ignore tax" in told
    assert any("'floor' has 40 cells -999" in note for note in matched.notes)


def test_a_linear_model_behind_an_adapter_is_exported(files):
    reference = pytest.importorskip("onnx.reference")
    from covshift.interop.onnx import to_onnx

    model = load(files["model"])
    session = reference.ReferenceEvaluator(to_onnx(model.estimator_))
    Z = model.encode(TABLES["new"])
    (exported,) = session.run(None, {"X": Z.astype(np.float32)})
    np.testing.assert_allclose(exported, model.predict(TABLES["new"]), rtol=1e-4)


def test_monitor_compares_numbers_and_estimates_no_score(files, tmp_path):
    model, new = files["model"], files["new"]
    report = tmp_path / "monitor.html"
    shown = run("monitor", model, new, "--level", 0.0001, "--report", report)
    assert shown.exit_code in (0, 3), shown.output
    assert "with 100 rows kept in the model" in shown.output
    assert "only scores of classifiers are estimated" in " ".join(shown.output.split())
    assert "ccuracy" not in shown.output
    assert "ccuracy" not in report.read_text()
    refused = run("monitor", model, new, "--alert", 0.8)
    assert_refused(refused, "monitor", "--alert needs an expected score", "predicts numbers")
    refused = run("monitor", model, files["labeled"], "--labels", files["labeled"])
    assert_refused(refused, "monitor", "--labels is for classifiers", "covshift score")
    refused = run("label", model, new, "--out", tmp_path / "labels.csv")
    assert_refused(refused, "label", "predicts numbers", "diagnose --to-label")
    with pytest.raises(TypeError, match="takes a fitted AdaptedClassifier"):
        estimate_performance(load(model), TABLES["new"])


def test_three_rows(tmp_path):
    three = TABLES["train"].head(3)
    printed = succeed("adapt", *write(tmp_path, three, TABLES["new"].head(3)))
    assert "The new table has only 3 rows: too few to learn about the target." in printed
    scores = json.loads(succeed("score", tmp_path / "m.skops", tmp_path / "train.csv", "--json"))
    assert scores["n_rows"] == 3


def test_scores_of_one_row_and_of_equal_labels(files, tmp_path):
    one, same = tmp_path / "one.csv", tmp_path / "same.csv"
    TABLES["labeled"].head(1).to_csv(one, index=False)
    TABLES["labeled"].assign(price=3e5).to_csv(same, index=False)
    for path in (one, same):
        printed = succeed("score", files["model"], path)
        assert "All labels are the same number: R² is undefined." in printed
        assert "undefined" in printed.splitlines()[4]
