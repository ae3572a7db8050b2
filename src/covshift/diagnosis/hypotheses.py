"""What source and target may have in common: one hypothesis for each kind of adapter.

Each adapter works where its own assumption on P(y | x) holds, and harms elsewhere. So the question
which adapter to use is the question which of these hypotheses the data meet.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.registry import Size, find_record, records
from covshift.selection.candidates import Candidate, registered_candidates


class Hypothesis(NamedTuple):
    """What is assumed, in words, and the names of the adapters that rest on it."""

    name: str
    assumption: str
    remedy: str


NONE = "same rule"
# Hypotheses that several adapters share, with what these have in common; the first is the one that
# the others are compared with. Others come from records, with their own assumption.
SHARED = {
    NONE: "the label depends on the features in the same way, and the model has learned that way "
    "wherever the target lies",
    "same rule where both have rows": "the label depends on the features in the same way, and "
    "source rows like the target's are there to be weighed up",
    "shift and scale": "each domain has its own location and scale of the features, and what is "
    "left after taking them away means the same everywhere",
    "rotated axes": "the principal axes of the source are those of the target, turned",
    "radial": "the label depends on the direction of a row, up to its sign, not on its length",
    "periodic": "the label repeats itself periodically along some directions",
    "low-dimensional": "source and target rows lie near one low-dimensional surface, on which the "
    "label varies slowly",
}


@cache
def all_hypotheses() -> tuple[Hypothesis, ...]:
    """Return the hypotheses of all adapters that the diagnosis tries, those above first."""
    diagnosed = [record for record in records() if record.diagnosed]
    assumptions = dict(SHARED)
    for record in diagnosed:
        assumptions.setdefault(record.hypothesis, _as_clause(record.assumption))
    return tuple(
        Hypothesis(name, assumption, _in_a_row([r.name for r in diagnosed if r.hypothesis == name]))
        for name, assumption in assumptions.items()
    )


def _in_a_row(names: list[str]) -> str:
    """Names as they stand in a sentence: "a, b or c"."""
    return " or ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def _as_clause(sentence: str) -> str:
    """A sentence as it follows "if": "The label repeats." -> "the label repeats"."""
    if sentence[1:2].islower() or sentence[1:2] == " ":  # not "P(y | x) ..." or a name in capitals
        sentence = sentence[0].lower() + sentence[1:]
    return sentence.removesuffix(".")


def hypothesis_candidates(size: Size) -> tuple[list[Candidate], IntArray]:
    """Candidates of all hypotheses and the number of each one's hypothesis.

    ``size`` is that of all rows, which a recommended model will be fitted to.
    """
    candidates = registered_candidates(size, "diagnosed")
    return candidates, np.array([hypothesis_of(one.adapter_name) for one in candidates])


def hypothesis_of(adapter_name: str) -> int:
    """Number of the hypothesis that an adapter rests on."""
    names = [one.name for one in all_hypotheses()]
    return names.index(find_record(adapter_name).hypothesis)
