"""Exported models say the same as the models, in onnxruntime."""

import re
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
)
from covshift.interop.onnx import to_onnx
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, _ = make_problem()
NUMBER = make_problem(kind="number").y
WHERE = {"sample_domain": SAMPLE_DOMAIN}
ROWS = (2 * np.random.RandomState(1).standard_normal((1000, 3)) - 1).astype(np.float32)
METHODS = {
    "Z": "transform",
    "decision": "decision_function",
    "probabilities": "predict_proba",
    "prediction": "predict",
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PLAIN = make_pipeline(MinMaxScaler(clip=True), MaxAbsScaler(), StandardScaler(with_mean=False))
ADAPTERS = [
    SparseFiltering(random_state=0, max_iter=20),
    SparseFiltering(random_state=0, max_iter=20, normalization="joint"),
    SparseFiltering(random_state=0, max_iter=20, pooling="domain", norm_epsilon=1e-8),
    PeriodicSparseFiltering(random_state=0, n_restarts=1),
    PeriodicSparseFiltering(random_state=0, n_restarts=1, activation="cos", pooling="domain"),
    PeriodicSparseFiltering(random_state=0, n_restarts=1, normalization="joint", epsilon=0.0),
    DomainStandardScaler(),
    DomainStandardScaler(pooling="domain", with_std=False),
    CorrelationAlignment(),
    CorrelationAlignment(direction="target_to_source", align_mean=False),
    LinearMongeAlignment(direction="target_to_source", pooling="domain"),
    SubspaceAlignment(2),
    SubspaceAlignment(2, center=True, scale=True, pooling="domain"),
    make_pipeline(StandardScaler(), SparseFiltering(random_state=0, max_iter=20)),
    make_pipeline("passthrough", make_pipeline(DomainStandardScaler(), PCA(2, whiten=True))),
    PLAIN,
    ULSIFWeights(random_state=0),
    None,
]
CLASSIFIERS = [
    LogisticRegression(),
    LinearSVC(),
    RidgeClassifier(),
    SGDClassifier(random_state=0),
    SGDClassifier(loss="log_loss", random_state=0),
    LinearDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), PCA(2), LogisticRegression(C=0.1)),
]
REGRESSORS = [Ridge(), LinearRegression(), ElasticNet(alpha=0.01), LinearSVR(random_state=0)]


def run(exported, rows=ROWS):
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def assert_same(exported, model, expected, **where):
    """To 1e-5 for numbers; labels where the two largest margins are apart by 1e-9 or more."""
    onnx.checker.check_model(exported, full_check=True)
    outputs = run(exported)
    assert set(outputs) == expected
    rows = ROWS.astype(np.float64)
    for name, values in outputs.items():
        if name != "label":
            theirs = np.asarray(getattr(model, METHODS[name])(rows, **where))
            assert values.shape == theirs.shape
            assert_allclose(values, theirs, rtol=1e-5, atol=1e-5, err_msg=name)
    if "label" in outputs:
        margins = model.decision_function(rows, **where)
        margins = np.sort(margins, axis=1) if margins.ndim == 2 else np.c_[-margins, margins]
        clear = np.abs(margins[:, -1] - margins[:, -2]) > 1e-9
        assert clear.sum() > 990
        theirs = model.predict(rows, **where)
        assert_array_equal(outputs["label"][clear], theirs[clear])


@pytest.mark.parametrize("adapter", ADAPTERS[:-3], ids=repr)
@pytest.mark.parametrize("domain", [None, -2, -9, 1])
def test_adapters(adapter, domain):
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(adapter).fit(X, Y, **WHERE)
        where = {} if domain is None else {"sample_domain": domain}
        assert_same(to_onnx(model, domain=domain), model, {"Z"}, **where)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_adapted_classifiers(adapter, n_classes):
    labels = np.minimum(Y, n_classes - 1)
    model = AdaptedClassifier(adapter, LogisticRegression()).fit(X, labels, **WHERE)
    assert_same(to_onnx(model), model, {"label", "decision", "probabilities"})


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize(
    "names", [["no", "yes"], ["a", "b", "ü"], [3, 7, -1], [False, True], [-1.0, 1.0]], ids=repr
)
def test_classifiers_and_their_labels(classifier, names):
    labels = np.array(names)[np.minimum(Y, len(names) - 1)]
    adapter = DomainStandardScaler(pooling="domain")
    model = AdaptedClassifier(adapter, classifier).fit(X, labels, **WHERE)
    expected = {"label", "decision"}
    if hasattr(model, "predict_proba"):
        expected.add("probabilities")
    assert set(model.predict(ROWS)) == set(labels)
    assert_same(to_onnx(model), model, expected)
    assert_same(to_onnx(model, domain=-1), model, expected, sample_domain=-1)
    as_objects = AdaptedClassifier(None, classifier).fit(X, labels.astype(object), **WHERE)
    if labels.dtype.kind == "U":
        assert_same(to_onnx(as_objects), as_objects, expected)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_regressors(regressor):
    assert is_regressor(regressor)
    model = AdaptedRegressor(CorrelationAlignment(), regressor).fit(X, NUMBER, **WHERE)
    assert_same(to_onnx(model), model, {"prediction"})


