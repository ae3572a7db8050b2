"""Can weighting work? Whether source rows, some of them more often, could stand for the target.

Weights need source rows wherever the target has some, in numbers that carry the estimate, and they
must take the difference away. Each of the four figures has a threshold below; one that fails is
named in ``obstacles``. These figures do not test P(y | x): if it differs between
source and target, weights cannot help, and no figure here shows it.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.measures import SourceSupport, effective_sample_size, pareto_k
from covshift.measures.weights_and_overlap import fit_support
from covshift.report.document import to_plain
from covshift.selection.bench import MIN_ROLE_ROWS, Bench
from covshift.selection.importance_weights import importance_weights, left_unexplained
from covshift.warning_filters import ignored_warnings

# No source row represents a target row outside the support. With more than a fifth of the target
# there, a model of the other rows does not describe the target.
MIN_OVERLAP = 0.8
# An accuracy estimated from n rows is known to within 1 / sqrt(n), that is .18 for 30; and with a
# tenth of the rows, an unweighted fit that ignores the shift usually is the better one.
MIN_EFFECTIVE_SIZE, MIN_EFFECTIVE_SHARE = 30, 0.1
MAX_PARETO_K = 0.7  # above this, weighted means are unreliable (Vehtari et al.)
# Two normal samples that differ by .35 standard deviations have this AUC: less is hard to see.
MAX_AUC_LEFT = 0.6


class Weighting(NamedTuple):
    """Result of `measure_weighting`; NaN where there are too few rows to determine it."""

    possible: bool
    obstacles: list[str]  # "rows", "overlap", "effective size", "tail", "left over"
    n_source: int
    n_target: int
    overlap: float  # share of the target rows inside the support of the source
    effective_size: float  # effective sample size of the weighted source rows
    effective_share: float
    pareto_k: float  # infinite: too few rows carry weight to determine it
    auc_left: float  # AUC between weighted source rows and target rows
    outside: BoolArray  # target rows outside the support
    weights: FloatArray  # weights of the source rows
    support: SourceSupport | None  # judges new rows; None: fewer than two source rows

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers, texts and lists, without the support."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def measure_weighting(bench: Bench) -> Weighting:
    """Measure whether weighing the source rows could make them stand for the target's.

    Parameters
    ----------
    bench : Bench
        Only its problem and its streams of random numbers are used.

    Returns
    -------
    Weighting
    """
    problem = bench.problem
    n_source, n_target = len(problem.X_source), len(problem.X_target)
    support = fit_support(problem.X_source)
    outside = np.zeros(n_target, dtype=bool)
    if support is not None:
        outside = support.outside(problem.X_target)
    with ignored_warnings(ConvergenceWarning):  # expected where rows separate easily
        weights = importance_weights(bench)
        auc_left = left_unexplained(bench, weights)
    size = tail = np.nan
    if np.isfinite(weights).all() and weights.any():
        size, tail = effective_sample_size(weights), pareto_k(weights)
    overlap = np.nan if support is None else float(1 - outside.mean())
    found = find_obstacles(overlap, size, size / n_source, tail, auc_left)
    if min(n_source, n_target) < MIN_ROLE_ROWS:
        found = ["rows"]
    return Weighting(
        possible=not found,
        obstacles=found,
        n_source=n_source,
        n_target=n_target,
        overlap=overlap,
        effective_size=size,
        effective_share=size / n_source,
        pareto_k=tail,
        auc_left=auc_left,
        outside=outside,
        weights=weights,
        support=support,
    )


def find_obstacles(
    overlap: float, size: float, share: float, tail: float, auc_left: float
) -> list[str]:
    """Return which figures are obstacles to weighting: beyond their thresholds, or NaN."""
    holds = {
        "overlap": overlap >= MIN_OVERLAP,
        "effective size": size >= MIN_EFFECTIVE_SIZE and share >= MIN_EFFECTIVE_SHARE,
        "tail": tail <= MAX_PARETO_K,
        "left over": auc_left <= MAX_AUC_LEFT,
    }
    return [name for name, fine in holds.items() if not fine]
