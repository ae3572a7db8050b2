"""The loop over epochs and batches that trains auto-encoders of one shape together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from covshift.adapters._autoencoder_batches import NoisyBatches, Streams
from covshift.adapters._autoencoder_start import HeldOut, draw_networks, hold_out
from covshift.kernels.arrays import FloatArray
from covshift.kernels.denoising_autoencoder import (
    Networks,
    Workspace,
    backpropagate,
    make_workspace,
    reconstruct,
    tie_decoder,
)
from covshift.solvers.adam import Adam
from covshift.solvers.sgd import SGD

LINE_SECONDS = 2.0  # between two lines of progress


@dataclass(frozen=True)
class Trained:
    """One network after training."""

    encoder: FloatArray  # (L, m + 1)
    decoder: FloatArray  # (m, L + 1)
    losses: FloatArray
    validation_losses: FloatArray | None
    kept_epoch: int
    stopped: bool  # by early stopping, before the last epoch


def train(estimators: Sequence[Any], samples: Sequence[FloatArray]) -> list[Trained]:
    """Train auto-encoders of one `stacking_key`, each on its scaled samples (m, n)."""
    first = estimators[0]
    streams = [
        Streams.from_seed(check_random_state(estimator.random_state).randint(2**31 - 1))
        for estimator in estimators
    ]
    networks = draw_networks(estimators, samples, streams)
    held_out = None
    if first.early_stopping:
        held_out, samples = hold_out(estimators, networks, samples, streams)
    training = NoisyBatches(
        samples,
        streams,
        batch_size=first.batch_size,
        noise=first.noise,
        noise_levels=[estimator.noise_level for estimator in estimators],
    )
    run = _Run(estimators, networks, training, held_out)
    # A loss that is not finite is looked for; NumPy need not warn of it as well.
    with np.errstate(over="ignore", invalid="ignore"):
        run.all_epochs()
    return run.results()


class _Run:
    """One training: what the loop over batches and epochs changes."""

    def __init__(
        self,
        estimators: Sequence[Any],
        networks: Networks,
        training: NoisyBatches,
        held_out: HeldOut | None,
    ) -> None:
        first, n_networks = estimators[0], len(estimators)
        self.estimators, self.networks = estimators, networks
        self.training, self.held_out = training, held_out
        self.max_epochs, self.patience = first.max_epochs, first.patience
        rates = np.array([estimator.learning_rate for estimator in estimators])
        self.solver: Adam | SGD
        if first.solver == "adam":
            self.solver = Adam(networks.theta, rates)
        else:
            self.solver = SGD(networks.theta, rates, momentum=first.momentum)
        self.epoch = 0  # epochs done
        self.losses = np.zeros((n_networks, self.max_epochs))
        self.validation_losses = np.zeros_like(self.losses)
        # What early stopping changes: which networks it has not stopped yet, the epochs each
        # had, and the best parameters so far.
        self.running = np.ones(n_networks, dtype=bool)
        self.n_epochs = np.full(n_networks, self.max_epochs)
        self.best = networks.theta.copy()
        self.best_loss = np.full(n_networks, np.inf)
        self.best_epoch = np.zeros(n_networks, dtype=int)

    def all_epochs(self) -> None:
        """Train until the last epoch, or until every network has stopped."""
        progress = _Progress(self.estimators, self.max_epochs)
        workspaces: dict[int, Workspace] = {}
        for block in self.training.blocks(self.max_epochs):
            before = self.epoch
            for batch in block.batches:
                size = batch.clean.shape[2]
                if size not in workspaces:
                    workspaces[size] = make_workspace(self.networks, size)
                backpropagate(
                    self.networks, batch.noisy, batch.clean, workspaces[size], batch.residuals
                )
                self.solver.step(self.networks.theta, self.networks.gradient)
                if batch.ends_epoch:
                    self.epoch += 1
                    if self.held_out is not None and not self._validate(self.held_out):
                        break
            # A long epoch comes in several blocks, each a part of its sum.
            done = block.residuals[:, :, : max(1, self.epoch - before)]
            sums = np.square(done).sum(axis=(1, 3), dtype=np.float64)
            self.losses[:, before : before + done.shape[2]] += sums / self.training.size
            self._check_finite(before, sums)
            ended = not self.running.any()
            if self.epoch > before:
                progress.show(self.epoch, self.losses[:, self.epoch - 1], ended=ended)
            if ended:
                return

    def results(self) -> list[Trained]:
        """What each network learned."""
        if self.held_out is not None:
            np.copyto(self.networks.theta, self.best)
        tie_decoder(self.networks)
        return [
            Trained(
                self.networks.encoder[k].copy(),
                self.networks.decoder[k].copy(),
                self.losses[k, : self.n_epochs[k]].copy(),
                None
                if self.held_out is None
                else self.validation_losses[k, : self.n_epochs[k]].copy(),
                int(self.best_epoch[k] if self.held_out is not None else self.n_epochs[k]),
                not self.running[k],
            )
            for k in range(len(self.estimators))
        ]

    def _validate(self, held_out: HeldOut) -> bool:
        """Keep what reconstructs held-out rows best; tell whether any network goes on."""
        tie_decoder(self.networks)
        errors = reconstruct(self.networks, held_out.noisy, held_out.workspace)
        errors -= held_out.clean
        losses = np.square(errors).mean(axis=(1, 2), dtype=np.float64)
        self.validation_losses[:, self.epoch - 1] = losses
        better = self.running & (losses < self.best_loss)
        np.copyto(self.best, self.networks.theta, where=better[:, None])
        self.best_loss[better] = losses[better]
        self.best_epoch[better] = self.epoch
        ends = self.running & (self.epoch - self.best_epoch >= self.patience)
        self.n_epochs[ends] = self.epoch
        self.running &= ~ends
        return bool(self.running.any())

    def _check_finite(self, epoch: int, sums: FloatArray) -> None:
        """Look at the sums of the epochs from ``epoch`` on, until each network has stopped."""
        counts = epoch + np.arange(sums.shape[1]) < self.n_epochs[:, None]
        diverged = np.flatnonzero((counts & ~np.isfinite(sums)).any(axis=1))
        if len(diverged):
            estimator = self.estimators[diverged[0]]
            raise ValueError(
                f"The reconstruction error is not finite after {self.epoch} epochs: the training "
                f"diverged. Lower learning_rate={estimator.learning_rate!r}."
            )


class _Progress:
    """Lines about a long training: now and then, and one at its end."""

    def __init__(self, estimators: Sequence[Any], max_epochs: int) -> None:
        self.name, self.n = type(estimators[0]).__name__, len(estimators)
        self.verbose = max(int(estimator.verbose) for estimator in estimators)
        self.max_epochs = max_epochs
        self.start = self.last = time.monotonic()

    def show(self, epoch: int, losses: FloatArray, *, ended: bool) -> None:
        """Print a line if it is time for one; ``ended``: every network has stopped."""
        now = time.monotonic()
        ended = ended or epoch == self.max_epochs
        if not self.verbose or (self.verbose == 1 and not ended and now < self.last + LINE_SECONDS):
            return
        self.last = now
        left = (now - self.start) * (self.max_epochs - epoch) / epoch
        networks = f" (mean of {self.n})" if self.n > 1 else ""
        ending = f"ended after {now - self.start:.1f} s" if ended else f"about {left:.0f} s left"
        print(
            f"[{self.name}] epoch {epoch} of {self.max_epochs}  loss {losses.mean():.6g}{networks}"
            f"  {ending}",
            flush=True,
        )
