"""Labeled rows with their weights, and the folds that cross-validation makes of them."""

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.distinct_rows import deal_folds, merge_rows, sum_by_class
from covshift.kernels.lspc import Fold, Part

Split = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class WeightedRows:
    """Distinct rows (m, d), sorted, and their weight in each class (m, C).

    They come from the rows ``used`` of a ``fit``: labeled, and of a weight above zero; each of
    which has a ``number`` among the distinct rows.
    """

    rows: FloatArray
    class_weights: FloatArray
    used: IntArray
    number: IntArray
    codes: IntArray
    weights: FloatArray

    @classmethod
    def merge(
        cls, X: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int
    ) -> "WeightedRows":
        """Merge rows of ``fit`` that are alike; those of code -1 have no label."""
        used = np.flatnonzero((codes >= 0) & (weights > 0))
        codes, weights = codes[used], weights[used]
        # Only ratios of weights matter. By a power of two no digit changes, nothing overflows.
        weights = np.ldexp(weights, -np.frexp(weights.max())[1])
        rows, number = merge_rows(X[used].astype(np.float64))
        table = sum_by_class(number, codes, weights, (len(rows), n_classes))
        return cls(rows, table, used, number, codes, weights)

    @property
    def strata(self) -> IntArray:
        """Class of the most weight of each distinct row."""
        return self.class_weights.argmax(axis=1)

    def deal_folds(self, n_folds: int, rng: np.random.RandomState) -> list[Fold]:
        """Return folds of distinct rows, stratified by class; none for a single row."""
        n_folds = min(n_folds, len(self.rows))
        if n_folds < 2:
            return []
        fold_of = deal_folds(self.strata, n_folds, rng)
        parts = [self._part(np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
        return [Fold(left_out=part, tested=part) for part in parts]

    def ready_made_folds(self, splits: Iterable[Split]) -> list[Fold]:
        """Return folds from positions among the rows of ``fit``; those not used are left out."""
        folds = []
        for train, test in splits:
            left_out = self.class_weights - self._count(train)
            tested = self._count(test)
            folds.append(Fold(*(_nonzero_part(table) for table in (left_out, tested))))
        return folds

    def _part(self, rows: IntArray) -> Part:
        return Part(rows, self.class_weights[rows])

    def _count(self, positions: IntArray) -> FloatArray:
        """Weight (m, C) of rows of ``fit``, given by position, as often as they are given."""
        times = np.bincount(positions, minlength=self.used[-1] + 1)[self.used]
        return sum_by_class(self.number, self.codes, times * self.weights, self.class_weights.shape)


def check_splits(cv: Any, n_samples: int) -> list[Split]:
    """Return ready-made splits as pairs of positions, or say what is wrong with them."""
    try:
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv]
    except (TypeError, ValueError):
        splits = []
    for part in (positions for split in splits for positions in split):
        valid = part.ndim == 1 and part.dtype.kind in "iu" and len(part)
        if not valid or part.min() < 0 or part.max() >= n_samples:
            splits = []
            break
    if not splits:
        raise ValueError(
            "cv must be a number of folds or pairs of arrays (train, test), which hold positions "
            f"among the {n_samples} rows of fit, got {reprlib.repr(cv)}. A splitter makes them: "
            "cv=list(splitter.split(X, y))."
        )
    return splits


def _nonzero_part(table: FloatArray) -> Part:
    rows = np.flatnonzero(table.any(axis=1))
    return Part(rows, table[rows])
