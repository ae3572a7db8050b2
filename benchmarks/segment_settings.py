"""Whether `SegmentSparseFiltering` should divide responses by their norm: by the source alone.

    python benchmarks/segment_settings.py WINDOWS [source] [one-domain] [target] [source-filters]

WINDOWS as in ``bearings.py``. "source": filters and a logistic regression learn from the first
halves of the source's recordings and are scored on the second halves, for each source of the
bearings' tasks; the default of ``normalize`` is decided by this. "one-domain": five windows of each
class train, from first halves; second halves are scored. "target": the tasks themselves, which read
target labels and decide nothing. "source-filters": the same with filters that are learned from the
source's windows alone. Balanced accuracy with ``normalize`` True and False.
"""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import AdaptedClassifier, DomainStandardScaler, SegmentSparseFiltering, stack_domains
from covshift.paper.bearings.protocol import LOADS, TASKS, read_windows

PARTS = ("source", "one-domain", "target", "source-filters")
N_DRAWS, N_TRAINING = 3, 5


def halves(windows, rows):
    """Split rows by the order of windows in their recordings: first halves, second halves."""
    first = np.zeros(len(rows), dtype=bool)
    names = np.char.add(windows.recording, windows.sensor)
    for name in np.unique(names[rows]):
        own = np.flatnonzero(rows & (names == name))
        first[own[: -(-len(own) // 2)]] = True
    return rows & first, rows & ~first


def with_and_without(filters, score):
    """Return a score for ``normalize`` True and False; the filters are the same."""
    return [score(filters.set_params(normalize=one)) for one in (True, False)]


def score_within(windows, labels, train, test, seed):
    """Learn from some windows of a domain, score others."""
    filters = SegmentSparseFiltering(random_state=seed).fit(windows.X[train])

    def score(filters):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(filters.transform(windows.X[train]), labels[train])
        predicted = model.predict(filters.transform(windows.X[test]))
        return balanced_accuracy_score(labels[test], predicted)

    return with_and_without(filters, score)


def score_task(windows, task, *, source_filters=False):
    """Learn from source and target windows, filters perhaps from the source's; score the target."""
    source, target, labels = task.split(windows)
    X, y, sample_domain = stack_domains(windows.X[source], labels[source], windows.X[target])
    learned_from = windows.X[source] if source_filters else X
    filters = SegmentSparseFiltering(random_state=0).fit(learned_from)

    def score(filters):
        model = AdaptedClassifier(DomainStandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(filters.transform(X), y, sample_domain=sample_domain)
        predicted = model.predict(filters.transform(windows.X[target]))
        return balanced_accuracy_score(labels[target], predicted)

    return with_and_without(filters, score)


def tell(name, scores):
    """Print a line as it comes."""
    print(f"{name}: {scores[0]:.3f} with, {scores[1]:.3f} without", flush=True)


def main():
    """Measure the parts named, or all."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    windows, parts = read_windows(sys.argv[1]), sys.argv[2:] or PARTS
    if "source" in parts:
        sources = {(task.shift, *task.source.values()): task for task in TASKS}
        for key, task in sources.items():
            rows, _, labels = task.split(windows)
            train, test = halves(windows, rows)
            tell(f"source {key}", score_within(windows, labels, train, test, 0))
    if "one-domain" in parts:
        labels = np.char.add(windows.fault, windows.size.astype(str))
        for load in LOADS:
            domain = (windows.sensor == "DE") & (windows.load == load)
            train_from, test = halves(windows, domain)
            rng, found = np.random.default_rng(load), []
            for draw in range(N_DRAWS):
                train = np.zeros(len(domain), dtype=bool)
                for label in np.unique(labels):
                    own = np.flatnonzero(train_from & (labels == label))
                    train[rng.choice(own, N_TRAINING, replace=False)] = True
                found.append(score_within(windows, labels, train, test, draw))
            tell(f"one domain, {load} hp, {N_DRAWS} draws", np.mean(found, axis=0))
    if "target" in parts:
        for task in TASKS:
            tell(f"target, {task.shift}, {task.name}", score_task(windows, task))
    if "source-filters" in parts:
        for task in TASKS:
            scores = score_task(windows, task, source_filters=True)
            tell(f"filters of the source, {task.shift}, {task.name}", scores)


if __name__ == "__main__":
    main()
