"""A model and a file -> a file of predictions, chunk by chunk."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from covshift.tables.classifier import TableClassifier
from covshift.tables.domain_codes import domain_texts, known_numbers
from covshift.tables.errors import TableError, listed
from covshift.tables.extra import pandas as pd
from covshift.tables.model_frames import notes_of, open_for_model
from covshift.tables.reading import TableReader
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
    counts: Counter[str] = Counter()
    strangers: Counter[str] = Counter()

    def frames() -> Iterator[Any]:
        n_rows = 0
        for frame in chunks(reader):
            where = None
            if domain:
                texts = domain_texts(frame[domain])
                where = model.domain_numbers(texts)
                known = known_numbers(model.domain_names_)
                strangers.update(name for name in texts if name not in known)
            written = _predicted(model, frame, where, list(keep), probabilities)
            for name, count in written[PREDICTION].value_counts().items():
                counts[str(name)] += int(count)
            n_rows += len(frame)
            if progress is not None:
                progress(n_rows)
            yield written

    n_rows = write_table(out, frames())
    notes = notes_of(model, reader)
    if strangers:
        notes.append(
            f"{sum(strangers.values())} rows are of domains that the model does not know "
            f"({listed(strangers, 3)}): predicted as rows of the target as a whole."
        )
    return {"rows": n_rows, "counts": dict(counts), "notes": notes, "out": str(Path(out))}


def chunks(reader: TableReader) -> Iterator[Any]:
    """Yield the frames of a reader in pieces of a size that any model can predict.

    The next frame is read, in a thread, while a piece is in use: cutting text into cells and
    predicting take about the same time.
    """
    frames = iter(reader)
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(next, frames, None)
        while (frame := coming.result()) is not None:
            coming = thread.submit(next, frames, None)
            for start in range(0, len(frame), CHUNK_ROWS):
                yield frame.iloc[start : start + CHUNK_ROWS]


def _probability_names(model: TableClassifier) -> list[str]:
    return [f"probability of {name}" for name in model.classes_.tolist()]


def _predicted(
    model: TableClassifier, frame: Any, where: Any, keep: list[str], probabilities: bool
) -> Any:
    written = {name: frame[name].array for name in keep}
    if not probabilities:
        written[PREDICTION] = model.predict(frame, sample_domain=where)
        return pd.DataFrame(written)
    P = model.predict_proba(frame, sample_domain=where)
    written[PREDICTION] = model.classes_[P.argmax(axis=1)]
    return pd.DataFrame(written | dict(zip(_probability_names(model), P.T, strict=True)))
