"""Saved models come back the same, to the bit; what a card says; what cannot be saved."""

import json
import os
import re
import subprocess
import sys
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import covshift
from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    AutoAdaptedClassifier,
    CorrelationAlignment,
    DomainStandardScaler,
    JointAlignmentClassifier,
    LSPClassifier,
    PeriodicSparseFiltering,
    SourceOnlySplit,
    SparseFiltering,
    ULSIFWeights,
    load,
    save,
)
from covshift.cli.options import load_model
from covshift.persistence import ModelFileError, ModelVersionWarning, read_card
from covshift.persistence.model_files import untrusted_types
from covshift.persistence.schema_audit import TRUSTED
from covshift.registry import Size
from covshift.selection.candidates import default_candidates, kernel_machine
from tests.estimators import ESTIMATORS, RECORDS
from tests.persistence.test_hostile_files import write_members
from tests.shifted import make_problem
from tests.weights.estimators import WEIGHTS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
WHERE = {"sample_domain": SAMPLE_DOMAIN}
OF_THE_TESTS = [one.path.replace(":", ".") for one in RECORDS if one.path.startswith("tests.")]
METHODS = ("transform", "predict", "predict_proba", "decision_function", "score_weights")


def round_trip(model, folder, **options):
    save(model, folder / "model.skops")
    return load(folder / "model.skops", **options)


def assert_same(loaded, model, rows, **where):
    assert type(loaded) is type(model)
    names = [name for name in METHODS if hasattr(model, name)]
    assert names
    for name in names:
        said = {} if name == "score_weights" else where
        ours = getattr(loaded, name)(rows, **said)
        theirs = getattr(model, name)(rows, **said)
        assert ours.dtype == theirs.dtype
        if sparse.issparse(ours):
            ours, theirs = ours.toarray(), theirs.toarray()
        assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", ESTIMATORS + WEIGHTS, ids=repr)
def test_every_estimator_comes_back_the_same(estimator, dtype, tmp_path):
    X, y, sample_domain, X_new = make_problem(
        kind="number" if is_regressor(estimator) else "class", dtype=dtype
    )
    model = clone(estimator).fit(X, y, sample_domain=sample_domain)
    loaded = round_trip(model, tmp_path, trusted=OF_THE_TESTS)
    assert_same(loaded, model, X_new)
    if not hasattr(model, "score_weights"):
        assert_same(loaded, model, X, sample_domain=sample_domain)
    assert repr(loaded) == repr(model)
    assert vars(loaded).keys() == vars(model).keys()


def test_the_table_of_types_lists_every_public_estimator():
    listed = {name.rpartition(".")[2] for name in TRUSTED}
    public = {
        name
        for name in covshift.__all__
        if isinstance(getattr(covshift, name), type) and hasattr(getattr(covshift, name), "fit")
    }
    assert public <= listed


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        SVC(kernel="linear"),
        LinearSVC(),
        SGDClassifier(random_state=0),
        CalibratedClassifierCV(LinearSVC(), cv=3),
        LSPClassifier(random_state=0),
        JointAlignmentClassifier(n_components=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
        kernel_machine(10**6).set_params(nystroem__n_components=10),
    ],
    ids=repr,
)
def test_estimators_behind_an_adapter(estimator, tmp_path):
    labels = np.array(["no", "yes", "maybe"])[Y]
    model = AdaptedClassifier(DomainStandardScaler(), estimator).fit(X, labels, **WHERE)
    loaded = round_trip(model, tmp_path)
    assert_same(loaded, model, X_NEW)
    assert_array_equal(loaded.classes_, ["maybe", "no", "yes"])


@pytest.mark.parametrize("estimator", [SVR(), HistGradientBoostingRegressor(max_iter=3)], ids=repr)
def test_regressors_behind_an_adapter(estimator, tmp_path):
    number = make_problem(kind="number").y
    model = AdaptedRegressor(CorrelationAlignment(), estimator).fit(X, number, **WHERE)
    assert_same(round_trip(model, tmp_path), model, X_NEW)


