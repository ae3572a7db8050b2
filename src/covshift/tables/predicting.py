"""A model and a file -> a file of predictions, chunk by chunk."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.predictors.objectives import describe_objective
from covshift.predictors.prediction_sets import PredictionIntervals, PredictionSets, check_held_out
from covshift.solvers.threads import one_blas_thread
from covshift.tables.columns import to_frame
from covshift.tables.messages import TableError, listed
from covshift.tables.model_reader import open_for_model
from covshift.tables.reading import read_rows
from covshift.tables.table_models import TableEstimator
from covshift.tables.text_layout import plain_name
from covshift.tables.writing import write_table

PREDICTION, SET = "prediction", "prediction set"
LOW, HIGH = "prediction low", "prediction high"  # columns of prediction intervals
SET_ROWS = 1000  # rows of the file from which the shift is estimated


def predict_file(
    model: TableEstimator,
    path: Any,
    out: Any,
    *,
    keep: Sequence[str] = (),
    probabilities: bool = False,
    sets: float | None = None,
    domain: str | None = None,
    group: str | None = None,
    progress: Callable[[int, float | None], object] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Predict the rows of a file; memory does not grow with it.

    Parameters
    ----------
    model : TableClassifier or TableRegressor
        From `covshift.load`.
    path, out : path
        Rows to read, predictions to write (`write_table`), one per row, in the same order.
    keep : sequence of str
        Columns of the file to repeat in front of the predictions.
    probabilities : bool, default=False
        Whether to add the probability of each class.
    sets : float or None, default=None
        The ``alpha`` of ``predict_set``: adds a column with the set of each row, its classes as a
        JSON list of texts, which no class can break; of a `TableRegressor`, two columns with the
        ends of its interval, infinite where the source says too little. The shift is estimated
        from at most 1,000 rows of the file, drawn at random. The promise is in ``sets`` of the
        result.
    domain : str or None, default=None
        Column that names each row's domain; None: that of the training table, if the file has it.
    group : str or None, default=None
        Column of ``keep`` that says which rows belong together, such as the windows of a
        recording: each group gets a prediction of its own.
    progress : callable or None
        Gets the number of rows predicted so far, and the share of the file (None: unknown).
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict
        ``rows``, ``counts`` of the predicted classes, ``objective``, ``notes``; with ``group``
        also ``groups``, a dict for each: its name, ``rows``, ``prediction`` (the class of most of
        its rows), ``share`` of the rows with that class, and mean probabilities, if wanted. Of a
        `TableRegressor`, ``values`` (``smallest``, ``mean`` and ``largest`` prediction) stand in
        place of ``counts``; the prediction of a group is the mean of its rows, beside their
        ``spread``, the standard deviation.
    """
    keep, group = [plain_name(name) for name in keep], None if group is None else plain_name(group)
    classes = getattr(model, "classes_", None)
    if probabilities and classes is None:
        raise TableError(
            "This model predicts numbers, which have no probabilities: leave --proba out."
        )
    if probabilities and not hasattr(model, "predict_proba"):
        raise TableError(
            "This model has no probabilities: leave --proba out, or adapt with --model logistic, "
            "--model boosting or --adapter auto."
        )
    rows_of_file = None
    if sets is not None:
        check_held_out(model, sets)
        opened = open_for_model(model, path, domain=domain, **options)
        rows_of_file = read_rows(opened.reader, SET_ROWS).frame
    set_tally = _SetTally(sets)
    reader = open_for_model(model, path, extra=keep, domain=domain, **options)
    names = [PREDICTION, *(_probability_names(model) if probabilities else [])]
    of_sets = [] if sets is None else [LOW, HIGH] if classes is None else [SET]
    clash = [name for name in keep if name in [*names, *of_sets]]
    if clash:
        raise TableError(f"A column to keep is named like one to write: {listed(clash)}.")
    summary = _NumberSummary(model) if classes is None else _ClassSummary(model, probabilities)

    def frames() -> Iterator[Any]:
        n_rows = 0
        for batch in reader.chunks():
            written = {name: to_frame(batch.select([name]))[name].array for name in keep}
            groups = None if group is None else list(written[group])
            columns = summary.predict(batch, reader.domain_numbers(batch), groups)
            written |= zip(names, columns, strict=True)
            if sets is not None:
                where = reader.domain_numbers(batch)
                ask = model.predict_interval if classes is None else model.predict_set
                found = ask(batch, sets, sample_domain=where, X_target=rows_of_file)
                set_tally.add(found)
                if classes is None:
                    written |= {LOW: found.low, HIGH: found.high}
                else:
                    written[SET] = _set_texts(classes, found.included)
            n_rows += batch.num_rows
            if progress is not None:
                progress(n_rows, reader.reader.share_read)
            yield pd.DataFrame(written)

    # Threads of BLAS wait for work in a loop: they would take the core that reads.
    with one_blas_thread():
        n_rows = write_table(out, frames())
    return {
        "rows": n_rows,
        **summary.to_dict(),
        "objective": describe_objective(model.objective_),
        "notes": [*reader.notes(), *summary.notes()],
        "out": str(Path(out)),
        **({} if sets is None else {"sets": set_tally.to_dict()}),
        **({} if group is None else {"groups": summary.to_rows(group, names[1:])}),
    }


