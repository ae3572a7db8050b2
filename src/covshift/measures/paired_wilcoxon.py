"""Wilcoxon's signed-rank test of paired scores, with an effect size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.measures.trials import Alternative, check_alternative, check_trial_values

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
    check_alternative(alternative)
    first, second = check_trial_values(a, "a"), check_trial_values(b, "b")
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