def test_default_candidates_and_their_leaderboard(tmp_path, monkeypatch):
    """All of them vote: linear and kernel models, forests and joint alignment behind adapters."""
    n_candidates = len(default_candidates(Size(60, 30, 3, 3)))
    # Without an assessment, the vote is used whatever is expected of it.
    monkeypatch.setattr("covshift.selection.choice.assess", lambda *_, **__: None)
    model = AutoAdaptedClassifier(vote=n_candidates, max_rows=50, random_state=0)
    X, y, sample_domain, X_new = make_problem(n=30)
    model.fit(X, y, sample_domain=sample_domain)
    assert any("forest" in name for name in model.chosen_)
    assert any("rbf" in name for name in model.chosen_)
    loaded = round_trip(model, tmp_path)
    assert_same(loaded, model, X_new)
    assert_same(loaded, model, X, sample_domain=sample_domain)
    assert repr(loaded.leaderboard_) == repr(model.leaderboard_)
    for ours, theirs in zip(loaded.leaderboard_, model.leaderboard_, strict=True):
        assert str(ours) == str(theirs)  # NaN does not equal itself
    assert loaded.chosen_ == model.chosen_
    assert loaded.decision_ == model.decision_


@pytest.mark.parametrize(
    "adapter",
    [
        DomainStandardScaler(),
        SparseFiltering(random_state=0, max_iter=9),
        make_pipeline(StandardScaler(), CorrelationAlignment(direction="target_to_source")),
    ],
    ids=repr,
)
def test_a_loaded_model_learns_new_targets(adapter, tmp_path):
    model = AdaptedClassifier(adapter).fit(X, Y, **WHERE)
    loaded = round_trip(model, tmp_path)
    rows = X_NEW.repeat(2, axis=0) + np.random.RandomState(0).standard_normal((18, 3))
    for one in (model, loaded):
        one.adapt_target(rows, domain="new clinic").adapt_target(rows * 2)
    assert_same(loaded, model, X_NEW, sample_domain="new clinic")
    assert_same(loaded, model, X_NEW)
    again = round_trip(loaded, tmp_path)
    assert_same(again, model, X_NEW, sample_domain="new clinic")
    assert read_card(tmp_path / "model.skops")["domain_names"] == {"-3": "new clinic"}


def test_a_loaded_vote_learns_new_targets(tmp_path):
    candidates = [(DomainStandardScaler(), LogisticRegression())]
    model = AutoAdaptedClassifier(candidates=candidates, random_state=0).fit(X, Y, **WHERE)
    loaded = round_trip(model, tmp_path)
    for one in (model, loaded):
        one.adapt_target(X[:40] + 3, domain=-7)
    assert_same(loaded, model, X_NEW, sample_domain=-7)


def test_pipelines_of_scikit_learn_with_our_steps(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler(),
            PeriodicSparseFiltering(n_restarts=2, random_state=0),
            AdaptedClassifier(None, LogisticRegression()),
        ).fit(X, Y, **WHERE)
        assert_same(round_trip(model, tmp_path), model, X_NEW)


def test_a_fitted_search(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = AdaptedClassifier(DomainStandardScaler(), LogisticRegression())
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=SourceOnlySplit(3))
        search.fit(X, Y, **WHERE)
        loaded = round_trip(search, tmp_path)
        assert_same(loaded, search, X_NEW)
        assert loaded.best_params_ == search.best_params_


