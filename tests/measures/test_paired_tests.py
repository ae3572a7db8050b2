import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from covshift.measures import paired_tests as trials
from covshift.measures.paired_tests import (
    BLOCK_ENTRIES,
    MAX_EXACT_PAIRS,
    _block_sizes,
    clustered_bootstrap_interval,
    clustered_permutation_test,
    doubled_rank_sum_probabilities,
    holm,
    paired_wilcoxon,
)
from tests.kernels.problems import FIXED
from tests.twins import naive

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
    expected = stats.wilcoxon(d, alternative=alternative, method="approx", correction=True)
    assert normal.pvalue == pytest.approx(expected.pvalue)
    # One zero pair more is the same data with one pair less to rank: exact.
    d[np.argmin(np.abs(d))] = 0
    exact = paired_wilcoxon(d, 0 * d, alternative=alternative)
    assert exact.pvalue == pytest.approx(normal.pvalue, rel=0.03)
    assert exact.pvalue != normal.pvalue


def test_the_normal_approximation_would_be_far_off_in_the_tail():
    """Why small samples are not left to SciPy's normal approximation."""
    d = np.repeat(np.arange(1.0, 11.0), 2)
    normal = stats.wilcoxon(d, method="approx").pvalue
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


def naive_means(differences, groups):
    """Mean of each group, in fractions of whole sums."""
    means = []
    for group in sorted(set(groups)):
        rows = [d for d, g in zip(differences, groups, strict=True) if g == group]
        means.append(sum(rows) / len(rows))
    return means


def naive_clustered_test(differences, groups, alternative):
    """Statistic and p-value by listing the signs of the groups one by one."""
    means = naive_means(differences, groups)
    out = {"two-sided": abs, "greater": lambda t: t, "less": lambda t: -t}[alternative]
    observed = sum(means) / len(means)
    count = 0
    for signs in itertools.product([-1, 1], repeat=len(means)):
        flipped = sum(s * m for s, m in zip(signs, means, strict=True)) / len(means)
        count += out(flipped) >= out(observed) - 1e-9
    return observed, count / 2 ** len(means)


@st.composite
def grouped(draw, max_groups=6):
    """Whole differences, so that ties are common, and at least two groups."""
    n_groups = draw(st.integers(2, max_groups))
    rest = draw(st.lists(st.integers(0, n_groups - 1), max_size=12))
    groups = [*range(n_groups), *rest]
    differences = draw(st.lists(st.integers(-5, 5), min_size=len(groups), max_size=len(groups)))
    return differences, groups


@FIXED
@given(grouped(), st.sampled_from(ALTERNATIVES))
def test_enumeration_equals_the_naive_twin(data, alternative):
    result = clustered_permutation_test(*data, alternative=alternative)
    statistic, pvalue = naive_clustered_test(*data, alternative)
    assert result.statistic == pytest.approx(statistic, abs=1e-12)
    assert result.pvalue == pvalue
    assert result.n_clusters == len(set(data[1]))
    sides = 2 if alternative == "two-sided" else 1
    assert result.smallest_pvalue == sides / 2**result.n_clusters
    assert result.pvalue >= result.smallest_pvalue


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_equals_scipy_permutation_test_of_the_means(alternative):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(60) % 9)
    differences = rng.standard_normal(60) + 0.4
    means = naive_means(differences.tolist(), groups.tolist())
    expected = stats.permutation_test(
        (means,),
        lambda m, axis: m.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative=alternative,
        vectorized=True,
    )
    result = clustered_permutation_test(differences, groups, alternative=alternative)
    assert result.pvalue == pytest.approx(expected.pvalue)
    assert result.statistic == pytest.approx(expected.statistic)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_monte_carlo_agrees_with_enumeration(alternative):
    rng = np.random.default_rng(1)
    groups = np.arange(48) % 12
    differences = rng.standard_normal(48) + 0.25
    exact = clustered_permutation_test(differences, groups, alternative=alternative)
    assert 0.001 < exact.pvalue < 0.999
    B = 4000
    drawn = clustered_permutation_test(
        differences, groups, alternative=alternative, n_permutations=B, random_state=0
    )
    assert drawn.pvalue != exact.pvalue
    low, high = stats.binom.interval(0.999, B, exact.pvalue)
    assert (1 + low) / (1 + B) <= drawn.pvalue <= (1 + high) / (1 + B)
    assert drawn.effect_size == exact.effect_size


