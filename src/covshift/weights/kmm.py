"""Kernel mean matching."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from covshift.base import check_count, check_number
from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_bases import squares_to_bases
from covshift.kernels.kmm import kernel_product, kernel_sums, match_means, mean_multiplier
from covshift.measures import median_bandwidth
from covshift.weights._base import NEGLIGIBLE, WeightEstimator

FALLBACK_ROWS = 500  # of each role, whose distances give the bandwidth after an underflow


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
        Largest number of steps, each of which costs :math:`n_s^2` kernels (time, not memory).

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Weights of the source rows, in their order, not normalised.
    bandwidth_, epsilon_ : float
        What was used.
    gap_ : float
        Bound on how far the objective is above its optimum.
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
        self, bound=1000.0, *, ridge=1.0, bandwidth=None, epsilon=None, tol=1e-8, max_iter=2000
    ):
        self.bound = bound
        self.ridge = ridge
        self.bandwidth = bandwidth
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_number("bound", self.bound, minimum=1)
        check_number("ridge", self.ridge, minimum=0)
        check_number("tol", self.tol, minimum=0)
        check_count("max_iter", self.max_iter, minimum=1)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, minimum=0, closed="neither")
        if self.epsilon is not None:
            check_number("epsilon", self.epsilon, minimum=0, maximum=1, closed="left")

    def _estimate(self, source: FloatArray, target: FloatArray) -> FloatArray:
        self.source_rows_, self.target_rows_ = source, target
        self.bandwidth_ = float(self.bandwidth or median_bandwidth(source, target))
        kappa = self._kappa(source)
        if kappa.max() < NEGLIGIBLE:
            some = [rows[:: 1 + len(rows) // FALLBACK_ROWS] for rows in (source, target)]
            fallback = float(np.sqrt(np.median(squares_to_bases(*some))))
            self._warn(
                f"all kernels underflow at the bandwidth {self.bandwidth_:.3g}; the median "
                f"distance between source and target rows, {fallback:.3g}, is used instead"
            )
            self.bandwidth_ = fallback
            kappa = self._kappa(source)
        self.epsilon_ = float(len(source) ** -0.5 if self.epsilon is None else self.epsilon)
        weights, product, self.gap_ = match_means(
            kernel_product(source, self.bandwidth_),
            kappa,
            ridge=self.ridge,
            bound=self.bound,
            epsilon=self.epsilon_,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        objective = float(weights @ (product + self.ridge * weights)) / 2 - float(kappa @ weights)
        if self.gap_ > self.tol * abs(objective):
            warnings.warn(
                f"KMMWeights did not converge in {self.max_iter} iterations: the objective, "
                f"{objective:.3g}, may be {self.gap_:.1e} above its optimum. Raise max_iter, tol "
                "or ridge.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._solution = weights
        self._multiplier = mean_multiplier(weights, product, kappa, self.ridge, self.bound)
        return weights

    def _evaluate(self, X: FloatArray) -> FloatArray:
        if self.ridge == 0:
            weights: FloatArray = self._solution[pairwise_distances_argmin(X, self.source_rows_)]
            return weights
        matched = kernel_sums(X, self.source_rows_, self.bandwidth_, self._solution)
        values = (self._kappa(X) - matched - self._multiplier) / self.ridge
        return np.clip(values, 0, self.bound)

    def _kappa(self, X: FloatArray) -> FloatArray:
        ratio = len(self.source_rows_) / len(self.target_rows_)
        return ratio * kernel_sums(X, self.target_rows_, self.bandwidth_)
