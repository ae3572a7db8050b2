r"""L-BFGS on several problems at once, each with its own state, line search and whole path.

Every round evaluates all problems in one call, each at its own next step, whether that begins
an iteration or goes on with a line search. What happens to one problem does not depend on the
others. Finished problems leave the batch.

Arrays may come from any library that follows the array API standard.

References
----------
J. Nocedal, S. J. Wright, "Numerical optimization", 2006, algorithms 7.4 and 3.5.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from covshift.solvers.curvature import Curvature
from covshift.solvers.dense_curvature import DenseCurvature
from covshift.solvers.line_search import begin_search, judge_steps, narrow
from covshift.solvers.namespaces import (
    dot,
    namespace_of,
    pick_rows,
    put_rows,
    scale_rows,
    take_rows,
)

Array: TypeAlias = Any
# (k, ...) iterates of the problems at these (k,) positions -> losses (k,), gradients (k, ...)
LossesAndGradients: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]

# Problems of so few variables keep their whole inverse Hessian.
MAX_DENSE = 40


@dataclass
class Path:
    """What one minimisation went through, from iteration 0, and the iterate it kept."""

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


# What is not finite is looked for where it matters.
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
    r"""Minimise from each of ``starts``; keep the last iterate, or that of smallest ``distance``.

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

    def evaluate(x: Array, which: Array) -> tuple[Array, Array]:
        losses, gradients = losses_and_gradients(xp.reshape(x, (-1, *shape)), which)
        return losses, xp.reshape(gradients, x.shape)

    def record(which: Array, x: Array, losses: Array, gradients: Array) -> Array:
        """Note the iterates of these problems; return the norms of their gradients."""
        norms = xp.max(xp.abs(gradients), axis=1)
        noted = zip(_plain(which), _plain(losses), _plain(norms), strict=True)
        for row, (position, loss, norm) in enumerate(noted):
            path = paths[position]
            path.losses.append(loss)
            path.gradient_norms.append(norm)
            if distance is not None:
                iterate = _copy_of(x[row, ...], shape)
                path.distances.append(distance(position, iterate))
                if path.distances[-1] < min(path.distances[:-1], default=float("inf")):
                    path.x, path.loss, path.iteration = iterate, loss, path.n_iter
            if progress is not None:
                progress(position, path.n_iter, loss, norm)
        return norms

    which, x = xp.arange(K), xp.reshape(starts, (K, -1))
    losses, gradients = evaluate(x, which)
    if not bool(xp.all(xp.isfinite(losses)) & xp.all(xp.isfinite(gradients))):
        raise FloatingPointError("the loss or its gradient is not finite at the start")
    converged = record(which, x, losses, gradients) <= tol
    iterations = xp.zeros_like(which)
    ended = converged | (iterations >= max_iter)
    curvature = DenseCurvature(x) if x.shape[1] <= MAX_DENSE else Curvature(x)
    directions, slopes = -gradients, -dot(gradients, gradients)
    # Nothing is known of the scale yet: move by one at most.
    first_steps = xp.where(slopes < -1, 1 / xp.sqrt(-slopes), xp.ones_like(slopes))
    search = begin_search(losses, slopes, first_steps)
    while True:
        if bool(xp.any(ended)):
            for row in range(which.shape[0]):
                if bool(ended[row]):
                    path = paths[int(which[row])]
                    path.converged = bool(converged[row])
                    if distance is None:
                        path.x = _copy_of(x[row, ...], shape)
                        path.loss, path.iteration = path.losses[-1], path.n_iter
            going = xp.nonzero(~ended)[0]
            which, x, losses, gradients, directions, iterations = take_rows(
                (which, x, losses, gradients, directions, iterations), going
            )
            search = take_rows(search, going)
            curvature.keep(going)
        if which.shape[0] == 0:
            return paths

        trial = x + scale_rows(search.step, directions)
        f, g = evaluate(trial, which)
        d = dot(g, directions)
        verdict = judge_steps(search, f, d, precision)
        # Where no step lowers the loss there is no iterate to record: a minimum looks like
        # that in working precision, and so does a loss that is not finite nearby.
        converged = verdict.failed & xp.isfinite(f)
        ended = verdict.failed
        if not bool(xp.all(verdict.accepted)):
            search = narrow(search, verdict, f, d)
        rows = xp.nonzero(verdict.accepted)[0]
        if rows.shape[0] > 0:
            before = take_rows((x, losses, gradients), rows)
            now = take_rows((trial, f, g), rows)
            curvature.add(rows, now[0] - before[0], now[2] - before[2])
            x, losses, gradients = (
                put_rows(*arguments)
                for arguments in zip((x, losses, gradients), (rows,) * 3, now, strict=True)
            )
            iterations = put_rows(iterations, rows, pick_rows(iterations, rows) + 1)
            norms = record(pick_rows(which, rows), *now)
            scale = xp.where(xp.abs(before[1]) > 1, xp.abs(before[1]), xp.ones_like(before[1]))
            done = (norms <= tol) | (before[1] - now[1] <= 10 * precision * scale)
            converged = put_rows(converged, rows, done)
            new = curvature.directions(rows, now[2])
            slopes = dot(new, now[2])
            uphill = ~(slopes < 0)  # by rounding
            if bool(xp.any(uphill)):
                curvature.forget(rows[uphill])
                new = xp.where(uphill[:, None], -now[2], new)
                slopes = xp.where(uphill, -dot(now[2], now[2]), slopes)
            directions = put_rows(directions, rows, new)
            begun = begin_search(now[1], slopes, xp.ones_like(slopes))
            search = type(search)(
                *(put_rows(old, rows, fresh) for old, fresh in zip(search, begun, strict=True))
            )
            ended = ended | converged | (iterations >= max_iter)
        if should_stop is not None and should_stop():
            ended = xp.ones_like(ended)


def _plain(numbers: Array) -> list[Any]:
    """An array of one axis as Python's numbers."""
    if isinstance(numbers, np.ndarray):
        plain: list[Any] = numbers.tolist()
        return plain
    return [numbers[row].__index__() if numbers.dtype == namespace_of(numbers).int64
            else float(numbers[row]) for row in range(numbers.shape[0])]  # fmt: skip


def _copy_of(x: Array, shape: tuple[int, ...]) -> Array:
    xp = namespace_of(x)
    return xp.positive(xp.reshape(x, shape))
