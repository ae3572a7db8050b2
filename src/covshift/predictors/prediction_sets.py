r"""Prediction sets and intervals with a coverage promise under shift, by weighted conformal rules.

Let :math:`s_i` be the score of held-out source row i: how badly its label fits what the model says
of the row (:math:`1 - p_{y_i}(x_i)` for classes, the absolute residual for numbers). A label y of
a new row x is in its set if its own score is at most

.. math::

    q(x) = \inf \Big\{ t : \sum_{i: s_i \le t} w_i \ge (1 - \alpha)
        \Big( \sum_i w_i + w(x) \Big) \Big\},

infinite where no t fits: the mass w(x) of the new row lies at infinity. The label of a new row is
in its set with probability of at least :math:`1 - \alpha` if the weights are right:

======================  ===========================================================================
"exchangeable"          w = 1; new rows are like source rows (Vovk et al.)
"class proportions"     w = share of the class in the target over that in the source; only class
                        shares differ (Podkopaev and Ramdas), as the expectation-maximization
                        algorithm estimates them. Then q depends on the class.
"density ratios"        w = density of the rows in the target over that in the source; P(y | x) is
                        the same (Tibshirani et al.)
======================  ===========================================================================

Density ratios are those of the *probabilities* p(x) that the model gives, not of the rows: the
score depends on x through them alone, so that P(y | p(x)) being the same is enough, and ratios of
few dimensions keep many effective rows. Intervals, which have no probabilities, use the rows.

Tests decide **the promise**, in this order:

1. Fewer than 20 target rows to compare with, or fewer than 5 / alpha held-out rows: no promise.
   Nor where half of the target rows are held-out rows themselves: the model has seen their labels.
   Copies of one target row count once, unless held-out rows repeat as often.
2. No classifier separates target rows from held-out rows, by features or by probabilities, at the
   level .05: "exchangeable".
3. At least .9 of the target rows lie where the source has rows, the mean confidence of the model
   fell by at most .05, and the effective sample size (Kish) of the density ratios is at least
   5 / alpha: "class proportions or density ratios". The set is the union of the sets of all three
   rules, so that it covers if one of the three assumptions holds; rows cannot show which one. The
   rules take .6 alpha in place of alpha: a margin for the error of estimated ratios, and for
   changes of P(y | x) that come with a shift on real data.
4. Else no promise: the unweighted set, "unweighted, coverage not promised".

With 5 / alpha effective rows, five of them lie beyond the quantile, and coverage varies with the
held-out rows by a standard deviation of at most .042 for alpha = .1. The other bounds were chosen
on one half of the clusters of real tasks and checked on the other half; the margin was judged with
whole clusters left out (docs/results/prediction-sets.md). A rule P(y | x) that changed while rows
and probabilities did not cannot be seen by any of these tests.

Scores of held-out rows come from fits without them, those of new rows from the fit to all: as with
cross-conformal prediction, the guarantee is approximate where these differ much.

References
----------
R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani (2021). Predictive inference with the
jackknife+. Annals of Statistics 49(1).

A. Podkopaev, A. Ramdas (2021). Distribution-free uncertainty quantification for classification
under label shift. UAI.

M. Sadinle, J. Lei, L. Wasserman (2019). Least ambiguous set-valued classifiers with bounded error
levels. JASA 114(525) (the score of classes).

R. J. Tibshirani, R. F. Barber, E. J. Candès, A. Ramdas (2019). Conformal prediction under covariate
shift. NeurIPS.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.base import check_number
from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.kernels.distinct_rows import count_distinct, share_repeated
from covshift.kernels.probabilities import class_shares
from covshift.measures import (
    SourceSupport,
    classifier_two_sample_test,
    effective_sample_size,
)
from covshift.predictors.class_proportions import share_ratios
from covshift.predictors.held_out_rows import HeldOutRows, NoHeldOutRowsError, kept_features
from covshift.warning_filters import ignored_warnings
from covshift.weights import ClassifierWeights, UnreliableWeightsWarning

EXCHANGEABLE = "exchangeable"
EITHER = "class proportions or density ratios"
DENSITY_RATIOS = "density ratios"  # of intervals
CLASS_PROPORTIONS = "class proportions"
ROWS, PROBABILITIES = "rows", "probabilities"
UNWEIGHTED = "unweighted, coverage not promised"
MIN_TARGET_ROWS = 20  # to compare with the source
MIN_TAIL = 5  # effective rows beyond the quantile
LEVEL = 0.05  # of the tests
MAX_REPEATED = 0.5  # share of the target rows that are held-out rows themselves
MIN_INSIDE = 0.9  # share of the target rows inside the support of the source
MARGIN = 0.6  # of alpha, that is left to the rules where a shift was detected
MAX_DROP = 0.05  # of the mean confidence, from held-out rows to target rows
MAX_ROWS = 1000  # of the target, that the shift is estimated from
SMALLEST = 1e-4  # of probabilities, before their logarithm
ROUNDING = 1e-12  # of sums of weights


class PredictionSets(NamedTuple):
    """Sets of classes, one for each row, and what is promised of them.

    Attributes
    ----------
    included : ndarray of bool of shape (n_samples, n_classes)
        Whether each class is in the set of each row. A set may be empty: no class is plausible.
    promised : bool
        Whether the class of a row like those of the target is in its set with probability
        ``1 - alpha``.
    method : str
        "exchangeable", "class proportions or density ratios", "density ratios" (intervals), or
        "unweighted, coverage not promised".
    reason : str
        Why coverage is promised, or why not.
    effective_sample_size : float
        Number of equally weighted held-out rows that would be as informative.
    """

    included: BoolArray
    promised: bool
    method: str
    reason: str
    effective_sample_size: float


class PredictionIntervals(NamedTuple):
    """Intervals, one for each row, and what is promised of them; see ``PredictionSets``."""

    low: FloatArray
    high: FloatArray
    promised: bool
    method: str
    reason: str
    effective_sample_size: float


class Promise(NamedTuple):
    """Whether coverage is promised, by which method, why, and on how many effective rows."""

    promised: bool
    method: str
    reason: str
    effective_sample_size: float


class Weighting(NamedTuple):
    """Weights of the held-out rows under one assumption, and how new rows are weighed."""

    weights: FloatArray  # (n,)
    by_class: FloatArray | None = None  # (K,) weights of new rows of each class
    ratios: Callable[[FloatArray], FloatArray] | None = None  # of new rows
    by_probabilities: bool = False  # whether these are of probabilities, not of rows

    @property
    def effective_sample_size(self) -> float:
        """Number of equally weighted rows that would be as informative."""
        return effective_sample_size(self.weights) if self.weights.any() else 0.0

    def thresholds(
        self, scores: FloatArray, X: FloatArray, P: FloatArray | None, alpha: float
    ) -> FloatArray:
        """Largest scores in the sets of new rows: (n_new, 1), or (1, K) if they are by class."""
        if self.by_class is not None:
            return conformal_thresholds(scores, self.weights, self.by_class, alpha)[None, :]
        new: FloatArray = np.ones(len(X))
        if self.ratios is not None:
            new = self.ratios(_log_odds(P) if self.by_probabilities and P is not None else X)
        return conformal_thresholds(scores, self.weights, new, alpha)[:, None]


class Evidence(NamedTuple):
    """Shift between held-out rows and target rows; labels of the target are not read."""

    n_held: int
    n_target: int
    pvalue: float  # of the test that target rows are like held-out rows
    confidence_drop: float  # of the model's mean confidence; 0 where labels are numbers
    inside: float  # share of the target rows where the source has rows
    effective: dict[str, float]  # sample sizes, by method
    repeated: float = 0.0  # share of the target rows that are held-out rows themselves
    n_different: float = np.inf  # target rows that are not copies of others


class Rule(NamedTuple):
    """How held-out rows are weighed, and what is promised. Sets are unions over the weightings."""

    promise: Promise
    weightings: list[Weighting]
    alpha: float  # of each weighting


def conformal_thresholds(
    scores: FloatArray, weights: FloatArray, new_weights: FloatArray, alpha: float
) -> FloatArray:
    """Return the largest score (n_new,) that is still in the prediction set of each new row.

    Parameters
    ----------
    scores, weights : (n,) of the held-out rows.
    new_weights : (n_new,) of the new rows, whose mass lies at infinity.
    alpha : accepted share of labels outside of their sets.
    """
    # The weighted quantile of conformal prediction. A new row counts with its own weight at an
    # infinite score, as if its score were the worst: this is what makes the promise hold with few
    # held-out rows. Where its weight alone is more than alpha of the sum, the quantile is infinite
    # and the set holds all classes.
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(weights[order])
    needed = (1 - alpha) * (mass[-1] + new_weights) * (1 - ROUNDING)
    thresholds: FloatArray = np.append(scores[order], np.inf)[np.searchsorted(mass, needed)]
    return thresholds


def class_sets(scores: FloatArray, rule: Rule, X: FloatArray, P: FloatArray) -> BoolArray:
    """Return the prediction sets (n_new, K) of new rows X with probabilities P (n_new, K)."""
    included: BoolArray = np.zeros(P.shape, dtype=bool)
    for one in rule.weightings:
        # A class is left out only where every assumption leaves it out. So the promise holds if one
        # of the assumptions does, whichever it is.
        included |= one.thresholds(scores, X, P, rule.alpha) >= 1 - P
    return included


def _interval_widths(residuals: FloatArray, rule: Rule, X: FloatArray) -> FloatArray:
    """Return half the widths (n_new,) of the intervals of new rows X around their predictions."""
    widths = [one.thresholds(residuals, X, None, rule.alpha)[:, 0] for one in rule.weightings]
    widest: FloatArray = np.max(widths, axis=0)
    return widest


def _log_odds(P: FloatArray) -> FloatArray:
    """Return probabilities (n, K) as coordinates (n, K - 1): centered logarithms."""
    logs = np.log(np.maximum(P, SMALLEST))
    centered: FloatArray = (logs - logs.mean(axis=1, keepdims=True))[:, :-1]
    return centered


def judge_shift(
    held: HeldOutRows, X_target: FloatArray, alpha: float, P_target: FloatArray | None = None
) -> Rule:
    """Decide, for prediction sets, how held-out rows are weighed, and if coverage is promised.

    See the module.

    Parameters
    ----------
    held : HeldOutRows
        Labeled source rows.
    X_target : (n_target, n_features) rows of the target.
    alpha : accepted share of labels outside of their sets.
    P_target : (n_target, n_classes) probabilities of these rows; None: labels are numbers.
    """
    evidence, weightings = gather_evidence(held, X_target, P_target, alpha)
    promise, names = decide_coverage(evidence, alpha)
    return Rule(promise, [weightings[name] for name in names], alpha * margin_of(names))


def margin_of(names: Sequence[str]) -> float:
    """Return the share of alpha that the rules of sets take: less than all, if they weigh rows."""
    return 1.0 if names == [UNWEIGHTED] else MARGIN


def gather_evidence(
    held: HeldOutRows, X_target: FloatArray, P_target: FloatArray | None, alpha: float
) -> tuple[Evidence, dict[str, Weighting]]:
    """Return what prediction sets take of the shift, and the weights under each assumption.

    Parameters as in `judge_shift`. With too few rows nothing is tested.
    """
    n = len(held.X)
    weightings = {UNWEIGHTED: Weighting(np.ones(n))}
    few = Evidence(n, len(X_target), np.nan, np.nan, np.nan, {UNWEIGHTED: float(n)})
    # Fewer rows than this beyond the quantile would put it anywhere.
    if len(X_target) < MIN_TARGET_ROWS or n < MIN_TAIL / alpha:
        return few, weightings
    # Spread over the whole file: rows of one period or site often stand together.
    some = np.linspace(0, len(X_target) - 1, min(len(X_target), MAX_ROWS)).astype(int)
    A, B = without_gaps(held.X, X_target[some])
    spaces = {ROWS: (A, B)}
    drop = 0.0
    if P_target is not None:
        P_target = P_target[some]
        # In the few dimensions of the probabilities a shift that matters to the model is easier to
        # find, and ratios of densities are easier to estimate, than among all features.
        spaces[PROBABILITIES] = _log_odds(held.scores), _log_odds(P_target)
        # If only class proportions changed, all rows of a class weigh the same, and a new row
        # weighs as much as the class that is considered for it.
        of_class = share_ratios(P_target, class_shares(held.y, P_target.shape[1]))
        weightings[CLASS_PROPORTIONS] = Weighting(of_class[held.y], by_class=of_class)
        drop = float(held.scores.max(axis=1).mean() - P_target.max(axis=1).mean())
    # Of the probabilities, where there are some; else of the rows.
    last = [*spaces][-1]
    weights, ratios = density_ratios(*spaces[last])
    weightings[DENSITY_RATIOS] = Weighting(
        weights, ratios=ratios, by_probabilities=last == PROBABILITIES
    )
    return Evidence(
        n,
        len(X_target),
        _separation_pvalue(list(spaces.values())),
        drop,
        float(1 - SourceSupport().fit(A).outside(B).mean()),
        {name: one.effective_sample_size for name, one in weightings.items()},
        share_repeated(A, B),
        count_distinct(A, B),
    ), weightings


def decide_coverage(evidence: Evidence, alpha: float) -> tuple[Promise, list[str]]:
    """Return what is promised, and the names of the weightings whose sets are united."""
    least, n = MIN_TAIL / alpha, float(evidence.n_held)

    def refuse(reason: str) -> tuple[Promise, list[str]]:
        return Promise(False, UNWEIGHTED, reason, n), [UNWEIGHTED]

    if evidence.n_target < MIN_TARGET_ROWS:
        return refuse(
            f"Too few target rows to compare with the source: {evidence.n_target}; at least "
            f"{MIN_TARGET_ROWS} are needed (X_target)."
        )
    if evidence.n_different < MIN_TARGET_ROWS:
        return refuse(
            f"Only {evidence.n_different:.0f} of the target rows differ from each other; at least "
            f"{MIN_TARGET_ROWS} different ones are needed to compare them with the source."
        )
    if n < least:
        return refuse(f"{n:.0f} held-out rows are too few; at least {least:g} are needed.")
    if evidence.repeated >= MAX_REPEATED:
        return refuse(
            f"{100 * evidence.repeated:.0f} % of the target rows are rows that the model learned "
            "from; give rows that are new to it."
        )
    # Conditions come in the order in which they matter: a shift that was not found needs no
    # weights, whatever else is wrong with these.
    if evidence.pvalue >= LEVEL:
        reason = "Target rows cannot be distinguished from held-out source rows."
        return Promise(True, EXCHANGEABLE, reason, n), [UNWEIGHTED]
    # Weights cannot stand for rows that the source does not have.
    if evidence.inside < MIN_INSIDE:
        return refuse(
            f"{100 * (1 - evidence.inside):.0f} % of the target rows lie where the source has "
            f"none; at most {100 * (1 - MIN_INSIDE):.0f} % is allowed."
        )
    # Confidence that falls shows rows that the model does not know well; weighing rows that it
    # knows does not make up for them.
    if evidence.confidence_drop > MAX_DROP:
        return refuse(
            "The model is less confident on the target rows than on held-out source rows by "
            f"{evidence.confidence_drop:.2f}; at most {MAX_DROP} is allowed."
        )
    n_effective = evidence.effective[DENSITY_RATIOS]
    if n_effective < least:
        return refuse(
            "Held-out source rows resemble the target rows too little: weighted by density ratios "
            f"they count as {n_effective:.0f} rows; at least {least:g} are needed."
        )
    where = f"{100 * evidence.inside:.0f} % of the target rows lie where the source has rows."
    if CLASS_PROPORTIONS not in evidence.effective:
        reason = (
            "Target rows differ from the source. It is assumed that the label depends on the "
            f"features in the same way. {where}"
        )
        return Promise(True, DENSITY_RATIOS, reason, n_effective), [UNWEIGHTED, DENSITY_RATIOS]
    reason = (
        "Target rows differ from the source. It is assumed that class proportions alone, or the "
        f"distribution of the model's probabilities alone, changed. {where}"
    )
    names = [UNWEIGHTED, CLASS_PROPORTIONS, DENSITY_RATIOS]
    return Promise(True, EITHER, reason, n_effective), names


def _separation_pvalue(spaces: list[tuple[FloatArray, FloatArray]]) -> float:
    """Return the smallest p-value of tests that paired samples are alike, times their number."""
    pvalues = []
    with ignored_warnings(ConvergenceWarning):  # expected where rows separate easily
        for A, B in spaces:
            test = classifier_two_sample_test(A, B, random_state=0, n_importance_repeats=0)
            pvalues.append(test.pvalue)
    # Bonferroni: the smallest of several p-values is small by chance more often than one.
    return float(min(1.0, len(pvalues) * min(pvalues)))


def density_ratios(
    A: FloatArray, B: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return density ratios of B over A for prediction sets, cross-fitted, and as a function."""
    estimator = ClassifierWeights(random_state=0)
    where = np.repeat([0, -1], [len(A), len(B)])
    with ignored_warnings(UnreliableWeightsWarning, ConvergenceWarning):
        estimator.fit(np.concatenate([A, B]), sample_domain=where)

    def ratios(Z: FloatArray) -> FloatArray:
        found: FloatArray = estimator.score_weights(Z)
        return found

    return estimator.weights_, ratios


