r"""Losses and gradients of several filter problems at once, each path chosen by what it costs.

**The joint loss** is that of periodic sparse filtering, and of sparse filtering:

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

**The blockwise loss** is the one that the authors' released code minimizes:

.. math::

    L(W) = \sum_{ij} Z_{ij} - \sum_c \lambda_c \sum_{ij} Z^{(c)}_{ij}
           + \tfrac{\alpha}{2} \lVert W \rVert^2,
    \qquad Z^{(c)} = \text{normalize}(F[\text{rows of class } c, \text{features of group } c])

It differs from the loss printed in the paper (`_psf_loss`): each rewarded block is
normalized again, on its own rows and columns, instead of being taken from Z. With one
feature per class each block is constant except for ``norm_epsilon``: without it the labels do
nothing, and with the released 1e-8 they act only through rows whose feature is near zero.

There are C + 1 normalizations here, each with a constant upstream gradient: :math:`-\lambda_c`
for the block of class c, and 1 for all rows and filters, which comes last.

References
----------
F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
Algorithm 1. J. Ngiam et al., "Sparse filtering", NIPS 2011.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from covshift.kernels import compiled
from covshift.kernels.activations_and_norms import Activation, half_angle_is_cheaper, inverse_roots
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray, Rows
from covshift.kernels.filter_passes import (
    ActivationRule,
    FilterLoss,
    RowFactors,
    gram_matrix,
    one_pass,
    three_passes,
)
from covshift.kernels.row_blocks import (
    Block,
    Run,
    blocks_of_problems,
    cut_into_blocks,
    rooms,
    sort_by_class,
)


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


def _psf_loss(groups: BoolArray, label_reward: FloatArray, norm_epsilon: float) -> FilterLoss:
    """Return the filter loss above, unpenalized, for groups (K, C, L) and lambda (K, C)."""
    upstream = _upstream_gradients(groups, label_reward)
    norms = partial(_joint_norms, upstream=upstream, norm_epsilon=norm_epsilon)
    return FilterLoss(groups.shape[1], norms, _joint_row_factors, _joint_filter_factors, n_parts=1)


def _upstream_gradients(groups: BoolArray, label_reward: FloatArray) -> FloatArray:
    """G (K, C + 1, L) of a filter loss by class; the last is that of rows without a label."""
    K, C, L = groups.shape
    upstream = np.ones((K, C + 1, L), label_reward.dtype)
    upstream[:, :-1] -= label_reward[..., None] * groups
    return upstream


def _joint_norms(squares: FloatArray, upstream: FloatArray, norm_epsilon: float) -> JointNorms:
    """1 / t from squares (K, L, C + 1)."""
    inverse = inverse_roots(squares.sum(axis=-1) + norm_epsilon)[:, None, :]
    inverse = inverse.astype(upstream.dtype)
    return JointNorms(inverse, inverse**2, upstream, upstream * inverse, norm_epsilon)


def _joint_row_factors(
    norms: JointNorms, F: FloatArray, squares: FloatArray, block: Block
) -> RowFactors:
    """U has 1 / r at the row's class; V has q / r^2, and ones."""
    (K, _, b), p = F.shape, len(block.present)
    # over_r is in turn r^2, 1 / r and 1 / r^2: one array, since a block has many rows. A row has
    # one class, so products with the p classes present do for what else needs G of every row.
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


