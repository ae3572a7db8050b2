"""Loop-by-loop twin of the denoising auto-encoder, of one network; samples are rows."""

import numpy as np


def squash(h, name):
    """f(h) of one scalar, which may be complex."""
    if name == "sigmoid":
        return 1 / (1 + np.exp(-h))
    if name == "tanh":
        return np.tanh(h)
    return h


def unpack(theta, n_features, n_components, tied):
    """W, b, V, c from [w_1, b_1, ..., w_L, b_L] and [v_1, c_1, ..., v_m, c_m], or tied c."""
    rest = list(theta)
    W, b = [], []
    for _ in range(n_components):
        W.append([rest.pop(0) for _ in range(n_features)])
        b.append(rest.pop(0))
    V, c = [], []
    for i in range(n_features):
        if tied:
            V.append([W[j][i] for j in range(n_components)])
        else:
            V.append([rest.pop(0) for _ in range(n_components)])
        c.append(rest.pop(0))
    assert not rest
    return W, b, V, c


def denoising_loss(theta, noisy, clean, n_components, activation, decoder, tied):
    """Mean over rows and features of (g(V f(W x~ + b) + c) - x)²."""
    n, m = clean.shape
    W, b, V, c = unpack(theta, m, n_components, tied)
    total = 0.0
    for i in range(n):
        z = []
        for j in range(n_components):
            h = b[j]
            for k in range(m):
                h = h + W[j][k] * noisy[i, k]
            z.append(squash(h, activation))
        for k in range(m):
            h = c[k]
            for j in range(n_components):
                h = h + V[k][j] * z[j]
            total = total + (squash(h, decoder) - clean[i, k]) ** 2
    return total / (n * m)
