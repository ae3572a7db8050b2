import numpy as np
import pytest

from covshift.diagnosis.stability import _residual_products, largest_covariance, measure_stability
from covshift.measures.labeled_scores import balanced_accuracy
from covshift.selection.bench import Bench, Problem
from tests.diagnosis.degenerate import DEGENERATE


def stability_of(X, codes, domain, seed=0):
    nowhere = X[:2], np.full(2, -1)
    problem = Problem(X, codes, domain, *nowhere, int(codes.max()) + 1)
    return measure_stability(Bench([], problem, balanced_accuracy, seed=seed))


def domains_in_the_plane(seed, change=None, apart=0.6, n=300):
    """Three domains of normal rows, each elsewhere; ``change`` alters the rule in the first."""
    rng = np.random.RandomState(seed)
    domain = rng.randint(3, size=n)
    X = rng.standard_normal((n, 2)) + apart * rng.standard_normal((3, 2))[domain]
    logit = 3 * np.sin(X[:, 0]) + X[:, 1]
    if change is not None:
        logit = np.where(domain == 0, change(logit), logit)
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-logit))).astype(int), domain


def test_one_rule_for_all_is_seldom_refuted():
    found = [stability_of(*domains_in_the_plane(seed), seed) for seed in range(12)]
    assert all(one.tested for one in found)
    # Binomial(12, .05): more than 3 has a chance of .002.
    assert sum(one.refuted for one in found) <= 3


@pytest.mark.parametrize("change", [np.negative, lambda logit: logit + 3])
def test_another_rule_in_one_domain_is_found(change):
    found = [stability_of(*domains_in_the_plane(seed, change), seed) for seed in range(5)]
    assert sum(one.refuted for one in found) >= 4


def test_domains_apart_cannot_be_compared():
    found = stability_of(*domains_in_the_plane(0, np.negative, apart=40.0))
    assert (found.tested, found.obstacle, found.refuted) == (False, "no overlap", False)
    assert found.n_shared < 30


def test_one_domain_and_small_domains():
    X, codes, domain = domains_in_the_plane(0)
    assert stability_of(X, codes, 0 * domain).obstacle == "one domain"
    tiny = (np.arange(len(X)) < 5).astype(int)
    assert stability_of(X, codes, tiny).obstacle == "one domain"


def test_the_same_seed_gives_the_same_numbers():
    first, second = (stability_of(*domains_in_the_plane(0)) for _ in range(2))
    assert first == second
    assert first.to_dict()["pvalue"] == first.pvalue


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_a_record(name):
    problem = DEGENERATE[name]
    found = measure_stability(Bench([], problem, balanced_accuracy))
    assert found.tested == (found.obstacle == "")


def residuals(n=40, seed=0):
    rng = np.random.RandomState(seed)
    return rng.standard_normal((n, 3)), rng.standard_normal((n, 2)), rng.uniform(size=(n, 2))


def naive_statistic(R, D, W):
    n, largest = len(R), 0.0
    for k in range(R.shape[1]):
        for m in range(D.shape[1]):
            for j in range(W.shape[1]):
                products = [R[i, k] * D[i, m] * W[i, j] for i in range(n)]
                mean = sum(products) / n
                variance = sum((one - mean) ** 2 for one in products) / n
                largest = max(largest, abs(mean) * n**0.5 / variance**0.5)
    return largest


@pytest.mark.parametrize("seed", range(3))
def test_the_statistic_equals_its_formula(seed):
    R, D, W = residuals(seed=seed)
    products = _residual_products(R, D, W)
    assert products.shape == (40, 12)
    statistic, _ = largest_covariance(products, 9, np.random.RandomState(0))
    assert statistic == pytest.approx(naive_statistic(R, D, W), rel=1e-12)


def test_pvalues_are_uniform_where_residuals_are_independent():
    pvalues = [
        largest_covariance(
            _residual_products(*residuals(200, seed)), 99, np.random.RandomState(seed)
        )[1]
        for seed in range(300)
    ]
    # Binomial(300, .05 or .5), three standard deviations
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert abs(np.mean(pvalues) - 0.5) < 3 / np.sqrt(12 * 300) + 0.02


def test_dependent_residuals_are_found():
    R, D, W = residuals(200)
    D[:, 0] += 0.5 * R[:, 1]
    assert largest_covariance(_residual_products(R, D, W), 99, np.random.RandomState(0))[1] == 0.01


def test_products_that_do_not_vary_say_nothing():
    R, D, W = residuals()
    products = _residual_products(R, 0 * D, W)
    assert largest_covariance(products, 9, np.random.RandomState(0)) == (0.0, 1.0)
    half = np.hstack([products, _residual_products(R, D, W)])
    statistic, _ = largest_covariance(half, 9, np.random.RandomState(0))
    assert statistic == pytest.approx(naive_statistic(R, D, W))
