"""Rows drawn at random, or dealt into folds, of each stratum about its share."""

import numpy as np

from covshift.kernels.array_types import IntArray


def deal_folds(strata: IntArray, n_folds: int, rng: np.random.RandomState) -> IntArray:
    """Draw the fold of each row (m,): each stratum is shuffled and dealt out evenly."""
    order = _shuffled_strata(strata, rng)
    folds = np.empty(len(strata), dtype=np.int64)
    # Dealt on from stratum to stratum: small ones must not all start with the first fold.
    folds[order] = np.arange(len(strata)) % n_folds
    return folds


def draw_rows(strata: IntArray, n_rows: int, rng: np.random.RandomState) -> IntArray:
    """Return the numbers of drawn rows, sorted: of each stratum about its share."""
    order = _shuffled_strata(strata, rng)
    _, start, size = np.unique(strata[order], return_index=True, return_counts=True)
    # Where in its stratum a row stands, from 0 to 1: the first ones of all strata are drawn.
    place = (np.arange(len(strata)) - np.repeat(start, size) + 0.5) / np.repeat(size, size)
    return np.sort(order[np.argsort(place, kind="stable")[:n_rows]])


def _shuffled_strata(strata: IntArray, rng: np.random.RandomState) -> IntArray:
    """Return the row numbers, stratum after stratum, each in random order."""
    shuffled = rng.permutation(len(strata))
    return shuffled[np.argsort(strata[shuffled], kind="stable")]
