r"""Representations of rows that live on a device, in eager array operations.

As `activations` and `normalization` have it, for arrays of a library ``xp`` that follows the array
API standard: :math:`F = g(X W^\top)` of shape (n, L), divided by the norms of its features, then
each row by its own norm. A norm of zero divides by one.
"""

from typing import Any, TypeAlias

from covshift.kernels.activations import Activation
from covshift.kernels.device_filters import inverse_roots_on_device

Array: TypeAlias = Any


def activations_on_device(
    X: Array, W: Array, activation: Activation, epsilon: float, xp: Any
) -> Array:
    """F (n, L) of rows X (n, m) under filters W (L, m)."""
    H = X @ W.T
    if activation == "abs":
        return xp.sqrt(H * H + epsilon)
    F = xp.sin(H) if activation == "sin" else xp.cos(H)
    F += 1 + epsilon
    return F


def squares_on_device(F: Array, xp: Any) -> Array:
    """Sum of the squares of each feature over the rows, shape (L,)."""
    # In double precision: the sum may have millions of terms.
    return xp.sum(F * F, axis=0, dtype=xp.float64)


def normalize_on_device(
    F: Array, root_means: Array, counts: Array, unit: Array, norm_epsilon: float, xp: Any
) -> Array:
    """Overwrite F (n, L) with its representation, each row under the norms of its unit.

    ``root_means`` (U, L) are over ``counts`` (U,) rows; ``unit`` (n,) says which are a row's.
    """
    squares = root_means * root_means * xp.astype(counts, F.dtype)[:, None] + norm_epsilon
    F *= xp.take(inverse_roots_on_device(squares, xp), unit, axis=0)
    F *= inverse_roots_on_device(xp.sum(F * F, axis=1, keepdims=True) + norm_epsilon, xp)
    return F
