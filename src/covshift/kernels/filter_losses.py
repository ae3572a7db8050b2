r"""Losses and gradients of several filter problems at once, each path chosen by what it costs."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from covshift.kernels import compiled
from covshift.kernels.activations import Activation, half_angle_is_cheaper
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray, Rows
from covshift.kernels.filter_passes import (
    ActivationRule,
    FilterLoss,
    gram_matrix,
    one_pass,
    three_passes,
)
from covshift.kernels.filter_streams import Gram, Sums, sum_of_products, two_passes
from covshift.kernels.psf_blockwise_loss import psf_blockwise_loss
from covshift.kernels.psf_loss import psf_loss
from covshift.kernels.row_blocks import Run, cut_rows, keep_problems, sort_by_class

Loss: TypeAlias = Literal["joint", "blockwise"]
LOSSES: dict[Loss, Callable[[BoolArray, FloatArray, float], FilterLoss]] = {
    "joint": psf_loss,
    "blockwise": psf_blockwise_loss,
}
SMOOTH = 1e-8  # added to squares of weights under the root
# (k, L, m) filters of the problems named by (k,) positions -> losses (k,), gradients (k, L, m)
Losses: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]


def filter_losses(
    X: Rows,
    codes: IntArray,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    loss: Loss,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: FloatArray,
    l1: FloatArray | None = None,
    run: Run = map,
) -> Losses:
    """Prepare K problems, of one shape, that differ in their rewards and perhaps their rows.

    Parameters
    ----------
    X : (n, m) rows of all problems, dense or sparse, or (K, n, m) rows of each.
    codes : (n,) or (K, n) class of each row, -1 for a row without a label.
    groups : (K, C, L) mask, the features rewarded for each class.
    label_reward : (K, C) the lambda of each class.
    loss : "joint", see `psf_loss`, or "blockwise", see `psf_blockwise_loss`.
    activation, epsilon, norm_epsilon : see `activations` and `normalization`.
    alpha : (K,) weights of the squared penalty on W, see `add_penalties`.
    l1 : (K,) weights of the absolute penalty on W. None: zeros.
    run : how the lanes of `row_blocks` are run.

    Returns
    -------
    function of filters and of the positions of their problems, in ascending order.
    """
    K, C, L = groups.shape
    dtype = X.dtype
    label_reward, alpha = label_reward.astype(dtype), alpha.astype(dtype)
    l1 = np.zeros_like(alpha) if l1 is None else l1.astype(dtype)
    gram = gram_matrix(X) if _gram_pays(X.shape, _sparse(X), loss, activation, epsilon) else None
    passes = 3 if gram is None else 1
    X, codes = sort_by_class(X, np.where(codes < 0, C, codes))
    all_rows = cut_rows(X, codes, K, L, passes=passes)
    rule = _activation_rule(activation, epsilon, norm_epsilon, dtype)
    present: dict[str, Any] = {}

    def select(which: IntArray) -> None:
        present.update(
            which=which,
            rows=all_rows if len(which) == K else keep_problems(all_rows, which),
            loss=LOSSES[loss](groups[which], label_reward[which], norm_epsilon),
            gram=gram if gram is None or gram.ndim == 2 else gram[which],
        )

    def evaluate(W: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        if not np.array_equal(which, present["which"]):
            select(which)
        result = None
        if gram is not None:
            result = one_pass(W, present["rows"], present["loss"], rule, present["gram"], run=run)
        losses, gradients = result or three_passes(
            W, present["rows"], present["loss"], rule, run=run
        )
        return add_penalties(losses, gradients, W, alpha[which], l1[which])

    select(np.arange(K))
    return evaluate


def streamed_losses(
    sums: Sums,
    shape: tuple[int, int],
    is_sparse: bool,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    dtype: Any,
    loss: Loss,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: FloatArray,
    l1: FloatArray | None = None,
) -> Losses:
    """Prepare K problems whose rows (n, m) are passed over in parts: see `filter_streams`.

    Parameters
    ----------
    sums : calls a function on the rows and the codes of every part, with further arguments, and
        adds up what it returns. Rows without a label have code C.
    shape, is_sparse, dtype : of the rows; dtype is the working precision.
    groups, label_reward, loss, activation, epsilon, norm_epsilon, alpha, l1 : as in
        `filter_losses`.
    """
    label_reward, alpha = label_reward.astype(dtype), alpha.astype(dtype)
    l1 = np.zeros_like(alpha) if l1 is None else l1.astype(dtype)
    rule = _activation_rule(activation, epsilon, norm_epsilon, dtype)
    gram: Gram | None = None
    if _gram_pays(shape, is_sparse, loss, activation, epsilon):
        gram = (*sums(sum_of_products, dtype), shape[0])

    def evaluate(W: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        problem = LOSSES[loss](groups[which], label_reward[which], norm_epsilon)
        losses, gradients = two_passes(W, sums, problem, rule, gram)
        return add_penalties(losses, gradients, W, alpha[which], l1[which])

    return evaluate


def filter_loss(
    W: FloatArray,
    X: Rows,
    codes: IntArray | None,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    loss: Loss = "joint",
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: float,
) -> tuple[float, FloatArray]:
    """Return the loss and gradient (L, m) of one problem at W (L, m), evaluated once."""
    evaluate = filter_losses(
        X,
        np.full(X.shape[0], -1) if codes is None else codes,
        groups[None],
        label_reward[None],
        loss=loss,
        activation=activation,
        epsilon=epsilon,
        norm_epsilon=norm_epsilon,
        alpha=np.array([alpha]),
    )
    losses, gradients = evaluate(W[None], np.arange(1))
    return float(losses[0]), gradients[0]


def add_penalties(
    losses: FloatArray, gradients: FloatArray, W: FloatArray, alpha: FloatArray, l1: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Add the penalties on W (K, L, m), with weights (K,) each, to losses and gradients.

    .. math::

        \frac{\alpha}{2} \sum_{jk} W_{jk}^2 + \lambda \sum_{jk} \sqrt{W_{jk}^2 + 10^{-8}}

    The root is the absolute value, smooth at zero, which the solver needs.
    """
    if alpha.any():
        losses = losses + 0.5 * alpha * np.einsum("klm,klm->k", W, W)
        gradients = gradients + alpha[:, None, None] * W
    if l1.any():
        sizes = np.sqrt(np.square(W) + W.dtype.type(SMOOTH))
        losses = losses + l1 * sizes.sum(axis=(1, 2), dtype=np.float64)
        gradients = gradients + l1[:, None, None] * (W / sizes)
    return losses, gradients


def _activation_rule(
    activation: Activation, epsilon: float, norm_epsilon: float, dtype: Any
) -> ActivationRule:
    is_compiled = compiled.library() is not None
    # Without any epsilon a filter may be exactly zero everywhere, and half angles round.
    possible = activation != "abs" and epsilon + norm_epsilon > 0 and not is_compiled
    half_angle = possible and half_angle_is_cheaper(dtype)
    return ActivationRule(activation, epsilon, half_angle, is_compiled)


def _sparse(X: Rows) -> bool:
    return bool(sparse.issparse(X))


def _gram_pays(
    shape: tuple[int, ...], is_sparse: bool, loss: Loss, activation: Activation, epsilon: float
) -> bool:
    """Return whether X'X is possible, and saves more than it costs."""
    possible = loss == "joint" and activation == "abs" and epsilon > 0 and not is_sparse
    return possible and 2 * shape[-1] <= shape[-2]
