"""Sparse filtering, and what its periodic form shares with it."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from covshift.adapters._filter_minimization import (
    FilterProblem,
    Reward,
    UnitNorms,
    check_filter_parameters,
    minimize_filters,
)
from covshift.base import RefitNeededError, TargetLearner, UnitAdapter, all_or_nothing
from covshift.domains import (
    check_fit_domains,
    check_new_domains,
    pooling_units,
)
from covshift.kernels.activations_and_norms import activate
from covshift.kernels.device_filters import activations_on_device
from covshift.kernels.row_blocks import blocks_are_kept
from covshift.shared_docs import documented_like
from covshift.solvers.device_arrays import bring_to_host, cast, is_device_array, namespace_of
from covshift.streams import ArrayRows, open_rows


class SparseFilter(TargetLearner):
    """Base of the filters: Z = normalize(g(X W')), W fitted on the rows of all domains."""

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn the filters from the rows of all domains.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array} of shape (n_samples, n_features)
            Rows of all domains. A Dask array, and a memory map of more than 256 MB, are passed
            over in blocks and never copied. Tensors are fitted on their device under
            ``sklearn.config_context(array_api_dispatch=True)``.
        y : array-like of shape (n_samples,), default=None
            Labels; read only where ``label_mask`` allows it, and only by
            `PeriodicSparseFiltering`.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Where the label is known; default: source rows.
        """
        with all_or_nothing(self):
            problem = self._state_problem(X, y, sample_domain, label_mask)
            (paths,) = minimize_filters([problem], self.n_jobs)
            self._keep_best(problem, paths)
        self._warn_unless_converged()
        return self

    def _check_streamed(self) -> None:
        if self.normalization == "batch":
            raise ValueError(
                "normalization='batch' needs all rows of a call at once, but these rows come in "
                "blocks: fit with normalization='domain' or 'joint'."
            )

    def _check_new_target(self) -> None:
        if self.normalization == "joint":
            raise RefitNeededError(
                "With normalization='joint' all domains share one set of norms: refit with the "
                "rows of the new target, or use normalization='domain'."
            )

    def _transform_rows(self, X, sample_domain):
        domain = self._domains_of(sample_domain, X.shape[0])
        F = self._activate(X)
        if self.normalization == "batch":
            norms = UnitNorms.measure(F, pooling_units(domain, self.pooling, self.min_domain_size))
        else:
            norms = self._stored_norms()
        return norms.normalize(F, domain, self.norm_epsilon)

    def _learn_target(self, rows, unit):
        if self.normalization == "domain":
            new = self._measure_norms(rows, {unit: np.arange(rows.shape[0])})
            self._store_norms(self._stored_norms().replace(new))

    def _domains_of(self, sample_domain, n_samples):
        """Return the domains of rows to transform, checked."""
        return check_new_domains(
            sample_domain,
            n_samples,
            # Those of the fit, or a target that `adapt_target` has learned since.
            has_target=bool((self.domains_ < 0).any()) or "target" in self.norm_units_,
            domain_names=self.domain_names_,
        )

    def _state_problem(self, X, y, sample_domain, label_mask=None, like=None):
        """Check parameters and data, and draw the starts.

        ``like`` is a problem on the same data: what was found of them is not looked for again.
        """
        self._check_parameters()  # before a pass over all rows
        if like is not None:
            validate_data(self, X, skip_check_array=True)  # the number and names of features
            # Rows, domains and codes of labels are the same objects as in the other problem, by
            # which `FilterProblem.kind` knows that both can be evaluated together.
            known = like.reward
            encoded = None if known.codes is None else (known.classes, known.codes)
            reward = self._read_labels(bring_to_host(y), like.domains.label_mask, encoded)
            return FilterProblem.of(self, like.rows, like.domains, reward)
        rows = self._open(
            X, reset=True, if_streamed=self._check_streamable, if_on_device=self._check_on_device
        )
        sample_domain, label_mask, y = rows.bring_home(sample_domain, label_mask, y)
        domains = check_fit_domains(sample_domain, label_mask, rows.shape[0])
        reward = self._read_labels(y, domains.label_mask)
        return FilterProblem.of(self, rows, domains, reward)

    def _keep_best(self, problem, paths):
        """Store the filters of the best start and how it got there."""
        # The loss has many minima, and which one is found depends on the start.
        best = paths[int(np.argmin([path.loss for path in paths]))]
        self.components_ = namespace_of(best.x).positive(best.x)  # not a view of all starts
        # Rows to come are divided by norms of the fit: those of their domain or role, or one set
        # for all.
        stored = "joint" if self.normalization != "domain" else self.pooling
        units = pooling_units(problem.domains.sample_domain, stored, self.min_domain_size)
        self._store_norms(self._measure_norms(problem.rows, units))
        self.domains_ = problem.domains.domains
        self.domain_names_: dict[int, str] = {}
        self.loss_ = best.loss
        self.loss_curve_ = np.array(best.losses)
        self.history_ = {
            "loss": self.loss_curve_,
            "gradient_norm": np.array(best.gradient_norms),
            "ks_distance": np.array(best.distances or [np.nan] * len(best.losses)),
        }
        self.n_iter_ = best.n_iter
        self.kept_iteration_ = best.iteration
        self.restart_losses_ = np.array([path.loss for path in paths])
        self._n_features_out = best.x.shape[0]
        # With early stopping the path is cut on purpose, so that it need not have converged.
        self._converged = best.converged or bool(best.distances)

    def _warn_unless_converged(self, stacklevel=3):
        if self.max_iter > 0 and not self._converged:
            warnings.warn(
                f"{type(self).__name__} reached max_iter={self.max_iter} before the gradient "
                f"fell below tol={self.tol}: its filters can still improve. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def _check_parameters(self):
        check_filter_parameters(self)

    def _loss_name(self):
        return "joint"

    def _l1_weight(self):
        """Weight of the absolute penalty on W; none on a device, where it is not computed."""
        return 0.0

    def _activate(self, X):
        if is_device_array(X):
            W = cast(self.components_, X.dtype)
            return activations_on_device(X, W, self.activation, self.epsilon, namespace_of(X))
        # In the precision of the rows: single precision takes half the time and memory.
        H = X @ self.components_.astype(X.dtype, copy=False).T
        return activate(H, self.activation, self.epsilon)

    def _measure_norms(self, rows, units):
        W, stream = self.components_, rows.data
        if rows.on_device:
            return UnitNorms.measure_on_device(rows.data, self._activate, W.shape[0], units)
        if not rows.in_parts:
            if blocks_are_kept(W[:, 0].nbytes, rows.shape[0]):
                return UnitNorms.measure(self._activate(rows.data), units)
            stream = ArrayRows(rows.data)  # activations of all rows would take too much memory
        return UnitNorms.measure_stream(stream, W, self.activation, self.epsilon, units)

    def _check_streamable(self):
        """Refuse what needs all rows at once."""
        if self.early_stopping is not None:
            raise ValueError(
                "early_stopping='ks' compares all rows at every iteration: fit a sample of the "
                "rows in memory, or set max_iter instead."
            )

    def _check_on_device(self):
        """Refuse what is computed on the host only."""
        if self.early_stopping is not None:
            raise ValueError(
                "early_stopping='ks' sorts all rows at every iteration, which is not done on a "
                "device: give NumPy arrays (X.cpu().numpy()), or set max_iter instead."
            )

    def _store_norms(self, norms):
        self.norm_units_ = norms.units
        self.feature_norms_ = norms.root_means
        self.norm_counts_ = norms.counts

    def _stored_norms(self):
        return UnitNorms(self.norm_units_, self.feature_norms_, self.norm_counts_)

    def _open(self, X, *, reset=False, **options):
        rows = open_rows(self, X, reset=reset, accept_sparse=True, accept_device=True, **options)
        if not reset:
            rows.check_beside(self.components_)
        return rows

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


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
        Number of iterations that early stopping compares.
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
