"""Fitting the least-squares probabilistic classifier: drawing bases, choosing candidates."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from covshift.domains import FitDomains
from covshift.kernels.arrays import FloatArray
from covshift.kernels.distinct_rows import draw_rows, merge_rows
from covshift.kernels.gaussian_kernels import gaussian, squares_to_bases
from covshift.kernels.lspc import Criterion, Fold, cross_validation_scores, fit_coefficients
from covshift.predictors._weighted_rows import WeightedRows
from covshift.row_checks import check_magnitude


class Chosen(NamedTuple):
    """The scores of all candidates, and what the best of them led to."""

    score_table: FloatArray
    bandwidth: float
    regularization: float
    coefficients: FloatArray


def choose_candidates(
    labeled: WeightedRows,
    bases: FloatArray,
    sigmas: FloatArray,
    lambdas: FloatArray,
    folds: list[Fold],
    criterion: Criterion,
) -> Chosen:
    """Score every pair of candidates by cross-validation and fit the best one on all rows."""
    squares = squares_to_bases(labeled.rows, bases)
    class_weights = labeled.class_weights
    table = np.stack(
        [
            cross_validation_scores(
                gaussian(squares, sigma), class_weights, folds, lambdas, criterion
            )
            for sigma in sigmas
        ]
    )
    row, column = np.unravel_index(table.argmin(), table.shape)
    sigma, regularization = float(sigmas[row]), float(lambdas[column])
    coefficients = fit_coefficients(gaussian(squares, sigma), class_weights, regularization)
    return Chosen(table, sigma, regularization, coefficients)


def draw_bases(
    bases: Any,
    n_bases: int,
    X: Any,
    domains: FitDomains,
    labeled: WeightedRows,
    rng: np.random.RandomState,
) -> FloatArray:
    """Return centers drawn from distinct rows, or those given, checked."""
    if not isinstance(bases, str):
        return _check_centers(bases, X.shape[1])
    if bases == "labelled":
        rows, strata = labeled.rows, labeled.strata
    elif domains.has_target:
        rows, _ = merge_rows(X[domains.target].astype(np.float64))
        strata = np.zeros(len(rows), dtype=np.int64)
    else:
        raise ValueError(
            "bases='target' needs target rows (negative entries of sample_domain), and fit got "
            "none. Inside AdaptedClassifier, which hands over labeled rows only, give the target "
            "rows themselves: bases=X_target."
        )
    return rows[draw_rows(strata, n_bases, rng)]


def _check_centers(bases: Any, n_features: int) -> FloatArray:
    if np.ndim(bases) != 2:
        raise ValueError(
            "bases must be 'labelled', 'target' or an array of centers, rows by features, got "
            f"{bases!r}."
        )
    centers: FloatArray = check_array(bases, dtype=np.float64, input_name="bases")
    if centers.shape[1] != n_features:
        raise ValueError(f"bases has {centers.shape[1]} features, but X has {n_features}.")
    check_magnitude(centers)
    return centers
