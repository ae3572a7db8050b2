"""Source rows that a model keeps, with predictions by fits that left them out.

Prediction sets (`covshift.predictors.prediction_sets`) and expected scores on new rows
(`covshift.estimate_performance`) compare new rows with these. Labels and scores of rows that a
model was fitted to would flatter it.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array

from covshift.domains import FitDomains, check_fit_domains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.drawn_rows import deal_folds, draw_rows
from covshift.predictors.fit_and_predict import FittedCandidate, fit_candidate

MAX_KEPT = 1000  # rows
N_FOLDS = 3
NO_ROWS = (
    "This model keeps no held-out rows. Fit it again with keep_rows=True (command line: "
    "without --keep-no-rows), with at least two labeled rows of each class."
)
NOT_KEEPABLE = (
    "keep_rows=True keeps rows of a dense array in memory: fit to a dense sample of the rows, or "
    "use keep_rows=False."
)


class HeldOutRows(NamedTuple):
    """Labeled source rows, and their predictions by fits that left them out.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, in the model's own input format.
    y : ndarray of shape (n_rows,)
        Class numbers; numbers, for a regressor.
    domain : ndarray of int of shape (n_rows,)
        Source domains.
    scores : ndarray of shape (n_rows, n_classes) or (n_rows,)
        Class probabilities, calibrated, for the class proportions of the source; predictions, for
        a regressor.
    """

    X: FloatArray
    y: Any
    domain: IntArray
    scores: FloatArray


class NoHeldOutRowsError(ValueError):
    """A model was asked for something that needs held-out rows, and keeps none."""

    def __init__(self) -> None:
        super().__init__(NO_ROWS)


def check_keepable(X: Any) -> None:
    """Refuse rows in memory that cannot be kept, held out, for later: sparse, or not numbers."""
    if sparse.issparse(X):
        raise ValueError(NOT_KEEPABLE)
    try:
        kept_features(X[:1] if isinstance(X, np.ndarray) else _safe_indexing(X, [0]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "keep_rows=True keeps rows of numbers: encode the columns first, or use "
            f"keep_rows=False. ({error})"
        ) from None


def kept_features(X: Any) -> FloatArray:
    """Return rows as a model keeps them, as numbers; a missing value stays one."""
    rows: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    return rows


def draw_held_out_rows(strata: IntArray, seed: int = 0) -> IntArray:
    """Return the numbers of at most `MAX_KEPT` held-out rows, of each stratum about its share."""
    if len(strata) <= MAX_KEPT:
        return np.arange(len(strata))
    return draw_rows(strata, MAX_KEPT, np.random.RandomState(seed))


def cross_fit(
    adapter: Any,
    estimator: Any,
    X: Any,
    labels: Any,
    domains: FitDomains,
    held: IntArray,
    strata: IntArray,
    ask: Callable[[FittedCandidate, Any, Any], FloatArray],
    *,
    label_kind: Literal["class", "number"] = "class",
    sample_weight: Any = None,
) -> FloatArray:
    """Return predictions of held-out rows by fits that left these rows out.

    The rows ``held`` are dealt into three folds, by stratum and with a fixed seed. A clone of the
    candidate is fitted without each fold, and to everything else. Parameters as in
    `fit_candidate`, and:

    Parameters
    ----------
    held : (h,) numbers of the rows that are left out in turn; their labels are known.
    strata : (h,) of each of them, such as its class.
    ask : function of a fitted candidate, rows and their domains that returns an array of as many
        rows.
    """
    fold_of = np.full(len(domains.label_mask), -1)
    fold_of[held] = deal_folds(strata, N_FOLDS, np.random.RandomState(0))
    number = np.cumsum(domains.label_mask) - 1  # among the labeled rows
    said: list[Any] = [None] * N_FOLDS
    for fold in range(N_FOLDS):
        kept, left = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        where = check_fit_domains(
            domains.sample_domain[kept] if domains.given else None,
            domains.label_mask[kept],
            len(kept),
        )
        fitted = fit_candidate(
            adapter,
            estimator,
            _safe_indexing(X, kept),
            labels[number[kept[where.label_mask]]],
            where,
            label_kind=label_kind,
            sample_weight=None if sample_weight is None else sample_weight[kept],
        )
        of_left = domains.sample_domain[left] if domains.given else None
        said[fold] = ask(fitted, _safe_indexing(X, left), of_left)
    found = np.empty((len(held), *said[0].shape[1:]))
    for fold, part in enumerate(said):
        found[fold_of[held] == fold] = part
    return found
