"""Ranks by unit: against loops, scikit-learn's transformer, and with new targets."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import QuantileTransformer

from covshift import AdaptedClassifier, DomainQuantileTransformer
from covshift.adapters.domain_quantile_transformer import feature_quantiles
from tests.shifted import make_problem


def naive_rank(x, values):
    """Share of the way through the sorted values, interpolated; the middle of tied ones."""
    if math.isnan(x):
        return math.nan
    values = sorted(value for value in values if not math.isnan(value))
    if x < values[0]:
        return 0.0
    if x > values[-1]:
        return 1.0
    equal = [i for i, value in enumerate(values) if value == x]
    if equal:
        return (equal[0] + equal[-1]) / 2 / (len(values) - 1)
    below = max(i for i, value in enumerate(values) if value < x)
    step = (x - values[below]) / (values[below + 1] - values[below])
    return (below + step) / (len(values) - 1)


def naive_score(rank):
    return rank if math.isnan(rank) else NormalDist().inv_cdf(min(max(rank, 1e-7), 1 - 1e-7))


def naive(rows, fitted, distribution):
    Z = np.empty(rows.shape)
    for i, j in np.ndindex(*rows.shape):
        rank = naive_rank(rows[i, j], fitted[:, j].tolist())
        Z[i, j] = naive_score(rank) if distribution == "normal" else rank
    return Z


@pytest.mark.parametrize("pooling", ["role", "domain"])
@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_against_a_loop(pooling, distribution):
    X, _, sample_domain, X_new = make_problem()
    X[:, 1] = np.round(X[:, 1], 1)  # ties
    ranks = DomainQuantileTransformer(output_distribution=distribution, pooling=pooling)
    Z = ranks.fit_transform(X, sample_domain=sample_domain)
    for domain in (0, 1, -1, -2):
        own = sample_domain == domain
        unit = own if pooling == "domain" else (sample_domain < 0) == (domain < 0)
        assert_allclose(Z[own], naive(X[own], X[unit], distribution), atol=1e-9)
        Z_new = ranks.transform(3 * X_new, sample_domain=domain)
        assert_allclose(Z_new, naive(3 * X_new, X[unit], distribution), atol=1e-9)


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_without_domains_it_is_scikit_learns(distribution):
    X, _, _, X_new = make_problem(n=100)
    theirs = QuantileTransformer(
        n_quantiles=50, output_distribution=distribution, subsample=None
    ).fit(X)
    ranks = DomainQuantileTransformer(n_quantiles=50, output_distribution=distribution).fit(X)
    assert_allclose(ranks.transform(X), theirs.transform(X), atol=1e-6)
    assert_allclose(ranks.transform(9 * X_new), theirs.transform(9 * X_new), atol=1e-6)
    assert ranks.quantiles_[0].shape == (50, 3)


def test_any_increasing_change_of_a_domain_is_undone():
    rng = np.random.RandomState(0)
    base = rng.standard_normal((300, 2))
    sample_domain = np.repeat([0, -1, -2], 100)
    base[100:200] = base[200:] = base[:100]
    X = base.copy()
    X[100:200] = np.exp(2 * base[100:200]) + 5
    X[200:] = base[200:] ** 3
    Z = DomainQuantileTransformer(pooling="domain").fit_transform(X, sample_domain=sample_domain)
    assert_allclose(Z[100:200], Z[:100], atol=1e-9)
    assert_allclose(Z[200:], Z[:100], atol=1e-9)
    y = (base[:, 0] > 0).astype(int)
    model = AdaptedClassifier(DomainQuantileTransformer(pooling="domain"))
    model.fit(X, y, sample_domain=sample_domain)
    predicted = model.predict(X[100:], sample_domain=sample_domain[100:])
    assert np.mean(predicted == y[100:]) > 0.95


def test_ends_are_clipped():
    X, _, sample_domain, _ = make_problem()
    normal = DomainQuantileTransformer().fit(X, sample_domain=sample_domain)
    ends = np.array([[-1e9] * 3, [1e9] * 3])
    assert_allclose(normal.transform(ends), [[-5.199338] * 3, [5.199338] * 3], rtol=1e-6)
    uniform = DomainQuantileTransformer(output_distribution="uniform")
    uniform.fit(X, sample_domain=sample_domain)
    assert_array_equal(uniform.transform(ends), [[0.0] * 3, [1.0] * 3])


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-30, 2.0**500])
def test_ranks_do_not_depend_on_the_size_of_features(size):
    """scikit-learn's normal scores do: all within 1e-7 of an end are at that end."""
    X, _, sample_domain, _ = make_problem()
    Z = DomainQuantileTransformer().fit_transform(X, sample_domain=sample_domain)
    scaled = DomainQuantileTransformer().fit_transform(size * X, sample_domain=sample_domain)
    assert_allclose(scaled, Z, atol=1e-9)


def test_constant_features_are_in_the_middle():
    X, _, sample_domain, _ = make_problem()
    X[sample_domain < 0, 1] = 0.1
    ranks = DomainQuantileTransformer().fit(X, sample_domain=sample_domain)
    for dtype in (np.float64, np.float32):
        rows = X[sample_domain < 0].astype(dtype)
        assert_array_equal(ranks.transform(rows)[:, 1], 0.0)
    outside = ranks.transform([[0.0, 0.0, 0.0], [0.0, 0.2, 0.0]])[:, 1]
    assert_allclose(outside, [-5.199338, 5.199338], rtol=1e-6)


