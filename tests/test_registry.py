"""The registry says what is true, and the rest of the package says what the registry says."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, AutoAdaptedClassifier, diagnose
from covshift.base import RefitNeededError
from covshift.interop.onnx import to_onnx
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
from covshift.selection.candidates import (
    candidates_around,
    check_candidates,
    default_candidates,
    registered_candidates,
)
from covshift.selection.models import MODELS, find_model, make_model, model_name
from covshift.tables.adapting import check_choice
from tests.shifted import make_problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning"),
    pytest.mark.filterwarnings("ignore::covshift.NothingToAdaptWarning"),  # SA in all dimensions
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


# Records


@each
def test_a_record_is_complete(record):
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", record.name)
    for sentence in (record.assumption, record.fixes, record.harms):
        assert re.fullmatch(r"[A-Z].{20,200}\.", sentence), sentence
    assert record.load_class().__name__ == record.class_name
    assert set(record.automatic) | set(record.diagnosed) <= set(MODELS)
    assert (record.kind == "weights") == hasattr(record.load_class(), "score_weights")


def test_names_are_unique():
    every = [name.lower() for record in records() for name in (record.name, *record.aliases)]
    assert len(set(every)) == len(every)
    assert names()[0] == NO_ADAPTATION
    assert AUTO not in every


def test_the_registry_knows_the_names_of_the_models():
    assert tuple(MODELS) == MODEL_NAMES


def test_older_names_and_other_cases_are_found():
    assert find_record("standardise groups").name == "standardize-domains"
    assert find_record(" CORAL ").name == "coral"
    assert find_model("linear") == "logistic"


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
    (model, X_new), (again, _) = fit(record), fit(record)
    np.testing.assert_array_equal(model.predict_proba(X_new), again.predict_proba(X_new))
    assert set(model.predict(X_new)) <= set(model.classes_)


@each
def test_reads_labels(record):
    def turned(y, sample_domain):
        return np.where(sample_domain >= 0, (y + 1) % 3, y)

    first, X_new = fit(record)
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
    model, _ = fit(record)
    X_other = make_problem(seed=1).X
    if record.learns_targets:
        assert model.adapt_target(X_other) is model
    else:
        with pytest.raises(RefitNeededError):
            model.adapt_target(X_other)


@each
def test_exports(record):
    pytest.importorskip("onnx")
    model, _ = fit(record)
    if record.exports_to_onnx:
        to_onnx(model)
    else:
        with pytest.raises(NotImplementedError, match="cannot be exported"):
            to_onnx(model)


@each
def test_streams(record):
    da = pytest.importorskip("dask.array")
    X, y, sample_domain, _ = make_problem()
    # The class itself: steps before it are others, with capabilities of their own.
    adapter = record.load_class()()
    blocks = da.from_array(X, chunks=(40, -1))
    if record.streams:
        adapter.fit(blocks, y, sample_domain=sample_domain)
    else:
        with pytest.raises((TypeError, ValueError), match=r"[Dd]ask|block|memory"):
            adapter.fit(blocks, y, sample_domain=sample_domain)


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
        registered_candidates(size, "diagnosed"),
        candidates_around(LogisticRegression(), size)[1:],
        users[1:],
    ]
    for candidates in lists:
        assert candidates
        for one in candidates:
            built = find_record(one.adapter_name).build(size)
            assert str(one.adapter.get_params()) == str(built.get_params())


def test_by_name_and_by_hand():
    X, y, sample_domain, X_new = make_problem()
    size = Size(40, 40, X.shape[1], 3)
    assert (sample_domain >= 0).sum() == size.n_source
    for name in ("coral", "sa", "sf", "ranks"):
        named = AdaptedClassifier(name).fit(X, y, sample_domain=sample_domain)
        made = AdaptedClassifier(find_record(name).build(size))
        made.fit(X, y, sample_domain=sample_domain)
        np.testing.assert_array_equal(named.predict_proba(X_new), made.predict_proba(X_new))


def test_a_name_means_the_same_for_arrays_and_frames():
    pd = pytest.importorskip("pandas")
    X, y, sample_domain, X_new = make_problem()
    frame, new = (pd.DataFrame(rows, columns=list("abc")) for rows in (5 * X, 5 * X_new))
    by_array = AdaptedClassifier("psf").fit(5 * X, y, sample_domain=sample_domain)
    by_frame = AdaptedClassifier("psf").fit(frame, y, sample_domain=sample_domain)
    assert by_array.adapter_.init_scale == by_frame.adapter_.init_scale != 1
    np.testing.assert_array_equal(by_array.predict_proba(5 * X_new), by_frame.predict_proba(new))


def test_every_name_that_is_shown_can_be_asked_for():
    """Leaderboard, members, decision and diagnosis."""
    X, y, sample_domain, _ = make_problem(n=15)
    quick = {"max_rows": 50, "time_budget": 0}  # names do not depend on scores and evidence
    model = AutoAdaptedClassifier(random_state=0, **quick)
    model.fit(X, y, sample_domain=sample_domain)
    found = diagnose(X, y, sample_domain=sample_domain, **quick)
    shown = [row["candidate"] for row in model.leaderboard_]
    shown += [one.name for one in found._bench.candidates]
    for name in [*shown, *model.chosen_, *(name.partition(" +")[0] for name in shown)]:
        adapter, kind = check_choice(name, None)
        assert name in (adapter, f"{adapter} + {kind}")
    assert model.chosen_[0] in model.decision_


@pytest.mark.parametrize("name", MODELS)
def test_models_know_their_names(name):
    for n_source in (100, 10_000):
        for n_features in (5, 500):
            model = make_model(name, n_source, n_features)
            assert model_name(model) == name
            around = candidates_around(model, Size(n_source, 100, n_features))
            assert {one.estimator_name for one in around} == {name}
    assert model_name(LogisticRegression(C=0.1)) == "LogisticRegression"  # another model
