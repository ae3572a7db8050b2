r"""Expected scores on the target: of the plain model, of the vote, and the gain between them.

For each of the three, with quantities :math:`x_j` and :math:`d_j` that need no target label,

.. math::

    \hat s = \sum_j \beta_j x_j, \qquad \hat\sigma = e^{\sum_j \gamma_j d_j}, \qquad
    P(s \le \hat s + \hat\sigma q_p) = p .

The true score minus :math:`\hat s`, in units of the difficulty :math:`\hat\sigma`, has the
quantiles :math:`q_p`. They are those of real tasks, whole clusters of collections left out, so that
a 90 % interval covers the score on the rows of the target in about 90 % of tasks like these,
sampling noise included. Known labels of the target narrow them (`covshift.selection.assessment`);
how far true scores then are from the estimates, in units of the stated deviation, is learned from
the same tasks, and intervals are stretched by it (`label_stretch`).

**The plain model**: its score on left-out source rows, less how far other estimates fall below it:

======================  ==========================================================================
moved, class shares,    the rehearsals of `covshift.selection.rehearsals`; 0 where a kind could not
source domains          be played
confidence              the difference of confidences (DoC)
calibrated confidence   the score expected from calibrated probabilities (CBPE)
thresholded confidence  the share of rows above a threshold of confidence (ATC)
by the vote, by all,    the score expected if the probabilities of these, instead of its own, were
by unadapted            calibrated: of the vote, of all candidates and of all unadapted ones
======================  ==========================================================================

A model that is wrong in a new place is often sure of itself there, and other models are less sure:
the last three are the best single estimates where domains differ (docs/results/assessment.md).

**The gain of the vote** is made on the rows that it predicts differently, a share c of the target.
By class probabilities :math:`p_{ik}` of the target rows, with :math:`v_i` the class predicted by
the vote and :math:`f_i` that of the plain model, it is the mean of
:math:`p_{i v_i} - p_{i f_i}`: by the probabilities of the vote, and by those of all candidates.
Neither counts against a gain. Gains in rehearsals, and the probabilities of unadapted models alone,
made the estimates no better on tasks left out.

**The vote** has the sum of both as its expected score.

**Difficulty**: c, its logarithm, and c times the separation of source and target,
:math:`(2 A - 1)^2` for the AUC A of a classifier between them; this separation; the logarithm of
the share of rows on which the plain model differs from a candidate, on average; one over the root
of the number of target rows. For scores also that share itself, whether there is one source domain,
the size of two terms of confidence, and the score on the source. Where adapters change most of the
predictions, they gain or lose far more.

**Chances** without labels are logistic in a few quantities:

.. math::

    P = \frac{1}{1 + e^{-\sum_j \alpha_j x_j}}

that the vote loses more than .01, in how much the plain model differs from the candidates (for
balanced accuracy nothing tells more than the base rate does, so it is a constant); that keeping the
plain model is right, in this and the expected gain; that the vote, where it is recommended, does
not lose, a constant. Probabilities by the distributions above were no better than base rates.

The coefficients are in ``expected_scores.json``, which names the command that wrote it.

**Where the label is a number**, for the plain model and for the vote, with :math:`u = 1 - R^2` (the
mean squared error over the variance of the labels) and :math:`m` the mean absolute error,

.. math::

    \log u = \log u_{\text{CV}} + \sum_j \beta_j x_j + q, \qquad
    \log m = \log m_{\text{CV}} + \sum_j \beta'_j x_j + q',

where CV is validation on left-out source rows, and the quantiles of :math:`q` are those of real
tasks, whole clusters of collections left out. On a logarithmic scale an error that is twice as
large as expected is as far off as one that is half as large. The quantities need no target label:

================  ================================================================================
one               1
source domains    :math:`\log u` on left-out source domains less that on left-out rows; 0 where
                  there is one source domain
committee         :math:`\log(1 + d / \sqrt{u_{\text{CV}}})` for the root mean square difference d
                  between candidates and the plain model on the target, in units of the source
================  ================================================================================

**The gain in R² of the vote** over the plain model is a sum of the gains in rehearsals, by left-out
rows and by left-out domains, and of :math:`d_v^2 / 2` for the root mean square difference
:math:`d_v` between vote and plain model on the target: averaging gains in proportion to it. The
remainder, in units of :math:`d_v + 0.02`, has the quantiles of real tasks. Few collections have
numbers, so there are no more quantities than these.

R² depends on the spread of the target's labels, which is unknown without labels: the expected
absolute error is the safer figure. The coefficients are in ``expected_number_scores.json``, which
names the command that wrote it.

References
----------
S. Garg, S. Balakrishnan, Z. C. Lipton, B. Neyshabur, H. Sedghi (2022). Leveraging unlabeled data to
predict out-of-distribution performance. ICLR.

D. Guillory, V. Shankar, S. Ebrahimi, T. Darrell, L. Schmidt (2021). Predicting with confidence on
unseen distributions. ICCV.

H. Papadopoulos, V. Vovk, A. Gammerman (2011). Regression conformal prediction with nearest
neighbors. JAIR 40 (intervals from residuals scaled by difficulty).
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.probabilities import reweigh_probabilities
from covshift.measures import (
    average_thresholded_confidence,
    calibrated_confidence,
    difference_of_confidences,
)
from covshift.measures.labeled_scores import mean_squared_error, negative_mae, r2
from covshift.predictors.class_proportions import SHARE_PRIOR, share_ratios
from covshift.predictors.objectives import METRICS, decide_classes, is_balanced
from covshift.selection.bench import Bench
from covshift.selection.rehearsals import (
    KINDS,
    NUMBER_KINDS,
    SOURCE_CV,
    SOURCE_DOMAINS,
    pseudo_targets,
)
from covshift.selection.vote import mix_probabilities
from covshift.shared_docs import documented_like

PLAIN, ADAPTED, GAIN = MODELS = ("plain", "adapted", "gain")
LEVEL = 0.9  # coverage of intervals
MARGIN = 0.01  # a loss above it is harm
DISAGREEMENT, LOG_COMMITTEE, EXPECTED_GAIN = "disagreement", "log committee", "expected gain"
MIN_CHANGED = 0.02  # share of changed rows: smaller ones do not show how good changes are
METRIC_NAMES: dict[str, Literal["accuracy", "balanced_accuracy"]] = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
}
NORMAL_90 = 1.6449  # standard deviations on either side of a central 90 % interval


class Estimate(NamedTuple):
    """An expected value with its 90 % interval."""

    value: float
    low: float
    high: float

    def clipped(self, least: float, most: float) -> "Estimate":
        """Return the estimate within bounds."""
        return Estimate(*(float(np.clip(one, least, most)) for one in self))


class Predictive(NamedTuple):
    """A predictive distribution by its quantiles, which increase."""

    value: float
    probabilities: FloatArray
    quantiles: FloatArray

    def interval(self) -> Estimate:
        """Return the expected value with its central 90 % interval."""
        tail = (1 - LEVEL) / 2
        low, high = np.interp([tail, 1 - tail], self.probabilities, self.quantiles)
        return Estimate(self.value, float(low), float(high))

    def below(self, bound: float) -> float:
        """Return the probability of a value below a bound."""
        return float(np.interp(bound, self.quantiles, self.probabilities))

    @property
    def deviation(self) -> float:
        """Standard deviation of the normal distribution with an interval as wide."""
        _, low, high = self.interval()
        return (high - low) / 2 / NORMAL_90


class Views(NamedTuple):
    """Class probabilities of rows by the plain model and by the vote."""

    plain: FloatArray
    vote: FloatArray


@cache
def score_coefficients() -> dict[str, Any]:
    """Return the coefficients of expected scores, by objective and model."""
    text = files("covshift.selection").joinpath("expected_scores.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


class Chances(NamedTuple):
    """Probabilities, while no target label is known.

    ``loss``: the vote loses more than .01. ``adapt``: it does not lose at all, if it is
    recommended; ``keep``: it gains no more than .01, if it is not.
    """

    loss: float
    adapt: float
    keep: float


def chances(quantities: Mapping[str, float], gain: float, objective: str) -> Chances:
    """Return the probabilities beside expected scores, given the vote's expected gain."""
    known = {**quantities, EXPECTED_GAIN: gain}
    of_objective = score_coefficients()[objective]["chances"]
    return Chances(
        **{name: float(expit(linear(known, terms))) for name, terms in of_objective.items()}
    )


