r"""The expected score of a fitted model on new rows without labels.

The model keeps held-out source rows with its probabilities of them
(`covshift.predictors.held_out_rows`). With the score :math:`s` on these rows and estimates
:math:`s_j` of the score on the new rows, each right under another assumption,

.. math::

    r = s - \sum_j \beta_j (s - s_j), \qquad
    \hat s = c + \frac{\delta^2}{\delta^2 + \tau^2} \, \delta, \quad \delta = r - c, \qquad
    \hat\sigma = e^{\sum_j \gamma_j d_j}, \qquad P(\text{score} \le \hat s + \hat\sigma q_p) = p ,

where c is the estimate by calibrated confidence: where the combination r says about the same, c is
right more often, as is the case for most rows that did not move.

======================  ==========================================================================
confidence              the difference of confidences (DoC)
thresholded confidence  the share of rows above a threshold of confidence (ATC)
calibrated confidence   the mean of calibrated probabilities (CBPE)
weighted calibration    the same, calibrated on source rows weighted by density ratios (PAPE)
class shares            recalls on the source, class shares of the new rows (LEAP)
transport               optimal transport of probabilities to the class shares of the source (COT);
                        of accuracy, as is the thresholded confidence
source domains          how far the score falls on source domains that fits left out; a model that
                        chose its candidates by itself knows it, others count 0
separation              :math:`(2 A - 1)^2` for the AUC A of a classifier between held-out rows and
                        new rows
..., separated          confidence, calibrated confidence and transport times :math:`2 A - 1`: each
                        counts otherwise where the rows moved
outside                 share of the new rows that lie where the source has none
======================  ==========================================================================

This is the combination of `covshift.selection.expected_scores` as far as a saved model can compute
it: scenes in which source rows move like the target would need fits to the training rows.
Difficulty :math:`d`: separation, rows outside, one over the root of the number of new rows, whether
there is one source domain, the size of the confidence term, and the score on the source.

Coefficients and quantiles :math:`q_p` are in ``performance_estimate.json``, which names the command
that wrote it. They come from real tasks with whole clusters of collections left out.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from covshift.base import check_option
from covshift.domains.roles_and_labels import is_missing
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.probabilities import class_shares
from covshift.measures import (
    SourceSupport,
    accuracy_under_class_shares,
    average_thresholded_confidence,
    calibrated_confidence,
    classifier_two_sample_test,
    difference_of_confidences,
    importance_weighted_calibration,
    transported_confidence,
)
from covshift.predictors.held_out_rows import HeldOutRows, NoHeldOutRowsError, kept_features
from covshift.predictors.objectives import (
    ACCURACY,
    METRICS,
    OBJECTIVES,
    decide_classes,
)
from covshift.predictors.prediction_sets import SetPredictor, density_ratios, without_gaps
from covshift.selection.assessment import sample_score, with_labels
from covshift.selection.assessment_words import SCORE_ASSUMPTION
from covshift.selection.expected_scores import METRIC_NAMES, Predictive, linear
from covshift.selection.rehearsals import SOURCE_CV, SOURCE_DOMAINS
from covshift.warning_filters import ignored_warnings

MIN_ROWS = 10  # of either kind, to compare them
MAX_ROWS = 1000  # of the new rows, that features are compared on
ESTIMATORS = (
    "confidence", "thresholded confidence", "calibrated confidence", "weighted calibration",
    "class shares", "transport",
)  # fmt: skip
SEPARATED = ("confidence", "calibrated confidence", "transport")  # also times 2 A - 1


class Scored(NamedTuple):
    """Held-out rows of a model and new rows: probabilities and predicted classes."""

    held: HeldOutRows
    predicted_held: IntArray
    X: FloatArray
    P: FloatArray
    predicted: IntArray
    objective: str
    domain_drop: float = 0.0  # of the score, on source domains that fits left out


def compare_rows(A: FloatArray, B: FloatArray) -> tuple[float, float, FloatArray]:
    """Compare rows for a performance estimate: separation, share outside, density ratios at A."""
    if min(len(A), len(B)) < MIN_ROWS:
        return 0.0, 0.0, np.ones(len(A))
    A, B = without_gaps(A, B)
    with ignored_warnings(ConvergenceWarning):  # expected where rows separate easily
        test = classifier_two_sample_test(A, B, random_state=0, n_importance_repeats=0)
    separation = max(0.0, 2 * test.statistic - 1) ** 2
    outside = float(SourceSupport().fit(A).outside(B).mean())
    weights = density_ratios(A, B)[0]
    return separation, outside, weights if weights.any() else np.ones(len(A))


def _single_estimates(scored: Scored, weights: FloatArray) -> dict[str, float]:
    """Return the score on the new rows by each estimator; ``weights`` are density ratios."""
    P_held, y, P = scored.held.scores, scored.held.y, scored.P
    metric = METRIC_NAMES[scored.objective]
    of_held, of_new = scored.predicted_held, scored.predicted
    return {
        "confidence": difference_of_confidences(
            P_held, y, P, metric=metric, predicted_source=of_held, predicted_target=of_new
        ),
        "thresholded confidence": average_thresholded_confidence(
            P_held, y, P, predicted_source=of_held
        ),
        "calibrated confidence": calibrated_confidence(P, metric=metric, predicted_target=of_new),
        "weighted calibration": importance_weighted_calibration(
            P_held, y, P, weights, metric=metric, predicted_target=of_new
        ),
        "class shares": accuracy_under_class_shares(
            P_held, y, P, metric=metric, predicted_source=of_held
        ),
        "transport": transported_confidence(y, P),
    }


def performance_quantities(
    scored: Scored, compared: tuple[float, float, FloatArray] | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return by name what performance is estimated from; no label of new rows is read.

    Also the single estimates.
    """
    some = np.linspace(0, len(scored.X) - 1, min(len(scored.X), MAX_ROWS)).astype(int)
    separation, outside, weights = compared or compare_rows(scored.held.X, scored.X[some])
    reference = METRICS[scored.objective](scored.held.y, scored.predicted_held)
    estimates = _single_estimates(scored, weights)
    quantities = {"one": 1.0, "reference": float(reference)}
    quantities |= {name: reference - value for name, value in estimates.items()}
    quantities |= {f"{name}, separated": separation**0.5 * quantities[name] for name in SEPARATED}
    quantities |= {
        "source domains": scored.domain_drop,
        "separation": separation,
        "outside": outside,
        "few rows": len(scored.X) ** -0.5,
        "one domain": float(len(np.unique(scored.held.domain)) == 1),
        "size of confidence": abs(reference - estimates["confidence"]),
    }
    return {name: float(value) for name, value in quantities.items()}, estimates


