r"""Training denoising auto-encoders: K networks of one shape at once, each as if it were alone.

.. math::

    z = f(W \tilde x + b), \qquad \hat x = g(V z + c), \qquad
    \ell = \frac{1}{n m} \sum_{i=1}^{n} \lVert \hat x_i - x_i \rVert^2

with x the clean rows, :math:`\tilde x` the noisy ones and either a V of its own or V = W' (tied
weights). f and g are "sigmoid" :math:`1 / (1 + e^{-h})` with slope :math:`f (1 - f)`, "tanh" with
slope :math:`1 - f^2`, or "linear".

One network alone would spend most of its time in calls of NumPy, not in arithmetic. So the first
axis of all arrays is the network. Samples are columns, and a bias is one more column of the
weights, which meets a row of ones: a layer is a single product, and so is its gradient. A network's
parameters are one row of ``theta`` (K, P): [W, b], then [V, c] or, tied, c alone.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from covshift.kernels.arrays import FloatArray

Squashing: TypeAlias = Literal["sigmoid", "tanh", "linear"]

# Entries per network up to which SciPy's sigmoid, one call but a slow one, is the faster. The
# rule looks at one network, so that its last bits do not depend on how many are stacked.
FEW_ENTRIES = 200
# Entries per network that are shuffled and made noisy at once. Many small batches then cost few
# calls, and the arrays still fit a processor's cache.
BLOCK_ENTRIES = 2**16
LINE_SECONDS = 2.0  # between two lines of progress


def squash(H: FloatArray, name: Squashing) -> FloatArray:
    """Overwrite H with f(H)."""
    if name == "tanh":
        np.tanh(H, out=H)
    elif name == "sigmoid" and H[:1].size <= FEW_ENTRIES:
        expit(H, out=H)
    elif name == "sigmoid":
        np.negative(H, out=H)
        with np.errstate(over="ignore"):  # infinity gives zero, as it should
            np.exp(H, out=H)
        H += 1.0
        np.reciprocal(H, out=H)
    return H


def slope(F: FloatArray, name: Squashing) -> Any:
    """F' of what `squash` returned."""
    if name == "linear":
        return 1.0
    return F * (1.0 - F) if name == "sigmoid" else 1.0 - np.square(F)


def append_ones(samples: FloatArray) -> FloatArray:
    """Add the row of ones that meets the biases: (K, m, n) to (K, m + 1, n)."""
    return np.concatenate([samples, np.ones_like(samples[:, :1])], axis=1)


