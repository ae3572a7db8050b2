r"""Loss and gradient of filters from sums over parts of the rows, which may lie anywhere.

`filter_passes` keeps factors of every row between its passes. Here nothing of a row is kept, so
that parts of the rows may be read from a disk, or sit in other machines, and what travels is of
the size of W. The term of the gradient that needs a sum over all rows first,

.. math::

    - \frac{s_j}{t_j^3} \sum_i F_{ji}\, g'(h_{ji})\, x_i = - \frac{s_j}{t_j^3} D_j,

has a factor D that does not depend on it. So two passes suffice, each a sum over the rows:

1. :math:`\sum_i F_{ji}^2` by class, and D;
2. the loss, s, and the rest of the gradient.

They cost four products of W and the rows where three passes that keep nothing cost as many, and
two activations in place of three. For the soft absolute value :math:`F g' = h`: both sums of the
first pass follow from :math:`X^\top X` (`one_pass`), computed once, and one pass is left.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from covshift.kernels.activations_and_norms import Activation, activate
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray, Rows
from covshift.kernels.filter_losses import (
    LOSSES,
    Loss,
    Losses,
    activation_rule,
    add_penalties,
    gram_pays,
)
from covshift.kernels.filter_passes import (
    ActivationRule,
    FilterLoss,
    Norms,
    Steps,
    choose_steps,
    is_accurate,
    sum_block_by_class,
)
from covshift.kernels.row_blocks import (
    Block,
    block_width,
    make_block,
    project,
    project_back,
    room,
    sort_by_class,
    view_rows,
)

# Rows of a tile of X'X: enough for the speed of the product, few enough for the cache.
GRAM_ROWS = 4096
# A function of rows, codes (and more arguments) -> arrays, summed over all parts of the rows.
Sums: TypeAlias = Callable[..., tuple[Any, ...]]


Gram: TypeAlias = tuple[FloatArray, int]


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
    """Prepare the losses of K problems of filters whose rows (n, m) are a stream, read in parts.

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
    rule = activation_rule(activation, epsilon, norm_epsilon, dtype)
    gram: Gram | None = None
    if gram_pays(shape, is_sparse, loss, activation, epsilon):
        gram = (*sums(_sum_of_products, dtype), shape[0])

    def evaluate(W: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        problem = LOSSES[loss](groups[which], label_reward[which], norm_epsilon)
        losses, gradients = _two_passes(W, sums, problem, rule, gram)
        return add_penalties(losses, gradients, W, alpha[which], l1[which])

    return evaluate


def _two_passes(
    W: FloatArray, sums: Sums, loss: FilterLoss, rule: ActivationRule, gram: Gram | None
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (K,) and gradients (K, L, m) at W (K, L, m).

    Parameters
    ----------
    sums : calls a function of this module on every part of the rows and adds up the results.
    gram : X'X (m, m) and the number of rows, where they may take the place of the first pass.
    """
    known = None if gram is None else _first_sums_from_gram(W, gram, rule.epsilon)
    squares, D = known or sums(first_sums, W, rule, loss)
    norms = loss.norms(squares)
    losses, s, gradient = sums(_second_sums, W, rule, loss, norms)
    _, B = loss.filter_factors(norms, s)
    for part in range(loss.n_parts):  # the first half of B was in the second pass already
        gradient = gradient - B[..., loss.n_parts + part, None] * D[:, part]
    return losses, gradient.astype(W.dtype)


def first_sums(
    rows: Rows, codes: IntArray, W: FloatArray, rule: ActivationRule, loss: FilterLoss
) -> tuple[FloatArray, FloatArray]:
    """Return what the first pass over a stream sums: squared activations by class, and D.

    The last of D is of all rows; those before, if the loss has any, of the rows of each class.
    """
    squares = np.zeros((*W.shape[:2], loss.n_classes + 1))
    D = np.zeros((W.shape[0], loss.n_parts, *W.shape[1:]))
    steps = choose_steps(loss, rule)
    for block, F, slopes, _ in _activated_blocks(rows, codes, W, steps, squares):
        slopes *= F  # F g', which D sums: no further array of this size
        D[:, -1] += project_back(slopes, block.rows)
        if loss.n_parts > 1:
            for code, members in zip(block.present, block.classes, strict=True):
                if code < loss.n_classes:  # rows without a label are in the last D alone
                    D[:, code] += project_back(slopes * members, block.rows)
    return squares, D


def _first_sums_from_gram(
    W: FloatArray, gram: Gram, epsilon: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the same for the soft absolute value from X'X; None, where that loses digits."""
    products, n_rows = gram
    D = np.matmul(W.astype(np.float64, copy=False), products)
    squares = np.einsum("klm,klm->kl", D, W)
    if not is_accurate(W, products, squares):
        return None
    return squares[..., None] + n_rows * epsilon, D[:, None]


def _second_sums(
    rows: Rows,
    codes: IntArray,
    W: FloatArray,
    rule: ActivationRule,
    loss: FilterLoss,
    norms: Norms,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the losses (K,), the terms of s (K, P, L), and the gradient without D (K, L, m)."""
    steps = choose_steps(loss, rule)
    # Without the sums, which are known only after this pass: their term is the one with D.
    factors = steps.factors(norms, np.zeros((*W.shape[:1], loss.n_parts, W.shape[1])))
    losses = np.zeros(len(W))
    s = np.zeros((len(W), loss.n_parts, W.shape[1]))
    gradient = np.zeros(W.shape)
    for block, F, slopes, scratch in _activated_blocks(rows, codes, W, steps, None):
        part = steps.collect(norms, block, F, scratch)
        losses += part.losses
        s += part.sums
        dH = steps.descend(factors, part, block, F, slopes, scratch)
        gradient += project_back(dH, block.rows)
    return losses, s, gradient


def squares_by_code(
    rows: Rows,
    codes: IntArray,
    W: FloatArray,
    activation: Activation,
    epsilon: float,
    n_codes: int,
) -> tuple[FloatArray, IntArray]:
    """Return squared activations (U, L) of the rows of each code of a stream, and their numbers.

    W is (1, L, m); rows with a code of U belong to none.
    """
    squares = np.zeros((W.shape[1], n_codes + 1))
    for block, H, _ in _projected_blocks(rows, codes, W):
        F = activate(H, activation, epsilon)
        squares[:, block.columns] += sum_block_by_class(np.square(F, out=F), block.classes)[0]
    return squares[:, :-1].T, np.bincount(codes, minlength=n_codes + 1)[:-1]


def _sum_of_products(rows: Rows, codes: IntArray, dtype: Any) -> tuple[FloatArray]:
    """X'X (m, m) in double precision, of rows in this working precision."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, rows.shape[0], GRAM_ROWS):
        # Rounded to the working precision first, as the passes see them; then summed in double.
        tile = view_rows(rows, start, start + GRAM_ROWS, dtype)
        tile = tile.astype(np.float64, copy=False)
        total += tile.T @ tile
    return (total,)


def _activated_blocks(
    rows: Rows, codes: IntArray, W: FloatArray, steps: Steps, sums: FloatArray | None
) -> Iterator[tuple[Block, FloatArray, FloatArray, FloatArray]]:
    """Blocks that stay in the cache, their F and g' (K, L, b), and two buffers of that size."""
    scaled = W if steps.scale == 1 else W * W.dtype.type(steps.scale)
    for block, F, buffers in _projected_blocks(rows, codes, scaled, by_class=steps.by_class):
        slopes = room(buffers[2], *F.shape)
        steps.activate(block, F, slopes, buffers, sums)
        yield block, F, slopes, buffers


def _projected_blocks(
    rows: Rows, codes: IntArray, W: FloatArray, *, by_class: bool = False
) -> Iterator[tuple[Block, FloatArray, FloatArray]]:
    """Yield the blocks that stay in the cache, their products with W (K, L, b), and three buffers.

    ``by_class`` sorts the rows of each block by class.
    """
    n_problems, n_filters, n_features = W.shape
    n_rows = rows.shape[0]
    width = min(n_rows, block_width(n_problems * n_filters * W.dtype.itemsize, n_features))
    # Three for the caller and one for the products, made once. Every block overwrites them: what
    # is kept of a block must be copied.
    buffers = np.empty((4, n_problems * n_filters * width), W.dtype)
    factors = np.empty(0, W.dtype)
    for start in range(0, n_rows, width):
        stop = min(n_rows, start + width)
        part = view_rows(rows, start, stop, W.dtype)
        own = codes[start:stop]
        if by_class:
            part, own = sort_by_class(part, own)
        block = make_block(part, own, n_problems, W.dtype, factors)
        factors = block.factors
        H = room(buffers[3], n_problems, n_filters, stop - start)
        project(W, part, H)
        yield block, H, buffers[:3]
