r"""Loss and gradient of filters with the soft absolute value, in one pass over the rows.

For :math:`g(h) = \sqrt{h^2 + \epsilon}` activations and slopes undo each other,
:math:`g(h)\,g'(h) = h`. So with the Gram matrix :math:`C = X^\top X`, computed once for all
evaluations, both what the first of the three passes is for (`filter_passes`) and the term that
needs a sum over all rows are known without looking at a row:

.. math::

    t_j^2 = w_j^\top C w_j + n \epsilon + e, \qquad
    \sum_i \frac{s_j}{t_j^3} F_{ji}\, g'(h_{ji})\, x_i = \frac{s_j}{t_j^3} C w_j .

The squares in C lose digits where a filter is nearly orthogonal to rows far from the origin;
`is_accurate` says where.
"""

from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.filter_passes import FilterLoss, sum_in_order
from covshift.kernels.row_blocks import BlockedRows, Lane, Run, project, project_back, room

# Largest accepted ratio of what is summed in w'Cw, all signs positive, to its value: three or
# four of sixteen digits. Rows around the origin have about the number of features.
MAX_CANCELLATION = 5e3


def gram_matrix(X: FloatArray) -> FloatArray:
    """X'X in double precision, (m, m), or (K, m, m) of rows (K, n, m)."""
    X = X.astype(np.float64, copy=False)
    gram: FloatArray = np.matmul(X.swapaxes(-1, -2), X)
    return gram


def is_accurate(W: FloatArray, gram: FloatArray, squares: FloatArray) -> bool:
    """Whether squares (K, L), the w'Cw of W (K, L, m), kept most of their digits."""
    scales = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))  # (m,) or (K, m)
    summed = np.square(np.matmul(np.abs(W), scales[..., None])[..., 0])
    return bool((summed <= MAX_CANCELLATION * squares).all())


def one_pass(
    W: FloatArray,
    rows: BlockedRows,
    loss: FilterLoss,
    gram: FloatArray,
    *,
    epsilon: float,
    run: Run = map,
) -> tuple[FloatArray, FloatArray] | None:
    """Losses (K,) and gradients (K, L, m) of `psf_loss` at W; None, where not accurate."""
    W_gram = np.matmul(W.astype(np.float64, copy=False), gram)
    squares_of_filters = np.einsum("klm,klm->kl", W_gram, W)
    if not is_accurate(W, gram, squares_of_filters):
        return None
    norms = loss.norms(squares_of_filters[..., None] + rows.n_rows * epsilon)
    A, B = loss.filter_factors(norms, np.zeros((len(W), 1, W.shape[1])))
    B = B[..., :1]  # without s, which W C takes care of

    def descend(lane: Lane) -> tuple[FloatArray, FloatArray, FloatArray]:
        losses: Any = 0.0
        sums: Any = 0.0
        gradient = np.zeros_like(W)
        with rows.scratch() as scratch:
            for block in lane.blocks:
                shape = (*W.shape[:2], block.rows.shape[-2])
                H = project(W, block.rows, room(scratch[0], *shape))
                squares = np.square(H, out=room(scratch[1], *shape))
                squares += epsilon
                F = np.sqrt(squares, out=room(scratch[2], *shape))
                part = loss.row_factors(norms, F, squares, block)
                losses, sums = losses + part.losses, sums + part.sums
                dH = np.matmul(A[..., part.columns[0]], part.U, out=squares)
                dH /= F
                dH -= np.matmul(B, part.V[:, :1], out=F)
                dH *= H
                gradient += project_back(dH, block.rows)
        return losses, sums, gradient

    losses, sums, gradients = zip(*run(descend, rows.lanes), strict=True)
    _, B = loss.filter_factors(norms, sum_in_order(sums))
    gradient = sum_in_order(gradients) - (B[..., 1:] * W_gram).astype(W.dtype)
    return sum_in_order(losses), gradient
