"""Relative unconstrained least-squares importance fitting."""

import numpy as np

from covshift.base import check_number
from covshift.kernels.array_types import FloatArray
from covshift.weights.ulsif import LAMBDAS, LeastSquaresWeights


class RuLSIFWeights(LeastSquaresWeights):
    r"""Importance weights by relative least-squares importance fitting (RuLSIF).

    .. math::

        w(x) = \frac{p_\text{target}(x)}
        {\alpha \, p_\text{target}(x) + (1 - \alpha) \, p_\text{source}(x)}
        \approx \sum_l \theta_l
        \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)

    which is at most :math:`1 / \alpha`, so that few rows cannot have all the weight; the
    estimate is cut off at zero and there. The fit is that of uLSIF with H taken over the
    mixture; bandwidth and regularization are those of the best leave-one-out score.

    **Assumption**: P(y | x) is the same in both domains. Where the source has no rows the
    weights stay moderate, at the price of a bias toward no adaptation: with
    :math:`\alpha = 1` all weights would be one.

    Parameters
    ----------
    alpha : float in [0, 1), default=0.1
        Share of the target in the mixture. 0 is uLSIF.
    n_bases, sigmas, lambdas, clip, random_state
        As in `ULSIFWeights`. The paper: ``n_bases=250``, ``RuLSIFWeights.PAPER_SIGMAS`` and
        ``RuLSIFWeights.PAPER_LAMBDAS``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Estimates of the ratio at the source rows, in their order, not normalized.
    bandwidth_, regularization_, score_table_, sigmas_, lambdas_, bases_, coefficients_
        As in `ULSIFWeights`.
    effective_sample_size_, domains_
        As in `ULSIFWeights`.
    mean_weight_, share_zero_ : float
        Mean of the weights (below one, if there is any shift) and share of weights that are zero.

    Notes
    -----
    **Cost**: as `ULSIFWeights`: O(n b (m + s b) + s b³) time and O(n b) memory.

    References
    ----------
    M. Yamada, T. Suzuki, T. Kanamori, H. Hachiya, M. Sugiyama, "Relative density-ratio
    estimation for robust distribution comparison", Neural Computation 25, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import RuLSIFWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = RuLSIFWeights(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.1])
    """

    def __init__(
        self,
        *,
        alpha=0.1,
        n_bases=100,
        sigmas=None,
        lambdas=LAMBDAS,
        clip="weights",
        random_state=None,
    ):
        self.alpha = alpha
        self.n_bases = n_bases
        self.sigmas = sigmas
        self.lambdas = lambdas
        self.clip = clip
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("alpha", self.alpha, minimum=0, maximum=1, closed="left")

    def _evaluate(self, X: FloatArray) -> FloatArray:
        values = super()._evaluate(X)
        return values if self.alpha == 0 else np.minimum(values, 1 / self.alpha)