def test_all_flips_are_listed_as_soon_as_they_are_affordable():
    differences, groups = [1.0, 2.0, 3.0, -0.5], [0, 1, 2, 3]
    exact = {
        clustered_permutation_test(differences, groups, n_permutations=15, random_state=s).pvalue
        for s in range(20)
    }
    drawn = {
        clustered_permutation_test(differences, groups, n_permutations=14, random_state=s).pvalue
        for s in range(20)
    }
    assert exact == {4 / 16}
    assert len(drawn) > 2


@pytest.mark.parametrize("n_permutations", [99, 9999])
@pytest.mark.parametrize("n_clusters", [2, 3, 4, 10, 40])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_smallest_pvalue_is_attained_and_never_passed(n_clusters, alternative, n_permutations):
    sign = -1 if alternative == "less" else 1
    groups = np.repeat(np.arange(n_clusters), 3)
    differences = sign * np.linspace(1, 2, len(groups))
    result = clustered_permutation_test(
        differences,
        groups,
        alternative=alternative,
        n_permutations=n_permutations,
        random_state=0,
    )
    assert result.pvalue == result.smallest_pvalue
    sides = 2 if alternative == "two-sided" else 1
    expected = max(sides / 2**n_clusters, 1 / (1 + n_permutations))
    assert result.smallest_pvalue == expected


def test_lucky_draws_promise_no_more_than_the_clusters_allow():
    """600 of 1024 flips often miss both extremes: (1 + 0) / 601 would be below 2 / 1024."""
    pvalues = [
        clustered_permutation_test(
            np.arange(1.0, 11.0), np.arange(10), n_permutations=600, random_state=seed
        ).pvalue
        for seed in range(20)
    ]
    assert min(pvalues) == 2 / 1024
    assert max(pvalues) >= 2 / 601


def test_four_speakers_cannot_be_significant():
    result = clustered_permutation_test(np.ones(1000), np.arange(1000) % 4)
    assert (result.pvalue, result.smallest_pvalue, result.n_clusters) == (0.125, 0.125, 4)


@FIXED
@given(grouped(), st.randoms(use_true_random=False), st.sampled_from([6, 9999]))
def test_neither_order_nor_names_matter(data, random, n_permutations):
    differences, groups = [d / 10 for d in data[0]], data[1]  # tenths: their sums round
    order = random.sample(range(len(groups)), len(groups))
    names = random.sample([f"speaker {i}" for i in range(9)], 9)
    moved = [differences[i] for i in order], [names[groups[i]] for i in order]
    settings = {"n_permutations": n_permutations, "random_state": 0}
    first = clustered_permutation_test(differences, groups, **settings)
    assert clustered_permutation_test(*moved, **settings) == first
    interval = clustered_bootstrap_interval(differences, groups, n_resamples=20, random_state=0)
    assert clustered_bootstrap_interval(*moved, n_resamples=20, random_state=0) == interval


@FIXED
@given(grouped())
def test_turning_the_signs_turns_the_result(data):
    differences, groups = np.array(data[0]), data[1]
    one = clustered_permutation_test(differences, groups)
    other = clustered_permutation_test(-differences, groups)
    assert (one.pvalue, one.statistic) == (other.pvalue, -other.statistic)
    assert one.effect_size == pytest.approx(-other.effect_size)
    greater = clustered_permutation_test(differences, groups, alternative="greater")
    less = clustered_permutation_test(-differences, groups, alternative="less")
    assert greater.pvalue == less.pvalue


@FIXED
@given(grouped(), st.integers(2, 5))
def test_repeating_the_trials_adds_no_evidence(data, times):
    differences, groups = data
    once = clustered_permutation_test(differences, groups)
    repeated = clustered_permutation_test(differences * times, groups * times)
    assert repeated.pvalue == once.pvalue
    assert repeated.statistic == pytest.approx(once.statistic, abs=1e-12)
    assert repeated.effect_size == pytest.approx(once.effect_size, rel=1e-9, abs=1e-9)


def test_every_cluster_counts_once_however_many_trials():
    differences, groups = [1.0] * 98 + [-1.0, -1.0], ["often"] * 98 + ["seldom", "rare"]
    assert clustered_permutation_test(differences, groups).statistic == pytest.approx(-1 / 3)


