r"""Expected gain of each candidate over the plain model, from a few differences to it.

For candidate c and the plain model p,

.. math::

    \hat g_c = \sum_j \beta_j \, (x_{cj} - x_{pj}),

so that the plain model itself is expected to gain nothing. The quantities :math:`x_{cj}`:

==============  ==================================================================================
four scores     the rehearsals of `covshift.selection.rehearsals`
committee       share of target rows on which the candidate agrees with the mean of all candidates
plain models    the same, with the other unadapted candidates, on average
class shares    half the sum of the absolute differences between the shares of the predicted
moved           classes in the target and those of the classes in the source
==============  ==================================================================================

The scores of moved rows and the class shares moved count a second time, multiplied by how separate
source and target are, :math:`(2 A - 1)^8` for the AUC A of a classifier between them: this is near
zero unless nearly every row gives its origin away. Where source and target overlap, moved rows say
little, and other class shares may be real.

A rehearsal that could not be run counts as no difference. The coefficients :math:`\beta` of either
objective are those of a ridge regression of true gains on real tasks; ``expected_gains.json`` names
the command that wrote it. They are small: most of what rehearsals promise does not come true.

**Numbers.** Where the label is a number, scores are the credits of `covshift.selection.label_tasks`
(between 0 and 1), and agreement is :math:`-\sqrt{\operatorname{mean}_i (\hat y_i - \bar y_i)^2}`,
the distance to the mean prediction of all candidates, in units of the source labels. There are few
collections to learn from, so only the quantities of `NUMBER_QUANTITIES` are used; their
coefficients are in ``expected_number_gains.json``.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.predictors.objectives import ACCURACY, METRICS, NUMBER_METRICS, OBJECTIVES
from covshift.selection.bench import Bench
from covshift.selection.rehearsals import (
    KINDS,
    MOVED,
    NUMBER_KINDS,
    SOURCE_CV,
    SOURCE_DOMAINS,
    decide,
)

COMMITTEE, PLAIN_MODELS, SHARES_MOVED = "committee", "plain models", "class shares moved"
QUANTITIES = (
    *KINDS, COMMITTEE, PLAIN_MODELS, SHARES_MOVED,
    "moved, where separate", "class shares moved, where separate",
)  # fmt: skip
# Of all that `number_features` has, those that have a coefficient.
NUMBER_QUANTITIES = (SOURCE_CV, SOURCE_DOMAINS)
ALL_NUMBER_QUANTITIES = (*NUMBER_KINDS, COMMITTEE, PLAIN_MODELS)
POWER = 8


@cache
def gain_coefficients() -> dict[str, dict[str, float]]:
    """Return the coefficients of expected gains, by objective and quantity."""
    text = files("covshift.selection").joinpath("expected_gains.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return {objective: found[objective] for objective in OBJECTIVES}


@cache
def _number_coefficients() -> dict[str, float]:
    """Return the coefficients by quantity where the label is a number."""
    folder = files("covshift.selection")
    text = folder.joinpath("expected_number_gains.json").read_text(encoding="utf-8")
    found: dict[str, float] = json.loads(text)["coefficients"]
    return found


def expected_gains(
    bench: Bench, scores: Mapping[str, FloatArray], allowed: BoolArray, plain: int
) -> FloatArray:
    """Return the expected gain of each candidate over the plain model; NaN: it failed.

    Parameters
    ----------
    bench : Bench
        Candidates with their outputs on the target.
    scores : dict of str to ndarray
        Of `rehearse`, by kind; kinds may be missing.
    allowed : ndarray of bool
        Candidates that are neither failed nor degenerate.
    plain : int
        Number of the plain model.
    """
    gains: FloatArray
    if bench.problem.values is not None:
        by_name = number_features(bench, scores, allowed, plain)
        of_quantity = _number_coefficients()
        gains = np.sum([of_quantity[name] * by_name[name] for name in NUMBER_QUANTITIES], axis=0)
    else:
        names = [name for name, metric in METRICS.items() if metric is bench.metric]
        beta = gain_coefficients()[names[0] if names else ACCURACY]
        differences = gain_features(bench, scores, allowed, plain)
        gains = differences @ np.array([beta[name] for name in QUANTITIES])
    failed = [output.logits is None for output in bench.target]
    gains[failed] = np.nan
    return gains


def gain_features(
    bench: Bench, scores: Mapping[str, FloatArray], allowed: BoolArray, plain: int
) -> FloatArray:
    """Return what expected gains are predicted from: differences to the plain model.

    Of shape (candidates, quantities).
    """
    columns = [_filled(scores.get(kind), len(bench.candidates)) for kind in KINDS]
    with_committee, with_plain, shares_moved = _target_quantities(bench, allowed)
    separate = _separation(bench)
    columns += [with_committee, with_plain, shares_moved]
    columns += [separate * columns[KINDS.index(MOVED)], separate * shares_moved]
    X = np.column_stack(columns)
    return np.nan_to_num(X - X[plain])


def number_features(
    bench: Bench, scores: Mapping[str, FloatArray], allowed: BoolArray, plain: int
) -> dict[str, FloatArray]:
    """Return what gains of numbers are expected from: differences (candidates,), by quantity.

    The scores of a user's own metric are divided by the spread between candidates, so that they
    have no unit.
    """
    columns = {kind: _filled(scores.get(kind), len(bench.candidates)) for kind in NUMBER_KINDS}
    if bench.metric not in NUMBER_METRICS.values():
        columns = {kind: one / (np.ptp(one) or 1.0) for kind, one in columns.items()}
    columns[COMMITTEE], columns[PLAIN_MODELS] = number_agreement(bench, allowed)
    return {name: np.nan_to_num(one - one[plain]) for name, one in columns.items()}


def number_voters(
    bench: Bench, scores: Mapping[str, FloatArray], allowed: BoolArray, plain: int
) -> BoolArray:
    """Choose by expected gains which candidates may vote, where the label is a number.

    One that adapts needs evidence: a better score than the plain model's on left-out source
    domains. An adapter that makes domains alike removes the level of a number with them, and
    with one source domain nothing shows whether the level should stay.
    """
    adapts = np.array([one.adapts for one in bench.candidates])
    found = scores.get(SOURCE_DOMAINS)
    if found is None or np.isnan(found[plain]):
        return allowed & ~adapts
    with np.errstate(invalid="ignore"):
        return allowed & (~adapts | (found > found[plain]))


def number_agreement(bench: Bench, allowed: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return minus the distances to the mean of all candidates, and to other unadapted ones."""
    P = bench.calibrated(bench.target)
    able = {i: one[:, 0] for i, one in enumerate(P) if one is not None}
    voters = [one for i, one in able.items() if allowed[i]] or list(able.values())
    with_committee, with_plain = np.full((2, len(P)), np.nan)
    if not voters:
        return with_committee, with_plain
    committee = np.mean(voters, axis=0)
    plains = [i for i in able if not bench.candidates[i].adapts]
    for i, one in able.items():
        with_committee[i] = -np.sqrt(np.mean((one - committee) ** 2))
        others = [-np.sqrt(np.mean((one - able[j]) ** 2)) for j in plains if j != i]
        with_plain[i] = np.mean(others) if others else np.nan
    return with_committee, with_plain


