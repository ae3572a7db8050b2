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
between the passes while they are small and computed again where they are not.

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

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from covshift.kernels import compiled
from covshift.kernels.activations_and_norms import Activation, activate_block
from covshift.kernels.array_types import FloatArray
from covshift.kernels.row_blocks import Block, BlockedRows, Lane, Run, project, project_back, room

# --- Steps on the activations of a block, by NumPy or by compiled code ---


class RowFactors(NamedTuple):
    """Factors that the second pass takes from a block of b rows.

    Attributes
    ----------
    losses : (K,) sums of q.
    sums : (K, P, L) terms of s, for each of the P normalizations.
    U, V : (K, a, b) and (K, e, b), those rows of them that are not zero; compiled steps keep no
        more than 1 / r and q / r^2, (K, b).
    columns : which columns of A, and of B, those rows belong to.
    """

    losses: FloatArray
    sums: FloatArray
    U: FloatArray
    V: FloatArray
    columns: tuple[Any, Any]


Norms: TypeAlias = Any


class ActivationRule(NamedTuple):
    """How activations are computed: see `activate_block`; and by what, see `compiled`."""

    activation: Activation
    epsilon: float
    half_angle: bool
    compiled: bool = False


class FilterLoss(NamedTuple):
    """The functions in which one loss of the filters differs from another.

    Attributes
    ----------
    n_classes : C.
    norms : (K, L, C + 1) sums of F^2 over the rows of each class -> what the others need.
    row_factors : norms, F and F^2 of a block (K, L, b), the block -> `RowFactors`.
    filter_factors : norms, sums over all rows (K, P, L) -> A (K, L, a) and B (K, L, e), whose
        first half does not depend on the sums.
    n_parts : P, of which the last normalizes all rows and the others those of each class.
        One: the joint loss, whose steps are compiled.
    """

    n_classes: int
    norms: Callable[[FloatArray], Norms]
    row_factors: Callable[[Norms, FloatArray, FloatArray, Block], RowFactors]
    filter_factors: Callable[[Norms, FloatArray], tuple[FloatArray, FloatArray]]
    n_parts: int


class Steps(NamedTuple):
    """Steps on the activations of a block: one set for NumPy, one for compiled code.

    Attributes
    ----------
    scale : what W is multiplied by before the product with the rows.
    by_class : whether the rows of a block must be sorted by class.
    activate : block, H (K, L, b), slopes, scratch, sums (K, L, C + 1): overwrites H with F, and
        slopes; adds the sums of F^2 by class, if these are given.
    collect : norms, block, F, scratch -> `RowFactors`.
    factors : norms, sums over all rows (K, P, L) -> factors of the filters.
    descend : those, what was collected of the block, the block, F, slopes, scratch -> the gradient
        with respect to H.
    soften : norms, factors without sums, block, H, scratch -> losses, sums and gradient with
        respect to H except for the term with sums, of the soft absolute value.
    """

    scale: float
    by_class: bool
    activate: Callable[..., None]
    collect: Callable[..., RowFactors]
    factors: Callable[[Norms, FloatArray], Any]
    descend: Callable[..., FloatArray]
    soften: Callable[..., tuple[FloatArray, FloatArray, FloatArray]]


def choose_steps(loss: FilterLoss, rule: ActivationRule) -> Steps:
    """Compiled steps of a pass, where the rule asks for them and they are there; else NumPy's."""
    if rule.compiled and compiled.library() is not None:
        return _compiled_steps(loss, rule)
    return _numpy_steps(loss, rule)


