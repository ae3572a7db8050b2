r"""One number from many scores: a ridge regression of regret, learned on other tasks.

For candidate c of a task, with scores :math:`s_j(c)` and the unadapted reference r,

.. math::

    f(c) = \sum_j a_j \bigl(s_j(c) - s_j(r)\bigr)
         + \sum_j b_j \bigl(\operatorname{rank}_j(c) - \tfrac{1}{2}\bigr),

where rank is the share of candidates, among those that may be ranked, that score less (ties count
half). A score that cannot tell adds nothing. The coefficients a, b minimise the squared error of
predicting the clipped regret :math:`\max(g(c) - \max_{c'} g(c'), -0.2)`, g being the balanced
accuracy on the target, with an l2 penalty, over many tasks; a constant of the task is left out, as
only differences within a task matter. They are read from ``learned_score.json`` beside this module,
where it is, which also says what they were learned from and by which command.
"""

import json
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.selection.score_table import ScoreTable

DATA_FILE = "learned_score.json"
METRIC = "balanced_accuracy"  # that it was learned for


class LearnedScore(NamedTuple):
    """Coefficients of the differences and ranks of scores."""

    names: tuple[str, ...]
    differences: FloatArray
    ranks: FloatArray

    def __call__(self, table: ScoreTable) -> FloatArray:
        """Predicted regret of each candidate, up to a constant of the task."""
        allowed, reference = table.allowed, table.reference
        total = np.zeros(len(table.candidates))
        for name, a, b in zip(self.names, self.differences, self.ranks, strict=True):
            if name in table.scores:
                difference, rank = score_features(table.scores[name], allowed, reference)
                total += a * difference + b * rank
        return total


def score_features(
    scores: FloatArray, allowed: BoolArray, reference: int
) -> tuple[FloatArray, FloatArray]:
    """Difference to the reference and centred rank of one score; 0 where it cannot tell."""
    known = allowed & ~np.isnan(scores)
    difference = np.zeros(len(scores))
    if not np.isnan(scores[reference]):
        difference[known] = scores[known] - scores[reference]
    rank = np.zeros(len(scores))
    if known.sum() > 1:
        rank[known] = (rankdata(scores[known]) - 1) / (known.sum() - 1) - 0.5
    return difference, rank


@lru_cache(maxsize=1)
def shipped_score() -> LearnedScore | None:
    """The learned score that comes with the package, if one does."""
    file = files("covshift.selection").joinpath(DATA_FILE)
    if not file.is_file():
        return None
    data = json.loads(file.read_text(encoding="utf-8"))
    return LearnedScore(
        tuple(data["scores"]), np.array(data["differences"]), np.array(data["ranks"])
    )
