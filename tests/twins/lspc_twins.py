"""Row-by-row twins of the least-squares probabilistic classifier and of its cross-validation."""

import numpy as np

from tests.twins.weight_twins import basis_functions


def coefficients(X, codes, weights, n_classes, bases, sigma, lam):
    """(H + lambda I)^-1 h_c, row by row."""
    H, h = np.zeros((len(bases), len(bases))), np.zeros((len(bases), n_classes))
    for x, code, weight in zip(X, codes, weights, strict=True):
        phi = basis_functions(x, bases, sigma)
        H += weight * np.outer(phi, phi)
        h[:, code] += weight * phi
    H, h = H / sum(weights), h / sum(weights)
    return np.linalg.solve(H + lam * np.eye(len(bases)), h)


def probabilities(x, theta, bases, sigma, shares):
    """max(0, theta_c . phi), divided by their sum; class shares, if all are zero."""
    q = [max(0.0, basis_functions(x, bases, sigma) @ theta[:, c]) for c in range(len(shares))]
    return np.array(shares) if sum(q) == 0 else np.array(q) / sum(q)


def cross_validation(X, codes, weights, splits, n_classes, bases, sigma, lam, criterion):
    """Weighted mean loss of held-out rows, by refitting on each training part."""
    total = weight_tested = 0.0
    for train, test in splits:
        part = X[train], codes[train], weights[train]
        theta = coefficients(*part, n_classes, bases, sigma, lam)
        shares = [sum(weights[i] for i in train if codes[i] == c) for c in range(n_classes)]
        shares = [share / sum(shares) for share in shares]
        for i in test:
            p = probabilities(X[i], theta, bases, sigma, shares)
            if criterion == "misclassification":
                loss = float(np.argmax(p) != codes[i])
            else:
                loss = sum((p[c] - (codes[i] == c)) ** 2 for c in range(n_classes)) / 2 - 0.5
            total += weights[i] * loss
            weight_tested += weights[i]
    return total / weight_tested