class Networks:
    """K networks with m features and L codes, of which solvers see one array, ``theta`` (K, P).

    ``encoder`` (K, L, m + 1) and ``decoder`` (K, m, L + 1) are views of it. A tied decoder is a
    copy instead, which `tie` renews.
    """

    def __init__(
        self, theta: FloatArray, m: int, L: int, activation: Squashing, decoder: Squashing
    ) -> None:
        n_networks, size = len(theta), L * (m + 1)
        self.theta, self.activation, self.decoder_activation = theta, activation, decoder
        self.tied = theta.shape[1] == size + m
        self.encoder = theta[:, :size].reshape(n_networks, L, m + 1)
        self.decoder = np.empty((n_networks, m, L + 1), theta.dtype)
        if not self.tied:
            self.decoder = theta[:, size:].reshape(self.decoder.shape)
        self.tie()

    def tie(self) -> None:
        """Renew a tied decoder: V = W', and c."""
        if self.tied:
            self.decoder[:, :, :-1] = self.encoder[:, :, :-1].swapaxes(1, 2)
            self.decoder[:, :, -1] = self.theta[:, -self.decoder.shape[1] :]

    def reconstruct(self, noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Codes (K, L + 1, n), the last row ones, and output (K, m, n) of samples with ones."""
        self.tie()
        shape = (len(noisy), self.encoder.shape[1] + 1, noisy.shape[2])
        codes = np.ones(shape, noisy.dtype)
        squash(np.matmul(self.encoder, noisy, out=codes[:, :-1]), self.activation)
        return codes, squash(self.decoder @ codes, self.decoder_activation)

    def gradient(self, noisy: FloatArray, clean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient (K, P) of the loss, and residuals (K, m, n)."""
        codes, output = self.reconstruct(noisy)
        residuals = output - clean
        errors = residuals * (2.0 / (clean.shape[1] * clean.shape[2]))
        errors *= slope(output, self.decoder_activation)
        decoder = errors @ codes.swapaxes(1, 2)
        code_errors = self.decoder[:, :, :-1].swapaxes(1, 2) @ errors
        code_errors *= slope(codes[:, :-1], self.activation)
        encoder = code_errors @ noisy.swapaxes(1, 2)
        if self.tied:  # W is used twice, so its gradient is the sum of both uses
            encoder[:, :, :-1] += decoder[:, :, :-1].swapaxes(1, 2)
            decoder = decoder[:, :, -1]
        n_networks = len(encoder)
        parts = [encoder.reshape(n_networks, -1), decoder.reshape(n_networks, -1)]
        return np.concatenate(parts, axis=1), residuals


class Adam:
    r"""Adam, for the rows of a (K, P) array, each with a learning rate of its own.

    .. math::

        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, \qquad
        \theta_t = \theta_{t-1}
            - \eta \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    It keeps m / (1 - beta1) and v / (1 - beta2): the factors join the two numbers of a step,
    which saves passes over the arrays. D. P. Kingma, J. Ba, "Adam: a method for stochastic
    optimization", ICLR 2015.
    """

    BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, like: FloatArray, learning_rate: FloatArray) -> None:
        self._rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self._first, self._second = np.zeros_like(like), np.zeros_like(like)
        self._n_steps = 0

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change ``parameters`` in place by one step."""
        self._n_steps += 1
        first_weight = (1 - self.BETA1**self._n_steps) / (1 - self.BETA1)
        second_root = sqrt((1 - self.BETA2**self._n_steps) / (1 - self.BETA2))
        self._first *= self.BETA1
        self._first += gradient
        self._second *= self.BETA2
        self._second += gradient * gradient
        change = np.sqrt(self._second)
        change += self.EPSILON * second_root
        np.divide(self._first, change, out=change)
        change *= self._rate * (second_root / first_weight)
        parameters -= change


class SGD:
    r"""Gradient descent with momentum, for the rows of a (K, P) array, each with its learning rate.

    .. math:: u_t = \mu u_{t-1} + g_t, \qquad \theta_t = \theta_{t-1} - \eta u_t
    """

    def __init__(
        self, like: FloatArray, learning_rate: FloatArray, *, momentum: float = 0.0
    ) -> None:
        self._rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self._momentum, self._velocity = momentum, np.zeros_like(like)

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change ``parameters`` in place by one step."""
        self._velocity *= self._momentum
        self._velocity += gradient
        parameters -= self._velocity * self._rate


class Streams:
    """Random streams of one network, one for each use.

    The numbers do not depend on how many are prepared at once, or on the other networks.
    """

    def __init__(self, random_state: Any) -> None:
        seed = np.random.SeedSequence(check_random_state(random_state).randint(2**31 - 1))
        spawned = map(np.random.default_rng, seed.spawn(4))
        self.weights, self.order, self.noise, self.held_out = spawned


def with_noise(clean: FloatArray, rng: np.random.Generator, noise: str, level: float) -> FloatArray:
    """Return the samples (m, n) with Gaussian noise, or with entries masked by zero.

    Numbers are drawn sample by sample: the noise of one does not depend on how many follow it.
    """
    shape = clean.shape[::-1]
    if noise == "masking":
        return clean * (rng.random(shape) >= level).T
    noisy: FloatArray = rng.standard_normal(shape, dtype=clean.dtype.type).T * level
    noisy += clean
    return noisy


