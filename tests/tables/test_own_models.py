"""Models by import path: which are taken, which parameters, and which are refused before a fit."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from covshift import load
from covshift.tables import TableError
from covshift.tables.own_models import check_own_model, make_own_model, with_any_labels
from tests.cli.user_files import assert_refused, run, succeed, write_tables

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.array(["a", "b", "c"])[np.arange(90) % 3]
FOREST = "sklearn.ensemble.RandomForestClassifier"


def test_parameters_and_what_stands_in_for_them():
    model = make_own_model(FOREST, '{"n_estimators": 5, "max_depth": null}', seed=3, n_jobs=2)
    assert (model.n_estimators, model.random_state, model.n_jobs) == (5, 3, 2)
    assert make_own_model(FOREST, '{"random_state": 1}', seed=3).random_state == 1
    assert make_own_model("sklearn.naive_bayes.GaussianNB", seed=3).get_params()["priors"] is None


@pytest.mark.parametrize(
    "path",
    ["os.system", "subprocess.Popen", "covshift.AdaptedClassifier", "RandomForestClassifier", "",
     "sklearn", "sklearn.ensemble._forest.RandomForestClassifier", "sklearn.svm.__doc__",
     "lightgbm.Booster", "lightgbm.sklearn.LGBMClassifier", "sklearn.ensemble.a b", "this.that"],
)  # fmt: skip
def test_others_are_refused_and_not_imported(path):
    before = set(sys.modules)
    with pytest.raises(TableError, match=r"--estimator takes\. It takes lightgbm"):
        make_own_model(path)
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("sklearn.ensemble.NoSuchForest", None, "scikit-learn has no model 'sklearn.ens"),
        ("sklearn.nothing.NoSuchForest", None, "scikit-learn has no model 'sklearn.not"),
        ("sklearn.metrics.accuracy_score", None, "scikit-learn has no model"),
        ("sklearn.linear_model.Ridge", None, "Ridge is not a classifier, which this label needs. "),
        (FOREST, "{n: 5}", "--estimator-params is not JSON .*in single quotes"),
        (FOREST, "[5]", "must be a JSON object, for example"),
        (FOREST, '{"n_estimator": 5}', "has no parameter 'n_estimator'; is it 'n_estimators'?"),
        (FOREST, '{"xyz": 5}', "has no parameter 'xyz'; it has 'bootstrap', "),
        ("sklearn.ensemble.VotingClassifier", None, "VotingClassifier cannot be made: "),
    ],
)
def test_messages(path, parameters, message):
    with pytest.raises(TableError, match=message):
        make_own_model(path, parameters)


@pytest.mark.parametrize("name", ["lightgbm.LGBMClassifier", "xgboost.XGBClassifier"])
def test_other_libraries(name, monkeypatch):
    library = name.partition(".")[0]
    pytest.importorskip(library)
    model = make_own_model(name, '{"n_estimators": 2, "max_bin": 63}', seed=3, n_jobs=1)
    assert (model.n_estimators, model.random_state) == (2, 3)
    check_own_model(with_any_labels(model), X, Y)
    with pytest.raises(TableError, match="no parameter 'n_estimator'; is it 'n_estimators'"):
        make_own_model(name, '{"n_estimator": 2}')
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TableError, match=f"needs {library}, which is not installed: pip install"):
        make_own_model(name)


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(TableError, match="needs lightgbm, which is not installed: pip install l"):
        make_own_model("lightgbm.LGBMClassifier")


def test_what_cannot_be_saved_or_fitted():
    check_own_model(RandomForestClassifier(2), X, Y)
    with pytest.raises(TableError, match="GradientBoostingClassifier cannot be saved in a mod"):
        check_own_model(GradientBoostingClassifier(n_estimators=2), X, Y)
    with pytest.raises(TableError, match=r"cannot be fitted to 90 of the training rows: .*-1"):
        check_own_model(RandomForestClassifier(-1), X, Y)


@pytest.mark.parametrize("adapter", ["standardize", "auto"])
def test_the_command(adapter, tmp_path):
    files = write_tables(tmp_path)
    out = tmp_path / "model.skops"
    said = succeed(
        "adapt", files["train"], files["new"], "--label", "churned", "--adapter", adapter,
        "--estimator", FOREST, "--estimator-params", '{"n_estimators": 5, "max_depth": 3}',
        "--out", out,
    )  # fmt: skip
    assert "+ RandomForestClassifier" in said
    model = load(out).estimator_
    inside = model.estimator_ if adapter != "auto" else model.members_[0].model.estimator_
    assert (inside.n_estimators, inside.max_depth, inside.random_state) == (5, 3, 0)
    assert "Rows predicted: 120" in succeed(
        "predict", out, files["new"], "--out", tmp_path / "p.csv"
    )


@pytest.mark.parametrize("library", ["lightgbm.LGBMClassifier", "xgboost.XGBClassifier"])
def test_the_command_with_other_libraries(library, tmp_path):
    pytest.importorskip(library.partition(".")[0])
    files = write_tables(tmp_path)
    out = tmp_path / "model.skops"
    said = succeed(
        "adapt", files["train"], files["new"], "--label", "churned", "--adapter", "coral",
        "--estimator", library, "--estimator-params", '{"n_estimators": 5}', "--out", out,
    )  # fmt: skip
    assert f"coral + {library.partition('.')[2]}" in said
    assert "Rows predicted: 120" in succeed(
        "predict", out, files["new"], "--out", tmp_path / "p.csv"
    )


def test_options_that_do_not_go_together(tmp_path):
    files = write_tables(tmp_path)
    start = ["adapt", files["train"], files["new"], "--label", "churned"]
    start += ["--out", tmp_path / "model.skops"]
    cases = {
        "name the model once: in --model or in --estimator": ["--model", "rbf"],
        "Name the model once: in --adapter, --model or --estimator": ["--adapter", "coral + rbf"],
    }
    for message, options in cases.items():
        assert_refused(run(*start, *options, "--estimator", FOREST), "adapt", message)
    refused = run(*start, "--estimator-params", "{}")
    assert_refused(refused, "adapt", "--estimator-params needs --estimator")
    unsavable = "sklearn.ensemble.GradientBoostingClassifier"
    assert_refused(run(*start, "--estimator", unsavable), "adapt", "cannot be saved in a model f")
    plain = ["--estimator", "sklearn.svm.LinearSVC", "--adapter", "coral"]
    refused = run(*start, *plain, "--objective", "balanced_accuracy")
    assert_refused(refused, "adapt", "needs probabilities, and LinearSVC has none")
