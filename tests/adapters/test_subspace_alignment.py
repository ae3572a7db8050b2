"""Subspace alignment: against loops, what it cannot change, and its explicit choices."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.svm import LinearSVC

from covshift import AdaptedClassifier, NothingToAdaptWarning, SubspaceAlignment, stack_domains
from covshift.adapters.subspace_alignment import principal_directions
from covshift.datasets import make_periodic_shift, make_radial_shift, make_smooth_shift
from tests.shifted import make_problem
from tests.twins.alignment_twins import mean_and_covariance


def naive_directions(rows, n_components):
    """Eigenvectors of the covariance, largest eigenvalue first, largest entry positive."""
    values, vectors = np.linalg.eigh(mean_and_covariance(rows)[1])
    directions = []
    for k in sorted(range(len(values)), key=lambda k: -values[k])[:n_components]:
        v = vectors[:, k]
        directions.append(v if v[np.argmax(np.abs(v))] > 0 else -v)
    return np.array(directions).T


def naive(rows, role, source, target, n_components):
    T, U = naive_directions(source, n_components), naive_directions(target, n_components)
    Z = []
    for x in rows:
        if role == "source":
            inside = sum((x @ T[:, k]) * T[:, k] for k in range(n_components))  # x T T'
            Z.append([inside @ U[:, k] for k in range(n_components)])
        else:
            Z.append([x @ U[:, k] for k in range(n_components)])
    return np.array(Z)


def standardized(X, sample_domain, pooling, center, scale):
    Z = X.copy()
    for domain in np.unique(sample_domain):
        own = sample_domain == domain
        unit = own if pooling == "domain" else (sample_domain < 0) == (domain < 0)
        if center:
            Z[own] -= X[unit].mean(axis=0)
        if scale:
            Z[own] /= X[unit].std(axis=0)
    return Z


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("pooling", ["role", "domain"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_against_a_loop(n_components, pooling, center, scale):
    X, _, sample_domain, _ = make_problem()
    sa = SubspaceAlignment(n_components, center=center, scale=scale, pooling=pooling)
    Z = sa.fit_transform(X, sample_domain=sample_domain)
    S = standardized(X, sample_domain, pooling, center, scale)
    source = sample_domain >= 0
    for role, rows in (("source", source), ("target", ~source)):
        expected = naive(S[rows], role, S[source], S[~source], n_components)
        assert_allclose(Z[rows], expected, rtol=1e-9, atol=1e-10)


def test_new_rows_and_unseen_domains():
    X, _, sample_domain, X_new = make_problem()
    source = sample_domain >= 0
    sa = SubspaceAlignment(2, center=True, pooling="domain").fit(X, sample_domain=sample_domain)
    S = standardized(X, sample_domain, "domain", True, False)
    for domain, own in ((1, sample_domain == 1), (9, source), (-2, sample_domain == -2),
                        (-9, ~source), (None, ~source)):  # fmt: skip
        role = "source" if domain is not None and domain >= 0 else "target"
        expected = naive(X_new - X[own].mean(axis=0), role, S[source], S[~source], 2)
        Z_new = sa.transform(X_new, sample_domain=domain)
        assert_allclose(Z_new, expected, rtol=1e-9, atol=1e-10)


def test_small_domains_use_the_mean_of_their_role():
    X, _, sample_domain, X_new = make_problem()
    sa = SubspaceAlignment(2, center=True, pooling="domain", min_domain_size=21)
    pooled = SubspaceAlignment(2, center=True).fit(X, sample_domain=sample_domain)
    sa.fit(X, sample_domain=sample_domain)
    assert sa.units_ == ["source", "target"]
    Z_new = sa.transform(X_new, sample_domain=-2)
    assert_array_equal(Z_new, pooled.transform(X_new, sample_domain=-2))


def test_all_components_are_one_rotation_and_warn():
    X, _, sample_domain, _ = make_problem()
    sa = SubspaceAlignment(3)
    with pytest.warns(NothingToAdaptWarning, match="has no effect"):
        Z = sa.fit_transform(X, sample_domain=sample_domain)
    U = sa.target_components_
    assert_allclose(U @ U.T, np.eye(3), atol=1e-12)
    assert_allclose(Z, X @ U.T, atol=1e-12)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    assert_allclose(np.linalg.norm(Z[:, None] - Z, axis=2), distances, atol=1e-10)
    with pytest.warns(NothingToAdaptWarning, match="has no effect"):
        SubspaceAlignment().fit(X[:, :1], sample_domain=sample_domain)


@pytest.mark.filterwarnings("ignore::covshift.NothingToAdaptWarning")
@pytest.mark.parametrize("make", [make_radial_shift, make_periodic_shift, make_smooth_shift])
def test_the_papers_rows_of_no_change(make):
    """Two features and P = 2: "no change" in the paper's tables."""
    data = make(random_state=0)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    plain, aligned = (
        AdaptedClassifier(adapter, LinearSVC(random_state=0, tol=1e-8, max_iter=100_000))
        .fit(X, y, sample_domain=sample_domain)
        .predict(data.X_test)
        for adapter in (None, SubspaceAlignment(2))
    )
    assert np.mean(plain != aligned) <= 0.01


