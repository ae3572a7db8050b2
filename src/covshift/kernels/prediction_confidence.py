r"""Scores of predicted probabilities without labels: confidence, diversity, clustering.

With probabilities :math:`p_i` (K classes) of n rows and H the entropy in nats,

.. math::

    \text{entropy} = \tfrac{1}{n} \sum_i H(p_i), \qquad
    \text{information} = H\bigl(\tfrac{1}{n} \textstyle\sum_i p_i\bigr)
        - \tfrac{1}{n} \sum_i H(p_i), \qquad
    \text{density} = \tfrac{1}{n} \sum_i H(q_i),

where :math:`q_{ij} \propto \exp(\langle \bar p_i, \bar p_j \rangle / \tau)` over the other rows
:math:`j \ne i`, with :math:`\bar p` the probabilities at unit length: rows that share their
prediction with many others spread :math:`q_i` over these.

References
----------
J. S. Bridle, A. J. R. Heading, D. J. C. MacKay, "Unsupervised classifiers, mutual information and
'phantom targets'", NIPS 1991. K. Saito et al., "Tune it the right way: unsupervised validation of
domain adaptation via soft neighborhood density", ICCV 2021.
"""

import numpy as np
from scipy.special import entr

from covshift.kernels.arrays import FloatArray
from covshift.kernels.mmd import TILE_ROWS


def mean_entropy(P: FloatArray) -> float:
    """Return the mean entropy of the rows of P (n, K)."""
    return float(entr(P).sum(axis=1).mean())


def mutual_information(P: FloatArray) -> float:
    """Return the entropy of the mean row of P (n, K), less the mean entropy of its rows."""
    return float(entr(P.mean(axis=0)).sum()) - mean_entropy(P)


def soft_neighborhood_density(P: FloatArray, temperature: float) -> float:
    """Mean entropy of each row's similarities to the other rows of P (n, K); 0 for one row."""
    n = len(P)
    if n < 2:
        return 0.0
    lengths = np.sqrt(np.einsum("ik,ik->i", P, P))
    unit = P / np.maximum(lengths, np.finfo(P.dtype).tiny)[:, None]
    total = 0.0
    for start in range(0, n, TILE_ROWS):
        stop = min(start + TILE_ROWS, n)
        logits = unit[start:stop] @ unit.T / temperature
        logits[np.arange(stop - start), np.arange(start, stop)] = -np.inf  # not to itself
        logits -= logits.max(axis=1, keepdims=True)
        q = np.exp(logits)
        q /= q.sum(axis=1, keepdims=True)
        total += float(entr(q).sum())
    return total / n
