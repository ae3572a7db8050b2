"""A mixed table as float features, as a step of a model.

========  ===================================  ==============================================
column    features                             missing, and what does not fit
========  ===================================  ==============================================
number    itself                               the median, and a feature that says so if there
                                               were missing values at fit
boolean   0 or 1                               as for numbers
date      place in the year, week and day, as  0 for sines and cosines, the median of days; and
          sine and cosine; days between dates  a feature as for numbers
          (`covshift.tables.dates`)
text      one per category, 0 or 1             a category of its own if there were missing
                                               values at fit; else none
========  ===================================  ==============================================

Text keeps its ``max_categories`` most common categories with ``min_frequency`` rows or more; all
others, and those never seen, are "(other)", if there were others at fit, and none otherwise.
Numbers that stand for nothing, units and the spelling of dates are those of ``spellings_`` and
``missing_``, which a `TableSchema` has given. All of this is learned from source rows only, so that
a category that only the target has is not a feature: the labels could teach nothing about it.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from covshift.base import all_or_nothing, check_count
from covshift.domains import check_fit_domains
from covshift.kernels.array_types import FloatArray
from covshift.tables.columns import (
    MISSING,
    Kind,
    as_columns,
    as_frame,
    column_categories,
    column_days,
    column_kind,
    column_numbers,
    column_text,
    column_truth,
)
from covshift.tables.dates import (
    cycle_features,
    feature_names,
    find_cycles,
    find_pairs,
    is_days,
    pair_name,
)
from covshift.tables.messages import listed
from covshift.tables.schema import TableSchema
from covshift.tables.text_layout import plain_name

MISSING_NAME, OTHER_NAME = "(missing)", "(other)"
MAX_KEPT_TEXTS = 1000  # texts kept of a column, to recognize new ones later


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a frame of numbers, truth values, dates and text into float features.

    Values that were not seen at fit never raise. See `covshift.tables.encoder` for the rules.

    Parameters
    ----------
    max_categories : int, default=30
        Categories of a text column that get a feature of their own, at most.
    min_frequency : int, default=5
        Rows that such a category must have.

    Attributes
    ----------
    kinds_ : dict
        Column -> "number", "boolean", "date" or "text".
    fill_values_ : dict
        Column -> what stands for missing numbers, truth values and dates (days).
    with_indicator_ : list
        Columns with a feature that says where they were missing.
    categories_ : dict
        Text column -> categories with a feature, "(other)" and "(missing)" last.
    date_cycles_ : dict
        Date column -> cycles that are features, of "year", "week" and "day".
    date_pairs_ : list
        Pairs of date columns whose distance is a feature, and ``date_distances_``, the median of
        each.
    texts_ : dict
        Text column -> all texts seen at fit, unless they were more than 1,000.
    ranges_ : dict
        Column of numbers -> smallest and largest.
    spellings_, missing_ : dict, list
        How cells are read that are text, as in `TableSchema`.
    feature_names_in_, n_features_in_
        Columns at fit. Later frames are matched by name; columns beyond these are left alone.

    Examples
    --------
    >>> import pandas as pd
    >>> from covshift.tables import TableEncoder
    >>> train = pd.DataFrame({"age": [30.0, None, 50.0], "city": ["Oslo", "Rome", "Rome"]})
    >>> encoder = TableEncoder(min_frequency=1).fit(train)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'city=Oslo', 'city=Rome']
    >>> encoder.transform(pd.DataFrame({"city": ["Rome", "Bonn"], "age": [20.0, None]}))
    array([[20.,  0.,  0.,  1.],
           [40.,  1.,  0.,  0.]])
    """

    __metadata_request__fit = {"sample_domain": True}
    # Models made before these were learned: a date is a number of days, and "?" a text.
    date_cycles_: dict[str, list[str]] | None = None
    date_pairs_: Sequence[Sequence[str]] = ()
    spellings_: Mapping[str, str] = {}
    missing_: Sequence[str] = MISSING
    texts_: Mapping[str, Sequence[str]] | None = None
    ranges_: Mapping[str, Sequence[float]] = {}

    def __init__(self, *, max_categories: int = 30, min_frequency: int = 5):
        self.max_categories = max_categories
        self.min_frequency = min_frequency

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_domain: Any = None,
        schema: TableSchema | None = None,
    ) -> Self:
        """Learn categories and fill values.

        Parameters
        ----------
        X : frame of shape (n_samples, n_columns)
            Rows of all domains.
        y : ignored
        sample_domain : array-like of int or None
            Only source rows (``>= 0``) are learned from; None: all are source rows.
        schema : TableSchema or None
            How cells are read that are still text: units, dates, missing values. None: plainly.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            check_count("max_categories", self.max_categories, minimum=1)
            check_count("min_frequency", self.min_frequency, minimum=1)
            frame = as_frame(X)
            names = [plain_name(str(name)) for name in frame.columns]
            if len(set(names)) < len(names):
                repeated = [name for name, count in Counter(names).items() if count > 1]
                raise ValueError(
                    f"Columns must have different names; repeated: {listed(repeated)}."
                )
            if not len(frame) or not names:
                raise ValueError(f"TableEncoder needs rows and columns, got {frame.shape}.")
            source = check_fit_domains(sample_domain, None, len(frame)).source
            frame = frame.loc[source] if not source.all() else frame
            self.spellings_ = {} if schema is None else dict(schema.spellings)
            self.missing_ = list(MISSING if schema is None else schema.missing)
            self.kinds_: dict[str, Kind] = {}
            self.fill_values_: dict[str, float] = {}
            self.categories_: dict[str, list[str]] = {}
            self.with_indicator_: list[str] = []
            self.date_cycles_, self.texts_, self.ranges_ = {}, {}, {}
            dates: dict[str, FloatArray] = {}
            for i, name in enumerate(names):
                self._learn_column(name, frame.iloc[:, i], dates)
            self.date_pairs_ = [list(pair) for pair in find_pairs(dates)]
            self.date_distances_ = [
                float(np.nanmedian(dates[second] - dates[first]))
                for first, second in self.date_pairs_
            ]
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
            if not len(self.get_feature_names_out()):
                raise ValueError(
                    "No column has anything to encode: all are constant text, or dates within a "
                    "few days."
                )
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rows.

        Parameters
        ----------
        X : frame, or batch of Arrow, with the columns of the fit, in any order

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        columns, n_rows = as_columns(X)
        absent = [name for name in self.kinds_ if name not in columns]
        if absent:
            raise ValueError(f"Columns of the fit are absent: {listed(absent)}. Add them.")
        # Column by column in memory, as they are written and as frames hold them.
        features = np.zeros((len(self.get_feature_names_out()), n_rows)).T
        start = 0
        dates: dict[str, FloatArray] = {}
        for name, kind in self.kinds_.items():
            if kind == "text":
                start += self._write_categories(features, start, name, columns[name])
                continue
            values = self.column_floats(columns[name], name)
            missing = np.isnan(values)
            if kind == "date" and self.date_cycles_ is not None:
                dates[name] = values
                for cycle in self.date_cycles_[name]:
                    features[:, start], features[:, start + 1] = cycle_features(values, cycle)
                    start += 2
            else:
                features[:, start] = np.where(missing, self.fill_values_[name], values)
                start += 1
            if name in self.with_indicator_:
                features[:, start] = missing
                start += 1
        for i, (first, second) in enumerate(self.date_pairs_):
            distance = dates[second] - dates[first]
            unknown = np.isnan(distance)
            features[:, start] = np.where(unknown, self.date_distances_[i], distance)
            start += 1
        return features

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return names like ``age``, ``age=(missing)``, ``city=Rome``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "categories_")
        names: list[str] = []
        for name, kind in self.kinds_.items():
            if kind == "text":
                names += [f"{name}={category}" for category in self.categories_[name]]
            else:
                indicator = [f"{name}={MISSING_NAME}"] if name in self.with_indicator_ else []
                if kind == "date" and self.date_cycles_ is not None:
                    own = feature_names(name, self.date_cycles_[name])
                else:
                    own = [name]
                names += [*own, *indicator]
        names += [pair_name(*pair) for pair in self.date_pairs_]
        return np.array(names, dtype=object)

    def columns_of_features(self) -> list[str]:
        """Return the column that each feature comes from; that of days between dates is two."""
        check_is_fitted(self, "categories_")
        owners: list[str] = []
        for name, kind in self.kinds_.items():
            if kind == "text":
                owners += [name] * len(self.categories_[name])
                continue
            cycles = self.date_cycles_ if kind == "date" else None
            owners += [name] * (1 if cycles is None else 2 * len(cycles[name]))
            owners += [name] * (name in self.with_indicator_)
        return [*owners, *(pair_name(*pair) for pair in self.date_pairs_)]

    def _learn_column(self, name: str, column: Any, dates: dict[str, FloatArray]) -> None:
        kind = column_kind(column)
        if is_days(self.spellings_.get(name, "")):
            kind = "number"
        self.kinds_[name] = kind
        if kind == "text":
            self.categories_[name] = self._choose_categories(name, column)
            return
        values = self.column_floats(column, name)
        missing = np.isnan(values)
        if kind == "date":
            dates[name] = values
            self.date_cycles_ = {**(self.date_cycles_ or {}), name: find_cycles(values)}
        elif kind == "number" and not missing.all():
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            self.ranges_ = {**self.ranges_, name: [low, high]}
        self.fill_values_[name] = 0.0 if missing.all() else float(np.median(values[~missing]))
        if missing.any() and not missing.all():
            self.with_indicator_.append(name)

    def _choose_categories(self, name: str, column: Any) -> list[str]:
        found = column_text(column, self.missing_).value_counts().to_pylist()
        counts = {entry["values"]: entry["counts"] for entry in found}
        n_missing = counts.pop(None, 0)
        if len(counts) <= MAX_KEPT_TEXTS:
            self.texts_ = {**(self.texts_ or {}), name: sorted(counts)}
        common = [text for text, count in counts.items() if count >= self.min_frequency]
        # Ties by name, so that the order of the rows decides nothing.
        common = sorted(common, key=lambda text: (-counts[text], text))[: self.max_categories]
        categories = sorted(common)
        if len(common) < len(counts):
            categories.append(OTHER_NAME)
        if n_missing:
            categories.append(MISSING_NAME)
        return categories if len(categories) > 1 else []  # one alone would be constant

    def known_texts(self) -> dict[str, set[str]]:
        """Return the texts that training rows had, of the columns where all of them are known."""
        check_is_fitted(self, "categories_")
        if self.texts_ is not None:
            return {name: set(texts) for name, texts in self.texts_.items()}
        return {  # a model of an earlier version
            name: set(categories)
            for name, categories in self.categories_.items()
            if categories and OTHER_NAME not in categories
        }

    def column_floats(self, column: Any, name: str) -> FloatArray:
        """Return a column of numbers, truth values or dates as floats; NaN where missing."""
        spelling = self.spellings_.get(name, "")
        if self.kinds_[name] == "date":
            return column_days(column, spelling)
        if self.kinds_[name] == "boolean":
            return column_truth(column)
        missing = MISSING if tuple(self.missing_) == MISSING else self.missing_
        return column_numbers(column, spelling, missing)

    def _write_categories(self, features: FloatArray, start: int, name: str, column: Any) -> int:
        texts, rows = column_categories(column, self.missing_)
        return _write_categories(features, start, texts, rows, self.categories_[name])

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models made before accents were composed have names and texts as their files wrote them.
        learned = {name: _composed(value) for name, value in state.items() if name.endswith("_")}
        super().__setstate__({**state, **learned})

    def __sklearn_tags__(self) -> Any:
        return take_any_column(super().__sklearn_tags__())


def take_any_column(tags: Any) -> Any:
    """Say in tags for scikit-learn that an encoder takes texts and missing values."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    return tags


def _composed(value: Any) -> Any:
    """Return a fitted attribute with all its texts in NFC; categories keep their order."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {_composed(name): _composed(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_composed, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([_composed(one) for one in value], dtype=object)
    return value


def _write_categories(
    features: FloatArray, start: int, texts: list[Any], rows: Any, categories: list[str]
) -> int:
    """Set the feature of each row's category to 1; return the number of features."""
    if not categories:
        return 0
    position = {name: i for i, name in enumerate(categories)}
    other = position.get(OTHER_NAME, -1)
    # The meaning of a value of this chunk is looked up once, not once per row.
    places = np.array(
        [
            position.get(MISSING_NAME, other) if value is None else position.get(value, other)
            for value in texts
        ],
        dtype=np.intp,
    )
    chosen = places[rows]
    n_rows = len(features)
    block = features[:, start : start + len(categories)].T.reshape(-1)
    # By position in the block of this column, which is faster than by row and column.
    cells = chosen * n_rows + np.arange(n_rows)
    block[cells if chosen.min(initial=0) >= 0 else cells[chosen >= 0]] = 1.0
    return len(categories)
