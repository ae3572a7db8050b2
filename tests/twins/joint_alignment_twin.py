"""Loop-by-loop twin of `JointAlignmentClassifier`, written from its formula."""

import math

import numpy as np


def kernel(a, b, sigma):
    """exp(-|a - b|^2 / (2 sigma^2))."""
    return math.exp(-sum((x - z) ** 2 for x, z in zip(a, b, strict=True)) / (2 * sigma**2))


def kernel_matrix(A, B, sigma):
    """Kernels between the rows of A and those of B."""
    return np.array([[kernel(a, b, sigma) for b in B] for a in A])


def laplacian(X, n_neighbors, sigma):
    """D^-1/2 (D - W) D^-1/2 of the symmetric graph of nearest neighbors."""
    n = len(X)
    W = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        others.sort(key=lambda j: sum((X[i] - X[j]) ** 2))
        for j in others[:n_neighbors]:
            W[i, j] = W[j, i] = kernel(X[i], X[j], sigma)
    D = W.sum(axis=1)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            L[i, j] = ((i == j) * D[i] - W[i, j]) / math.sqrt(D[i] * D[j])
    return L


def alignment_matrix(target, classes, weights, n_classes, mu):
    """(1 - mu) e_0 e_0' / |e_0|^2 + mu sum_c e_c e_c' / |e_c|^2; no classes: the first."""
    n = len(target)

    def part(members):
        e = np.zeros(n)
        for side in (False, True):
            rows = [i for i in members if target[i] == side]
            if not rows:
                return np.zeros((n, n))
            for i in rows:
                e[i] = (-1 if side else 1) * weights[i] / sum(weights[k] for k in rows)
        return np.outer(e, e) / (e @ e)

    M = (1 - mu) * part(range(n))
    if classes is not None:
        for c in range(n_classes):
            M += mu * part([i for i in range(n) if classes[i] == c])
    return M


def solve(K, Y, labeled, weights, M, L, eta, lam, gamma):
    """((E + gamma L + lam M) K + eta I) alpha = E (Y - shares); also the shares."""
    n = len(K)
    E = np.diag([weights[i] if labeled[i] else 0.0 for i in range(n)])
    shares = E.diagonal() @ Y / E.trace()
    alpha = np.linalg.solve((E + gamma * L + lam * M) @ K + eta * np.eye(n), E @ (Y - shares))
    return alpha, shares


def fit(X, codes, target, weights, sigma, eta, lam, mu, gamma, n_neighbors, max_rounds):
    """Coefficients, shares, the alignment matrix of the last round, and the number of rounds."""
    n_classes = max(codes) + 1
    labeled = codes >= 0
    Y = np.array([[float(code == c) for c in range(n_classes)] for code in codes])
    K, L = kernel_matrix(X, X, sigma), laplacian(X, n_neighbors, sigma)
    M = alignment_matrix(target, None, weights, n_classes, mu)
    alpha, shares = solve(K, Y, labeled, weights, M, L, eta, lam, gamma)
    before = None
    for n_rounds in range(max_rounds + 1):
        guess = (shares + K @ alpha).argmax(axis=1)
        classes = [codes[i] if labeled[i] else guess[i] for i in range(len(X))]
        if classes == before or n_rounds == max_rounds:
            break
        M = alignment_matrix(target, classes, weights, n_classes, mu)
        alpha, shares = solve(K, Y, labeled, weights, M, L, eta, lam, gamma)
        before = classes
    return alpha, shares, M, n_rounds


def objective(alpha, K, codes, weights, M, L, eta, lam, gamma, shares):
    """The sum that alpha minimizes."""
    g = K @ alpha
    total = eta * np.trace(alpha.T @ K @ alpha)
    total += lam * np.trace(g.T @ M @ g) + gamma * np.trace(g.T @ L @ g)
    for i, code in enumerate(codes):
        for c in range(alpha.shape[1]):
            if code >= 0:
                total += weights[i] * ((code == c) - shares[c] - g[i, c]) ** 2
    return total
