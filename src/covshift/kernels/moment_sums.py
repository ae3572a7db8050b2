r"""Means and scatter matrices of several groups of rows, from sums over parts of them.

Two passes: sums give the means :math:`\bar x`, then
:math:`\sum_i (x_i - \bar x)(x_i - \bar x)^\top` is summed about them. One pass less, by
:math:`\sum_i x_i x_i^\top - n \bar x \bar x^\top`, loses the digits that means far from zero take
up.

Every row has a code u; rows with a code of U belong to no group. Missing values count for nothing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from covshift.kernels.arrays import FloatArray, IntArray, Rows
from covshift.kernels.mmd import TILE_ROWS
from covshift.kernels.row_views import view_rows


def first_moments(rows: Rows, codes: IntArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Numbers of values that are not missing and their sums, (U, m) each."""
    counts, totals = np.zeros((2, n_groups, rows.shape[1]))
    for code, tile in _tiles(rows, codes, n_groups):
        missing = np.isnan(tile)
        counts[code] += len(tile) - missing.sum(axis=0)
        totals[code] += np.where(missing, 0.0, tile).sum(axis=0)
    return counts, totals


def squares_about(rows: Rows, codes: IntArray, means: FloatArray) -> tuple[FloatArray]:
    """Sums (U, m) of squared distances of values that are not missing from the means (U, m)."""
    squares = np.zeros(means.shape)
    for code, tile in _tiles(rows, codes, len(means)):
        squares[code] += np.nansum(np.square(tile - means[code]), axis=0)
    return (squares,)


def scatter_about(
    rows: Rows,
    codes: IntArray,
    centres: FloatArray,
    scales: FloatArray,
    group_of: IntArray,
    n_groups: int,
) -> tuple[FloatArray]:
    """Scatter matrices (G, m, m) of (x - centre) / scale, those of each row's code (U, m).

    ``group_of`` (U,) says which group the rows of a code are added to.
    """
    n_features = rows.shape[1]
    total = np.zeros((n_groups, n_features, n_features))
    for code, tile in _tiles(rows, codes, len(centres)):
        centred = (tile - centres[code]) / scales[code]
        total[group_of[code]] += centred.T @ centred
    return (total,)


def fourth_powers(
    rows: Rows, codes: IntArray, means: FloatArray, precisions: FloatArray
) -> tuple[FloatArray]:
    r"""Sums (U,) of :math:`\lVert z_i \rVert^4` of standardised rows; see `covariance`."""
    total = np.zeros(len(means))
    for code, tile in _tiles(rows, codes, len(means)):
        total[code] += float(np.square(np.square(tile - means[code]) @ precisions[code]).sum())
    return (total,)


def _tiles(rows: Rows, codes: IntArray, n_groups: int) -> Iterator[tuple[Any, FloatArray]]:
    """The rows of each code, some at a time, in double precision."""
    for start in range(0, rows.shape[0], TILE_ROWS):
        tile = view_rows(rows, start, start + TILE_ROWS, np.float64)
        own = codes[start : start + TILE_ROWS]
        if sparse.issparse(tile):
            tile = tile.toarray()
        if own[0] == own[-1] and (own == own[0]).all():
            if own[0] < n_groups:
                yield own[0], tile
            continue
        order = np.argsort(own, kind="stable")
        present, starts = np.unique(own[order], return_index=True)
        for code, group in zip(present, np.split(order, starts[1:]), strict=True):
            if code < n_groups:
                yield code, tile[group]
