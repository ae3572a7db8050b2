r"""Expected errors on the target where the label is a number.

For the plain model and for the vote, with :math:`u = 1 - R^2` (the mean squared error over the
variance of the labels) and :math:`m` the mean absolute error,

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
absolute error is the safer figure. The coefficients are in ``number_expectations.json``, which
names the command that wrote it.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.selection.bench import Bench
from covshift.selection.expectations import (
    ADAPTED,
    DISAGREEMENT,
    GAIN,
    PLAIN,
    Chances,
    Estimate,
    Predictive,
    linear,
    view,
)
from covshift.selection.metrics import mean_squared_error, negative_mae, r2
from covshift.selection.rehearsals import NUMBER_KINDS, SOURCE_CV, SOURCE_DOMAINS, pseudo_targets

ERROR, ADAPTED_ERROR = "error", "adapted error"  # errors of the plain model and of the ensemble
NUMBER_MARGIN = 0.02  # a loss of R² above it is harm
SMALLEST = 1e-3  # of u: a perfect fit does not limit a larger error
MAX_GAIN = 0.5  # of R² in a rehearsal
MAX_EXPECTED = 0.25  # gain in R²: coefficients are fitted to gains that are clipped to it
AVERAGING = "averaging"


@cache
def number_coefficients() -> dict[str, Any]:
    """Return the coefficients by what is predicted."""
    folder = files("covshift.selection")
    text = folder.joinpath("number_expectations.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def number_chances(enough: bool) -> Chances:
    """Return how often, on real tasks, the vote loses more than .02 in R², and advice is right.

    ``enough``: whether its expected gain is large enough to be recommended.
    """
    rates = number_coefficients()["rates"]
    loss = rates["loss" if enough else "loss_kept"]
    return Chances(loss, rates["adapt"], rates["keep"])


def expect_numbers(quantities: Mapping[str, float]) -> dict[str, Predictive]:
    """Return predictive distributions: R² of plain model and vote, the gain, the absolute errors.

    Absolute errors are in units of the source labels.
    """
    fitted = number_coefficients()
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
    """Return the expected gain in R², at most .25 and half of what the plain model leaves."""
    most = min(MAX_EXPECTED, np.exp(quantities[f"log {PLAIN}"]) / 2)
    return float(np.clip(linear(quantities, mean), -MAX_EXPECTED, most))


def number_quantities(
    bench: Bench, weights: FloatArray, plain: int, allowed: BoolArray
) -> dict[str, float]:
    """Return the quantities by name; none of them needs a label of the target.

    Parameters
    ----------
    bench : Bench
        Candidates, with the outputs of the scenes.
    weights : ndarray of shape (n_candidates,)
        Of the vote.
    plain : int
        Number of the plain model.
    allowed : ndarray of bool of shape (n_candidates,)
        Candidates that are neither failed nor degenerate.
    """
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
    """Return an error in units of the source labels as an estimate in those of the labels."""
    return Estimate(*(scale * one for one in predictive.interval()))
