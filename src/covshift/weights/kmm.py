r"""Kernel mean matching (KMM), with its kernel matrix applied in tiles.

.. math::

    \min_w \; \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
    \quad \text{subject to} \quad 0 \le w_i \le B, \quad
    \Bigl| \frac1{n_s} \sum_i w_i - 1 \Bigr| \le \epsilon,

    K_{ii'} = k(x_i, x_{i'}), \qquad \kappa_i = \frac{n_s}{n_t} \sum_j k(x_i, x_j),

i over source rows, j over target rows. Accelerated projected gradient steps with restarts; each
costs one product with K.

At the optimum, with :math:`\nu` the multiplier of the mean,

.. math:: w_i = \min(B, \max(0, (\kappa_i - (K w)_i - \nu) / \rho)),

which defines the weight of any other row too.

References
----------
J. Huang, A. Gretton, K. Borgwardt, B. Schölkopf, A. Smola, "Correcting sample selection bias by
unlabeled data", NIPS 2006.

B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient schemes", Foundations of
Computational Mathematics 15, 2015.
"""

import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state, gen_batches

from covshift.base import check_count, check_number, check_option
from covshift.kernels.array_types import FloatArray
from covshift.kernels.gaussian_kernels import (
    TILE_ROWS,
    lost_nystrom_diagonal,
    nystrom_features,
    nystrom_root,
    nystrom_sum,
    squared_distances,
    squares_to_bases,
)
from covshift.measures import median_bandwidth
from covshift.weights._weight_estimator import NEGLIGIBLE_MEAN, WeightEstimator

FALLBACK_ROWS = 500  # of each role, for the bandwidth after an underflow
EXACT_ROWS = 5000  # largest source for which "auto" is exact, as its kernel matrix is kept
AUTO_LANDMARKS = 500
ERROR_ROWS = 200  # with exact kernel sums, to estimate the low-rank error
EPS = float(np.finfo(np.float64).eps)
# Up to this number of rows K is kept (200 MB); above, its tiles are computed for every product,
# which takes twenty times as long.
KEPT_ROWS = 5000


def _kernel_sums(
    rows: FloatArray, others: FloatArray, bandwidth: float, factors: FloatArray | None = None
) -> FloatArray:
    r""":math:`\sum_j k(x, x_j) f_j` of rows (n, d) over others (k, d), in tiles.

    All :math:`f_j` are one if ``factors`` is None.
    """
    rows, others = _scaled(rows, others, bandwidth)
    factors = np.ones(len(others)) if factors is None else factors
    sums = np.zeros(len(rows))
    for row in range(0, len(rows), TILE_ROWS):
        tile = slice(row, row + TILE_ROWS)
        for column in range(0, len(others), TILE_ROWS):
            part = slice(column, column + TILE_ROWS)
            sums[tile] += _kernel(rows[tile], others[part]) @ factors[part]
    return sums


def _kernel_product(rows: FloatArray, bandwidth: float) -> Callable[[FloatArray], FloatArray]:
    """Return the function that multiplies a vector (n,) by the kernel matrix of rows (n, d)."""
    rows, _ = _scaled(rows, rows, bandwidth)
    if len(rows) <= KEPT_ROWS:
        K = _kernel(rows, rows)
        return lambda w: K @ w

    def product(w: FloatArray) -> FloatArray:
        sums = np.zeros(len(rows))
        for row in range(0, len(rows), TILE_ROWS):
            tile = slice(row, row + TILE_ROWS)
            for column in range(row, len(rows), TILE_ROWS):
                part = slice(column, column + TILE_ROWS)
                values = _kernel(rows[tile], rows[part])
                sums[tile] += values @ w[part]
                if column > row:  # the tile across the diagonal is its transpose
                    sums[part] += w[tile] @ values
        return sums

    return product