def expect(quantities: Mapping[str, float], objective: str) -> dict[str, Predictive]:
    """Return the expected scores, three predictive distributions, by the names of `MODELS`."""
    fitted = score_coefficients()[objective]
    values = {name: linear(quantities, fitted[name]["mean"]) for name in (PLAIN, GAIN)}
    values[ADAPTED] = values[PLAIN] + values[GAIN]
    probabilities = np.array(score_coefficients()["probabilities"])
    found = {}
    for name in MODELS:
        scale = np.exp(linear(quantities, fitted[name]["log scale"]))
        quantiles = values[name] + scale * np.array(fitted[name]["quantiles"])
        found[name] = Predictive(values[name], probabilities, quantiles)
    return found


def label_stretch(objective: str) -> dict[str, float]:
    """Return the factors on expected scores' deviations with known labels, by `MODELS`."""
    found: dict[str, float] = score_coefficients()[objective]["label stretch"]
    return found


def linear(quantities: Mapping[str, float], by_name: Mapping[str, float]) -> float:
    """Return an expected score's linear predictor; a quantity that is missing counts as 0."""
    return float(sum(quantities.get(name, 0.0) * beta for name, beta in by_name.items()))


def quantities_of(
    bench: Bench,
    objective: str,
    weights: FloatArray,
    plain: int,
    allowed: BoolArray,
    *,
    reweighed: bool,
) -> dict[str, float]:
    """Return, by name, what expected scores are predicted from; none needs a target label.

    Parameters
    ----------
    bench : Bench
        Candidates, with the outputs of the scenes.
    objective : {"accuracy", "balanced_accuracy"}
        Metric of the scores, and how classes are decided.
    weights : ndarray of shape (n_candidates,)
        Of the vote.
    plain : int
        Number of the plain model.
    allowed : ndarray of bool of shape (n_candidates,)
        Candidates that are neither failed nor degenerate.
    reweighed : bool
        Whether the vote estimates class shares of the target.
    """
    problem = bench.problem
    codes, shares, metric = problem.codes, problem.class_shares, METRICS[objective]

    def decide(P: FloatArray) -> IntArray:
        return decide_classes(P, objective, shares)

    def play(views: Views, truth: IntArray) -> FloatArray:
        return np.array([metric(truth, decide(one)) for one in views])

    def see(P: Sequence[FloatArray | None], reweighed: bool = False) -> Views:
        return view(P, bench, weights, plain, reweighed=reweighed)

    P = bench.calibrated(bench.target)
    left_out, on_target = see(bench.probabilities_left_out()), see(P, reweighed)
    predicted = [decide(one) for one in on_target]
    changed = float(np.mean(predicted[0] != predicted[1]))
    played = {SOURCE_CV: play(left_out, codes)}
    for kind in KINDS[1:]:
        scenes = {name: one for name, one in pseudo_targets(bench, kind) if bench.has_run(name)}
        outputs = bench.run({name: one.scene for name, one in scenes.items()})
        found = [
            play(see(bench.calibrated(outputs[name])), one.codes)
            for name, one in scenes.items()
            if outputs[name][plain].logits is not None
        ]
        if found:
            played[kind] = np.mean(found, axis=0)
    score = played[SOURCE_CV][0]
    quantities = {"one": 1.0, SOURCE_CV: score, DISAGREEMENT: changed}
    for kind, (of_plain, of_vote) in played.items():
        quantities[f"{kind}, plain"], quantities[f"{kind}, vote"] = of_plain, of_vote
        if kind != SOURCE_CV:
            quantities[kind] = score - of_plain
    by_confidence = difference_of_confidences(
        left_out.plain, codes, on_target.plain, metric=METRIC_NAMES[objective],
        predicted_source=decide(left_out.plain), predicted_target=predicted[0],
    )  # fmt: skip
    by_threshold = average_thresholded_confidence(left_out.plain, codes, on_target.plain)
    quantities["confidence"] = score - by_confidence
    quantities["thresholded confidence"] = score - by_threshold
    able = {i: one for i, one in enumerate(P) if one is not None and allowed[i]}
    able = able or {plain: on_target.plain}
    unadapted = [one for i, one in able.items() if not bench.candidates[i].adapts]

    def expect_right(probabilities: FloatArray) -> float:
        return calibrated_confidence(
            probabilities, metric=METRIC_NAMES[objective], predicted_target=predicted[0]
        )

    quantities["calibrated confidence"] = score - expect_right(on_target.plain)
    for name, probabilities in {
        "the vote": on_target.vote,
        "all": np.mean(list(able.values()), axis=0),
        "unadapted": np.mean(unadapted or [on_target.plain], axis=0),
    }.items():
        quantities[f"by {name}"] = score - expect_right(probabilities)
        quantities[f"gain by {name}"] = _credited(
            probabilities, predicted, shares if is_balanced(objective) else None
        )
    committee = np.mean([np.mean(predicted[0] != decide(one)) for one in able.values()])
    separation = max(0.0, 2 * bench.separation_auc - 1) ** 2
    quantities |= {
        "committee": committee,
        "log disagreement": np.log(changed + MIN_CHANGED),
        LOG_COMMITTEE: np.log(committee + MIN_CHANGED),
        "separation": separation,
        "disagreement, where separate": changed * separation,
        "few rows": len(problem.X_target) ** -0.5,
        "one domain": float(len(problem.source_domains) == 1),
        "size of confidence": abs(score - by_confidence),
        "size of calibrated confidence": abs(quantities["calibrated confidence"]),
    }
    return {name: float(value) for name, value in quantities.items()}


