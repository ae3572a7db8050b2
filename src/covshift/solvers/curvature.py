"""Curvature that L-BFGS knows, for each of several problems."""

from typing import Any, TypeAlias

import numpy as np

from covshift.solvers.namespaces import (
    Places,
    cast,
    dot,
    gather,
    namespace_of,
    pick_rows,
    positions_of,
    put_at,
    put_rows,
    scale_rows,
    zeros_beside,
)

Array: TypeAlias = Any

MEMORY = 10  # pairs of steps and changes of the gradient, at most


class Curvature:
    """The last steps s of k problems, and the changes y of their gradients.

    Each problem has a ring of pairs, of which it fills one slot per iteration.
    """

    def __init__(self, x: Array) -> None:
        xp = namespace_of(x)
        n_problems, n_entries = x.shape
        # More pairs than twice the dimensions say little new.
        self.size = min(MEMORY, 2 * n_entries)
        self.steps = zeros_beside(x, (self.size, n_problems, n_entries), x.dtype)
        self.changes = zeros_beside(x, (self.size, n_problems, n_entries), x.dtype)
        # 1 / s'y; zero for a slot that is empty or of no use, which then has no effect.
        self.inverse = zeros_beside(x, (self.size, n_problems), xp.float64)
        self.newest = zeros_beside(x, (n_problems,), xp.int64) + (self.size - 1)
        # No problem has more pairs than this.
        self.most_pairs = 0

    def keep(self, rows: Array) -> None:
        """Forget the other problems."""
        self.steps = gather(self.steps, rows, axis=1)
        self.changes = gather(self.changes, rows, axis=1)
        self.inverse = gather(self.inverse, rows, axis=1)
        self.newest = gather(self.newest, rows)

    def forget(self, places: Places) -> None:
        """Begin anew with these problems."""
        for slot in range(self.size):
            nothing = 0 * gather(self.inverse[slot, ...], places.rows)
            self.inverse[slot, ...] = put_rows(self.inverse[slot, ...], places, nothing)

    def add(self, places: Places, steps: Array, changes: Array) -> None:
        """Add a pair to these problems."""
        xp = namespace_of(steps)
        product = dot(steps, changes)
        usable = product > float(xp.finfo(steps.dtype).eps) * dot(changes, changes)
        inverse = cast(usable, xp.float64) / xp.where(usable, product, xp.ones_like(product))
        slots = (gather(self.newest, places.rows) + 1) % self.size
        self.newest = put_rows(self.newest, places, slots)
        self.steps = put_at(self.steps, slots, places, steps)
        self.changes = put_at(self.changes, slots, places, changes)
        self.inverse = put_at(self.inverse, slots, places, inverse)
        self.most_pairs = min(self.size, self.most_pairs + 1)

    def directions(self, rows: Array, gradients: Array) -> Array:
        """Minus the inverse Hessian of these problems times the gradients, by two loops."""
        xp = namespace_of(gradients)
        pairs = [self._pair(rows, age) for age in range(self.most_pairs)]
        # Pairs of no use have no effect: on a device it costs less to add them than to ask.
        asks = isinstance(gradients, np.ndarray)
        if asks:
            pairs = [pair for pair in pairs if bool(xp.any(pair[2] > 0))]
        q = -gradients
        factors = []
        for steps, changes, inverse in pairs:
            factors.append(inverse * dot(steps, q))
            q = q - scale_rows(factors[-1], changes)
        if pairs:
            # The scale of the newest pair of each problem that is of use.
            scale = xp.zeros_like(pairs[0][2])
            for _, changes, inverse in pairs:
                if asks and bool(xp.all(scale > 0)):
                    break
                scale = xp.where(scale > 0, scale, inverse * dot(changes, changes))
            q = scale_rows(1 / xp.where(scale > 0, scale, xp.ones_like(scale)), q)
        for steps, changes, inverse in reversed(pairs):
            factor = factors.pop()
            q = q + scale_rows(factor - inverse * dot(changes, q), steps)
        return q

    def _pair(self, rows: Array, age: int) -> tuple[Array, Array, Array]:
        """Return the pairs that these problems added a given number of additions ago."""
        xp = namespace_of(rows)
        slots = (pick_rows(self.newest, rows) - age) % self.size
        n_problems = self.newest.shape[0]
        if isinstance(slots, np.ndarray) and rows.shape[0] == n_problems:
            first = int(slots[0])
            if (slots == first).all():  # without a copy
                return self.steps[first], self.changes[first], self.inverse[first]
        places = slots * n_problems + rows
        steps, changes, inverse = (
            gather(xp.reshape(ring, (-1, *ring.shape[2:])), places)
            for ring in (self.steps, self.changes, self.inverse)
        )
        return steps, changes, inverse


class DenseCurvature:
    r"""The whole inverse Hessians (k, p, p) of k small problems, by the formula of BFGS.

    .. math::

        H \leftarrow \Bigl(I - \frac{s y^\top}{s^\top y}\Bigr) H
        \Bigl(I - \frac{y s^\top}{s^\top y}\Bigr) + \frac{s s^\top}{s^\top y}

    which is L-BFGS that forgets nothing. For few variables it costs less than going through the
    remembered pairs, and needs fewer iterations.

    References
    ----------
    J. Nocedal, S. J. Wright, "Numerical optimization", 2006, equations 6.17 and 6.20.
    """

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
