"""From evidence to a verdict: what survives, what leads, what it gains, or that nobody can know."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from covshift.diagnosis.decidability import Decidability
from covshift.diagnosis.evidence import Evidence
from covshift.diagnosis.gains import Gains
from covshift.diagnosis.labelling import LabelEvidence
from covshift.diagnosis.movement import Movement

VerdictKind: TypeAlias = Literal["not moved", "adapt", "no adaptation", "undecidable"]
LEVEL = 0.05
# To be behind on average over a few domains is not to be wrong in the next: hypotheses are refuted
# only beyond doubt. At .05, 65 of 72 right ones survived, and 3.5 of seven; so 69, and 4 (0019).
REFUTED = 0.01
# A gain below is not worth an adapter, whatever its p-value.
WORTHWHILE = 0.02
# Of predictions for the target with those made without one of the source domains (`reliance`).
# Of 38 pieces of advice on made-up tasks (docs/design/0019) the five below harmed, and one above.
MIN_AGREEMENT = 2 / 3


class Verdict(NamedTuple):
    """What was decided, by which evidence; hypotheses are numbers in `all_hypotheses()`."""

    kind: VerdictKind
    decided_by: str  # a kind of evidence, "labels", or "" where nothing decides
    leading: int | None  # best by the evidence, be its gain sure or not; None: no evidence
    surviving: list[int]
    gain: float  # of the leading hypothesis over no adaptation, on the target; NaN: not known
    gain_interval: tuple[float, float]  # 90 %, for the target
    clearly: bool  # whether all others are refuted
    agreement: float = float("nan")  # of what leads, without one source domain; NaN: not asked

    @property
    def hinges(self) -> bool:
        """Whether what leads hinges on single source domains."""
        return self.agreement < MIN_AGREEMENT

    @property
    def followed(self) -> int:
        """The hypothesis to act on: the leading one where it is sure to gain, else the first."""
        return self.leading if self.kind == "adapt" and self.leading is not None else 0


def reach_verdict(
    movement: Movement,
    decidability: Decidability,
    evidence: Evidence,
    agreement_of: Callable[[int], float],
) -> Verdict:
    """Decide by source domains, else by the common support, else not at all.

    ``agreement_of(candidate)``: `covshift.diagnosis.reliance.measure_agreement`.
    """
    if not movement.moved:
        return Verdict("not moved", "", 0, [0], 0.0, (np.nan, np.nan), True)
    if decidability.by_domains and evidence.source_domains is not None:
        return decide(evidence.source_domains, "source domains", agreement_of)
    if decidability.by_overlap and evidence.common_support is not None:
        return decide(evidence.common_support, "common support")
    able = [h for h, score in enumerate(_any_scores(evidence)) if not np.isnan(score)]
    return Verdict("undecidable", "", None, able, np.nan, (np.nan, np.nan), False)


def decide(
    gains: Gains, decided_by: str, agreement_of: Callable[[int], float] | None = None
) -> Verdict:
    """The verdict by one kind of evidence.

    The best one leads if its gain would be worthwhile, else the first. Adapting is advised where
    that gain is sure (by Holm), and the target's own is predicted to be one, and worthwhile: an
    adapter that changes few of its predictions cannot gain much there. Nor is it advised where
    its predictions hinge on single source domains.
    """
    able = ~np.isnan(gains.scores)
    leading = int(np.nanargmax(gains.scores))
    if gains.gains[leading] < WORTHWHILE:
        leading = 0
    surviving = [h for h in np.flatnonzero(able) if gains.behind[h] > REFUTED or h == leading]
    gain, (low, high) = gains.predicted[leading], gains.predicted_intervals[leading]
    sure = gains.pvalues[leading] <= LEVEL and low > 0 and gain >= WORTHWHILE
    agreement = float("nan")
    if sure and agreement_of is not None:
        agreement = agreement_of(int(gains.variants[leading]))
    hinges = agreement < MIN_AGREEMENT
    return Verdict(
        kind="adapt" if sure and not hinges else "no adaptation",
        decided_by=decided_by,
        leading=leading,
        surviving=[int(h) for h in surviving],
        gain=float(gain),
        gain_interval=(float(low), float(high)),
        clearly=surviving == [leading],
        agreement=agreement,
    )


def decide_by_labels(labels: LabelEvidence, able: list[int]) -> Verdict:
    """The verdict by labels of target rows, which outweigh all other evidence.

    The hypothesis that is right most often leads. It is adapted to once its gain over no adaptation
    is sure; until then the case stays open, unless nothing leads "no adaptation".
    """
    leading = max(able, key=lambda h: labels.right[h])
    if labels.right[leading] == labels.right[0]:
        leading = 0
    surviving = [h for h in able if labels.behind[h] > LEVEL or h == leading]
    sure = labels.pvalues[leading] <= LEVEL and labels.gains[leading] >= WORTHWHILE
    kind: VerdictKind = "adapt" if sure else "undecidable"
    if leading == 0:
        kind = "no adaptation"
    low, high = labels.intervals[leading]
    return Verdict(
        kind=kind,
        decided_by="labels",
        leading=leading,
        surviving=surviving,
        gain=float(labels.gains[leading]),
        gain_interval=(float(low), float(high)),
        clearly=surviving == [leading],
    )


def _any_scores(evidence: Evidence) -> list[float]:
    for _, gains in evidence.items():
        return [float(score) for score in gains.scores]
    return [0.0]
