r"""Loss and gradient of filters in three passes over blocks of rows, or in one.

A filter's activations are divided by their norm over all rows, and only then each row by its own.
So nothing of the gradient is known before all rows were seen: that is why there are passes.

With activations :math:`F = g(W X^\top)` of filters :math:`j` and rows :math:`i`, every loss of
the filters is a sum of normalized activations, and its gradient with respect to F has the form

.. math::

    \frac{\partial L}{\partial F_{ji}} = \sum_a A_{ja} U_{ai} - F_{ji} \sum_e B_{je} V_{ei}

with few columns a and e: factors A and B of the filters, U and V of the rows. For one
normalization, with norms :math:`t_j = \sqrt{\sum_i F_{ji}^2 + e}` of the filters and
:math:`r_i = \sqrt{\sum_j F_{ji}^2 / t_j^2 + e}` of the rows, an upstream gradient
:math:`G_{ij} = \partial L / \partial Z_{ij}` that depends on the row's class alone, and
:math:`q_i = \sum_j G_{ij} F_{ji} / (t_j r_i)`,

.. math::

    L = \sum_i q_i, \qquad
    \frac{\partial L}{\partial F_{ji}} = \frac{G_{ij}}{t_j r_i}
    - F_{ji} \Bigl( \frac{q_i}{r_i^2 t_j^2} + \frac{s_j}{t_j^3} \Bigr), \qquad
    s_j = \sum_i \frac{G_{ij} F_{ji}}{r_i} - \frac{1}{t_j} \sum_i \frac{q_i}{r_i^2} F_{ji}^2.

Hence the passes: activations and their squared norms, by class; then the factors; then
:math:`\partial L / \partial W = (\partial L / \partial F \odot g'(W X^\top)) X`. All sums are
products of matrices; no array of rows by filters is made beside F and g', which are kept
between the passes while they are small and computed anew where they are not.

**One pass.** For :math:`g(h) = \sqrt{h^2 + \epsilon}` activations and slopes undo each other,
:math:`g(h)\,g'(h) = h`. So with the Gram matrix :math:`C = X^\top X`, computed once for all
evaluations, both what the first of the three passes is for and the term that needs a sum over all
rows are known without looking at a row:

.. math::

    t_j^2 = w_j^\top C w_j + n \epsilon + e, \qquad
    \sum_i \frac{s_j}{t_j^3} F_{ji}\, g'(h_{ji})\, x_i = \frac{s_j}{t_j^3} C w_j .

The squares in C lose digits where a filter is nearly orthogonal to rows far from the origin;
`is_accurate` says where. In memory it is 1.0 to 1.1 times as fast as three passes; it stays because
other rounding would lead fits of sparse filtering to other minima. Over a stream, where Gram
matrices serve as well (`filter_streams`), it saves one of two passes.
"""

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.filter_steps import ActivationRule, FilterLoss, RowFactors, choose_steps
from covshift.kernels.row_blocks import Block, BlockedRows, Lane, Run, project, project_back, room

# Largest accepted ratio of what is summed in w'Cw, all signs positive, to its value: three or
# four of sixteen digits. Rows around the origin have about the number of features.
MAX_CANCELLATION = 5e3


