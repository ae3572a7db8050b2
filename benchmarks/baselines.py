"""The filters as they would be written without care for speed: what the engine is measured against.

Plain NumPy that allocates an array per operation, and SciPy's L-BFGS-B, one problem at a time.
"""

import numpy as np
from scipy.optimize import minimize


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


def plain_fit(W0, X, codes, table, activation="sin", max_iter=200, tol=1e-5):
    """Minimise the loss by SciPy; returns its result."""

    def evaluate(flat):
        W = flat.reshape(W0.shape).astype(X.dtype, copy=False)
        loss, gradient = plain_loss(W, X, codes, table, activation)
        return float(loss), gradient.ravel().astype(np.float64)

    options = {"maxiter": max_iter, "maxfun": 10**9, "gtol": tol * len(X), "ftol": 0.0}
    options["ftol"] = 10 * np.finfo(X.dtype).eps
    return minimize(evaluate, W0.ravel(), jac=True, method="L-BFGS-B", options=options)
