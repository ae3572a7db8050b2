"""A model and a file -> a file of predictions, chunk by chunk."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.solvers.blas_threads import one_blas_thread
from covshift.tables.arrow_columns import to_frame
from covshift.tables.classifier import TableClassifier
from covshift.tables.domain_codes import domain_texts, known_numbers
from covshift.tables.errors import TableError, listed
from covshift.tables.extra import pandas as pd
from covshift.tables.extra import pyarrow as pa
from covshift.tables.model_frames import notes_of, open_for_model
from covshift.tables.table_reader import TableReader
from covshift.tables.writing import write_table

PREDICTION = "prediction"
CHUNK_ROWS = 50_000  # of which some models need a matrix of kernels


def predict_file(
    model: TableClassifier,
    path: Any,
    out: Any,
    *,
    keep: Sequence[str] = (),
    probabilities: bool = False,
    domain: str | None = None,
    progress: Callable[[int], object] | None = None,
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
    domain : str or None, default=None
        Column that names each row's domain.
    progress : callable or None
        Gets the number of rows predicted so far.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict
        ``rows``, ``counts`` of the predicted classes, ``notes``.
    """
    if probabilities and not hasattr(model, "predict_proba"):
        raise TableError(
            "This model has no probabilities: leave --proba out, or adapt with --model linear, "
            "--model boosting or --adapter auto."
        )
    extra = list(dict.fromkeys([*keep, *([domain] if domain else [])]))
    reader = open_for_model(model, path, extra=extra, **options)
    names = [PREDICTION, *(_probability_names(model) if probabilities else [])]
    clash = [name for name in keep if name in names]
    if clash:
        raise TableError(f"A column to keep is named like one to write: {listed(clash)}.")
    counts: Counter[int] = Counter()
    strangers: Counter[str] = Counter()

    def frames() -> Iterator[Any]:
        n_rows = 0
        for batch in chunks(reader):
            where = None
            if domain:
                texts = domain_texts(batch.column(domain))
                where = model.domain_numbers(texts)
                known = known_numbers(model.domain_names_)
                strangers.update(name for name in texts if name not in known)
            codes, P = _predict(model, batch, where, probabilities)
            written = {name: to_frame(batch.select([name]))[name].array for name in keep}
            written[PREDICTION] = _class_column(model.classes_, codes)
            written |= zip(names[1:], P.T, strict=True)
            counts.update(dict(enumerate(np.bincount(codes).tolist())))
            n_rows += batch.num_rows
            if progress is not None:
                progress(n_rows)
            yield pd.DataFrame(written)

    # Threads of BLAS wait for work in a loop: they would take the core that reads.
    with one_blas_thread():
        n_rows = write_table(out, frames())
    notes = notes_of(model, reader)
    if strangers:
        notes.append(
            f"{sum(strangers.values())} rows are of domains that the model does not know "
            f"({listed(strangers, 3)}): predicted as rows of the target as a whole."
        )
    predicted = {str(model.classes_[code]): n for code, n in counts.most_common() if n}
    return {"rows": n_rows, "counts": predicted, "notes": notes, "out": str(Path(out))}


def chunks(reader: TableReader) -> Iterator[Any]:
    """Yield the batches of a reader in pieces of a size that any model can predict."""
    for batch in reader.batches():
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            yield batch.slice(start, CHUNK_ROWS)


def _probability_names(model: TableClassifier) -> list[str]:
    return [f"probability of {name}" for name in model.classes_.tolist()]


def _predict(
    model: TableClassifier, batch: Any, where: Any, probabilities: bool
) -> tuple[IntArray, FloatArray]:
    """Return the numbers of the predicted classes, and the probabilities that are wanted."""
    if probabilities:
        P = model.predict_proba(batch, sample_domain=where)
        return P.argmax(axis=1), P
    labels = model.predict(batch, sample_domain=where)
    return np.searchsorted(model.classes_, labels), np.empty((batch.num_rows, 0))


def _class_column(classes: Any, codes: IntArray) -> Any:
    """Return the classes of rows; a class that is text becomes text of Arrow once."""
    if classes.dtype.kind not in "OU":
        return classes[codes]
    texts = pa.array([str(name) for name in classes], pa.string())
    return pd.array(texts.take(pa.array(codes)), dtype=pd.StringDtype("pyarrow"))
