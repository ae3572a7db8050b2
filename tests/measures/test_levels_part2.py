"""How often the paired tests reject when there is nothing to find."""

import numpy as np
import pytest
from scipy import stats

from covshift.measures.paired_tests import (
    clustered_bootstrap_interval,
    clustered_permutation_test,
    paired_wilcoxon,
)

ALPHA = 0.05
# Limits for 2,000 simulations of any test here.
LOWEST, HIGHEST = 0.035, 0.065
N_SLOW, N_QUICK = 2000, 300
# Where 300 simulations of a test of level 5 % fall in 99.9 % of all cases.
QUICK_BOUNDS = np.array(stats.binom.interval(0.999, N_QUICK, ALPHA)) / N_QUICK


def clustered_noise(rng, n_clusters=12, n_trials=120):
    """Differences of correlation .9 within speakers drawn at random, as trials draw them."""
    groups = rng.permutation(
        np.concatenate(
            [np.arange(n_clusters), rng.integers(n_clusters, size=n_trials - n_clusters)]
        )
    )
    speakers = np.sqrt(0.9) * rng.standard_normal(n_clusters)
    return speakers[groups] + np.sqrt(0.1) * rng.standard_normal(n_trials), groups


def wilcoxon_without_ties(rng):
    return paired_wilcoxon(rng.standard_normal(30), rng.standard_normal(30)).pvalue


def wilcoxon_with_ties_and_zeros(rng):
    """Recalls over 20 test rows: of 40 differences about one in eight is zero."""
    a, b = rng.binomial(20, 0.7, size=(2, 40)) / 20
    return paired_wilcoxon(a, b).pvalue


def wilcoxon_of_many_pairs(rng):
    """More pairs than the exact distribution is computed for."""
    a, b = rng.binomial(20, 0.7, size=(2, 500)) / 20
    return paired_wilcoxon(a, b).pvalue


def clustered_by_enumeration(rng):
    return clustered_permutation_test(*clustered_noise(rng)).pvalue


def clustered_by_draws(rng):
    noise = clustered_noise(rng, n_clusters=25)
    seed = int(rng.integers(2**31))
    return clustered_permutation_test(*noise, n_permutations=499, random_state=seed).pvalue


def clustered_of_skewed_sizes(rng):
    """Half of the trials are one speaker's."""
    differences, groups = clustered_noise(rng)
    groups[: len(groups) // 2] = 0
    differences[groups == 0] = rng.standard_normal()
    return clustered_permutation_test(differences, groups).pvalue


def wilcoxon_that_ignores_the_speakers(rng):
    differences, _ = clustered_noise(rng)
    return paired_wilcoxon(differences, np.zeros(len(differences))).pvalue


TESTS = [
    wilcoxon_without_ties,
    wilcoxon_with_ties_and_zeros,
    wilcoxon_of_many_pairs,
    clustered_by_enumeration,
    clustered_by_draws,
    clustered_of_skewed_sizes,
]


def rejection_rate(test, n_simulations, seed):
    rng = np.random.default_rng(seed)
    return np.mean([test(rng) <= ALPHA for _ in range(n_simulations)])


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_level(test):
    rate = rejection_rate(test, N_SLOW, seed=0)
    print(f"{test.__name__}: {rate:.4f}")
    assert LOWEST <= rate <= HIGHEST


@pytest.mark.parametrize("test", TESTS)
def test_level_in_a_sample(test):
    low, high = QUICK_BOUNDS
    assert low <= rejection_rate(test, N_QUICK, seed=1) <= high


@pytest.mark.slow
def test_ignoring_the_speakers_rejects_far_too_often():
    rate = rejection_rate(wilcoxon_that_ignores_the_speakers, N_SLOW, seed=0)
    print(f"wilcoxon_that_ignores_the_speakers: {rate:.4f}")
    assert rate > 0.4


def test_ignoring_the_speakers_rejects_far_too_often_in_a_sample():
    rate = rejection_rate(wilcoxon_that_ignores_the_speakers, N_QUICK, seed=1)
    assert rate > 4 * QUICK_BOUNDS[1]


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5])
def test_too_few_clusters_never_reject(n_clusters):
    """2 / 2^5 > .05: the test says so by its smallest p-value."""
    rng = np.random.default_rng(0)
    results = [clustered_permutation_test(*clustered_noise(rng, n_clusters)) for _ in range(100)]
    assert all(result.smallest_pvalue > ALPHA for result in results)
    assert all(result.pvalue > ALPHA for result in results)


def coverage(n_clusters, n_simulations, seed, draw):
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(n_simulations):
        means, groups = draw(rng, n_clusters), np.arange(n_clusters)
        low, high = clustered_bootstrap_interval(
            means, groups, n_resamples=999, random_state=int(rng.integers(2**31))
        )
        covered += low <= 0 <= high
    return covered / n_simulations


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clusters", "low", "high"),
    [(4, 0.85, 0.91), (6, 0.91, 0.95), (10, 0.93, 0.97), (30, 0.93, 0.97)],
)
def test_coverage_of_the_bootstrap_interval(n_clusters, low, high):
    """Few clusters are covered less often than stated, as the docstring says."""
    rate = coverage(n_clusters, N_SLOW, 0, lambda rng, n: rng.standard_normal(n))
    print(f"coverage with {n_clusters} clusters: {rate:.4f}")
    assert low <= rate <= high


@pytest.mark.slow
def test_power_against_a_shift_of_all_speakers():
    """The clustered test finds what is there: 0.6 standard deviations, 25 speakers."""

    def shifted(rng):
        differences, groups = clustered_noise(rng, n_clusters=25)
        seed = int(rng.integers(2**31))
        return clustered_permutation_test(
            differences + 0.6, groups, n_permutations=499, random_state=seed
        ).pvalue

    rate = rejection_rate(shifted, 500, seed=0)
    print(f"power: {rate:.4f}")
    assert rate > 0.7
