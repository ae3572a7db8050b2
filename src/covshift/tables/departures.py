"""Values in the rows of a file that a model does not know, counted while they are read.

- texts that no training row has;
- numbers outside the range of the training rows and of the target rows kept in the model;
- missing values in columns that had none.

`adapt`, `predict`, `score` and `monitor` report the same.
"""

from collections import Counter
from typing import Any

import numpy as np

from covshift.tables.columns import as_columns, column_categories
from covshift.tables.encoder import OTHER_NAME
from covshift.tables.errors import listed
from covshift.tables.estimator import TableEstimator
from covshift.tables.extra import pyarrow as pa
from covshift.tables.features import case_hint

MIN_SHARE_OUTSIDE = 0.05  # of rows outside the range; a few always are
MAX_REMEMBERED = 1000
MAX_OUTSIDE = 10  # columns outside their range with a note each; more share one


class Departures:
    """Counts over the batches of a file, for a model.

    Parameters
    ----------
    model : TableEstimator
        Fitted. Facts that older models did not keep are not reported.
    """

    def __init__(self, model: TableEstimator):
        self._encoder = model.encoder_
        self._known = self._encoder.known_texts()
        self._ranges = _ranges(model)
        self.n_rows = 0
        self.unseen: dict[str, Counter[str]] = {name: Counter() for name in self._known}
        self.n_unseen: Counter[str] = Counter()
        self.n_outside: Counter[str] = Counter()
        self.n_missing: Counter[str] = Counter()

    def add(self, rows: Any) -> None:
        """Count one batch of Arrow, or one frame."""
        columns, n_rows = as_columns(rows)
        self.n_rows += n_rows
        for name, known in self._known.items():
            texts, places = column_categories(columns[name], self._encoder.missing_)
            strange = [i for i, text in enumerate(texts) if text is not None and text not in known]
            if strange:
                counts = np.bincount(places, minlength=len(texts))
                self._count_unseen(name, {texts[i]: int(counts[i]) for i in strange})
        for name, (low, high) in self._ranges.items():
            if _lies_within(columns[name], low, high):
                self.n_missing[name] += columns[name].null_count
                continue
            values = self._encoder.column_floats(columns[name], name)
            missing = np.isnan(values)
            self.n_missing[name] += int(missing.sum())
            if not missing.all() and (np.nanmin(values) < low or np.nanmax(values) > high):
                self.n_outside[name] += int(((values < low) | (values > high)).sum())

    def _count_unseen(self, name: str, counts: dict[Any, int]) -> None:
        self.n_unseen[name] += sum(counts.values())
        remembered = self.unseen[name]
        for text, count in counts.items():
            if count and (text in remembered or len(remembered) < MAX_REMEMBERED):
                remembered[text] += count

    def notes(self) -> list[str]:
        """Return what was found, in plain sentences."""
        notes = []
        for name, count in self.n_unseen.items():
            if count:
                with_other = OTHER_NAME in self._encoder.categories_[name]
                fate = "count as '(other)'" if with_other else "have no effect there"
                notes.append(
                    f"Column {listed([name])}: {_of(count, self.n_rows)} have values that no "
                    f"training row has ({listed(sorted(self.unseen[name]), 3)}); they {fate}."
                    + case_hint(self.unseen[name], self._known[name])
                )
        notes += self._outside_notes()
        for name, count in self.n_missing.items():
            usual = name in self._encoder.with_indicator_
            if MIN_SHARE_OUTSIDE * self.n_rows <= count < self.n_rows and not usual:
                notes.append(
                    f"Column {listed([name])}: {_of(count, self.n_rows)} have no value, and all "
                    "training rows had one; the training median is used."
                )
        return notes

    def _outside_notes(self) -> list[str]:
        """Return a note for each column outside its range, or one for many."""
        least = MIN_SHARE_OUTSIDE * self.n_rows
        outside = {name: count for name, count in self.n_outside.items() if count >= least}
        if len(outside) > MAX_OUTSIDE:  # amplitudes of a spectrum leave their ranges together
            worst = sorted(outside, key=lambda name: -outside[name])
            return [
                f"{len(outside):,} of {len(self._ranges):,} columns have values outside the range "
                f"that the model knows ({listed(worst, 3)}), the first in "
                f"{_of(outside[worst[0]], self.n_rows)}."
            ]
        notes = []
        for name, count in outside.items():
            low, high = self._ranges[name]
            notes.append(
                f"Column {listed([name])}: {_of(count, self.n_rows)} lie outside the range "
                f"that the model knows ({low:g} to {high:g})."
            )
        return notes


def _lies_within(column: Any, low: float, high: float) -> bool:
    """Whether a column is numbers of Arrow, all in the range: one pass, and nothing is converted.

    So are most batches of most files, and `predict` reads them all.
    """
    if not isinstance(column, pa.Array) or column.type != pa.float64():
        return False
    ends = pa.compute.min_max(column).as_py()
    return ends["min"] is None or bool(low <= ends["min"] and ends["max"] <= high)


def _of(count: int, n_rows: int) -> str:
    if count == n_rows:
        return f"all {n_rows:,} rows" if n_rows > 1 else "the row"
    return f"{count:,} of {n_rows:,} rows"


def _ranges(model: TableEstimator) -> dict[str, tuple[float, float]]:
    """Return the range of each column of numbers, in training and target rows together."""
    ranges = dict(model.encoder_.ranges_)
    names = model.encoder_.get_feature_names_out().tolist()
    if len(model.reference_):
        lows, highs = model.reference_.min(axis=0), model.reference_.max(axis=0)
        for name, (low, high) in ranges.items():
            feature = names.index(name)
            ranges[name] = min(low, float(lows[feature])), max(high, float(highs[feature]))
    return {name: (low, high) for name, (low, high) in ranges.items()}
