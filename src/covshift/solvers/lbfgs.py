r"""L-BFGS on several problems at once, each with its own state, line search and whole path.

Every round evaluates all problems in one call, each at its own next step, whether that begins
an iteration or continues a line search. The result for one problem does not depend on the
others. Finished problems leave the batch.

Arrays may come from any library that follows the array API standard, and live on a device: a
round then waits for it three or four times, whatever the number of problems, and what the
paths went through is copied to the host once, at the end.

References
----------
J. Nocedal, S. J. Wright, "Numerical optimization", 2006, algorithms 7.4 and 3.5.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from covshift.solvers.curvature import Curvature, DenseCurvature
from covshift.solvers.line_search import begin_search, judge_steps, narrow
from covshift.solvers.namespaces import (
    dot,
    locate_rows,
    namespace_of,
    pick_rows,
    positions_of,
    put_entries,
    put_rows,
    scale_rows,
    take_entries,
    take_rows,
    to_numpy,
)

Array: TypeAlias = Any
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
            plain = (to_numpy(numbers).tolist() for numbers in (which, number, losses, norms))
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
            search = narrow(search, verdict, f, d)
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
        ended = zip(to_numpy(which).tolist(), to_numpy(converged).tolist(), strict=True)
        for row, (position, has_converged) in enumerate(ended):
            path = paths[position]
            path.converged = has_converged
            if keep_last:
                path.x, path.loss, path.iteration = iterates[row, ...], path.losses[-1], path.n_iter


def _join(parts: Any) -> Any:
    """Return the arrays of one axis as one array on the host."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return to_numpy(namespace_of(parts[0]).concat(parts))
