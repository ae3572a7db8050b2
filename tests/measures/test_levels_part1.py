"""How often the two-sample tests reject when both samples come from one distribution."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from covshift.measures.classifier_two_sample_test import classifier_two_sample_test
from covshift.measures.ks import ks_test

ALPHA = 0.05
HIGHEST = 0.065  # what 2,000 simulations may show
N_SLOW, N_QUICK = 2000, 200
# 200 simulations of a test of level 5 % exceed this in one case of 1,000.
QUICK_HIGHEST = binom.ppf(0.999, N_QUICK, ALPHA) / N_QUICK


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of tiny products wait for each other when the cores are busy: five times slower."""
    with threadpool_limits(1):
        yield


def ks(n, k, n_features, decimals=None):
    def simulate(rng):
        A, B = rng.normal(size=(n, n_features)), rng.normal(size=(k, n_features))
        if decimals is not None:
            A, B = A.round(decimals), B.round(decimals)
        return ks_test(A, B).pvalue

    return simulate


def ks_with_random_weights(n, k, n_features):
    """Weights that have nothing to do with the rows."""

    def simulate(rng):
        A, B = rng.normal(size=(n, n_features)), rng.normal(size=(k, n_features))
        weights_A, weights_B = rng.lognormal(size=n), rng.exponential(size=k)
        return ks_test(A, B, weights_A=weights_A, weights_B=weights_B).pvalue

    return simulate


def ks_with_importance_weights(n, k, n_features):
    """A comes from elsewhere and is weighted to be distributed as B."""

    def simulate(rng):
        A, B = rng.normal(size=(n, n_features)), rng.normal(size=(k, n_features))
        A[:, 0] -= 0.5
        return ks_test(A, B, weights_A=np.exp(0.5 * A[:, 0])).pvalue

    return simulate


def c2st(n, k, n_features, classifier=None, cv=5):
    def simulate(rng):
        A, B = rng.normal(size=(n, n_features)), rng.normal(size=(k, n_features))
        test = classifier_two_sample_test(
            A,
            B,
            classifier=classifier,
            cv=cv,
            random_state=int(rng.integers(2**31)),
            n_importance_repeats=0,
        )
        return test.pvalue

    return simulate


KS_CASES = {
    "ks, 11 + 11, one feature": ks(11, 11, 1),
    "ks, 20 + 30": ks(20, 30, 5),
    "ks, 200 + 60, 20 features": ks(200, 60, 20),
    "ks, 500 + 300, ties": ks(500, 300, 3, decimals=1),
    "ks, random weights, 20 + 30": ks_with_random_weights(20, 30, 5),
    "ks, random weights, 200 + 150": ks_with_random_weights(200, 150, 2),
    "ks, importance weights, 30 + 30": ks_with_importance_weights(30, 30, 2),
    "ks, importance weights, 300 + 100": ks_with_importance_weights(300, 100, 2),
}
C2ST_CASES = {
    "c2st, 40 + 40, 2 features": c2st(40, 40, 2),
    "c2st, 40 + 40, 20 features": c2st(40, 40, 20),
    "c2st, 200 + 200, 2 features": c2st(200, 200, 2),
    "c2st, 200 + 200, 20 features": c2st(200, 200, 20),
    "c2st, 40 + 200, 20 features": c2st(40, 200, 20),
    "c2st, 200 + 60, 5 features": c2st(200, 60, 5),
    "c2st, 100 + 100, 10 folds": c2st(100, 100, 10, cv=10),
    "c2st, 100 + 100, 2 folds": c2st(100, 100, 10, cv=2),
    "c2st, nearest neighbors": c2st(60, 40, 5, classifier=KNeighborsClassifier(5)),
    "c2st, kernel machine": c2st(60, 40, 5, classifier=SVC()),
    "c2st, small forest": c2st(40, 40, 5, classifier=RandomForestClassifier(10, max_depth=3)),
}
CASES = KS_CASES | C2ST_CASES
QUICK_CASES = [*KS_CASES, "c2st, 40 + 40, 20 features", "c2st, 200 + 60, 5 features"]


@lru_cache
def pvalues(case, n_simulations):
    simulate = CASES[case]
    return np.array([simulate(np.random.default_rng([seed, 4])) for seed in range(n_simulations)])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_level(case):
    rate = (pvalues(case, N_SLOW) <= ALPHA).mean()
    print(f"{case}: {rate:.4f}")  # shown by pytest -rA
    assert rate <= HIGHEST


@pytest.mark.parametrize("case", QUICK_CASES)
def test_level_of_a_few_simulations(case):
    assert (pvalues(case, N_QUICK) <= ALPHA).mean() <= QUICK_HIGHEST


def test_the_spread_of_the_classifier_test_is_that_of_its_null_hypothesis():
    """Sharper than the rate: folds taken for independent would give 1.4 (with an error of .07)."""
    scores = norm.isf(pvalues("c2st, 40 + 40, 20 features", N_QUICK))
    assert 0.8 < scores.std() < 1.15
    assert abs(scores.mean()) < 0.3


@pytest.mark.parametrize("case", ["ks, 500 + 300, ties", "c2st, 40 + 40, 20 features"])
def test_the_tests_do_reject(case):
    """A test that never rejects would pass all of the levels."""
    assert (pvalues(case, N_QUICK) <= ALPHA).mean() >= 0.01