class PerformanceEstimate(NamedTuple):
    """The expected score of a model on new rows, with its 90 % interval.

    Attributes
    ----------
    value, low, high : float
        Expected score on the rows, and its 90 % interval.
    reference : float
        Score on held-out source rows, by fits without them.
    objective : str
        "accuracy" or "balanced_accuracy".
    assumption : str
        Basis of the estimate, in words.
    estimates : dict
        Single estimates by name, each of which rests on an assumption of its own
        (`covshift.measures`).
    quantities : dict
        Data that the estimate was computed from.
    n_labels : int
        Known labels of the rows that count in it.
    distribution : Predictive
        Predictive distribution of the score; ``distribution.below(0.8)`` is the probability of a
        score below .8.
    """

    value: float
    low: float
    high: float
    reference: float
    objective: str
    assumption: str
    estimates: dict[str, float]
    quantities: dict[str, float]
    n_labels: int
    distribution: Predictive


@cache
def performance_coefficients() -> dict[str, Any]:
    """Return the coefficients of the performance estimate, by objective."""
    file = files("covshift.selection").joinpath("performance_estimate.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def lean_on_calibration(combined: Any, calibrated: Any, agreement: float) -> Any:
    """Lean a performance estimate on calibrated confidence, the more the two agree; also arrays."""
    gap = combined - calibrated
    return calibrated + gap**3 / (gap**2 + agreement**2)


def predict_performance(quantities: Mapping[str, float], fitted: Mapping[str, Any]) -> Predictive:
    """Return the predictive distribution of a performance: see the module."""
    calibrated = quantities["reference"] - quantities["calibrated confidence"]
    value = float(
        lean_on_calibration(linear(quantities, fitted["mean"]), calibrated, fitted["agreement"])
    )
    scale = np.exp(linear(quantities, fitted["log scale"]))
    quantiles = value + scale * np.array(fitted["quantiles"])
    return Predictive(value, np.array(fitted["probabilities"]), quantiles)


def estimate_performance(
    model: Any,
    X: Any,
    *,
    sample_domain: Any = None,
    objective: str | None = None,
    y_known: Any = None,
) -> PerformanceEstimate:
    """Estimate the score of a fitted classifier on new rows, without their labels.

    Parameters
    ----------
    model : AdaptedClassifier, AutoAdaptedClassifier or covshift.tables.TableClassifier
        Fitted with ``keep_rows=True``; also one that was saved and loaded.
    X : array-like or frame of shape (n_samples, n_features)
        New rows, as ``model.predict`` takes them.
    sample_domain : array-like of shape (n_samples,), int or str, default=None
        As in ``model.predict``.
    objective : {"accuracy", "balanced_accuracy"} or None, default=None
        Score to estimate; None: that of the model, if it is one of these, else accuracy.
    y_known : array-like of shape (n_samples,), default=None
        Labels of the rows where they are known; None, NaN or an empty text elsewhere. They narrow
        the interval.

    Returns
    -------
    PerformanceEstimate
        ``value``, ``low``, ``high`` (90 % interval), ``reference`` (on held-out source rows),
        ``objective``, ``assumption``, ``estimates``, ``quantities``, ``n_labels`` and
        ``distribution``.

    Notes
    -----
    Formula, assumptions and coefficients: ``covshift/selection/performance_estimate.py``.
    Measured on real tasks: docs/results/prediction-sets.md.

    **Cost**: prediction of the rows, and about ten fits of a logistic regression to at most 1,000
    rows of each kind.

    Examples
    --------
    >>> from covshift import AdaptedClassifier, estimate_performance, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier("coral", keep_rows=True).fit(X, y, sample_domain=sample_domain)
    >>> found = estimate_performance(model, data.X_test)
    >>> bool(found.low <= found.value <= found.high)
    True
    """
    check_is_fitted(model)
    if objective is not None:
        check_option("objective", objective, OBJECTIVES)
    while hasattr(model, "unwrap"):  # a model of tables
        model, X, sample_domain = model.unwrap(X, sample_domain)
    if not isinstance(model, SetPredictor):
        raise TypeError(
            "estimate_performance takes a fitted AdaptedClassifier, AutoAdaptedClassifier or "
            f"TableClassifier, got {type(model).__name__}."
        )
    scored = _score_rows(model, X, sample_domain, objective or _objective_of(model))
    quantities, estimates = performance_quantities(scored)
    expected = predict_performance(quantities, performance_coefficients()[scored.objective])
    n_labels = 0
    if y_known is not None:
        rows, codes = _known_codes(y_known, model.classes_, len(scored.X))
        n_labels = len(rows)
        if n_labels:
            right = (scored.predicted[rows] == codes).astype(float)
            sampled = sample_score(right, codes, scored.objective, 0.0)
            expected = with_labels(expected, sampled, n_labels, len(scored.X))
    value, low, high = expected.interval().clipped(0, 1)
    return PerformanceEstimate(
        value,
        low,
        high,
        quantities["reference"],
        scored.objective,
        SCORE_ASSUMPTION,
        estimates,
        quantities,
        n_labels,
        expected,
    )


def _objective_of(model: Any) -> str:
    own = getattr(model, "objective_", getattr(model, "objective", None))
    return own if isinstance(own, str) and own in OBJECTIVES else ACCURACY


def _score_rows(model: Any, X: Any, sample_domain: Any, objective: str) -> Scored:
    """Return the outputs of the model for its held-out rows and for new ones."""
    held = getattr(model, "held_out_", None)
    if held is None:
        raise NoHeldOutRowsError
    P = model._set_probabilities(X, sample_domain)
    predicted = np.searchsorted(model.classes_, model.predict(X, sample_domain=sample_domain))
    shares = class_shares(held.y, P.shape[1])
    of_held = decide_classes(held.scores, _objective_of(model), shares)
    drop = _domain_drop(getattr(model, "assessment_", None), len(getattr(model, "members_", ())))
    return Scored(held, of_held, kept_features(X), P, predicted, objective, drop)


def _domain_drop(assessment: Any, n_members: int) -> float:
    """How far the score fell on source domains that fits left out; 0 where that is not known."""
    if assessment is None:
        return 0.0
    scores = {one["rehearsal"]: one for one in assessment.rehearsals}
    if SOURCE_DOMAINS not in scores:
        return 0.0
    key = "plain" if n_members == 1 else "vote"
    return float(scores[SOURCE_CV][key] - scores[SOURCE_DOMAINS][key])


def _known_codes(y_known: Any, classes: Any, n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the numbers of the rows whose labels are known, and their class numbers."""
    labels = np.asarray(y_known, dtype=object)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y_known must hold one entry per row: expected shape ({n_rows},), got {labels.shape}."
        )
    names = {one: number for number, one in enumerate(classes.tolist())}
    names |= {str(one): number for one, number in names.items()}
    rows, codes = [], []
    for row, one in enumerate(labels.tolist()):
        if is_missing(one) or one != one or one == "":
            continue
        code = names.get(one, names.get(str(one)))
        if code is None:
            raise ValueError(
                f"y_known has {one!r} (row {row}), which is not a class of the model. Leave rows "
                "without a known label None."
            )
        rows.append(row)
        codes.append(code)
    return np.array(rows, dtype=np.int64), np.array(codes, dtype=np.int64)
