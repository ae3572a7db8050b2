"""Holm's correction of several p-values for having tested several hypotheses."""

from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray


def holm(pvalues: Any) -> FloatArray:
    r"""Return the p-values adjusted by Holm's step-down procedure.

    Rejecting where the adjusted p-value is at most :math:`\alpha` rejects one or more true
    hypotheses with probability at most :math:`\alpha`, however the tests depend on each other.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        In any order; may be empty.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        In the order of ``pvalues``; never smaller than them, never above one.

    Notes
    -----
    With :math:`p_{(1)} \le \dots \le p_{(m)}`, the adjusted value of :math:`p_{(i)}` is
    :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    **Cost**: O(k log k) time for k p-values.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal
    of Statistics 6, 65-70.

    Examples
    --------
    >>> from covshift.measures import holm
    >>> holm([0.01, 0.5, 0.02])
    array([0.03, 0.5 , 0.04])
    """
    values = np.asarray(pvalues, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"pvalues must be one-dimensional, got {values.ndim} dimensions.")
    if not ((values >= 0) & (values <= 1)).all():  # false for NaN as well
        raise ValueError("pvalues must be numbers from 0 to 1, without NaN.")
    order = np.argsort(values)
    still_in_play = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(still_in_play * values[order]))
    return adjusted
