"""Minimising the loss of a filter from its starts."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from covshift.adapters._unit_norms import UnitNorms
from covshift.base import warn_nothing_to_adapt
from covshift.domains import FitDomains, Labels, pooling_units
from covshift.kernels.activations import activate
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.kernels.ks_distance import mean_ks_distance
from covshift.solvers.lbfgs import Path, minimize_lbfgs
from covshift.solvers.restarts import minimize_restarts


@dataclass(frozen=True)
class Reward:
    """What the labels add to the loss; arguments of the loss functions in `kernels`."""

    classes: Labels
    codes: IntArray | None
    groups: BoolArray
    label_reward: FloatArray

    @classmethod
    def none(cls, n_components: int) -> "Reward":
        """No labels, no reward."""
        return cls(np.array([]), None, np.zeros((0, n_components), dtype=bool), np.zeros(0))


def minimize_filters(filter_, X, domains: FitDomains, reward: Reward) -> list[Path]:
    """Minimise the loss of ``filter_``, whose parameters are checked, from all its starts."""
    loss_function = filter_._loss_function()
    label_reward = reward.label_reward.astype(X.dtype)
    window = _stopping_window(filter_, domains)
    pooling = "joint" if filter_.normalization == "joint" else filter_.pooling
    units = pooling_units(domains.sample_domain, pooling, filter_.min_domain_size)

    def loss_and_gradient(W):
        return loss_function(
            W,
            X,
            reward.codes,
            reward.groups,
            label_reward,
            activation=filter_.activation,
            epsilon=filter_.epsilon,
            norm_epsilon=filter_.norm_epsilon,
            alpha=filter_.alpha,
        )

    def distance(W):
        F = activate(X @ W.T, filter_.activation, filter_.epsilon)
        norms = UnitNorms.measure(F, units)
        Z = norms.normalize(F, domains.sample_domain, filter_.norm_epsilon)
        return mean_ks_distance(Z[domains.source], Z[domains.target])

    def minimize_from(index, start, should_stop):
        name = f"[{type(filter_).__name__}] restart {index + 1}"

        def progress(path):
            if filter_.verbose > 1:
                print(
                    f"{name}  iteration {path.n_iter}  loss {path.losses[-1]:.8g}  "
                    f"gradient {path.gradient_norms[-1]:.2e}"
                )

        # The solver looks for what is not finite; NumPy need not warn of it as well.
        with np.errstate(over="ignore", invalid="ignore"):
            path = minimize_lbfgs(
                loss_and_gradient,
                start,
                max_iter=filter_.max_iter if window is None else min(filter_.max_iter, window),
                tol=filter_.tol * X.shape[0],
                distance=None if window is None else distance,
                progress=progress,
                should_stop=should_stop,
            )
        if filter_.verbose:
            print(f"{name}: loss {path.loss:.8g} at iteration {path.iteration} of {path.n_iter}")
        return path

    starts = _draw_starts(filter_, (reward.groups.shape[1], X.shape[1]), X.dtype)
    try:
        return minimize_restarts(minimize_from, starts, filter_.n_jobs)
    except FloatingPointError:
        raise ValueError(
            f"The loss is not finite in {X.dtype} at the start: one of init, init_scale, epsilon, "
            "norm_epsilon, alpha and label_reward is too large for these rows."
        ) from None


def _stopping_window(filter_, domains: FitDomains) -> int | None:
    """Iterations in which the KS distance picks one, or None."""
    if filter_.early_stopping is None:
        return None
    if domains.has_target:
        return filter_.stopping_window
    if domains.given:
        raise ValueError(
            "early_stopping='ks' compares source with target rows, and sample_domain has no "
            "target rows (negative entries)."
        )
    warn_nothing_to_adapt(filter_, "early_stopping='ks' is ignored")
    return None


def _draw_starts(filter_, shape: tuple[int, int], dtype) -> list[FloatArray]:
    random_state = check_random_state(filter_.random_state)
    if filter_.warm_start and hasattr(filter_, "components_"):
        given, origin = filter_.components_, "warm_start: the earlier fit"
    elif isinstance(filter_.init, str):
        return [
            (filter_.init_scale * random_state.standard_normal(shape)).astype(dtype)
            for _ in range(filter_.n_restarts)
        ]
    else:
        given, origin = np.asarray(filter_.init), "init"
    if given.shape != shape:
        raise ValueError(
            f"{origin} has filters of shape {given.shape}; n_components and the number of "
            f"features ask for {shape}."
        )
    if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise ValueError(f"{origin} must hold finite numbers.")
    return [given.astype(dtype)]
