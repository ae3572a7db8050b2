"""Whether `SegmentSparseFiltering` should divide responses by their norm: by the source alone.

    python benchmarks/segment_settings.py WINDOWS [source] [one-domain] [target] [source-filters]
    python benchmarks/segment_settings.py WINDOWS first [--jobs 16]

WINDOWS as in ``bearings.py``. "source": filters and a logistic regression learn from the first
halves of the source's recordings and are scored on the second halves, for each source of the
bearings' tasks; the default of ``normalize`` is decided by this. "one-domain": five windows of each
class train, from first halves; second halves are scored. "target": the tasks themselves, which read
target labels and decide nothing. "source-filters": the same with filters that are learned from the
source's windows alone. Balanced accuracy with ``normalize`` True and False. "first": which settings
give the figures of the first measurement, of filters of segments and of spectra; those nearest to
them are printed, and decide nothing either.
"""

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import (
    AdaptedClassifier,
    DomainStandardScaler,
    SegmentSparseFiltering,
    SparseFiltering,
    stack_domains,
)
from covshift.paper.bearings.protocol import LOADS, RATE, SHIFTS, TASKS, read_windows
from covshift.signals import Spectrum

PARTS = ("source", "one-domain", "target", "source-filters")
FIRST = {"segments": (0.924, 0.301, 0.478), "spectra": (0.719, 0.436, 0.557)}  # by shift
LEARNED = tuple(product((True, False), (True, False), (100,), (20, 100)))
USED = tuple(product((True, False), ("abs", "square", "log"), (1, 2), (True, False)))
OF_SPECTRA = tuple(product(("as they are", "standardized", "shares"),
                           ("domain", "joint", "batch"), (50, 200)))  # fmt: skip
N_PRINTED = 12
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


def score_model(adapter, Z, y, sample_domain, labels):
    """Score a logistic regression on the target's rows, which come last."""
    model = AdaptedClassifier(adapter, LogisticRegression(max_iter=1000))
    model.fit(Z, y, sample_domain=sample_domain)
    return balanced_accuracy_score(labels, model.predict(Z[len(Z) - len(labels) :]))


def first_segments(path, task, learned):
    """Score all uses of the segment filters that one setting learns on a task."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    windows = read_windows(path)
    source, target, labels = task.split(windows)
    X, y, sample_domain = stack_domains(windows.X[source], labels[source], windows.X[target])
    from_source, whiten, length, max_iter = learned
    filters = SegmentSparseFiltering(
        segment_length=length, whiten=whiten, max_iter=max_iter, random_state=0
    ).fit(windows.X[source] if from_source else X)
    found = {}
    for used in USED:
        normalize, activation, overlaps, scaled = used
        filters.set_params(normalize=normalize, activation_at_use=activation)
        Z = filters.set_params(step=length // overlaps).transform(X)
        adapter = DomainStandardScaler() if scaled else "none"
        score = score_model(adapter, Z, y, sample_domain, labels[target])
        found[learned + used] = score
    return found


def first_spectra(path, task, setting):
    """Score sparse filtering of spectra by one setting on a task."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    windows = read_windows(path)
    source, target, labels = task.split(windows)
    X, y, sample_domain = stack_domains(windows.X[source], labels[source], windows.X[target])
    Z = Spectrum(RATE).fit_transform(X)
    scale, normalization, max_iter = setting
    if scale == "standardized":
        Z = StandardScaler().fit(Z[sample_domain >= 0]).transform(Z)
    elif scale == "shares":
        Z = Z / Z.sum(axis=1, keepdims=True)
    filters = SparseFiltering(100, normalization=normalization, max_iter=max_iter, random_state=0)
    return {setting: score_model(filters, Z, y, sample_domain, labels[target])}


def tell_first(path, n_jobs):
    """Print the settings whose means over tasks are nearest to the first measurement's."""
    with ProcessPoolExecutor(n_jobs) as pool:
        for kind, function, settings in (
            ("segments", first_segments, LEARNED), ("spectra", first_spectra, OF_SPECTRA)
        ):  # fmt: skip
            pairs = list(product(settings, TASKS))
            done = pool.map(partial(function, path), *zip(*((t, s) for s, t in pairs), strict=True))
            scores = {}
            for (_, task), found in zip(pairs, done, strict=True):
                for setting, score in found.items():
                    scores.setdefault(setting, {})[task] = score
            means = {
                setting: [np.mean([own[t] for t in TASKS if t.shift == one]) for one in SHIFTS]
                for setting, own in scores.items()
            }
            far = {one: np.abs(np.subtract(means[one], FIRST[kind])).max() for one in means}
            print(f"{kind}: {len(means)} settings, first measured {FIRST[kind]} by shift")
            for one in sorted(far, key=far.get)[:N_PRINTED]:
                print(f"{one}: {np.round(means[one], 3).tolist()}, off by {far[one]:.3f} at most")


def tell(name, scores):
    """Print a line as it comes."""
    print(f"{name}: {scores[0]:.3f} with, {scores[1]:.3f} without", flush=True)


def main():
    """Measure the parts named, or all."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("windows")
    parser.add_argument("parts", nargs="*", choices=(*PARTS, "first"), default=PARTS)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of 'first'")
    options = parser.parse_args()
    windows, parts = read_windows(options.windows), options.parts
    if "first" in parts:
        tell_first(options.windows, options.jobs)
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
