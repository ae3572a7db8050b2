"""Loop-by-loop twins of the weight estimators, and problems whose ratio is known."""

import numpy as np
from scipy.stats import norm


def one_dimension(seed=0, n=1500):
    """Source N(0, 1), target N(.8, .7^2), and the true ratio at the source rows."""
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(n, 1)), rng.normal(0.8, 0.7, size=(n, 1))
    return source, target, (norm.pdf(source, 0.8, 0.7) / norm.pdf(source)).ravel()


def several_dimensions(d, seed=0, n=1500):
    """Standard normal in d dimensions, shifted by .5 in two of them."""
    rng = np.random.default_rng(seed)
    shift = np.r_[0.5, 0.5, np.zeros(d - 2)]
    source, target = rng.normal(size=(n, d)), rng.normal(size=(n, d)) + shift
    return source, target, np.exp(source @ shift - shift @ shift / 2)


def stack(source, target):
    sample_domain = np.repeat([0, -1], [len(source), len(target)])
    return np.concatenate([source, target]), sample_domain


def basis_functions(x, bases, sigma):
    return np.array([np.exp(-np.sum((x - c) ** 2) / (2 * sigma**2)) for c in bases])


def ulsif_coefficients(source, target, bases, sigma, lam, alpha=0.0):
    """(H + lambda I)^-1 h, row by row."""
    H, h = lam * np.eye(len(bases)), np.zeros(len(bases))
    for x in source:
        phi = basis_functions(x, bases, sigma)
        H += (1 - alpha) * np.outer(phi, phi) / len(source)
    for x in target:
        phi = basis_functions(x, bases, sigma)
        H += alpha * np.outer(phi, phi) / len(target)
        h += phi / len(target)
    return np.linalg.solve(H, h)


def ulsif_leave_one_out(source, target, bases, sigma, lam, alpha=0.0, clip="weights"):
    """The score by refitting without each pair of rows; bases stay."""
    n = min(len(source), len(target))
    at_source = np.linspace(0, len(source) - 1, n).astype(int)
    at_target = np.linspace(0, len(target) - 1, n).astype(int)
    total = 0.0
    for i, j in zip(at_source, at_target, strict=True):
        others = np.delete(source, i, 0), np.delete(target, j, 0)
        theta = ulsif_coefficients(*others, bases, sigma, lam, alpha)
        if clip == "coefficients":
            theta = np.maximum(theta, 0)
        r_s = max(0.0, basis_functions(source[i], bases, sigma) @ theta)
        r_t = max(0.0, basis_functions(target[j], bases, sigma) @ theta)
        total += (1 - alpha) / 2 * r_s**2 + alpha / 2 * r_t**2 - r_t
    return total / n


def nystrom_kernel(rows, landmarks, sigma):
    """Each row's nearest combination of landmarks takes its place; the diagonal is exact."""
    within = np.array([basis_functions(c, landmarks, sigma) for c in landmarks])
    to_landmarks = np.array([basis_functions(x, landmarks, sigma) for x in rows])
    combinations = np.array([np.linalg.lstsq(within, b, rcond=1e-12)[0] for b in to_landmarks])
    K = to_landmarks @ combinations.T
    np.fill_diagonal(K, 1)
    return K
