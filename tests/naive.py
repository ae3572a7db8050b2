"""Loop-by-loop twins of the feature maps, losses and statistics, written for clarity, not speed.

Samples are rows: X is (n, m), W is (L, m), features F and Z are (n, L). Everything that depends on
W is analytic, so W may be complex and gradients can be taken by the complex step.
"""

import numpy as np


def _sum_of_squares(values):
    """sum_i v_i^2 (the square, not the squared modulus)."""
    total = 0.0
    for v in values:
        total = total + v * v
    return total


def activation(h, kind, epsilon):
    """Activation of one scalar: sqrt(h^2 + eps), 1 + eps + sin h or 1 + eps + cos h."""
    if kind == "abs":
        return np.sqrt(h * h + epsilon)
    if kind == "sin":
        return 1 + epsilon + np.sin(h)
    if kind == "cos":
        return 1 + epsilon + np.cos(h)
    raise ValueError(f"unknown kind: {kind!r}")


def normalise(F, norm_epsilon):
    """A_ij = F_ij / sqrt(sum_i F_ij^2 + e), then Z_ij = A_ij / sqrt(sum_j A_ij^2 + e).

    A norm that is exactly zero divides by one instead.
    """
    A = np.array(F, dtype=np.result_type(F, float))
    for j in range(A.shape[1]):
        norm = np.sqrt(_sum_of_squares(A[:, j]) + norm_epsilon)
        for i in range(A.shape[0]):
            A[i, j] = A[i, j] / (1.0 if norm == 0 else norm)
    for i in range(A.shape[0]):
        norm = np.sqrt(_sum_of_squares(A[i, :]) + norm_epsilon)
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] / (1.0 if norm == 0 else norm)
    return A


def _activations(X, W, kind, epsilon):
    """F_ij = activation(sum_k X_ik W_jk)."""
    X, W = np.asarray(X), np.asarray(W)
    n, L = X.shape[0], W.shape[0]
    F = np.zeros((n, L), dtype=np.result_type(X, W, float))
    for i in range(n):
        for j in range(L):
            h = 0.0
            for k in range(X.shape[1]):
                h = h + X[i, k] * W[j, k]
            F[i, j] = activation(h, kind, epsilon)
    return F


def feature_map(X, W, kind, epsilon, norm_epsilon):
    """Z = normalise(activation(X W^T))."""
    return normalise(_activations(X, W, kind, epsilon), norm_epsilon)


def _total(Z):
    """sum_ij Z_ij."""
    total = 0.0
    for z in np.ravel(Z):
        total = total + z
    return total


def _penalty(W, alpha):
    """alpha / 2 * sum_jk W_jk^2."""
    return alpha / 2 * _sum_of_squares(np.ravel(W))


def joint_loss(W, X, codes, groups, label_reward, kind, epsilon, norm_epsilon, alpha):
    """sum Z - sum_c reward_c sum_{i: code_i = c} sum_{j in group c} Z_ij + alpha/2 sum W^2.

    Rows whose code is -1 are unlabelled and earn no reward.
    """
    Z = feature_map(X, W, kind, epsilon, norm_epsilon)
    loss = _total(Z)
    for c in range(len(groups)):
        for i, j in np.ndindex(Z.shape):
            if codes[i] == c and groups[c][j]:
                loss = loss - label_reward[c] * Z[i, j]
    return loss + _penalty(W, alpha)


def blockwise_loss(W, X, codes, groups, label_reward, kind, epsilon, norm_epsilon, alpha):
    """sum Z - sum_c reward_c sum normalise(F[rows of c, group c]) + alpha/2 sum W^2.

    A class with no rows or an empty group earns nothing; nor do rows whose code is -1.
    """
    F = _activations(X, W, kind, epsilon)
    loss = _total(normalise(F, norm_epsilon))
    for c in range(len(groups)):
        rows = [i for i in range(F.shape[0]) if codes[i] == c]
        columns = [j for j in range(F.shape[1]) if groups[c][j]]
        if not rows or not columns:
            continue
        block = np.array([[F[i, j] for j in columns] for i in rows])
        loss = loss - label_reward[c] * _total(normalise(block, norm_epsilon))
    return loss + _penalty(W, alpha)


def complex_step_gradient(loss, W, step=1e-30):
    """G_jk = Im loss(W + i step E_jk) / step."""
    W = np.asarray(W)
    G = np.zeros(W.shape)
    for j in range(W.shape[0]):
        for k in range(W.shape[1]):
            moved = W.astype(complex)
            moved[j, k] += 1j * step
            G[j, k] = loss(moved).imag / step
    return G


def ks_statistic(a, b):
    """max over observed v of |#{a <= v} / n_a - #{b <= v} / n_b|."""
    largest = 0.0
    for v in list(a) + list(b):
        count_a = count_b = 0
        for x in a:
            if x <= v:
                count_a += 1
        for x in b:
            if x <= v:
                count_b += 1
        largest = max(largest, abs(count_a / len(a) - count_b / len(b)))
    return largest


def mean_ks_distance(A, B):
    """Mean over columns j of ks_statistic(A_j, B_j)."""
    A, B = np.asarray(A), np.asarray(B)
    total = 0.0
    for j in range(A.shape[1]):
        total += ks_statistic(A[:, j], B[:, j])
    return total / A.shape[1]


def root_mean_squares(F):
    """r_j = sqrt(sum_i F_ij^2 / n)."""
    F = np.asarray(F)
    n, L = F.shape
    return np.array([np.sqrt(_sum_of_squares(F[:, j]) / n) for j in range(L)])
