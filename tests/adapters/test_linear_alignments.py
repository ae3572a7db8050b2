"""CORAL and the linear Monge map: what both of them promise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.preprocessing import StandardScaler

from covshift import (
    AdaptedClassifier,
    CorrelationAlignment,
    LinearMongeAlignment,
    NothingToAdaptWarning,
)
from covshift.adapters.correlation_alignment import mean_and_covariance, square_roots
from tests.shifted import make_problem
from tests.twins import alignment_twins as twins

DIRECTIONS = ["source_to_target", "target_to_source"]
ALIGNMENTS = [(CorrelationAlignment, twins.coral), (LinearMongeAlignment, twins.monge)]
both_alignments = pytest.mark.parametrize(("alignment", "twin"), ALIGNMENTS)
both_directions = pytest.mark.parametrize("direction", DIRECTIONS)


def sides(sample_domain, direction):
    """Masks of the rows that move and of those that stay."""
    source = sample_domain >= 0
    return (source, ~source) if direction == "source_to_target" else (~source, source)


@both_alignments
@both_directions
@pytest.mark.parametrize("shrinkage", [None, 0.3])
def test_against_a_loop(alignment, twin, direction, shrinkage):
    X, _, sample_domain, X_new = make_problem()
    moving, still = sides(sample_domain, direction)
    model = alignment(direction=direction, shrinkage=shrinkage)
    Z = model.fit_transform(X, sample_domain=sample_domain)
    a = shrinkage or 0.0
    assert_allclose(Z[moving], twin(X[moving], X[moving], X[still], a), rtol=1e-9, atol=1e-10)
    assert_array_equal(Z[still], X[still])
    assert_array_equal(model.shrinkages_, [a])

    role = 0 if direction == "source_to_target" else -1
    expected = twin(X_new, X[moving], X[still], a)
    for domain in (role, 50 if role == 0 else -50):  # new rows, also of a domain never seen
        Z_new = model.transform(X_new, sample_domain=domain)
        assert_allclose(Z_new, expected, rtol=1e-9, atol=1e-10)
    assert_array_equal(model.transform(X_new, sample_domain=-1 - role), X_new)


@both_alignments
@both_directions
@pytest.mark.parametrize("pooling", ["role", "domain"])
def test_moments_agree_after_alignment(alignment, twin, direction, pooling):
    X, _, sample_domain, _ = make_problem()
    moving, still = sides(sample_domain, direction)
    model = alignment(direction=direction, shrinkage=None, pooling=pooling)
    Z = model.fit_transform(X, sample_domain=sample_domain)
    units = [moving]
    if pooling == "domain":
        units = [sample_domain == domain for domain in np.unique(sample_domain[moving])]
    for unit in units:
        assert_allclose(Z[unit].mean(axis=0), X[still].mean(axis=0), atol=1e-8)
        assert_allclose(np.cov(Z[unit].T, bias=True), np.cov(X[still].T, bias=True), atol=1e-8)


@both_alignments
@both_directions
def test_small_domains_move_as_their_role(alignment, twin, direction):
    X, _, sample_domain, X_new = make_problem()
    moving = sides(sample_domain, direction)[0]
    small = 1 if direction == "source_to_target" else -2
    rest = np.flatnonzero(sample_domain == small)[5:]
    X, sample_domain = np.delete(X, rest, axis=0), np.delete(sample_domain, rest)
    moving, still = sides(sample_domain, direction)
    model = alignment(direction=direction, shrinkage=None, pooling="domain")
    model.fit(X, sample_domain=sample_domain)
    assert model.units_ == ([0, "source"] if small == 1 else [-1, "target"])
    own = model.transform(X_new, sample_domain=-1 if small < 0 else 0)
    expected = twin(X_new, X[sample_domain == model.units_[0]], X[still])
    assert_allclose(own, expected, rtol=1e-9, atol=1e-10)
    pooled = twin(X_new, X[moving], X[still])
    for domain in (small, 50 if small > 0 else -50):
        Z_new = model.transform(X_new, sample_domain=domain)
        assert_allclose(Z_new, pooled, rtol=1e-9, atol=1e-10)


@both_alignments
@pytest.mark.parametrize("domain", [None, -7, "site C"])
def test_adapt_target(alignment, twin, domain):
    X, _, sample_domain, X_new = make_problem()
    C = X[:30] @ np.array([[2.0, 0.3, 0.0], [0.0, 1.0, -0.5], [0.1, 0.0, 0.4]]) + 3
    model = alignment(direction="target_to_source", shrinkage=None)
    model.fit(X, sample_domain=sample_domain)
    before = model.transform(X_new)
    assert model.adapt_target(C, domain=domain) is model
    expected = twin(X_new, C, X[sample_domain >= 0])
    Z_new = model.transform(X_new, sample_domain=domain)
    assert_allclose(Z_new, expected, rtol=1e-8, atol=1e-9)
    if domain is not None:
        assert_array_equal(model.transform(X_new), before)
    with pytest.raises(ValueError, match="min_domain_size"):
        model.adapt_target(C[:5])


@both_alignments
def test_adapt_target_needs_a_source_that_stays(alignment, twin):
    X, _, sample_domain, _ = make_problem()
    model = alignment().fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="refit"):
        model.adapt_target(X)


@both_alignments
@both_directions
def test_without_domains_rows_stay(alignment, twin, direction):
    X, _, sample_domain, X_new = make_problem()
    model = alignment(direction=direction, shrinkage=None)
    with pytest.warns(NothingToAdaptWarning, match="rows stay as they are"):
        model.fit(X)
    for domain in (None, 0, -1):
        Z_new = model.transform(X_new, sample_domain=domain)
        assert_array_equal(Z_new, X_new)
        assert not np.shares_memory(Z_new, X_new)
    with pytest.raises(ValueError, match="no target rows"):
        alignment().fit(X, sample_domain=np.abs(sample_domain))
    if direction == "target_to_source":
        model.adapt_target(2 * X + 1, domain="later")
        Z_new = model.transform(X_new, sample_domain="later")
        assert_allclose(Z_new, (X_new - 1) / 2)
        assert_array_equal(model.transform(X_new, sample_domain=-50), X_new)


@both_alignments
def test_fewer_rows_than_features(alignment, twin):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20, 50)) * np.linspace(0.1, 9, 50)
    sample_domain = np.repeat([0, -1], 10)
    for shrinkage in ("auto", None):
        model = alignment(shrinkage=shrinkage).fit(X, sample_domain=sample_domain)
        Z = model.transform(rng.standard_normal((100, 50)), sample_domain=0)
        # Shrunk covariances stretch a direction within reason, and none is blown up by noise.
        assert np.abs(Z).max() < 1e4
    assert 0 < alignment().fit(X, sample_domain=sample_domain).shrinkages_[0] <= 1


@both_alignments
def test_directions_without_variance_get_the_other_mean(alignment, twin):
    X, _, sample_domain, _ = make_problem()
    X[sample_domain >= 0, 1] = 4.0
    model = alignment(shrinkage=None)
    Z = model.fit_transform(X, sample_domain=sample_domain)
    target_mean = X[sample_domain < 0].mean(axis=0)
    assert_allclose(Z[sample_domain >= 0].mean(axis=0), target_mean)
    one = model.transform([[0.0, 4.0, 0.0], [0.0, 9.0, 0.0]], sample_domain=0)
    assert_allclose(one[0], one[1])


@both_alignments
def test_float32_is_computed_in_double_precision(alignment, twin):
    X, _, sample_domain, _ = make_problem(n=200)
    X = (X + 1000).astype(np.float32)
    source = sample_domain >= 0
    Z = alignment(shrinkage=None).fit_transform(X, sample_domain=sample_domain)
    assert Z.dtype == np.float32
    expected = twin(X[source].astype(float), X[source].astype(float), X[~source].astype(float))
    assert_allclose(Z[source], expected, rtol=1e-6)


@both_alignments
@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"direction": "both"}, "'source_to_target', 'target_to_source'"),
        ({"shrinkage": "much"}, "'auto', None"),
        ({"shrinkage": 1.5}, "shrinkage"),
        ({"shrinkage": -0.1}, "shrinkage"),
        ({"shrinkage": np.nan}, "shrinkage"),
        ({"shrinkage": [0.1]}, "shrinkage"),
        ({"pooling": "all"}, "'role', 'domain'"),
        ({"min_domain_size": 0}, "min_domain_size"),
    ],
)
def test_parameters(alignment, twin, parameters, match):
    X, _, sample_domain, _ = make_problem()
    with pytest.raises((ValueError, TypeError), match=match):
        alignment(**parameters).fit(X, sample_domain=sample_domain)


@both_alignments
def test_large_and_small_magnitudes(alignment, twin):
    X, _, sample_domain, _ = make_problem()
    with pytest.raises(ValueError, match="overflow float64"):
        alignment().fit(1e200 * X, sample_domain=sample_domain)
    expected = alignment().fit_transform(X, sample_domain=sample_domain)
    for size in (1e90, 1e-100):
        Z = alignment().fit_transform(size * X, sample_domain=sample_domain)
        assert_allclose(Z / size, expected, rtol=1e-6)


@both_alignments
@both_directions
def test_a_stretched_domain_is_classified_again(alignment, twin, direction):
    rng = np.random.RandomState(0)
    base = rng.standard_normal((800, 2))
    y = (base[:, 0] + base[:, 1] > 0).astype(int)
    X = base.copy()
    X[400:] = base[400:] * [5.0, 0.3] + [4.0, -2.0]
    sample_domain = np.repeat([0, -1], 400)
    model = AdaptedClassifier(alignment(direction=direction))
    model.fit(X, y, sample_domain=sample_domain)
    assert np.mean(model.predict(X[400:]) == y[400:]) > 0.9
    plain = AdaptedClassifier().fit(X, y, sample_domain=sample_domain)
    assert np.mean(plain.predict(X[400:]) == y[400:]) < 0.8


@both_alignments
def test_a_classifier_learns_a_new_target_without_the_training_data(alignment, twin):
    rng = np.random.RandomState(0)
    base = rng.standard_normal((900, 2))
    y = (base[:, 0] + base[:, 1] > 0).astype(int)
    X = base.copy()
    X[300:600] = base[300:600] * [5.0, 0.3] + [4.0, -2.0]
    later = base[600:] * [0.2, 3.0] - 6
    model = AdaptedClassifier(alignment(direction="target_to_source"))
    model.fit(X[:600], y[:600], sample_domain=np.repeat([0, -1], 300))
    before = model.predict(X[300:600])
    model.adapt_target(later, domain="later")
    assert np.mean(model.predict(later, sample_domain="later") == y[600:]) > 0.9
    assert np.mean(model.predict(later) == y[600:]) < 0.8
    assert_array_equal(model.predict(X[300:600]), before)


# Promises of one of them only.


def test_coral_can_leave_means_alone():
    X, _, sample_domain, _ = make_problem()
    source = sample_domain >= 0
    coral = CorrelationAlignment(align_mean=False, shrinkage=None)
    Z = coral.fit_transform(X, sample_domain=sample_domain)
    expected = twins.coral(X[source], X[source], X[~source], align_mean=False)
    assert_allclose(Z[source], expected, rtol=1e-9)
    assert_allclose(Z[source].mean(axis=0), X[source].mean(axis=0))


def test_monge_maps_gaussian_to_gaussian_and_moves_less_than_coral():
    """Moments that are exact make the map exact: the known optimal cost is reached."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((600, 4)) @ rng.standard_normal((4, 4))
    X[300:] = X[300:] @ rng.standard_normal((4, 4)) + 1
    sample_domain = np.repeat([0, -1], 300)
    moved = {}
    for alignment in (LinearMongeAlignment, CorrelationAlignment):
        model = alignment(shrinkage=None)
        Z = model.fit_transform(X, sample_domain=sample_domain)
        moved[alignment] = np.square(Z[:300] - X[:300]).sum(axis=1).mean()
    (m1, C1), (m2, C2) = (twins.mean_and_covariance(rows) for rows in (X[:300], X[300:]))
    root = twins.power(C1, 0.5)
    # The squared Bures-Wasserstein distance between the two Gaussians.
    cost = np.square(m1 - m2).sum() + np.trace(C1 + C2 - 2 * twins.power(root @ C2 @ root, 0.5))
    assert_allclose(moved[LinearMongeAlignment], cost, rtol=1e-10)
    assert moved[CorrelationAlignment] > cost


