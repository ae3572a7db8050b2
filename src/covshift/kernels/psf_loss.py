r"""The loss of periodic sparse filtering, and of sparse filtering, with its gradient.

.. math::

    L(W) = \sum_{ij} Z_{ij}
           - \sum_c \lambda_c \sum_{i: y_i = c} \; \sum_{j \in \text{group } c} Z_{ij}
           + \tfrac{\alpha}{2} \lVert W \rVert^2,
    \qquad Z = \text{normalise}(g(X W^\top))

Rows without a label earn no reward; without any labels, and with the soft absolute value,
this is plain sparse filtering. The reward makes the upstream gradient
:math:`G_{ij} = 1 - \lambda_c [y_i = c, j \in \text{group } c]`, which enters *before* the
backward pass through both normalisations. (The paper's appendix multiplies by
:math:`\lambda` at the end, which is not the gradient of its own loss.)

References
----------
F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
Algorithm 1. J. Ngiam et al., "Sparse filtering", NIPS 2011.
"""

import numpy as np

from covshift.kernels.activations import Activation, activate, slope_in_place
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray, Rows
from covshift.kernels.normalization import backward_in_place, normalize


def psf_loss(
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
    """Loss and gradient of the formula above.

    Parameters
    ----------
    W : (L, m) filters.
    X : (n, m) rows, dense or sparse.
    codes : (n,) class of each row, -1 for a row without a label; None: no row has one.
    groups : (C, L) mask, the features rewarded for each class.
    label_reward : (C,) the lambda of each class.
    activation, epsilon, norm_epsilon : see `activations` and `normalization`.
    alpha : weight of the penalty on W.

    Returns
    -------
    loss : float
    gradient : (L, m)
    """
    H = X @ W.T  # (n, L)
    F = activate(H, activation, epsilon)
    Z, t, r = normalize(F, norm_epsilon)
    G = upstream_gradient(Z, codes, groups, label_reward)
    loss = float(np.vdot(G, Z))
    slope = slope_in_place(H, F, activation)
    dH = backward_in_place(G, Z, t, r)
    dH *= slope
    gradient = dH.T @ X
    return add_penalty(loss, gradient, W, alpha)


def upstream_gradient(
    Z: FloatArray, codes: IntArray | None, groups: BoolArray, label_reward: FloatArray
) -> FloatArray:
    """dL/dZ, shape (n, L): one, less the reward of the row's class."""
    if codes is None:
        return np.ones_like(Z)
    # One row a class, and a last one for the unlabelled, which the code -1 picks.
    table = np.ones((len(groups) + 1, Z.shape[1]), dtype=Z.dtype)
    table[:-1] -= label_reward[:, None] * groups
    return table[codes]


def add_penalty(
    loss: float, gradient: FloatArray, W: FloatArray, alpha: float
) -> tuple[float, FloatArray]:
    """Add (alpha / 2) ||W||^2 and its gradient."""
    if alpha:
        loss += 0.5 * alpha * float(np.vdot(W, W))
        gradient += W.dtype.type(alpha) * W
    return loss, gradient
