r"""Whether the target has moved since the model was made: a batch against the rows kept in it.

Five questions, on 1,000 rows of either side at most:

=================  ============================================================================
all features       a classifier that separates old rows from new (`classifier_two_sample_test`)
each feature       Kolmogorov-Smirnov (`ks_test`), Holm over the features
spread             Mann-Whitney on distances from the median of both samples, Holm over the features
predictions        Kolmogorov-Smirnov on the probability of each class, Holm over the classes
class proportions  chi-squared test of the classes that are predicted
=================  ============================================================================

The batch has moved if the smallest of the five p-values, by Holm, is at or below the level. That
many rows bound what can be found: with more, movements without consequences would be significant.

**Several batches.** With level :math:`\alpha / m` for each batch, the probability of a false alarm
in m batches is at most :math:`\alpha` (Bonferroni), whatever the dependence between them: they are
compared with the same rows. The level of a series is .05 / 20, for any 20 batches. It does not
depend on the place of a batch in the history, so that the order in which processes write to one
does not change what they find.

References
----------
S. Rabanser, S. Günnemann, Z. C. Lipton (2019). Failing loudly: an empirical study of methods for
detecting dataset shift. NeurIPS. S. Holm (1979). A simple sequentially rejective multiple test
procedure. Scandinavian Journal of Statistics 6, 65-70.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency, mannwhitneyu
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from covshift.base import check_number
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.distinct_rows import share_repeated
from covshift.measures import SourceSupport, classifier_two_sample_test, holm, ks_test
from covshift.tables.columns import to_frame
from covshift.tables.messages import TableError, table_error
from covshift.tables.model_reader import open_for_model
from covshift.tables.monitoring_words import WINDOWS_ALIKE, say_kept_batch
from covshift.tables.recordings import FILE, START, RecordingTable
from covshift.tables.table_models import TARGET, Predictions, TableClassifier, predict_encoded
from covshift.tables.writing import write_table
from covshift.warning_filters import ignored_warnings

MAX_ROWS = 1000
MIN_ROWS = 10
LEVEL = 0.01  # a nightly batch that has not moved then gives an alarm every hundred nights
SERIES_LEVEL = 0.05 / 20  # of each batch of a series: see above
MAX_FEATURES = 10  # listed
MIN_SHARE_KEPT = 0.5  # of a batch that the model has seen, to say so
MIN_EXPECTED = 5  # rows of a predicted class on either side; rarer classes are tested together
ASKED = ("all features", "each feature", "spread", "predictions", "class proportions")


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
        As of ``compare_batch``, and ``notes``.
    """
    reader = open_for_model(model, path, domain=domain, **options)
    sample = Sample(MAX_ROWS, check_random_state(seed))
    for batch in reader.chunks():
        numbers = reader.domain_numbers(batch)
        Z = model.encode(batch)
        sample.add(Z, np.full(len(Z), TARGET) if numbers is None else numbers)
    notes = reader.notes()
    found = compare_batch(model, sample, reader.domains_seen, notes, level=level, path=path)
    return found | {"notes": notes}


def compare_batch(
    model: TableClassifier,
    sample: "Sample",
    domains: Iterable[str],
    notes: list[str],
    *,
    level: float,
    path: Any,
) -> dict[str, Any]:
    """Test whether rows of a batch differ from the target rows kept in the model.

    Parameters
    ----------
    model : TableClassifier
        Fitted.
    sample : Sample
        Rows of the batch, encoded, with the domain of each (`TARGET`: not named).
    domains : iterable of str
        Names of the domains of the batch.
    notes : list of str
        Gets more.
    level : float
        How often a batch that has not moved may be taken for one that has.
    path : path
        For errors.

    Returns
    -------
    dict
        ``moved``, ``pvalue``, ``level``, ``auc`` with ``auc_low`` and ``auc_high``, ``tests`` (the
        p-value of each question by Holm), ``rows`` of the batch, ``rows_compared`` and
        ``reference_rows``, ``features`` (those that moved most) and ``classes``, the shares of
        predicted classes before and now.
    """
    check_number("level", level, minimum=0.0, maximum=1.0, closed="neither")
    rng = sample.rng
    reference = _reference(model, domains, notes)
    reference = reference[rng.permutation(len(reference))[:MAX_ROWS]]
    Z_old, Z_new = model.reference_[reference], sample.rows[:MAX_ROWS]
    if min(len(Z_old), len(Z_new)) < MIN_ROWS:
        raise table_error(
            path,
            f"{len(Z_new)} rows, and {len(Z_old)} kept in the model to compare with: at least "
            f"{MIN_ROWS} of each are needed.",
        )
    found = _compare(Z_old, Z_new, model.encoder_.get_feature_names_out(), rng)
    old = predict_encoded(model, Z_old, model.reference_domain_[reference])
    new = predict_encoded(model, Z_new, sample.domain[:MAX_ROWS])
    spread = float(_spread_pvalues(Z_old, Z_new).min(initial=1.0))
    raw = [found["auc_pvalue"], found["ks_pvalue"], spread, *_compare_predictions(old, new)]
    adjusted = dict(zip(ASKED, holm(raw).tolist(), strict=True))
    found["pvalue"] = min(adjusted.values())
    if (kept := share_repeated(Z_old, Z_new)) >= MIN_SHARE_KEPT:
        notes.append(say_kept_batch(kept, low_auc=found["auc_high"] < 0.5))
    return {
        "moved": found["pvalue"] <= level,
        "level": level,
        **found,
        "tests": adjusted,
        "what_moved": [name for name, pvalue in adjusted.items() if pvalue <= level],
        "classes": _class_shares(model, old, new),
        "rows": sample.n_seen,
        "rows_compared": len(Z_new),
        "reference_rows": len(Z_old),
    }


