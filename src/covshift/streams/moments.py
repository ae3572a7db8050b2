"""Moments of groups of rows, in passes over a stream."""

from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.covariance import intensity_from, precisions_of, shrink
from covshift.kernels.moment_sums import first_moments, fourth_powers, scatter_about, squares_about
from covshift.streams.row_stream import RowStream


class Moments(NamedTuple):
    """Mean (m,), shrunk covariance (m, m) and the intensity used, of one group."""

    mean: FloatArray
    covariance: FloatArray
    shrinkage: float


def stream_moments(
    stream: RowStream, codes: Any, n_groups: int, shrinkage: float | None
) -> list[Moments]:
    """What `mean_and_covariance` returns, for the rows of each code, in two passes or three."""
    counts, means = stream_means(stream, codes, n_groups)
    ones, each = np.ones_like(means), np.arange(n_groups)
    (scatter,) = stream.sums(scatter_about, codes, means, ones, each, n_groups)
    covariances = scatter / counts[:, :1, None]
    if shrinkage is not None:
        intensities = [shrinkage] * n_groups
    else:
        precisions = np.stack([precisions_of(covariance) for covariance in covariances])
        (fourths,) = stream.sums(fourth_powers, codes, means, precisions)
        intensities = [
            intensity_from(float(fourth), int(count), covariance)
            for fourth, count, covariance in zip(fourths, counts[:, 0], covariances, strict=True)
        ]
    found = [Moments(*of_group) for of_group in zip(means, covariances, intensities, strict=True)]
    for group in found:
        shrink(group.covariance, group.shrinkage)
    return found


def stream_means(stream: RowStream, codes: Any, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Numbers of values and means, (U, m) each; NaN where there is no value."""
    counts, totals = stream.sums(first_moments, codes, n_groups)
    with np.errstate(invalid="ignore"):
        return counts, totals / counts


def stream_scales(
    stream: RowStream, codes: Any, n_groups: int, *, with_mean: bool, with_std: bool
) -> list[tuple[FloatArray, FloatArray]]:
    """Mean and standard deviation of the rows of each code; zeros and ones where not asked for.

    A constant feature has scale one.
    """
    zeros, ones = np.zeros((n_groups, stream.shape[1])), np.ones((n_groups, stream.shape[1]))
    if not (with_mean or with_std):
        return list(zip(zeros, ones, strict=True))
    counts, means = stream_means(stream, codes, n_groups)
    scales = ones
    if with_std:
        (squares,) = stream.sums(squares_about, codes, means)
        with np.errstate(invalid="ignore"):
            variances = squares / counts
        # What is left of a constant after rounding, by the bound that StandardScaler has.
        rounding = np.finfo(np.float64).eps * counts
        constant = variances <= rounding * variances + (rounding * means) ** 2
        scales = np.where(constant, 1.0, np.sqrt(variances))
    return list(zip(means if with_mean else zeros, scales, strict=True))


def stream_scatter(
    stream: RowStream,
    codes: Any,
    means: FloatArray,
    scales: FloatArray,
    group_of: IntArray,
) -> FloatArray:
    """Scatter matrices (G, m, m) of groups of codes, about each group's own mean.

    Rows are standardised first by the mean and scale (U, m) of their code; ``group_of`` (U,) is
    the group of each code.
    """
    split = stream.split(codes)
    n_groups = int(group_of.max()) + 1
    counts, totals = stream.sums(first_moments, split, len(means))
    standardised = (totals - counts * means) / scales  # sums of the standardised rows
    centres = means.copy()
    for group in range(n_groups):
        own = group_of == group
        group_mean = standardised[own].sum(axis=0) / counts[own].sum(axis=0)
        centres[own] += scales[own] * group_mean
    (scatter,) = stream.sums(scatter_about, split, centres, scales, group_of, n_groups)
    return np.asarray(scatter)
