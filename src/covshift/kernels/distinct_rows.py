"""Rows that are alike, as one: so that weighing a row by 2 is the same as having it twice.

Folds and bases are drawn among distinct rows, never among positions. Then copies of a row
cannot stand on both sides of a fold, and neither the order of the rows nor the way in which
their weight is spread over copies makes a difference.
"""

from collections import Counter

import numpy as np

from covshift.kernels.array_types import FloatArray, IntArray


def merge_rows(X: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows (m, d), sorted, and the number among them of each row (n,)."""
    rows, number = np.unique(X, axis=0, return_inverse=True)
    return rows, number.reshape(-1)  # NumPy 2.0 gives it another shape


def sum_by_class(
    number: IntArray, codes: IntArray, weights: FloatArray, shape: tuple[int, int]
) -> FloatArray:
    """Weight (m, C) of each distinct row in each class."""
    table = np.zeros(shape)
    np.add.at(table, (number, codes), weights)
    return table


def share_repeated(known: FloatArray, X: FloatArray) -> float:
    """Return the share of the rows X that are not new but rows of ``known``, bit for bit.

    0 where that has no meaning: rows of few different values repeat by chance. They do so among
    ``known``, too, of which then at least half as many have a twin.
    """
    if not len(known) or not len(X):
        return 0.0
    counts = _count_rows(known)
    share = sum(n for row, n in _count_rows(X).items() if row in counts) / len(X)
    by_chance = sum(n for n in counts.values() if n > 1) / len(known)
    return share if by_chance <= share / 2 else 0.0


def count_distinct(known: FloatArray, X: FloatArray) -> int:
    """Return how many of the rows X are distinct, bit for bit.

    All of them where that has no meaning: rows of few different values repeat by chance. Then at
    least half as large a share of ``known`` are copies, too.
    """
    different = len(_count_rows(X))
    copies, by_chance = 1 - different / len(X), 1 - len(_count_rows(known)) / len(known)
    return len(X) if by_chance >= copies / 2 else different


def _count_rows(rows: FloatArray) -> Counter[bytes]:
    plain = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # no -0.0
    return Counter(row.tobytes() for row in plain)
