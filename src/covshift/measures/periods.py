"""Theorem 2 of the paper, corrected: the shifts that periodic filters cannot see."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from covshift.kernels.array_types import BoolArray, FloatArray, IntArray

# Radians by which a phase may miss a full turn and still count as rounding.
PERIOD_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Period:
    """Result of `check_period`.

    Attributes
    ----------
    holds : bool
        Whether every filter turns by whole turns, up to the tolerance.
    largest_miss : float
        Largest of ``misses``; at most π.
    misses : ndarray of shape (n_components,)
        Radians by which each filter's phase misses a whole turn.
    turns : ndarray of int of shape (n_components,)
        k, the whole number of turns nearest to each filter's phase.
    """

    holds: bool
    largest_miss: float
    misses: FloatArray
    turns: IntArray


@dataclass(frozen=True, eq=False)
class PeriodShifts:
    """Result of `period_shifts`.

    Attributes
    ----------
    shifts : ndarray of shape (n_shifts, n_features)
        δ for each k: shortest of those that come nearest to W δ = 2 π k.
    residuals : ndarray of shape (n_shifts,)
        Length of W δ - 2 π k, in radians.
    exact : ndarray of bool of shape (n_shifts,)
        Where the residual is rounding: the shift is a period.
    holds : bool
        Whether all shifts are periods.
    """

    shifts: FloatArray
    residuals: FloatArray
    exact: BoolArray
    holds: bool


def check_period(W: Any, delta: Any, *, tolerance: float = PERIOD_TOLERANCE) -> Period:
    r"""Check whether a shift leaves every periodic filter as it is (Theorem 2, corrected).

    .. math:: W \delta \in 2 \pi \mathbb{Z}^L

    Parameters
    ----------
    W : array-like of shape (n_components, n_features)
        Filters: ``components_``.
    delta : array-like of shape (n_features,)
        Shift of the rows.
    tolerance : float, default=1e-6
        Largest miss, in radians, that counts as rounding.

    Returns
    -------
    result : Period
        Whether it is a period, and by how much each filter misses.

    Notes
    -----
    If it holds, :math:`x` and :math:`x + \delta` have the same representation for every x,
    under sine and cosine, whatever the norms. If the rows of W are linearly independent and
    there are two or more, no other shift does that; a single filter, or copies of one,
    always give the same representation. For one given x more points may share its
    representation, as sin(h) = sin(π - h).

    The paper prints the period :math:`W^{-1} k \pi`, which is none for odd k: it turns sines
    and cosines into their negatives.

    **Cost**: O(m L) time.

    References
    ----------
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
    Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import PeriodicSparseFiltering
    >>> from covshift.datasets import make_periodic_shift
    >>> from covshift.measures import check_period
    >>> data = make_periodic_shift(random_state=0)
    >>> psf = PeriodicSparseFiltering(2, random_state=0).fit(data.X_source, data.y_source)
    >>> half_turns = np.linalg.solve(psf.components_, [np.pi, 0])
    >>> check_period(psf.components_, 2 * half_turns).holds
    True
    >>> printed = check_period(psf.components_, half_turns)
    >>> printed.holds, round(printed.largest_miss, 3)
    (False, 3.142)
    """
    W = check_array(W, dtype=np.float64, input_name="W")
    shift = check_array(delta, dtype=np.float64, ensure_2d=False, input_name="delta")
    if shift.shape != (W.shape[1],):
        raise ValueError(
            f"delta must be one shift of {W.shape[1]} features, got shape {shift.shape}."
        )
    phases = W @ shift
    turns = np.rint(phases / (2 * np.pi))
    misses: FloatArray = np.abs(phases - 2 * np.pi * turns)
    return Period(
        holds=bool(misses.max() <= tolerance),
        largest_miss=float(misses.max()),
        misses=misses,
        turns=turns.astype(np.int64),
    )


def period_shifts(W: Any, k: Any, *, tolerance: float = PERIOD_TOLERANCE) -> PeriodShifts:
    r"""Return the shifts by whole turns of the filters: :math:`\delta = 2 \pi W^+ k`.

    Parameters
    ----------
    W : array-like of shape (n_components, n_features)
        Filters: ``components_``.
    k : array-like of int of shape (n_shifts, n_components) or (n_components,)
        Turns of each filter, for each shift.
    tolerance : float, default=1e-6
        Largest residual, in radians, that counts as rounding.

    Returns
    -------
    result : PeriodShifts
        Shifts, and how far each is from being a period.

    Notes
    -----
    With linearly independent filters, which needs L ≤ m, every k has an exact shift; any
    vector that W sends to zero may be added to it. With more filters than features the L
    equations have only m unknowns: for most k there is no period, and the least-squares
    shift is the nearest to one.

    **Cost**: O(m L min(m, L)) time, and O(m L) for each shift.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import PeriodicSparseFiltering
    >>> from covshift.datasets import make_periodic_shift
    >>> from covshift.measures import period_shifts
    >>> data = make_periodic_shift(random_state=0)
    >>> psf = PeriodicSparseFiltering(2, random_state=0).fit(data.X_source, data.y_source)
    >>> found = period_shifts(psf.components_, [[1, 0], [0, 1], [2, -3]])
    >>> found.holds
    True
    >>> moved = data.X_test + found.shifts[0]
    >>> bool(np.allclose(psf.transform(moved), psf.transform(data.X_test)))
    True
    """
    W = check_array(W, dtype=np.float64, input_name="W")
    turns = np.atleast_2d(check_array(k, dtype=np.float64, ensure_2d=False, input_name="k"))
    if turns.ndim != 2 or turns.shape[1] != len(W):
        raise ValueError(f"k must hold {len(W)} turns per shift, one per filter.")
    if (turns != np.rint(turns)).any():
        raise ValueError("k must hold whole numbers: a part of a turn is not a period.")
    shifts = 2 * np.pi * turns @ np.linalg.pinv(W).T
    residuals: FloatArray = np.linalg.norm(shifts @ W.T - 2 * np.pi * turns, axis=1)
    exact = residuals <= tolerance
    return PeriodShifts(shifts=shifts, residuals=residuals, exact=exact, holds=bool(exact.all()))