def without_gaps(*samples: FloatArray) -> list[FloatArray]:
    """Return rows for prediction sets: the first sample's medians in place of missing values."""
    if not any(np.isnan(X).any() for X in samples):
        return list(samples)
    with np.errstate(invalid="ignore"), ignored_warnings(RuntimeWarning):
        # A column without any value has no median: zero then stands in all rows alike.
        medians = np.nan_to_num(np.nanmedian(samples[0], axis=0))
    return [np.where(np.isnan(X), medians, X) for X in samples]


def check_held_out(model: Any, alpha: Any) -> HeldOutRows:
    """Return a model's rows for prediction sets; refuse one without, and alpha beyond 0 to 1."""
    check_number("alpha", alpha, minimum=0.0, maximum=1.0, closed="neither")
    held: HeldOutRows | None = getattr(model, "held_out_", None)
    if held is None:
        raise NoHeldOutRowsError
    return held


class SetPredictor:
    """Base of the classifiers that predict sets.

    A subclass has ``held_out_``, and ``_set_probabilities(X, sample_domain)``: probabilities for
    the class proportions of the source, as those of the held-out rows are.
    """

    classes_: Any
    held_out_: Any
    _set_probabilities: Callable[..., FloatArray]

    def predict_set(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionSets:
        """Predict sets that hold the class of a row with probability 1 - alpha.

        Parameters
        ----------
        X, sample_domain
            As in ``predict``.
        alpha : float, default=0.1
            Accepted share of classes outside of their sets, between 0 and 1.
        X_target : array-like of shape (n_target, n_features), default=None
            Rows of the target, from which the shift is estimated. None: ``X`` itself, so that the
            set of a row depends on the other rows of the call.

        Returns
        -------
        PredictionSets
            ``included`` (n_samples, n_classes), in the order of ``classes_``; whether coverage is
            ``promised``, by which ``method`` and for what ``reason``; the
            ``effective_sample_size``.

        Notes
        -----
        Methods, tests and references: ``covshift/predictors/prediction_sets.py``. It needs
        held-out rows (``keep_rows=True``).

        **Cost**: ten to twenty fits of a logistic regression to at most 1,000 rows of each role.
        """
        held = check_held_out(self, alpha)
        P, X_new = self._set_probabilities(X, sample_domain), kept_features(X)
        if X_target is None:
            rows, P_target = X_new, P
        else:
            rows, P_target = kept_features(X_target), self._set_probabilities(X_target, None)
        rule = judge_shift(held, rows, alpha, P_target)
        scores = 1 - held.scores[np.arange(len(held.y)), held.y]
        included = class_sets(scores, rule, X_new, P)
        return PredictionSets(included, *rule.promise)


class IntervalPredictor:
    """Base of the regressors that predict intervals; a subclass has ``held_out_``."""

    held_out_: Any
    predict: Callable[..., Any]

    def predict_interval(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionIntervals:
        """Predict intervals that hold the label of a row with probability 1 - alpha.

        Parameters
        ----------
        X, alpha, sample_domain, X_target
            As in ``predict_set`` of a classifier (``SetPredictor``).

        Returns
        -------
        PredictionIntervals
            ``low`` and ``high`` (n_samples,), infinite where the source says too little;
            ``promised``, ``method``, ``reason`` and ``effective_sample_size`` as in
            ``PredictionSets``.

        Notes
        -----
        Absolute residuals of held-out rows, weighted by density ratios of the rows: see
        ``covshift/predictors/prediction_sets.py``. Class proportions do not apply. It needs
        held-out rows (``keep_rows=True``).

        **Cost**: ten fits of a logistic regression to at most 1,000 rows of each role.
        """
        held = check_held_out(self, alpha)
        center = np.asarray(self.predict(X, sample_domain=sample_domain), dtype=np.float64)
        rows = kept_features(X)
        rule = judge_shift(held, rows if X_target is None else kept_features(X_target), alpha)
        width = _interval_widths(np.abs(held.y - held.scores), rule, rows)
        return PredictionIntervals(center - width, center + width, *rule.promise)