def _credited(P: FloatArray, predicted: Sequence[IntArray], shares: FloatArray | None) -> float:
    """Return the mean probability of the vote's class less that of the plain model's.

    With class shares, probabilities are those for equal shares, as balanced accuracy counts.
    """
    if shares is not None:
        P = reweigh_probabilities(
            P, np.divide(1, shares, out=np.zeros_like(shares), where=shares > 0)
        )
    rows = np.arange(len(P))
    return float(np.mean(P[rows, predicted[1]] - P[rows, predicted[0]]))


def view(
    P: Sequence[FloatArray | None],
    bench: Bench,
    weights: FloatArray,
    plain: int,
    *,
    reweighed: bool = False,
) -> Views:
    """Return the probabilities whose expected scores are sought: of plain model and vote.

    ``P``: of each candidate; one without output does not vote.
    """
    of_plain = P[plain]
    assert of_plain is not None  # the plain model was chosen among those that could be fitted
    return Views(of_plain, vote_probabilities(P, bench, weights, reweighed=reweighed))


def vote_probabilities(
    P: Sequence[FloatArray | None], bench: Bench, weights: FloatArray, *, reweighed: bool = False
) -> FloatArray:
    """Return the vote's probabilities, for its expected score, from each candidate's.

    ``reweighed``: class shares of the members that adapt are those estimated for the target.
    """
    adapts = np.array([one.adapts for one in bench.candidates])
    ratios = None
    if reweighed and (weights[adapts] > 0).any():
        on_target = mix_probabilities(bench.calibrated(bench.target), weights * adapts, adapts)
        ratios = share_ratios(on_target, bench.problem.class_shares, SHARE_PRIOR)
    return mix_probabilities(P, weights, adapts, ratios)