def test_plain_models_of_scikit_learn():
    for model in (
        LogisticRegression().fit(X, Y),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
    ):
        assert_same(to_onnx(model), model, {"label", "decision", "probabilities"})
    several = Ridge().fit(X, np.c_[NUMBER, -NUMBER])
    assert_same(to_onnx(several), several, {"prediction"})
    sparse_coef = SGDClassifier(random_state=0).fit(X, Y).sparsify()
    assert_same(to_onnx(sparse_coef), sparse_coef, {"label", "decision"})


def test_plain_transformers_know_no_domains():
    model = clone(PLAIN).fit(X)
    assert_same(to_onnx(model), model, {"Z"})
    with pytest.raises(ValueError, match="does not use domains"):
        to_onnx(model, domain=-1)


def test_pipelines_that_end_in_an_adapted_classifier():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(DomainStandardScaler(), AdaptedClassifier(SubspaceAlignment(2)))
        model.fit(X, Y, **WHERE)
        expected = {"label", "decision", "probabilities"}
        assert_same(to_onnx(model), model, expected)
        assert_same(to_onnx(model, domain=0), model, expected, sample_domain=0)


def test_a_target_learned_later_by_name():
    adapter = SparseFiltering(random_state=0, max_iter=20)
    model = AdaptedClassifier(adapter).fit(X, Y, **WHERE)
    model.adapt_target(5 * X[:30] + 1, domain="new clinic")
    expected = {"label", "decision", "probabilities"}
    assert_same(to_onnx(model, domain="new clinic"), model, expected, sample_domain="new clinic")
    there = run(to_onnx(model, domain="new clinic"))["probabilities"]
    assert np.abs(there - run(to_onnx(model))["probabilities"]).max() > 0.01
    with pytest.raises(ValueError, match="is not a domain"):
        to_onnx(model, domain="old clinic")


def test_fitted_on_frames_in_single_precision_and_without_a_target():
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"])
    adapter = SparseFiltering(random_state=0, max_iter=20).set_output(transform="pandas")
    model = AdaptedClassifier(adapter).fit(frame, Y, **WHERE)
    outputs = run(to_onnx(model))
    rows = pd.DataFrame(ROWS.astype(np.float64), columns=["a", "b", "c"])
    assert_allclose(outputs["probabilities"], model.predict_proba(rows), rtol=1e-5, atol=1e-5)
    source_only = SparseFiltering(random_state=0, max_iter=20).fit(X)
    assert_same(to_onnx(source_only), source_only, {"Z"})


def test_far_from_the_origin_and_one_row():
    """Where single precision would leave no digits after the mean is subtracted."""
    model = AdaptedClassifier(CorrelationAlignment(direction="target_to_source"))
    model.fit(X + 1e6, Y, **WHERE)
    rows = (X[:20] + 1e6).astype(np.float32)
    outputs = run(to_onnx(model), rows)
    expected = model.predict_proba(rows.astype(np.float64))
    assert_allclose(outputs["probabilities"], expected, rtol=1e-5, atol=1e-5)
    assert_allclose(run(to_onnx(model), rows[:1])["probabilities"], expected[:1], rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (AdaptedClassifier(DomainQuantileTransformer()), "DomainQuantileTransformer cannot"),
        (AdaptedClassifier(None, SVC()), "SVC cannot .* LogisticRegression"),
        (AdaptedClassifier(None, HistGradientBoostingClassifier()), "HistGradientBoosting"),
        (AdaptedClassifier(SparseFiltering(normalization="batch")), "normalization='batch'"),
        (AdaptedRegressor(None, RandomForestRegressor(2)), "RandomForestRegressor .* Ridge"),
        (
            AdaptedClassifier(make_pipeline(StandardScaler(), QuantileTransformer(n_quantiles=5))),
            "QuantileTransformer cannot .* Steps that can: .*SubspaceAlignment",
        ),
    ],
    ids=repr,
)
def test_what_cannot_be_exported_says_so(model, match, tmp_path):
    model.fit(X, NUMBER if is_regressor(model) else Y, **WHERE)
    with pytest.raises(NotImplementedError, match=match):
        to_onnx(model, tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


def test_unfitted_models_and_odd_classes():
    with pytest.raises(NotFittedError):
        to_onnx(AdaptedClassifier())
    dates = np.array(["2024-01-01", "2025-01-01"], dtype="datetime64[D]")
    model = LogisticRegression().fit(X, Y > 0)
    model.classes_ = dates
    with pytest.raises(NotImplementedError, match="Classes of type datetime64"):
        to_onnx(model)


def test_the_file_and_what_it_says(tmp_path):
    model = AdaptedClassifier(DomainStandardScaler()).fit(X, Y, **WHERE)
    exported = to_onnx(model, tmp_path / "model.onnx")
    read = onnx.load(tmp_path / "model.onnx")
    assert read == exported
    properties = {entry.key: entry.value for entry in read.metadata_props}
    assert properties["model"] == repr(model)
    assert properties["domain"] == "target"
    assert [one.name for one in read.graph.input] == ["X"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_wrong_graph_is_not_handed_out(monkeypatch):
    model = DomainStandardScaler().fit(X, **WHERE)
    monkeypatch.setattr(
        "covshift.interop.onnx._add_step", lambda graph, rows, step, domain: graph.add("Neg", rows)
    )
    with pytest.raises(RuntimeError, match="differs from the model in its Z"):
        to_onnx(model)


def test_the_missing_extra_is_named(monkeypatch):
    model = DomainStandardScaler().fit(X, **WHERE)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape('pip install "covshift[onnx]"')):
        to_onnx(model)
