r"""Adam, for many parameter vectors at once.

.. math::

    m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
    v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, \qquad
    \theta_t = \theta_{t-1}
        - \eta \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
"""

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Adam:
    """Adam's state for the rows of a (K, P) array, each with a learning rate of its own.

    It keeps M = m / (1 - beta1) and V = v / (1 - beta2): the factors join the two numbers of
    a step, which saves passes over the arrays.
    """

    def __init__(
        self,
        like: Array,
        learning_rate: Array,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        self._rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._first = np.zeros_like(like)
        self._second = np.zeros_like(like)
        self._scratch = np.empty_like(like)
        self._step_rate = np.empty_like(self._rate)
        self._n_steps = 0

    def step(self, parameters: Array, gradient: Array) -> None:
        """Change ``parameters`` in place by one step."""
        first, second, scratch = self._first, self._second, self._scratch
        self._n_steps += 1
        first_weight = (1 - self._beta1**self._n_steps) / (1 - self._beta1)
        second_root = sqrt((1 - self._beta2**self._n_steps) / (1 - self._beta2))
        first *= self._beta1
        first += gradient
        second *= self._beta2
        np.multiply(gradient, gradient, out=scratch)
        second += scratch
        np.sqrt(second, out=scratch)
        scratch += self._epsilon * second_root
        np.divide(first, scratch, out=scratch)
        np.multiply(self._rate, second_root / first_weight, out=self._step_rate)
        scratch *= self._step_rate
        parameters -= scratch