# --- Where the label is a number ---


ERROR, ADAPTED_ERROR = "error", "adapted error"  # errors of the plain model and of the ensemble
NUMBER_MARGIN = 0.02  # a loss of R² above it is harm
SMALLEST = 1e-3  # of u: a perfect fit does not limit a larger error
MAX_GAIN = 0.5  # of R² in a rehearsal
MAX_EXPECTED = 0.25  # gain in R²: coefficients are fitted to gains that are clipped to it
AVERAGING = "averaging"


@cache
def _number_coefficients() -> dict[str, Any]:
    """Return the coefficients by what is predicted."""
    folder = files("covshift.selection")
    text = folder.joinpath("expected_number_scores.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def number_chances(enough: bool) -> Chances:
    """Return, beside expected scores R², how often a vote loses over .02 and advice is right.

    Both are of real tasks.

    ``enough``: whether its expected gain is large enough to be recommended.
    """
    rates = _number_coefficients()["rates"]
    loss = rates["loss" if enough else "loss_kept"]
    return Chances(loss, rates["adapt"], rates["keep"])


def expect_numbers(quantities: Mapping[str, float]) -> dict[str, Predictive]:
    """Return expected scores as distributions: R² of plain model and vote, gain, errors.

    Absolute errors are in units of the source labels.
    """
    fitted = _number_coefficients()
    probabilities = np.array(fitted["probabilities"])
    logs = {
        name: quantities[f"log {name}"] + linear(quantities, fitted[name]["mean"])
        for name in (PLAIN, ADAPTED, ERROR, ADAPTED_ERROR)
    }
    found = {}
    for name in (ERROR, ADAPTED_ERROR):
        quantiles = np.exp(logs[name] + np.array(fitted[name]["quantiles"]))
        found[name] = Predictive(float(np.exp(logs[name])), probabilities, quantiles)
    for name in (PLAIN, ADAPTED):
        # R² falls as u grows, so that its quantiles are those of u in reverse.
        quantiles = 1 - np.exp(logs[name] + np.array(fitted[name]["quantiles"]))[::-1]
        found[name] = Predictive(float(1 - np.exp(logs[name])), probabilities, quantiles)
    gain = expect_gain(quantities, fitted[GAIN]["mean"])
    scale = quantities[DISAGREEMENT] + NUMBER_MARGIN
    found[GAIN] = Predictive(
        gain, probabilities, gain + scale * np.array(fitted[GAIN]["quantiles"])
    )
    return found


def expect_gain(quantities: Mapping[str, float], mean: Mapping[str, float]) -> float:
    """Return the gain in expected scores R²: at most .25, half of what the plain model leaves."""
    most = min(MAX_EXPECTED, np.exp(quantities[f"log {PLAIN}"]) / 2)
    return float(np.clip(linear(quantities, mean), -MAX_EXPECTED, most))


@documented_like(quantities_of)
def number_quantities(
    bench: Bench, weights: FloatArray, plain: int, allowed: BoolArray
) -> dict[str, float]:
    """Return, by name, what expected scores R² are predicted from; none needs a target label."""
    values = bench.problem.truth

    def play(P: list[FloatArray | None], truth: FloatArray) -> FloatArray:
        views = view(P, bench, weights, plain)
        scores = [r2(truth, one[:, 0]) for one in views]
        return np.array([*scores, *(-negative_mae(truth, one[:, 0]) for one in views)])

    played = {SOURCE_CV: play(bench.probabilities_left_out(), values)}
    for kind in NUMBER_KINDS[1:]:
        scenes = {name: one for name, one in pseudo_targets(bench, kind) if bench.has_run(name)}
        outputs = bench.run({name: one.scene for name, one in scenes.items()})
        found = [
            play(bench.calibrated(outputs[name]), one.truth)
            for name, one in scenes.items()
            if outputs[name][plain].logits is not None
        ]
        if found:
            played[kind] = np.mean(found, axis=0)
    P = bench.calibrated(bench.target)
    on_target = view(P, bench, weights, plain)
    able = [one for i, one in enumerate(P) if one is not None and allowed[i]]
    spread = np.sqrt(
        np.mean(
            [mean_squared_error(one[:, 0], on_target.plain[:, 0]) for one in able or [*on_target]]
        )
    )
    changed = float(np.sqrt(mean_squared_error(on_target.vote[:, 0], on_target.plain[:, 0])))
    of_plain, of_vote, error, vote_error = played[SOURCE_CV]
    u, v = max(1 - of_plain, SMALLEST), max(1 - of_vote, SMALLEST)
    quantities = {
        "one": 1.0,
        DISAGREEMENT: changed,
        AVERAGING: changed**2 / 2,
        f"log {PLAIN}": np.log(u),
        f"log {ADAPTED}": np.log(v),
        f"log {ERROR}": np.log(max(error, SMALLEST)),
        f"log {ADAPTED_ERROR}": np.log(max(vote_error, SMALLEST)),
        "committee": np.log1p(spread / np.sqrt(u)),
        SOURCE_DOMAINS: 0.0,
        f"gain, {SOURCE_DOMAINS}": 0.0,
    }
    for kind, (of_plain, of_vote, *errors) in played.items():
        quantities[f"{kind}, plain"], quantities[f"{kind}, vote"] = of_plain, of_vote
        quantities[f"{kind}, plain error"], quantities[f"{kind}, vote error"] = errors
        gain = np.clip(of_vote, -1, 1) - np.clip(of_plain, -1, 1)
        quantities[f"gain, {kind}"] = np.clip(gain, -MAX_GAIN, MAX_GAIN)
    if SOURCE_DOMAINS in played:
        of_domains = max(1 - played[SOURCE_DOMAINS][0], SMALLEST)
        quantities[SOURCE_DOMAINS] = np.log(of_domains) - np.log(u)
    return {name: float(value) for name, value in quantities.items()}


def in_label_units(predictive: Predictive, scale: float) -> Estimate:
    """Return an expected score, an error in units of the source labels, in those of the labels."""
    return Estimate(*(scale * one for one in predictive.interval()))
