"""Measures of rows that come in blocks, and what refuses them."""

import numpy as np
import pytest

from covshift import DenoisingAutoencoder, LSPClassifier, SampledRowsWarning
from covshift.measures import ks_distance, mmd
from tests.shifted import make_problem


def test_few_rows_are_all_measured(streamed):
    X, _, sample_domain, _ = make_problem(n=60)
    A, B = X[sample_domain >= 0], X[sample_domain < 0]
    assert mmd(streamed(A), B) == mmd(A, B)
    assert ks_distance(A, streamed(B)) == ks_distance(A, B)


def test_many_rows_are_sampled(streamed, monkeypatch):
    monkeypatch.setattr("covshift.measures.sample_checks.MEASURED_ROWS", 400)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((1000, 2)), 1 + rng.standard_normal((300, 2))
    with pytest.warns(SampledRowsWarning, match="A is measured from 400 of 1,000 rows.*0.0679"):
        distance = ks_distance(streamed(A), B)
    assert abs(distance - ks_distance(A, B)) < 0.0679


@pytest.mark.parametrize("estimator", [DenoisingAutoencoder(), LSPClassifier()], ids=repr)
def test_what_needs_rows_in_memory_says_so(estimator):
    da = pytest.importorskip("dask.array")
    X, y, sample_domain, _ = make_problem(n=60)
    with pytest.raises(TypeError, match=r"takes rows in memory.*X\[rows\]\.compute"):
        estimator.fit(da.from_array(X), y, sample_domain=sample_domain)
