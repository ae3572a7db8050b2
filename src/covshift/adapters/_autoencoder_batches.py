"""Shuffled, noisy mini-batches of several networks, each from random streams of its own."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray

# Entries per network that are gathered and made noisy at once. Many small batches then cost
# few calls, and three buffers of this size still fit a processor's cache.
BLOCK_ENTRIES = 2**16


class Streams(NamedTuple):
    """Random streams of one network.

    They are apart from each other, so that what each yields does not depend on how many epochs
    are prepared at once, nor on what is stacked beside the network.
    """

    weights: np.random.Generator
    order: np.random.Generator
    noise: np.random.Generator
    held_out: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> "Streams":
        """Spawn the streams of one seed."""
        return cls(*map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4)))


class Batch(NamedTuple):
    """Views of the buffers of `NoisyBatches`: what one step of the solver sees."""

    noisy: FloatArray  # (K, m + 1, n)
    clean: FloatArray  # (K, m, n)
    residuals: FloatArray  # (K, m, n), to be filled by the step
    ends_epoch: bool


class Block(NamedTuple):
    """Batches that were prepared together: some epochs, or a part of a long one."""

    batches: list[Batch]
    residuals: FloatArray  # (K, m, epochs, rows): those of the batches


def add_noise(
    clean: FloatArray, rng: np.random.Generator, noise: str, level: float, out: FloatArray
) -> None:
    """Write to ``out`` the samples (m, n) with Gaussian noise, or with entries masked by zero.

    Numbers are drawn sample by sample, so that the noise of a sample does not depend on how
    many follow it.
    """
    shape = clean.shape[::-1]
    if noise == "gaussian":
        drawn = rng.standard_normal(shape, dtype=clean.dtype.type)
        np.multiply(drawn.T, level, out=out)
        out += clean
    else:
        np.multiply(clean, (rng.random(shape) >= level).T, out=out)


class NoisyBatches:
    """Shuffled batches of K networks; its buffers are filled anew for each block."""

    def __init__(
        self,
        samples: Sequence[FloatArray],
        streams: Sequence[Streams],
        *,
        batch_size: int,
        noise: str,
        noise_levels: Sequence[float],
    ) -> None:
        self._samples, self._streams = samples, streams
        self._noise, self._noise_levels = noise, noise_levels
        self.n_features, self.n_rows = samples[0].shape
        self.batch_size = min(batch_size, self.n_rows)
        self.size = self.n_rows * self.n_features
        room = max(BLOCK_ENTRIES // self.n_features, self.batch_size)
        self._epochs = max(1, room // self.n_rows)
        # A long epoch is prepared in parts, each a whole number of batches.
        part = room // self.batch_size * self.batch_size
        self._width = self._epochs * self.n_rows if self.n_rows <= room else part
        shape = (len(samples), self.n_features, self._width)
        self._clean, self._residuals = np.empty((2, *shape), samples[0].dtype)
        self._blocks: dict[tuple[int, int], Block] = {}  # views, made once
        self._noisy = np.ones((shape[0], shape[1] + 1, shape[2]), samples[0].dtype)

    def blocks(self, max_epochs: int) -> Iterator[Block]:
        """Yield the blocks of ``max_epochs`` epochs. Each overwrites the one before."""
        for first in range(0, max_epochs, self._epochs):
            n_epochs = min(self._epochs, max_epochs - first)
            orders = [stream.order.permuted(self._identity(n_epochs), axis=1).ravel()
                      for stream in self._streams]  # fmt: skip
            for start in range(0, n_epochs * self.n_rows, self._width):
                parts = [order[start : start + self._width] for order in orders]
                self._fill(parts)
                key = start, len(parts[0])
                if key not in self._blocks:
                    self._blocks[key] = self._block(*key, n_epochs)
                yield self._blocks[key]

    def _identity(self, n_epochs: int) -> IntArray:
        return np.tile(np.arange(self.n_rows), (n_epochs, 1))

    def _fill(self, orders: Sequence[IntArray]) -> None:
        for k, (samples, stream, order) in enumerate(
            zip(self._samples, self._streams, orders, strict=True)
        ):
            clean = self._clean[k, :, : len(order)]
            np.take(samples, order, axis=1, out=clean, mode="clip")
            noisy = self._noisy[k, :-1, : len(order)]
            add_noise(clean, stream.noise, self._noise, self._noise_levels[k], noisy)

    def _block(self, start: int, width: int, n_epochs: int) -> Block:
        batches = []
        position = 0
        while position < width:
            left_in_epoch = self.n_rows - (start + position) % self.n_rows
            stop = position + min(self.batch_size, left_in_epoch)
            rows = np.s_[:, :, position:stop]
            ends_epoch = stop - position == left_in_epoch
            views = (self._noisy[rows], self._clean[rows], self._residuals[rows])
            batches.append(Batch(*views, ends_epoch))
            position = stop
        residuals = self._residuals[:, :, :width]
        per_epoch = residuals.reshape(*residuals.shape[:2], n_epochs, -1)
        return Block(batches, per_epoch)
