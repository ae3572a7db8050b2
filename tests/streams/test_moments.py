"""Scalers and alignments whose rows come in blocks: equal to those fitted in memory."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA

from covshift import (
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    SampledRowsWarning,
    SubspaceAlignment,
)
from covshift.adapters import domain_quantile_transformer
from covshift.adapters.correlation_alignment import _fourth_powers, _stream_moments
from covshift.streams import ArrayRows
from covshift.streams.moments import first_moments, fit_components, scatter_about
from tests.shifted import make_problem
from tests.twins.alignment_twins import mean_and_covariance

ADAPTERS = [
    DomainStandardScaler(),
    DomainStandardScaler(with_mean=False, pooling="domain", min_domain_size=5),
    DomainStandardScaler(with_std=False),
    CorrelationAlignment(),
    CorrelationAlignment(shrinkage=None, direction="target_to_source", pooling="domain"),
    LinearMongeAlignment(shrinkage=0.2),
    LinearMongeAlignment(direction="target_to_source", pooling="domain"),
    SubspaceAlignment(2),
    SubspaceAlignment(2, center=True, scale=True),
    SubspaceAlignment(2, center=True, scale=True, pooling="domain", min_domain_size=70),
    DomainQuantileTransformer(n_quantiles=20),
]
every_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=repr)


@every_adapter
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_streamed_moments_are_those_in_memory(adapter, dtype, streamed):
    X, _, sample_domain, X_new = make_problem(n=60, dtype=dtype)
    X += 100
    theirs = clone(adapter).fit(X, sample_domain=sample_domain)
    ours = clone(adapter).fit(streamed(X), sample_domain=sample_domain)
    for name, value in vars(theirs).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(getattr(ours, name), value, rtol=1e-8, atol=1e-8)
    assert ours.units_ == theirs.units_
    Z = np.asarray(ours.transform(streamed(X), sample_domain=sample_domain))
    expected = theirs.transform(X, sample_domain=sample_domain)
    assert Z.dtype == expected.dtype
    np.testing.assert_allclose(Z, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.transform(X_new), theirs.transform(X_new), rtol=1e-5, atol=1e-5)


def test_missing_values_and_constants(streamed):
    X, _, sample_domain, _ = make_problem(n=60)
    X[::3, 0], X[:, 1] = np.nan, 1e6 + 0.1
    X[sample_domain == -2, 2] = np.nan
    scaler = DomainStandardScaler(pooling="domain")
    theirs = clone(scaler).fit(X, sample_domain=sample_domain)
    ours = clone(scaler).fit(streamed(X), sample_domain=sample_domain)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
    np.testing.assert_allclose(ours.scales_, theirs.scales_, rtol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        CorrelationAlignment().fit(streamed(X), sample_domain=sample_domain)


def test_new_targets(streamed):
    X, _, sample_domain, X_new = make_problem(n=60)
    for adapter in (DomainStandardScaler(), CorrelationAlignment(direction="target_to_source")):
        theirs = clone(adapter).fit(X, sample_domain=sample_domain)
        ours = clone(adapter).fit(streamed(X), sample_domain=sample_domain)
        theirs.adapt_target(X[:50] + 3, domain="site")
        ours.adapt_target(streamed(X[:50] + 3), domain="site")
        expected = theirs.transform(X_new, sample_domain="site")
        np.testing.assert_allclose(ours.transform(X_new, sample_domain="site"), expected)


def test_quantiles_of_a_sample_say_so(streamed, monkeypatch):
    monkeypatch.setattr(domain_quantile_transformer, "QUANTILE_ROWS", 40)
    X, _, sample_domain, _ = make_problem(n=60)
    ranks = DomainQuantileTransformer(output_distribution="uniform")
    with pytest.warns(SampledRowsWarning, match="from 80 of 240 rows"):
        ours = clone(ranks).fit(streamed(X), sample_domain=sample_domain)
    theirs = clone(ranks).fit(X, sample_domain=sample_domain)
    assert np.abs(ours.transform(X) - theirs.transform(X)).max() < 0.3


def test_alignments_need_target_rows(streamed):
    X, _, sample_domain, _ = make_problem(n=60)
    with pytest.raises(ValueError, match="no target rows"):
        CorrelationAlignment().fit(streamed(X), sample_domain=np.abs(sample_domain))


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_sums_are_the_naive_ones(rows):
    """Rows far from the origin, groups in mixed order, some rows in none."""
    rng = np.random.default_rng(0)
    X, codes = 1e6 + rng.standard_normal((3000, 4)), rng.integers(0, 4, 3000)
    stream = ArrayRows(sparse.csr_array(X) if rows == "sparse" else X)
    for code, (mean, covariance, _) in enumerate(_stream_moments(stream, codes, 3, 0.1)):
        twin_mean, twin = mean_and_covariance(X[codes == code], 0.1)
        np.testing.assert_allclose(mean, twin_mean, rtol=1e-13)
        np.testing.assert_allclose(covariance, twin, rtol=1e-7, atol=1e-9)


def test_parts_add_up():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((500, 3)), rng.integers(0, 3, 500)
    counts, totals = first_moments(X, codes, 2)
    means = totals / counts
    ones, groups = np.ones_like(means), np.zeros(2, dtype=int)
    (scatter,) = scatter_about(X, codes, means, ones, groups, 1)
    (fourths,) = _fourth_powers(X, codes, means, 2 * ones)
    twin, twin_fourths = np.zeros((3, 3)), np.zeros(2)
    for row, code in zip(X, codes, strict=True):
        if code < 2:
            centered = row - means[code]
            twin += np.outer(centered, centered)
            twin_fourths[code] += (2 * centered**2).sum() ** 2
    np.testing.assert_allclose(scatter[0], twin)
    np.testing.assert_allclose(fourths, twin_fourths)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_streamed_components_are_those_in_memory(dtype, streamed):
    X = (make_problem(n=60).X * [1, 2, 4] + 100).astype(dtype)
    theirs, ours = PCA(2, svd_solver="full").fit(X), PCA(2)
    fit_components(ours, streamed(X))
    for name in ("mean_", "components_", "explained_variance_", "noise_variance_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-4, atol=1e-4)
    assert ours.components_.dtype == dtype
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n_components", "error"), [(0.9, TypeError), (4, ValueError)])
def test_components_of_blocks_are_a_whole_number(n_components, error, streamed):
    with pytest.raises(error, match="n_components="):
        fit_components(PCA(n_components), streamed(make_problem().X))


def test_sums_of_a_single_row():
    counts, totals = first_moments(np.array([[1.0, np.nan]]), np.array([1]), 2)
    np.testing.assert_array_equal(counts, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(totals, [[0, 0], [1, 0]])
