r"""Which target rows to label, and what their labels decide.

Hypotheses differ where their predictions do. A row on which all agree tells nothing about which of
them is right; so rows are asked for one by one, the next being that with the largest

.. math::

    \sum_{h < h'} \frac{\mathbb{1}[\hat y_h(x) \ne \hat y_{h'}(x)]}{1 + n_{hh'}},

:math:`n_{hh'}` being the number of rows asked for so far on which h and h' differ: no pair is
forgotten. Between two hypotheses the labels decide by the rows on which just one of them is right
(a sign test, exact). Over the whole target the gain of h over h' is the share of rows on which they
differ, times the mean of who was right on those of them that were labelled.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest, norm

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.measures import holm

LEVEL, POWER = 0.05, 0.9
# Of two hypotheses that differ on a row, the better one is taken to be right in so many of those
# rows on which just one is right.
RIGHT_OFTEN = 0.8


class LabelEvidence(NamedTuple):
    """What labels say of each hypothesis; hypotheses that predict nothing have NaN."""

    n_labels: int
    right: FloatArray  # (H,): share of the labelled rows
    gains: FloatArray  # (H,): over the first hypothesis, on the whole target
    intervals: FloatArray  # (H, 2)
    pvalues: FloatArray  # (H,): of no gain, by Holm
    behind: FloatArray  # (H,): of being as good as the best, by Holm


def rows_to_label(
    predictions: IntArray, n_rows: int, rng: np.random.RandomState, taken: IntArray | None = None
) -> IntArray:
    """Numbers of the target rows to label, the most telling first.

    ``predictions``: (H, n) of the hypotheses; ``taken``: rows that have labels already. Fewer rows
    come back where there are not as many on which any two differ.
    """
    first, second = np.triu_indices(len(predictions), k=1)
    differs = predictions[first] != predictions[second]  # (pairs, n)
    open_rows = differs.any(axis=0)
    counts = np.zeros(len(first))
    if taken is not None and len(taken):
        counts += differs[:, taken].sum(axis=1)
        open_rows[taken] = False
    order = rng.permutation(predictions.shape[1])  # ties: any row
    chosen: list[int] = []
    while len(chosen) < n_rows and open_rows.any():
        worth = (differs[:, order] / (1 + counts)[:, None]).sum(axis=0) * open_rows[order]
        row = int(order[worth.argmax()])
        chosen.append(row)
        open_rows[row] = False
        counts += differs[:, row]
    return np.array(chosen, dtype=int)


def labels_needed() -> int:
    """Rows on which two hypotheses differ whose labels would settle between them."""
    z = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))
    lead = 2 * RIGHT_OFTEN - 1
    return int(np.ceil(z**2 * (1 - lead**2) / lead**2)) + 1


def weigh_labels(predictions: IntArray, rows: IntArray, codes: IntArray) -> LabelEvidence:
    """Compare hypotheses (H, n) by the labels of some target rows."""
    right = (predictions[:, rows] == codes).astype(float)
    shares = right.mean(axis=1)
    H = len(predictions)
    best = int(shares.argmax())
    gains, intervals = np.zeros(H), np.zeros((H, 2))
    pvalues, behind = np.ones(H), np.ones(H)
    for h in range(1, H):
        gains[h], intervals[h] = _gain(predictions, rows, right, h, 0)
        pvalues[h] = _sign_test(right[h], right[0], "two-sided")
    for h in range(H):
        if h != best:
            behind[h] = _sign_test(right[best], right[h], "greater")
    pvalues[1:] = holm(pvalues[1:])
    others = np.arange(H) != best
    behind[others] = holm(behind[others])
    return LabelEvidence(len(rows), shares, gains, intervals, pvalues, behind)


def _gain(
    predictions: IntArray, rows: IntArray, right: FloatArray, h: int, base: int
) -> tuple[float, tuple[float, float]]:
    """Gain of h over the base on all target rows, and its 95 % interval."""
    differ = predictions[h] != predictions[base]
    labelled = differ[rows]
    share = float(differ.mean())
    n = int(labelled.sum())
    if share == 0 or n == 0:
        return 0.0, (-share, share)
    differences = (right[h] - right[base])[labelled]
    mean = float(differences.mean())
    # As if one more row had gone either way: no certainty from few rows.
    spread = np.sqrt((differences**2).sum() + 2) / (n + 2)
    reach = float(norm.ppf(0.975)) * spread
    return share * mean, (share * max(-1.0, mean - reach), share * min(1.0, mean + reach))


def _sign_test(a: FloatArray, b: FloatArray, alternative: str) -> float:
    wins, losses = int((a > b).sum()), int((a < b).sum())
    if wins + losses == 0:
        return 1.0
    return float(binomtest(wins, wins + losses, alternative=alternative).pvalue)
