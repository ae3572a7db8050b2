"""Cosine between the gradient of the paper's appendix and that of its loss (docs/errata.md).

    python benchmarks/gradient_cosine.py

Draws of `periodic` and of standard normal filters, two of them, one for each class; seeds 0 to 199.
"""

import numpy as np

from covshift.datasets import make_periodic_shift

N_DRAWS, N_FILTERS, EPSILON = 200, 2, 1e-8


def gradient(W, X, G):
    """Gradient of the sum of G * Z with respect to W, as derived in docs/errata.md."""
    H = X @ W.T
    F = 1 + EPSILON + np.sin(H)
    t = np.sqrt((F**2).sum(axis=0))
    T = F / t
    r = np.sqrt((T**2).sum(axis=1, keepdims=True))
    Z = T / r
    of_T = (G - (G * Z).sum(axis=1, keepdims=True) * Z) / r
    of_F = (of_T - T * (of_T * T).sum(axis=0)) / t
    return (of_F * np.cos(H)).T @ X


def cosine(seed, reward):
    """Cosine of one draw: rewards inside of the gradient, and multiplied at its end."""
    data = make_periodic_shift(random_state=seed)
    X = np.concatenate([data.X_source, data.X_target])
    W = np.random.RandomState(seed).standard_normal((N_FILTERS, X.shape[1]))
    G = np.ones((len(X), N_FILTERS))
    G[np.arange(len(data.y_source)), data.y_source] -= reward
    ours = gradient(W, X, G).ravel()
    printed = reward * gradient(W, X, np.ones_like(G)).ravel()
    return ours @ printed / np.linalg.norm(ours) / np.linalg.norm(printed)


def main():
    """Print median and share of negative cosines."""
    for reward in (1.0, 10.0):
        cosines = np.array([cosine(seed, reward) for seed in range(N_DRAWS)])
        print(
            f"lambda {reward:g}: median {np.median(cosines):.2f}, negative on "
            f"{np.mean(cosines < 0):.0%} of {N_DRAWS} draws"
        )


if __name__ == "__main__":
    main()
