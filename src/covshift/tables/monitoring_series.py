"""Batches of rows, one after the other: each compared with the model, estimated, and remembered.

A batch is a file, or the rows of a day, week or month of one or several files. For each one:

- whether it has moved (`covshift.tables.monitoring_batch`), at the level of a series;
- the expected score with its 90 % interval, beside the score on held-out rows of training;
- with labels of some rows: the score observed on them, whether the interval covered it, and the
  expected score that the labels improve.

Rows without labels show no change of the labels themselves: P(y|x) may change while x does not.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_random_state

from covshift.base import check_option
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.measures.labeled_scores import score_predictions
from covshift.output_files import same_file
from covshift.tables.columns import column_days, to_frame
from covshift.tables.dates import name_periods
from covshift.tables.label_files import read_batch_labels
from covshift.tables.messages import TableError, listed, one_line, table_error
from covshift.tables.model_reader import open_for_model
from covshift.tables.monitoring_batch import MIN_ROWS, SERIES_LEVEL, Sample, compare_batch
from covshift.tables.monitoring_history import batch_key
from covshift.tables.monitoring_words import LABELS_DIFFER, MOVED_NOT_BELOW
from covshift.tables.reading import open_table
from covshift.tables.table_models import (
    TARGET,
    TableClassifier,
    estimate_score,
    objective_of,
    predict_encoded,
)
from covshift.tables.text_layout import plain_name

PERIODS = ("day", "week", "month")
MAX_ESTIMATE_ROWS = 10_000  # of a batch, drawn at random, that its score is estimated on
# Probability of a score below --alert that gives an alert if the batch moved: see
# docs/results/monitoring.md.
MIN_CHANCE = 0.3
MIN_LABELS_TO_JUDGE = 30  # to say whether an interval covered the score: fewer are mostly noise


@dataclass
class Batch:
    """Rows of one batch while files are read.

    Attributes
    ----------
    name : of the file, or the period.
    period : day, week or month, as text that sorts by time; None: the batch is a file.
    sample : `Sample` of its rows, encoded.
    domains : rows of each domain.
    labeled : pieces of its labeled rows: encoded rows, domains, numbers in the batch, labels.
    """

    name: str
    period: str | None
    path: Any
    sample: Sample
    domains: Counter[str] = field(default_factory=Counter)
    labeled: list[tuple[FloatArray, IntArray, IntArray, Any]] = field(default_factory=list)
    content: Any = field(default_factory=sha256)
    of_labels: Any = field(default_factory=sha256)

    def add(self, Z: FloatArray, domain: IntArray, names: Sequence[str], labels: Any) -> None:
        """Take rows; ``labels``: labels of rows by their place among these."""
        self.content.update(np.ascontiguousarray(Z).tobytes() + domain.tobytes())
        self.domains.update(names)
        if labels:
            places = np.array(sorted(labels))
            own = np.array([labels[place] for place in places.tolist()])
            numbers = self.sample.n_seen + places
            self.labeled.append((Z[places], domain[places], numbers, own))
            pairs = list(zip(numbers.tolist(), own.tolist(), strict=True))
            self.of_labels.update(repr(pairs).encode())
        self.sample.add(Z, domain)


def monitor_series(
    model: TableClassifier,
    paths: Sequence[Any],
    *,
    domain: str | None = None,
    time: str | None = None,
    by: str = "week",
    labels: Any = None,
    level: float = SERIES_LEVEL,
    alert: float | None = None,
    seed: int = 0,
    model_digest: str = "",
    **options: Any,
) -> dict[str, Any]:
    """Check batches against a model: moved, expected score, and truth where labels are known.

    Parameters
    ----------
    model : TableClassifier
        From `covshift.load`.
    paths : sequence of paths
        Files, each a batch; with ``time`` their rows are put together and cut into periods.
    domain : str or None, default=None
        As in `monitor_batch`.
    time : str or None, default=None
        Column of dates that says which period a row belongs to.
    by : {"day", "week", "month"}, default="week"
        Length of a period; weeks are those of ISO 8601.
    labels : path or None, default=None
        Labels of some rows of the one file: the columns ``row_to_label`` and the label, as
        ``covshift label`` writes them; or the file itself, if it has the labels by now.
    level : float, default=0.0025
        How often a batch that has not moved may be taken for one that has.
    alert : float or None, default=None
        Least score that is fine; None: any is.
    seed : int, default=0
        Of the rows drawn and of the folds.
    model_digest : str, default=""
        Of the model file: a history tells batches of different models apart by it.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict
        ``batches``, a dict for each: ``name``, ``period``, ``rows``, what ``compare_batch`` finds,
        ``estimate`` (``value``, ``low``, ``high``, and with ``alert`` the probability
        ``chance_below`` of a score below it; None: it cannot be estimated), ``reference``
        (the score on held-out rows), ``below_alert``; with labels ``n_labels``, ``observed``,
        ``covered`` and ``updated``, the estimate with labels. ``objective``, ``moved``,
        ``below_alert``, ``skipped`` (batches with too few rows) and ``notes``.
    """
    check_option("by", by, PERIODS)
    if alert is not None and not 0 <= alert <= 1:
        raise TableError(f"--alert is a score between 0 and 1, got {alert:g}.")
    if labels is not None and len(paths) != 1:
        raise TableError("--labels needs one file: its numbers of rows are those of that file.")
    if labels is not None and is_regressor(model):
        raise TableError(
            "--labels is for classifiers, and this model predicts numbers. covshift score "
            "states its error on rows with labels."
        )
    time = None if time is None else plain_name(time)
    notes: list[str] = []
    batches = _read_batches(model, paths, domain, time, by, labels, seed, notes, options)
    found, skipped = [], []
    for batch in batches:
        if time is not None and batch.sample.n_seen < MIN_ROWS:
            skipped.append({"name": batch.name, "rows": batch.sample.n_seen})
            continue
        found.append(_check_batch(model, batch, level, alert, model_digest, notes))
    if skipped:
        names = listed([one["name"] for one in skipped])
        notes.append(f"Skipped {names}: a batch needs at least {MIN_ROWS} rows.")
    if not found:
        raise TableError(f"No batch has {MIN_ROWS} rows or more.")
    without = next((one["no_estimate"] for one in found if one["estimate"] is None), None)
    if without:
        if alert is not None:
            raise TableError(f"--alert needs an expected score. {without}")
        notes.append(f"The score cannot be estimated. {without}")
    unlabeled = (one for one in found if one["moved"] and not one["n_labels"])
    if alert is not None and not all(one["below_alert"] for one in unlabeled):
        notes.append(MOVED_NOT_BELOW)
    return {
        "batches": found,
        "objective": objective_of(model),
        "moved": any(one["moved"] for one in found),
        "below_alert": any(one["below_alert"] for one in found),
        "skipped": skipped,
        "notes": list(dict.fromkeys(notes)),
    }


def _read_batches(
    model: TableClassifier,
    paths: Sequence[Any],
    domain: str | None,
    time: str | None,
    by: str,
    labels: Any,
    seed: int,
    notes: list[str],
    options: Mapping[str, Any],
) -> list[Batch]:
    """Read files once, in chunks, into batches; those of periods are in the order of time."""
    batches: dict[Any, Batch] = {}
    for number, path in enumerate(paths):
        known = read_batch_labels(model, path, labels, notes, **options) if labels else {}
        spelling = "" if time is None else _date_spelling(path, time, options)
        extra = [] if time is None else [time]
        reader = open_for_model(model, path, extra=extra, domain=domain, **options)
        start = n_undated = 0
        for chunk in reader.chunks():
            Z = model.encode(chunk)
            names = reader.domain_names(chunk)
            where = np.full(len(Z), TARGET) if names is None else model.domain_numbers(names)
            periods = None
            if time is not None:
                periods = name_periods(
                    column_days(to_frame(chunk.select([time]))[time], spelling), by
                )
                n_undated += periods.count(None)
            for place, rows in _rows_by_period(periods, len(Z)):
                key = number if place is None else place
                if key not in batches:
                    name = one_line(Path(os.fspath(path)).name, 200) if place is None else place
                    sample = Sample(MAX_ESTIMATE_ROWS, check_random_state(seed))
                    batches[key] = Batch(name, place, path, sample)
                own = {
                    i: known[start + row]
                    for i, row in enumerate(rows.tolist())
                    if start + row in known
                }
                own_names = [] if names is None else [names[row] for row in rows.tolist()]
                batches[key].add(Z[rows], where[rows], own_names, own)
            start += len(Z)
        if known and max(known) >= start:
            raise table_error(labels, f"row {max(known) + 1} is not a row of {path}.")
        if n_undated:
            notes.append(f"{n_undated} rows have no date in {listed([time])}: left out.")
        notes += reader.notes(labels_read=labels is not None and same_file(labels, path))
    if time is None:
        return list(batches.values())
    return [batches[key] for key in sorted(batches)]


def _rows_by_period(periods: Any, n_rows: int) -> Iterator[tuple[str | None, IntArray]]:
    if periods is None:
        yield None, np.arange(n_rows)
        return
    for period in sorted({one for one in periods if one is not None}):
        yield period, np.array([i for i, one in enumerate(periods) if one == period])


def _date_spelling(path: Any, time: str, options: Mapping[str, Any]) -> str:
    """Return how a file writes the dates of a column, or refuse the column."""
    schema = open_table(path, **options).schema
    if time not in schema.kinds:
        raise table_error(path, f"has no column {listed([time])} (--time).")
    if schema.kinds[time] != "date":
        raise table_error(
            path, f"--time: column {listed([time])} holds {schema.kinds[time]}, not dates."
        )
    return schema.spellings.get(time, "")


def _check_batch(
    model: TableClassifier,
    batch: Batch,
    level: float,
    alert: float | None,
    model_digest: str,
    notes: list[str],
) -> dict[str, Any]:
    sample, digest = batch.sample, batch.content.hexdigest()[:32]
    found = compare_batch(model, sample, batch.domains, notes, level=level, path=batch.path)
    found |= {
        "name": batch.name,
        "period": batch.period,
        "digest": digest,
        "model": model_digest[:16],
        "key": batch_key(batch.name, digest, model_digest),
        "estimate": None,
        "reference": None,
    }
    try:
        estimate = estimate_score(model, sample.rows, sample.domain)
    except ValueError as error:
        found["no_estimate"] = str(error)
    else:
        found |= {"estimate": _interval(estimate, alert), "reference": float(estimate.reference)}
    found |= _use_labels(model, batch, found["estimate"], alert, notes)
    found["below_alert"] = is_below(found, alert)
    return found


def is_below(batch: Mapping[str, Any], alert: float | None) -> bool:
    """Return whether a batch of a series is expected below the alert, or likely enough below.

    For the second it must have moved.
    """
    best = batch.get("updated") or batch.get("estimate")
    if alert is None or not best:
        return False
    # A line of a history may have been written with another alert.
    chance = best["chance_below"] if best.get("alert") == alert else 0.0
    return bool(best["value"] < alert or (batch["moved"] and chance > MIN_CHANCE))


def _use_labels(
    model: TableClassifier, batch: Batch, estimate: Any, alert: float | None, notes: list[str]
) -> dict[str, Any]:
    """Return the truth of the labeled rows of a batch, beside what was expected."""
    if not batch.labeled:
        return {"n_labels": 0, "observed": None, "covered": None, "updated": None}
    Z, domain, numbers, labels = map(np.concatenate, zip(*batch.labeled, strict=True))
    predicted = model.classes_[predict_encoded(model, Z, domain).codes]
    observed = score_predictions(labels, predicted)[objective_of(model)]
    found: dict[str, Any] = {
        "n_labels": len(labels), "observed": observed, "covered": None, "updated": None,
        "labels_digest": batch.of_labels.hexdigest()[:32],
    }  # fmt: skip
    strangers = np.setdiff1d(labels, model.classes_)
    if len(strangers):
        notes.append(f"Classes that the model has never seen count as errors: {listed(strangers)}.")
    if estimate is None:
        return found
    if len(labels) >= MIN_LABELS_TO_JUDGE:
        found["covered"] = bool(estimate["low"] <= observed["value"] <= estimate["high"])
        if not found["covered"]:
            notes.append(LABELS_DIFFER)
    else:
        notes.append(
            f"{len(labels)} labels: {MIN_LABELS_TO_JUDGE} are needed to say whether the interval "
            "covered the score."
        )
    # The labeled rows, then those of the sample that are not among them.
    known = np.isin(labels, model.classes_)
    if known.any():
        others = ~np.isin(batch.sample.numbers, numbers[known])
        rows = np.concatenate([Z[known], batch.sample.rows[others]])
        where = np.concatenate([domain[known], batch.sample.domain[others]])
        y_known = np.full(len(rows), None, dtype=object)
        y_known[: known.sum()] = labels[known]
        found["updated"] = _interval(estimate_score(model, rows, where, y_known), alert)
    return found


def _interval(estimate: Any, alert: float | None) -> dict[str, float]:
    found = {name: float(getattr(estimate, name)) for name in ("value", "low", "high")}
    if alert is not None:
        found |= {"alert": alert, "chance_below": estimate.distribution.below(alert)}
    return found