def noisy_batches(
    estimators: Sequence[Any], samples: Sequence[FloatArray], streams: Sequence[Streams]
) -> Iterator[tuple[FloatArray, FloatArray, bool]]:
    """Yield noisy (K, m + 1, n) and clean (K, m, n) batches, and whether one ends an epoch.

    Several short epochs are prepared at once; a long one in parts, each a whole number of batches.
    """
    first, (m, n_rows) = estimators[0], samples[0].shape
    size = min(first.batch_size, n_rows)
    room = max(BLOCK_ENTRIES // m, size)
    n_together = max(1, room // n_rows)
    width = n_together * n_rows if n_rows <= room else room // size * size
    for done in range(0, first.max_epochs, n_together):
        rows = np.tile(np.arange(n_rows), (min(n_together, first.max_epochs - done), 1))
        orders = [stream.order.permuted(rows, axis=1).ravel() for stream in streams]
        for start in range(0, rows.size, width):
            clean = np.stack(
                [
                    X[:, order[start : start + width]]
                    for X, order in zip(samples, orders, strict=True)
                ]
            )
            noisy = append_ones(clean)
            for k, (estimator, stream) in enumerate(zip(estimators, streams, strict=True)):
                noisy[k, :-1] = with_noise(
                    clean[k], stream.noise, first.noise, estimator.noise_level
                )
            position = 0
            while position < clean.shape[2]:
                left = n_rows - (start + position) % n_rows  # rows left in this epoch
                cut = np.s_[:, :, position : position + min(size, left)]
                yield noisy[cut], clean[cut], left <= size
                position += min(size, left)


def draw_networks(
    estimators: Sequence[Any], samples: Sequence[FloatArray], streams: Sequence[Streams]
) -> Networks:
    """Draw the start of each network."""
    first, m = estimators[0], len(samples[0])
    L = m if first.n_components is None else int(first.n_components)
    n_weights = m * L * (1 if first.tied else 2)
    theta = np.zeros((len(estimators), n_weights + L + m), samples[0].dtype)
    networks = Networks(theta, m, L, first.activation, first._decoder_activation())
    for k, (estimator, stream) in enumerate(zip(estimators, streams, strict=True)):
        if estimator.init == "normal":
            theta[k] = stream.weights.standard_normal(theta.shape[1])
            continue
        # Glorot and Bengio (2010): the variance of the sums is kept from layer to layer.
        bound = np.sqrt(6 / (m + L))
        networks.encoder[k, :, :-1] = stream.weights.uniform(-bound, bound, (L, m))
        if not first.tied:
            networks.decoder[k, :, :-1] = stream.weights.uniform(-bound, bound, (m, L))
    return networks


@dataclass(frozen=True)
class Trained:
    """One network after training."""

    encoder: FloatArray  # (L, m + 1)
    decoder: FloatArray  # (m, L + 1)
    losses: FloatArray
    validation_losses: FloatArray | None
    kept_epoch: int
    stopped: bool  # whether early stopping ended the training


def train(estimators: Sequence[Any], samples: Sequence[FloatArray]) -> list[Trained]:
    """Train auto-encoders that differ in seed, rates and noise, each on scaled samples (m, n)."""
    first, n_networks = estimators[0], len(estimators)
    streams = [Streams(estimator.random_state) for estimator in estimators]
    networks = draw_networks(estimators, samples, streams)
    watched = None
    if first.early_stopping:
        watched, samples = EarlyStopping.hold_out(estimators, networks, samples, streams)
    rates = np.array([estimator.learning_rate for estimator in estimators])
    solver: Adam | SGD
    if first.solver == "adam":
        solver = Adam(networks.theta, rates)
    else:
        solver = SGD(networks.theta, rates, momentum=first.momentum)
    losses: list[FloatArray] = []
    total = np.zeros(n_networks)
    progress = _Progress(estimators)
    # A loss that is not finite is looked for; NumPy need not warn of it as well.
    with np.errstate(over="ignore", invalid="ignore"):
        for noisy, clean, ends_epoch in noisy_batches(estimators, samples, streams):
            gradient, residuals = networks.gradient(noisy, clean)
            solver.step(networks.theta, gradient)
            total += np.square(residuals).sum(axis=(1, 2), dtype=np.float64)
            if not ends_epoch:
                continue
            losses.append(total / samples[0].size)
            total = np.zeros(n_networks)
            goes_on = watched is None or watched.look(networks, len(losses))
            running = np.ones(n_networks, bool) if watched is None else watched.counts
            _check_finite(estimators, losses[-1], running, len(losses))
            progress.show(losses, ended=not goes_on)
            if not goes_on:
                break
    curves = np.array(losses).reshape(-1, n_networks).T
    if watched is not None:
        return watched.results(networks, curves)
    networks.tie()
    pairs = zip(networks.encoder.copy(), networks.decoder.copy(), curves, strict=True)
    return [Trained(*pair, None, len(losses), stopped=False) for pair in pairs]


class EarlyStopping:
    """Samples that are held out, with noise that was drawn once, and the best epoch of each."""

    def __init__(
        self, networks: Networks, noisy: FloatArray, clean: FloatArray, patience: int
    ) -> None:
        n_networks = len(clean)
        self.noisy, self.clean, self.patience = noisy, clean, patience
        self.losses: list[FloatArray] = []
        self.running = np.ones(n_networks, dtype=bool)
        self.counts = self.running  # networks that ran in the last epoch
        self.n_epochs = np.zeros(n_networks, dtype=int)
        self.best, self.best_loss = networks.theta.copy(), np.full(n_networks, np.inf)
        self.best_epoch = np.zeros(n_networks, dtype=int)

    @classmethod
    def hold_out(
        cls,
        estimators: Sequence[Any],
        networks: Networks,
        samples: Sequence[FloatArray],
        streams: Sequence[Streams],
    ) -> tuple["EarlyStopping", list[FloatArray]]:
        """Split off the samples that are watched; return them and the others."""
        n_rows, first = samples[0].shape[1], estimators[0]
        if n_rows < 2:
            raise ValueError(
                "early_stopping holds rows out, which needs at least two: n_samples = 1."
            )
        n_held_out = min(max(1, round(first.validation_fraction * n_rows)), n_rows - 1)
        orders = [stream.held_out.permutation(n_rows) for stream in streams]
        shuffled = [X[:, order] for X, order in zip(samples, orders, strict=True)]
        clean = np.stack([X[:, :n_held_out] for X in shuffled])
        noisy = append_ones(clean)
        for k, (estimator, stream) in enumerate(zip(estimators, streams, strict=True)):
            noisy[k, :-1] = with_noise(
                clean[k], stream.held_out, first.noise, estimator.noise_level
            )
        others = [X[:, n_held_out:] for X in shuffled]
        return cls(networks, noisy, clean, first.patience), others

    def look(self, networks: Networks, epoch: int) -> bool:
        """Keep the best reconstruction of held-out rows; return whether any network continues."""
        errors = networks.reconstruct(self.noisy)[1] - self.clean
        losses = np.square(errors).mean(axis=(1, 2), dtype=np.float64)
        self.losses.append(losses)
        better = self.running & (losses < self.best_loss)
        np.copyto(self.best, networks.theta, where=better[:, None])
        self.best_loss[better] = losses[better]
        self.best_epoch[better] = epoch
        self.counts = self.running
        self.n_epochs[self.running] = epoch
        self.running = self.running & (epoch - self.best_epoch < self.patience)
        return bool(self.running.any())

    def results(self, networks: Networks, curves: FloatArray) -> list[Trained]:
        """Return the weights of each network at its best epoch."""
        np.copyto(networks.theta, self.best)
        networks.tie()
        validation = np.array(self.losses).reshape(-1, len(self.clean)).T
        return [
            Trained(
                networks.encoder[k].copy(),
                networks.decoder[k].copy(),
                curves[k, : self.n_epochs[k]],
                validation[k, : self.n_epochs[k]],
                int(self.best_epoch[k]),
                stopped=not self.running[k],
            )
            for k in range(len(curves))
        ]


def _check_finite(
    estimators: Sequence[Any], losses: FloatArray, running: Any, n_epochs: int
) -> None:
    diverged = np.flatnonzero(running & ~np.isfinite(losses))
    if len(diverged):
        raise ValueError(
            f"The reconstruction error is not finite after {n_epochs} epochs: the training "
            f"diverged. Lower learning_rate={estimators[diverged[0]].learning_rate!r}."
        )


class _Progress:
    """Lines about a long training: now and then, and one at its end."""

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.name, self.n = type(estimators[0]).__name__, len(estimators)
        self.verbose = max(int(estimator.verbose) for estimator in estimators)
        self.max_epochs = estimators[0].max_epochs
        self.start = self.last = time.monotonic()

    def show(self, losses: list[FloatArray], *, ended: bool) -> None:
        """Print a line if it is time for one; ``ended``: every network has stopped."""
        if not self.verbose:
            return
        now, epoch = time.monotonic(), len(losses)
        ended = ended or epoch == self.max_epochs
        if self.verbose == 1 and not ended and now < self.last + LINE_SECONDS:
            return
        self.last = now
        left = (now - self.start) * (self.max_epochs - epoch) / epoch
        networks = f" (mean of {self.n})" if self.n > 1 else ""
        ending = f"ended after {now - self.start:.1f} s" if ended else f"about {left:.0f} s left"
        print(
            f"[{self.name}] epoch {epoch} of {self.max_epochs}  loss {losses[-1].mean():.6g}"
            f"{networks}  {ending}",
            flush=True,
        )
