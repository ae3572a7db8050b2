"""Whole minimisations of many small problems, in compiled code.

With few weights the solver's steps and the calls of NumPy cost more than the activations: a batch
of 100 starts of two filters spends its time between them. Here each problem is minimized by itself,
without going back to Python, by the solver's own rules for problems of few variables.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels import compiled
from covshift.kernels.activations import Activation
from covshift.kernels.arrays import BoolArray, FloatArray, IntArray
from covshift.kernels.psf_loss import upstream_gradients
from covshift.kernels.row_blocks import sort_by_class

# Problems that one thread minimizes before it takes the next.
TOGETHER = 8


class SmallPath(NamedTuple):
    """The last iterate of a minimization, and what it went through from iteration 0."""

    W: FloatArray
    losses: list[float]
    gradient_norms: list[float]
    converged: bool


def minimize_small_filters(
    W: FloatArray,
    X: FloatArray,
    codes: IntArray,
    groups: BoolArray,
    label_reward: FloatArray,
    *,
    activation: Activation,
    epsilon: float,
    norm_epsilon: float,
    alpha: FloatArray,
    l1: FloatArray,
    limits: dict[str, float],
    run: Callable[[Any, Any], Iterable[Any]],
    should_stop: Callable[[], bool],
) -> list[SmallPath]:
    """Minimize the joint loss of K problems from W (K, L, m), in double precision.

    Parameters
    ----------
    X, codes, groups, label_reward, activation, epsilon, norm_epsilon, alpha, l1 : as in
        `filter_losses`; dense rows.
    limits : see `compiled.minimize_small`.
    run : how parts of the problems are run.
    should_stop : asked about ten times per second whether to give up; paths then end early.

    Raises
    ------
    FloatingPointError
        If the loss or its gradient is not finite at a start.
    """
    n_classes = groups.shape[1]
    X, codes = sort_by_class(X, np.where(codes < 0, n_classes, codes))
    columns = np.ascontiguousarray(X.swapaxes(-1, -2), np.float64)
    codes = np.ascontiguousarray(codes, np.int32)
    upstream = upstream_gradients(groups, label_reward.astype(np.float64))
    starts = W.astype(np.float64)
    alpha, l1 = alpha.astype(np.float64), l1.astype(np.float64)

    def minimize(part: slice) -> list[SmallPath]:
        own_codes = codes[part] if codes.ndim == 2 else codes
        own_columns = columns[part] if columns.ndim == 3 else columns
        shape = (len(starts[part]), W.shape[1], columns.shape[-1])
        block = compiled.describe(shape, own_codes, n_classes, activation, epsilon, norm_epsilon)
        result = compiled.minimize_small(
            block, own_columns, upstream[part], alpha[part], l1[part], starts[part],
            limits, should_stop,
        )  # fmt: skip
        return [
            SmallPath(
                result.W[k].astype(W.dtype),
                result.losses[k, :length].tolist(),
                result.gradient_norms[k, :length].tolist(),
                bool(result.converged[k]),
            )
            for k, length in enumerate(result.lengths.tolist())
        ]

    parts = [slice(first, first + TOGETHER) for first in range(0, len(W), TOGETHER)]
    return list(chain.from_iterable(run(minimize, parts)))
