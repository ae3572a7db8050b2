"""The paper's statements, checked on the filters that a study fitted."""

from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.measures import (
    check_cosine_neighbourhood,
    check_period,
    check_representation_bounds,
    period_shifts,
)

PAIRS = 5000  # of rows, for the cosine neighbourhood

# What is checked, and on which filters it can be.
STATEMENTS: dict[str, str] = {
    "bounds": "Propositions 1 and 2: rows on the positive part of the unit sphere, "
    "1 ≤ Σ z ≤ √L, Var ≤ μ (1 - μ) ≤ ¼",
    "cosine": "Cosine neighbours stay together, by the corrected bound (SF)",
    "period": "Theorem 2, corrected: shifts by whole turns of every filter change nothing "
    "(PSF, no more filters than features)",
    "half period": "Theorem 2 as printed: shifts W⁻¹kπ with odd k change nothing",
}


def check_statements(filter_: Any, X: FloatArray) -> dict[str, bool]:
    """Which statements hold for a fitted filter and the rows X of its target.

    Those that do not apply to it are left out.
    """
    W = filter_.components_
    held: dict[str, bool] = {}
    Z = filter_.transform(X)
    if filter_.norm_epsilon == 0:  # else rows are shorter than one
        held["bounds"] = check_representation_bounds(Z).holds
    if filter_.activation == "abs" and filter_.norm_epsilon == 0:
        norms = filter_.feature_norms_[filter_.norm_units_.index("target")]
        held["cosine"] = check_cosine_neighbourhood(
            W, norms, X, Z=Z, epsilon=filter_.epsilon, max_pairs=PAIRS, random_state=0
        ).holds
    if filter_.activation != "abs" and len(W) <= W.shape[1]:
        turns = np.eye(len(W), dtype=int)
        found = period_shifts(W, turns)
        held["period"] = found.holds
        held["half period"] = all(check_period(W, delta / 2).holds for delta in found.shifts)
    return held