def _joint_filter_factors(norms: JointNorms, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A and B: A has G / t of each class; B has 1 / t^2 and s / t^3."""
    s = sums.astype(norms.inverse.dtype)
    B = np.concatenate([norms.squared, s * norms.squared * norms.inverse], axis=1)
    return norms.scaled.swapaxes(-1, -2), B.swapaxes(-1, -2)


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


def _psf_blockwise_loss(
    groups: BoolArray, label_reward: FloatArray, norm_epsilon: float
) -> FilterLoss:
    """Return the filter loss above, unpenalized, for groups (K, C, L) and lambda (K, C)."""
    ones = np.ones((len(groups), 1), label_reward.dtype)
    upstream = np.concatenate([-label_reward, ones], axis=1)[..., None]
    norms = partial(_block_norms, groups=groups, upstream=upstream, norm_epsilon=norm_epsilon)
    C = groups.shape[1]
    return FilterLoss(C, norms, _block_row_factors, _block_filter_factors, n_parts=C + 1)


def _block_norms(
    squares: FloatArray, groups: BoolArray, upstream: FloatArray, norm_epsilon: float
) -> BlockNorms:
    """1 / t of each block from squares (K, L, C + 1)."""
    members = squares.swapaxes(-1, -2).copy()
    members[:, -1] = squares.sum(axis=-1)
    inverse = inverse_roots(members + norm_epsilon)
    inverse[:, :-1] *= groups
    return BlockNorms(inverse.astype(upstream.dtype), upstream, norm_epsilon)


def _block_row_factors(
    norms: BlockNorms, F: FloatArray, squares: FloatArray, block: Block
) -> RowFactors:
    """U has 1 / r in each block of the row; V has q / r^2, and membership."""
    # A labeled row is normalized twice: among the rows of its class, by the features rewarded for
    # it, and among all rows. Hence a part for each class present, and one for everything.
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


def _block_filter_factors(norms: BlockNorms, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A and B: 1 / t of each block, 1 / t^2 and s / t^3, times its gradient."""
    inverse = norms.inverse
    signed = norms.upstream * inverse
    s = sums.astype(inverse.dtype)
    B = np.concatenate([signed * inverse, signed * s * inverse**2], axis=1)
    return signed.swapaxes(-1, -2), B.swapaxes(-1, -2)


Loss: TypeAlias = Literal["joint", "blockwise"]
LOSSES: dict[Loss, Callable[[BoolArray, FloatArray, float], FilterLoss]] = {
    "joint": _psf_loss,
    "blockwise": _psf_blockwise_loss,
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
    """Prepare the filter losses of K problems of one shape, with rewards, perhaps rows, each.

    Parameters
    ----------
    X : (n, m) rows of all problems, dense or sparse, or (K, n, m) rows of each.
    codes : (n,) or (K, n) class of each row, -1 for a row without a label.
    groups : (K, C, L) mask, the features rewarded for each class.
    label_reward : (K, C) the lambda of each class.
    loss : "joint", see `_psf_loss`; or "blockwise", see `_psf_blockwise_loss`.
    activation, epsilon, norm_epsilon : see `activations_and_norms`.
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
    gram = gram_matrix(X) if gram_pays(X.shape, _sparse(X), loss, activation, epsilon) else None
    passes = 3 if gram is None else 1
    X, codes = sort_by_class(X, np.where(codes < 0, C, codes))
    all_rows = cut_into_blocks(X, codes, K, L, passes=passes)
    rule = activation_rule(activation, epsilon, norm_epsilon, dtype)
    present: dict[str, Any] = {}

    # The solver drops problems as they converge. Rows and rewards of those that are left are cut
    # out when that happens, not at each evaluation.
    def select(which: IntArray) -> None:
        present.update(
            which=which,
            rows=all_rows if len(which) == K else blocks_of_problems(all_rows, which),
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
    r"""Add the penalties on W (K, L, m), with weights (K,) each, to filter losses and gradients.

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


def activation_rule(
    activation: Activation, epsilon: float, norm_epsilon: float, dtype: Any
) -> ActivationRule:
    """Return how a loss of filters computes activations: by compiled code, by half angles."""
    is_compiled = compiled.library() is not None
    # Without any epsilon a filter may be exactly zero everywhere, and half angles round.
    possible = activation != "abs" and epsilon + norm_epsilon > 0 and not is_compiled
    half_angle = possible and half_angle_is_cheaper(dtype)
    return ActivationRule(activation, epsilon, half_angle, is_compiled)


def _sparse(X: Rows) -> bool:
    return bool(sparse.issparse(X))


def gram_pays(
    shape: tuple[int, ...], is_sparse: bool, loss: Loss, activation: Activation, epsilon: float
) -> bool:
    """Return whether a filter loss can take the path by X'X, and saves more by it than it costs."""
    possible = loss == "joint" and activation == "abs" and epsilon > 0 and not is_sparse
    return possible and 2 * shape[-1] <= shape[-2]


# --- Whole minimizations of many small problems, in compiled code ---
#
# With few weights the solver's steps and the calls of NumPy cost more than the activations: a batch
# of 100 starts of two filters spends its time between them. Here each problem is minimized by
# itself, without going back to Python, by the solver's own rules for problems of few variables.

# Problems that one thread minimizes before it takes the next.
TOGETHER = 8


class SmallPath(NamedTuple):
    """The last iterate of a minimization, and what it went through from iteration 0."""

    W: FloatArray
    losses: list[float]
    gradient_norms: list[float]
    converged: bool


def minimize_small_filters(
    W: FloatArray,
    X: FloatArray,
    codes: IntArray,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: FloatArray,
    l1: FloatArray,
    limits: dict[str, float],
    run: Callable[[Any, Any], Iterable[Any]],
    should_stop: Callable[[], bool],
) -> list[SmallPath]:
    """Minimize the joint filter loss of K small problems from W (K, L, m), in double precision.

    Parameters
    ----------
    X, codes, groups, label_reward, activation, epsilon, norm_epsilon, alpha, l1 : as in
        `filter_losses`; dense rows.
    limits : see `compiled.minimize_small`.
    run : how parts of the problems are run.
    should_stop : asked about ten times per second whether to give up; paths then end early.

    Raises
    ------
    FloatingPointError
        If the loss or its gradient is not finite at a start.
    """
    n_classes = groups.shape[1]
    X, codes = sort_by_class(X, np.where(codes < 0, n_classes, codes))
    columns = np.ascontiguousarray(X.swapaxes(-1, -2), np.float64)
    codes = np.ascontiguousarray(codes, np.int32)
    upstream = _upstream_gradients(groups, label_reward.astype(np.float64))
    starts = W.astype(np.float64)
    alpha, l1 = alpha.astype(np.float64), l1.astype(np.float64)

    def minimize(part: slice) -> list[SmallPath]:
        own_codes = codes[part] if codes.ndim == 2 else codes
        own_columns = columns[part] if columns.ndim == 3 else columns
        shape = (len(starts[part]), W.shape[1], columns.shape[-1])
        block = compiled.describe(shape, own_codes, n_classes, activation, epsilon, norm_epsilon)
        result = compiled.minimize_small(
            block, own_columns, upstream[part], alpha[part], l1[part], starts[part],
            limits, should_stop,
        )  # fmt: skip
        return [
            SmallPath(
                result.W[k].astype(W.dtype),
                result.losses[k, :length].tolist(),
                result.gradient_norms[k, :length].tolist(),
                bool(result.converged[k]),
            )
            for k, length in enumerate(result.lengths.tolist())
        ]

    parts = [slice(first, first + TOGETHER) for first in range(0, len(W), TOGETHER)]
    return list(chain.from_iterable(run(minimize, parts)))
