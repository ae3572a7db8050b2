r"""Null distribution of Wilcoxon's signed-rank statistic, given the ranks.

.. math:: T = \sum_i B_i r_i, \qquad B_i \in \{0, 1\} \text{ fair and independent}

so that :math:`P(T = t)` is the coefficient of :math:`x^t` in
:math:`\prod_i (1 + x^{r_i}) / 2`. Given the ranks it is exact, ties or not. Ranks of ties
are halves; doubled they are whole numbers and the product is one of polynomials.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


def doubled_rank_sum_probabilities(doubled_ranks: IntArray) -> FloatArray:
    """P(2 T = s) for s = 0, ..., sum of 2 r_i; O(n) passes over that many numbers."""
    probabilities = np.zeros(int(doubled_ranks.sum()) + 1)
    probabilities[0] = 1.0
    for rank in doubled_ranks:
        probabilities[rank:] += probabilities[:-rank]
        probabilities *= 0.5
    return probabilities
