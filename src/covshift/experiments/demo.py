"""The paper's four data sets, each with no adaptation, sparse filtering and its periodic form."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import t as t_distribution
from sklearn.svm import LinearSVC

from covshift.adapters import PeriodicSparseFiltering, SparseFiltering
from covshift.datasets import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.domains import stack_domains
from covshift.predictors import AdaptedClassifier

Verdict: TypeAlias = Literal["helps", "harms", "unclear"]
Floats: TypeAlias = npt.NDArray[np.float64]

# Each data set, as reconstructed (`covshift.datasets` says why two of them need it).
DATA_SETS: dict[str, Callable[..., ShiftedData]] = {
    "radial": make_radial_shift,
    "periodic": make_periodic_shift,
    "smooth": make_smooth_shift,
    "diagonal": make_diagonal_shift,
}

# Whose assumption each data set is built on.
ASSUMPTIONS: dict[str, str] = {
    "radial": "sparse filtering (SF)",
    "periodic": "periodic sparse filtering (PSF)",
    "smooth": "importance weighting",
    "diagonal": "subspace alignment",
}


NO_ADAPTATION = "no adaptation"

# Each system: what makes its adapter, given random_state. A linear SVM stands on top of it.
SYSTEMS: dict[str, Callable[..., Any]] = {
    NO_ADAPTATION: lambda random_state: None,
    # W stays as drawn: that is what reproduces the paper's accuracies. On radial the paper
    # prints .779; an independent rebuild got .799 with W not trained and .646 with W trained
    # to convergence, although the paper's text says that it trained for 500 iterations.
    "SF": partial(SparseFiltering, n_components=2, max_iter=0),
    # The paper takes 2 filters, and its printed .568 on periodic fits the loss of its released
    # code (rebuild: .576). One fit of 2 filters with the loss stated in the paper, used here,
    # scores about .7 there: it has many poor minima, hence more filters and 20 starts. The
    # longest of 120 kept fits took about a hundred iterations: 1000 are not reached.
    "PSF": partial(PeriodicSparseFiltering, n_components=8, n_restarts=20, max_iter=1000),
}


class Estimate(NamedTuple):
    """Mean over trials and its standard error, None where there is none."""

    mean: float
    standard_error: float | None


# Printed in the paper's table of accuracies, which gives no error for the baseline.
PAPER: dict[tuple[str, str], Estimate] = {
    ("radial", NO_ADAPTATION): Estimate(0.342, None),
    ("radial", "SF"): Estimate(0.779, 0.03),
    ("radial", "PSF"): Estimate(0.479, 0.05),
    ("periodic", NO_ADAPTATION): Estimate(0.488, None),
    ("periodic", "SF"): Estimate(0.5, 0.01),
    ("periodic", "PSF"): Estimate(0.568, 0.02),
    ("smooth", NO_ADAPTATION): Estimate(0.894, None),
    ("smooth", "SF"): Estimate(0.476, 0.06),
    ("smooth", "PSF"): Estimate(0.522, 0.08),
    ("diagonal", NO_ADAPTATION): Estimate(0.866, None),
    ("diagonal", "SF"): Estimate(0.584, 0.02),
    ("diagonal", "PSF"): Estimate(0.609, 0.09),
}


@dataclass(frozen=True)
class Trial:
    """Accuracy of one system on the test rows of one draw of one data set."""

    data_set: str
    system: str
    seed: int
    accuracy: float


@dataclass(frozen=True)
class FilterGrid:
    """A representation over the plane: Z[i, j] is that of the point (x1[j], x2[i])."""

    x1: Floats
    x2: Floats
    Z: Floats


def draw_trial(data_set: str, seed: int) -> tuple[ShiftedData, int]:
    """Draw one trial: its data, and the seed of the filters' start.

    The data are those of ``random_state=seed``. The start is drawn after them: were it
    seeded by the same number, W would repeat the very draws that made the first rows.

    Parameters
    ----------
    data_set : str
        One of `DATA_SETS`.
    seed : int
        Seed of the trial.

    Returns
    -------
    data : ShiftedData
    start : int
    """
    rng = np.random.RandomState(seed)
    return DATA_SETS[data_set](random_state=rng), int(rng.randint(2**31 - 1))


def fit_system(system: str, data: ShiftedData, start: int) -> AdaptedClassifier:
    """Fit one system on source rows, their labels and the unlabelled target rows.

    Parameters
    ----------
    system : str
        One of `SYSTEMS`.
    data : ShiftedData
        Data set.
    start : int
        Seed of the system's start.

    Returns
    -------
    AdaptedClassifier
        Fitted.
    """
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    model = AdaptedClassifier(
        SYSTEMS[system](random_state=start), LinearSVC(C=1.0, random_state=start)
    )
    return model.fit(X, y, sample_domain=sample_domain)


def run_trials(n_trials: int = 10, seed: int = 0) -> Iterator[Trial]:
    """Run every system on every data set, and yield each result as it ends.

    The systems of one trial see the same rows.

    Parameters
    ----------
    n_trials : int, default=10
        Draws of data and start, of seeds ``seed``, ``seed + 1``, ...
    seed : int, default=0
        Seed of the first trial.

    Yields
    ------
    Trial
    """
    for data_set in DATA_SETS:
        for trial_seed in range(seed, seed + n_trials):
            data, start = draw_trial(data_set, trial_seed)
            for system in SYSTEMS:
                accuracy = fit_system(system, data, start).score(data.X_test, data.y_test)
                yield Trial(data_set, system, trial_seed, float(accuracy))


def summarize(trials: Iterable[Trial]) -> dict[tuple[str, str], Estimate]:
    """Mean and standard error of each (data set, system).

    Parameters
    ----------
    trials : iterable of Trial
        Results.

    Returns
    -------
    dict of (str, str) to Estimate
        In the order of the trials; a single trial has no standard error.
    """
    cells: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        cells.setdefault((trial.data_set, trial.system), []).append(trial.accuracy)
    return {cell: _mean_and_error(values) for cell, values in cells.items()}


def verdicts(trials: Iterable[Trial], level: float = 0.05) -> dict[tuple[str, str], Verdict]:
    """Whether each system is better or worse than no adaptation, or neither for sure.

    A t-test of the differences within each trial: pairing takes out what the draws of the
    data add to the spread of both.

    Parameters
    ----------
    trials : iterable of Trial
        Results, those without adaptation among them.
    level : float, default=0.05
        Chance of calling a difference where there is none, for each verdict by itself.

    Returns
    -------
    dict of (str, str) to {"helps", "harms", "unclear"}
        For each (data set, system) but those without adaptation.
    """
    trials = list(trials)
    baseline = {(t.data_set, t.seed): t.accuracy for t in trials if t.system == NO_ADAPTATION}
    differences: dict[tuple[str, str], list[float]] = {}
    for t in trials:
        if t.system != NO_ADAPTATION:
            difference = t.accuracy - baseline[t.data_set, t.seed]
            differences.setdefault((t.data_set, t.system), []).append(difference)
    return {cell: _verdict(values, level) for cell, values in differences.items()}


def filter_grid(adapter: Any, data: ShiftedData, n_points: int = 200) -> FilterGrid:
    """Evaluate a fitted filter over the part of the plane that a data set occupies.

    Parameters
    ----------
    adapter : fitted transformer of two features
        Filter. The points of the grid are represented as rows of the target.
    data : ShiftedData
        The grid covers its source rows and its test rows.
    n_points : int, default=200
        Points of the grid along each axis.

    Returns
    -------
    FilterGrid
    """
    rows = np.concatenate([data.X_source, data.X_test])
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.05 * (high - low)
    x1, x2 = np.linspace(low - margin, high + margin, n_points).T
    points = np.stack(np.meshgrid(x1, x2), axis=-1)
    Z = adapter.transform(points.reshape(-1, 2))
    return FilterGrid(x1, x2, Z.reshape(n_points, n_points, -1))


def _mean_and_error(values: list[float]) -> Estimate:
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    return Estimate(float(np.mean(values)), error)


def _verdict(differences: list[float], level: float) -> Verdict:
    mean, error = _mean_and_error(differences)
    if (
        error is None
        or abs(mean) <= t_distribution.ppf(1 - level / 2, len(differences) - 1) * error
    ):
        return "unclear"
    return "helps" if mean > 0 else "harms"
