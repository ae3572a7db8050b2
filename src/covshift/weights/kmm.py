"""Kernel mean matching."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state, gen_batches

from covshift.base import check_count, check_number, check_option
from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_bases import squares_to_bases
from covshift.kernels.kmm import kernel_product, kernel_sums, match_means, mean_multiplier
from covshift.kernels.kmm_low_rank import match_feature_means
from covshift.kernels.mmd import TILE_ROWS
from covshift.kernels.nystrom import lost_diagonal, nystrom_features, nystrom_root, nystrom_sum
from covshift.measures import median_bandwidth
from covshift.weights._base import NEGLIGIBLE, WeightEstimator

FALLBACK_ROWS = 500  # of each role, whose distances give the bandwidth after an underflow
EXACT_ROWS = 5000  # largest source for which "auto" is exact, as its kernel matrix is kept
AUTO_LANDMARKS = 500
ERROR_ROWS = 200  # whose kernel sums are computed exactly, to tell the error of a low rank


class KMMWeights(WeightEstimator):
    r"""Importance weights by kernel mean matching (KMM).

    .. math::

        \min_w \; \tfrac12 w^\top (K + \rho I) w - \kappa^\top w
        \quad \text{with} \quad 0 \le w_i \le B, \quad |\bar w - 1| \le \epsilon

    with K the Gaussian kernel between source rows and :math:`\kappa_i` the sum of kernels
    between source row i and the target rows, times :math:`n_s / n_t`: the weighted source gets
    the target's mean in the kernel's feature space.

    **Assumption**: P(y | x) is the same in both domains and every target row lies where the
    source has rows too. The weights match what the kernel can tell apart; nothing in the data
    chooses its bandwidth.

    Parameters
    ----------
    bound : float, default=1000.0
        Largest weight B, at least one.
    ridge : float, default=1.0
        :math:`\rho`. Without it the weights of neighbouring rows are hardly tied to each
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
        Weights of the source rows, in their order, not normalised.
    bandwidth_, epsilon_ : float
        What was used.
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
        Equally weighted rows that the weighted source is worth.
    mean_weight_, share_zero_ : float
        Mean of the weights and share of weights that are zero.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    A new row weighs what the conditions of optimality say of source rows,
    :math:`(\kappa(x) - \sum_i k(x, x_i) w_i - \nu) / \rho`, cut off at 0 and B, with
    :math:`\nu` the multiplier of the mean; so source rows get ``weights_`` again, up to ``tol``.
    Without a ridge that says nothing, and a row weighs as much as the nearest source row.

    With landmarks, :math:`\hat K = \Phi \Phi^\top + \operatorname{diag}(d)` with the features
    :math:`\varphi(x)` of the rows projected onto them and :math:`d(x) = 1 - \lVert \varphi(x)
    \rVert^2`. Target rows are projected alike, and :math:`\rho + d(x)` takes the place of
    :math:`\rho`. More landmarks come closer to the exact weights, which need not be closer to the
    true ratio: where many features carry no shift, what 500 leave out is mostly noise.

    **Cost**: exact: O(n_source²) time for an iteration (m times as much above 5,000 rows,
    where the kernel is computed anew) and O(n_source²) memory up to 5,000 rows; with r
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
        if kappa.max() < NEGLIGIBLE:
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
        """Features of the source rows, if the kernel is projected, and their kappa."""
        if self.landmarks_ is None:
            return None, self._kappa(self.source_rows_)
        self._root = nystrom_root(self.landmarks_, self.bandwidth_)
        where = self.landmarks_, self._root, self.bandwidth_
        ratio = len(self.source_rows_) / len(self.target_rows_)
        self._goal = ratio * nystrom_sum(self.target_rows_, *where)
        features = nystrom_features(self.source_rows_, *where)
        return features, features @ self._goal

    def _match(self, kappa: FloatArray) -> tuple[FloatArray, float]:
        """Weights of the source rows by the exact kernel, and their objective."""
        weights, product, self.gap_ = match_means(
            kernel_product(self.source_rows_, self.bandwidth_),
            kappa,
            ridge=self.ridge,
            bound=self.bound,
            epsilon=self.epsilon_,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self._multiplier = mean_multiplier(weights, product, kappa, self.ridge, self.bound)
        self.kernel_error_ = 0.0
        return weights, float(weights @ (product + self.ridge * weights) / 2 - kappa @ weights)

    def _match_features(
        self, features: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        """Weights of the source rows by the projected kernel, and their objective."""
        lost = lost_diagonal(features)
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
        exact = kernel_sums(self.source_rows_[some], self.source_rows_, self.bandwidth_, weights)
        projected = features[some] @ (weights @ features) + lost[some] * weights[some]
        self.kernel_error_ = float(np.linalg.norm(exact - projected) / np.linalg.norm(exact))
        return weights, objective

    def _evaluate(self, X: FloatArray) -> FloatArray:
        if self.ridge == 0:
            weights: FloatArray = self._solution[pairwise_distances_argmin(X, self.source_rows_)]
            return weights
        if self.landmarks_ is None:
            matched = kernel_sums(X, self.source_rows_, self.bandwidth_, self._solution)
            scores, diagonal = self._kappa(X) - matched, np.full(len(X), self.ridge)
        else:
            scores, diagonal = np.empty(len(X)), np.empty(len(X))
            for part in gen_batches(len(X), TILE_ROWS):
                features = nystrom_features(X[part], self.landmarks_, self._root, self.bandwidth_)
                scores[part] = features @ self._direction
                diagonal[part] = self.ridge + lost_diagonal(features)
        return np.clip((scores - self._multiplier) / diagonal, 0, self.bound)

    def _kappa(self, X: FloatArray) -> FloatArray:
        ratio = len(self.source_rows_) / len(self.target_rows_)
        return ratio * kernel_sums(X, self.target_rows_, self.bandwidth_)
