r"""The whole inverse Hessian of each of several small problems, by the formula of BFGS.

.. math::

    H \leftarrow \Bigl(I - \frac{s y^\top}{s^\top y}\Bigr) H
    \Bigl(I - \frac{y s^\top}{s^\top y}\Bigr) + \frac{s s^\top}{s^\top y}

which is L-BFGS that forgets nothing. For few variables it costs less than going through the
remembered pairs, and needs fewer iterations.

References
----------
J. Nocedal, S. J. Wright, "Numerical optimization", 2006, equations 6.17 and 6.20.
"""

from typing import Any, TypeAlias

from covshift.solvers.namespaces import (
    Places,
    cast,
    dot,
    gather,
    namespace_of,
    pick_rows,
    positions_of,
    put_rows,
    scale_rows,
    zeros_beside,
)

Array: TypeAlias = Any


class DenseCurvature:
    """Inverse Hessians (k, p, p) of k problems."""

    def __init__(self, x: Array) -> None:
        n_problems, n_entries = x.shape
        entries = positions_of(x.T)
        self.identity = cast(entries[:, None] == entries[None, :], x.dtype)
        self.inverse = zeros_beside(x, (n_problems, n_entries, n_entries), x.dtype) + self.identity
        # Whether anything is known of a problem yet: its first pair sets the scale.
        self.known = x[:, 0] != x[:, 0]

    def keep(self, rows: Array) -> None:
        """Forget the other problems."""
        self.inverse = gather(self.inverse, rows)
        self.known = gather(self.known, rows)

    def forget(self, places: Places) -> None:
        """Begin anew with these problems."""
        fresh = pick_rows(self.inverse, places.rows) * 0 + self.identity
        self.inverse = put_rows(self.inverse, places, fresh)
        self.known = put_rows(self.known, places, pick_rows(self.known, places.rows) & False)

    def add(self, places: Places, steps: Array, changes: Array) -> None:
        """Learn from a step of each of these problems and the change of its gradient."""
        xp = namespace_of(steps)
        product, square = dot(steps, changes), dot(changes, changes)
        usable = product > float(xp.finfo(steps.dtype).eps) * square
        rho = cast(usable, xp.float64) / xp.where(usable, product, xp.ones_like(product))
        known, old = pick_rows(self.known, places.rows), pick_rows(self.inverse, places.rows)
        scale = xp.where(usable & ~known, product / square, xp.ones_like(product))
        old = cast(scale, old.dtype)[:, None, None] * old
        rho_ = cast(rho, old.dtype)[:, None, None]
        moved = xp.matmul(old, changes[:, :, None])[:, :, 0]  # H y
        # Half of the coefficient of s s': an outer product and its transpose then do it all.
        half = scale_rows(0.5 * (1 + rho * dot(changes, moved)), steps) - moved
        cross = half[:, :, None] * steps[:, None, :]
        transposed = steps[:, :, None] * half[:, None, :]
        new = old + rho_ * (cross + transposed)
        self.inverse = put_rows(self.inverse, places, new)
        self.known = put_rows(self.known, places, known | usable)

    def directions(self, rows: Array, gradients: Array) -> Array:
        """Minus the inverse Hessians of these problems times the gradients."""
        xp = namespace_of(gradients)
        inverse = pick_rows(self.inverse, rows)
        return -xp.matmul(inverse, gradients[:, :, None])[:, :, 0]