def test_frames_random_states_settings_and_sparse_rows(tmp_path):
    columns = ["age", "höhe", "weight"]
    seed = np.random.RandomState(3)
    adapter = SparseFiltering(random_state=seed, max_iter=9).set_output(transform="pandas")
    model = AdaptedClassifier(adapter).fit(pd.DataFrame(X, columns=columns), Y, **WHERE)
    loaded = round_trip(model, tmp_path)
    rows = pd.DataFrame(X_NEW, columns=columns)
    assert_array_equal(loaded.transform(rows), model.transform(rows))
    assert list(loaded.transform(rows).columns) == list(model.transform(rows).columns)
    assert_array_equal(loaded.feature_names_in_, columns)
    ours, theirs = loaded.adapter.random_state, model.adapter.random_state
    assert_array_equal(ours.uniform(size=700), theirs.uniform(size=700))

    sparse_X = sparse.csr_array(X)
    machine = AdaptedClassifier(DomainStandardScaler(with_mean=False), SVC())
    machine.fit(sparse_X, Y, **WHERE)
    assert_same(round_trip(machine, tmp_path), machine, sparse.csr_array(X_NEW))


@pytest.mark.parametrize("names", [[True, False], [-1.0, 1.0], ["ü", "<script>"]], ids=repr)
def test_labels_of_every_type(names, tmp_path):
    labels = np.array(names)[(Y > 0).astype(int)]
    model = AdaptedClassifier().fit(X, labels, **WHERE)
    loaded = round_trip(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert_same(loaded, model, X_NEW)
    assert read_card(tmp_path / "model.skops")["classes"] == sorted(names)


def test_what_the_card_says(tmp_path):
    model = AdaptedClassifier(ULSIFWeights(random_state=0)).fit(X, Y, **WHERE)
    given = {"metrics": {"accuracy": np.float64(0.5)}, "rows": np.int64(3), "note": "<b>ü</b>"}
    save(model, str(tmp_path / "model.skops"), card=given)
    card = read_card(tmp_path / "model.skops")
    assert card["metrics"] == {"accuracy": 0.5}
    assert card["rows"] == 3
    assert card["note"] == "<b>ü</b>"
    assert card["class_name"] == "covshift.AdaptedClassifier"
    assert card["n_features"] == 3
    assert card["feature_names"] is None
    assert card["classes"] == [0, 1, 2]
    assert card["domains"] == [-2, -1, 0, 1]
    assert card["software"]["covshift"] == covshift.__version__
    assert card["software"]["scikit-learn"] == sklearn.__version__
    assert "skops" in card["software"]
    assert re.match(r"\d{4}-\d\d-\d\dT", card["date"])
    with ZipFile(tmp_path / "model.skops") as archive:
        assert json.loads(archive.read("covshift.json"))["format"] == 1


@pytest.mark.parametrize(
    ("card", "match"),
    [
        ({"date": "today"}, "filled in by save: date"),
        ({"score": float("nan")}, "finite numbers"),
        ({"model of": {1, 2}}, "of type set"),
        ({(1, 2): 3}, "must hold texts"),
    ],
    ids=repr,
)
def test_a_card_that_is_no_card(card, match, tmp_path):
    model = DomainStandardScaler().fit(X, **WHERE)
    with pytest.raises(ValueError, match=match):
        save(model, tmp_path / "model.skops", card=card)
    with pytest.raises(TypeError, match="must be a dictionary"):
        save(model, tmp_path / "model.skops", card=[1])
    assert not any(tmp_path.iterdir())


def a_function_of_the_tests(rows):
    return rows


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.skops"
    save(DomainStandardScaler().fit(X, **WHERE), path)
    before = path.read_bytes()
    with pytest.raises(NotFittedError):
        save(DomainStandardScaler(), path)
    with pytest.raises(TypeError, match="got dict"):
        save({}, path)
    rows = FunctionTransformer(lambda rows: rows)
    with pytest.raises(TypeError, match="lambda or a local function"):
        save(AdaptedClassifier(rows).fit(X, Y, **WHERE), path)
    weighted = LogisticRegression(class_weight={True: 1, False: 2})
    with pytest.raises(TypeError, match="keys True, False or None"):
        save(AdaptedClassifier(None, weighted).fit(X, Y > 0, **WHERE), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.skops"]
    with pytest.raises(FileNotFoundError):
        save(DomainStandardScaler().fit(X, **WHERE), tmp_path / "no such folder" / "model.skops")


def test_own_types_and_functions_must_be_named(tmp_path):
    path = tmp_path / "model.skops"
    adapter = FunctionTransformer(a_function_of_the_tests)
    model = AdaptedClassifier(adapter).fit(X, Y, **WHERE)
    save(model, path)
    name = "tests.persistence.test_model_files.a_function_of_the_tests"
    with pytest.raises(ModelFileError, match=re.escape(f"does not know: {name}. Building them")):
        load(path)
    assert_same(load(path, trusted=[name]), model, X_NEW)
    with pytest.raises(ModelFileError, match=r"name them in --trust TYPE\.$") as refused:
        load_model(path, None)
    assert f"--trust {name}" not in str(refused.value)  # no line to copy comes from the file
    assert untrusted_types(path) == [name]
    assert_same(load_model(path, [name]), model, X_NEW)
    with pytest.raises(TypeError, match="list of names"):
        load(path, trusted=name)
    with pytest.raises(TypeError, match="list of names"):
        load(path, trusted=True)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(3, random_state=0),
        ExtraTreesClassifier(3, max_leaf_nodes=4, random_state=0),
        AdaBoostClassifier(n_estimators=3, random_state=0),
    ],
    ids=repr,
)
def test_trees_and_forests(estimator, tmp_path):
    model = AdaptedClassifier(DomainStandardScaler(), estimator).fit(X, Y, **WHERE)
    assert_same(round_trip(model, tmp_path), model, X_NEW)