def three_passes(
    W: FloatArray,
    rows: BlockedRows,
    loss: FilterLoss,
    rule: ActivationRule,
    *,
    run: Run = map,
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (K,) and gradients (K, L, m) at W (K, L, m)."""
    steps = choose_steps(loss, rule)
    scaled = W if steps.scale == 1 else W * W.dtype.type(steps.scale)

    def activations(
        block: Block, scratch: FloatArray, sums: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """F and g' of a block, (K, L, b), computed unless kept from the first visit."""
        buffers = scratch[2:] if block.kept is None else block.kept
        shape = (*W.shape[:2], block.rows.shape[-2])
        F, slopes = room(buffers[0], *shape), room(buffers[1], *shape)
        if sums is not None or block.kept is None:
            project(scaled, block.rows, F)
            steps.activate(block, F, slopes, scratch, sums)
        return F, slopes

    def measure(lane: Lane) -> FloatArray:
        total = np.zeros((*W.shape[:2], loss.n_classes + 1))
        with rows.scratch() as scratch:
            for block in lane.blocks:
                activations(block, scratch, total)
        return total

    def collect(lane: Lane) -> tuple[FloatArray, FloatArray, list[RowFactors]]:
        parts = []
        with rows.scratch() as scratch:
            for block in lane.blocks:
                F, _ = activations(block, scratch, None)
                parts.append(steps.collect(norms, block, F, scratch))
        return sum_in_order(p.losses for p in parts), sum_in_order(p.sums for p in parts), parts

    def descend(lane: Lane) -> FloatArray:
        gradient = np.zeros_like(W)
        with rows.scratch() as scratch:
            for block, part in zip(lane.blocks, of_lanes[lane.number], strict=True):
                F, slopes = activations(block, scratch, None)
                dH = steps.descend(factors, part, block, F, slopes, scratch)
                gradient += project_back(dH, block.rows)
        return gradient

    # First pass: norms of the filters, over all rows. Second: norms of the rows, the loss, and what
    # of the gradient is a sum over all rows. Third: the gradient, block by block.
    norms = loss.norms(sum_in_order(run(measure, rows.lanes)))
    losses, sums, of_lanes = zip(*run(collect, rows.lanes), strict=True)
    factors = steps.factors(norms, sum_in_order(sums))
    return sum_in_order(losses), sum_in_order(run(descend, rows.lanes))


def sum_in_order(terms: Any) -> Any:
    """Sum of arrays from the first to the last: rounding then never varies."""
    return reduce(add, terms)


def gram_matrix(X: FloatArray) -> FloatArray:
    """X'X in double precision, (m, m), or (K, m, m) of rows (K, n, m)."""
    X = X.astype(np.float64, copy=False)
    gram: FloatArray = np.matmul(X.swapaxes(-1, -2), X)
    return gram


def is_accurate(W: FloatArray, gram: FloatArray, squares: FloatArray) -> bool:
    """Return whether squares (K, L), the w'Cw of W (K, L, m), kept most of their digits."""
    scales = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))  # (m,) or (K, m)
    summed = np.square(np.matmul(np.abs(W), scales[..., None])[..., 0])
    return bool((summed <= MAX_CANCELLATION * squares).all())


def one_pass(
    W: FloatArray,
    rows: BlockedRows,
    loss: FilterLoss,
    rule: ActivationRule,
    gram: FloatArray,
    *,
    run: Run = map,
) -> tuple[FloatArray, FloatArray] | None:
    """Return losses (K,) and gradients (K, L, m) of `psf_loss` at W; None, where not accurate."""
    W_gram = np.matmul(W.astype(np.float64, copy=False), gram)
    squares_of_filters = np.einsum("klm,klm->kl", W_gram, W)
    if not is_accurate(W, gram, squares_of_filters):
        return None
    steps = choose_steps(loss, rule)
    norms = loss.norms(squares_of_filters[..., None] + rows.n_rows * rule.epsilon)
    # Without s, which W C takes care of.
    factors = steps.factors(norms, np.zeros((len(W), 1, W.shape[1])))

    def descend(lane: Lane) -> tuple[FloatArray, FloatArray, FloatArray]:
        losses: Any = 0.0
        sums: Any = 0.0
        gradient = np.zeros_like(W)
        with rows.scratch() as scratch:
            for block in lane.blocks:
                shape = (*W.shape[:2], block.rows.shape[-2])
                H = project(W, block.rows, room(scratch[0], *shape))
                block_losses, block_sums, dH = steps.soften(norms, factors, block, H, scratch)
                losses, sums = losses + block_losses, sums + block_sums
                gradient += project_back(dH, block.rows)
        return losses, sums, gradient

    losses, sums, gradients = zip(*run(descend, rows.lanes), strict=True)
    _, B = loss.filter_factors(norms, sum_in_order(sums))
    gradient = sum_in_order(gradients) - (B[..., 1:] * W_gram).astype(W.dtype)
    return sum_in_order(losses), gradient