def _spread_pvalues(A: FloatArray, B: FloatArray) -> FloatArray:
    r"""Return the p-value of equal spreads of each feature of two samples, by Holm.

    Ranks of :math:`|x - m|`, with m the median of both samples together: under the hypothesis that
    the samples have one distribution, any split of these rows is equally likely. A sensor that
    becomes noisy is found long before Kolmogorov-Smirnov finds it. Features with two values or
    fewer are left out: their spread says what their mean says.
    """
    both = np.concatenate([A, B])
    used = [j for j in range(both.shape[1]) if len(np.unique(both[:, j])) > 2]
    if not used:
        return np.empty(0)
    distances = np.abs(both[:, used] - np.median(both[:, used], axis=0))
    test = mannwhitneyu(distances[: len(A)], distances[len(A) :], method="asymptotic")
    # All distances of a feature may be equal: then there is nothing to rank.
    adjusted: FloatArray = holm(np.nan_to_num(test.pvalue, nan=1.0))
    return adjusted


def _compare_predictions(old: Predictions, new: Predictions) -> tuple[float, float]:
    """Return the p-values of predictions and of class proportions."""
    of_outputs = 1.0
    if old.outputs is not None and new.outputs is not None:
        of_outputs = float(ks_test(old.outputs, new.outputs).pvalue)
    n_classes = 1 + max(int(old.codes.max()), int(new.codes.max()))
    counts = np.array([np.bincount(one.codes, minlength=n_classes) for one in (old, new)])
    return of_outputs, _class_proportions_pvalue(counts)


def _class_proportions_pvalue(counts: IntArray) -> float:
    """Return the p-value of equal proportions in two rows of counts (2, K) of classes.

    Classes with fewer than five expected rows on a side are counted as one class, to which the
    smallest other one is added until it has as many.
    """
    counts = counts[:, counts.sum(axis=0) > 0]
    order = np.argsort(counts.sum(axis=0), kind="stable")
    counts = counts[:, order]
    smallest = counts.sum(axis=1).min() / counts.sum()
    while counts.shape[1] > 1 and counts[:, 0].sum() * smallest < MIN_EXPECTED:
        merged = counts[:, :1] + counts[:, 1:2]
        counts = np.concatenate([merged, counts[:, 2:]], axis=1)
        counts = counts[:, np.argsort(counts.sum(axis=0), kind="stable")]
    if counts.shape[1] < 2:
        return 1.0
    return float(chi2_contingency(counts, correction=True).pvalue)


def _class_shares(
    model: TableClassifier, old: Predictions, new: Predictions
) -> list[dict[str, Any]]:
    if not hasattr(model, "classes_"):
        return []
    n_classes = len(model.classes_)
    before, now = (
        np.bincount(one.codes, minlength=n_classes) / len(one.codes) for one in (old, new)
    )
    return [
        {"class": str(name), "before": float(before[k]), "now": float(now[k])}
        for k, name in enumerate(model.classes_.tolist())
    ]


def monitor_recordings(
    model: TableClassifier,
    table: RecordingTable,
    out: Any = None,
    *,
    domain: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Monitor a batch of recordings: test all their windows; say which of them lie outside.

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
    return found | {"recordings": rows, "notes": [*found["notes"], WINDOWS_ALIKE]}


class Sample:
    """Rows drawn at random from a stream, each with the same chance, and the domain of each.

    Every row gets a random key; those with the smallest keys are kept, in the order of their keys:
    the first n rows of a sample are a sample of n rows.
    """

    def __init__(self, size: int, rng: np.random.RandomState):
        self._size, self.rng = size, rng
        self._keys = np.empty(0)
        self.rows: FloatArray = np.empty((0, 0))
        self.domain: IntArray = np.empty(0, dtype=np.int64)
        self.numbers: IntArray = np.empty(0, dtype=np.int64)  # in the stream, from 0
        self.n_seen = 0

    def add(
        self, rows: FloatArray, domain: IntArray | None = None, numbers: IntArray | None = None
    ) -> None:
        """Take another piece of the stream; ``numbers``: of its rows, if the stream is a part."""
        if domain is None:
            domain = np.full(len(rows), TARGET)
        if numbers is None:
            numbers = self.n_seen + np.arange(len(rows))
        keys = np.concatenate([self._keys, self.rng.random_sample(len(rows))])
        together = np.concatenate([self.rows, rows]) if self.n_seen else rows
        kept = np.argsort(keys, kind="stable")[: self._size]
        self._keys, self.rows = keys[kept], together[kept]
        self.domain = np.concatenate([self.domain, domain])[kept]
        self.numbers = np.concatenate([self.numbers, numbers])[kept]
        self.n_seen += len(rows)


def _reference(model: TableClassifier, names: Iterable[str], notes: list[str]) -> IntArray:
    """Return the numbers of the kept rows that a batch of these domains is compared with."""
    if not len(model.reference_):
        raise TableError(
            "The model keeps no rows to compare with: it was made with --reference-rows 0."
        )
    if names:
        numbers = model.domain_numbers(sorted(names))
        same = np.isin(model.reference_domain_, numbers)
        if same.any():
            return np.flatnonzero(same)
        notes.append(
            "The model keeps no rows of these domains: the batch is compared with all rows that "
            "it keeps."
        )
    return np.arange(len(model.reference_))


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
