r"""Denoising auto-encoder: codes that separate clean rows from noisy ones.

.. math::

    z = f(W \tilde x + b), \qquad \hat x = g(V z + c), \qquad
    \ell = \frac{1}{n m} \sum_{i=1}^{n} \lVert \hat x_i - x_i \rVert^2

with x the clean rows, :math:`\tilde x` the noisy ones and either a V of its own or V = W' (tied
weights). f and g are "sigmoid" :math:`1 / (1 + e^{-h})` with slope :math:`f (1 - f)`, "tanh" with
slope :math:`1 - f^2`, or "linear".

One network alone would spend most of its time in calls of NumPy, not in arithmetic. So K networks
of one shape are trained at once, each as if it were alone: the first axis of all arrays is the
network. Samples are columns, and a bias is one more column of the weights, which meets a row of
ones: a layer is a single product, and so is its gradient. A network's parameters are one row of
``theta`` (K, P): [W, b], then [V, c] or, tied, c alone. Where the compiled kernels are installed,
they take the steps of small networks.
"""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import sqrt
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from covshift.base import (
    DomainTransformer,
    TargetLearner,
    UnitAdapter,
    all_or_nothing,
    check_count,
    check_flag,
    check_number,
    check_option,
)
from covshift.domains import check_fit_domains, check_new_domains
from covshift.kernels import compiled
from covshift.kernels.array_types import FloatArray
from covshift.kernels.feature_scales import feature_variances
from covshift.shared_docs import documented_like
from covshift.solvers.threads import one_blas_thread
from covshift.streams import rows_in_memory

Squashing: TypeAlias = Literal["sigmoid", "tanh", "linear"]

# Middle and width of the range into which rows are scaled.
RANGES = {"sigmoid": (0.5, 1.0), "tanh": (0.0, 2.0)}
OPTIONS = {
    "activation": ("sigmoid", "tanh"),
    "decoder": (None, "sigmoid", "tanh", "linear"),
    "noise": ("gaussian", "masking"),
    "solver": ("adam", "sgd"),
    "scaling": ("minmax", None),
    "init": ("glorot", "normal"),
}
# Parameters that networks trained together must share; the others may differ.
SHARED = (
    "n_components", "activation", "decoder", "tied", "noise", "solver", "momentum", "batch_size",
    "max_epochs", "early_stopping", "validation_fraction", "patience",
)  # fmt: skip
# Entries per network up to which SciPy's sigmoid, one call but a slow one, is the faster. The
# rule looks at one network, so that its last bits do not depend on how many are stacked.
FEW_ENTRIES = 200
# Weights up to which a compiled step is faster than NumPy's, whose products use BLAS.
FEW_WEIGHTS = 1000
# Entries per network that are shuffled and made noisy at once. Many small batches then cost few
# calls, and the arrays still fit a processor's cache.
BLOCK_ENTRIES = 2**16
LINE_SECONDS = 2.0  # between two lines of progress


def _squash(H: FloatArray, name: Squashing) -> FloatArray:
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


def _times_slope(errors: FloatArray, F: FloatArray, name: Squashing, room: FloatArray) -> None:
    """Multiply errors by F' of what `_squash` returned; ``room`` is overwritten."""
    if name == "linear":
        return
    if name == "sigmoid":
        np.subtract(1.0, F, out=room)
        room *= F
    else:
        np.square(F, out=room)
        np.subtract(1.0, room, out=room)
    errors *= room


def append_ones(samples: FloatArray) -> FloatArray:
    """Add the row of ones that meets the biases: (K, m, n) to (K, m + 1, n)."""
    K, m, n = samples.shape
    with_ones = np.ones((K, m + 1, n), samples.dtype)
    with_ones[:, :-1] = samples
    return with_ones