def test_default_number_of_components():
    rng = np.random.RandomState(0)
    for n_features, n_target, expected in ((2, 50, 1), (7, 50, 4), (40, 50, 20), (40, 9, 8)):
        X = rng.standard_normal((60 + n_target, n_features))
        sample_domain = np.repeat([0, -1], [60, n_target])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sa = SubspaceAlignment().fit(X, sample_domain=sample_domain)
        assert sa.n_components_ == expected
        assert sa.transform(X).shape == (len(X), expected)
        assert sa.alignment_.shape == (expected, expected)


def test_without_domains_it_is_the_sources_projection():
    X, _, sample_domain, X_new = make_problem()
    sa = SubspaceAlignment(2, center=True)
    with pytest.warns(NothingToAdaptWarning, match="source's own"):
        sa.fit(X)
    Z_new, expected = sa.transform(X_new), PCA(2).fit(X).transform(X_new)
    assert_allclose(np.abs(Z_new), np.abs(expected), rtol=1e-9)
    assert_array_equal(sa.transform(X_new, sample_domain=-1), Z_new)
    with pytest.raises(ValueError, match="no target rows"):
        SubspaceAlignment(2).fit(X, sample_domain=np.abs(sample_domain))


def test_adapt_target_says_refit():
    X, _, sample_domain, _ = make_problem()
    sa = SubspaceAlignment(2).fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="refit"):
        sa.adapt_target(X)


def test_float32():
    X, _, sample_domain, _ = make_problem()
    expected = SubspaceAlignment(2).fit_transform(X, sample_domain=sample_domain)
    Z = SubspaceAlignment(2).fit_transform(X.astype(np.float32), sample_domain=sample_domain)
    assert Z.dtype == np.float32
    assert_allclose(Z, expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(100, 8), (6, 20)])
@pytest.mark.parametrize("size", [1.0, 1e150, 1e-150])
def test_directions_are_those_of_pca(shape, size):
    rng = np.random.RandomState(0)
    X = rng.standard_normal(shape) * np.linspace(1, 9, shape[1]) + 100
    ours = principal_directions(size * X, 4)
    theirs = PCA(4, svd_solver="full").fit(X).components_
    assert_allclose(np.abs(np.sum(ours * theirs, axis=1)), 1.0, rtol=1e-9)
    assert_allclose(ours @ ours.T, np.eye(4), atol=1e-12)
    assert (ours[np.arange(4), np.abs(ours).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 4}, r"features \(3\)"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"pooling": "all"}, "'role', 'domain'"),
        ({"min_domain_size": 0}, "min_domain_size"),
    ],
)
def test_parameters(parameters, match):
    X, _, sample_domain, _ = make_problem()
    with pytest.raises((ValueError, TypeError), match=match):
        SubspaceAlignment(**parameters).fit(X, sample_domain=sample_domain)


def test_a_turned_subspace_is_turned_back():
    """Two strong features are mixed with others in the target; the source knows them alone."""
    rng = np.random.RandomState(0)
    base = rng.standard_normal((1000, 6)) * [4.0, 2.0, 0.1, 0.1, 0.1, 0.1]
    y = (base[:, 0] > 0).astype(int)
    turn = np.eye(6)
    turn[:4, :4] = np.kron([[0.5, np.sqrt(0.75)], [-np.sqrt(0.75), 0.5]], np.eye(2))
    X = base.copy()
    X[500:] = base[500:] @ turn
    sample_domain = np.repeat([0, -1], 500)
    model = AdaptedClassifier(SubspaceAlignment(2)).fit(X, y, sample_domain=sample_domain)
    assert np.mean(model.predict(X[500:]) == y[500:]) > 0.95
    Z = model.transform(X, sample_domain=sample_domain)
    assert_allclose(model.adapter_.alignment_, np.diag([0.5, 0.5]), atol=0.05)
    assert Z.shape == (1000, 2)
