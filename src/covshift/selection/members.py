"""The members of a vote: fitted candidates whose scores are calibrated on the source."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax

from covshift.base import RefitNeededError
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.kernels.probabilities import Scaling, reweigh_classes, scaled_probabilities
from covshift.predictors import AdaptedClassifier, AdaptedRegressor
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate
from covshift.selection.outputs import class_logits, predicted_numbers
from covshift.solvers.threads import one_blas_thread

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
    """Fit the candidates that have weight to all rows, the heaviest first, then some others."""
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
    """Return members that have learned a new target, with weights that sum to one, and the others.

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
    """Weighted mean of the members' probabilities of rows; ``ratios`` as in `mix_probabilities`."""
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
    """Return the weighted mean of probabilities (n, n_classes), one for each candidate.

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
                part = weights[some].sum() * reweigh_classes(part, ratios)
            mean += part
    mean /= weights[list(used)].sum()
    return mean


def _fit(candidate: Candidate, data: FitData) -> AdaptedClassifier | AdaptedRegressor:
    model = candidate.model()
    with one_blas_thread():  # members are fitted side by side, and most products are small
        return model.fit(
            data.X, data.labels, sample_domain=data.sample_domain, label_mask=data.label_mask
        )