# The kernel that both stand on.


@pytest.mark.parametrize("shape", [(10, 30), (40, 5), (500, 12)])
def test_shrinkage_is_that_of_ledoit_and_wolf(shape):
    rng = np.random.RandomState(0)
    X = rng.standard_normal(shape) @ rng.standard_normal((shape[1], shape[1])) + 7
    X *= np.linspace(0.01, 100, shape[1])
    _, C, intensity = mean_and_covariance(X, None)
    expected = ledoit_wolf_shrinkage(StandardScaler().fit_transform(X))
    assert_allclose(intensity, expected, rtol=1e-9)
    assert_allclose(C, twins.mean_and_covariance(X, expected)[1], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9])
@pytest.mark.parametrize("adapter", [CorrelationAlignment, LinearMongeAlignment])
def test_constants_change_nothing(adapter, constant):
    """They have no correlations, which are what is shrunk."""
    rng = np.random.RandomState(0)
    X, sample_domain = rng.standard_normal((200, 4)), np.repeat([0, -1], 100)
    X[sample_domain < 0] = X[sample_domain < 0] * 1.5 + 1
    wider = np.column_stack([X, np.full(200, constant)])
    narrow, wide = (adapter().fit(rows, sample_domain=sample_domain) for rows in (X, wider))
    assert_allclose(wide.shrinkages_, narrow.shrinkages_, rtol=1e-12)
    expected = narrow.transform(X, sample_domain=sample_domain, allow_source=True)
    moved = wide.transform(wider, sample_domain=sample_domain, allow_source=True)
    assert_allclose(moved[:, :4], expected, atol=1e-9)
    assert_allclose(moved[:, 4], constant)


def test_shrinkage_where_there_is_nothing_to_shrink():
    for X in (np.ones((5, 3)), np.ones((1, 3)), np.arange(5.0)[:, None], 1e-300 * np.eye(3)):
        assert mean_and_covariance(X, None)[2] == 0.0


def test_square_roots():
    rng = np.random.RandomState(0)
    C = np.cov(rng.standard_normal((4, 100)))
    root, inverse = square_roots(C)
    assert_allclose(root @ root, C, atol=1e-12)
    assert_allclose(inverse @ C @ inverse, np.eye(4), atol=1e-12)
    C[:, 2] = C[2] = 0.0
    root, inverse = square_roots(C)
    assert_allclose(inverse, np.linalg.pinv(root), atol=1e-10)
    assert_array_equal(square_roots(np.zeros((2, 2))), np.zeros((2, 2, 2)))
