import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from covshift.measures.paired_wilcoxon import (
    MAX_EXACT_PAIRS,
    doubled_rank_sum_probabilities,
    paired_wilcoxon,
)
from tests.kernels.problems import FIXED

ALTERNATIVES = ["two-sided", "greater", "less"]

# Whole numbers in a small range: ties and zeros are common.
tied = st.lists(st.integers(-4, 4), min_size=1, max_size=10)


def naive_ranks(sizes):
    """One plus the number of smaller values plus half the number of other equal ones."""
    return [
        1 + sum(Fraction(other < size) for other in sizes) + Fraction(sizes.count(size) - 1, 2)
        for size in sizes
    ]


def naive_test(differences, alternative):
    """Statistic, p-value and effect size by listing the signs one by one, in fractions."""
    differences = [d for d in differences if d != 0]
    if not differences:
        return 0, 1, 0
    ranks = naive_ranks([abs(d) for d in differences])
    above = sum(rank for rank, d in zip(ranks, differences, strict=True) if d > 0)
    below = sum(ranks) - above
    at_least = at_most = 0
    for signs in itertools.product([0, 1], repeat=len(ranks)):
        total = sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        at_least += total >= above
        at_most += total <= above
    counts = {"greater": at_least, "less": at_most, "two-sided": 2 * min(at_least, at_most)}
    return above, min(1, counts[alternative] / 2 ** len(ranks)), (above - below) / sum(ranks)


@FIXED
@given(tied, st.sampled_from(ALTERNATIVES))
def test_equals_the_naive_twin_with_ties_and_zeros(differences, alternative):
    result = paired_wilcoxon(differences, np.zeros(len(differences)), alternative=alternative)
    statistic, pvalue, effect_size = naive_test(differences, alternative)
    assert result.statistic == statistic
    assert result.pvalue == pytest.approx(float(pvalue), rel=1e-12)
    assert result.effect_size == pytest.approx(float(effect_size), abs=1e-15)
    assert result.median_difference == np.median(differences)
    assert result.n_pairs == len(differences)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [1, 2, 7, 25, 120])
