r"""The denoising auto-encoder: reconstruction, loss and gradient of K networks of one shape.

.. math::

    z = f(W \tilde x + b), \qquad \hat x = g(V z + c), \qquad
    \ell = \frac{1}{n m} \sum_{i=1}^{n} \lVert \hat x_i - x_i \rVert^2

with x the clean rows, :math:`\tilde x` the noisy ones, f and g one of the functions below, and
either a V of its own or V = W' (tied weights). The loss is the mean over rows *and* features.

=========  ==============================  ====================
name       f(h)                            f'(h), given f
=========  ==============================  ====================
"sigmoid"  :math:`1 / (1 + e^{-h})`        :math:`f (1 - f)`
"tanh"     :math:`\tanh h`                 :math:`1 - f^2`
"linear"   h                               1
=========  ==============================  ====================

All arrays are stacked: the first axis is the network. Samples are columns, and a bias is one
more column of the weights, which meets a row of ones; so a layer is a single product, and so
is the gradient of its weights and biases:

- encoder A = [W, b], shape (K, L, m + 1); decoder B = [V, c], shape (K, m, L + 1);
- noisy samples (K, m + 1, n), the last row ones; clean samples (K, m, n);
- codes (K, L + 1, n), the last row ones.

A network's parameters are one row of ``theta``, shape (K, P): A then B, or, tied, A then c.
Hence a solver can update all of them by one operation.

P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust features
with denoising autoencoders", ICML 2008.
"""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from covshift.kernels.arrays import FloatArray

Squashing: TypeAlias = Literal["sigmoid", "tanh", "linear"]

# Entries per network up to which SciPy's sigmoid, one call but a slow one, is the faster. The
# rule looks at one network, lest its last bits depend on how many are stacked.
FEW_ENTRIES = 200


class Networks(NamedTuple):
    """K networks of one shape, with the gradient of their loss and room to compute it in.

    ``encoder`` and ``encoder_gradient`` are views of ``theta`` and ``gradient``; so are those of
    the decoder, unless the weights are tied: then they are copies that `backpropagate` renews.
    """

    theta: FloatArray  # (K, P)
    gradient: FloatArray  # (K, P)
    encoder: FloatArray  # (K, L, m + 1)
    encoder_gradient: FloatArray
    decoder: FloatArray  # (K, m, L + 1)
    decoder_gradient: FloatArray
    tied: bool
    activation: Squashing
    decoder_activation: Squashing


class Workspace(NamedTuple):
    """Room for one batch size."""

    codes: FloatArray  # (K, L + 1, n), the last row ones
    code_errors: FloatArray  # (K, L, n)
    code_slopes: FloatArray  # (K, L, n)
    output: FloatArray  # (K, m, n)
    output_errors: FloatArray  # (K, m, n)


def count_parameters(n_features: int, n_components: int, tied: bool) -> int:
    """Return P, the length of a row of ``theta``."""
    weights = n_features * n_components
    return (weights if tied else 2 * weights) + n_components + n_features


def make_networks(
    theta: FloatArray,
    n_features: int,
    n_components: int,
    *,
    activation: Squashing,
    decoder: Squashing,
    tied: bool,
) -> Networks:
    """View the rows of ``theta`` as networks."""
    gradient = np.zeros_like(theta)
    encoder, decoder_weights = _split(theta, n_features, n_components, tied)
    encoder_gradient, decoder_gradient = _split(gradient, n_features, n_components, tied)
    networks = Networks(
        theta,
        gradient,
        encoder,
        encoder_gradient,
        decoder_weights,
        decoder_gradient,
        tied,
        activation,
        decoder,
    )
    tie_decoder(networks)
    return networks


def make_workspace(networks: Networks, n_samples: int) -> Workspace:
    """Allocate what a batch of ``n_samples`` needs."""
    n_networks, n_components, width = networks.encoder.shape
    codes = np.ones((n_networks, n_components + 1, n_samples), networks.theta.dtype)
    outputs = np.empty((2, n_networks, width - 1, n_samples), networks.theta.dtype)
    return Workspace(codes, *np.empty_like(codes, shape=(2, *codes[:, :-1].shape)), *outputs)


def append_ones(samples: FloatArray) -> FloatArray:
    """Add the row of ones that meets the biases: (K, m, n) to (K, m + 1, n)."""
    return np.concatenate([samples, np.ones_like(samples[:, :1])], axis=1)


