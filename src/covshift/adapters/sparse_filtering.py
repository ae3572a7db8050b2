"""Sparse filtering."""

from covshift.adapters._filter_minimization import Reward
from covshift.adapters._sparse_filter import SparseFilter


class SparseFiltering(SparseFilter):
    r"""Sparse filtering (SF): a sparse representation learned from all domains together.

    .. math::

        Z = \text{normalize}(g(X W^\top)), \qquad g(h) = \sqrt{h^2 + \epsilon}, \qquad
        \min_W \sum_{ij} Z_{ij}

    where ``normalize`` divides each feature by its :math:`\ell_2` norm over the rows, then
    each row by its :math:`\ell_2` norm over the features. It reads no labels.

    **Assumption**: rows in the same direction from the origin, or in the opposite one, have
    the same label (P(y|x) is radial). Elsewhere it harms: it throws away all that is not
    direction.

    Parameters
    ----------
    n_components : int, default=None
        Number L of filters; None: the number of input features.
    activation : {"abs", "sin", "cos"}, default="abs"
        g: the soft absolute value, or :math:`1 + \epsilon + \sin h`, or the same with cos.
    normalization : {"domain", "joint", "batch"}, default="domain"
        Whose feature norms ``transform`` uses: those of each pooling unit, stored at fit;
        one stored set of all fitted rows; or those of the rows of each unit in the call.
        The loss always normalizes over all fitted rows together.
    epsilon : float, default=1e-8
        :math:`\epsilon` inside the activation.
    norm_epsilon : float, default=0
        Added to the sum of squares inside both norms (1e-8 in Ngiam's code).
    init : "normal" or array of shape (n_components, n_features), default="normal"
        Start: standard normal draws, or an array, which is the only start.
    init_scale : float or "auto", default=1.0
        Factor on the normal draws. "auto": :math:`1 / \sqrt m` for m features, so that responses to
        standardized features spread by about one. With "abs" the loss does not depend on the
        lengths of filters, and the factor changes only the path of the optimizer.
    alpha : float, default=0
        Weight of the penalty :math:`\tfrac{\alpha}{2} \lVert W \rVert^2`.
    max_iter : int, default=200
        Optimizer iterations; 0 leaves W as drawn.
    tol : float, default=1e-5
        Stops when the largest entry of the gradient, divided by the number of rows (the loss
        is a sum over them), is below ``tol``.
    n_restarts : int, default=1
        Starts; the fit with the smallest training loss is kept.
    early_stopping : "ks" or None, default=None
        "ks": keep the iterate, the start included, with the smallest mean two-sample
        Kolmogorov-Smirnov distance between source and target features. The paper's rule; on
        product reviews it stopped after a few iterations, before much was learned, and harmed.
    stopping_window : int, default=50
        Iterations in which early stopping looks.
    pooling : {"role", "domain"}, default="role"
        Units that share norms: all sources and all targets, or each domain by itself.
    min_domain_size : int, default=10
        A domain with fewer rows uses the norms of its role.
    warm_start : bool, default=False
        Start from the filters of the earlier fit.
    n_jobs : int, default=None
        Threads; the result does not depend on their number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    verbose : int, default=0
        1: a line per restart; 2: a line per iteration.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The filters W.
    feature_norms_ : ndarray of shape (n_units, n_components)
        Root mean square of each activation in each unit.
    norm_units_ : list
        Names of the units: "source", "target"; with ``pooling="domain"`` the integer of each
        domain that is large enough before them; "all" for the other two normalizations.
    norm_counts_ : ndarray of shape (n_units,)
        Rows over which each unit's norms were measured.
    domains_ : ndarray
        Domains known, from the fit or from ``adapt_target``.
    domain_names_ : dict
        Integer -> name of the targets learned by name in ``adapt_target``.
    loss_ : float
        Loss of the kept filters.
    loss_curve_ : ndarray of shape (n_iterations + 1,)
        Loss at every iteration of the kept start, from iteration 0.
    history_ : dict of ndarrays
        "loss", "gradient_norm" (the largest entry) and "ks_distance" (NaN without early
        stopping) at every iteration.
    n_iter_ : int
        Iterations that the kept start ran.
    kept_iteration_ : int
        Iteration whose filters were kept: the last one, except after early stopping.
    restart_losses_ : ndarray of shape (n_restarts,)
        Loss of each start.

    Notes
    -----
    **Cost**: n rows, m features, L filters: an iteration takes O(n m L) time, for each start,
    and the fit O(n L) memory beside the rows; ``transform`` O(n m L) and O(n L). For
    seconds see docs/engine.md.

    References
    ----------
    J. Ngiam, P. W. Koh, Z. Chen, S. Bhaskar, A. Y. Ng, "Sparse filtering", NIPS 2011.
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation".

    Examples
    --------
    >>> from covshift import SparseFiltering, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> data = make_radial_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> sf = SparseFiltering(random_state=0).fit(X, sample_domain=sample_domain)
    >>> sf.transform(data.X_test).shape
    (500, 2)
    """

    def __init__(
        self,
        n_components=None,
        *,
        activation="abs",
        normalization="domain",
        epsilon=1e-8,
        norm_epsilon=0.0,
        init="normal",
        init_scale=1.0,
        alpha=0.0,
        max_iter=200,
        tol=1e-5,
        n_restarts=1,
        early_stopping=None,
        stopping_window=50,
        pooling="role",
        min_domain_size=10,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.activation = activation
        self.normalization = normalization
        self.epsilon = epsilon
        self.norm_epsilon = norm_epsilon
        self.init = init
        self.init_scale = init_scale
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.early_stopping = early_stopping
        self.stopping_window = stopping_window
        self.pooling = pooling
        self.min_domain_size = min_domain_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _read_labels(self, y, label_mask, encoded=None):
        return Reward.none(self.n_components or self.n_features_in_)
