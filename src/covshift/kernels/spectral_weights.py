r"""Ranking classifiers by the structure of their agreement alone.

If classifiers err independently of each other given the class, the covariance of their
predictions :math:`f_i \in \{-1, 1\}` over the rows has off-diagonal entries
:math:`Q_{ij} = (1 - b^2)(2 \pi_i - 1)(2 \pi_j - 1)`, where :math:`\pi_i` is the balanced accuracy
of classifier i and b the imbalance of the classes: a matrix of rank one, whose leading eigenvector
v orders the classifiers by balanced accuracy. The diagonal, which is not of that form, is found by
repeated replacement,

.. math::

    Q \leftarrow Q - \operatorname{diag}(Q) + \operatorname{diag}(\lambda v v^\top),
    \qquad v \text{ the leading eigenvector of } Q, \lambda \text{ its eigenvalue}.

The sign of v is the one with which the classifiers are better than chance on the whole: its
entries sum to zero or more. With K > 2 classes, the
mean over the classes, each against the rest.

References
----------
F. Parisi, F. Strino, B. Nadler, Y. Kluger, "Ranking and combining multiple predictors without
labeled data", PNAS 111(4), 2014.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.label_agreement import one_hot

MAX_REPLACEMENTS = 100
CONVERGED_DIAGONAL = 1e-10  # change of the diagonal, relative to its largest entry


def spectral_weights(predictions: IntArray, n_classes: int) -> FloatArray:
    """Return weights (c,) of c predictions (c, n), larger for those that agree like better ones."""
    signs = 2 * one_hot(predictions, n_classes) - 1
    columns = [1] if n_classes == 2 else range(n_classes)
    weights: FloatArray = np.mean([_leading(np.cov(signs[:, :, k])) for k in columns], axis=0)
    return weights


def _leading(Q: FloatArray) -> FloatArray:
    """sqrt(lambda) v of the rank-one matrix whose off-diagonal is that of Q (c, c)."""
    Q = np.atleast_2d(Q).copy()
    diagonal = np.zeros(len(Q))
    for _ in range(MAX_REPLACEMENTS):
        np.fill_diagonal(Q, diagonal)
        values, vectors = np.linalg.eigh(Q)
        v = vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
        change = np.abs(v**2 - diagonal).max()
        diagonal = v**2
        if change <= CONVERGED_DIAGONAL * max(diagonal.max(), np.finfo(np.float64).tiny):
            break
    leading: FloatArray = v if v.sum() >= 0 else -v
    return leading
