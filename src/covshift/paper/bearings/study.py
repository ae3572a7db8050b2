"""The bearings' study: its systems, its trials, and how they are run.

Two kinds of trials, by ``settings["kind"]``:

- "task": a system on a task; the share of each target recording's windows that it gets right;
- "filters": filters that sparse filtering learns from segments of one load, to be drawn.

The target windows of a task are adapted to, without labels, and scored.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from covshift.adapters.domain_standard_scaler import DomainStandardScaler
from covshift.adapters.periodic_sparse_filtering import PeriodicSparseFiltering
from covshift.adapters.segment_sparse_filtering import SegmentSparseFiltering
from covshift.adapters.sparse_filtering import SparseFiltering
from covshift.domains import stack_domains
from covshift.kernels.array_types import FloatArray
from covshift.paper.bearings.protocol import (
    RATE,
    TASKS,
    BearingTask,
    BearingWindows,
    read_declared_windows,
    read_windows,
)
from covshift.paper.bearings.report import bearings_document, bearings_table
from covshift.predictors import AdaptedClassifier
from covshift.selection import AutoAdaptedClassifier
from covshift.signals import Spectrum
from covshift.studies.study import Study
from covshift.studies.trial import Trial
from covshift.warning_filters import ignored_warnings

EXPERIMENT = "bearings"
SPECTRA, SAMPLES = "spectra", "samples"
N_FILTERS = 100
N_DRAWN = 6  # filters in the report
FILTERS_OF = {"sensor": "DE", "load": 0}


class System(NamedTuple):
    """Features of a window that a system uses, and how a seed makes the system."""

    features: str
    make: Callable[[int], Any]


def _after(adapter: Any) -> AdaptedClassifier:
    return AdaptedClassifier(adapter, LogisticRegression(max_iter=1000))


def _segments(seed: int) -> AdaptedClassifier:
    filters = SegmentSparseFiltering(N_FILTERS, random_state=seed)
    return _after(make_pipeline(filters, DomainStandardScaler()))


SYSTEMS = {
    # Controls.
    "none": System(SPECTRA, lambda seed: _after("none")),
    "standardize": System(SPECTRA, lambda seed: _after("standardize")),
    "ranks": System(SPECTRA, lambda seed: _after("ranks")),
    # Sparse filtering, of spectra and of the samples themselves.
    "SF": System(SPECTRA, lambda seed: _after(SparseFiltering(N_FILTERS, random_state=seed))),
    "PSF": System(
        SPECTRA,
        lambda seed: _after(
            PeriodicSparseFiltering(N_FILTERS, label_reward=1.0, n_restarts=1, random_state=seed)
        ),
    ),
    "segments": System(SAMPLES, _segments),
    # Alignments.
    "coral": System(SPECTRA, lambda seed: _after("coral")),
    "monge": System(SPECTRA, lambda seed: _after("monge")),
    "sa": System(SPECTRA, lambda seed: _after("sa")),
    # Chosen without labels of the target.
    "auto": System(SPECTRA, lambda seed: AutoAdaptedClassifier(random_state=seed)),
}


def bearings_study(path: str, seed: int, systems: tuple[str, ...] = tuple(SYSTEMS)) -> Study:
    """Return the study on the windows of a folder or file."""
    windows = read_windows(path)
    return Study(
        name="bearings",
        tasks=declare(windows.fingerprint, seed, systems),
        # The place of the data is not part of a trial: a study resumes after folders were moved.
        function=partial(run_bearing_trials, path=path),
        run_settings={"seed": seed, "data": path},
        document=bearings_document,
        table=bearings_table,
    )


def declare(data: str, seed: int, systems: tuple[str, ...] = tuple(SYSTEMS)) -> list[list[Trial]]:
    """Return all trials of the bearings, each a task; ``data`` is the fingerprint of windows."""
    trials = [Trial(EXPERIMENT, {"kind": "filters", "data": data, "n_filters": N_FILTERS}, seed)]
    for system in systems:
        for task in TASKS:
            settings = {"kind": "task", "data": data, "system": system, **task._asdict()}
            trials.append(Trial(EXPERIMENT, settings, seed))
    return [[trial] for trial in trials]


def run_bearing_trials(trials: list[Trial], path: str) -> list[dict[str, Any]]:
    """Run trials of the study of bearings on the windows; one result for each."""
    results = []
    for trial in trials:
        settings = trial.settings
        windows = read_declared_windows(path, settings["data"])
        if settings["kind"] == "filters":
            results.append({"filters": _strongest_filters(windows, trial.seed).tolist()})
            continue
        parts = (settings[name] for name in BearingTask._fields)
        shift, source, target, labels = parts
        task = BearingTask(shift, source, target, tuple(labels))
        results.append(_run_on_task(windows, task, settings["system"], trial.seed))
    return results


def _run_on_task(
    windows: BearingWindows, task: BearingTask, system: str, seed: int
) -> dict[str, Any]:
    """The result of a system on a task: accuracy of each target recording, and what was chosen."""
    source, target, labels = task.split(windows)
    features, make = SYSTEMS[system]
    X = windows.X if features == SAMPLES else _spectra(windows)
    stacked = stack_domains(X[source], labels[source], X[target])
    model = make(seed)
    with ignored_warnings(ConvergenceWarning):
        model.fit(stacked.X, stacked.y, sample_domain=stacked.sample_domain)
    right = model.predict(X[target]) == labels[target]
    recordings = windows.recording[target]
    accuracies = {
        name: float(right[recordings == name].mean()) for name in np.unique(recordings).tolist()
    }
    # Classes have as many recordings, and these as many windows: this is balanced accuracy.
    result = {"accuracy": float(np.mean(list(accuracies.values()))), "recordings": accuracies}
    if isinstance(model, AutoAdaptedClassifier):
        result |= {"chosen": list(model.chosen_), "advice": model.decision_}
    return result


def _strongest_filters(windows: BearingWindows, seed: int) -> FloatArray:
    r"""Return waveforms that the filters with the strongest responses answer to, largest value one.

    They are the covariances of segments with responses, :math:`\operatorname{cov}(S) (W V)^\top`.
    The filters themselves make up for what the sensor's own filter takes away: drawn, they would
    show the frequencies with the least power.
    """
    source = BearingTask("", FILTERS_OF, FILTERS_OF).split(windows)[0]
    with ignored_warnings(ConvergenceWarning):
        filters = SegmentSparseFiltering(N_FILTERS, random_state=seed).fit(windows.X[source])
    strongest = np.argsort(-filters.transform(windows.X[source]).mean(axis=0))[:N_DRAWN]
    segments = windows.X[source].reshape(-1, filters.segment_length_).astype(np.float64)
    found: FloatArray = filters.components_[strongest] @ np.cov(segments, rowvar=False)
    return found / np.abs(found).max(axis=1, keepdims=True)


def _spectra(windows: BearingWindows) -> Any:
    return Spectrum(RATE).fit(windows.X[:1]).transform(windows.X)
