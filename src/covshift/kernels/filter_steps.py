"""Steps on the activations of a block of rows, by NumPy or by compiled code.

`filter_passes` has the formulas, and goes through the blocks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from covshift.kernels import compiled
from covshift.kernels.activations import Activation, activate_block
from covshift.kernels.arrays import FloatArray
from covshift.kernels.row_blocks import Block, room


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
    """Compiled steps, where the rule asks for them and they are there; else those of NumPy."""
    if rule.compiled and compiled.library() is not None:
        return compiled_steps(loss, rule)
    return numpy_steps(loss, rule)


def numpy_steps(loss: FilterLoss, rule: ActivationRule) -> Steps:
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
            squares = np.square(H, out=room(scratch[0], *H.shape))
            sums[..., block.columns] += sum_by_class(squares, block.classes)

    def collect(norms: Norms, block: Block, F: FloatArray, scratch: FloatArray) -> RowFactors:
        squares = np.square(F, out=room(scratch[0], *F.shape))
        return loss.row_factors(norms, F, squares, block)

    def descend(
        factors: Any, part: RowFactors, block: Block, F: FloatArray, slopes: FloatArray,
        scratch: FloatArray,
    ) -> FloatArray:  # fmt: skip
        (A, B), (of_A, of_B) = factors, part.columns
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


def compiled_steps(loss: FilterLoss, rule: ActivationRule) -> Steps:
    """Return the steps by compiled code, as far as there is any.

    The loss that normalizes blocks of classes again (`psf_blockwise_loss`) has its activations
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
        if sums is None:
            sums = np.zeros((*H.shape[:2], loss.n_classes + 1))
        compiled.activate(describe(block, H, 0.0), H, slopes, sums)

    steps = numpy_steps(loss, rule)._replace(scale=1.0, by_class=True, activate=activate)
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


def sum_by_class(squares: FloatArray, classes: FloatArray) -> FloatArray:
    """Return the sums of (K, L, b) over the rows of each class present, (K, L, p)."""
    if classes.ndim == 2:  # one product for all problems
        flat: FloatArray = squares.reshape(-1, squares.shape[-1]) @ classes.T
        return flat.reshape(*squares.shape[:2], -1)
    sums: FloatArray = squares @ classes.swapaxes(-1, -2)
    return sums
