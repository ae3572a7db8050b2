"""The registry says what is true, and the rest of the package says what the registry says."""

import importlib
import re
import subprocess
import sys
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from covshift import AdaptedClassifier, AutoAdaptedClassifier, diagnose
from covshift.base import RefitNeededError
from covshift.interop.onnx import to_onnx
from covshift.predictors.fit_and_predict import fit_adapter, problem_size, represent
from covshift.registry import (
    AUTO,
    BUILT_IN,
    MODEL_NAMES,
    NO_ADAPTATION,
    Size,
    find_record,
    names,
    records,
)
from covshift.selection.assessment_words import name_candidate
from covshift.selection.candidates import (
    MODELS,
    candidates_around,
    check_candidates,
    default_candidates,
    find_model,
    make_model,
    model_name,
)
from covshift.streams import SampledRowsWarning
from covshift.tables.adapting import check_choice
from tests.shifted import make_problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning"),
]
ROOT = Path(__file__).resolve().parent.parent
each = pytest.mark.parametrize("record", BUILT_IN, ids=lambda record: record.name)
SIZES = [Size(60, 30, 3, 3), Size(500, 400, 100, 4), Size(20, 5, 1, 2)]


def fit(record, *, shift=0.0, labels=None, **options):
    X, y, sample_domain, X_new = make_problem()
    X = X + shift * (sample_domain < 0)[:, None]
    model = AdaptedClassifier(record.name, LogisticRegression(max_iter=1000))
    where = {"sample_domain": sample_domain} | options
    return model.fit(X, y if labels is None else labels(y, sample_domain), **where), X_new


@cache
def fitted(name):
    """The same without options, made once; not to be changed."""
    return fit(find_record(name))


# Records


@each
def test_a_record_is_complete(record):
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", record.name)
    for sentence in (record.assumption, record.fixes, record.harms):
        assert re.fullmatch(r"[A-Z].{20,200}\.", sentence), sentence
    assert record.load_class().__name__ == record.class_name
    assert set(record.automatic) <= set(MODELS)
    assert (record.kind == "weights") == hasattr(record.load_class(), "score_weights")


def test_names_are_unique():
    every = [name.lower() for record in records() for name in (record.name, *record.aliases)]
    assert len(set(every)) == len(every)
    assert names()[0] == NO_ADAPTATION
    assert AUTO not in every


def test_the_registry_knows_the_names_of_the_models():
    assert tuple(MODELS) == MODEL_NAMES


def test_older_names_and_other_cases_are_found():
    found = ["standardise groups", "SA 8", "SA 30", "standardise > SF", "standardise > PSF"]
    assert [find_record(one).name for one in [*found, "PSF by class"]] == [
        "standardize-domains", "sa-8", "sa", "standardize-sf", "standardize-psf", "psf",
    ]  # fmt: skip
    shown = ["linear", "LR", "linear SVM", "RBF SVM", "RBF", "boosting"]
    assert [find_model(one) for one in shown] == [
        "logistic", "logistic", "linear-svm", "rbf", "rbf", "boosting",
    ]  # fmt: skip
    assert find_record(" CORAL ").name == "coral"


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError, match=r"Unknown adapter 'magic'\. Choose from: none, stand"):
        find_record("magic")
    with pytest.raises(ValueError, match=r"Unknown model 'deep'\. Choose from: logistic, "):
        make_model("deep", 10, 2)


