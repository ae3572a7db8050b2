import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from covshift.measures import trials
from covshift.measures.clustered import clustered_bootstrap_interval, clustered_permutation_test
from tests.kernels.problems import FIXED

ALTERNATIVES = ["two-sided", "greater", "less"]


def naive_means(differences, groups):
    """Mean of each group, in fractions of whole sums."""
    means = []
    for group in sorted(set(groups)):
        rows = [d for d, g in zip(differences, groups, strict=True) if g == group]
        means.append(sum(rows) / len(rows))
    return means


def naive_test(differences, groups, alternative):
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
    statistic, pvalue = naive_test(*data, alternative)
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


def test_no_difference_at_all():
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
def test_refuses(function, differences, groups, message):
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
