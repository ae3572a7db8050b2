r"""Means, scatter matrices and principal components of groups of rows, in passes over a stream.

Two passes: sums give the means :math:`\bar x`, then
:math:`\sum_i (x_i - \bar x)(x_i - \bar x)^\top` is summed about them. One pass less, by
:math:`\sum_i x_i x_i^\top - n \bar x \bar x^\top`, loses the digits that means far from zero take
up.

Every row has a code u; rows with a code of U belong to no group. Missing values count for nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from covshift.domains import Unit
from covshift.kernels.array_types import FloatArray, IntArray, Rows
from covshift.kernels.feature_scales import is_constant
from covshift.kernels.gaussian_kernels import TILE_ROWS
from covshift.kernels.row_blocks import view_rows
from covshift.streams.rows import OpenRows, RowStream, open_rows


def first_moments(rows: Rows, codes: IntArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of values that are not missing and their sums, (U, m) each."""
    counts, totals = np.zeros((2, n_groups, rows.shape[1]))
    for code, tile in tiles_by_code(rows, codes, n_groups):
        missing = np.isnan(tile)
        counts[code] += len(tile) - missing.sum(axis=0)
        totals[code] += np.where(missing, 0.0, tile).sum(axis=0)
    return counts, totals


def scatter_about(
    rows: Rows,
    codes: IntArray,
    centers: FloatArray,
    scales: FloatArray,
    group_of: IntArray,
    n_groups: int,
) -> tuple[FloatArray]:
    """Scatter matrices (G, m, m) of (x - center) / scale, those of each row's code (U, m).

    ``group_of`` (U,) says which group the rows of a code are added to.
    """
    n_features = rows.shape[1]
    total = np.zeros((n_groups, n_features, n_features))
    for code, tile in tiles_by_code(rows, codes, len(centers)):
        centered = (tile - centers[code]) / scales[code]
        total[group_of[code]] += centered.T @ centered
    return (total,)


def tiles_by_code(rows: Rows, codes: IntArray, n_groups: int) -> Iterator[tuple[Any, FloatArray]]:
    """Yield the rows of each code, some at a time, for moments in double precision."""
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


def stream_means(stream: RowStream, codes: Any, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of values and means, (U, m) each; NaN where there is no value."""
    counts, totals = stream.sums(first_moments, codes, n_groups)
    with np.errstate(invalid="ignore"):
        return counts, totals / counts


def fit_components(pca: Any, X: Any) -> None:
    """Fit a `PCA` in place to rows in blocks, by the covariance that is summed over them.

    Three passes over the rows; memory for two matrices of features by features. The result is
    that of ``svd_solver="covariance_eigh"`` on all rows at once.

    Parameters
    ----------
    pca : PCA
        With a whole number of components.
    X : Dask array or memory map of shape (n_samples, n_features)
        Rows.
    """
    n_samples, n_features = X.shape
    n_kept = pca.n_components
    if not isinstance(n_kept, int | np.integer):
        raise TypeError(
            f"PCA(n_components={n_kept!r}) cannot be fitted to rows in blocks: give a whole number "
            "of components."
        )
    if not 1 <= n_kept <= min(n_samples, n_features):
        raise ValueError(
            f"n_components={n_kept} must be between 1 and {min(n_samples, n_features)}, the "
            "smaller of the numbers of rows and features."
        )
    stream = open_rows(pca, X, reset=True).data
    codes = stream.split(np.zeros(n_samples, dtype=np.int8))
    _, means = stream_means(stream, codes, 1)
    one = np.ones_like(means), np.zeros(1, dtype=np.int64), 1
    ((scatter,),) = stream.sums(scatter_about, codes, means, *one)
    values, vectors = np.linalg.eigh(scatter / n_samples * (n_samples / (n_samples - 1)))
    variances = np.maximum(values[::-1], 0.0)
    directions = vectors.T[::-1]
    largest = np.abs(directions).argmax(axis=1)  # made positive, as scikit-learn does
    directions = directions * np.sign(directions[np.arange(n_features), largest])[:, None]
    pca.mean_ = means[0].astype(stream.dtype)
    pca.components_ = np.ascontiguousarray(directions[:n_kept], dtype=stream.dtype)
    pca.explained_variance_ = variances[:n_kept]
    pca.explained_variance_ratio_ = variances[:n_kept] / variances.sum()
    pca.singular_values_ = np.sqrt(variances[:n_kept] * (n_samples - 1))
    pca.noise_variance_ = variances[n_kept:].mean() if n_kept < n_features else 0.0
    pca.n_components_, pca.n_samples_ = int(n_kept), n_samples


def measure_scales(
    rows: OpenRows, units: Mapping[Unit, IntArray], *, with_mean: bool, with_std: bool
) -> dict[Unit, tuple[FloatArray, FloatArray]]:
    """Return moments of each feature in each unit: means and deviations; 0 and 1 if not wanted.

    Missing values are left out (NaN where all are missing); a constant feature has scale one.
    """
    return rows.measure(
        units,
        lambda X, unit: _mean_and_scale(X, with_mean=with_mean, with_std=with_std),
        lambda stream, codes, n_units: stream_scales(
            stream, stream.split(codes), n_units, with_mean=with_mean, with_std=with_std
        ),
    )


def _mean_and_scale(X: Any, *, with_mean: bool, with_std: bool) -> tuple[FloatArray, FloatArray]:
    """Return the mean and standard deviation of each feature of rows in memory."""
    if not (with_mean or with_std):
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    if not sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):  # a feature without any value: NaN
        scaler = StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
    mean = scaler.mean_ if with_mean else np.zeros(X.shape[1])
    scale = scaler.scale_ if with_std else np.ones(X.shape[1])
    return mean, scale


def stream_scales(
    stream: RowStream, codes: Any, n_groups: int, *, with_mean: bool, with_std: bool
) -> list[tuple[FloatArray, FloatArray]]:
    """Mean and standard deviation of the rows of each code of a stream, in one pass or two."""
    zeros, ones = np.zeros((n_groups, stream.shape[1])), np.ones((n_groups, stream.shape[1]))
    if not (with_mean or with_std):
        return list(zip(zeros, ones, strict=True))
    counts, means = stream_means(stream, codes, n_groups)
    scales = ones
    if with_std:
        (squares,) = stream.sums(_squares_about, codes, means)
        with np.errstate(invalid="ignore"):
            variances = squares / counts
        scales = np.where(is_constant(variances, means, counts), 1.0, np.sqrt(variances))
    return list(zip(means if with_mean else zeros, scales, strict=True))


def _squares_about(rows: Rows, codes: IntArray, means: FloatArray) -> tuple[FloatArray]:
    """Sums (U, m) of squared distances of values that are not missing from the means (U, m)."""
    squares = np.zeros(means.shape)
    for code, tile in tiles_by_code(rows, codes, len(means)):
        squares[code] += np.nansum(np.square(tile - means[code]), axis=0)
    return (squares,)