def _separation(bench: Bench) -> float:
    """Return how separate source and target are, from 0 to 1."""
    return float(max(0.0, 2 * bench.separation_auc - 1) ** POWER)


def _target_quantities(
    bench: Bench, allowed: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the agreement with the committee and with plain models, and the shares moved."""
    P = bench.calibrated(bench.target)
    n_classes, shares = bench.problem.n_classes, bench.problem.class_shares
    predicted = [None if one is None else decide(bench, one) for one in P]
    able = {i: one for i, one in enumerate(P) if one is not None}
    voters = [one for i, one in able.items() if allowed[i]] or list(able.values())
    if not voters:
        nothing = np.full(len(P), np.nan)
        return nothing, nothing, nothing
    committee = decide(bench, np.mean(voters, axis=0))
    plains = [i for i in able if not bench.candidates[i].adapts]
    with_committee, with_plain, moved = np.full((3, len(P)), np.nan)
    for i, codes in enumerate(predicted):
        if codes is not None:
            with_committee[i] = np.mean(codes == committee)
            others = [np.mean(codes == predicted[j]) for j in plains if j != i]
            with_plain[i] = np.mean(others) if others else np.nan
            found = np.bincount(codes, minlength=n_classes) / len(codes)
            moved[i] = np.abs(found - shares).sum() / 2
    return with_committee, with_plain, moved


def _filled(scores: FloatArray | None, n_candidates: int) -> FloatArray:
    """Return the scores; those of failed fits are the lowest, and where none is known all are 0."""
    if scores is None or np.isnan(scores).all():
        return np.zeros(n_candidates)
    return np.where(np.isnan(scores), np.nanmin(scores), scores)
