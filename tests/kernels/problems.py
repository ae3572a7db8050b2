"""Small random problems for the tests of the losses."""

from functools import partial
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from covshift.kernels.activations_and_norms import ACTIVATIONS
from covshift.kernels.filter_losses import filter_loss

# The same examples in every run: a failure is the code's, not the draw's.
FIXED = settings(derandomize=True, deadline=None, max_examples=150)


joint_loss = partial(filter_loss, loss="joint")
blockwise_loss = partial(filter_loss, loss="blockwise")


class Problem(NamedTuple):
    """The arguments of a loss, in its order."""

    W: np.ndarray
    X: np.ndarray
    codes: np.ndarray | None
    groups: np.ndarray
    label_reward: np.ndarray
    activation: str
    epsilon: float
    norm_epsilon: float
    alpha: float

    def evaluate(self, loss, **changes):
        """Loss and gradient by a kernel, with some of the arguments changed."""
        arguments = self._replace(**changes)
        names = ("activation", "epsilon", "norm_epsilon", "alpha")
        return loss(*arguments[:5], **{name: getattr(arguments, name) for name in names})

    def naive(self, loss, W=None):
        """Loss by a naive twin, at these filters or at others."""
        codes = np.full(len(self.X), -1) if self.codes is None else self.codes
        return loss(self.W if W is None else W, self.X, codes, *self[3:])


@st.composite
def problems(draw, epsilons=(0.0, 1e-8, 1e-3, 0.5)):
    """Problems of any shape: masks overlap or are empty, rewards have any sign."""
    n, m, L = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    n_classes = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bits = st.lists(st.booleans(), min_size=n_classes * L, max_size=n_classes * L)
    codes = st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n).map(np.array)
    rewards = st.lists(st.floats(-2, 3), min_size=n_classes, max_size=n_classes).map(np.array)
    return Problem(
        W=draw(st.sampled_from([0.1, 1.0, 3.0])) * rng.standard_normal((L, m)),
        X=rng.standard_normal((n, m)),
        codes=draw(st.none() | codes),
        groups=np.array(draw(bits)).reshape(n_classes, L),
        label_reward=draw(rewards),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        epsilon=draw(st.sampled_from(epsilons)),
        norm_epsilon=draw(st.sampled_from([0.0, 1e-8, 1e-2])),
        alpha=draw(st.sampled_from([0.0, 0.3])),
    )


def example(n=40, m=5, L=6, **changes):
    """One ordinary problem with two classes and unlabeled rows."""
    rng = np.random.default_rng(0)
    problem = Problem(
        W=rng.standard_normal((L, m)),
        X=rng.standard_normal((n, m)),
        codes=np.arange(n) % 3 - 1,
        groups=np.arange(L) % 2 == np.arange(2)[:, None],
        label_reward=np.array([0.7, 1.9]),
        activation="sin",
        epsilon=1e-8,
        norm_epsilon=1e-8,
        alpha=0.1,
    )
    return problem._replace(**changes)


def directional_difference(loss, problem, direction, step=1e-5):
    """Slope of a kernel's own loss along a direction, by central differences."""
    ahead, _ = problem.evaluate(loss, W=problem.W + step * direction)
    behind, _ = problem.evaluate(loss, W=problem.W - step * direction)
    return (ahead - behind) / (2 * step)


def assert_close(actual, expected, tolerance):
    """Largest difference at most ``tolerance`` of the largest value (or of one)."""
    scale = max(1.0, np.abs(expected).max(initial=0))
    assert np.abs(actual - expected).max(initial=0) <= tolerance * scale
