"""The oracle: what choosing would be worth to somebody who had the labels of the target.

For experiments only. Nothing else of this package imports it, it has to be called by its name, and
what it returns says "oracle".
"""

from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.selection.bench import Bench
from covshift.selection.choice import Choice
from covshift.selection.score_table import score_table
from covshift.selection.vote import vote_weights


def oracle_scores(bench: Bench, target_codes: IntArray) -> FloatArray:
    """Score of each candidate on the target rows, whose class numbers are given."""
    return bench.score(bench.target, np.asarray(target_codes))


def choose_by_oracle(bench: Bench, target_codes: Any, *, n_members: int = 1) -> Choice:
    """The choice by target labels; its kind of score and its decision say so."""
    table = score_table(bench, [])
    combined = oracle_scores(bench, target_codes)
    table = table._replace(scores={"oracle": combined})
    weights = vote_weights(combined, table.allowed, n_members)
    best = bench.candidates[int(weights.argmax())].name
    return Choice(table, combined, weights, "oracle", f"Oracle, by target labels: {best}.")
