r"""L-BFGS on several problems at once, each with its own state, line search and whole path.

Every round evaluates all problems in one call, each at its own next step, whether that begins
an iteration or continues a line search. The result for one problem does not depend on the
others. Finished problems leave the batch.

Arrays may come from any library that follows the array API standard, and live on a device: a
round then waits for it three or four times, whatever the number of problems, and what the
paths went through is copied to the host once, at the end.

**Steps** satisfy the strong Wolfe conditions: a step a along a direction p from x is accepted when

.. math::

    f(x + a p) \le f(x) + c_1 a\, g(x)^\top p, \qquad
    \lvert g(x + a p)^\top p \rvert \le c_2 \lvert g(x)^\top p \rvert .

A step that is too short (the loss still falls steeply) becomes the lower end of a bracket, one
that is too long its upper end; the next step is the minimum of the cubic through both ends.

References
----------
J. Nocedal, S. J. Wright, "Numerical optimization", 2006, algorithms 7.4 and 3.5.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from covshift.solvers.device_arrays import (
    Places,
    cast,
    copy_to_host,
    dot,
    gather,
    locate_rows,
    namespace_of,
    pick_rows,
    positions_of,
    put_at,
    put_entries,
    put_rows,
    scale_rows,
    take_entries,
    take_rows,
    zeros_beside,
)

Array: TypeAlias = Any

# The constants of L-BFGS-B (Zhu et al., 1997) for the two conditions.
SUFFICIENT_DECREASE = 1e-3
CURVATURE = 0.9
MAX_EVALUATIONS = 20
# How close to an end of its bracket, and how far beyond the last step, the next one may be.
NEAREST, FARTHEST = 0.1, 4.0


def search_limits() -> dict[str, float]:
    """Return the constants of the L-BFGS search by name, for a solver in another language."""
    return {
        "max_evaluations": MAX_EVALUATIONS,
        "sufficient_decrease": SUFFICIENT_DECREASE,
        "curvature": CURVATURE,
        "nearest": NEAREST,
        "farthest": FARTHEST,
    }


class Search(NamedTuple):
    """Line searches of k problems; all arrays are (k,).

    The bracket of each goes from ``low`` to ``high``, which is infinite at first; f and d are
    loss and slope there, and at a step of zero.
    """

    f_start: Array
    d_start: Array
    step: Array
    low: Array
    f_low: Array
    d_low: Array
    high: Array
    f_high: Array
    d_high: Array
    evaluations: Array


class Verdict(NamedTuple):
    """Outcome of the last steps; all arrays are (k,)."""

    accepted: Array
    long: Array
    failed: Array


def begin_search(f: Array, d: Array, step: Array) -> Search:
    """Search from losses f along directions of slopes d < 0, beginning with ``step``."""
    xp = namespace_of(f)
    zero, infinite = xp.zeros_like(f), xp.full_like(f, float("inf"))
    return Search(f, d, step, zero, f, d, infinite, infinite, infinite, zero)


def judge_steps(search: Search, f: Array, d: Array, precision: float) -> Verdict:
    """Judge the last steps by the losses f and slopes d that they lead to.

    A search fails when it has no lower end but its start and has gone on for too long, or for
    so short steps that the loss could not change in working precision. Where it has one, that
    is accepted at the end.
    """
    xp = namespace_of(f)
    finite = xp.isfinite(f) & xp.isfinite(d)
    enough = search.f_start + SUFFICIENT_DECREASE * search.step * search.d_start
    decreased = (f <= enough) & (f < search.f_start)  # the second, for steps that round away
    long = ~(finite & decreased & (d <= -CURVATURE * search.d_start))
    short = ~long & (d < CURVATURE * search.d_start)
    scale = xp.where(xp.abs(search.f_start) > 1, xp.abs(search.f_start), xp.ones_like(f))
    hopeless = search.step * xp.abs(search.d_start) <= precision * scale
    given_up = (search.evaluations + 1 >= MAX_EVALUATIONS) | (long & hopeless)
    settled = search.step == search.low  # evaluated again, only to be accepted
    return Verdict(
        accepted=settled | ~(long | short),
        long=long,
        failed=given_up & long & (search.low == 0) & ~settled,
    )


def _narrow(search: Search, verdict: Verdict, f: Array, d: Array) -> Search:
    """Move an end of each bracket to the last step, and choose the next step."""
    xp = namespace_of(f)
    long = verdict.long
    low, f_low, d_low = (
        xp.where(long, old, new)
        for old, new in ((search.low, search.step), (search.f_low, f), (search.d_low, d))
    )
    high, f_high, d_high = (
        xp.where(long, new, old)
        for old, new in ((search.high, search.step), (search.f_high, f), (search.d_high, d))
    )
    step = xp.where(
        xp.isfinite(high),
        _interpolate(low, f_low, d_low, high, f_high, d_high),
        search.step + (search.step - search.low) * _growth(search.d_low, d),
    )
    evaluations = search.evaluations + 1
    step = xp.where(evaluations >= MAX_EVALUATIONS, low, step)
    return Search(
        search.f_start, search.d_start, step, low, f_low, d_low, high, f_high, d_high, evaluations
    )


def _interpolate(a: Array, f_a: Array, d_a: Array, b: Array, f_b: Array, d_b: Array) -> Array:
    """Minimum of the cubic with these values and slopes at a < b, kept away from both ends."""
    xp = namespace_of(a)
    width = b - a
    z = d_a + d_b - 3 * (f_b - f_a) / width
    under = z * z - d_a * d_b
    w = xp.sqrt(xp.where(under > 0, under, xp.zeros_like(under)))
    step = b - width * (d_b + w - z) / (d_b - d_a + 2 * w)
    step = xp.where(xp.isfinite(step), step, a + 0.5 * width)
    step = xp.where(step < a + NEAREST * width, a + NEAREST * width, step)
    return xp.where(step > b - NEAREST * width, b - NEAREST * width, step)


def _growth(d_low: Array, d: Array) -> Array:
    """Return the next move, relative to the last, that makes a linear slope zero."""
    xp = namespace_of(d)
    ratio = d / xp.where(d > d_low, d_low - d, xp.full_like(d, -1e-300))
    ratio = xp.where(ratio < 1 + NEAREST, xp.full_like(d, 1 + NEAREST), ratio)
    return xp.where(ratio > FARTHEST, xp.full_like(d, FARTHEST), ratio)


# --- Curvature that L-BFGS knows, for each of several problems ---


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
        """Begin again with these problems."""
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
        """Begin again with these problems."""
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


# (k, ...) iterates of the problems at these (k,) positions -> losses (k,), gradients (k, ...)
LossesAndGradients: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]

# Problems of so few variables keep their whole inverse Hessian.
MAX_DENSE = 40


@dataclass
class Path:
    """History of one minimization, from iteration 0, and the iterate it kept."""

    x: Array
    loss: float
    iteration: int = 0
    converged: bool = False
    losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    @property
    def n_iter(self) -> int:
        """Iterations run, the kept one or not."""
        return len(self.losses) - 1


# Values that are not finite are looked for where they matter.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def minimize_lbfgs(
    losses_and_gradients: LossesAndGradients,
    starts: Array,
    *,
    max_iter: int,
    tol: float,
    distance: Callable[[int, Array], float] | None = None,
    progress: Callable[[int, int, float, float], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Path]:
    r"""Minimize from each of ``starts``; keep the last iterate, or that of smallest ``distance``.

    A problem stops when :math:`\lVert g \rVert_\infty \le \mathrm{tol}`, when its loss no longer
    falls in working precision, or after ``max_iter`` iterations.

    Parameters
    ----------
    losses_and_gradients : function of iterates and of the positions of their problems, which
        come in ascending order; losses are in double precision.
    starts : (K, ...) first iterates; their precision is that of every evaluation.
    max_iter : iterations (not evaluations); 0 only evaluates the starts.
    tol : tolerance on the largest entry of the gradient.
    distance : if given, evaluated for every problem at every iterate, the start included; the
        iterate with the smallest value is kept, the first of equals.
    progress : called after every iteration with a problem's position, the number of the
        iteration, the loss and the largest entry of the gradient.
    should_stop : asked after every round of evaluations whether to end here.
    """
    xp = namespace_of(starts)
    K, shape = starts.shape[0], starts.shape[1:]
    precision = float(xp.finfo(starts.dtype).eps)
    paths = [Path(x=None, loss=float("inf")) for _ in range(K)]
    noted: list[tuple[Array, Array, Array]] = []  # positions, losses, norms of the gradients
    kept: list[tuple[Array, Array, Array]] = []  # positions, last iterates, whether converged

    def evaluate(x: Array, which: Array) -> tuple[Array, Array]:
        losses, gradients = losses_and_gradients(xp.reshape(x, (-1, *shape)), which)
        return losses, xp.reshape(gradients, x.shape)

    def record(which: Array, number: Array, x: Array, losses: Array, gradients: Array) -> Array:
        """Note these iterates, with their numbers; return the norms of their gradients."""
        norms = xp.max(xp.abs(gradients), axis=1)
        noted.append((which, losses, norms))
        if distance is not None or progress is not None:
            plain = (copy_to_host(numbers).tolist() for numbers in (which, number, losses, norms))
            for row, (position, iteration, loss, norm) in enumerate(zip(*plain, strict=True)):
                if distance is not None:
                    iterate = xp.positive(xp.reshape(x[row, ...], shape))
                    _keep_nearest(paths[position], iterate, loss, distance(position, iterate))
                if progress is not None:
                    progress(position, iteration, loss, norm)
        return norms

    which, x = positions_of(starts), xp.reshape(starts, (K, -1))
    iterations = xp.zeros_like(which)
    losses, gradients = evaluate(x, which)
    if not bool(xp.all(xp.isfinite(losses)) & xp.all(xp.isfinite(gradients))):
        raise FloatingPointError("the loss or its gradient is not finite at the start")
    converged = record(which, iterations, x, losses, gradients) <= tol
    ended = converged | (iterations >= max_iter)
    curvature = DenseCurvature(x) if x.shape[1] <= MAX_DENSE else Curvature(x)
    directions, slopes = -gradients, -dot(gradients, gradients)
    # Nothing is known of the scale yet: move by one at most.
    first_steps = xp.where(slopes < -1, 1 / xp.sqrt(-slopes), xp.ones_like(slopes))
    search = begin_search(losses, slopes, first_steps)
    while True:
        if bool(xp.any(ended)):
            rows = xp.nonzero(ended)[0]
            at_end = take_rows((which, x, converged), rows)
            kept.append((at_end[0], xp.positive(at_end[1]), at_end[2]))
            going = xp.nonzero(~ended)[0]
            which, x, losses, gradients, directions, iterations = take_rows(
                (which, x, losses, gradients, directions, iterations), going
            )
            search = take_entries(search, going)
            curvature.keep(going)
        if which.shape[0] == 0:
            _assemble(paths, noted, kept, shape, keep_last=distance is None)
            return paths

        trial = x + scale_rows(search.step, directions)
        f, g = evaluate(trial, which)
        d = dot(g, directions)
        verdict = judge_steps(search, f, d, precision)
        # Where no step lowers the loss there is no iterate to record: a minimum looks like
        # that in working precision, and so does a loss that is not finite nearby.
        converged = verdict.failed & xp.isfinite(f)
        ended = verdict.failed
        rows = xp.nonzero(verdict.accepted)[0]
        if rows.shape[0] < which.shape[0]:
            search = _narrow(search, verdict, f, d)
        if rows.shape[0] > 0:
            places = locate_rows(which, rows)
            before = take_rows((x, losses, gradients), rows)
            now = take_rows((trial, f, g), rows)
            curvature.add(places, now[0] - before[0], now[2] - before[2])
            x, losses, gradients = (
                put_rows(*arguments)
                for arguments in zip((x, losses, gradients), (places,) * 3, now, strict=True)
            )
            number = pick_rows(iterations, rows) + 1
            iterations = put_rows(iterations, places, number)
            norms = record(pick_rows(which, rows), number, *now)
            scale = xp.where(xp.abs(before[1]) > 1, xp.abs(before[1]), xp.ones_like(before[1]))
            done = (norms <= tol) | (before[1] - now[1] <= 10 * precision * scale)
            converged = put_rows(converged, places, done)
            new = curvature.directions(rows, now[2])
            slopes = dot(new, now[2])
            uphill = ~(slopes < 0)  # slopes that rounding made non-negative
            if bool(xp.any(uphill)):
                curvature.forget(locate_rows(which, rows[uphill]))
                new = xp.where(uphill[:, None], -now[2], new)
                slopes = xp.where(uphill, -dot(now[2], now[2]), slopes)
            directions = put_rows(directions, places, new)
            begun = begin_search(now[1], slopes, xp.ones_like(slopes))
            search = put_entries(search, places, begun)
            ended = ended | converged | (iterations >= max_iter)
        if should_stop is not None and should_stop():
            ended = xp.ones_like(ended)


def _keep_nearest(path: Path, x: Array, loss: float, distance: float) -> None:
    """Keep an iterate whose distance is below all earlier ones."""
    if distance < min(path.distances, default=float("inf")):
        path.x, path.loss, path.iteration = x, loss, len(path.distances)
    path.distances.append(distance)


def _assemble(
    paths: list[Path], noted: list[Any], kept: list[Any], shape: tuple[int, ...], *, keep_last: bool
) -> None:
    """Give each path what was noted of it, round by round, and the iterate it ended with."""
    positions, losses, norms = (_join(parts) for parts in zip(*noted, strict=True))
    order = np.argsort(positions, kind="stable")
    ends = np.cumsum(np.bincount(positions, minlength=len(paths))).tolist()
    losses, norms = losses[order].tolist(), norms[order].tolist()
    for path, start, stop in zip(paths, [0, *ends], ends, strict=False):
        path.losses, path.gradient_norms = losses[start:stop], norms[start:stop]
    for which, x, converged in kept:
        iterates = namespace_of(x).reshape(x, (-1, *shape))
        ended = zip(copy_to_host(which).tolist(), copy_to_host(converged).tolist(), strict=True)
        for row, (position, has_converged) in enumerate(ended):
            path = paths[position]
            path.converged = has_converged
            if keep_last:
                path.x, path.loss, path.iteration = iterates[row, ...], path.losses[-1], path.n_iter


def _join(parts: Any) -> Any:
    """Return the arrays of one axis as one array on the host."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return copy_to_host(namespace_of(parts[0]).concat(parts))
