"""Loop-by-loop twins of the alignments' formulas."""

import numpy as np


def mean_and_covariance(rows, shrinkage=0.0):
    """Mean, and the covariance whose entries off the diagonal are multiplied by 1 - a."""
    n, m = rows.shape
    mean = [sum(row[j] for row in rows) / n for j in range(m)]
    C = np.zeros((m, m))
    for j in range(m):
        for k in range(m):
            for row in rows:
                C[j, k] += (row[j] - mean[j]) * (row[k] - mean[k]) / n
            if j != k:
                C[j, k] *= 1 - shrinkage
    return np.array(mean), C


def power(C, exponent):
    """C^p = sum_k lambda_k^p v_k v_k'."""
    values, vectors = np.linalg.eigh(C)
    total = np.zeros_like(C)
    for value, v in zip(values, vectors.T, strict=True):
        total += value**exponent * np.outer(v, v)
    return total


def coral(rows, rows_from, rows_to, shrinkage=0.0, align_mean=True):
    """z = (x - m_from) C_from^(-1/2) C_to^(1/2) + m, row by row."""
    mean_from, C_from = mean_and_covariance(rows_from, shrinkage)
    mean_to, C_to = mean_and_covariance(rows_to, shrinkage)
    shift = mean_to if align_mean else mean_from
    return np.array([(x - mean_from) @ power(C_from, -0.5) @ power(C_to, 0.5) + shift
                     for x in rows])  # fmt: skip


def monge(rows, rows_from, rows_to, shrinkage=0.0):
    """z = m_to + A (x - m_from), A = C_f^(-1/2) (C_f^(1/2) C_t C_f^(1/2))^(1/2) C_f^(-1/2)."""
    mean_from, C_from = mean_and_covariance(rows_from, shrinkage)
    mean_to, C_to = mean_and_covariance(rows_to, shrinkage)
    root, inverse = power(C_from, 0.5), power(C_from, -0.5)
    A = inverse @ power(root @ C_to @ root, 0.5) @ inverse
    return np.array([mean_to + A @ (x - mean_from) for x in rows])
