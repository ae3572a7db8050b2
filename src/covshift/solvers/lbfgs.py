"""L-BFGS on arrays of any shape and precision, with its whole path recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Array = npt.NDArray[Any]


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


def minimize_lbfgs(
    loss_and_gradient: Callable[[Array], tuple[float, Array]],
    x0: Array,
    *,
    max_iter: int,
    tol: float,
    distance: Callable[[Array], float] | None = None,
    progress: Callable[[Path], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Path:
    r"""Minimise from ``x0`` and keep the last iterate, or the one of smallest ``distance``.

    Stops when :math:`\lVert g \rVert_\infty \le \mathrm{tol}`, when the loss no longer falls
    in working precision, or after ``max_iter`` iterations.

    Parameters
    ----------
    loss_and_gradient : function of an array shaped as ``x0``.
    x0 : start; its precision is that of every evaluation.
    max_iter : iterations of the optimiser (not evaluations); 0 only evaluates ``x0``.
    tol : tolerance on the largest entry of the gradient.
    distance : if given, evaluated at every iterate, the start included; the iterate with
        the smallest value is kept, the first of equals.
    progress : called after every iteration with the path so far.
    should_stop : asked after every iteration whether to end here.
    """
    dtype, shape = x0.dtype, x0.shape
    path = Path(x=x0, loss=np.inf)
    latest: dict[str, float] = {}

    def evaluate(flat: Array) -> tuple[float, Array]:
        loss, gradient = loss_and_gradient(flat.reshape(shape).astype(dtype, copy=False))
        latest.update(loss=loss, gradient_norm=float(np.abs(gradient).max(initial=0)))
        return loss, gradient.ravel().astype(np.float64)

    def record(flat: Array) -> None:
        # The optimiser reports an iterate right after evaluating it.
        x = flat.reshape(shape).astype(dtype)
        path.losses.append(latest["loss"])
        path.gradient_norms.append(latest["gradient_norm"])
        if distance is not None:
            path.distances.append(distance(x))
        if path.n_iter == 0 or distance is None or path.distances[-1] < min(path.distances[:-1]):
            path.x, path.loss, path.iteration = x, path.losses[-1], path.n_iter
        if progress is not None:
            progress(path)

    def after_iteration(flat: Array) -> None:
        record(flat)
        if should_stop is not None and should_stop():
            raise StopIteration  # understood by SciPy

    start = x0.ravel().astype(np.float64)
    first_loss, first_gradient = evaluate(start)
    if not (np.isfinite(first_loss) and np.isfinite(first_gradient).all()):
        raise FloatingPointError("the loss or its gradient is not finite at the start")
    record(start)
    if path.gradient_norms[0] <= tol:
        path.converged = True
    elif max_iter > 0:
        result = minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options={
                "maxiter": max_iter,
                "maxfun": np.iinfo(np.int32).max,
                "gtol": tol,
                "ftol": 10 * np.finfo(dtype).eps,
            },
        )
        # Status 1 is the iteration limit; status 2 a line search that can no longer lower
        # the loss, which is how a minimum looks in working precision, or that met a NaN.
        path.converged = result.status != 1 and np.isfinite(latest["loss"])
    return path
