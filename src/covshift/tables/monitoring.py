"""Whether the target has moved since the model was made: a batch against the rows kept in it.

Two tests, on 1,000 rows of either side at most: a classifier that tells old rows from new
(`classifier_two_sample_test`: all features together), and Kolmogorov-Smirnov per feature
(`ks_test`). The batch has moved if the smaller of their p-values, corrected by Holm, is at or
below the level. That many rows bound what can be found: with more, movements that matter to
nobody would be significant.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from covshift.base import check_number
from covshift.kernels.arrays import FloatArray
from covshift.measures import SourceSupport, classifier_two_sample_test, holm, ks_test
from covshift.quiet import ignored_warnings
from covshift.tables.arrow_columns import to_frame
from covshift.tables.classifier import TableClassifier
from covshift.tables.errors import TableError, table_error
from covshift.tables.model_frames import open_for_model
from covshift.tables.recordings import FILE, START, RecordingTable
from covshift.tables.writing import write_table

MAX_ROWS = 1000
MIN_ROWS = 10
LEVEL = 0.01  # a nightly batch that has not moved then gives an alarm every hundred nights
MAX_FEATURES = 10  # listed
MIN_SHARE_KEPT = 0.5  # of a batch that the model has seen, to say so


def monitor_batch(
    model: TableClassifier,
    path: Any,
    *,
    domain: str | None = None,
    level: float = LEVEL,
    seed: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Test whether the rows of a file differ from the target rows kept in the model.

    Parameters
    ----------
    model : TableClassifier
        From `covshift.load`.
    path : path
        The batch.
    domain : str or None, default=None
        Column that names each row's domain: the batch is compared with kept rows of the same
        domains. None: that of the training table, if the file has it; else the batch is compared
        with all kept rows.
    level : float, default=0.01
        How often a batch that has not moved may be taken for one that has.
    seed : int, default=0
        Of the rows drawn and of the folds.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict
        ``moved``, ``pvalue``, ``level``, ``auc`` with ``auc_low`` and ``auc_high``, ``rows`` of the
        batch, ``rows_compared`` and ``reference_rows``, ``features`` (those that moved most),
        ``notes``.
    """
    check_number("level", level, minimum=0.0, maximum=1.0, closed="neither")
    rng = check_random_state(seed)
    reader = open_for_model(model, path, domain=domain, **options)
    sample = Sample(MAX_ROWS, rng)
    for batch in reader.chunks():
        sample.add(model.encode(batch))
        reader.domain_names(batch)  # counted
    notes = reader.notes()
    reference = _reference(model, reader.domains_seen, notes)
    reference = reference[rng.permutation(len(reference))[:MAX_ROWS]]
    if min(len(reference), len(sample.rows)) < MIN_ROWS:
        raise table_error(
            path,
            f"{len(sample.rows)} rows against {len(reference)} kept in the model: {MIN_ROWS} of "
            "either are needed to tell.",
        )
    found = _compare(reference, sample.rows, model.encoder_.get_feature_names_out(), rng)
    n_kept = _count_kept(reference, sample.rows)
    if found["auc_high"] < 0.5 and n_kept >= MIN_SHARE_KEPT * len(sample.rows):
        notes.append(
            f"The batch holds {n_kept} rows that the model keeps to compare with, each once as old "
            "and once as new: that is why the AUC is below .5. Compare it with rows that are new "
            "to the model."
        )
    return {
        "moved": found["pvalue"] <= level,
        "level": level,
        **found,
        "rows": sample.n_seen,
        "rows_compared": len(sample.rows),
        "reference_rows": len(reference),
        "notes": notes,
    }