def _numpy_steps(loss: FilterLoss, rule: ActivationRule) -> Steps:
    """Return the steps by NumPy, which are the reference."""

    def activate(
        block: Block,
        H: FloatArray,
        slopes: FloatArray,
        scratch: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        activate_block(H, slopes, rule.activation, rule.epsilon, half_angle=rule.half_angle)
        if sums is not None:
            # H holds F by now. A room is memory that was allocated once: a new array for each block
            # would be written to memory that the cache does not hold.
            squares = np.square(H, out=room(scratch[0], *H.shape))
            sums[..., block.columns] += sum_block_by_class(squares, block.classes)

    def collect(norms: Norms, block: Block, F: FloatArray, scratch: FloatArray) -> RowFactors:
        squares = np.square(F, out=room(scratch[0], *F.shape))
        return loss.row_factors(norms, F, squares, block)

    def descend(
        factors: Any, part: RowFactors, block: Block, F: FloatArray, slopes: FloatArray,
        scratch: FloatArray,
    ) -> FloatArray:  # fmt: skip
        (A, B), (of_A, of_B) = factors, part.columns
        # A U - F (B V), times g', from the inside out: both products are of thin matrices, one
        # column for each class, so that they cost little beside those with the rows.
        curved = np.matmul(B[..., of_B], part.V, out=room(scratch[0], *F.shape))
        curved *= F
        dH = np.matmul(A[..., of_A], part.U, out=room(scratch[1], *F.shape))
        dH -= curved
        dH *= slopes
        return dH

    def soften(
        norms: Norms, factors: Any, block: Block, H: FloatArray, scratch: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        A, B = factors
        # g' = h / g here, so (A U - F (B V)) g' = (A U / F - B V) h: no array of slopes is made.
        # Of B V only the first term: that with s is known after all blocks, and `one_pass` adds it.
        squares = np.square(H, out=room(scratch[1], *H.shape))
        squares += rule.epsilon
        F = np.sqrt(squares, out=room(scratch[2], *H.shape))
        part = loss.row_factors(norms, F, squares, block)
        dH = np.matmul(A[..., part.columns[0]], part.U, out=squares)
        dH /= F
        dH -= np.matmul(B[..., :1], part.V[:, :1], out=F)
        dH *= H
        return part.losses, part.sums, dH

    scale = 0.5 if rule.half_angle else 1.0
    return Steps(scale, False, activate, collect, loss.filter_factors, descend, soften)


def _compiled_steps(loss: FilterLoss, rule: ActivationRule) -> Steps:
    """Return the steps by compiled code, as far as there is any.

    The loss that normalizes blocks of classes again (`_psf_blockwise_loss`) has its activations
    alone computed so.
    """

    def describe(block: Block, F: FloatArray, norm_epsilon: float) -> Any:
        return compiled.describe(
            F.shape, block.codes, loss.n_classes, rule.activation, rule.epsilon, norm_epsilon
        )

    def activate(
        block: Block,
        H: FloatArray,
        slopes: FloatArray,
        scratch: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        if sums is None:  # the C code adds them in any case; here they are thrown away
            sums = np.zeros((*H.shape[:2], loss.n_classes + 1))
        compiled.activate(describe(block, H, 0.0), H, slopes, sums)

    # The C code goes through runs of rows of one class, hence sorted blocks, and has its own sine:
    # W is not halved for a tangent.
    steps = _numpy_steps(loss, rule)._replace(scale=1.0, by_class=True, activate=activate)
    if loss.n_parts > 1:
        return steps

    def collect(norms: Norms, block: Block, F: FloatArray, scratch: FloatArray) -> RowFactors:
        K, L, b = F.shape
        U, V = np.empty((2, K, b), F.dtype)
        losses, sums = np.zeros(K), np.zeros((K, 1, L))
        described = describe(block, F, norms.norm_epsilon)
        compiled.collect(described, norms.inverse, norms.upstream, F, U, V, losses, sums)
        return RowFactors(losses, sums, U, V, (None, None))

    def factors(norms: Norms, sums: FloatArray) -> Any:
        return norms, sums.astype(norms.inverse.dtype)

    def descend(
        factors: Any, part: RowFactors, block: Block, F: FloatArray, slopes: FloatArray,
        scratch: FloatArray,
    ) -> FloatArray:  # fmt: skip
        norms, sums = factors
        dH = room(scratch[1], *F.shape)
        described = describe(block, F, norms.norm_epsilon)
        compiled.descend(
            described, norms.inverse, norms.upstream, sums, F, slopes, part.U, part.V, dH
        )
        return dH

    def soften(
        norms: Norms, factors: Any, block: Block, H: FloatArray, scratch: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        K, L, _ = H.shape
        losses, sums = np.zeros(K), np.zeros((K, 1, L))
        described = describe(block, H, norms.norm_epsilon)
        compiled.soft_pass(described, norms.inverse, norms.upstream, H, losses, sums)
        return losses, sums, H

    return steps._replace(collect=collect, factors=factors, descend=descend, soften=soften)


def sum_block_by_class(squares: FloatArray, classes: FloatArray) -> FloatArray:
    """Return sums, within a pass, of a block (K, L, b) over each class present, (K, L, p)."""
    if classes.ndim == 2:  # one product for all problems
        flat: FloatArray = squares.reshape(-1, squares.shape[-1]) @ classes.T
        return flat.reshape(*squares.shape[:2], -1)
    sums: FloatArray = squares @ classes.swapaxes(-1, -2)
    return sums


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
    """Return losses (K,), gradients (K, L, m) of filters W, in three passes over blocks of rows."""
    steps = choose_steps(loss, rule)
    scaled = W if steps.scale == 1 else W * W.dtype.type(steps.scale)

    def activations(
        block: Block, scratch: FloatArray, sums: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """F and g' of a block, (K, L, b), computed unless kept from the first visit."""
        # Blocks keep F and g' from the first pass on while all of them together are small. Others
        # get the thread's scratch, which the next block overwrites, and compute them in each pass.
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
        return _sum_in_order(p.losses for p in parts), _sum_in_order(p.sums for p in parts), parts

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
    norms = loss.norms(_sum_in_order(run(measure, rows.lanes)))
    losses, sums, of_lanes = zip(*run(collect, rows.lanes), strict=True)
    factors = steps.factors(norms, _sum_in_order(sums))
    return _sum_in_order(losses), _sum_in_order(run(descend, rows.lanes))


def _sum_in_order(terms: Any) -> Any:
    """Sum of arrays from the first to the last: rounding then never varies."""
    return reduce(add, terms)


def gram_matrix(X: FloatArray) -> FloatArray:
    """X'X of a pass in double precision, (m, m), or (K, m, m) of rows (K, n, m)."""
    X = X.astype(np.float64, copy=False)
    gram: FloatArray = np.matmul(X.swapaxes(-1, -2), X)
    return gram


def is_accurate(W: FloatArray, gram: FloatArray, squares: FloatArray) -> bool:
    """Return whether a pass was accurate: squares (K, L), w'Cw of W, kept most of their digits."""
    # |C_ab| is at most the root of C_aa C_bb. So this is what w'Cw would be if no term of it took
    # anything away from another; a value far below it is a small difference of large numbers.
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
    """Return losses and gradients of filters W in one pass over rows; None, where not accurate."""
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
    # Only now s is known; its part of the gradient needs no row, just W C.
    _, B = loss.filter_factors(norms, _sum_in_order(sums))
    gradient = _sum_in_order(gradients) - (B[..., 1:] * W_gram).astype(W.dtype)
    return _sum_in_order(losses), gradient
