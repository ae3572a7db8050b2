"""Diagnosis and automatic choice on rows in blocks: made from a sample, which is said."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import (
    AutoAdaptedClassifier,
    DomainStandardScaler,
    SampledRowsWarning,
    diagnose,
)
from covshift.streams import sampling
from covshift.streams.kinds import sample_rows
from covshift.streams.sampling import draw_in_memory


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
    monkeypatch.setattr(sampling, "IN_MEMORY_BYTES", 300 * 3 * 8)
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
    monkeypatch.setattr(sampling, "IN_MEMORY_BYTES", 300 * 3 * 8)
    with pytest.warns(SampledRowsWarning, match="The diagnosis is made from 300 of 600"):
        ours = diagnose(streamed(X), y, sample_domain=sample_domain, max_rows=100, time_budget=0.0)
    assert (sample_domain[ours.rows_to_label(5)] < 0).all()
    assert ours.n_rows == (150, 150)


def test_the_automatic_choice_predicts_all_rows(rows, streamed, monkeypatch):
    X, y, sample_domain = rows
    monkeypatch.setattr(sampling, "IN_MEMORY_BYTES", 300 * 3 * 8)
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
