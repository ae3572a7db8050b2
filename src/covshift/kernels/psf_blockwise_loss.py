r"""The loss that the authors' released code minimizes: what its gradient is made of.

.. math::

    L(W) = \sum_{ij} Z_{ij} - \sum_c \lambda_c \sum_{ij} Z^{(c)}_{ij}
           + \tfrac{\alpha}{2} \lVert W \rVert^2,
    \qquad Z^{(c)} = \text{normalize}(F[\text{rows of class } c, \text{features of group } c])

It differs from the loss printed in the paper (`psf_loss`): each rewarded block is
normalized again, on its own rows and columns, instead of being taken from Z. With one
feature per class each block is constant except for ``norm_epsilon``: without it the labels do
nothing, and with the released 1e-8 they act only through rows whose feature is near zero.

There are C + 1 normalizations here, each with a constant upstream gradient: :math:`-\lambda_c`
for the block of class c, and 1 for all rows and filters, which comes last.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray
from covshift.kernels.filter_passes import FilterLoss, RowFactors
from covshift.kernels.normalization import inverse_roots
from covshift.kernels.row_blocks import Block


class BlockNorms(NamedTuple):
    """One over the norm of each filter in each block, and the gradient of each block.

    Attributes
    ----------
    inverse : (K, C + 1, L), zero for filters outside the group.
    upstream : (K, C + 1, 1).
    """

    inverse: FloatArray
    upstream: FloatArray
    norm_epsilon: float


def psf_blockwise_loss(
    groups: BoolArray, label_reward: FloatArray, norm_epsilon: float
) -> FilterLoss:
    """Return the formula above without its penalty, for groups (K, C, L) and lambda (K, C)."""
    ones = np.ones((len(groups), 1), label_reward.dtype)
    upstream = np.concatenate([-label_reward, ones], axis=1)[..., None]
    norms = partial(block_norms, groups=groups, upstream=upstream, norm_epsilon=norm_epsilon)
    C = groups.shape[1]
    return FilterLoss(C, norms, row_factors, filter_factors, n_parts=C + 1)


def block_norms(
    squares: FloatArray, groups: BoolArray, upstream: FloatArray, norm_epsilon: float
) -> BlockNorms:
    """1 / t of each block from squares (K, L, C + 1)."""
    members = squares.swapaxes(-1, -2).copy()
    members[:, -1] = squares.sum(axis=-1)
    inverse = inverse_roots(members + norm_epsilon)
    inverse[:, :-1] *= groups
    return BlockNorms(inverse.astype(upstream.dtype), upstream, norm_epsilon)


def row_factors(norms: BlockNorms, F: FloatArray, squares: FloatArray, block: Block) -> RowFactors:
    """U has 1 / r in each block of the row; V has q / r^2, and membership."""
    last = norms.inverse.shape[1] - 1
    labeled = block.present[block.present < last]
    parts = np.append(labeled, last)
    classes = np.broadcast_to(block.classes, (len(F), *block.classes.shape[-2:]))
    everything = np.ones((len(F), 1, F.shape[-1]), F.dtype)
    members = np.concatenate([classes[:, : len(labeled)], everything], axis=1)  # (K, p, b)
    inverse = norms.inverse[:, parts]
    U = members * inverse_roots(np.square(inverse) @ squares + norms.norm_epsilon)
    q = U * (inverse @ F)
    v = q * np.square(U)
    sums = np.zeros(norms.inverse.shape)
    sums[:, parts] = U @ F.swapaxes(-1, -2) - inverse * (v @ squares.swapaxes(-1, -2))
    losses = (norms.upstream[:, parts] * q).sum(axis=(1, 2), dtype=np.float64)
    columns = (parts, np.append(parts, parts + last + 1))
    return RowFactors(losses, sums, U, np.concatenate([v, members], axis=1), columns)


def filter_factors(norms: BlockNorms, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A and B: 1 / t of each block, 1 / t^2 and s / t^3, times its gradient."""
    inverse = norms.inverse
    signed = norms.upstream * inverse
    s = sums.astype(inverse.dtype)
    B = np.concatenate([signed * inverse, signed * s * inverse**2], axis=1)
    return signed.swapaxes(-1, -2), B.swapaxes(-1, -2)