class _SetTally:
    """Promise for the sets or intervals of a file, and a summary of their sizes."""

    def __init__(self, alpha: float | None):
        self._alpha = alpha
        self._promise: dict[str, Any] = {}
        self._n_rows = self._n_infinite = 0
        self._total = 0.0
        self._of_numbers = False

    def add(self, found: PredictionSets | PredictionIntervals) -> None:
        """Take the sets of some more rows."""
        if isinstance(found, PredictionIntervals):
            self._of_numbers = True
            sizes = found.high - found.low
            self._n_infinite += int(np.isinf(sizes).sum())
            sizes = np.where(np.isinf(sizes), 0.0, sizes)
        else:
            sizes = found.included.sum(axis=1)
        self._n_rows += len(sizes)
        self._total += float(sizes.sum())
        self._promise = {
            "promised": found.promised,
            "method": found.method,
            "reason": found.reason,
            "effective sample size": round(found.effective_sample_size, 1),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the promise, which is the same for all rows of a file, and the mean size."""
        mean = self._total / max(1, self._n_rows - self._n_infinite)
        size = {"mean width": mean, "infinite": self._n_infinite}
        return {
            "alpha": self._alpha,
            **self._promise,
            **(size if self._of_numbers else {"mean size": mean}),
        }


def _set_texts(classes: Any, included: BoolArray) -> list[str]:
    """Return each set as a JSON list of its classes; equal sets are spelled once."""
    names = [str(name) for name in classes.tolist()]
    distinct, of_row = np.unique(included, axis=0, return_inverse=True)
    texts = [
        json.dumps([name for name, there in zip(names, one, strict=True) if there])
        for one in distinct.tolist()
    ]
    return [texts[number] for number in of_row.ravel().tolist()]


class _ClassSummary:
    """Predicts classes; counts them, and sums up classes and probabilities by group."""

    def __init__(self, model: Any, probabilities: bool):
        self._model, self._probabilities = model, probabilities
        self._counts: Counter[int] = Counter()
        self._votes: dict[str, IntArray] = {}
        self._sums: dict[str, FloatArray] = {}

    def predict(self, batch: Any, where: Any, groups: Sequence[Any] | None) -> list[Any]:
        """Return the columns to write of one batch."""
        codes, P = _predict(self._model, batch, where, self._probabilities)
        self._counts.update(dict(enumerate(np.bincount(codes).tolist())))
        if groups is not None:
            self._add(groups, codes, P)
        return [_class_column(self._model.classes_, codes), *P.T]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of each predicted class."""
        names = self._model.classes_
        return {"counts": {str(names[code]): n for code, n in self._counts.most_common() if n}}

    def notes(self) -> list[str]:
        """Return what is worth saying about the predictions."""
        return []

    def _add(self, groups: Sequence[Any], codes: IntArray, P: FloatArray) -> None:
        n_classes = len(self._model.classes_)
        names, of_row = np.unique(np.array(groups, dtype=str), return_inverse=True)
        for number, name in enumerate(names.tolist()):
            rows = of_row == number
            votes = np.bincount(codes[rows], minlength=n_classes)
            self._votes[name] = self._votes.get(name, 0) + votes
            self._sums[name] = self._sums.get(name, 0.0) + P[rows].sum(axis=0)

    def to_rows(self, group: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return a dict for each group, in the order in which they came."""
        rows = []
        for one, votes in self._votes.items():
            n_rows, best = int(votes.sum()), int(votes.argmax())
            row = {group: one, "rows": n_rows, "prediction": self._model.classes_[best].item(),
                   "share": float(votes[best] / n_rows)}  # fmt: skip
            means = (self._sums[one] / n_rows).tolist()
            rows.append(row | dict(zip(names, means, strict=True)))
        return rows


class _NumberSummary:
    """Predicts numbers; keeps their range and mean, of all rows and by group."""

    def __init__(self, model: Any):
        self._model = model
        self._moments: dict[str, FloatArray] = {}  # group -> count, mean, sum of squares around it
        self._whole: FloatArray = np.zeros(3)
        self._low, self._high = np.inf, -np.inf
        self._n_outside = 0

    def predict(self, batch: Any, where: Any, groups: Sequence[Any] | None) -> list[Any]:
        """Return the columns to write of one batch."""
        values: FloatArray = np.asarray(
            self._model.predict(batch, sample_domain=where), dtype=np.float64
        )
        if len(values):
            self._whole = _merge_moments(self._whole, values)
            self._low = min(self._low, float(values.min()))
            self._high = max(self._high, float(values.max()))
        if len(self._model.label_range_):
            low, high = self._model.label_range_
            self._n_outside += int(((values < low) | (values > high)).sum())
        if groups is not None:
            names, of_row = np.unique(np.array(groups, dtype=str), return_inverse=True)
            for number, name in enumerate(names.tolist()):
                before = self._moments.get(name, np.zeros(3))
                self._moments[name] = _merge_moments(before, values[of_row == number])
        return [values]

    def to_dict(self) -> dict[str, Any]:
        """Return the smallest, mean and largest prediction."""
        if not self._whole[0]:
            return {"values": None}
        mean = float(self._whole[1])
        return {"values": {"smallest": self._low, "mean": mean, "largest": self._high}}

    def notes(self) -> list[str]:
        """Say how many predictions lie where no training label does."""
        if not self._n_outside:
            return []
        # Here: most models predict classes.
        from covshift.selection.assessment_words import say_number

        low, high = self._model.label_range_
        lie = "lies" if self._n_outside == 1 else "lie"
        return [
            f"{self._n_outside:,} of {int(self._whole[0]):,} predictions {lie} outside the range "
            f"of the training labels ({say_number(low)} to {say_number(high)})."
        ]

    def to_rows(self, group: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return a dict for each group, in the order in which they came."""
        return [
            {group: one, "rows": int(n), "prediction": float(mean), "spread": float(np.sqrt(M / n))}
            for one, (n, mean, M) in self._moments.items()
        ]


def _merge_moments(before: FloatArray, values: FloatArray) -> FloatArray:
    """Return count, mean and sum of squares around the mean, with more values (Chan et al.)."""
    n, mean, M = before
    m, mean_new = len(values), float(values.mean())
    total, apart = n + m, mean_new - mean
    squares = M + float(((values - mean_new) ** 2).sum()) + apart**2 * n * m / total
    return np.array([total, mean + apart * m / total, squares])


def _probability_names(model: Any) -> list[str]:
    return [f"probability of {name}" for name in model.classes_.tolist()]


def _predict(
    model: Any, batch: Any, where: Any, probabilities: bool
) -> tuple[IntArray, FloatArray]:
    """Return the numbers of the predicted classes, and the probabilities that are wanted.

    The classes are those of ``predict``, whether probabilities are wanted or not.
    """
    P = np.empty((batch.num_rows, 0))
    if probabilities:
        P = model.predict_proba(batch, sample_domain=where)
    if probabilities and hasattr(model, "decide"):
        labels = model.decide(P)
    else:
        labels = model.predict(batch, sample_domain=where)
    return np.searchsorted(model.classes_, labels), P


def _class_column(classes: Any, codes: IntArray) -> Any:
    """Return the classes of rows; a class that is text becomes text of Arrow once."""
    if classes.dtype.kind not in "OU":
        return classes[codes]
    texts = pa.array([str(name) for name in classes], pa.string())
    return pd.array(texts.take(pa.array(codes)), dtype=pd.StringDtype("pyarrow"))
