r"""Expected scores on the target: of the plain model, of the vote, and the gain between them.

For each of the three, with quantities :math:`x_j` and :math:`d_j` that need no target label,

.. math::

    \hat s = \sum_j \beta_j x_j, \qquad \hat\sigma = e^{\sum_j \gamma_j d_j}, \qquad
    P(s \le \hat s + \hat\sigma q_p) = p .

The true score minus :math:`\hat s`, in units of the difficulty :math:`\hat\sigma`, has the
quantiles :math:`q_p`. They are those of real tasks, whole clusters of collections left out, so that
a 90 % interval covers the score on the rows of the target in about 90 % of tasks like these,
sampling noise included. The score of the vote is that of the plain model plus the gain.

The quantities :math:`x_j` of the plain model are its score on left-out source rows and how far each
other estimate falls below that:

==============  ==================================================================================
source CV       score on source rows left out
moved,          how much lower it is in the rehearsals of `covshift.selection.rehearsals`; 0 where
class shares,   a kind could not be played
source domains
confidence      how much lower the difference of confidences (DoC) puts it
disagreement    share of target rows on which the plain model and the vote differ
committee       share of target rows on which the plain model differs from a candidate, on average
plain models    share of target rows on which two unadapted candidates differ, on average
separation      :math:`(2 A - 1)^2` for the AUC A of a classifier between source and target
one domain      1 if there is one source domain
few rows        one over the square root of the number of target rows
==============  ==================================================================================

The gain has two more: the expected gain of the vote's members (`covshift.selection.gains`), on
average, and the gain of the vote in the rehearsals.

The coefficients are in ``expectations.json``, which names the command that wrote it.

References
----------
D. Guillory, V. Shankar, S. Ebrahimi, T. Darrell, L. Schmidt (2021). Predicting with confidence on
unseen distributions. ICCV.

H. Papadopoulos, V. Vovk, A. Gammerman (2011). Regression conformal prediction with nearest
neighbours. JAIR 40 (intervals from residuals scaled by difficulty).
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.kernels.class_shares import share_ratios
from covshift.measures import difference_of_confidences
from covshift.predictors.objective import decide_classes
from covshift.selection.bench import Bench
from covshift.selection.gains import separation_auc
from covshift.selection.members import SHARE_PRIOR, mix_probabilities
from covshift.selection.metrics import METRICS
from covshift.selection.outputs import Output
from covshift.selection.rehearsals import (
    CLASS_SHARES,
    MOVED,
    SOURCE_CV,
    SOURCE_DOMAINS,
    pseudo_targets,
)

PLAIN, ADAPTED, GAIN = MODELS = ("plain", "adapted", "gain")
LEVEL = 0.9  # of intervals
MARGIN = 0.01  # a loss above it is harm
NORMAL_90 = 1.6449  # standard deviations on either side of a central 90 % interval


class Estimate(NamedTuple):
    """An expected value with its 90 % interval."""

    value: float
    low: float
    high: float

    def clipped(self, least: float, most: float) -> "Estimate":
        """The estimate within bounds."""
        return Estimate(*(float(np.clip(one, least, most)) for one in self))


class Predictive(NamedTuple):
    """A predictive distribution by its quantiles, which increase."""

    value: float
    probabilities: FloatArray
    quantiles: FloatArray

    def interval(self) -> Estimate:
        """The expected value with its central 90 % interval."""
        tail = (1 - LEVEL) / 2
        low, high = np.interp([tail, 1 - tail], self.probabilities, self.quantiles)
        return Estimate(self.value, float(low), float(high))

    def below(self, bound: float) -> float:
        """Probability of a value below a bound."""
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
def coefficients() -> dict[str, Any]:
    """Return the coefficients by objective and model."""
    text = files("covshift.selection").joinpath("expectations.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def expect(quantities: Mapping[str, float], objective: str) -> dict[str, Predictive]:
    """Return the predictive distributions of the three scores, by the names of `MODELS`."""
    found = {}
    for model in MODELS:
        fitted = coefficients()[objective][model]
        probabilities = np.array(coefficients()["probabilities"])
        value = linear(quantities, fitted["mean"])
        scale = np.exp(linear(quantities, fitted["log scale"]))
        quantiles = value + scale * np.array(fitted["quantiles"])
        found[model] = Predictive(value, probabilities, quantiles)
    return found


def linear(quantities: Mapping[str, float], by_name: Mapping[str, float]) -> float:
    """Return the sum of quantities times coefficients; a quantity that is missing counts as 0."""
    return float(sum(quantities.get(name, 0.0) * beta for name, beta in by_name.items()))


def quantities_of(
    bench: Bench,
    objective: str,
    weights: FloatArray,
    plain: int,
    gains: FloatArray,
    allowed: BoolArray,
    *,
    reweighed: bool,
) -> dict[str, float]:
    """Return the quantities by name; none of them needs a label of the target.

    Parameters
    ----------
    bench : Bench
        Candidates, with the outputs of the scenes.
    objective : {"accuracy", "balanced_accuracy"}
        What scores are measured in, and how classes are decided.
    weights : ndarray of shape (n_candidates,)
        Of the vote.
    plain : int
        Number of the plain model.
    gains : ndarray of shape (n_candidates,)
        Expected gain of each candidate.
    allowed : ndarray of bool of shape (n_candidates,)
        Candidates that are neither failed nor degenerate.
    reweighed : bool
        Whether the vote estimates class shares of the target.
    """
    problem = bench.problem
    shares, metric = problem.class_shares, METRICS[objective]

    def decide(P: FloatArray) -> IntArray:
        return decide_classes(P, objective, shares)

    def scores(views: Views, codes: IntArray) -> FloatArray:
        return np.array([metric(codes, decide(P)) for P in views])

    left_out = view(bench.probabilities_left_out(), bench, weights, plain)
    on_target = view(bench.calibrated(bench.target), bench, weights, plain, reweighed=reweighed)
    found: dict[str, float] = {"one": 1.0}
    by_cv = scores(left_out, problem.codes)
    found[SOURCE_CV] = by_cv[0]
    found[f"vote, {SOURCE_CV}"] = by_cv[1] - by_cv[0]
    rehearsed = [by_cv[1] - by_cv[0]]
    for kind in (MOVED, CLASS_SHARES, SOURCE_DOMAINS):
        played = _played_scores(bench, kind, weights, plain, scores)
        if len(played):
            found[kind] = by_cv[0] - played[0]
            found[f"vote, {kind}"] = played[1] - played[0]
            rehearsed.append(played[1] - played[0])
    predicted = [decide(P) for P in on_target]
    expected = difference_of_confidences(
        left_out.plain, problem.codes, on_target.plain, metric=objective,
        predicted_source=decide(left_out.plain), predicted_target=predicted[0],
    )  # fmt: skip
    found["confidence"] = by_cv[0] - expected
    found["disagreement"] = float(np.mean(predicted[0] != predicted[1]))
    P = bench.calibrated(bench.target)
    able = [i for i, one in enumerate(P) if one is not None and allowed[i]]
    said = {i: decide(P[i]) for i in able}
    found["committee"] = _mean([np.mean(predicted[0] != codes) for codes in said.values()])
    plains = [said[i] for i in able if not bench.candidates[i].adapts]
    found["plain models"] = _mean(
        [np.mean(a != b) for i, a in enumerate(plains) for b in plains[:i]]
    )
    found["separation"] = max(0.0, 2 * separation_auc(bench) - 1) ** 2
    found["one domain"] = float(len(problem.source_domains) == 1)
    found["few rows"] = len(problem.X_target) ** -0.5
    found["members"] = float(np.nan_to_num(gains) @ weights)
    found["rehearsed gain"] = _mean(rehearsed)
    return {name: float(value) for name, value in found.items()}


def view(
    P: Sequence[FloatArray | None],
    bench: Bench,
    weights: FloatArray,
    plain: int,
    *,
    reweighed: bool = False,
) -> Views:
    """Return the probabilities of rows by the plain model and by the vote.

    ``P``: of each candidate; one without output has no say in the vote.
    """
    adapts = np.array([one.adapts for one in bench.candidates])
    ratios = None
    if reweighed and (weights[adapts] > 0).any():
        on_target = mix_probabilities(bench.calibrated(bench.target), weights * adapts, adapts)
        ratios = share_ratios(on_target, bench.problem.class_shares, SHARE_PRIOR)
    of_plain = P[plain]
    assert of_plain is not None  # the plain model was chosen among those that could be fitted
    return Views(of_plain, mix_probabilities(P, weights, adapts, ratios))


def _played_scores(
    bench: Bench, kind: str, weights: FloatArray, plain: int, scores: Any
) -> FloatArray:
    """Mean scores (2,) of plain model and vote over the scenes of a kind; empty: none was played.

    A scene in which the plain model could not be fitted does not count.
    """
    played = {name: one for name, one in pseudo_targets(bench, kind) if bench.has_run(name)}
    outputs: Mapping[str, Sequence[Output]] = bench.run(
        {name: one.scene for name, one in played.items()}
    )
    found = [
        scores(view(bench.calibrated(outputs[name]), bench, weights, plain), one.codes)
        for name, one in played.items()
        if outputs[name][plain].logits is not None
    ]
    mean: FloatArray = np.mean(found, axis=0) if found else np.empty(0)
    return mean


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
