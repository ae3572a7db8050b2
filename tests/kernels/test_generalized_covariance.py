import numpy as np
import pytest

from covshift.kernels.generalized_covariance import largest_covariance, residual_products


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
    products = residual_products(R, D, W)
    assert products.shape == (40, 12)
    statistic, _ = largest_covariance(products, 9, np.random.RandomState(0))
    assert statistic == pytest.approx(naive_statistic(R, D, W), rel=1e-12)


def test_pvalues_are_uniform_where_residuals_are_independent():
    pvalues = [
        largest_covariance(
            residual_products(*residuals(200, seed)), 99, np.random.RandomState(seed)
        )[1]
        for seed in range(300)
    ]
    # Binomial(300, .05 or .5), three standard deviations
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert abs(np.mean(pvalues) - 0.5) < 3 / np.sqrt(12 * 300) + 0.02


def test_dependent_residuals_are_found():
    R, D, W = residuals(200)
    D[:, 0] += 0.5 * R[:, 1]
    assert largest_covariance(residual_products(R, D, W), 99, np.random.RandomState(0))[1] == 0.01


def test_products_that_do_not_vary_say_nothing():
    R, D, W = residuals()
    products = residual_products(R, 0 * D, W)
    assert largest_covariance(products, 9, np.random.RandomState(0)) == (0.0, 1.0)
    half = np.hstack([products, residual_products(R, D, W)])
    statistic, _ = largest_covariance(half, 9, np.random.RandomState(0))
    assert statistic == pytest.approx(naive_statistic(R, D, W))
