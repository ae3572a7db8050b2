"""Propositions 1 and 2 of the paper: where representations Z lie, and their moments."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.row_checks import check_rows


@dataclass(frozen=True)
class RepresentationBounds:
    """Result of `check_representation_bounds`. A negative margin is a broken bound.

    Attributes
    ----------
    holds : bool
        Whether all bounds hold, up to rounding. The printed bound of the mean is not one
        of them.
    range_margin : float
        Smallest distance of an entry to the ends of [0, 1].
    sphere_error : float
        Largest difference of a row's length to one.
    row_sum_margin : float
        Smallest distance of a row's sum to the ends of [1, √L].
    quarter_margin : float
        Smallest of 1/4 - Var over the features.
    variance_margin : float
        Smallest of μ (1 - μ) - Var over the features: never above the one before.
    smallest_mean : float
        Smallest mean of a feature.
    mean_at_least_epsilon : bool
        Whether the smallest mean is ``epsilon`` or more, as printed; see the notes.
    """

    holds: bool
    range_margin: float
    sphere_error: float
    row_sum_margin: float
    quarter_margin: float
    variance_margin: float
    smallest_mean: float
    mean_at_least_epsilon: bool


def check_representation_bounds(Z: Any, *, epsilon: float = 1e-8) -> RepresentationBounds:
    r"""Check the range and the moments of representations (Propositions 1 and 2).

    For every row i and feature j, with mean and variance (divided by n) over the rows:

    .. math::

        0 \le z_{ij} \le 1, \qquad \lVert z_i \rVert = 1, \qquad
        1 \le \textstyle\sum_j z_{ij} \le \sqrt L, \qquad
        \text{Var}_j \le \mu_j (1 - \mu_j) \le \tfrac14

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        Result of a filter's ``transform``.
    epsilon : float, default=1e-8
        The filter's ``epsilon``, to which the smallest mean is compared.

    Returns
    -------
    result : RepresentationBounds
        Bounds that hold, and their margins.

    Notes
    -----
    The first three hold because the last step divides non-negative rows by their lengths;
    the last follows from :math:`z^2 \le z`. They hold for any filters and any data, and so
    do not show how close two domains are: test that on held-out rows. They fail for a
    row without any activation (``epsilon=0``), which stays zero, and with a ``norm_epsilon``
    above zero, which shortens rows.

    The paper prints :math:`\mu_j \ge \epsilon`, which is not implied, and
    :math:`\text{Var}_j \le 1 - \epsilon^2`, which the bounds above beat. Rows under norms
    stored earlier can have any mean down to zero. For rows under their own norms
    (``normalization="batch"``) and features that are not all zero, the bound is
    :math:`\mu_j \ge 1 / (n \sqrt L)`. The paper's bounds for k-sparse features need
    activations of exactly 0 and 1 and are not checked.

    **Cost**: O(n L) time and memory.

    References
    ----------
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
    Propositions 1 and 2.

    Examples
    --------
    >>> from covshift import SparseFiltering
    >>> from covshift.datasets import make_radial_shift
    >>> from covshift.measures import check_representation_bounds
    >>> data = make_radial_shift(random_state=0)
    >>> sf = SparseFiltering(random_state=0).fit(data.X_source)
    >>> result = check_representation_bounds(sf.transform(data.X_source), epsilon=sf.epsilon)
    >>> result.holds, result.mean_at_least_epsilon
    (True, True)
    """
    Z = check_rows(Z, dtype=(np.float64, np.float32), input_name="Z")
    n_components = Z.shape[1]
    # Both roots and quotients round; sums over the features add up.
    tolerance = 10 * n_components * float(np.finfo(Z.dtype).eps)
    Z = Z.astype(np.float64, copy=False)
    sums, means, variances = Z.sum(axis=1), Z.mean(axis=0), Z.var(axis=0)
    range_margin = min(Z.min(), 1 - Z.max())
    sphere_error = np.abs(np.linalg.norm(Z, axis=1) - 1).max()
    row_sum_margin = min(sums.min() - 1, np.sqrt(n_components) - sums.max())
    quarter_margin = 0.25 - variances.max()
    variance_margin = (means * (1 - means) - variances).min()
    margins = (range_margin, -sphere_error, row_sum_margin, quarter_margin, variance_margin)
    return RepresentationBounds(
        holds=bool(min(margins) >= -tolerance),
        range_margin=float(range_margin),
        sphere_error=float(sphere_error),
        row_sum_margin=float(row_sum_margin),
        quarter_margin=float(quarter_margin),
        variance_margin=float(variance_margin),
        smallest_mean=float(means.min()),
        mean_at_least_epsilon=bool(means.min() >= epsilon),
    )