def test_reading_records_loads_no_estimator():
    code = (
        "import sys, covshift.registry as r; r.names(); "
        "print(sorted({'numpy', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# Capabilities: what a record claims is what its model does


@each
def test_fits_and_repeats_itself(record):
    (model, X_new), (again, _) = fitted(record.name), fit(record)
    np.testing.assert_array_equal(model.predict_proba(X_new), again.predict_proba(X_new))
    assert set(model.predict(X_new)) <= set(model.classes_)


@each
def test_reads_labels(record):
    def turned(y, sample_domain):
        return np.where(sample_domain >= 0, (y + 1) % 3, y)

    first, X_new = fitted(record.name)
    other, _ = fit(record, labels=turned)
    if record.kind == "weights":
        left, right = (model.adapter_[-1].weights_ for model in (first, other))
    else:
        left, right = (model.transform(X_new) for model in (first, other))
    # Without a reward, groups of features still change the order of sums.
    assert np.allclose(left, right, rtol=0, atol=1e-9) != record.reads_labels


@each
def test_needs_a_target(record):
    X, _, _, _ = make_problem()
    adapter = record.load_class()()
    if record.needs_target:
        with pytest.raises(ValueError, match="target"):
            adapter.fit(X, sample_domain=np.zeros(len(X), dtype=int))
    else:
        adapter.fit(X, sample_domain=np.zeros(len(X), dtype=int))


@each
def test_learns_a_target(record):
    model = deepcopy(fitted(record.name)[0])
    X_other = make_problem(seed=1).X
    if record.learns_targets:
        assert model.adapt_target(X_other) is model
    else:
        with pytest.raises(RefitNeededError):
            model.adapt_target(X_other)


@each
def test_exports(record):
    pytest.importorskip("onnx")
    model, _ = fitted(record.name)
    if record.exports_to_onnx:
        to_onnx(model)
    else:
        with pytest.raises(NotImplementedError, match="cannot be exported"):
            to_onnx(model)


@each
def test_streams_and_yields_few_features(record):
    """On more features than principal components, so that every step takes part."""
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    X, sample_domain = rng.normal(size=(300, 70)), np.repeat([0, -1], 150)
    y = (X[:, 0] > 0).astype(int)
    model, blocks = AdaptedClassifier(record.name), da.from_array(X, chunks=(100, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SampledRowsWarning)
        if not record.streams:
            with pytest.raises((TypeError, ValueError), match=r"[Dd]ask|block|memory"):
                model.fit(blocks, y, sample_domain=sample_domain)
            blocks = X
        model.fit(blocks, y, sample_domain=sample_domain)
    assert model.predict(X).shape == (300,)
    if record.kind == "transformer":
        n_outputs = model.transform(X[:5]).shape[1]
        if record.n_outputs is not None:
            assert n_outputs <= record.n_outputs
        elif n_outputs < 70:  # then not a fixed number, which the record would have to say
            wider = np.hstack([X, X[:, :30] ** 2])
            model.fit(wider, y, sample_domain=sample_domain)
            assert model.transform(wider[:5]).shape[1] > n_outputs


@each
def test_uses_domains(record):
    """Of the class itself: whether it matters which domain a row is of."""
    X, y, sample_domain, X_new = make_problem()
    settings = record.settings_for(Size(40, 40, 3, 3))
    shown = []
    dealt = np.random.RandomState(0).permutation(sample_domain)
    for domain in (sample_domain, dealt):
        adapter = record.load_class()(**settings)
        adapter.fit(X, y, sample_domain=domain, label_mask=sample_domain >= 0)
        say = adapter.score_weights if record.kind == "weights" else adapter.transform
        shown.append(say(X_new))
    assert np.allclose(*shown) != record.uses_domains


@each
def test_runs_on_device(record):
    """By the strictest array library, which has no device and no conversion either."""
    strict = pytest.importorskip("array_api_strict")
    X, y, sample_domain, X_new = make_problem()
    adapter = record.build(Size(40, 40, 3, 3))
    where = {"sample_domain": sample_domain, "label_mask": sample_domain >= 0}
    with config_context(array_api_dispatch=True):
        try:
            fit_adapter(adapter, strict.asarray(X), y, **where)
            found = represent(adapter, strict.asarray(X_new))
        except Exception:  # whatever comes of rows that are not NumPy's
            found = None
    assert (type(found) is type(strict.asarray(X)) and record.kind == "transformer") == (
        record.runs_on_device
    )


# The documentation says what the registry says


def test_the_tables_of_the_pages_are_those_of_the_registry(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    tables = importlib.import_module("adapter_tables")
    for page in tables.PAGES:
        text = page.read_text(encoding="utf-8")
        assert "<!-- table " in text or ".. list " in text
        assert tables.insert_tables(text) == text, f"run python docs/adapter_tables.py for {page}"


@each
def test_the_reference_lists_the_class(record):
    pages = [(ROOT / "docs" / "reference" / f"{name}.rst") for name in ("adapters", "weights")]
    lines = [line.strip() for page in pages for line in page.read_text().splitlines()]
    assert record.class_name in [line.rpartition(".")[2] for line in lines]


# The same name means the same model


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_list_builds_what_the_registry_builds(size):
    users = check_candidates([(name, LogisticRegression()) for name in names()], size)
    lists = [
        default_candidates(size),
        candidates_around(LogisticRegression(), size),
        users,
        check_candidates([("coral", LogisticRegression())], size),
    ]
    for candidates in lists:
        assert candidates
        for one in candidates:
            built = find_record(one.adapter_name).build(size)
            assert str(one.adapter.get_params()) == str(built.get_params())


def test_subspaces_leave_directions_out():
    """In as many dimensions as features, alignment would be a rotation."""
    for n_features in (2, 8, 20, 60, 200):
        for name in ("sa", "sa-8"):
            settings = find_record(name).settings_for(Size(500, 500, n_features))
            assert 1 <= settings["n_components"] <= n_features / 2


def test_by_name_and_by_hand():
    X, y, sample_domain, X_new = make_problem()
    size = Size(40, 40, X.shape[1], 3)
    assert (sample_domain >= 0).sum() == size.n_source
    for name in ("coral", "sa", "sf", "ranks"):
        named = AdaptedClassifier(name).fit(X, y, sample_domain=sample_domain)
        made = AdaptedClassifier(find_record(name).build(size))
        made.fit(X, y, sample_domain=sample_domain)
        np.testing.assert_array_equal(named.predict_proba(X_new), made.predict_proba(X_new))


def test_no_adaptation_scales_around_a_users_model_too():
    X, y, sample_domain, X_new = make_problem()
    X[:, 0] *= 1000
    where = {"sample_domain": sample_domain}
    (plain, *_) = candidates_around(SVC(), Size(40, 40, 3, 3))
    named = AdaptedClassifier("none", SVC()).fit(X, y, **where)
    assert plain.name == "none + rbf"
    found = plain.model().fit(X, y, **where).decision_function(X_new)
    np.testing.assert_array_equal(found, named.decision_function(X_new))


def test_a_name_means_the_same_for_arrays_and_frames():
    pd = pytest.importorskip("pandas")
    X, y, sample_domain, X_new = make_problem()
    X, X_new = ([5, 5, 1] * rows for rows in (X, X_new))
    X[:, 2], X_new[:, 2] = X[:, 2] > 0, X_new[:, 2] > 0
    # The column of zeros and ones is boolean, so that the frame as an array has objects.
    frame, new = (
        pd.DataFrame(rows, columns=list("abc")).astype({"c": bool}) for rows in (X, X_new)
    )
    by_array = AdaptedClassifier("psf").fit(X, y, sample_domain=sample_domain)
    by_frame = AdaptedClassifier("psf").fit(frame, y, sample_domain=sample_domain)
    assert by_array.adapter_.init_scale == by_frame.adapter_.init_scale != 1
    np.testing.assert_array_equal(by_array.predict_proba(X_new), by_frame.predict_proba(new))


def test_every_name_that_is_shown_can_be_asked_for():
    """Leaderboard, members, decision and diagnosis, with the settings that the name means."""
    X, y, sample_domain, _ = make_problem(n=30)
    size = problem_size(X, 3, sample_domain)  # of all rows, not of those that are examined
    quick = {"max_rows": 50, "time_budget": 0}  # names do not depend on scores and evidence
    model = AutoAdaptedClassifier(random_state=0, **quick)
    model.fit(X, y, sample_domain=sample_domain)
    found = diagnose(X, y, sample_domain=sample_domain, **quick)
    shown = [row["candidate"] for row in model.leaderboard_]
    shown += [one.name for one in found._bench.candidates]
    for name in [*shown, *model.chosen_, *(name.partition(" +")[0] for name in shown)]:
        adapter, kind = check_choice(name, None)
        assert name in (adapter, f"{adapter} + {kind}")
    assert name_candidate(model.chosen_[0]) in model.decision_
    for one in [*found._bench.candidates, *(member.candidate for member in model.members_)]:
        built = find_record(one.adapter_name).build(size)
        assert str(one.adapter.get_params()) == str(built.get_params())


@pytest.mark.parametrize("name", MODELS)
def test_models_know_their_names(name):
    for n_source in (100, 10_000):
        for n_features in (5, 500):
            model = make_model(name, n_source, n_features)
            assert model_name(model) == name
            around = candidates_around(model, Size(n_source, 100, n_features))
            assert {one.estimator_name for one in around if one.adapts} == {name}
            assert not around[0].adapts
    assert model_name(LogisticRegression(C=0.1)) == "LogisticRegression"  # another model


@pytest.mark.parametrize(
    "name", ["sf", "standardize-sf", "psf-unlabeled", "standardize-psf", "psf"]
)
def test_records_of_filters_name_their_start_and_reward(name):
    """A changed default of the filters must not change what the automatic choice computes."""
    settings = find_record(name).settings(Size(n_source=100, n_target=50, n_features=7))
    assert isinstance(settings["init_scale"], float)
    if "psf" in name:
        assert isinstance(settings["label_reward"], float)