def test_equals_scipy_where_scipy_is_exact(n, alternative):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.2, 1, n), rng.standard_normal(n)
    expected = stats.wilcoxon(a, b, alternative=alternative, method="exact")
    assert paired_wilcoxon(a, b, alternative=alternative).pvalue == pytest.approx(
        expected.pvalue, rel=1e-10
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_equals_scipy_enumeration_with_ties(alternative):
    d = np.array([1.0, 1, -1, 2, 3, 3, -2, 4, 5, 5, 5])
    method = stats.PermutationMethod(n_resamples=np.inf)
    expected = stats.wilcoxon(d, alternative=alternative, method=method).pvalue
    assert paired_wilcoxon(d, 0 * d, alternative=alternative).pvalue == pytest.approx(expected)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_exact_and_normal_meet_where_the_method_changes(alternative):
    rng = np.random.default_rng(3)
    d = np.round(rng.normal(0.08, 1, MAX_EXACT_PAIRS + 1), 1)
    d[d == 0] = 0.1
    normal = paired_wilcoxon(d, 0 * d, alternative=alternative)
    expected = stats.wilcoxon(d, alternative=alternative, method="asymptotic", correction=True)
    assert normal.pvalue == pytest.approx(expected.pvalue)
    # One zero pair more is the same data with one pair less to rank: exact.
    d[np.argmin(np.abs(d))] = 0
    exact = paired_wilcoxon(d, 0 * d, alternative=alternative)
    assert exact.pvalue == pytest.approx(normal.pvalue, rel=0.03)
    assert exact.pvalue != normal.pvalue


def test_the_normal_approximation_would_be_far_off_in_the_tail():
    """Why small samples are not left to SciPy's normal approximation."""
    d = np.repeat(np.arange(1.0, 11.0), 2)
    normal = stats.wilcoxon(d, method="asymptotic").pvalue
    assert paired_wilcoxon(d, 0 * d).pvalue == pytest.approx(2.0**-19)
    assert normal > 40 * 2.0**-19


@FIXED
@given(tied, st.randoms(use_true_random=False))
def test_order_of_pairs_does_not_matter(differences, random):
    shuffled = random.sample(differences, len(differences))
    zeros = np.zeros(len(differences))
    assert paired_wilcoxon(differences, zeros) == paired_wilcoxon(shuffled, zeros)


@FIXED
@given(tied)
def test_exchanging_the_systems_turns_the_signs(differences):
    zeros = np.zeros(len(differences))
    one, other = paired_wilcoxon(differences, zeros), paired_wilcoxon(zeros, differences)
    assert one.pvalue == other.pvalue
    assert one.effect_size == -other.effect_size
    assert one.median_difference == -other.median_difference
    greater = paired_wilcoxon(differences, zeros, alternative="greater").pvalue
    less = paired_wilcoxon(zeros, differences, alternative="less").pvalue
    assert greater == pytest.approx(less, rel=1e-12)


@FIXED
@given(tied, st.floats(0.01, 100))
def test_scale_does_not_matter(differences, factor):
    zeros = np.zeros(len(differences))
    scaled = paired_wilcoxon(factor * np.array(differences), zeros)
    assert scaled.pvalue == paired_wilcoxon(differences, zeros).pvalue


@FIXED
@given(st.lists(st.integers(0, 20), min_size=2, max_size=12), st.data())
def test_rounding_breaks_no_ties(a, data):
    b = data.draw(st.lists(st.integers(0, 20), min_size=len(a), max_size=len(a)))
    whole = paired_wilcoxon(a, b)
    tenths = paired_wilcoxon(np.array(a) / 10, np.array(b) / 10)
    assert (tenths.statistic, tenths.pvalue) == (whole.statistic, whole.pvalue)


@FIXED
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_pvalues_and_effects_stay_in_their_range(values):
    result = paired_wilcoxon(values, np.zeros(len(values)))
    assert 0 < result.pvalue <= 1
    assert -1 <= result.effect_size <= 1


@pytest.mark.parametrize("n", [1, 5, 400])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_no_difference_at_all(n, alternative):
    result = paired_wilcoxon(np.full(n, 0.7), np.full(n, 0.7), alternative=alternative)
    assert (result.pvalue, result.effect_size, result.statistic) == (1.0, 0.0, 0.0)
    assert result.n_pairs == n


def test_zeros_count_as_pairs_and_not_as_ranks():
    with_zeros = paired_wilcoxon([1, 2, 3, 4, 0, 0, 0, 0, 0], np.zeros(9))
    without = paired_wilcoxon([1, 2, 3, 4], np.zeros(4))
    assert with_zeros.pvalue == without.pvalue == 0.125
    assert with_zeros.effect_size == without.effect_size == 1
    assert (with_zeros.n_pairs, with_zeros.median_difference) == (9, 0)
    assert (without.n_pairs, without.median_difference) == (4, 2.5)


@FIXED
@given(st.lists(st.integers(1, 12), min_size=1, max_size=9))
def test_the_distribution_of_rank_sums_equals_its_enumeration(ranks):
    counts = np.zeros(sum(ranks) + 1)
    for signs in itertools.product([0, 1], repeat=len(ranks)):
        counts[np.dot(signs, ranks)] += 1
    probabilities = doubled_rank_sum_probabilities(np.array(ranks))
    np.testing.assert_array_equal(probabilities, counts / 2 ** len(ranks))


@pytest.mark.parametrize(
    ("a", "b", "alternative"),
    [
        ([1.0, 2.0], [1.0], "two-sided"),
        ([], [], "two-sided"),
        ([1.0, np.nan], [1.0, 2.0], "two-sided"),
        ([1.0, 2.0], [np.inf, 2.0], "two-sided"),
        ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], "two-sided"),
        ([1.0, 2.0], [2.0, 1.0], "larger"),
    ],
    ids=["lengths", "empty", "NaN", "infinity", "2-D", "alternative"],
)
def test_refuses(a, b, alternative):
    with pytest.raises(ValueError, match=r"a and b|minimum|NaN|infinity|1d|alternative"):
        paired_wilcoxon(a, b, alternative=alternative)
