"""The entrance of rows: each kind is opened once, and answers alike."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

from covshift import (
    AutoAdaptedClassifier,
    ClassifierWeights,
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    KMMWeights,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SampledRowsWarning,
    SourceStandardScaler,
    SparseFiltering,
    SubspaceAlignment,
    diagnose,
)
from covshift.streams import ArrayRows, MemoryRows, open_rows, rows_in_memory
from covshift.streams.rows import _pick_ascending_rows, draw_in_memory, sample_rows
from tests.shifted import make_problem

QUESTIONS = {"is_streamed", "stays_on_device"}
ADAPTERS = [
    CorrelationAlignment(),
    DomainQuantileTransformer(),
    DomainStandardScaler(),
    LinearMongeAlignment(),
    PeriodicSparseFiltering(4, max_iter=2, n_restarts=1, random_state=0),
    SourceStandardScaler(),
    SparseFiltering(4, max_iter=2, random_state=0),
    SubspaceAlignment(),
]
WEIGHTS = [ClassifierWeights(), KMMWeights(bandwidth=1.0)]
each = pytest.mark.parametrize("kind", ["memory", "stream"])


def questions_of(function):
    """Which questions about the kind of rows are asked, in order."""
    asked = []

    def see(frame, event, argument):
        if event == "call" and frame.f_code.co_name in QUESTIONS:
            asked.append(frame.f_code.co_name)

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return asked


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [*ADAPTERS, *WEIGHTS], ids=lambda one: type(one).__name__)
def test_each_question_is_asked_once(estimator):
    X, y, sample_domain, X_new = make_problem(n=40)
    model = clone(estimator)
    asked = questions_of(lambda: model.fit(X, y, sample_domain=sample_domain))
    assert asked.count("is_streamed") == 1
    assert len(asked) == len(set(asked))
    use = model.transform if hasattr(model, "transform") else model.score_weights
    asked = questions_of(lambda: use(X_new))
    assert asked.count("is_streamed") == 1
    assert len(asked) == len(set(asked))


def opened(kind, X):
    return MemoryRows(X) if kind == "memory" else ArrayRows(X)


def rows_of(n=30):
    return np.random.default_rng(0).normal(size=(n, 3))


@each
def test_units_that_overlap_are_measured(kind):
    X = rows_of()
    units = {3: np.arange(10), -1: np.arange(20, 30)}
    units |= {"source": np.arange(20), "target": np.arange(20, 30)}

    def of_stream(stream, codes, n_units):
        (sums,) = stream.sums(sum_by_code, stream.split(codes), n_units)
        return list(sums)

    found = opened(kind, X).measure(units, lambda rows, unit: rows.sum(axis=0), of_stream)
    assert list(found) == list(units)
    for unit, rows in units.items():
        np.testing.assert_allclose(found[unit], X[rows].sum(axis=0), rtol=1e-12)


def sum_by_code(rows, codes, n_units):
    return (np.stack([rows[codes == code].sum(axis=0) for code in range(n_units)]),)


@each
def test_rows_are_drawn_and_picked(kind):
    X = rows_of()
    members = np.arange(30) % 3 == 0
    rows = opened(kind, X)
    np.testing.assert_array_equal(rows.pick(np.array([2, 5])), X[[2, 5]])
    np.testing.assert_array_equal(rows.draw(members, 10), X[members])
    drawn = rows.draw(members, 4)
    assert len(drawn) == (10 if kind == "memory" else 4)
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in X[members]}


class Doubled(BaseEstimator):
    def double(self, X, sample_domain=None):
        shift = 0 if sample_domain is None else np.reshape(sample_domain, (-1, 1))
        return 2 * X + shift


@each
@pytest.mark.parametrize("domain", [None, 7, np.arange(30)], ids=["none", "one", "each"])
def test_methods_are_mapped(kind, domain):
    X = rows_of()
    rows, model = opened(kind, X), Doubled()
    expected = model.double(X, domain)
    np.testing.assert_array_equal(rows.map(model.double, sample_domain=domain), expected)


def test_a_domain_too_few_is_refused():
    with pytest.raises(ValueError, match=r"expected shape \(30,\)"):
        ArrayRows(rows_of()).map(Doubled().double, sample_domain=np.arange(29))


@each
def test_rows_are_where_numpy_computes(kind):
    rows = opened(kind, rows_of())
    rows.check_beside(np.zeros(2))
    assert rows.shape == (30, 3)
    assert rows.dtype == np.float64
    assert isinstance(rows.data, np.ndarray) == (kind == "memory")


def test_a_fitted_array_elsewhere_is_refused():
    class Tensor:
        device = "cuda:0"

    with pytest.raises(ValueError, match="must be in one place"):
        MemoryRows(rows_of()).check_beside(Tensor())


def test_magnitudes_are_looked_at_in_the_precision_of_the_sums():
    X = np.full((4, 2), 1e30, dtype=np.float32)
    assert open_rows(Doubled(), X, reset=True, squared_in=np.float64).dtype == np.float32
    with pytest.raises(ValueError, match="overflow float32"):
        open_rows(Doubled(), X, reset=True)
    open_rows(Doubled(), X.astype(float) * 1e100, reset=True, squared_in=None)


def test_sparse_rows_only_where_they_are_taken():
    X = sparse.csr_array(rows_of())
    assert open_rows(Doubled(), X, reset=True, accept_sparse=True).data is not None
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        open_rows(Doubled(), X, reset=True)


def test_rows_in_memory_refuse_dask():
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="takes rows in memory"):
        rows_in_memory(Doubled(), da.zeros((4, 2)), reset=True)


def test_streams_may_be_refused_before_they_are_read(streamed):
    def refuse():
        raise ValueError("not in blocks")

    with pytest.raises(ValueError, match="not in blocks"):
        open_rows(Doubled(), streamed(rows_of()), reset=True, if_streamed=refuse)


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    y = rng.randint(0, 2, 600)
    sample_domain = np.repeat([0, 1, -1], 200)
    X = rng.standard_normal((600, 3)) + 2 * y[:, None] + np.repeat([0, 4, 8], 200)[:, None]
    order = rng.permutation(600)
    return X[order], y[order], sample_domain[order]


def test_a_sample_has_rows_of_both_roles(rows, streamed, monkeypatch):
    X, y, sample_domain = rows
    monkeypatch.setattr("covshift.streams.rows.IN_MEMORY_BYTES", 300 * 3 * 8)
    with pytest.warns(
        SampledRowsWarning, match="A fit is made from 300 of 600 rows.*within 0.1109"
    ):
        drawn = draw_in_memory(streamed(X), y, sample_domain, None, what="A fit is made")
    picked, labels, domain, mask, numbers = drawn
    np.testing.assert_array_equal(picked, X[numbers])
    np.testing.assert_array_equal(labels, y[numbers])
    np.testing.assert_array_equal(domain, sample_domain[numbers])
    assert mask is None
    assert (domain < 0).sum() == 150
    with pytest.raises(ValueError, match="y must hold one entry per row"):
        draw_in_memory(streamed(X), y[1:], sample_domain, None, what="A fit is made")


def test_few_rows_are_all_taken(rows, streamed):
    X, y, sample_domain = rows
    picked, *_ = draw_in_memory(streamed(X), y, sample_domain, None, what="A fit is made")
    np.testing.assert_array_equal(picked, X)
    assert sample_rows(np.array([True, False, True]), 5).tolist() == [0, 2]


def test_a_diagnosis_names_rows_of_the_whole_table(rows, streamed, monkeypatch):
    X, y, sample_domain = rows
    theirs = diagnose(X, y, sample_domain=sample_domain, max_rows=100, time_budget=0.0)
    ours = diagnose(streamed(X), y, sample_domain=sample_domain, max_rows=100, time_budget=0.0)
    assert repr(ours.assessment) == repr(theirs.assessment)  # a NaN equals no other
    np.testing.assert_array_equal(ours.rows_to_label(9), theirs.rows_to_label(9))
    monkeypatch.setattr("covshift.streams.rows.IN_MEMORY_BYTES", 300 * 3 * 8)
    with pytest.warns(SampledRowsWarning, match="The diagnosis is made from 300 of 600"):
        ours = diagnose(streamed(X), y, sample_domain=sample_domain, max_rows=100, time_budget=0.0)
    assert (sample_domain[ours.rows_to_label(5)] < 0).all()
    assert ours.n_rows == (150, 150)


def test_the_automatic_choice_predicts_all_rows(rows, streamed, monkeypatch):
    X, y, sample_domain = rows
    monkeypatch.setattr("covshift.streams.rows.IN_MEMORY_BYTES", 300 * 3 * 8)
    model = AutoAdaptedClassifier(
        candidates=[(DomainStandardScaler(), LogisticRegression())], random_state=0
    )
    with pytest.warns(SampledRowsWarning, match="AutoAdaptedClassifier is fitted from 300 of 600"):
        model.fit(streamed(X), y, sample_domain=sample_domain)
    for method in ("predict", "predict_proba", "predict_log_proba"):
        whole = getattr(model, method)(X, sample_domain=sample_domain)
        blocks = getattr(model, method)(streamed(X), sample_domain=sample_domain)
        np.testing.assert_array_equal(np.asarray(blocks), whole)
    assert model.score(streamed(X), y, sample_domain=sample_domain) == model.score(
        X, y, sample_domain=sample_domain
    )


@pytest.mark.parametrize("rows", [[0], [2, 3, 4], [0, 1, 2, 3, 4], [0, 2, 3], [1, 4]])
def test_rows_in_a_run_are_not_copied(rows):
    X = np.arange(10.0).reshape(5, 2)
    picked = _pick_ascending_rows(X, np.array(rows))
    assert_array_equal(picked, X[rows])
    assert np.shares_memory(picked, X) == (rows not in ([0, 2, 3], [1, 4]))
