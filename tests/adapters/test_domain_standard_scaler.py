"""Standardizing by unit: against loops, with several domains, missing values and new targets."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from covshift import AdaptedClassifier, DomainStandardScaler, SourceStandardScaler
from tests.shifted import make_problem


def naive_standardize(x, rows):
    """(x_j - mean_j) / std_j over the rows that are not missing, one number at a time."""
    z = []
    for j in range(len(x)):
        values = [row[j] for row in rows if not math.isnan(row[j])]
        mean = sum(values) / len(values)
        std = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        z.append((x[j] - mean) / (std if std > 0 else 1.0))
    return z


def naive(X, sample_domain, X_fit, domain_fit, pooling):
    Z = []
    for x, domain in zip(X, sample_domain, strict=True):
        same = domain_fit == domain if pooling == "domain" else (domain_fit < 0) == (domain < 0)
        Z.append(naive_standardize(x, X_fit[same]))
    return np.array(Z)


@pytest.mark.parametrize("pooling", ["role", "domain"])
def test_against_a_loop(pooling):
    X, _, sample_domain, _ = make_problem()
    X[3, 1] = X[50, 2] = np.nan
    scaler = DomainStandardScaler(pooling=pooling).fit(X, sample_domain=sample_domain)
    Z = scaler.transform(X, sample_domain=sample_domain)
    assert_allclose(Z, naive(X, sample_domain, X, sample_domain, pooling), rtol=1e-12)
    units = ["source", "target"] if pooling == "role" else [-2, -1, 0, 1, "source", "target"]
    assert scaler.units_ == units
    assert scaler.means_.shape == scaler.scales_.shape == (len(units), 3)


def test_missing_values_stay_missing():
    X, _, sample_domain, X_new = make_problem()
    X[::7, 1] = np.nan
    scaler = DomainStandardScaler(pooling="domain").fit(X, sample_domain=sample_domain)
    Z = scaler.transform(X, sample_domain=sample_domain)
    assert_array_equal(np.isnan(Z), np.isnan(X))
    X_new[0, 0] = np.nan
    assert_array_equal(np.isnan(scaler.transform(X_new)), np.isnan(X_new))
    with pytest.raises(ValueError, match="infinity"):
        scaler.transform(np.where(np.isnan(X_new), np.inf, X_new))


def test_a_feature_never_seen_in_a_domain_uses_its_role():
    X, _, sample_domain, X_new = make_problem()
    X[sample_domain == -2, 1] = np.nan
    scaler = DomainStandardScaler(pooling="domain").fit(X, sample_domain=sample_domain)
    own, role = (scaler.transform(X_new, sample_domain=domain) for domain in (-2, -99))
    assert_array_equal(own[:, 1], role[:, 1])
    assert (own[:, 0] != role[:, 0]).all()


def test_without_domains_it_is_a_plain_scaler():
    X, _, _, X_new = make_problem()
    plain = StandardScaler().fit(X)
    for given in ({}, {"sample_domain": np.zeros(len(X), dtype=int)}):
        scaler = DomainStandardScaler().fit(X, **given)
        for where in ({}, {"sample_domain": 4}, {"sample_domain": -4}):
            assert_allclose(scaler.transform(X_new, **where), plain.transform(X_new), rtol=1e-12)


def test_small_and_unseen_domains_use_their_role():
    X, _, sample_domain, X_new = make_problem()
    small = np.flatnonzero(sample_domain == -2)[5:]
    X, sample_domain = np.delete(X, small, axis=0), np.delete(sample_domain, small)
    scaler = DomainStandardScaler(pooling="domain").fit(X, sample_domain=sample_domain)
    assert scaler.units_ == [-1, 0, 1, "source", "target"]
    for role, rows in (("source", sample_domain >= 0), ("target", sample_domain < 0)):
        expected = StandardScaler().fit(X[rows]).transform(X_new)
        for domain in {"source": [99], "target": [-2, -99]}[role]:
            assert_allclose(scaler.transform(X_new, sample_domain=domain), expected, rtol=1e-12)


def test_parts_can_be_left_out():
    X, _, sample_domain, _ = make_problem()
    target = sample_domain < 0
    centered = DomainStandardScaler(with_std=False).fit(X, sample_domain=sample_domain)
    assert_allclose(centered.transform(X[target]), X[target] - X[target].mean(axis=0))
    scaled = DomainStandardScaler(with_mean=False).fit(X, sample_domain=sample_domain)
    assert_allclose(scaled.transform(X[target]), X[target] / X[target].std(axis=0))


def test_constant_features_divide_by_one():
    X, _, sample_domain, _ = make_problem()
    X[sample_domain < 0, 1] = 3.0
    scaler = DomainStandardScaler().fit(X, sample_domain=sample_domain)
    Z = scaler.transform(X, sample_domain=sample_domain)
    assert_array_equal(Z[sample_domain < 0, 1], 0.0)
    assert_array_equal(scaler.transform([[0.0, 5.0, 0.0]])[:, 1], 2.0)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_are_scaled_without_centring(form):
    X, _, sample_domain, _ = make_problem()
    X[X < 0] = 0.0
    dense = DomainStandardScaler(with_mean=False, pooling="domain")
    expected = dense.fit_transform(X, sample_domain=sample_domain)
    rows = form(X)
    Z = DomainStandardScaler(with_mean=False, pooling="domain").fit_transform(
        rows, sample_domain=sample_domain
    )
    assert sparse.issparse(Z)
    assert_allclose(Z.toarray(), expected, rtol=1e-12)
    assert_array_equal(rows.toarray(), X)
    with pytest.raises(TypeError, match="with_mean=False"):
        DomainStandardScaler().fit(rows, sample_domain=sample_domain)


def test_float32_statistics_are_accurate():
    X, _, sample_domain, _ = make_problem(n=5000)
    X = (X + 1000).astype(np.float32)
    Z = DomainStandardScaler().fit_transform(X, sample_domain=sample_domain)
    assert Z.dtype == np.float32
    assert_allclose(Z[sample_domain < 0].mean(axis=0, dtype=float), 0.0, atol=1e-4)


@pytest.mark.parametrize("domain", [None, -7, "site C"])
def test_adapt_target(domain):
    X, _, sample_domain, X_new = make_problem()
    C = 3 * make_problem().X[:15] + 1
    scaler = DomainStandardScaler(pooling="domain").fit(X, sample_domain=sample_domain)
    before = scaler.transform(X_new)
    scaler.adapt_target(C, domain=domain)
    expected = StandardScaler().fit(C).transform(X_new)
    assert_allclose(scaler.transform(X_new, sample_domain=domain), expected, rtol=1e-12)
    if domain is not None:
        assert_array_equal(scaler.transform(X_new), before)
        assert_array_equal(scaler.domains_.min(), {-7: -7, "site C": -3}[domain])
    scaler.adapt_target(2 * C, domain=domain)  # learned again
    expected = StandardScaler().fit(2 * C).transform(X_new)
    assert_allclose(scaler.transform(X_new, sample_domain=domain), expected, rtol=1e-12)
    assert len(scaler.units_) == len(scaler.means_) == (6 if domain is None else 7)


def test_adapt_target_refuses():
    X, _, sample_domain, _ = make_problem()
    scaler = DomainStandardScaler().fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="min_domain_size=10"):
        scaler.adapt_target(X[:9])
    with pytest.raises(ValueError, match="negative integer"):
        scaler.adapt_target(X, domain=3)
    assert scaler.units_ == ["source", "target"]


@pytest.mark.parametrize(
    ("parameters", "match"),
    [({"pooling": "speaker"}, "'role', 'domain'"), ({"min_domain_size": 0}, "min_domain_size")],
)
def test_parameters(parameters, match):
    X, _, sample_domain, _ = make_problem()
    with pytest.raises(ValueError, match=match):
        DomainStandardScaler(**parameters).fit(X, sample_domain=sample_domain)


def test_magnitudes_whose_squares_overflow():
    X, _, sample_domain, _ = make_problem()
    with pytest.raises(ValueError, match="overflow float64"):
        DomainStandardScaler().fit(1e200 * X, sample_domain=sample_domain)


def test_each_speaker_by_itself_undoes_a_shift_of_each_speaker():
    rng = np.random.RandomState(0)
    sample_domain = np.repeat([0, 1, 2, -1, -2], 200)
    base = rng.standard_normal((1000, 2))
    y = (base[:, 0] > 0).astype(int)
    X = base * rng.uniform(0.2, 5, (5, 2))[sample_domain] + rng.normal(0, 9, (5, 2))[sample_domain]
    target = sample_domain < 0
    model = AdaptedClassifier(DomainStandardScaler(pooling="domain"))
    model.fit(X, y, sample_domain=sample_domain)
    predicted = model.predict(X[target], sample_domain=sample_domain[target])
    assert np.mean(predicted == y[target]) > 0.9


@pytest.mark.parametrize("scaler", [DomainStandardScaler(), SourceStandardScaler()], ids=repr)
def test_scalers_check_domains_and_targets_alike(scaler):
    X, _, sample_domain, X_new = make_problem()
    with pytest.raises(NotFittedError):
        clone(scaler).adapt_target(X)
    scaler = clone(scaler).fit(X, sample_domain=sample_domain)
    for wrong in ("Rome", [0.5] * len(X), [0]):
        with pytest.raises(ValueError, match="sample_domain"):
            scaler.transform(X, sample_domain=wrong)
    with pytest.raises(ValueError, match="features"):
        scaler.adapt_target(X[:, :2])
    scaler.adapt_target(X, domain="Rome")
    assert scaler.transform(X_new, sample_domain="Rome").shape == X_new.shape