def test_ties_at_an_end_are_in_the_middle_of_their_ranks():
    """A feature that is mostly zero, whose zeros are not its extremes."""
    X = np.concatenate([np.zeros(60), np.arange(1, 41)])[:, None]
    Z = DomainQuantileTransformer(output_distribution="uniform").fit_transform(X)
    assert_allclose(Z[:60], 59 / 2 / 99)
    assert_allclose(Z[60:, 0], np.arange(60, 100) / 99)


@pytest.mark.parametrize("n_quantiles", [7, 40, 1000])
def test_quantiles_are_numpys_and_rows_themselves_where_they_fall_on_rows(n_quantiles):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 3))
    X[::3, 2] = np.nan
    ours = feature_quantiles(X, n_quantiles)
    expected = np.nanquantile(X, np.linspace(0, 1, n_quantiles), axis=0)
    assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    assert (np.diff(ours, axis=0) >= 0).all()
    if n_quantiles == 40:
        assert_array_equal(ours[:, :2], np.sort(X[:, :2], axis=0))


def test_missing_values():
    X, _, sample_domain, X_new = make_problem()
    X[::7, 1] = np.nan
    X[sample_domain == -2, 2] = np.nan  # never seen there
    ranks = DomainQuantileTransformer(pooling="domain").fit(X, sample_domain=sample_domain)
    Z = ranks.transform(X, sample_domain=sample_domain)
    assert_array_equal(np.isnan(Z), np.isnan(X))
    own = sample_domain == 1
    assert_allclose(Z[own, 1:2], naive(X[own, 1:2], X[own, 1:2], "normal"), atol=0.2)
    unseen, role = (ranks.transform(X_new, sample_domain=domain) for domain in (-2, -99))
    inside = np.abs(role[:, 2]) < 5
    # -1 has all the values that the role has: 20 quantiles of theirs.
    assert_allclose(unseen[inside, 2], role[inside, 2], atol=0.2)
    assert np.isfinite(unseen).all()
    with pytest.raises(ValueError, match="infinity"):
        ranks.transform(np.where(X_new > 0, np.inf, X_new))


def test_small_and_unseen_domains_use_their_role():
    X, _, sample_domain, X_new = make_problem()
    small = np.flatnonzero(sample_domain == -2)[5:]
    X, sample_domain = np.delete(X, small, axis=0), np.delete(sample_domain, small)
    ranks = DomainQuantileTransformer(pooling="domain").fit(X, sample_domain=sample_domain)
    assert ranks.units_ == [-1, 0, 1, "source", "target"]
    for domain, rows in (
        (99, sample_domain >= 0),
        (-2, sample_domain < 0),
        (-9, sample_domain < 0),
    ):
        Z_new = ranks.transform(X_new, sample_domain=domain)
        assert_allclose(Z_new, naive(X_new, X[rows], "normal"), atol=1e-9)


@pytest.mark.parametrize("domain", [None, -7, "site C"])
def test_adapt_target(domain):
    X, _, sample_domain, X_new = make_problem()
    C = np.exp(X[:30])
    ranks = DomainQuantileTransformer().fit(X, sample_domain=sample_domain)
    before = ranks.transform(X_new)
    assert ranks.adapt_target(C, domain=domain) is ranks
    Z_new = ranks.transform(X_new, sample_domain=domain)
    assert_allclose(Z_new, naive(X_new, C, "normal"), atol=1e-9)
    if domain is not None:
        assert_array_equal(ranks.transform(X_new), before)
    with pytest.raises(ValueError, match="min_domain_size"):
        ranks.adapt_target(C[:9])


def test_float32():
    X, _, sample_domain, _ = make_problem()
    expected = DomainQuantileTransformer().fit_transform(X, sample_domain=sample_domain)
    rows = X.astype(np.float32)
    Z = DomainQuantileTransformer().fit_transform(rows, sample_domain=sample_domain)
    assert Z.dtype == np.float32
    assert_allclose(Z, expected, atol=1e-4)


def test_fewer_quantiles_than_rows():
    X, _, sample_domain, _ = make_problem(n=500)
    ranks = DomainQuantileTransformer(n_quantiles=20)
    Z = ranks.fit_transform(X, sample_domain=sample_domain)
    assert ranks.quantiles_[0].shape == (20, 3)
    fine = DomainQuantileTransformer().fit_transform(X, sample_domain=sample_domain)
    inside = np.abs(fine) < 1
    assert_allclose(Z[inside], fine[inside], atol=0.1)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_quantiles": 1}, "n_quantiles"),
        ({"n_quantiles": 10.0}, "n_quantiles"),
        ({"output_distribution": "gamma"}, "'normal', 'uniform'"),
        ({"pooling": "all"}, "'role', 'domain'"),
        ({"min_domain_size": 0}, "min_domain_size"),
    ],
)
def test_parameters(parameters, match):
    X, _, sample_domain, _ = make_problem()
    with pytest.raises((ValueError, TypeError), match=match):
        DomainQuantileTransformer(**parameters).fit(X, sample_domain=sample_domain)
