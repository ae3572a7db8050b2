"""Where the training of auto-encoders starts: drawn weights, and rows held out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from covshift.adapters._autoencoder_batches import Streams, add_noise
from covshift.kernels.arrays import FloatArray
from covshift.kernels.denoising_autoencoder import (
    Networks,
    Workspace,
    append_ones,
    count_parameters,
    make_networks,
    make_workspace,
)


class HeldOut(NamedTuple):
    """Samples that early stopping watches, with noise that was drawn once."""

    noisy: FloatArray  # (K, m + 1, n)
    clean: FloatArray  # (K, m, n)
    workspace: Workspace


def draw_networks(
    estimators: Sequence[Any], samples: Sequence[FloatArray], streams: Sequence[Streams]
) -> Networks:
    """Draw the start of each network."""
    first, n_features, dtype = estimators[0], len(samples[0]), samples[0].dtype
    n_components = first._count_components(n_features)
    theta = np.zeros(
        (len(estimators), count_parameters(n_features, n_components, first.tied)), dtype
    )
    networks = make_networks(
        theta,
        n_features,
        n_components,
        activation=first.activation,
        decoder=first._decoder_activation(),
        tied=first.tied,
    )
    for k, (estimator, stream) in enumerate(zip(estimators, streams, strict=True)):
        if estimator.init == "normal":
            theta[k] = stream.weights.standard_normal(theta.shape[1])
            continue
        # Glorot and Bengio (2010): the variance of the sums is kept from layer to layer.
        bound = np.sqrt(6 / (n_features + n_components))
        networks.encoder[k, :, :-1] = stream.weights.uniform(
            -bound, bound, (n_components, n_features)
        )
        if not first.tied:
            networks.decoder[k, :, :-1] = stream.weights.uniform(
                -bound, bound, (n_features, n_components)
            )
    return networks


def hold_out(
    estimators: Sequence[Any],
    networks: Networks,
    samples: Sequence[FloatArray],
    streams: Sequence[Streams],
) -> tuple[HeldOut, list[FloatArray]]:
    """Split off the samples that early stopping watches; return them and the others."""
    n_rows = samples[0].shape[1]
    if n_rows < 2:
        raise ValueError("early_stopping holds rows out, which needs at least two: n_samples = 1.")
    n_held_out = min(max(1, round(estimators[0].validation_fraction * n_rows)), n_rows - 1)
    orders = [stream.held_out.permutation(n_rows) for stream in streams]
    clean = np.stack([X[:, order[:n_held_out]] for X, order in zip(samples, orders, strict=True)])
    noisy = append_ones(clean)
    for k, (estimator, stream) in enumerate(zip(estimators, streams, strict=True)):
        add_noise(clean[k], stream.held_out, estimator.noise, estimator.noise_level, noisy[k, :-1])
    others = [X[:, order[n_held_out:]] for X, order in zip(samples, orders, strict=True)]
    return HeldOut(noisy, clean, make_workspace(networks, n_held_out)), others
