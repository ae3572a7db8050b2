"""Loop-by-loop twins of the feature maps, losses and statistics, written for clarity, not speed.

Samples are rows: X is (n, m), W is (L, m), features F and Z are (n, L). Everything that depends on
W is analytic, so W may be complex and gradients can be taken by the complex step.
"""

import itertools
import math

import numpy as np
from scipy.optimize import minimize


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


def normalize(F, norm_epsilon):
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
    """Z = normalize(activation(X W^T))."""
    return normalize(_activations(X, W, kind, epsilon), norm_epsilon)


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

    Rows whose code is -1 are unlabeled and earn no reward.
    """
    Z = feature_map(X, W, kind, epsilon, norm_epsilon)
    loss = _total(Z)
    for c in range(len(groups)):
        for i, j in np.ndindex(Z.shape):
            if codes[i] == c and groups[c][j]:
                loss = loss - label_reward[c] * Z[i, j]
    return loss + _penalty(W, alpha)


def blockwise_loss(W, X, codes, groups, label_reward, kind, epsilon, norm_epsilon, alpha):
    """sum Z - sum_c reward_c sum normalize(F[rows of c, group c]) + alpha/2 sum W^2.

    A class with no rows or an empty group earns nothing; nor do rows whose code is -1.
    """
    F = _activations(X, W, kind, epsilon)
    loss = _total(normalize(F, norm_epsilon))
    for c in range(len(groups)):
        rows = [i for i in range(F.shape[0]) if codes[i] == c]
        columns = [j for j in range(F.shape[1]) if groups[c][j]]
        if not rows or not columns:
            continue
        block = np.array([[F[i, j] for j in columns] for i in rows])
        loss = loss - label_reward[c] * _total(normalize(block, norm_epsilon))
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


def absolute_penalty(W, weight):
    """weight * sum_jk sqrt(W_jk^2 + 1e-8)."""
    total = 0.0
    for w in np.ravel(W):
        total = total + np.sqrt(w * w + 1e-8)
    return weight * total


def pooled_responses(X, W, b, n_channels, step, kind, epsilon, normalize):
    """Mean over the segments of each channel of each window of f = g(W segment + b), or f / |f|."""
    n, length, s = len(X), X.shape[1] // n_channels, W.shape[1]
    Z = np.zeros((n, n_channels * len(W)))
    for i in range(n):
        for c in range(n_channels):
            samples = X[i, c * length : (c + 1) * length]
            starts = range(0, length - s + 1, step)
            for start in starts:
                f = []
                for j in range(len(W)):
                    h = b[j] + sum(W[j, k] * samples[start + k] for k in range(s))
                    if kind == "square":
                        f.append(h * h)
                    elif kind == "log":
                        f.append(math.log(1 + h * h))
                    else:
                        f.append(activation(h, kind, epsilon))
                norm = math.sqrt(_sum_of_squares(f)) if normalize else 1.0
                for j in range(len(W)):
                    Z[i, c * len(W) + j] += f[j] / norm / len(starts)
    return Z


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


def weighted_ks_statistic(a, b, weights_a, weights_b):
    """max over observed v of |share of weight on {a <= v} - share of weight on {b <= v}|."""
    largest = 0.0
    for v in list(a) + list(b):
        share_a = sum(w for x, w in zip(a, weights_a, strict=True) if x <= v) / sum(weights_a)
        share_b = sum(w for x, w in zip(b, weights_b, strict=True) if x <= v) / sum(weights_b)
        largest = max(largest, abs(share_a - share_b))
    return largest


def effective_size(a, weights):
    """1 over 4 times the largest variance of the weighted distribution function, or Kish's."""
    shares = [w / sum(weights) for w in weights]
    largest = sum(s * s for s in shares) / 4
    for v in a:
        P = sum(s for x, s in zip(a, shares, strict=True) if x <= v)
        variance = sum(s * s * ((x <= v) - P) ** 2 for x, s in zip(a, shares, strict=True))
        largest = max(largest, variance)
    return 1 / (4 * largest)