@FIXED
@given(grouped())
def test_effect_size_equals_its_formula(data):
    means = np.array(naive_means(*data))
    effect = clustered_permutation_test(*data).effect_size
    if abs(means.mean()) < 1e-9:
        assert effect == 0
    elif np.ptp(means) < 1e-9:
        assert effect == np.copysign(np.inf, means[0])
    else:
        assert effect == pytest.approx(means.mean() / means.std(ddof=1))


def test_no_difference_at_all_between_clusters():
    result = clustered_permutation_test(np.zeros(6), [0, 0, 1, 1, 2, 2])
    assert (result.statistic, result.pvalue, result.effect_size) == (0, 1, 0)
    assert clustered_bootstrap_interval(np.zeros(6), [0, 0, 1, 1, 2, 2]) == (0, 0)


def test_equal_sums_are_ties_whatever_their_rounding():
    # 0.1 + 0.2 - 0.3 and its mirror images are zero up to rounding.
    result = clustered_permutation_test([0.1, 0.2, -0.3], [0, 1, 2])
    assert result.pvalue == 1
    assert result.effect_size == 0


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    differences, groups = rng.standard_normal(30) + 0.3, np.arange(30) % 10
    arguments = {"differences": differences, "groups": groups, "random_state": 0}

    def results():
        return (
            clustered_permutation_test(**arguments),
            clustered_permutation_test(**arguments, n_permutations=500),
            clustered_bootstrap_interval(**arguments, n_resamples=500),
        )

    whole = results()
    monkeypatch.setattr(trials, "BLOCK_ENTRIES", 64)
    assert results() == whole


def test_memory_is_bounded():
    rng = np.random.default_rng(0)
    differences, groups = rng.standard_normal(2000), np.arange(2000)
    tracemalloc.start()
    clustered_permutation_test(differences, groups, random_state=0)
    clustered_bootstrap_interval(differences, groups, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All signs at once would take 9999 x 2000 x 8 bytes = 160 MB.
    assert peak < 50e6


@pytest.mark.parametrize("n_clusters", [2, 3, 8])
def test_bootstrap_equals_a_naive_loop(n_clusters):
    """The same draws, from clusters listed by size, one resample at a time."""
    rng = np.random.default_rng(4)
    differences, groups = rng.standard_normal(40) + 0.5, np.arange(40) % n_clusters
    interval = clustered_bootstrap_interval(
        differences, groups, n_resamples=300, confidence=0.6, random_state=0
    )
    means = sorted(naive_means(differences.tolist(), groups.tolist()), key=abs)
    random_state, resampled = np.random.RandomState(0), []
    for _ in range(300):
        drawn = [means[random_state.randint(n_clusters)] for _ in range(n_clusters)]
        resampled.append(sum(drawn) / n_clusters)
    factor = np.sqrt(n_clusters / (n_clusters - 1))
    tail = stats.norm.cdf(-factor * stats.t.ppf(0.8, n_clusters - 1))
    expected = np.quantile(resampled, [tail, 1 - tail])
    assert interval == pytest.approx(tuple(expected), abs=1e-12)
    assert interval[0] < np.mean(means) < interval[1]


def test_bootstrap_interval_grows_with_confidence_and_meets_students():
    rng = np.random.default_rng(5)
    differences, groups = rng.standard_normal(200), np.repeat(np.arange(50), 4)
    means = np.array(naive_means(differences.tolist(), groups.tolist()))
    widths = []
    for confidence in (0.5, 0.9, 0.95, 0.99):
        low, high = clustered_bootstrap_interval(
            differences, groups, confidence=confidence, random_state=0
        )
        student = stats.t.interval(confidence, 49, means.mean(), stats.sem(means))
        assert high - low == pytest.approx(student[1] - student[0], rel=0.08)
        widths.append(high - low)
    assert widths == sorted(widths)


def test_bootstrap_turns_with_the_signs():
    rng = np.random.default_rng(6)
    differences, groups = rng.standard_normal(30), np.arange(30) % 6
    low, high = clustered_bootstrap_interval(differences, groups, random_state=0)
    turned = clustered_bootstrap_interval(-differences, groups, random_state=0)
    assert turned == pytest.approx((-high, -low))


@pytest.mark.parametrize("function", [clustered_permutation_test, clustered_bootstrap_interval])
@pytest.mark.parametrize(
    ("differences", "groups", "message"),
    [
        ([1.0, 2.0, 3.0], [7, 7, 7], "only one group"),
        ([1.0, 2.0], [0, 1, 2], "inconsistent"),
        ([], [], "minimum"),
        ([1.0, np.nan], [0, 1], "NaN"),
        ([1.0, 2.0], [0, np.nan], "NaN"),
        ([1.0, 2.0], np.array(["a", None], dtype=object), "missing"),
        ([[1.0, 2.0], [1.0, 2.0]], [0, 1], "1d"),
    ],
    ids=["one group", "lengths", "empty", "NaN", "NaN group", "None group", "2-D"],
)
def test_tests_of_clusters_refuse(function, differences, groups, message):
    with pytest.raises(ValueError, match=message):
        function(differences, groups)


def test_refuses_settings_without_meaning():
    data = [1.0, 2.0], [0, 1]
    with pytest.raises(ValueError, match="alternative"):
        clustered_permutation_test(*data, alternative="larger")
    with pytest.raises(ValueError, match="n_permutations"):
        clustered_permutation_test(*data, n_permutations=0)
    with pytest.raises(ValueError, match="n_resamples"):
        clustered_bootstrap_interval(*data, n_resamples=0)
    with pytest.raises(ValueError, match="confidence"):
        clustered_bootstrap_interval(*data, confidence=95)


def test_one_permutation_is_enough_and_none_is_not():
    differences, groups = np.arange(1.0, 9), np.arange(8)
    one = clustered_permutation_test(differences, groups, n_permutations=1, random_state=0)
    assert one.pvalue in (0.5, 1.0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        clustered_permutation_test(differences, groups, n_permutations=0)


# From few values, so that many tie, and from all.
PVALUES = arrays(
    float,
    st.integers(0, 12),
    elements=st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]) | st.floats(0, 1),
)


