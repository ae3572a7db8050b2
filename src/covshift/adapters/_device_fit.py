"""Losses of filter problems whose rows live on a device, and what batches of them are made of."""

import hashlib
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.kernels.device_filters import DeviceProblems, Passes, device_losses, eager_passes
from covshift.kernels.filter_losses import Losses
from covshift.solvers.array_api import namespace_of
from covshift.solvers.lbfgs import MAX_DENSE
from covshift.streams.device_rows import float_type, is_tensor, put_beside

# Activations evaluated together: arrays of a gigabyte in single precision.
BATCH_ACTIVATIONS = 2**28


def device_kind(problem: Any) -> tuple[Any, ...]:
    """Key of problems on a device that can be evaluated together.

    Numbers of filters may differ: the smaller problems are padded. Those of few variables keep
    to themselves, for the solver keeps their whole inverse Hessian. A cosine is a sine with
    another phase.
    """
    filter_ = problem.filter_
    curve = "abs" if filter_.activation == "abs" else "periodic"
    evaluation = (filter_._loss_name(), curve, filter_.epsilon, filter_.norm_epsilon)
    C, L = problem.reward.groups.shape
    codes = problem.reward.codes
    labels = None if codes is None else hashlib.sha256(codes).digest()
    small = L if L * problem.X.shape[1] <= MAX_DENSE else None
    return ("device", id(problem.X), C, labels, small, *evaluation)


def hold_the_same(X: Any, other: Any) -> bool:
    """Whether two arrays of one shape are equal, in one place."""
    if X.dtype != other.dtype or X.device != other.device:
        return False
    return bool(namespace_of(X).all(other == X))


def pad_starts(starts: Sequence[FloatArray], X: Any) -> Any:
    """Filters (K, L, m) beside X, from arrays of up to L filters."""
    L = max(len(start) for start in starts)
    padded = np.zeros((len(starts), L, X.shape[1]), float_type(X))
    for row, start in enumerate(starts):
        padded[row, : len(start)] = start
    return put_beside(padded, X)


def device_batch_losses(problems: Sequence[Any], n_filters: int) -> Losses:
    """The losses of problems on the same rows, padded to ``n_filters`` each."""
    first, X = problems[0], problems[0].X
    filter_, dtype = first.filter_, float_type(X)
    C = first.reward.groups.shape[0]
    groups = np.zeros((len(problems), C, n_filters), dtype=bool)
    there = np.zeros((len(problems), n_filters), dtype=bool)
    for row, problem in enumerate(problems):
        L = problem.reward.groups.shape[1]
        groups[row, :, :L], there[row, :L] = problem.reward.groups, True
    codes = first.reward.codes
    codes = np.full(X.shape[0], C) if codes is None else np.where(codes < 0, C, codes)
    label_reward = np.stack([problem.reward.label_reward for problem in problems])
    alpha = np.array([problem.filter_.alpha for problem in problems])
    activations = [problem.filter_.activation for problem in problems]
    phase = np.where(np.array(activations) == "cos", np.pi / 2, 0.0)
    numbers = (label_reward.astype(dtype), there, alpha.astype(dtype), phase.astype(dtype))
    arrays = (codes, groups, *numbers)
    xp = namespace_of(X)
    passes = _choose_passes(
        X, n_filters, filter_._loss_name(),
        activation=activations[0] if len(set(activations)) == 1 else "periodic",
        epsilon=filter_.epsilon, norm_epsilon=filter_.norm_epsilon,
    )  # fmt: skip
    on_device = DeviceProblems(X, *(put_beside(array, X) for array in arrays))
    return device_losses(on_device, passes, xp)


def _choose_passes(X: Any, n_filters: int, loss: str, **how: Any) -> Passes:
    """Fused kernels where there are any for this, eager operations elsewhere."""
    xp = namespace_of(X)
    fused = _fused_filters(X.device) if is_tensor(X) and X.is_cuda else None
    if fused is not None and fused.takes(X, n_filters, loss):
        return fused.fused_passes(**how, xp=xp)
    return eager_passes(loss, **how, xp=xp)


@cache
def _fused_filters(device: Any) -> Any:
    """The module of the fused kernels, if Triton is there and can compile."""
    try:
        from covshift.kernels import fused_filters
    except ImportError:
        return None
    try:
        fused_filters.try_out(device)
    except Exception as error:  # whatever a compiler may say
        warnings.warn(
            f"Triton cannot compile for {device} ({type(error).__name__}: {error}): the filters "
            "are evaluated by torch itself, which takes longer.",
            stacklevel=2,
        )
        return None
    return fused_filters