def ks_tail_probabilities(n, k):
    """{d: P(D >= d)} of two samples of n and k rows without ties, by counting lattice paths.

    A path of n steps to the right and k upward is an order of the pooled rows; all are equally
    likely. D >= d unless the path stays where |i / n - j / k| < d.
    """
    distances = sorted({abs(i * k - j * n) for i in range(n + 1) for j in range(k + 1)})
    probabilities = {}
    for distance in distances:
        paths = {}
        for i in range(n + 1):
            for j in range(k + 1):
                if abs(i * k - j * n) >= distance:
                    paths[i, j] = 0
                elif i == j == 0:
                    paths[i, j] = 1
                else:
                    paths[i, j] = paths.get((i - 1, j), 0) + paths.get((i, j - 1), 0)
        probabilities[distance / (n * k)] = 1 - paths[n, k] / math.comb(n + k, n)
    return probabilities


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


def holm(pvalues):
    """Adjusted p_i: the largest over j at most as large of p_j times the number not below it."""
    order = sorted(range(len(pvalues)), key=lambda i: pvalues[i])
    adjusted = [0.0] * len(pvalues)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, (len(pvalues) - rank) * pvalues[i])
        adjusted[i] = min(1.0, largest)
    return adjusted


def auc(a, b):
    """Share of pairs in which the score of b is the larger one; ties count half."""
    return sum((y > x) + 0.5 * (y == x) for x in a for y in b) / (len(a) * len(b))


def delong_variance(a, b):
    """Variance of the AUC from those of each row's share of pairs won."""
    of_a = [auc([x], b) for x in a]
    of_b = [auc(a, [y]) for y in b]
    return np.var(of_a, ddof=1) / len(a) + np.var(of_b, ddof=1) / len(b)


def mann_whitney_variance(n, k):
    """Variance of the AUC over all ways to choose which n of n + k distinct scores are a's."""
    aucs = []
    for chosen in itertools.combinations(range(n + k), n):
        rest = [score for score in range(n + k) if score not in chosen]
        aucs.append(auc(chosen, rest))
    return np.var(aucs)


def generalized_pareto_fit(x):
    """Zhang and Stephens' estimate of shape and scale, with k positive for a heavy tail."""
    x = sorted(x)
    n = len(x)
    m = 30 + math.floor(math.sqrt(n))
    quartile = x[math.floor(n / 4 + 0.5) - 1]
    thetas, log_likelihoods = [], []
    for j in range(1, m + 1):
        theta = 1 / x[-1] + (1 - math.sqrt(m / (j - 0.5))) / (3 * quartile)
        k = sum(math.log(1 - theta * value) for value in x) / n
        thetas.append(theta)
        log_likelihoods.append(n * (math.log(-theta / k) - k - 1))
    weights = [
        1 / sum(math.exp(other - own) for other in log_likelihoods) for own in log_likelihoods
    ]
    theta = sum(t * w for t, w in zip(thetas, weights, strict=True))
    k = sum(math.log(1 - theta * value) for value in x) / n
    return k, -k / theta


def mean_nearest_distances(X, Y, n_neighbors, leave_out=False):
    """Mean Euclidean distance of each row of X to the nearest rows of Y (to others than itself)."""
    means = []
    for i, x in enumerate(X):
        distances = [math.dist(x, y) for j, y in enumerate(Y) if not (leave_out and i == j)]
        means.append(sum(sorted(distances)[:n_neighbors]) / n_neighbors)
    return np.array(means)


def confident_recalls(codes, P, predicted, P_target, target_predicted):
    """The same by probabilities of the target rows, corrected by their errors on the source."""
    hits, recalls = 0.0, []
    for k in range(P.shape[1]):
        of_class = found = 0.0
        for p, f in zip(P_target, target_predicted, strict=True):
            of_class += p[k] / len(P_target)
            found += p[k] * (f == k) / len(P_target)
        for y, p, f in zip(codes, P, predicted, strict=True):
            of_class += ((y == k) - p[k]) / len(P)
            found += ((y == k) - p[k]) * (f == k) / len(P)
        hits += found
        if len(P_target) * of_class >= 1:
            recalls.append(min(max(found / of_class, 0), 1))
    return min(max(hits, 0), 1), sum(recalls) / len(recalls)


def thresholded_confidence(P_source, codes, P_target, score, predicted=None):
    """ATC: the threshold under which the source has as many rows as errors, on the target."""

    def score_row(p):
        if score == "max_confidence":
            return max(p)
        return sum(value * math.log(value) for value in sorted(p) if value > 0)

    n_errors = 0
    for i, (p, y) in enumerate(zip(P_source, codes, strict=True)):
        n_errors += (list(p).index(max(p)) if predicted is None else predicted[i]) != y
    scores = [score_row(p) for p in P_source]
    best, threshold = math.inf, None
    for candidate in [*sorted(scores), math.inf]:
        distance = abs(sum(s < candidate for s in scores) - n_errors)
        if distance < best:
            best, threshold = distance, candidate
    return sum(score_row(p) >= threshold for p in P_target) / len(P_target)