@FIXED
@given(pvalues=PVALUES)
def test_equals_the_naive_twin(pvalues):
    np.testing.assert_allclose(holm(pvalues), naive.holm(pvalues), rtol=1e-15, atol=0)


@FIXED
@given(pvalues=PVALUES, seed=st.integers(0, 2**32 - 1))
def test_any_order_gives_the_same_and_keeps_the_order_of_the_pvalues(pvalues, seed):
    adjusted = holm(pvalues)
    order = np.random.default_rng(seed).permutation(len(pvalues))
    np.testing.assert_array_equal(holm(pvalues[order]), adjusted[order])
    assert (np.diff(adjusted[np.argsort(pvalues)]) >= 0).all()
    assert (adjusted >= pvalues).all()
    assert (adjusted <= 1).all()
    # No more than Bonferroni asks, and the smallest exactly that.
    bonferroni = np.minimum(1, len(pvalues) * pvalues)
    assert (adjusted <= bonferroni).all()
    if len(pvalues):
        assert adjusted.min() == bonferroni.min()


def test_a_worked_example():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.005]), [0.06, 0.03, 0.06, 0.02])
    np.testing.assert_array_equal(holm([0.3]), [0.3])
    assert holm([]).shape == (0,)


def test_the_pvalues_are_not_changed():
    pvalues = np.array([0.5, 0.1])
    pvalues.setflags(write=False)
    np.testing.assert_array_equal(holm(pvalues), [0.5, 0.2])


@pytest.mark.parametrize("bad", [[0.1, np.nan], [1.1], [-0.1], [np.inf]])
def test_what_is_no_pvalue_is_an_error(bad):
    with pytest.raises(ValueError, match="from 0 to 1, without NaN"):
        holm(bad)


def test_a_table_is_an_error():
    with pytest.raises(ValueError, match="one-dimensional"):
        holm([[0.1, 0.2]])


@pytest.mark.parametrize(
    ("n_rows", "n_clusters", "expected"),
    [
        (10, 4, [10]),
        (3, BLOCK_ENTRIES + 1, [1, 1, 1]),
        (5, BLOCK_ENTRIES // 2, [2, 2, 1]),
    ],
)
def test_blocks_hold_so_many_entries_and_one_row_at_least(n_rows, n_clusters, expected):
    assert list(_block_sizes(n_rows, n_clusters)) == expected
