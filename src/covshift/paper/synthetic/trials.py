"""The trials of the paper's synthetic study: how data are drawn, systems fitted and scored."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from covshift.adapters import fit_each
from covshift.base import NothingToAdaptWarning
from covshift.datasets import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.domains import stack_domains
from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.measures import (
    check_cosine_neighborhood,
    check_period,
    check_representation_bounds,
    mmd,
    period_shifts,
)
from covshift.paper.synthetic.systems import (
    LEARNS_WITHOUT_TARGET,
    Part,
    Recipe,
    build,
)
from covshift.predictors import AdaptedClassifier
from covshift.studies.trial import Trial
from covshift.weights import UnreliableWeightsWarning

# --- The simplest model of the family that labels come from, for each synthetic data set ---
#
# Fitted to the source labels alone, it shows the value of knowing the family without adaptation.
# Where it does as well as an adapter, the family helps, not the adaptation.


# Candidates of the sine: from a period wider than the source to one of a few rows.
FREQUENCIES = np.linspace(0.1, 4.0, 391)
N_PHASES = 64


def family_accuracy(data_set: str, data: ShiftedData) -> float:
    """Return the accuracy on the test rows of the simplest model of the data set's family."""
    predict = FAMILIES[data_set](data.X_source, np.asarray(data.y_source, dtype=bool))
    return float(np.mean(predict(data.X_test) == np.asarray(data.y_test, dtype=bool)))