def tie_decoder(networks: Networks) -> None:
    """Renew the copies in a tied decoder: V = W', and c."""
    if networks.tied:
        networks.decoder[:, :, :-1] = networks.encoder[:, :, :-1].swapaxes(1, 2)
        networks.decoder[:, :, -1] = networks.theta[:, -networks.decoder.shape[1] :]


def reconstruct(networks: Networks, noisy: FloatArray, workspace: Workspace) -> FloatArray:
    """Fill ``workspace.codes`` and ``workspace.output`` and return the latter."""
    codes = workspace.codes[:, :-1]
    np.matmul(networks.encoder, noisy, out=codes)
    squash_in_place(codes, networks.activation)
    np.matmul(networks.decoder, workspace.codes, out=workspace.output)
    squash_in_place(workspace.output, networks.decoder_activation)
    return workspace.output


def backpropagate(
    networks: Networks,
    noisy: FloatArray,
    clean: FloatArray,
    workspace: Workspace,
    residuals: FloatArray,
) -> None:
    """Overwrite ``networks.gradient`` with that of the loss, ``residuals`` with x̂ - x."""
    tie_decoder(networks)
    output, errors = reconstruct(networks, noisy, workspace), workspace.output_errors
    np.subtract(output, clean, out=residuals)
    np.multiply(residuals, 2.0 / (clean.shape[1] * clean.shape[2]), out=errors)
    if networks.decoder_activation != "linear":
        # The slope takes the place of the output, which is not needed any more.
        errors *= _slope(output, networks.decoder_activation, out=output)
    np.matmul(errors, workspace.codes.swapaxes(1, 2), out=networks.decoder_gradient)

    weights = networks.decoder[:, :, :-1]
    code_errors = np.matmul(weights.swapaxes(1, 2), errors, out=workspace.code_errors)
    if networks.activation != "linear":
        code_errors *= _slope(
            workspace.codes[:, :-1], networks.activation, out=workspace.code_slopes
        )
    np.matmul(code_errors, noisy.swapaxes(1, 2), out=networks.encoder_gradient)
    if networks.tied:
        # W is used twice, so its gradient is the sum of both uses.
        networks.encoder_gradient[:, :, :-1] += networks.decoder_gradient[:, :, :-1].swapaxes(1, 2)
        networks.gradient[:, -clean.shape[1] :] = networks.decoder_gradient[:, :, -1]


def denoising_loss(
    theta: FloatArray,
    noisy: FloatArray,
    clean: FloatArray,
    *,
    activation: Squashing,
    decoder: Squashing,
    tied: bool,
    n_components: int,
) -> tuple[FloatArray, FloatArray]:
    """Loss of each network, shape (K,), and its gradient, shape (K, P).

    ``noisy`` is (K, m, n) here, without its row of ones.
    """
    networks = make_networks(
        theta, clean.shape[1], n_components, activation=activation, decoder=decoder, tied=tied
    )
    residuals = np.empty_like(clean)
    workspace = make_workspace(networks, clean.shape[2])
    backpropagate(networks, append_ones(noisy), clean, workspace, residuals)
    return np.square(residuals).mean(axis=(1, 2)), networks.gradient


def dense_layer(
    X: FloatArray, weights: FloatArray, intercept: FloatArray, name: Squashing
) -> FloatArray:
    """One layer of one network, f(X W' + b), for samples as rows, in the precision of X."""
    H: FloatArray = X @ weights.T.astype(X.dtype, copy=False)
    H += intercept.astype(X.dtype, copy=False)
    return squash_in_place(H, name)


def squash_in_place(H: FloatArray, name: Squashing) -> FloatArray:
    """Overwrite H with f(H); see the table above."""
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


def _slope(F: FloatArray, name: Squashing, out: FloatArray) -> FloatArray:
    """Write f' to ``out``, which may be F itself."""
    if name == "sigmoid":
        # f - f²; the square would be lost if F were overwritten by it.
        np.multiply(F, 1.0 - F, out=out)
    else:
        np.square(F, out=out)
        np.subtract(1.0, out, out=out)
    return out


def _split(
    theta: FloatArray, n_features: int, n_components: int, tied: bool
) -> tuple[FloatArray, FloatArray]:
    n_networks = theta.shape[0]
    size = n_components * (n_features + 1)
    encoder = theta[:, :size].reshape(n_networks, n_components, n_features + 1)
    shape = (n_networks, n_features, n_components + 1)
    if tied:
        return encoder, np.empty(shape, theta.dtype)
    return encoder, theta[:, size:].reshape(shape)