class Networks:
    """K networks with m features and L codes, of which solvers see one array, ``theta`` (K, P).

    ``encoder`` (K, L, m + 1) and ``decoder`` (K, m, L + 1) are views of it. A tied decoder is a
    copy instead, which `tie` renews. Results of `reconstruct` and `gradient` are overwritten by
    the next call with as many rows.
    """

    def __init__(
        self, theta: FloatArray, m: int, L: int, activation: Squashing, decoder: Squashing
    ) -> None:
        n_networks, size = len(theta), L * (m + 1)
        self.theta, self.activation, self.decoder_activation = theta, activation, decoder
        self.tied = theta.shape[1] == size + m
        self.encoder = theta[:, :size].reshape(n_networks, L, m + 1)
        self.decoder = np.empty((n_networks, m, L + 1), theta.dtype)
        self._gradient = np.empty_like(theta)
        self._of_encoder = self._gradient[:, :size].reshape(self.encoder.shape)
        self._of_decoder = np.empty_like(self.decoder)
        if not self.tied:
            self.decoder = theta[:, size:].reshape(self.decoder.shape)
            self._of_decoder = self._gradient[:, size:].reshape(self.decoder.shape)
        self._rooms: dict[int, list[FloatArray]] = {}
        self.tie()

    def tie(self) -> None:
        """Renew a tied decoder: V = W', and c."""
        if self.tied:
            self.decoder[:, :, :-1] = self.encoder[:, :, :-1].swapaxes(1, 2)
            self.decoder[:, :, -1] = self.theta[:, -self.decoder.shape[1] :]

    def _room(self, n: int) -> list[FloatArray]:
        """Return the codes with ones (K, L + 1, n), twice (K, L, n), and four times (K, m, n)."""
        if n not in self._rooms:
            (K, m, _), L = self.decoder.shape, self.encoder.shape[1]
            shapes = [(K, L + 1, n), (K, L, n), (K, L, n), *[(K, m, n)] * 4]
            self._rooms[n] = [np.ones(shape, self.theta.dtype) for shape in shapes]
        return self._rooms[n]

    def reconstruct(self, noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Codes (K, L + 1, n), the last row ones, and output (K, m, n) of samples with ones."""
        self.tie()
        codes, _, _, output, *_ = self._room(noisy.shape[2])
        _squash(np.matmul(self.encoder, noisy, out=codes[:, :-1]), self.activation)
        return codes, _squash(np.matmul(self.decoder, codes, out=output), self.decoder_activation)

    def gradient(self, noisy: FloatArray, clean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient (K, P) of the loss, and residuals (K, m, n)."""
        codes, output = self.reconstruct(noisy)
        _, code_errors, of_codes, _, residuals, errors, of_output = self._room(noisy.shape[2])
        np.subtract(output, clean, out=residuals)
        np.multiply(residuals, 2.0 / (clean.shape[1] * clean.shape[2]), out=errors)
        _times_slope(errors, output, self.decoder_activation, of_output)
        np.matmul(errors, codes.swapaxes(1, 2), out=self._of_decoder)
        np.matmul(self.decoder[:, :, :-1].swapaxes(1, 2), errors, out=code_errors)
        _times_slope(code_errors, codes[:, :-1], self.activation, of_codes)
        np.matmul(code_errors, noisy.swapaxes(1, 2), out=self._of_encoder)
        if self.tied:  # W is used twice, so its gradient is the sum of both uses
            self._of_encoder[:, :, :-1] += self._of_decoder[:, :, :-1].swapaxes(1, 2)
            self._gradient[:, -self.decoder.shape[1] :] = self._of_decoder[:, :, -1]
        return self._gradient, residuals


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
        self.rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self.first, self.second = np.zeros_like(like), np.zeros_like(like)
        self._room = np.empty_like(like)
        self.n_steps = 0

    def numbers(self) -> dict[str, float]:
        """Return the numbers that a compiled step needs."""
        sizes = {"momentum": self.BETA1, "decay": self.BETA2, "epsilon": self.EPSILON}
        return {"adam": True, "n_steps": self.n_steps, **sizes}

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change ``parameters`` in place by one step."""
        self.n_steps += 1
        first_weight = (1 - self.BETA1**self.n_steps) / (1 - self.BETA1)
        second_root = sqrt((1 - self.BETA2**self.n_steps) / (1 - self.BETA2))
        change = self._room
        self.first *= self.BETA1
        self.first += gradient
        self.second *= self.BETA2
        self.second += np.multiply(gradient, gradient, out=change)
        np.sqrt(self.second, out=change)
        change += self.EPSILON * second_root
        np.divide(self.first, change, out=change)
        change *= self.rate * (second_root / first_weight)
        parameters -= change


class SGD:
    r"""Gradient descent with momentum, for the rows of a (K, P) array, each with its learning rate.

    .. math:: u_t = \mu u_{t-1} + g_t, \qquad \theta_t = \theta_{t-1} - \eta u_t
    """

    def __init__(
        self, like: FloatArray, learning_rate: FloatArray, *, momentum: float = 0.0
    ) -> None:
        self.rate = np.asarray(learning_rate, like.dtype).reshape(-1, 1)
        self.momentum, self.first = momentum, np.zeros_like(like)
        self.second = self.first  # of Adam only
        self.n_steps = 0

    def numbers(self) -> dict[str, float]:
        """Return the numbers that a compiled step needs."""
        sizes = {"momentum": self.momentum, "decay": 0.0, "epsilon": 0.0}
        return {"adam": False, "n_steps": self.n_steps, **sizes}

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change ``parameters`` in place by one step."""
        self.n_steps += 1
        self.first *= self.momentum
        self.first += gradient
        parameters -= self.first * self.rate


def _take_steps(
    networks: Networks,
    solver: Adam | SGD,
    noisy: FloatArray,
    clean: FloatArray,
    batch_size: int,
    total: FloatArray,
) -> None:
    """Take a step for each batch of samples; add squared errors to ``total`` (K,)."""
    if networks.theta.shape[1] <= FEW_WEIGHTS and compiled.library() is not None:
        shape = (batch_size, clean.shape[1], networks.encoder.shape[1])
        activations = (networks.activation, networks.decoder_activation)
        arrays = (solver.rate, networks.theta, solver.first, solver.second)
        compiled.train_networks(
            shape, activations, networks.tied, solver.numbers(), noisy, clean, arrays, total
        )
        solver.n_steps += -(-clean.shape[2] // batch_size)
        return
    for start in range(0, clean.shape[2], batch_size):
        batch = np.s_[:, :, start : start + batch_size]
        gradient, residuals = networks.gradient(noisy[batch], clean[batch])
        solver.step(networks.theta, gradient)
        total += np.square(residuals).sum(axis=(1, 2), dtype=np.float64)


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
    drawn = rng.standard_normal(shape, dtype=clean.dtype.type)
    drawn *= level
    noisy: FloatArray = drawn.T + clean
    return noisy


def _noisy_pairs(
    estimators: Sequence[Any], clean: FloatArray, rngs: Sequence[np.random.Generator]
) -> FloatArray:
    """Noisy samples of each network, with ones (K, m + 1, n), from clean ones (K, m, n)."""
    noisy = append_ones(clean)
    for k, (estimator, rng) in enumerate(zip(estimators, rngs, strict=True)):
        noisy[k, :-1] = with_noise(clean[k], rng, estimator.noise, estimator.noise_level)
    return noisy


def noisy_epochs(
    estimators: Sequence[Any], samples: Sequence[FloatArray], streams: Sequence[Streams]
) -> Iterator[tuple[FloatArray, FloatArray, bool]]:
    """Yield noisy (K, m + 1, n) and clean (K, m, n) samples, and whether they end an epoch.

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
            parts = [order[start : start + width] for order in orders]
            # An array that is made of a list has contiguous rows, whatever those in the list have.
            clean = np.array([X.T[part].T for X, part in zip(samples, parts, strict=True)])
            noisy = _noisy_pairs(estimators, clean, [stream.noise for stream in streams])
            for position in range(0, clean.shape[2], n_rows):
                cut = np.s_[:, :, position : position + n_rows]
                ends_epoch = (start + position + clean[cut].shape[2]) % n_rows == 0
                yield noisy[cut], clean[cut], ends_epoch


def _draw_networks(
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


def _train(estimators: Sequence[Any], samples: Sequence[FloatArray]) -> list[Trained]:
    """Train auto-encoders that differ in seed, rates and noise, each on scaled samples (m, n)."""
    first, n_networks = estimators[0], len(estimators)
    streams = [Streams(estimator.random_state) for estimator in estimators]
    networks = _draw_networks(estimators, samples, streams)
    watched = None
    if first.early_stopping:
        watched, samples = _hold_out(estimators, networks, samples, streams)
    rates = np.array([estimator.learning_rate for estimator in estimators])
    solver: Adam | SGD
    if first.solver == "adam":
        solver = Adam(networks.theta, rates)
    else:
        solver = SGD(networks.theta, rates, momentum=first.momentum)
    losses: list[FloatArray] = []
    total = np.zeros(n_networks)
    report = _Progress(estimators)
    # A loss that is not finite is looked for; NumPy need not warn of it as well.
    with np.errstate(over="ignore", invalid="ignore"):
        for noisy, clean, ends_epoch in noisy_epochs(estimators, samples, streams):
            _take_steps(networks, solver, noisy, clean, first.batch_size, total)
            if not ends_epoch:
                continue
            losses.append(total / samples[0].size)
            total[:] = 0
            goes_on = watched is None or watched.look(networks, len(losses))
            counts = True if watched is None else watched.counts
            diverged = np.flatnonzero(counts & ~np.isfinite(losses[-1]))
            if len(diverged):
                raise ValueError(
                    f"The reconstruction error is not finite after {len(losses)} epochs: the "
                    f"training diverged. Lower learning_rate={rates[diverged[0]].item()!r}."
                )
            report.show(losses, ended=not goes_on)
            if not goes_on:
                break
    curves = np.array(losses).reshape(-1, n_networks).T
    if watched is not None:
        return watched.results(networks, curves)
    networks.tie()
    pairs = zip(networks.encoder.copy(), networks.decoder.copy(), curves, strict=True)
    return [Trained(*pair, None, len(losses), stopped=False) for pair in pairs]


class EarlyStopping:
    """Held-out samples (K, m, n), with noise drawn once, and the best epoch of each network."""

    def __init__(
        self, theta: FloatArray, noisy: FloatArray, clean: FloatArray, patience: int
    ) -> None:
        n_networks = len(clean)
        self.noisy, self.clean, self.patience = noisy, clean, patience
        self.losses: list[FloatArray] = []
        self.running = np.ones(n_networks, dtype=bool)
        self.counts = self.running  # networks that ran in the last epoch
        self.n_epochs = np.zeros(n_networks, dtype=int)
        self.best, self.best_loss = theta.copy(), np.full(n_networks, np.inf)
        self.best_epoch = np.zeros(n_networks, dtype=int)

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
        found = (networks.encoder.copy(), networks.decoder.copy(), self.n_epochs, curves)
        validation = np.array(self.losses).reshape(-1, len(self.clean)).T
        rest = (validation, self.best_epoch.tolist(), (~self.running).tolist())
        return [
            Trained(encoder, decoder, losses[:n], watched[:n], kept, stopped)
            for encoder, decoder, n, losses, watched, kept, stopped in zip(
                *found, *rest, strict=True
            )
        ]


def _hold_out(
    estimators: Sequence[Any],
    networks: Networks,
    samples: Sequence[FloatArray],
    streams: Sequence[Streams],
) -> tuple[EarlyStopping, list[FloatArray]]:
    """Split off the samples that are watched; return them and the others."""
    n_rows, first = samples[0].shape[1], estimators[0]
    if n_rows < 2:
        raise ValueError("early_stopping holds rows out, which needs at least two: n_samples = 1.")
    n_held_out = min(max(1, round(first.validation_fraction * n_rows)), n_rows - 1)
    orders = [stream.held_out.permutation(n_rows) for stream in streams]
    shuffled = [X[:, order] for X, order in zip(samples, orders, strict=True)]
    clean = np.array([X[:, :n_held_out] for X in shuffled])
    noisy = _noisy_pairs(estimators, clean, [stream.held_out for stream in streams])
    watched = EarlyStopping(networks.theta, noisy, clean, first.patience)
    return watched, [X[:, n_held_out:] for X in shuffled]


class _Progress:
    """Lines about a long training: now and then, and one at its end."""

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.name, n = type(estimators[0]).__name__, len(estimators)
        self.networks = f" (mean of {n})" if n > 1 else ""
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
        ending = f"ended after {now - self.start:.1f} s" if ended else f"about {left:.0f} s left"
        print(
            f"[{self.name}] epoch {epoch} of {self.max_epochs}  loss {losses[-1].mean():.6g}"
            f"{self.networks}  {ending}",
            flush=True,
        )


class DenoisingAutoencoder(DomainTransformer):
    r"""Denoising auto-encoder (DAE): codes that separate clean rows from noisy ones.

    .. math::

        z = f(W \tilde x + b), \qquad \hat x = g(V z + c), \qquad
        \min_{W, b, V, c} \; \operatorname{mean} \lVert \hat x - x \rVert^2

    with :math:`\tilde x` the row x with noise, on the rows of all domains together. The codes z
    of rows without noise are their representation.

    **Assumption**: the code that reconstructs the rows holds the structure that the domains share
    and the labels depend on. It harms when labels depend on small variations, which the noise and a
    narrow code wipe out. Nothing pulls source and target codes together.

    Parameters
    ----------
    n_components : int, default=None
        Number L of codes. None: the number of features.
    activation : {"sigmoid", "tanh"}, default="sigmoid"
        f.
    decoder : {None, "sigmoid", "tanh", "linear"}, default=None
        g. None: the activation.
    tied : bool, default=False
        Whether V is W transposed.
    noise : {"gaussian", "masking"}, default="gaussian"
        Normal noise is added to each entry, or entries are set to zero. New in every epoch.
    noise_level : float, default=0.1
        Standard deviation of Gaussian noise, or the share of masked entries; it refers to the
        scaled rows.
    solver : {"adam", "sgd"}, default="adam"
        Mini-batch solver.
    learning_rate : float, default=0.001
        Its step size. With "sgd" useful values are far larger, about .1 to 1.
    momentum : float, default=0.9
        Of "sgd".
    batch_size : int, default=50
        Rows per step; at most all rows. The last batch of an epoch has those that are left.
    max_epochs : int, default=1000
        Passes over the rows; 0: the weights stay as drawn.
    early_stopping : bool, default=False
        Whether to hold rows out, stop when their reconstruction error has not fallen for
        ``patience`` epochs, and keep the parameters of the epoch where it was lowest.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out, at least one row.
    patience : int, default=20
        Epochs without improvement after which early stopping stops.
    scaling : {"minmax", None}, default="minmax"
        "minmax": each feature is scaled so that the fitted rows fill the range of the decoder,
        [0, 1] or [-1, 1] (a linear one has none: that of the activation). New rows are scaled
        alike and may lie outside. A constant feature stands in the middle. None: rows are taken
        as they are; a decoder that is not linear then reconstructs only what is in its range.
    init : {"glorot", "normal"}, default="glorot"
        "glorot": weights uniform with variance 2 / (features + codes), biases zero; "normal":
        weights and biases standard normal.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise.
    verbose : int, default=0
        1: a line every few seconds and at the end; 2: a line for every epoch.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W.
    intercept_ : ndarray of shape (n_components,)
        b.
    decoder_components_ : ndarray of shape (n_features, n_components)
        V.
    decoder_intercept_ : ndarray of shape (n_features,)
        c.
    data_center_, data_range_ : ndarrays of shape (n_features,)
        Middle and width of each feature's values in the fit; the width is 1 where they are
        constant.
    loss_curve_ : ndarray of shape (n_epochs,)
        Mean squared error between the reconstruction of noisy rows and the clean rows, in
        scaled units, over each epoch.
    validation_curve_ : ndarray of shape (n_epochs,), or None
        The same of the held-out rows after each epoch, if ``early_stopping``.
    n_iter_ : int
        Epochs run.
    kept_epoch_ : int
        Epoch, counted from 1, whose parameters were kept: the last, unless ``early_stopping``.
    domains_ : ndarray
        Domains known from the fit.

    Notes
    -----
    A new target needs a new fit. A ``ConvergenceWarning`` says that the error was still falling
    when the last epoch ended.

    **Cost**: O(n m L) time for an epoch of n rows, m features and L units; O(m L) memory for
    the weights and O(m + L) for each row of a batch.

    References
    ----------
    P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust
    features with denoising autoencoders", ICML 2008.

    Examples
    --------
    >>> from covshift import DenoisingAutoencoder, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> data = make_radial_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> dae = DenoisingAutoencoder(n_components=1, early_stopping=True, random_state=0)
    >>> dae.fit(X, sample_domain=sample_domain).transform(data.X_test).shape
    (500, 1)
    """

    def __init__(
        self,
        n_components=None,
        *,
        activation="sigmoid",
        decoder=None,
        tied=False,
        noise="gaussian",
        noise_level=0.1,
        solver="adam",
        learning_rate=0.001,
        momentum=0.9,
        batch_size=50,
        max_epochs=1000,
        early_stopping=False,
        validation_fraction=0.1,
        patience=20,
        scaling="minmax",
        init="glorot",
        random_state=None,
        verbose=0,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.decoder = decoder
        self.tied = tied
        self.noise = noise
        self.noise_level = noise_level
        self.solver = solver
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scaling = scaling
        self.init = init
        self.random_state = random_state
        self.verbose = verbose

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn to reconstruct the rows of all domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains, in memory.
        """
        fit_stacked([self], [X], [sample_domain], [label_mask])
        return self

    @documented_like(TargetLearner.transform)
    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Represent rows by their codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Checked and without effect: rows of all domains are encoded alike.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        Z = self._encode(X)
        has_target = bool((self.domains_ < 0).any())
        check_new_domains(sample_domain, len(Z), has_target=has_target, domain_names={})
        return Z

    def inverse_transform(self, Z: Any) -> Any:
        """Reconstruct rows, in their own units, from codes.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Codes.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        Z = check_array(Z, dtype=(np.float64, np.float32), input_name="Z")
        if Z.shape[1] != len(self.components_):
            raise ValueError(f"Z has {Z.shape[1]} columns, expected {len(self.components_)} codes.")
        X = _layer(Z, self.decoder_components_, self.decoder_intercept_, self._decoder_activation())
        if self.scaling is None:
            return X
        middle, width = self._range()
        return ((X - middle) / width * self.data_range_ + self.data_center_).astype(X.dtype)

    def reconstruct(self, X: Any) -> Any:
        """Reconstruct rows by encoding and decoding them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, noisy or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return self.inverse_transform(self._encode(X))

    def _check_and_scale(self, X: Any, sample_domain: Any, label_mask: Any) -> FloatArray:
        """Validate what ``fit`` got, store what is known of the rows, and scale them."""
        X = rows_in_memory(self, X, reset=True)
        self._check_parameters()
        self.domains_ = check_fit_domains(sample_domain, label_mask, X.shape[0]).domains
        low, high = X.min(axis=0), X.max(axis=0)
        spread = high - low
        self.data_center_ = low + spread / 2  # the middle of two numbers; their sum could overflow
        self.data_range_ = np.where(feature_variances(X) > 0, spread, np.ones_like(spread))
        return self._scale(X)

    def _store(self, trained: Trained) -> None:
        """Take over what training has learned."""
        self.components_ = trained.encoder[:, :-1].copy()
        self.intercept_ = trained.encoder[:, -1].copy()
        self.decoder_components_ = trained.decoder[:, :-1].copy()
        self.decoder_intercept_ = trained.decoder[:, -1].copy()
        self.loss_curve_ = trained.losses
        self.validation_curve_ = trained.validation_losses
        self.n_iter_ = len(trained.losses)
        self.kept_epoch_ = trained.kept_epoch
        self._n_features_out = len(trained.encoder)

    def _encode(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = rows_in_memory(self, X, reset=False)
        return _layer(self._scale(X), self.components_, self.intercept_, self.activation)

    def _decoder_activation(self) -> Squashing:
        return self.activation if self.decoder is None else self.decoder

    def _scale(self, X: FloatArray) -> FloatArray:
        if self.scaling is None:
            return X
        middle, width = self._range()
        return ((X - self.data_center_) / self.data_range_ * width + middle).astype(X.dtype)

    def _range(self) -> tuple[float, float]:
        decoder = self._decoder_activation()
        return RANGES[self.activation if decoder == "linear" else decoder]

    def _check_parameters(self) -> None:
        for name, options in OPTIONS.items():
            check_option(name, getattr(self, name), options)
        for name in ("tied", "early_stopping"):
            check_flag(name, getattr(self, name))
        if self.n_components is not None:
            check_count("n_components", self.n_components, minimum=1)
        for name, minimum in (("batch_size", 1), ("max_epochs", 0), ("patience", 1)):
            check_count(name, getattr(self, name), minimum=minimum)
        check_scalar(self.verbose, "verbose", (bool, Integral), min_val=0)
        for name, most, closed in (
            ("noise_level", 1 if self.noise == "masking" else None, "left"),
            ("learning_rate", None, "neither"),
            ("momentum", 1, "left"),
            ("validation_fraction", 1, "neither"),
        ):
            check_number(name, getattr(self, name), minimum=0, maximum=most, closed=closed)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _layer(X: FloatArray, weights: FloatArray, intercept: FloatArray, f: Squashing) -> FloatArray:
    """f(X W' + b) for samples as rows, in the precision of X."""
    H: FloatArray = X @ weights.T.astype(X.dtype, copy=False)
    H += intercept.astype(X.dtype, copy=False)
    return _squash(H, f)


def stacking_key(estimator: Any, X: FloatArray) -> tuple[Any, ...]:
    """Return the key of denoising auto-encoders that can be trained together."""
    return (X.shape, X.dtype, *(getattr(estimator, name) for name in SHARED))


def fit_stacked(
    estimators: Sequence[Any],
    rows: Sequence[Any],
    sample_domains: Sequence[Any] | None = None,
    label_masks: Sequence[Any] | None = None,
) -> None:
    """Fit each denoising auto-encoder on its rows, all together; as fitting each alone.

    Parameters
    ----------
    estimators : sequence of DenoisingAutoencoder
        They share what `stacking_key` names; seeds, learning rates, noise levels, starts and
        scalings may differ.
    rows : sequence of array-like of shape (n_samples, n_features)
        Rows of each; the same array may stand here several times.
    sample_domains, label_masks : sequences, default=None
        As ``fit`` takes them, one for each; None: none for any.
    """
    nothing = [None] * len(estimators)
    given = (rows, sample_domains or nothing, label_masks or nothing)
    with ExitStack() as stack:
        for estimator in estimators:
            stack.enter_context(all_or_nothing(estimator))
        scaled = [
            estimator._check_and_scale(*arguments)
            for estimator, *arguments in zip(estimators, *given, strict=True)
        ]
        keys = {stacking_key(*pair) for pair in zip(estimators, scaled, strict=True)}
        if len(keys) > 1:
            raise ValueError(
                "Auto-encoders that are trained together need rows of one shape and precision and "
                f"one value each of {', '.join(SHARED)}; got {len(keys)} combinations."
            )
        with one_blas_thread():
            trained = _train(estimators, [X.T for X in scaled])
        for estimator, result in zip(estimators, trained, strict=True):
            estimator._store(result)
    unfinished = [k for k, result in enumerate(trained) if _still_falls(result)]
    if unfinished:
        which = f" of {len(unfinished)} of {len(trained)} auto-encoders" if len(trained) > 1 else ""
        warnings.warn(
            f"The reconstruction error{which} was still falling after max_epochs="
            f"{estimators[0].max_epochs}. Raise max_epochs or learning_rate.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _still_falls(trained: Trained) -> bool:
    """Return whether more epochs would have lowered the error of a training that ran to its end.

    With rows held out: whether it kept getting better, so that early stopping did not stop.
    Otherwise: whether the last tenth of the epochs is better than the tenth before by one
    percent, and by more than the noise of both (three standard errors).
    """
    if trained.validation_losses is not None:
        return not trained.stopped and len(trained.losses) > 0
    window = len(trained.losses) // 10
    if window < 2:
        return False  # too few to determine it
    before, last = trained.losses[-2 * window : -window], trained.losses[-window:]
    fall = before.mean() - last.mean()
    error = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / window)
    return bool(fall > 0.01 * last.mean() and fall > 3 * error)