def test_trees_that_cannot_be_checked_must_be_named(tmp_path):
    estimator = GradientBoostingClassifier(n_estimators=2, random_state=0)
    model = AdaptedClassifier(DomainStandardScaler(), estimator).fit(X, Y, **WHERE)
    save(model, tmp_path / "model.skops")
    name = "sklearn.tree._tree.Tree"
    with pytest.raises(ModelFileError, match=re.escape(f"trusted=['{name}']")):
        load(tmp_path / "model.skops")
    assert_same(load(tmp_path / "model.skops", trusted=[name]), model, X_NEW)


def test_another_version_of_scikit_learn_is_told_once(tmp_path):
    path = tmp_path / "model.skops"
    model = AdaptedClassifier(DomainStandardScaler()).fit(X, Y, **WHERE)
    save(model, path)
    with ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    for name in ("covshift.json", "schema.json"):
        text = contents[name].decode()
        assert sklearn.__version__ in text
        contents[name] = text.replace(sklearn.__version__, "1.5.0").encode()
    write_members(path, contents)
    with pytest.warns(ModelVersionWarning, match=r"with scikit-learn 1\.5\.0") as told:
        loaded = load(path)
    assert len(told) == 1
    assert_same(loaded, model, X_NEW)


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    model = DomainStandardScaler().fit(X, **WHERE)
    save(model, tmp_path / "model.skops")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=re.escape('pip install "covshift[models]"')):
        save(model, tmp_path / "other.skops")
    with pytest.raises(ImportError, match=re.escape('pip install "covshift[models]"')):
        load(tmp_path / "model.skops")
    assert read_card(tmp_path / "model.skops")["n_features"] == 3


def test_loading_in_another_process_gives_the_same_bits(tmp_path):
    model = AdaptedClassifier(SparseFiltering(random_state=0, max_iter=9)).fit(X, Y, **WHERE)
    save(model, tmp_path / "model.skops")
    np.save(tmp_path / "rows.npy", X_NEW)
    code = """
import numpy as np
from covshift import load
np.save("probabilities.npy", load("model.skops").predict_proba(np.load("rows.npy")))
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True)
    assert_array_equal(np.load(tmp_path / "probabilities.npy"), model.predict_proba(X_NEW))