def monitor_recordings(
    model: TableClassifier,
    table: RecordingTable,
    out: Any = None,
    *,
    domain: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Test the windows of all recordings of a table; say which of them lie outside.

    A window is outside if it lies farther from the rows kept in the model than 99 % of these lie
    from each other (`SourceSupport`). Unlike a test, that does not mind that a recording has one
    of the conditions that the kept rows have.

    Parameters
    ----------
    model : TableClassifier
        Learned from recordings.
    table : RecordingTable
        The batch.
    out : path or None, default=None
        File for a line per window (`write_table`): ``file``, ``start``, ``distance`` in units of
        the largest that is inside, and ``outside``.
    domain, **options
        As in `monitor_batch`.

    Returns
    -------
    dict
        As of `monitor_batch`; and ``recordings``, a dict for each: ``recording``, ``windows`` and
        the share of them that is ``outside``.
    """
    found = monitor_batch(model, table, domain=domain, **options)
    support = SourceSupport().fit(model.reference_)
    layout = {name: value for name, value in options.items() if name not in ("level", "seed")}
    reader = open_for_model(model, table, extra=[FILE, START], domain=domain, **layout)
    windows: Counter[str] = Counter()
    outside: Counter[str] = Counter()

    def frames() -> Iterator[Any]:
        for batch in reader.chunks():
            places = to_frame(batch.select([FILE, START]))
            distance = support.distances(model.encode(batch)) / support.threshold_
            windows.update(places[FILE])
            outside.update(places[FILE][distance > 1])
            start = places[START].astype("int64")
            yield places.assign(start=start, distance=distance, outside=distance > 1)

    if out is None:
        for _ in frames():
            pass
    else:
        write_table(out, frames())
    rows = [
        {"recording": name, "windows": n, "outside": outside[name] / n}
        for name, n in windows.items()
    ]
    note = (
        "Windows of one recording resemble each other: another recording of an unchanged machine "
        "can count as moved. Compare batches of several recordings."
    )
    return found | {"recordings": rows, "notes": [*found["notes"], note]}


class Sample:
    """Rows drawn at random from a stream, each with the same chance.

    Every row gets a random key; those with the smallest keys are kept.
    """

    def __init__(self, size: int, rng: np.random.RandomState):
        self._size, self._rng = size, rng
        self._keys = np.empty(0)
        self.rows: FloatArray = np.empty((0, 0))
        self.n_seen = 0

    def add(self, rows: FloatArray) -> None:
        """Take another piece of the stream."""
        keys = np.concatenate([self._keys, self._rng.random_sample(len(rows))])
        together = np.concatenate([self.rows, rows]) if self.n_seen else rows
        kept = np.argsort(keys, kind="stable")[: self._size]
        self._keys, self.rows = keys[kept], together[kept]
        self.n_seen += len(rows)


def _reference(model: TableClassifier, names: Iterable[str], notes: list[str]) -> FloatArray:
    if not len(model.reference_):
        raise TableError(
            "The model keeps no rows to compare with: it was made with --reference-rows 0."
        )
    if names:
        numbers = model.domain_numbers(sorted(names))
        same = np.isin(model.reference_domain_, numbers)
        if same.any():
            return model.reference_[same]
        notes.append("The model keeps no rows of these domains: compared with all that it keeps.")
    return model.reference_


def _count_kept(reference: FloatArray, rows: FloatArray) -> int:
    """Return how many rows of a batch are among those that the model keeps."""
    kept = {row.tobytes() for row in np.ascontiguousarray(reference)}
    same_type = np.ascontiguousarray(rows, dtype=reference.dtype)
    return sum(row.tobytes() in kept for row in same_type)


def _compare(
    A: FloatArray, B: FloatArray, names: Any, rng: np.random.RandomState
) -> dict[str, Any]:
    with ignored_warnings(ConvergenceWarning):  # of rows that are easily separated
        whole = classifier_two_sample_test(A, B, random_state=rng, n_importance_repeats=0)
    each = ks_test(A, B)
    order = np.argsort(-each.statistics, kind="stable")
    moved = [j for j in order if each.adjusted_pvalues[j] <= 0.05][:MAX_FEATURES]
    return {
        "pvalue": float(holm([whole.pvalue, each.pvalue]).min()),
        "auc": whole.statistic,
        "auc_low": whole.interval[0],
        "auc_high": whole.interval[1],
        "auc_pvalue": whole.pvalue,
        "ks_pvalue": each.pvalue,
        "features": [
            {
                "feature": str(names[j]),
                "distance": float(each.statistics[j]),
                "pvalue": float(each.adjusted_pvalues[j]),
                "mean_before": float(A[:, j].mean()),
                "mean_now": float(B[:, j].mean()),
            }
            for j in moved
        ],
    }