def difference_of_confidences(P_source, codes, P_target):
    """DoC: accuracy on the source, plus the mean confidence on the target less the source's."""
    right = sum(list(p).index(max(p)) == y for p, y in zip(P_source, codes, strict=True))
    on_source = sum(max(p) for p in P_source) / len(P_source)
    on_target = sum(max(p) for p in P_target) / len(P_target)
    return min(max(right / len(P_source) + on_target - on_source, 0), 1)


def expected_confusion_scores(P, predicted):
    """Accuracy and balanced accuracy of the confusion matrix expected by probabilities."""
    n, n_classes = len(P), len(P[0])
    confusion = [[0.0] * n_classes for _ in range(n_classes)]  # [true class][predicted class]
    for p, f in zip(P, predicted, strict=True):
        for k in range(n_classes):
            confusion[k][f] += p[k]
    accuracy = sum(confusion[k][k] for k in range(n_classes)) / n
    return accuracy, _mean_recall(confusion)


def _mean_recall(confusion):
    """Mean recall of the classes with an expected row; without any, of the most expected ones."""
    sizes = [sum(row) for row in confusion]
    least = min(1, max(sizes))
    recalls = [confusion[k][k] / size for k, size in enumerate(sizes) if size >= least]
    return sum(recalls) / len(recalls)


def weighted_calibration(P_source, codes, weights, P_target):
    """Target probabilities after bias-corrected temperature scaling on weighted source rows."""
    n, n_classes = len(P_source), len(P_source[0])
    total = sum(weights)
    logs = [[math.log(value) for value in p] for p in P_source]
    variance = 0.0
    for s, w in zip(logs, weights, strict=True):
        mean = sum(s) / n_classes
        variance += w / total * sum((value - mean) ** 2 for value in s) / n_classes
    spread = math.sqrt(variance)

    def scale(p, parameters):
        a = math.exp(parameters[0]) / spread
        values = [math.exp(a * math.log(x) + b) for x, b in zip(p, parameters[1:], strict=True)]
        return [value / sum(values) for value in values]

    def loss(parameters):
        nll = 0.0
        for p, y, w in zip(P_source, codes, weights, strict=True):
            nll -= w / total * math.log(scale(p, parameters)[y])
        return nll + sum(x * x for x in parameters) / (2 * n)

    found = minimize(loss, np.zeros(1 + n_classes), method="BFGS", options={"gtol": 1e-7})
    return [scale(p, found.x) for p in P_target]


def class_share_scores(codes, predicted, shares, n_target):
    """Scores of the confusion matrix of the source with its rows scaled to other class shares."""
    n_classes = len(shares)
    confusion = [[0.0] * n_classes for _ in range(n_classes)]
    for k in range(n_classes):
        n_rows = sum(y == k for y in codes)
        for j in range(n_classes):
            both = sum(y == k and f == j for y, f in zip(codes, predicted, strict=True))
            confusion[k][j] = n_target * shares[k] * both / n_rows if n_rows else 0.0
    accuracy = sum(confusion[k][k] for k in range(n_classes)) / n_target
    return accuracy, _mean_recall(confusion)


def most_likely_shares(P, shares, n_steps=20_000):
    """Class shares by expectation and maximization (Saerens et al., equation 2.9)."""
    estimate = list(shares)
    for _ in range(n_steps):
        sums = [0.0] * len(shares)
        for p in P:
            q = [p[k] * estimate[k] / shares[k] for k in range(len(shares))]
            for k in range(len(shares)):
                sums[k] += q[k] / sum(q) / len(P)
        change, estimate = max(abs(a - b) for a, b in zip(sums, estimate, strict=True)), sums
        if change < 1e-12:
            break
    return estimate


def transported_confidence(codes, P_target):
    """COT by trying every way to hand the labels of the source, one each, to the target rows."""
    best = math.inf
    for order in set(itertools.permutations(codes)):
        cost = 0.0
        for p, y in zip(P_target, order, strict=True):
            one_hot = [float(k == y) for k in range(len(p))]
            cost += sum(abs(a - b) for a, b in zip(p, one_hot, strict=True)) / 2 / len(codes)
        best = min(best, cost)
    return 1 - best
