r"""The vote: weights of candidates, and the fitted members with their calibrated scores.

Candidates of near-equal expected gains are near-equal in truth, and which of them is best is mostly
noise. The k best by the expected gain s vote with weights

.. math::

    w_c \propto \exp\bigl((s_c - \max s) / \tau\bigr), \qquad \tau = 0.01,

on calibrated probabilities; those with less than .01 of the weight are not worth their fits and
drop out. The plain model then gets a share of .3 of the weight, and these the
rest: the vote departs from it only where the others are surer than it is, which halves the losses
and costs hardly any gain. A single best candidate (k = 1) stays alone. With the labels of m target
rows, each candidate's score on them, :math:`a_c`, is one more measurement of what s predicts, and
the two are averaged by their precisions, both about their means over the candidates:

.. math::

    s_c \leftarrow \frac{s_c / \sigma^2 + a_c / v_c}{1 / \sigma^2 + 1 / v_c}, \qquad
    v_c = \frac{\bar a_c (1 - \bar a_c)}{m}, \qquad
    \sigma^2 = \max\bigl(\sigma_0^2, \operatorname{mean}_c (a_c - s_c)^2
        - \operatorname{mean}_c v_c\bigr),

with :math:`\bar a_c` shrunk to the middle by one success and one failure; for numbers, :math:`a_c`
is R² on the labeled rows and :math:`v_c` its variance (`covshift.selection.label_tasks`). The
score is mostly near the truth and at times far off: how far, the labels themselves tell.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax

from covshift.base import RefitNeededError
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.probabilities import Scaling, reweigh_probabilities, scaled_probabilities
from covshift.predictors import AdaptedClassifier, AdaptedRegressor
from covshift.selection.bench import Bench, class_logits, predicted_numbers
from covshift.selection.candidates import Candidate
from covshift.solvers.threads import one_blas_thread

TEMPERATURE = 0.01
MIN_WEIGHT = 0.01  # of a candidate that votes
PLAIN_WEIGHT = 0.3  # of the plain model in a vote; 0 to .8 were tried: docs/results/assessment.md
# sigma_0: the root mean square error of the expected gain among the ten best candidates of a task.
SCORE_ERROR = 0.04


def vote_weights(
    combined: FloatArray, allowed: BoolArray, n_members: int, plain: int | None = None
) -> FloatArray:
    """Return the weights of a vote, which sum to one: zero for all but the best and plain model.

    Ties go to the earlier candidate. ``plain`` is the number of the plain model; None: it has no
    weight but its own.
    """
    scores = np.where(allowed & ~np.isnan(combined), combined, -np.inf)
    weights = np.zeros(len(scores))
    if np.isneginf(scores).all():
        weights[0] = 1.0
        return weights
    best = np.argsort(-scores, kind="stable")[:n_members]
    best = best[~np.isneginf(scores[best])]
    powers: FloatArray = np.exp((scores[best] - scores[best].max()) / TEMPERATURE)
    powers[powers < MIN_WEIGHT * powers.sum()] = 0.0
    weights[best] = powers / powers.sum()
    if plain is not None and n_members > 1:
        weights *= 1 - PLAIN_WEIGHT
        weights[plain] += PLAIN_WEIGHT
    return weights


def combine_with_labels(
    combined: FloatArray,
    label_scores: FloatArray,
    n_labels: int,
    allowed: BoolArray,
    variances: FloatArray | None = None,
) -> FloatArray:
    """Combine the gains by which a vote is weighed with scores on labeled rows, by precision.

    ``variances`` of the scores (candidates,); None: those of shares of right predictions.
    """
    able = allowed & ~np.isnan(combined) & ~np.isnan(label_scores)
    if n_labels == 0 or not able.any():
        return combined
    of_labels: Any
    if variances is None:
        shrunk = (label_scores[able] * n_labels + 1) / (n_labels + 2)
        of_labels = shrunk * (1 - shrunk) / n_labels
    else:
        of_labels = variances[able]
    s = combined[able] - combined[able].mean()
    a = label_scores[able] - label_scores[able].mean()
    of_score = max(SCORE_ERROR**2, float(np.mean((a - s) ** 2) - of_labels.mean()))
    result = np.full(len(combined), np.nan)
    result[able] = (s / of_score + a / of_labels) / (1 / of_score + 1 / of_labels)
    return result


# --- Members: fitted candidates whose scores are calibrated on the source ---


MIN_WEIGHT_KEPT = 0.5  # weight that members able to learn a new target must have


class FewerMembersWarning(UserWarning):
    """Members of a vote left it, since they cannot learn a new target."""


class Member(NamedTuple):
    """A fitted candidate, how its logits become probabilities, and its weight in the vote."""

    candidate: Candidate
    model: AdaptedClassifier | AdaptedRegressor
    scaling: Scaling | None
    weight: float

    def probabilities(self, X: Any, n_classes: int, sample_domain: Any) -> FloatArray:
        """Probabilities (n, n_classes), calibrated on the source where that could be done."""
        logits = class_logits(self.model, X, n_classes, sample_domain)
        if self.scaling is None:
            p: FloatArray = softmax(logits, axis=1)
            return p
        return scaled_probabilities(logits, self.scaling)

    def numbers(self, X: Any, sample_domain: Any) -> FloatArray:
        """Return the predictions (n, 1), where the label is a number in units of the source."""
        return predicted_numbers(self.model, X, sample_domain)

    def adapt_target(self, X: Any, domain: Any) -> "Member":
        """A copy that has learned a new target; one that adapts to nothing is left as it is."""
        if not self.candidate.adapts:
            return self
        return self._replace(model=deepcopy(self.model).adapt_target(X, domain=domain))


class FitData(NamedTuple):
    """Data of the members: rows of all domains; labels are read where the mask says so.

    ``values``: labels that are numbers, in units of the source; None: the codes are the labels.
    """

    X: FloatArray
    codes: IntArray
    sample_domain: IntArray | None
    label_mask: BoolArray
    values: FloatArray | None = None

    @property
    def labels(self) -> Any:
        """Class numbers, or numbers."""
        return self.codes if self.values is None else self.values


def fit_members(
    bench: Bench,
    weights: FloatArray,
    data: FitData,
    n_jobs: int | None,
    *,
    also: Sequence[int] = (),
) -> list[Member]:
    """Fit the members of a vote to all rows, the heaviest first, then some others."""
    heaviest = np.argsort(-weights, kind="stable")[: int(np.count_nonzero(weights))]
    chosen = [*heaviest.tolist(), *(i for i in also if weights[i] == 0)]
    candidates = [bench.candidates[i] for i in chosen]
    models = Parallel(n_jobs=n_jobs)(delayed(_fit)(one, data) for one in candidates)
    return [
        Member(candidate, model, bench.scalings[i], float(weights[i]))
        for i, candidate, model in zip(chosen, candidates, models, strict=True)
    ]


def adapt_members(
    members: Sequence[Member], X: Any, domain: Any
) -> tuple[list[Member], list[Member]]:
    """Return a vote's members that have learned a new target, with weights, and the others.

    One that adapts to nothing stays. It is an error if none that adapts can learn the target, or
    if those that stay have less than half of the weight: that would be another model.
    """
    kept: list[Member] = []
    left: list[Member] = []
    for member in members:
        try:
            kept.append(member.adapt_target(X, domain))
        except RefitNeededError as error:
            left.append(member)
            reason = f"{member.candidate.name}: {error}"
    total = sum(member.weight for member in kept)
    if left and (total < MIN_WEIGHT_KEPT or not any(one.candidate.adapts for one in kept)):
        raise RefitNeededError(
            f"Models with {1 - total:.2f} of the ensemble's weight cannot learn a new target, and "
            f"the rest alone would be another model. {reason}"
        )
    return [member._replace(weight=member.weight / total) for member in kept], left


def mean_probabilities(
    members: Sequence[Member],
    X: Any,
    n_classes: int,
    sample_domain: Any = None,
    ratios: FloatArray | None = None,
) -> FloatArray:
    """Return the vote of members on rows: the weighted mean of their probabilities.

    ``ratios`` as in `mix_probabilities`.
    """
    P = [member.probabilities(X, n_classes, sample_domain) for member in members]
    weights = np.array([member.weight for member in members])
    adapts = np.array([member.candidate.adapts for member in members])
    return mix_probabilities(P, weights, adapts, ratios)


def mix_probabilities(
    P: Sequence[FloatArray | None],
    weights: FloatArray,
    adapts: BoolArray,
    ratios: FloatArray | None = None,
) -> FloatArray:
    """Return the vote of candidates: the weighted mean of their probabilities (n, n_classes).

    Candidates without probabilities (None) do not count. ``ratios`` (n, n_classes) or (n_classes,):
    class shares of the rows over those of the source, for the candidates that adapt. Those that do
    not are left alone: what they say of class shares is part of the shift.
    """
    used = {i: one for i, one in enumerate(P) if one is not None and weights[i]}
    if not used:
        raise ValueError("None of the models in the ensemble has probabilities.")
    mean: FloatArray = np.zeros(next(iter(used.values())).shape)
    for flag in (False, True):
        some = [i for i in used if adapts[i] == flag]
        if some:
            part: FloatArray = np.sum([weights[i] * used[i] for i in some], axis=0)
            if flag and ratios is not None:
                part = weights[some].sum() * reweigh_probabilities(part, ratios)
            mean += part
    mean /= weights[list(used)].sum()
    return mean


def _fit(candidate: Candidate, data: FitData) -> AdaptedClassifier | AdaptedRegressor:
    model = candidate.model()
    with one_blas_thread():  # members are fitted side by side, and most products are small
        return model.fit(
            data.X, data.labels, sample_domain=data.sample_domain, label_mask=data.label_mask
        )
