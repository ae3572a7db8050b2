"""Tests of paired scores: signed ranks, sign flips of whole clusters, Holm's correction.

Wilcoxon's signed-rank test takes trials that are independent of each other. Trials that repeat a
speaker or a site are not: whole groups of them are flipped together, or drawn together for an
interval.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata, wilcoxon
from scipy.stats import t as student_t
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d

from covshift.kernels.array_types import FloatArray, IntArray

# --- Numbers per trial, and the groups that trials repeat: what the paired tests share ---


Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

# Numbers held at once when clusters are flipped or drawn: eight megabytes.
BLOCK_ENTRIES = 2**20


def _check_alternative(alternative: str) -> None:
    """Raise an error unless it is one of the three."""
    if alternative not in get_args(Alternative):
        raise ValueError(
            f"alternative must be one of {get_args(Alternative)}, got {alternative!r}."
        )


def _check_trial_values(values: Any, name: str) -> FloatArray:
    """Check values of paired trials: return one finite number per trial, shape (n,)."""
    array: FloatArray = column_or_1d(
        check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    )
    return array


def check_trial_labels(labels: Any, name: str) -> Any:
    """Check labels of paired trials: one class or group each, none missing, shape (n,)."""
    array = column_or_1d(check_array(labels, dtype=None, ensure_2d=False, input_name=name))
    if array.dtype.kind == "O" and any(label is None for label in array):
        raise ValueError(f"{name} has missing entries (None).")
    return array


def _cluster_means(values: Any, groups: Any) -> FloatArray:
    """Return the mean value of each group, shape (G,), with G at least two."""
    numbers = _check_trial_values(values, "differences")
    labels = check_trial_labels(groups, "groups")
    check_consistent_length(numbers, labels)
    names, members = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "There is only one group: a statement about groups needs at least two of them, "
            "whatever the number of trials."
        )
    # Summed and listed by size, not by row or name: seeded results depend on neither.
    order = np.argsort(numbers)
    numbers, members = numbers[order], members[order]
    means: FloatArray = np.bincount(members, weights=numbers) / np.bincount(members)
    return means[np.lexsort((means, np.abs(means)))]


def _block_sizes(n_rows: int, n_clusters: int) -> Iterator[int]:
    """Yield the rows of each block: at most ``BLOCK_ENTRIES`` entries, at least one row."""
    most = max(1, BLOCK_ENTRIES // n_clusters)
    for start in range(0, n_rows, most):
        yield min(most, n_rows - start)


# --- Wilcoxon's signed-rank test, with an effect size ---

# Differences closer than this share of the largest score are rounding: 0.8 - 0.7 and
# 0.7 - 0.6 are a tie, though not as floating-point numbers.
RESOLUTION = 1e-12
# Up to here the exact distribution takes at most 20 ms; beyond, the normal approximation is
# 5 % off or less at p = 0.001.
MAX_EXACT_PAIRS = 300


def doubled_rank_sum_probabilities(doubled_ranks: IntArray) -> FloatArray:
    r"""P(2 T = s) for s = 0, ..., sum of 2 r_i, of the signed-rank statistic given the ranks.

    .. math:: T = \sum_i B_i r_i, \qquad B_i \in \{0, 1\} \text{ fair and independent}

    so that :math:`P(T = t)` is the coefficient of :math:`x^t` in
    :math:`\prod_i (1 + x^{r_i}) / 2`. Given the ranks it is exact, ties or not. Ranks of ties are
    halves; doubled they are whole numbers and the product is one of polynomials. O(n) passes over
    as many numbers as the doubled ranks sum to.
    """
    probabilities = np.zeros(int(doubled_ranks.sum()) + 1)
    probabilities[0] = 1.0
    for rank in doubled_ranks:
        probabilities[rank:] += probabilities[:-rank]
        probabilities *= 0.5
    return probabilities


@dataclass(frozen=True)
class PairedTest:
    """Result of `paired_wilcoxon`.

    Attributes
    ----------
    statistic : float
        R+, the sum of the ranks of the pairs with a > b (for every alternative).
    pvalue : float
        Probability under the null of a statistic at least this far out.
    effect_size : float
        Matched-pairs rank-biserial correlation, from -1 (a below b in every pair) to 1.
    median_difference : float
        Median of a - b over all pairs.
    n_pairs : int
        Pairs, those without a difference included.
    """

    statistic: float
    pvalue: float
    effect_size: float
    median_difference: float
    n_pairs: int


def paired_wilcoxon(a: Any, b: Any, *, alternative: Alternative = "two-sided") -> PairedTest:
    r"""Test whether paired differences are symmetric about zero (Wilcoxon signed-rank).

    With :math:`r_i` the rank of :math:`|a_i - b_i|` among the pairs that differ,

    .. math::

        R_+ = \sum_{a_i > b_i} r_i, \qquad R_- = \sum_{a_i < b_i} r_i, \qquad
        \text{effect size} = \frac{R_+ - R_-}{R_+ + R_-}

    Parameters
    ----------
    a, b : array-like of shape (n_pairs,)
        Finite scores of two systems on the same trials.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater": a tends to be above b.

    Returns
    -------
    result : PairedTest
        Statistic, p-value and effect size; without any difference the p-value is one and
        the effect size zero.

    Notes
    -----
    Trials are taken as independent. Where speakers or sites repeat among them, p-values are
    far too small: use `clustered_permutation_test`.

    Zeros: pairs without a difference are dropped before ranking, as Wilcoxon did. They
    favor neither side, the test is exact given which pairs differ, and the
    effect size is defined on the same ranks. Ties share their mean rank.

    Method: ``scipy.stats.wilcoxon`` is exact only without ties, or by enumeration up to 13
    pairs; its normal approximation doubles a p-value of 0.001 at 20 pairs, and more further
    out, where Holm's correction looks. Scores such as recalls tie often. So up to 300
    differing pairs the p-value comes from the exact distribution given the ranks, ties
    included; with more, from SciPy's normal approximation with corrections for ties and
    continuity.

    **Cost**: O(n³) time and O(n²) memory up to 300 differing pairs, where it is exact; O(n log
    n) and O(n) above.

    References
    ----------
    F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945.
    D. S. Kerby, "The simple difference formula: an approach to teaching nonparametric
    correlation", Comprehensive Psychology 3, 2014.

    Examples
    --------
    >>> from covshift.measures import paired_wilcoxon
    >>> adapted = [0.71, 0.64, 0.80, 0.66, 0.75, 0.69]
    >>> baseline = [0.65, 0.61, 0.72, 0.66, 0.70, 0.70]
    >>> result = paired_wilcoxon(adapted, baseline)
    >>> result.pvalue
    0.125
    >>> round(result.effect_size, 3)
    0.867
    """
    _check_alternative(alternative)
    first, second = _check_trial_values(a, "a"), _check_trial_values(b, "b")
    if len(first) != len(second):
        raise ValueError(f"a and b must be pairs, got {len(first)} and {len(second)} scores.")
    differences = first - second
    scale = max(np.abs(first).max(), np.abs(second).max())
    # In units of the resolution, so that ties and zeros are exact.
    steps = np.rint(differences / scale / RESOLUTION) if scale > 0 else differences
    steps = steps[steps != 0]
    ranks = rankdata(np.abs(steps))
    above, below = float(ranks[steps > 0].sum()), float(ranks[steps < 0].sum())
    if len(steps) == 0:
        pvalue = 1.0
    elif len(steps) <= MAX_EXACT_PAIRS:
        pvalue = _exact_pvalue(ranks, above, alternative)
    else:
        pvalue = float(wilcoxon(steps, alternative=alternative, correction=True).pvalue)
    return PairedTest(
        statistic=above,
        pvalue=pvalue,
        effect_size=(above - below) / (above + below) if len(steps) else 0.0,
        median_difference=float(np.median(differences)),
        n_pairs=len(differences),
    )


def _exact_pvalue(ranks: FloatArray, statistic: float, alternative: Alternative) -> float:
    probabilities = doubled_rank_sum_probabilities(np.rint(2 * ranks).astype(np.int64))
    observed = round(2 * statistic)
    at_least = float(probabilities[observed:].sum())
    at_most = float(probabilities[: observed + 1].sum())
    if alternative == "greater":
        return min(at_least, 1.0)
    if alternative == "less":
        return min(at_most, 1.0)
    return min(2 * min(at_least, at_most), 1.0)


# --- Sign-flip test of paired differences whose trials repeat groups (speakers, sites) ---


# Sums that differ by less than this share are equal up to rounding.
MEAN_ROUNDING = 1e-12


@dataclass(frozen=True)
class ClusteredTest:
    """Result of `clustered_permutation_test`.

    Attributes
    ----------
    statistic : float
        Mean over the clusters of the cluster means.
    pvalue : float
        Share of the sign flips with a statistic at least this far out.
    effect_size : float
        Mean of the cluster means over their standard deviation (Cohen's d of clusters);
        infinite if they are all the same and not zero.
    smallest_pvalue : float
        The smallest that this number of clusters (and of permutations) allows: no data can
        be more significant.
    n_clusters : int
        Number of groups.
    """

    statistic: float
    pvalue: float
    effect_size: float
    smallest_pvalue: float
    n_clusters: int


def clustered_permutation_test(
    differences: Any,
    groups: Any,
    *,
    n_permutations: int = 9999,
    alternative: Alternative = "two-sided",
    random_state: Any = None,
) -> ClusteredTest:
    r"""Test whether paired differences are centered at zero, when trials repeat groups.

    .. math::

        T = \frac{1}{G} \sum_{g=1}^{G} s_g \bar d_g, \qquad
        \bar d_g = \frac{1}{n_g} \sum_{i \in g} d_i

    is compared with its values under all, or many random, signs :math:`s_g = \pm 1`.

    Parameters
    ----------
    differences : array-like of shape (n_trials,)
        Difference of the two systems in each trial.
    groups : array-like of shape (n_trials,)
        Speaker, site, ... of each trial, as integers or strings; at least two groups.
    n_permutations : int, default=9999
        Random sign flips B, with p-value (1 + count) / (1 + B). All :math:`2^G` flips are
        enumerated instead, and the test is exact, if they are no more than B + 1.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater": the differences tend to be positive.
    random_state : int, RandomState or None, default=None
        Seed of the random flips; without effect when all are enumerated.

    Returns
    -------
    result : ClusteredTest
        Statistic, p-value, effect size, and the smallest p-value possible.

    Notes
    -----
    Trials of one speaker share the speaker's peculiarities, so their signs are flipped
    together: under the null the means of the clusters are symmetric about zero and
    independent of each other, and nothing is assumed within a cluster. Every cluster counts
    once. How often a speaker was drawn is an accident of the protocol, and a mean over rows
    would let one speaker with many trials decide; so rows do not weigh.

    Four clusters allow no two-sided p-value below 2 / 16 = 0.125: however many trials, the
    evidence is four speakers.

    **Cost**: O(n log n + B G) time for G clusters and B flips, in blocks of bounded memory.

    References
    ----------
    P. Good, "Permutation, parametric and bootstrap tests of hypotheses", 2005, chapter 3.
    B. Phipson, G. K. Smyth, "Permutation p-values should never be zero", Statistical
    Applications in Genetics and Molecular Biology 9, 2010.

    Examples
    --------
    >>> from covshift.measures import clustered_permutation_test
    >>> differences = [0.05, 0.07, 0.02, 0.04, 0.03, 0.06]
    >>> speakers = ["ann", "ann", "bob", "bob", "cem", "dee"]
    >>> result = clustered_permutation_test(differences, speakers)
    >>> result.pvalue, result.smallest_pvalue, result.n_clusters
    (0.125, 0.125, 4)
    """
    _check_alternative(alternative)
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}.")
    means = _cluster_means(differences, groups)
    n_clusters, statistic = len(means), float(means.mean())
    tolerance = MEAN_ROUNDING * float(np.abs(means).mean())
    threshold = float(_distance_out(statistic, alternative)) - tolerance
    # The mirror image of the observed signs is as far out as they are.
    smallest = 2.0 ** ((alternative == "two-sided") - n_clusters)
    if 2**n_clusters <= n_permutations + 1:
        blocks = _all_signs(n_clusters)
        n_flips, n_observed = 2**n_clusters, 0  # the observed signs are among them
    else:
        blocks = _random_signs(n_clusters, n_permutations, check_random_state(random_state))
        n_flips, n_observed = n_permutations + 1, 1
        smallest = max(smallest, 1 / n_flips)
    count = n_observed + sum(
        int((_distance_out(signs @ means / n_clusters, alternative) >= threshold).sum())
        for signs in blocks
    )
    # Random flips that miss the mirror image must not promise more than clusters allow.
    pvalue = max(count / n_flips, smallest)
    return ClusteredTest(statistic, pvalue, _effect_size(means), smallest, n_clusters)


def _distance_out(statistics: Any, alternative: Alternative) -> Any:
    """Return how far out statistics are in the direction of the alternative."""
    if alternative == "two-sided":
        return np.abs(statistics)
    return statistics if alternative == "greater" else -statistics


def _effect_size(means: FloatArray) -> float:
    mean, spread = float(means.mean()), float(means.std(ddof=1))
    largest = float(np.abs(means).max())
    if abs(mean) <= MEAN_ROUNDING * largest:
        return 0.0
    return mean / spread if spread > MEAN_ROUNDING * largest else float(np.copysign(np.inf, mean))


def _all_signs(n_clusters: int) -> Iterator[IntArray]:
    """Yield the blocks (rows, G) of all 2^G sign patterns: the bits of the row's number."""
    start = 0
    for size in _block_sizes(2**n_clusters, n_clusters):
        numbers = np.arange(start, start + size)[:, None]
        yield 1 - 2 * (numbers >> np.arange(n_clusters) & 1)
        start += size


def _random_signs(
    n_clusters: int, n_permutations: int, random_state: np.random.RandomState
) -> Iterator[IntArray]:
    for size in _block_sizes(n_permutations, n_clusters):
        yield 1 - 2 * random_state.randint(2, size=(size, n_clusters))


def clustered_bootstrap_interval(
    differences: Any,
    groups: Any,
    *,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: Any = None,
) -> tuple[float, float]:
    r"""Return the bootstrap interval of the mean of cluster means, by whole clusters.

    Parameters
    ----------
    differences, groups : array-like of shape (n_trials,)
        As in `clustered_permutation_test`.
    confidence : float, default=0.95
        Nominal coverage, between 0 and 1.
    n_resamples : int, default=9999
        Resamples of the G clusters, with replacement.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Notes
    -----
    Quantiles of the resampled statistics make an interval that is too short for few
    clusters, as if a variance were divided by G, not G - 1, and a normal stood for Student's
    t. So the quantiles taken are those at

    .. math:: \Phi\left(\mp \sqrt{G / (G - 1)} \; t_{G - 1, \, (1 + \text{confidence}) / 2}\right)

    (Hesterberg's expanded percentile interval). For normal means and 95 % it
    covered 87 % with four clusters, 93 % with six and 94 to 95 % from ten on (plain
    quantiles: 81, 87 and 90 %): the resamples cannot leave the range of the cluster means.

    **Cost**: O(n log n + B G) time for G clusters and B resamples, in blocks of bounded
    memory.

    References
    ----------
    T. C. Hesterberg, "What teachers should know about the bootstrap", The American
    Statistician 69, 2015, section 5.3.

    Examples
    --------
    >>> from covshift.measures import clustered_bootstrap_interval
    >>> differences = [0.05, 0.07, 0.02, 0.04, 0.03, 0.06]
    >>> speakers = ["ann", "ann", "bob", "bob", "cem", "dee"]
    >>> low, high = clustered_bootstrap_interval(differences, speakers, random_state=0)
    >>> round(low, 3), round(high, 3)
    (0.03, 0.06)
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
    means = _cluster_means(differences, groups)
    n_clusters, random_state = len(means), check_random_state(random_state)
    resampled = np.concatenate(
        [
            means[random_state.randint(n_clusters, size=(size, n_clusters))].mean(axis=1)
            for size in _block_sizes(n_resamples, n_clusters)
        ]
    )
    reach = student_t.ppf((1 + confidence) / 2, n_clusters - 1)
    tail = ndtr(-np.sqrt(n_clusters / (n_clusters - 1)) * reach)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


# --- Holm's correction of several p-values for having tested several hypotheses ---


def holm(pvalues: Any) -> FloatArray:
    r"""Return the p-values adjusted by Holm's step-down procedure.

    Rejecting where the adjusted p-value is at most :math:`\alpha` rejects one or more true
    hypotheses with probability at most :math:`\alpha`, however the tests depend on each other.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        In any order; may be empty.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        In the order of ``pvalues``; never smaller than them, never above one.

    Notes
    -----
    With :math:`p_{(1)} \le \dots \le p_{(m)}`, the adjusted value of :math:`p_{(i)}` is
    :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    **Cost**: O(k log k) time for k p-values.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal
    of Statistics 6, 65-70.

    Examples
    --------
    >>> from covshift.measures import holm
    >>> holm([0.01, 0.5, 0.02])
    array([0.03, 0.5 , 0.04])
    """
    values = np.asarray(pvalues, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"pvalues must be one-dimensional, got {values.ndim} dimensions.")
    if not ((values >= 0) & (values <= 1)).all():  # false for NaN as well
        raise ValueError("pvalues must be numbers from 0 to 1, without NaN.")
    order = np.argsort(values)
    still_in_play = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(still_in_play * values[order]))
    return adjusted


def mean_and_standard_error(values: Any) -> tuple[float, float]:
    r"""Return the mean of independent values, such as paired differences, and its standard error.

    .. math::

        \bar v = \frac{1}{n} \sum_i v_i, \qquad
        \text{SE} = \sqrt{\frac{1}{n (n - 1)} \sum_i (v_i - \bar v)^2}

    Parameters
    ----------
    values : array-like of shape (n,)
        Finite numbers, one per trial.

    Returns
    -------
    mean : float
        Mean.
    standard_error : float
        Standard error; NaN for a single value, which has no spread.

    Notes
    -----
    Trials that repeat a speaker or a site are not independent, and this error is too small
    for them: see `clustered_bootstrap_interval`.

    **Cost**: O(n) time and memory.

    Examples
    --------
    >>> from covshift.measures import mean_and_standard_error
    >>> mean_and_standard_error([1.0, 2.0, 3.0, 6.0])
    (3.0, 1.0801234497346435)
    """
    array = _check_trial_values(values, "values")
    # NumPy warns of one value; NaN is the documented answer, not an accident.
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return float(array.mean()), float(error)
