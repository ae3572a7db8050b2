"""A model and a file -> a file of predictions, chunk by chunk."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.predictors.objective import describe_objective
from covshift.predictors.prediction_sets import PredictionSets, check_alpha, check_held_out
from covshift.solvers.blas_threads import one_blas_thread
from covshift.tables.arrow_columns import to_frame
from covshift.tables.classifier import TableClassifier
from covshift.tables.errors import TableError, listed
from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa
from covshift.tables.model_frames import open_for_model
from covshift.tables.reading import read_rows
from covshift.tables.writing import write_table

PREDICTION, SET = "prediction", "prediction set"
SET_ROWS = 1000  # of the file, that the shift is estimated from


def predict_file(
    model: TableClassifier,
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
    model : TableClassifier
        From `covshift.load`.
    path, out : path
        Rows to read, predictions to write (`write_table`), one per row, in the same order.
    keep : sequence of str
        Columns of the file to repeat in front of the predictions.
    probabilities : bool, default=False
        Whether to add the probability of each class.
    sets : float or None, default=None
        The ``alpha`` of ``predict_set``: adds a column with the set of each row, its classes as a
        JSON list of texts, which no class can break. The shift is estimated from at most 1,000
        rows of the file, drawn at random.
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
        ``rows``, ``counts`` of the predicted classes, ``objective``, ``notes``; with ``sets``
        also ``sets``: what is promised, the reason, and the mean size; with ``group`` also ``groups``, a dict for each: its name, ``rows``, ``prediction`` (the class of most of
        its rows), ``share`` of the rows with that class, and mean probabilities, if wanted.
    """
    if probabilities and not hasattr(model, "predict_proba"):
        raise TableError(
            "This model has no probabilities: leave --proba out, or adapt with --model linear, "
            "--model boosting or --adapter auto."
        )
    rows_of_file = None
    if sets is not None:
        check_alpha(sets)
        check_held_out(getattr(model, "held_out_", None))
        opened = open_for_model(model, path, domain=domain, **options)
        rows_of_file = read_rows(opened.reader, SET_ROWS).frame
    reader = open_for_model(model, path, extra=list(keep), domain=domain, **options)
    names = [PREDICTION, *(_probability_names(model) if probabilities else [])]
    tally_of_sets = _SetTally(sets)
    clash = [name for name in keep if name in [*names, *([] if sets is None else [SET])]]
    if clash:
        raise TableError(f"A column to keep is named like one to write: {listed(clash)}.")
    counts: Counter[int] = Counter()
    tally = _GroupTally(len(model.classes_))

    def frames() -> Iterator[Any]:
        n_rows = 0
        for batch in reader.chunks():
            codes, P = _predict(model, batch, reader.domain_numbers(batch), probabilities)
            written = {name: to_frame(batch.select([name]))[name].array for name in keep}
            written[PREDICTION] = _class_column(model.classes_, codes)
            written |= zip(names[1:], P.T, strict=True)
            if sets is not None:
                where = reader.domain_numbers(batch)
                found = model.predict_set(batch, sets, sample_domain=where, X_target=rows_of_file)
                tally_of_sets.add(found)
                written[SET] = _set_texts(model.classes_, found.included)
            counts.update(dict(enumerate(np.bincount(codes).tolist())))
            if group is not None:
                tally.add(list(written[group]), codes, P)
            n_rows += batch.num_rows
            if progress is not None:
                progress(n_rows, reader.reader.share_read)
            yield pd.DataFrame(written)

    # Threads of BLAS wait for work in a loop: they would take the core that reads.
    with one_blas_thread():
        n_rows = write_table(out, frames())
    predicted = {str(model.classes_[code]): n for code, n in counts.most_common() if n}
    return {
        "rows": n_rows,
        "counts": predicted,
        "objective": describe_objective(model.objective_),
        "notes": reader.notes(),
        "out": str(Path(out)),
        **({} if sets is None else {"sets": tally_of_sets.to_dict()}),
        **({} if group is None else {"groups": tally.to_rows(group, model.classes_, names[1:])}),
    }


class _SetTally:
    """What is promised of the sets of a file, and their sizes, summed up."""

    def __init__(self, alpha: float | None):
        self._alpha = alpha
        self._promise: dict[str, Any] = {}
        self._n_rows = self._n_included = 0

    def add(self, sets: PredictionSets) -> None:
        self._n_rows += len(sets.included)
        self._n_included += int(sets.included.sum())
        self._promise = {
            "promised": sets.promised,
            "method": sets.method,
            "reason": sets.reason,
            "effective sample size": round(sets.effective_sample_size, 1),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the promise, which is the same for all rows of a file, and the mean size."""
        mean = self._n_included / max(1, self._n_rows)
        return {"alpha": self._alpha, **self._promise, "mean size": mean}


def _set_texts(classes: Any, included: BoolArray) -> list[str]:
    """Return each set as a JSON list of its classes; equal sets are spelled once."""
    names = [str(name) for name in classes.tolist()]
    distinct, of_row = np.unique(included, axis=0, return_inverse=True)
    texts = [
        json.dumps([name for name, there in zip(names, one, strict=True) if there])
        for one in distinct.tolist()
    ]
    return [texts[number] for number in of_row.ravel().tolist()]


class _GroupTally:
    """Classes and probabilities of rows, summed up by group."""

    def __init__(self, n_classes: int):
        self._votes: dict[str, IntArray] = {}
        self._sums: dict[str, FloatArray] = {}
        self._n_classes = n_classes

    def add(self, groups: Sequence[Any], codes: IntArray, P: FloatArray) -> None:
        names, of_row = np.unique(np.array(groups, dtype=str), return_inverse=True)
        for number, name in enumerate(names.tolist()):
            rows = of_row == number
            votes = np.bincount(codes[rows], minlength=self._n_classes)
            self._votes[name] = self._votes.get(name, 0) + votes
            self._sums[name] = self._sums.get(name, 0.0) + P[rows].sum(axis=0)

    def to_rows(self, group: str, classes: Any, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return a dict for each group, in the order in which they came."""
        rows = []
        for one, votes in self._votes.items():
            n_rows, best = int(votes.sum()), int(votes.argmax())
            row = {group: one, "rows": n_rows, "prediction": classes[best].item(),
                   "share": float(votes[best] / n_rows)}  # fmt: skip
            means = (self._sums[one] / n_rows).tolist()
            rows.append(row | dict(zip(names, means, strict=True)))
        return rows


def _probability_names(model: TableClassifier) -> list[str]:
    return [f"probability of {name}" for name in model.classes_.tolist()]


def _predict(
    model: TableClassifier, batch: Any, where: Any, probabilities: bool
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
