r"""The loss of periodic sparse filtering, and of sparse filtering: what its gradient is made of.

.. math::

    L(W) = \sum_{ij} Z_{ij}
           - \sum_c \lambda_c \sum_{i: y_i = c} \; \sum_{j \in \text{group } c} Z_{ij}
           + \tfrac{\alpha}{2} \lVert W \rVert^2,
    \qquad Z = \text{normalize}(g(X W^\top))

Rows without a label earn no reward; without any labels, and with the soft absolute value,
this is plain sparse filtering. The reward makes the upstream gradient
:math:`G_{ij} = 1 - \lambda_c [y_i = c, j \in \text{group } c]`, which enters *before* the
backward pass through both normalizations; `filter_passes` has the gradient written out. (The
paper's appendix multiplies by :math:`\lambda` at the end, which is not the gradient of its own
loss.)

References
----------
F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
Algorithm 1. J. Ngiam et al., "Sparse filtering", NIPS 2011.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.kernels.filter_passes import FilterLoss, RowFactors
from covshift.kernels.normalization import inverse_roots
from covshift.kernels.row_blocks import Block, rooms


class JointNorms(NamedTuple):
    """Norms of the filters, as the factors need them.

    Attributes
    ----------
    inverse, squared : (K, 1, L), 1 / t and 1 / t^2.
    upstream, scaled : (K, C + 1, L), G of each class and G / t.
    """

    inverse: FloatArray
    squared: FloatArray
    upstream: FloatArray
    scaled: FloatArray
    norm_epsilon: float


def psf_loss(groups: BoolArray, label_reward: FloatArray, norm_epsilon: float) -> FilterLoss:
    """Return the formula above without its penalty, for groups (K, C, L) and lambda (K, C)."""
    upstream = upstream_gradients(groups, label_reward)
    norms = partial(joint_norms, upstream=upstream, norm_epsilon=norm_epsilon)
    return FilterLoss(groups.shape[1], norms, row_factors, filter_factors, n_parts=1)


def upstream_gradients(groups: BoolArray, label_reward: FloatArray) -> FloatArray:
    """G (K, C + 1, L) of each class; the last is that of rows without a label."""
    K, C, L = groups.shape
    upstream = np.ones((K, C + 1, L), label_reward.dtype)
    upstream[:, :-1] -= label_reward[..., None] * groups
    return upstream


def joint_norms(squares: FloatArray, upstream: FloatArray, norm_epsilon: float) -> JointNorms:
    """1 / t from squares (K, L, C + 1)."""
    inverse = inverse_roots(squares.sum(axis=-1) + norm_epsilon)[:, None, :]
    inverse = inverse.astype(upstream.dtype)
    return JointNorms(inverse, inverse**2, upstream, upstream * inverse, norm_epsilon)


def row_factors(norms: JointNorms, F: FloatArray, squares: FloatArray, block: Block) -> RowFactors:
    """U has 1 / r at the row's class; V has q / r^2, and ones."""
    (K, _, b), p = F.shape, len(block.present)
    over_r, U, V, rewards = rooms(block.factors, (K, 1, b), (K, p, b), (K, 2, b), (K, p, b))
    np.matmul(norms.squared, squares, out=over_r)
    over_r += norms.norm_epsilon
    inverse_roots(over_r, out=over_r)
    np.multiply(block.classes, over_r, out=U)
    np.matmul(norms.scaled[:, block.columns], F, out=rewards)
    rewards *= U
    q = rewards.sum(axis=1) if p > 1 else rewards[:, 0]  # a row has one class
    np.square(over_r, out=over_r)
    np.multiply(q, over_r[:, 0], out=V[:, 0])
    V[:, 1] = 1
    of_classes = norms.upstream[:, block.columns] * (U @ F.swapaxes(-1, -2))  # (K, p, L)
    sums = of_classes.sum(axis=1, keepdims=True) - norms.inverse * (
        V[:, :1] @ squares.swapaxes(-1, -2)
    )
    columns = (block.columns, slice(None))
    losses = q.sum(axis=1, dtype=np.float64)
    return RowFactors(losses, sums.astype(np.float64, copy=False), U, V, columns)


def filter_factors(norms: JointNorms, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A and B: A has G / t of each class; B has 1 / t^2 and s / t^3."""
    s = sums.astype(norms.inverse.dtype)
    B = np.concatenate([norms.squared, s * norms.squared * norms.inverse], axis=1)
    return norms.scaled.swapaxes(-1, -2), B.swapaxes(-1, -2)
