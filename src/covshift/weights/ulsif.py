"""Unconstrained least-squares importance fitting."""

from covshift.weights._least_squares import LAMBDAS, LeastSquaresWeights


class ULSIFWeights(LeastSquaresWeights):
    r"""Importance weights by unconstrained least-squares importance fitting (uLSIF).

    .. math::

        w(x) = \max\Bigl(0, \sum_l \theta_l
        \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)\Bigr),
        \qquad \theta = (H + \lambda I)^{-1} h

    with H the mean of :math:`\varphi \varphi^\top` over the source rows, h the mean of
    :math:`\varphi` over the target rows, and bases :math:`c_l` drawn from the target. The
    bandwidth :math:`\sigma` and :math:`\lambda` with the best analytic leave-one-out score are
    taken.

    **Assumption**: P(y | x) is the same in both domains and every target row lies where the
    source has rows too. Where it has none, no weights can speak for the target.

    Parameters
    ----------
    n_bases : int, default=100
        Number of Gaussians; all target rows, if there are fewer. The paper: 250.
    sigmas : None, float or sequence of float, default=None
        Candidates for :math:`\sigma`. None: multiples .25, .5, .75, 1, 1.5 and 2 of the median
        distance between rows. ``ULSIFWeights.PAPER_SIGMAS`` are the paper's.
    lambdas : float or sequence of float, default=(1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        Candidates for :math:`\lambda`. ``ULSIFWeights.PAPER_LAMBDAS`` are the paper's.
    clip : {"weights", "coefficients"}, default="weights"
        What is set to zero where it is negative, in the score too. "coefficients" is the
        published method and that of ``densratio``; in 5 and more dimensions it loses most of
        the ranking, and it is slower.
    random_state : int, RandomState or None, default=None
        Seed of the draw of bases.

    Attributes
    ----------
    weights_ : ndarray of shape (n_source,)
        Estimates of the ratio at the source rows, in their order, not normalised.
    bandwidth_, regularization_ : float
        The chosen :math:`\sigma` and :math:`\lambda`.
    score_table_ : ndarray of shape (n_sigmas, n_lambdas)
        Leave-one-out scores; the smallest was chosen.
    sigmas_, lambdas_ : ndarrays
        The candidates: rows and columns of ``score_table_``.
    bases_ : ndarray of shape (n_bases, n_features)
        Target rows :math:`c_l`.
    coefficients_ : ndarray of shape (n_bases,)
        :math:`\theta`.
    effective_sample_size_ : float
        Equally weighted rows that the weighted source is worth.
    mean_weight_, share_zero_ : float
        Mean of the weights (1, if they are right) and share of weights that are zero.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    **Cost**: with b bases and s bandwidths O(n b (m + s b) + s b³) time, whatever the number
    of ``lambdas``; O(n b) memory. ``score_weights`` O(n b m).

    References
    ----------
    T. Kanamori, S. Hido, M. Sugiyama, "A least-squares approach to direct importance
    estimation", JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import ULSIFWeights
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 1)), rng.normal(0.8, 0.7, (500, 1))])
    >>> weights = ULSIFWeights(random_state=0).fit(X, sample_domain=np.repeat([0, -1], 500))
    >>> weights.score_weights([[-1.0], [1.0]]).round(1)
    array([0.1, 2.4])
    """

    def __init__(
        self, *, n_bases=100, sigmas=None, lambdas=LAMBDAS, clip="weights", random_state=None
    ):
        self.n_bases = n_bases
        self.sigmas = sigmas
        self.lambdas = lambdas
        self.clip = clip
        self.random_state = random_state
