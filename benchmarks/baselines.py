"""The filters as they would be written without care for speed: what the engine is measured against.

Plain NumPy that allocates an array per operation, and SciPy's L-BFGS-B, one problem at a time; and
the algorithm that the authors released, from its description.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import ks_2samp


def plain_loss(W, X, codes, table, activation="sin", epsilon=1e-8):
    """Joint loss and gradient; ``table`` (C + 1, L) is the upstream gradient of each class."""
    H = X @ W.T
    if activation == "abs":
        F = np.sqrt(H**2 + epsilon)
        slope = H / F
    elif activation == "sin":
        F, slope = 1 + epsilon + np.sin(H), np.cos(H)
    else:
        F, slope = 1 + epsilon + np.cos(H), -np.sin(H)
    t = np.sqrt((F**2).sum(axis=0))
    A = F / t
    r = np.sqrt((A**2).sum(axis=1))[:, None]
    Z = A / r
    G = table[codes]
    loss = (G * Z).sum()
    dA = (G - Z * (G * Z).sum(axis=1)[:, None]) / r
    dF = (dA - A * (dA * A).sum(axis=0)) / t
    return loss, (dF * slope).T @ X


def released_loss(W, X, codes, groups, label_reward, epsilon=1e-8):
    """Loss and gradient as the authors' code has them: each class block is normalized again."""
    H = X @ W.T
    F, slope = 1 + np.sin(H), np.cos(H)
    loss, dF = _sum_of_normalized(F, epsilon)
    for code, (group, reward) in enumerate(zip(groups, label_reward, strict=True)):
        block = np.ix_(codes == code, group)
        block_loss, block_gradient = _sum_of_normalized(F[block], epsilon)
        loss -= reward * block_loss
        dF[block] -= reward * block_gradient
    return loss, (dF * slope).T @ X


def _sum_of_normalized(F, epsilon):
    t = np.sqrt((F**2).sum(axis=0) + epsilon)
    A = F / t
    r = np.sqrt((A**2).sum(axis=1) + epsilon)[:, None]
    Z = A / r
    dA = (1 - Z * Z.sum(axis=1)[:, None]) / r
    return Z.sum(), (dA - A * (dA * A).sum(axis=0)) / t


def plain_distance(W, X, codes, activation="sin", epsilon=1e-8):
    """Mean KS distance of the features between labeled and other rows, by SciPy's test."""
    F = (1 + epsilon) + (np.sin if activation == "sin" else np.cos)(X @ W.T)
    A, B = F[codes >= 0], F[codes < 0]
    A, B = A / np.sqrt((A**2).mean(axis=0)), B / np.sqrt((B**2).mean(axis=0))
    A, B = (Z / np.sqrt((Z**2).sum(axis=1))[:, None] for Z in (A, B))
    return np.mean(
        [ks_2samp(a, b, method="asymp").statistic for a, b in zip(A.T, B.T, strict=True)]
    )


def plain_fit(
    W0, X, codes, table, activation="sin", max_iter=200, tol=1e-5, loss=plain_loss, callback=None
):
    """Minimize the loss by SciPy; returns its result. ``callback(W)`` after each iteration."""

    def evaluate(flat):
        W = flat.reshape(W0.shape).astype(X.dtype, copy=False)
        value, gradient = loss(W, X, codes, table, activation)
        return float(value), gradient.ravel().astype(np.float64)

    options = {"maxiter": max_iter, "maxfun": 10**9, "gtol": tol * len(X)}
    options["ftol"] = 10 * np.finfo(X.dtype).eps
    return minimize(
        evaluate,
        W0.ravel(),
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=None if callback is None else lambda flat: callback(flat.reshape(W0.shape)),
    )
