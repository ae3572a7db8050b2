r"""Which target rows to label, and what their labels decide.

Hypotheses differ where their predictions do: a row on which all agree tells nothing about which of
them is right. Rows are drawn without replacement, with chances in proportion to

.. math::

    u(x) = \sum_{h < h'} \frac{\mathbb{1}[\hat y_h(x) \ne \hat y_{h'}(x)]}{q_{hh'}},

:math:`q_{hh'}` being the share of target rows on which h and h' differ, so that no pair is
forgotten. Such rows are not like the others; so each weighs :math:`1 / u(x)` in what follows.
(Taking the rows of largest u, without drawing, would favour whoever is right just there.) Over the
target the gain of h over h' is :math:`q_{hh'}` times the weighted mean, over labelled rows on which
they differ, of who was right. Whether one is better than the other is tested by turning the signs
of these differences at random.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.measures import holm

LEVEL, POWER = 0.05, 0.9
# Of two hypotheses that differ on a row, the better one is taken to be right in so many of those
# rows on which just one is right.
RIGHT_OFTEN = 0.8
N_TURNS = 1999  # of signs


class LabelEvidence(NamedTuple):
    """What labels say of each hypothesis; hypotheses that predict nothing have NaN."""

    n_labels: int
    right: FloatArray  # (H,): weighted share of the labelled rows
    gains: FloatArray  # (H,): over the first hypothesis, on the whole target
    intervals: FloatArray  # (H, 2)
    pvalues: FloatArray  # (H,): of no gain, by Holm
    behind: FloatArray  # (H,): of being as good as the best, by Holm


def rows_to_label(
    predictions: IntArray, n_rows: int, rng: np.random.RandomState, taken: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Numbers of the target rows to label, and their weights.

    ``predictions``: (H, n) of the hypotheses; ``taken``: rows that have labels already. Fewer rows
    come back where there are not as many on which any two differ. Of a longer list from the same
    random numbers, a shorter one is the beginning.
    """
    first, second = np.triu_indices(len(predictions), k=1)
    differs = predictions[first] != predictions[second]  # (pairs, n)
    shares = differs.mean(axis=1, keepdims=True)
    chances = np.divide(differs, shares, out=np.zeros(differs.shape), where=shares > 0).sum(axis=0)
    if taken is not None and len(taken):
        chances[taken] = 0.0
    # The largest of log-chances with Gumbel noise are a draw without replacement.
    with np.errstate(divide="ignore"):
        keys = np.log(chances) + rng.gumbel(size=len(chances))
    chosen = np.argsort(-keys, kind="stable")[: min(n_rows, int((chances > 0).sum()))]
    return chosen, 1 / chances[chosen]


def locate_labels(
    target_rows: IntArray, classes: Any, rows: Any, labels: Any
) -> tuple[IntArray, IntArray]:
    """Numbers, among the target rows looked at, of rows by position in X; numbers of the classes.

    A class that the source does not have is -1: no hypothesis can be right about it.
    """
    rows, labels = np.atleast_1d(rows), np.atleast_1d(labels)
    if rows.shape != labels.shape:
        raise ValueError(f"There are {len(rows)} rows but {len(labels)} labels.")
    place = {int(row): number for number, row in enumerate(target_rows)}
    unknown = [int(row) for row in rows if int(row) not in place]
    if unknown:
        raise ValueError(
            f"Row {unknown[0]} is no target row that this diagnosis looked at: see "
            "rows_to_label() and target_rows."
        )
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    codes[classes[codes] != labels] = -1
    return np.array([place[int(row)] for row in rows], dtype=int), codes


def add_labels(
    known: FloatArray, drawn: tuple[IntArray, FloatArray], numbers: IntArray, codes: IntArray
) -> FloatArray:
    """Rows, classes and weights (3, n) of all labels so far; new labels replace old ones.

    Rows that were asked for have the weights that they were ``drawn`` with, as one asked for so
    many (`rows_to_label`). Others are taken for a random draw.
    """
    labelled = {int(row): (code, weight) for row, code, weight in known.T}
    weights = dict(zip(*drawn, strict=True))
    usual = float(np.mean(list(weights.values()))) if weights else 1.0
    for number, code in zip(numbers, codes, strict=True):
        labelled[int(number)] = (code, weights.get(number, usual))
    return np.array([(row, code, weight) for row, (code, weight) in labelled.items()]).T


def labels_needed() -> int:
    """Rows on which two hypotheses differ whose labels would settle between them."""
    z = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))
    lead = 2 * RIGHT_OFTEN - 1
    return int(np.ceil(z**2 * (1 - lead**2) / lead**2)) + 1


def weigh_labels(
    predictions: IntArray,
    rows: IntArray,
    codes: IntArray,
    weights: FloatArray,
    rng: np.random.RandomState,
) -> LabelEvidence:
    """Compare hypotheses (H, n) by the labels of some target rows with weights."""
    right = (predictions[:, rows] == codes).astype(float)
    shares = right @ weights / weights.sum()
    H = len(predictions)
    best = int(shares.argmax())
    # The same turns of signs for every pair: the results do not depend on the order of the pairs.
    signs = rng.choice([-1.0, 1.0], size=(N_TURNS, len(rows)))
    gains, intervals = np.zeros(H), np.zeros((H, 2))
    pvalues, behind = np.ones(H), np.ones(H)
    for h in range(1, H):
        gains[h], intervals[h] = _gain(predictions[[0, h]], rows, right[h] - right[0], weights)
        pvalues[h] = _turned(weights * (right[h] - right[0]), signs, two_sided=True)
    for h in range(H):
        if h != best:
            behind[h] = _turned(weights * (right[best] - right[h]), signs, two_sided=False)
    pvalues[1:] = holm(pvalues[1:])
    others = np.arange(H) != best
    behind[others] = holm(behind[others])
    return LabelEvidence(len(rows), shares, gains, intervals, pvalues, behind)


def _gain(
    two: IntArray, rows: IntArray, differences: FloatArray, weights: FloatArray
) -> tuple[float, tuple[float, float]]:
    """Gain of the second over the first on all target rows, and its 95 % interval."""
    differ = two[0] != two[1]
    share, labelled = float(differ.mean()), differ[rows]
    if not labelled.any():
        return 0.0, (-share, share)
    d, w = differences[labelled], weights[labelled]
    mean = float(w @ d / w.sum())
    # As if two more rows of mean weight had gone either way: no certainty from few rows.
    spread = np.sqrt(w**2 @ (d - mean) ** 2 + 2 * (w**2).mean()) / (w.sum() + 2 * w.mean())
    reach = float(norm.ppf(0.975)) * float(spread)
    return share * mean, (share * max(-1.0, mean - reach), share * min(1.0, mean + reach))


def _turned(terms: FloatArray, signs: FloatArray, *, two_sided: bool) -> float:
    """Share of turns of signs that sum to as much, itself among them."""
    total, turned = terms.sum(), signs @ terms
    if two_sided:
        total, turned = abs(total), np.abs(turned)
    return float((1 + (turned >= total - 1e-12).sum()) / (1 + len(signs)))
