r"""The loss that the authors' released code minimises, with its gradient.

.. math::

    L(W) = \sum_{ij} Z_{ij} - \sum_c \lambda_c \sum_{ij} Z^{(c)}_{ij}
           + \tfrac{\alpha}{2} \lVert W \rVert^2,
    \qquad Z^{(c)} = \text{normalise}(F[\text{rows of class } c, \text{features of group } c])

It differs from the loss printed in the paper (`psf_loss`): each rewarded block is
normalised again, on its own rows and columns, instead of being taken from Z. With one
feature per class each block is constant but for ``norm_epsilon``: without it the labels do
nothing, and with the released 1e-8 they act only through rows whose feature is near zero.
"""

import numpy as np

from covshift.kernels.activations import Activation, activate, slope_in_place
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray, Rows
from covshift.kernels.normalization import backward_in_place, normalize
from covshift.kernels.psf_loss import add_penalty


def psf_blockwise_loss(
    W: FloatArray,
    X: Rows,
    codes: IntArray | None,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: float,
) -> tuple[float, FloatArray]:
    """Loss and gradient of the formula above; parameters as in `psf_loss`."""
    H = X @ W.T
    F = activate(H, activation, epsilon)
    loss, dF = _sum_and_gradient(F, norm_epsilon)
    if codes is not None:
        for code, (reward, group) in enumerate(zip(label_reward, groups, strict=True)):
            block = np.ix_(codes == code, group)
            block_loss, block_gradient = _sum_and_gradient(F[block], norm_epsilon)
            loss -= float(reward) * block_loss
            dF[block] -= reward * block_gradient
    dF *= slope_in_place(H, F, activation)
    return add_penalty(loss, dF.T @ X, W, alpha)


def _sum_and_gradient(F: FloatArray, norm_epsilon: float) -> tuple[float, FloatArray]:
    """Sum of normalise(F), and its gradient with respect to F."""
    Z, t, r = normalize(F, norm_epsilon)
    return float(Z.sum()), backward_in_place(np.ones_like(Z), Z, t, r)
