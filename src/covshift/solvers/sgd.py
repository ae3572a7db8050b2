r"""Stochastic gradient descent, with momentum or without, for many parameter vectors at once.

.. math::

    u_t = \mu u_{t-1} + g_t, \qquad \theta_t = \theta_{t-1} - \eta u_t
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class SGD:
    """State of the descent for the rows of a (K, P) array, each with a learning rate of its own."""

    def __init__(self, like: Array, learning_rate: Array, *, momentum: float = 0.0) -> None:
        self._rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self._momentum = momentum
        self._velocity = np.zeros_like(like)
        self._scratch = np.empty_like(like)

    def step(self, parameters: Array, gradient: Array) -> None:
        """Change ``parameters`` in place by one step."""
        direction = gradient
        if self._momentum:
            direction = self._velocity
            direction *= self._momentum
            direction += gradient
        np.multiply(direction, self._rate, out=self._scratch)
        parameters -= self._scratch