def fit_cone(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x1| > a |x2|`` with the best a."""

    def angle(rows: FloatArray) -> FloatArray:  # grows with |x1| / |x2|, and is always finite
        return np.arctan2(np.abs(rows[:, 0]), np.abs(rows[:, 1]))

    threshold = best_threshold(angle(X), y)
    return lambda rows: angle(rows) > threshold


def fit_sine(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``sin(w x_j + p) > 0`` with the best feature, frequency and phase."""
    best: tuple[float, Any] = (-np.inf, None)
    every = np.arange(len(FREQUENCIES))[:, None] * N_PHASES
    for feature in range(X.shape[1]):
        # A step of the phase moves every angle into the next of as many parts of the circle, of
        # which the first half is positive. So counts by part serve all phases.
        turns = FREQUENCIES[:, None] * (X[:, feature] / (2 * np.pi))
        part = (np.floor(turns * N_PHASES).astype(int) % N_PHASES + every).ravel()
        votes = np.bincount(part, np.tile(np.where(y, 1, -1), len(every)), every.size * N_PHASES)
        sums = np.cumsum(np.tile(votes.reshape(-1, N_PHASES), 2), axis=1)
        starts = -np.arange(N_PHASES) % N_PHASES  # the part that comes to lie first
        correct = sums[:, starts + N_PHASES // 2 - 1] - np.where(starts, sums[:, starts - 1], 0)
        frequency, phase = np.unravel_index(correct.argmax(), correct.shape)
        if correct[frequency, phase] > best[0]:
            phases = 2 * np.pi / N_PHASES
            best = correct[frequency, phase], (feature, FREQUENCIES[frequency], phase * phases)
    feature, frequency, phase = best[1]
    return lambda rows: np.sin(frequency * rows[:, feature] + phase) > 0


def fit_quadratic(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """Logistic regression on the features, their squares and products."""
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(X, y)
    return lambda rows: model.predict(rows).astype(bool)


def fit_band(X: FloatArray, y: BoolArray) -> Callable[[FloatArray], BoolArray]:
    """``|x_j| > a`` with the best feature and a."""
    candidates = [(best_threshold(np.abs(X[:, j]), y), j) for j in range(X.shape[1])]
    threshold, feature = max(
        candidates, key=lambda candidate: np.mean((np.abs(X[:, candidate[1]]) > candidate[0]) == y)
    )
    return lambda rows: np.abs(rows[:, feature]) > threshold


def best_threshold(values: FloatArray, y: BoolArray) -> float:
    """Return the threshold above which calling rows positive gives the most accurate labels.

    Halfway between two values that are there; -inf where all rows are best called positive, the
    largest value where none is.
    """
    levels, level = np.unique(values, return_inverse=True)  # equal values cannot be parted
    positives = np.bincount(level[y], minlength=len(levels))
    negatives = np.bincount(level[~y], minlength=len(levels))
    # Correct when rows up to the k-th level are called negative, for every k; less a constant.
    gain = np.concatenate([[0], np.cumsum(negatives - positives)])
    k = int(gain.argmax())
    if k == 0:
        return -np.inf
    return float(levels[k - 1] if k == len(levels) else levels[k - 1 : k + 1].mean())


FAMILIES: dict[str, Callable[[FloatArray, BoolArray], Callable[[FloatArray], BoolArray]]] = {
    "radial": fit_cone,
    "periodic": fit_sine,
    "smooth": fit_quadratic,
    "diagonal": fit_band,
}
FAMILY_NAMES: dict[str, str] = {
    "radial": "|x1| > a |x2|",
    "periodic": "one sine of one feature",
    "smooth": "quadratic logistic regression",
    "diagonal": "|x_j| > a",
}


MAKERS = {
    "radial": make_radial_shift,
    "periodic": make_periodic_shift,
    "smooth": make_smooth_shift,
    "diagonal": make_diagonal_shift,
}
FAMILY = "family"  # the simplest model of the right family, instead of a system
# Scores of data as they are, which every system on the same data is compared with.
_before: dict[tuple[str, str], float] = {}
MOST_KEPT = 1000
PAIRS = 5000  # of rows checked for the cosine neighborhood

# What is checked, and on which filters it can be.
STATEMENTS: dict[str, str] = {
    "bounds": "Propositions 1 and 2: rows on the positive part of the unit sphere, "
    "1 ≤ Σ z ≤ √L, Var ≤ μ (1 - μ) ≤ ¼",
    "cosine": "Cosine neighbors stay together, by the corrected bound (SF)",
    "period": "Theorem 2, corrected: shifts by whole turns of every filter change nothing "
    "(PSF, no more filters than features)",
    "half period": "Theorem 2 as printed: shifts W⁻¹kπ with odd k change nothing",
}


class Draw(NamedTuple):
    """The data of a trial, and the seed of all that the systems draw."""

    data: ShiftedData
    start: int


def draw_trial(
    data_set: str, seed: int, variant: str = "reconstructed", *, without_crossing: bool = False
) -> Draw:
    """Draw the data of one trial.

    The data are those of ``random_state=seed``. The start is drawn after them: were it seeded
    by the same number, filters would repeat the very draws that made the first rows.

    ``without_crossing`` leaves out source rows with x1 < 0 and test rows with x1 > 0: without
    these .08 % of the rows the two variants of `periodic` have the same source labels and
    opposite test labels.
    """
    rng = np.random.RandomState(seed)
    data = MAKERS[data_set](variant=variant, random_state=rng)
    if without_crossing:
        source, test = data.X_source[:, 0] >= 0, data.X_test[:, 0] <= 0
        data = data._replace(
            X_source=data.X_source[source], y_source=data.y_source[source],
            X_test=data.X_test[test], y_test=data.y_test[test],
        )  # fmt: skip
    return Draw(data, int(rng.randint(2**31 - 1)))


def run_trials(trials: list[Trial]) -> list[dict[str, Any]]:
    """Run trials that differ only in their seed; one result for each.

    A result holds the accuracies ``without`` and ``with`` adaptation and, for representations,
    that of the same adapter fitted without the target (``without_target``), MMD^2 between source
    and test rows before and after, and which of the paper's statements hold.
    """
    settings = trials[0].settings
    draws = [
        draw_trial(
            settings["data_set"],
            trial.seed,
            settings["variant"],
            without_crossing=settings.get("without_crossing", False),
        )
        for trial in trials
    ]
    if settings["system"] == FAMILY:
        return [{"with": family_accuracy(settings["data_set"], draw.data)} for draw in draws]
    with warnings.catch_warnings():
        # The paper's numbers of iterations, converged or not; a few rows that carry most of
        # the weight; two directions of two features: the study measures all of these.
        for category in (ConvergenceWarning, UnreliableWeightsWarning, NothingToAdaptWarning):
            warnings.simplefilter("ignore", category)
        if settings["recipe"]["adapter"]["name"].endswith("Weights"):
            return [_run_weights(settings["recipe"], draw) for draw in draws]
        return _run_representations(settings, draws)


def _run_weights(recipe: Recipe, draw: Draw) -> dict[str, Any]:
    data, start = draw
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    estimator = build(recipe["estimator"], data, start)
    without = clone(estimator).fit(data.X_source, data.y_source)
    adapted = AdaptedClassifier(build(recipe["adapter"], data, start), estimator)
    adapted.fit(X, y, sample_domain=sample_domain)
    return {
        "without": _accuracy(without, data.X_test, data.y_test),
        "with": _accuracy(adapted, data.X_test, data.y_test),
    }


def _run_representations(settings: dict[str, Any], draws: list[Draw]) -> list[dict[str, Any]]:
    recipe = settings["recipe"]
    adapters = [build(recipe["adapter"], *draw) for draw in draws]
    stacked = [stack_domains(data.X_source, data.y_source, data.X_target) for data, _ in draws]
    fitted = _fit_all(adapters, stacked)
    results = []
    plain, plain_name = (
        partial(_accuracy_without, recipe["estimator"]),
        json.dumps(recipe["estimator"]),
    )
    for draw, adapter, (X, _, sample_domain) in zip(draws, fitted, stacked, strict=True):
        data, start = draw
        estimator = build(recipe["estimator"], data, start)
        # All rows at once: norms of a batch are those of the whole domain.
        source = adapter.transform(X, sample_domain=sample_domain)[sample_domain >= 0]
        test = adapter.transform(data.X_test)
        results.append(
            {
                "without": _once(draw, plain_name, plain),
                "with": _accuracy(clone(estimator).fit(source, data.y_source), test, data.y_test),
                "mmd_before": _once(draw, "MMD", _mmd_before),
                "mmd_after": mmd(source, test),
                "statements": (
                    check_statements(adapter, data.X_test)
                    if hasattr(adapter, "feature_norms_")
                    else {}
                ),
            }
        )
    if settings["system"] in LEARNS_WITHOUT_TARGET:
        alone = _fit_all(adapters, [(data.X_source, data.y_source, None) for data, _ in draws])
        for (data, start), adapter, result in zip(draws, alone, results, strict=True):
            estimator = build(recipe["estimator"], data, start)
            estimator.fit(adapter.transform(data.X_source), data.y_source)
            test = adapter.transform(data.X_test)
            result["without_target"] = _accuracy(estimator, test, data.y_test)
    return results


def _once(draw: Draw, name: str, score: Callable[[Draw], float]) -> float:
    """Score data, unless the same data were scored before."""
    key = joblib.hash(draw), name
    if key not in _before:
        if len(_before) == MOST_KEPT:
            _before.clear()
        _before[key] = score(draw)
    return _before[key]


def _mmd_before(draw: Draw) -> float:
    return mmd(draw.data.X_source, draw.data.X_test)


def _accuracy_without(part: Part, draw: Draw) -> float:
    data, start = draw
    model = build(part, data, start).fit(data.X_source, data.y_source)
    return _accuracy(model, data.X_test, data.y_test)


def _fit_all(adapters: list[Any], data: list[Any]) -> list[Any]:
    """Fit each to its own data, together where that can be done."""
    if hasattr(adapters[0], "max_iter") or hasattr(adapters[0], "max_epochs"):
        return fit_each(adapters, data)
    return [
        adapter.fit(X, y, sample_domain=sample_domain)
        for adapter, (X, y, sample_domain) in zip(adapters, data, strict=True)
    ]


def _accuracy(model: Any, X: Any, y: Any) -> float:
    return float(np.mean(model.predict(X) == y))


def check_statements(filter_: Any, X: FloatArray) -> dict[str, bool]:
    """Return which statements hold for a fitted filter and the rows X of its target.

    Those that do not apply to it are left out.
    """
    W = filter_.components_
    held: dict[str, bool] = {}
    Z = filter_.transform(X)
    if filter_.norm_epsilon == 0:  # else rows are shorter than one
        held["bounds"] = check_representation_bounds(Z).holds
    if filter_.activation == "abs" and filter_.norm_epsilon == 0:
        norms = filter_.feature_norms_[filter_.norm_units_.index("target")]
        held["cosine"] = check_cosine_neighborhood(
            W, norms, X, Z=Z, epsilon=filter_.epsilon, max_pairs=PAIRS, random_state=0
        ).holds
    if filter_.activation != "abs" and len(W) <= W.shape[1]:
        turns = np.eye(len(W), dtype=int)
        found = period_shifts(W, turns)
        held["period"] = found.holds
        held["half period"] = all(check_period(W, delta / 2).holds for delta in found.shifts)
    return held
