"""What source and target may have in common: one hypothesis for each kind of adapter.

Each adapter works where its own assumption on P(y | x) holds, and harms elsewhere. So the question
which adapter to use is the question which of these hypotheses the data meet.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.registry import find_record, records
from covshift.selection.candidates import Candidate, registered_candidates
from covshift.selection.problem import Problem


class Hypothesis(NamedTuple):
    """What is assumed, in words, and what follows from it."""

    name: str
    assumption: str
    remedy: str


NONE = "same rule"
HYPOTHESES = (
    Hypothesis(
        NONE,
        "the label depends on the features in the same way, and the model has learned that way "
        "wherever the target lies",
        "no adaptation",
    ),
    Hypothesis(
        "same rule where both have rows",
        "the label depends on the features in the same way, and source rows like the target's "
        "are there to be weighed up",
        "importance weights",
    ),
    Hypothesis(
        "shift and scale",
        "each domain has its own location and scale of the features, and what is left after "
        "taking them away means the same everywhere",
        "standardising, ranks, CORAL or Monge alignment",
    ),
    Hypothesis(
        "rotated axes",
        "the principal axes of the source are those of the target, turned",
        "subspace alignment",
    ),
    Hypothesis(
        "radial",
        "the label depends on the direction of a row, up to its sign, not on its length",
        "sparse filtering",
    ),
    Hypothesis(
        "periodic",
        "the label repeats itself periodically along some directions",
        "periodic sparse filtering",
    ),
    Hypothesis(
        "low-dimensional",
        "source and target rows lie near one low-dimensional surface, on which the label varies "
        "slowly",
        "a denoising auto-encoder",
    ),
)


@cache
def all_hypotheses() -> tuple[Hypothesis, ...]:
    """Return the hypotheses above, and those that adapters of other packages name."""
    known = {one.name: one for one in HYPOTHESES}
    for record in records():
        if record.diagnosed and record.hypothesis not in known:
            new = Hypothesis(record.hypothesis, _as_clause(record.assumption), record.title)
            known[record.hypothesis] = new
    return tuple(known.values())


def _as_clause(sentence: str) -> str:
    """A sentence as it follows "if": "The label repeats." -> "the label repeats"."""
    if sentence[1:2].islower() or sentence[1:2] == " ":  # not "P(y | x) ..." or a name in capitals
        sentence = sentence[0].lower() + sentence[1:]
    return sentence.removesuffix(".")


def hypothesis_candidates(problem: Problem, n_source: int) -> tuple[list[Candidate], IntArray]:
    """Candidates of all hypotheses and the number of each one's hypothesis.

    ``n_source``: rows that a recommended model will be fitted to.
    """
    candidates = registered_candidates(problem.size, "diagnosed", n_source)
    return candidates, np.array([hypothesis_of(one.adapter_name) for one in candidates])


def hypothesis_of(adapter_name: str) -> int:
    """Number of the hypothesis that an adapter rests on."""
    names = [one.name for one in all_hypotheses()]
    return names.index(find_record(adapter_name).hypothesis)