def _scaled(
    rows: FloatArray, others: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    """Both around zero and in units in which the kernel is exp of minus the squared distance."""
    center = others.mean(axis=0)
    unit = np.sqrt(2) * bandwidth
    return (rows - center) / unit, (others - center) / unit


def _kernel(A: FloatArray, B: FloatArray) -> FloatArray:
    values = squared_distances(A, B)
    np.negative(values, out=values)
    return np.exp(values, out=values)


def project(v: FloatArray, bound: float, epsilon: float) -> FloatArray:
    r"""Nearest point to v (n,) with :math:`0 \le w \le B` and :math:`|\bar w - 1| \le \epsilon`."""
    return clip_to_mean(v, np.ones(len(v)), bound, epsilon)[0]


def clip_to_mean(
    scores: FloatArray, diagonal: FloatArray, bound: float, epsilon: float
) -> tuple[FloatArray, float]:
    r"""Maximize, for KMM, :math:`\sum_i s_i w_i - \tfrac12 a_i w_i^2` over weights.

    Scores s are (n,), the diagonal a (n,) > 0.

    Subject to :math:`0 \le w_i \le B` and :math:`|\bar w - 1| \le \epsilon`. Returns
    :math:`w_i = \min(B, \max(0, (s_i - \nu) / a_i))` and :math:`\nu`, which is zero if the mean
    is inside its limits.
    """
    w: FloatArray = np.clip(scores / diagonal, 0, bound)
    mean = float(w.mean())
    if abs(mean - 1) <= epsilon:
        return w, 0.0
    goal = 1 + epsilon if mean > 1 else 1 - epsilon
    # The mean falls with the shift: bisection, then the exact shift for the entries that are
    # then free.
    low, high = float((scores - bound * diagonal).min()), float(scores.max())
    for _ in range(60):
        shift = (low + high) / 2
        if np.clip((scores - shift) / diagonal, 0, bound).mean() > goal:
            low = shift
        else:
            high = shift
    shift = (low + high) / 2
    free = (scores > shift) & (scores < shift + bound * diagonal)
    if free.any():
        at_bound = bound * np.count_nonzero(scores >= shift + bound * diagonal)
        total = float((scores[free] / diagonal[free]).sum()) + at_bound
        shift = (total - goal * len(scores)) / float((1 / diagonal[free]).sum())
    clipped: FloatArray = np.clip((scores - shift) / diagonal, 0, bound)
    return clipped, float(shift)


def _match_means(
    product: Callable[[FloatArray], FloatArray],
    kappa: FloatArray,
    *,
    ridge: float,
    bound: float,
    epsilon: float,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float]:
    r"""Minimize; return w (n,), K w (n,) and a bound on how far the objective is above its optimum.

    Stops when that bound is at most ``tol`` times the objective's size. The bound is the smaller
    of :math:`\lVert G \rVert^2 / (2 \rho)`, with G the projected gradient, and of the decrease
    that the linear model of the objective promises anywhere in the feasible set.
    """
    n = len(kappa)
    ones: FloatArray = np.ones(n)
    # No eigenvalue of a matrix of positive entries is larger than its largest row sum.
    w, product_w = ones, product(ones)
    largest = float(product_w.max()) + ridge
    previous, product_previous, momentum, gap = w, product_w, 1.0, np.inf
    for _ in range(max_iter):
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / faster
        y = w + push * (w - previous)
        gradient = product_w + push * (product_w - product_previous) + ridge * y - kappa
        new = project(y - gradient / largest, bound, epsilon)
        step = y - new
        previous, product_previous = w, product_w
        w, product_w = new, product(new)
        # Restart when the momentum points uphill.
        momentum = 1.0 if float(step @ (w - previous)) > 0 else faster
        objective = float(w @ (product_w + ridge * w)) / 2 - float(kappa @ w)
        gap = _linear_gap(w, product_w + ridge * w - kappa, bound, epsilon)
        if ridge > 0:
            gap = min(gap, float(np.square(largest * step).sum()) / (2 * ridge))
        if gap <= tol * abs(objective):
            break
    return w, product_w, gap


def _mean_multiplier(
    w: FloatArray, product_w: FloatArray, kappa: FloatArray, ridge: float, bound: float
) -> float:
    r"""Return the multiplier :math:`\nu`, from the entries at neither bound."""
    free = (w > 0) & (w < bound)
    residual = kappa - product_w - ridge * w
    return float(residual[free].mean()) if free.any() else 0.0


def _linear_gap(w: FloatArray, gradient: FloatArray, bound: float, epsilon: float) -> float:
    """Return largest decrease of the linear model over the feasible set; at least the true gap."""
    ordered = np.sort(gradient)
    n = len(w)
    # All total between n (1 - epsilon) and n (1 + epsilon) go to the smallest entries first,
    # as much as each may have, beyond the least total only where the gradient is negative.
    filled = np.minimum(bound * np.arange(1, n + 1), n * (1 + epsilon))
    share = np.diff(filled, prepend=0.0)
    least = np.diff(np.minimum(bound * np.arange(1, n + 1), n * (1 - epsilon)), prepend=0.0)
    vertex = np.where(ordered < 0, share, np.maximum(least, 0))
    return float(gradient @ w - ordered @ vertex)


def match_feature_means(
    features: FloatArray,
    goal: FloatArray,
    diagonal: FloatArray,
    *,
    bound: float,
    epsilon: float,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float, float, float]:
    r"""Solve the KMM problem with a kernel of low rank, by Newton steps in its features.

    With the features :math:`\Phi` (n, q) of the source rows, :math:`c = \frac{n_s}{n_t} \sum_j
    \varphi(x_j)` (q,) of the target rows j and what each row adds on the diagonal,
    :math:`a_i = \rho + d_i > 0` (n,) (`covshift.kernels.gaussian_kernels`), it is

    .. math::

        \min_w \; \tfrac12 \lVert \Phi^\top w - c \rVert^2 + \tfrac12 \sum_i a_i w_i^2
        \quad \text{subject to} \quad 0 \le w_i \le B, \quad |\bar w - 1| \le \epsilon.

    Source and target are projected onto the same landmarks: sums of exact kernels for the target
    would be matched by sums of too small ones for the source, and the weights would make up for
    the difference. The dual has one variable for each feature,

    .. math::

        \min_v \; \tfrac12 \lVert v \rVert^2 - c^\top v + \max_w \sum_i
        \bigl(w_i \varphi_i^\top v - \tfrac12 a_i w_i^2\bigr), \qquad
        w_i(v) = \min\bigl(B, \max(0, (\varphi_i^\top v - \nu) / a_i)\bigr),

    with w as constrained above and :math:`\nu` the multiplier of its mean. It is convex and
    piecewise quadratic, with the gradient :math:`g = v - c + \Phi^\top w(v)`, so that Newton steps
    with a line search end after a few. w(v) always keeps the constraints, its objective is exactly
    :math:`\tfrac12 \lVert g \rVert^2` above the dual's, and the last formula weighs any other row
    too.

    Returns w (n,), v (q,), :math:`\nu`, the objective
    :math:`\tfrac12 w^\top (\Phi \Phi^\top + \operatorname{diag}(a)) w - c^\top \Phi^\top w`, and a
    bound on how far it is above its optimum. Stops when that is at most ``tol`` times its size.

    References
    ----------
    L. Qi, J. Sun, "A nonsmooth version of Newton's method", Mathematical Programming 58, 1993.
    """
    # The primal has a weight for each row; the dual has a variable for each feature, a few hundred.
    # For given v the best weights are known row by row (`clip_to_mean`), so v is all we look for.
    # Where we start nearly all weights are one, and free to move: half as many steps as from the v
    # of weights that are one.
    v, scores = np.zeros(len(goal)), np.zeros(len(features))
    w, nu = clip_to_mean(scores, diagonal, bound, epsilon)
    for iteration in range(max_iter + 1):
        reached = w @ features
        gradient = v - goal + reached
        gap = float(gradient @ gradient) / 2
        objective = float(reached @ reached + w @ (diagonal * w)) / 2 - float(goal @ reached)
        if gap <= max(tol, EPS) * abs(objective) or iteration == max_iter:
            break
        # Weights at a bound do not move with v, hence do not bend the dual: it is quadratic until
        # another weight reaches a bound or leaves it. So Newton's step is nearly exact.
        free = (w > 0) & (w < bound)
        H = _curvature(features, np.where(free, 1 / diagonal, 0.0), fixed_mean=nu != 0)
        direction = -cho_solve(cho_factor(H), gradient)
        slope, change = float(gradient @ direction), features @ direction
        before = _dual(v, goal, scores, diagonal, w)
        rounding = 16 * EPS * (abs(before) + float(goal @ goal))
        # Halve the step until the dual falls enough (Armijo's rule); what differs by rounding alone
        # counts as fallen, or the last steps would never be taken.
        step = 1.0
        while step > EPS:
            new_v, new_scores = v + step * direction, scores + step * change
            w, nu = clip_to_mean(new_scores, diagonal, bound, epsilon)
            after = _dual(new_v, goal, new_scores, diagonal, w)
            if after <= before + 1e-4 * step * slope + rounding:
                break
            step /= 2
        v, scores = new_v, new_scores
    return w, v, nu, objective, gap


def _dual(
    v: FloatArray, goal: FloatArray, scores: FloatArray, diagonal: FloatArray, w: FloatArray
) -> float:
    return float(v @ v) / 2 - float(goal @ v) + float(w @ (scores - diagonal * w / 2))


def _curvature(features: FloatArray, precisions: FloatArray, *, fixed_mean: bool) -> FloatArray:
    """Second derivatives (q, q) of the dual; ``precisions`` (n,) are 1/a of the free weights."""
    H: FloatArray = np.eye(features.shape[1])
    for start in range(0, len(features), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        scaled = features[part] * np.sqrt(precisions[part])[:, None]
        H += scaled.T @ scaled
    total = float(precisions.sum())
    # Where the mean is at the end of its interval, the multiplier undoes any common change of the
    # scores: only the curvature about the mean of the free rows remains.
    if fixed_mean and total > 0:
        mean = precisions @ features
        H -= np.outer(mean, mean) / total
    return H


class KMMWeights(WeightEstimator):
    r"""Importance weights by kernel mean matching (KMM).

    .. math::

        \min_w \; \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
        \quad \text{with} \quad 0 \le w_i \le B, \quad |\bar w - 1| \le \epsilon

    with K the Gaussian kernel between source rows and :math:`\kappa_i` the sum of kernels
    between source row i and the target rows, times :math:`n_s / n_t`: the weighted source gets
    the target's mean in the kernel's feature space.

    **Assumption**: P(y | x) is the same in both domains and every target row lies where the
    source has rows too. The weights match what the kernel distinguishes; nothing in the data
    chooses its bandwidth.

    Parameters
    ----------
    bound : float, default=1000.0
        Largest weight B, at least one.
    ridge : float, default=1.0
        :math:`\rho`. Without it the weights of neighboring rows are hardly tied to each
        other: in five dimensions their rank correlation with the true ratio is about .4, with
        one it is .95.
    bandwidth : None or float, default=None
        :math:`\sigma` of the kernel. None: the median distance between rows.
    epsilon : None or float, default=None
        How far the mean weight may be from one. None: :math:`1 / \sqrt{n_s}`, about the
        standard error of the mean of true weights.
    tol : float, default=1e-8
        How far the objective may be above its optimum, relative to its size.
    max_iter : int, default=2000
        Largest number of steps, each of which costs :math:`n_s^2` kernels (time, not memory), or
        :math:`n_s r^2` products with r landmarks, of which a few dozen steps are enough.
    n_landmarks : "auto", int or None, default="auto"
        Number r of source rows, drawn at random, onto which the kernel is projected. None: the
        kernel is exact. "auto": exact up to 5,000 source rows, or without a ridge, which the
        low rank needs; else 500.
    random_state : int, RandomState or None, default=None
        Seed of the draw of landmarks.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Weights of the source rows, in their order, not normalized.
    bandwidth_, epsilon_ : float
        Value that was used.
    gap_ : float
        Bound on how far the objective is above its optimum.
    landmarks_ : ndarray of shape (n_landmarks, n_features) or None
        The rows drawn; None if the kernel is exact.
    kernel_error_ : float
        Relative error of the projected kernel where it was used: the length of
        :math:`(K w - \hat K w)_S` divided by that of :math:`(K w)_S`, for at most 200 source
        rows S drawn at random; 0 if the kernel is exact.
    source_rows_, target_rows_ : ndarrays
        The rows of the fit: ``score_weights`` needs them.
    effective_sample_size_ : float
        Number of equally weighted rows that would be as informative.
    mean_weight_, share_zero_ : float
        Mean of the weights and share of weights that are zero.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    A new row weighs what the conditions of optimality say of source rows,
    :math:`(\kappa(x) - \sum_i k(x, x_i) w_i - \nu) / \rho`, cut off at 0 and B, with
    :math:`\nu` the multiplier of the mean; so source rows get ``weights_`` again, up to ``tol``.
    Without a ridge this has no solution, and a row weighs as much as the nearest source row.

    With landmarks, :math:`\hat K = \Phi \Phi^\top + \operatorname{diag}(d)` with the features
    :math:`\varphi(x)` of the rows projected onto them and :math:`d(x) = 1 - \lVert \varphi(x)
    \rVert^2`. Target rows are projected alike, and :math:`\rho + d(x)` takes the place of
    :math:`\rho`. More landmarks come closer to the exact weights, which need not be closer to the
    true ratio: where many features carry no shift, what 500 leave out is mostly noise.

    **Cost**: exact: O(n_source²) time for an iteration (m times as much above 5,000 rows,
    where the kernel is computed again) and O(n_source²) memory up to 5,000 rows; with r
    landmarks O(n r (m + r)) time and O(n r) memory.

    References
    ----------
    J. Huang, A. Gretton, K. Borgwardt, B. Schölkopf, A. Smola, "Correcting sample selection
    bias by unlabeled data", NIPS 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import KMMWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = KMMWeights().fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.5])
    """

    def __init__(
        self,
        bound=1000.0,
        *,
        ridge=1.0,
        bandwidth=None,
        epsilon=None,
        tol=1e-8,
        max_iter=2000,
        n_landmarks="auto",
        random_state=None,
    ):
        self.bound = bound
        self.ridge = ridge
        self.bandwidth = bandwidth
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_number("bound", self.bound, minimum=1)
        check_number("ridge", self.ridge, minimum=0)
        check_number("tol", self.tol, minimum=0)
        check_count("max_iter", self.max_iter, minimum=1)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, minimum=0, closed="neither")
        if self.epsilon is not None:
            check_number("epsilon", self.epsilon, minimum=0, maximum=1, closed="left")
        if self.n_landmarks is None or isinstance(self.n_landmarks, str):
            check_option("n_landmarks", self.n_landmarks, ("auto", None))
        else:
            check_count("n_landmarks", self.n_landmarks, minimum=1)
            if self.ridge == 0:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks} needs a ridge above zero: raise ridge, or use "
                    "n_landmarks=None."
                )
        check_random_state(self.random_state)

    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        rng = check_random_state(self.random_state)
        self.source_rows_, self.target_rows_ = source, target
        self.landmarks_ = self._draw_landmarks(rng)
        self.bandwidth_ = float(self.bandwidth or median_bandwidth(source, target))
        features, kappa = self._set_up()
        if kappa.max() < NEGLIGIBLE_MEAN:
            some = [rows[:: 1 + len(rows) // FALLBACK_ROWS] for rows in (source, target)]
            fallback = float(np.sqrt(np.median(squares_to_bases(*some))))
            self._warn(
                f"all kernels underflow at the bandwidth {self.bandwidth_:.3g}; the median "
                f"distance between source and target rows, {fallback:.3g}, is used instead"
            )
            self.bandwidth_ = fallback
            features, kappa = self._set_up()
        self.epsilon_ = float(len(source) ** -0.5 if self.epsilon is None else self.epsilon)
        if features is None:
            weights, objective = self._match(kappa)
        else:
            weights, objective = self._match_features(features, rng)
        if self.gap_ > self.tol * abs(objective):
            warnings.warn(
                f"KMMWeights did not converge in {self.max_iter} iterations: the objective, "
                f"{objective:.3g}, may be {self.gap_:.1e} above its optimum. Raise max_iter, tol "
                "or ridge.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._solution = weights
        return weights

    def _draw_landmarks(self, rng: np.random.RandomState) -> FloatArray | None:
        n, count = len(self.source_rows_), self.n_landmarks
        if count == "auto":
            count = None if n <= EXACT_ROWS or self.ridge == 0 else AUTO_LANDMARKS
        if count is None:
            return None
        landmarks: FloatArray = self.source_rows_[
            np.sort(rng.choice(n, min(count, n), replace=False))
        ]
        return landmarks

    def _set_up(self) -> tuple[FloatArray | None, FloatArray]:
        """Return the features of the source rows, if the kernel is projected, and their kappa."""
        if self.landmarks_ is None:
            return None, self._kappa(self.source_rows_)
        self._root = nystrom_root(self.landmarks_, self.bandwidth_)
        where = self.landmarks_, self._root, self.bandwidth_
        ratio = len(self.source_rows_) / len(self.target_rows_)
        self._goal = ratio * nystrom_sum(self.target_rows_, *where)
        features = nystrom_features(self.source_rows_, *where)
        return features, features @ self._goal

    def _match(self, kappa: FloatArray) -> tuple[FloatArray, float]:
        """Return the weights of the source rows by the exact kernel, and their objective."""
        weights, product, self.gap_ = _match_means(
            _kernel_product(self.source_rows_, self.bandwidth_),
            kappa,
            ridge=self.ridge,
            bound=self.bound,
            epsilon=self.epsilon_,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self._multiplier = _mean_multiplier(weights, product, kappa, self.ridge, self.bound)
        self.kernel_error_ = 0.0
        return weights, float(weights @ (product + self.ridge * weights) / 2 - kappa @ weights)

    def _match_features(
        self, features: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        """Return the weights of the source rows by the projected kernel, and their objective."""
        lost = lost_nystrom_diagonal(features)
        weights, self._direction, self._multiplier, objective, self.gap_ = match_feature_means(
            features,
            self._goal,
            self.ridge + lost,
            bound=self.bound,
            epsilon=self.epsilon_,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        some = rng.permutation(len(weights))[:ERROR_ROWS]
        exact = _kernel_sums(self.source_rows_[some], self.source_rows_, self.bandwidth_, weights)
        projected = features[some] @ (weights @ features) + lost[some] * weights[some]
        self.kernel_error_ = float(np.linalg.norm(exact - projected) / np.linalg.norm(exact))
        return weights, objective

    def _evaluate(self, X: FloatArray) -> FloatArray:
        if self.ridge == 0:
            weights: FloatArray = self._solution[pairwise_distances_argmin(X, self.source_rows_)]
            return weights
        if self.landmarks_ is None:
            matched = _kernel_sums(X, self.source_rows_, self.bandwidth_, self._solution)
            scores, diagonal = self._kappa(X) - matched, np.full(len(X), self.ridge)
        else:
            scores, diagonal = np.empty(len(X)), np.empty(len(X))
            for part in gen_batches(len(X), TILE_ROWS):
                features = nystrom_features(X[part], self.landmarks_, self._root, self.bandwidth_)
                scores[part] = features @ self._direction
                diagonal[part] = self.ridge + lost_nystrom_diagonal(features)
        return np.clip((scores - self._multiplier) / diagonal, 0, self.bound)

    def _kappa(self, X: FloatArray) -> FloatArray:
        ratio = len(self.source_rows_) / len(self.target_rows_)
        return ratio * _kernel_sums(X, self.target_rows_, self.bandwidth_)
