"""Sparse filtering of short segments, pooled over windows of a signal."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from covshift.adapters._filter_minimization import minimize_filters
from covshift.adapters.sparse_filtering import SparseFiltering
from covshift.base import (
    DomainTransformer,
    TargetLearner,
    UnitAdapter,
    all_or_nothing,
    check_count,
    check_number,
    check_option,
)
from covshift.domains import check_fit_domains, check_new_domains
from covshift.kernels.activations_and_norms import ACTIVATIONS, activate, row_norms
from covshift.kernels.array_types import FloatArray
from covshift.row_checks import check_magnitude
from covshift.shared_docs import documented_like
from covshift.streams import OpenRows, open_rows

SEGMENT_LENGTH = 100  # samples, as published, where windows have as many
AT_USE = (*ACTIVATIONS, "square", "log")
# Added to the eigenvalues of the segments' covariance, in units of their mean: directions that the
# sensor's own filter has emptied would otherwise be blown up to unit variance.
WHITENING_EPSILON = 1e-5
BLOCK_RESPONSES = 2**22  # responses computed at a time
WINDOW_BYTES = 2**22  # bytes of windows read at a time


def draw_segments(
    rows: OpenRows, length: int, n_channels: int, n_segments: int, random_state: Any
) -> FloatArray:
    """Draw segments of windows, (S, length): all of them where they are few, else some at random.

    A window of each draw, its channel and the start in it are uniform and independent.
    """
    n_windows, n_features = rows.shape
    n_starts = n_features // n_channels - length + 1
    n_all = n_windows * n_channels * n_starts
    if n_all <= n_segments:
        drawn = np.arange(n_all)
    else:
        random_state = check_random_state(random_state)
        drawn = np.sort(random_state.randint(n_all, size=n_segments, dtype=np.int64))
    window, rest = np.divmod(drawn, n_channels * n_starts)
    channel, start = np.divmod(rest, n_starts)
    columns = (channel * (n_features // n_channels) + start)[:, None] + np.arange(length)
    segments = np.empty((len(drawn), length), rows.dtype)
    block = max(1, WINDOW_BYTES // (n_features * segments.itemsize))
    for first in range(0, len(drawn), block):
        part = slice(first, first + block)
        windows, of_segment = np.unique(window[part], return_inverse=True)
        segments[part] = rows.pick(windows)[of_segment[:, None], columns[part]]
    return segments


def whitening_matrix(segments: FloatArray, epsilon: float = WHITENING_EPSILON) -> FloatArray:
    r"""Return the symmetric V, (s, s), that makes centered segments (S, s) nearly uncorrelated.

    .. math::

        V = E (D + \epsilon \bar d I)^{-1/2} E^\top, \qquad
        \operatorname{cov}(\text{segments}) = E D E^\top
    """
    segments = segments.astype(np.float64)
    centered = segments - segments.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    values = np.clip(values, 0, None)
    mean = values.mean()
    if mean == 0:  # all segments are the same
        return np.eye(len(values))
    return (vectors / np.sqrt(values + epsilon * mean)) @ vectors.T


def _respond(H: FloatArray, activation: str, epsilon: float) -> FloatArray:
    r"""Activation at use: those of the filters, "square" :math:`h^2`, "log" :math:`\log(1+h^2)`."""
    if activation in ACTIVATIONS:
        return activate(H, activation, epsilon)  # type: ignore[arg-type]
    squares: FloatArray = np.square(H)
    return np.log1p(squares, out=squares) if activation == "log" else squares


def pooled_responses(
    X: FloatArray,
    W: FloatArray,
    b: FloatArray,
    step: int,
    activation: str,
    epsilon: float,
    normalize: bool,
) -> FloatArray:
    """Return the mean response of each filter over the segments of each window.

    X (n, channels, N) and W (L, s) give (n, channels, L); segments start every ``step`` samples.
    With ``normalize`` the responses of each segment are divided by their norm, if that is not zero.
    """
    L, s = W.shape
    segments = sliding_window_view(X, s, axis=-1)[..., ::step, :]  # (n, channels, J, s)
    n_blocks = max(1, segments[..., 0].size * L // BLOCK_RESPONSES)
    parts = []
    for block in np.array_split(segments, min(n_blocks, len(segments))):
        F = _respond(block.reshape(-1, s) @ W.T + b, activation, epsilon)
        if normalize:
            F /= row_norms(F, 0.0)
        parts.append(F.reshape(*block.shape[:-1], L).mean(axis=-2))
    return np.concatenate(parts)


class SegmentSparseFiltering(DomainTransformer):
    r"""Sparse filtering of short segments of a signal, pooled over each window.

    .. math::

        z = \frac{1}{J} \sum_{i=1}^{J} \frac{f_i}{\lVert f_i \rVert}, \qquad
        f_i = g_\text{use}\bigl(W V (s_i - \mu)\bigr), \qquad
        \min_W \; \sum_{ij} \text{normalize}\bigl(g(S W^\top)\bigr)_{ij}
        + \lambda \lVert W \rVert_1

    where :math:`s_1, \dots, s_J` are the segments of a window, side by side, and S the whitened
    segments :math:`V (s - \mu)` that are drawn at random from the windows of all domains;
    ``normalize`` and the first sum are those of `SparseFiltering`. Each filter of the soft absolute
    value is then scaled to a root mean square response of one, since its length does not change
    the sum. It reads no labels.

    **Assumption**: the label depends on which short waveforms a window holds, and how strongly, not
    on where they stand in the window. It harms where the order of events in a window matters, and
    where domains ring with other waveforms, as sensors at other places do.

    Parameters
    ----------
    n_components : int, default=100
        Number L of filters.
    segment_length : int, default=None
        Samples s of a segment. None: 100, or the whole window where that is shorter.
    step : int, default=None
        Samples from one segment of a window to the next, when it is represented. None: the length
        of a segment, so that they do not overlap.
    n_segments : int, default=20000
        Segments that the filters are learned from. Where windows have no more, all are used.
    n_channels : int, default=1
        Channels of a window, one after the other in a row. They share the filters; each has its
        own responses.
    whiten : bool, default=True
        Whether segments are centered and made uncorrelated, as published. False:
        :math:`V = I, \mu = 0`. Whitening takes away how strong each frequency is overall: where
        classes differ in narrow bands, try without.
    activation : {"abs", "sin", "cos"}, default="abs"
        g, by which the filters are learned: see `SparseFiltering`.
    activation_at_use : {None, "abs", "sin", "cos", "square", "log"}, default=None
        The activation of responses. None: g. "square" is :math:`h^2`, the energy; "log" is
        :math:`\log(1 + h^2)`, on which single large impacts weigh less.
    normalize : bool, default=True
        Whether the responses :math:`f_i` of a segment are divided by their norm, as those of a row
        are in `SparseFiltering`: z then tells how segments look, not how loud they are. False:
        the mean of :math:`f_i`.
    l1_penalty : float, default=0
        :math:`\lambda`. The first sum does not depend on the lengths of filters, so that the
        penalty shrinks them all as long as the optimizer runs; how sparse they become depends on
        ``max_iter`` as well.
    epsilon : float, default=1e-8
        Inside the soft absolute value.
    max_iter : int, default=100
        Optimizer iterations; 0 leaves the filters as drawn.
    tol : float, default=1e-5
        As in `SparseFiltering`.
    n_restarts : int, default=1
        Starts; the fit with the smallest training loss is kept.
    n_jobs : int, default=None
        Threads; the result does not depend on their number.
    random_state : int, RandomState or None, default=None
        Seed of segments and starts.
    verbose : int, default=0
        1: a line per restart; 2: a line per iteration.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, segment_length)
        W V in the units of the windows: the filters as waveforms, which can be drawn.
    intercept_ : ndarray of shape (n_components,)
        :math:`-W V \mu`.
    segment_length_, window_length_ : int
        Samples of a segment, and of a channel of a window.
    n_segments_ : int
        Segments that were used.
    loss_ : float
        Loss of the kept filters.
    loss_curve_ : ndarray of shape (n_iterations + 1,)
        Loss at every iteration of the kept start.
    n_iter_ : int
        Iterations that the kept start ran.
    domains_ : ndarray
        Domains known from the fit.

    Notes
    -----
    All domains share filters and scales. Where domains differ in gain, put a
    `DomainStandardScaler` after it, as in the example.

    **Cost**: S segments of s samples, L filters: an iteration takes O(S s L) time and the fit
    O(S (s + L)) memory, however many windows there are; memory maps and Dask arrays are sampled.
    ``transform`` takes O(J s L) time for each window.

    References
    ----------
    Y. Lei, F. Jia, J. Lin, S. Xing, S. X. Ding, "An intelligent fault diagnosis method using
    unsupervised feature learning toward mechanical big data", IEEE Transactions on Industrial
    Electronics 63 (5), 2016: segments, whitening, averages.
    W. Qian, S. Li, J. Wang, Z. An, X. Jiang, "An intelligent fault diagnosis method of rotating
    machinery using L1-regularized sparse filtering", Journal of Vibroengineering 20 (8), 2018: the
    penalty, and another activation at use than in learning.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from covshift import AdaptedClassifier, DomainStandardScaler, SegmentSparseFiltering
    >>> from covshift import stack_domains
    >>> rng, t = np.random.default_rng(0), np.arange(300)
    >>> def windows(gain, n=40):
    ...     y = np.arange(n) % 2  # which of two frequencies it rings at
    ...     phase = rng.uniform(0, 2 * np.pi, (n, 1))
    ...     signal = np.sin((0.3 + 0.3 * y[:, None]) * t + phase)
    ...     return gain * (signal + rng.normal(0, 0.3, (n, 300))), y
    >>> (X_source, y_source), (X_target, y_target) = windows(1.0), windows(3.0)
    >>> X, y, sample_domain = stack_domains(X_source, y_source, X_target)
    >>> filters = SegmentSparseFiltering(
    ...     10, segment_length=30, n_segments=1000, whiten=False, tol=1e-3, random_state=0
    ... )
    >>> model = AdaptedClassifier(make_pipeline(filters, DomainStandardScaler()))
    >>> model.fit(X, y, sample_domain=sample_domain).score(X_target, y_target)
    1.0
    """

    def __init__(
        self,
        n_components=100,
        *,
        segment_length=None,
        step=None,
        n_segments=20_000,
        n_channels=1,
        whiten=True,
        activation="abs",
        activation_at_use=None,
        normalize=True,
        l1_penalty=0.0,
        epsilon=1e-8,
        max_iter=100,
        tol=1e-5,
        n_restarts=1,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.segment_length = segment_length
        self.step = step
        self.n_segments = n_segments
        self.n_channels = n_channels
        self.whiten = whiten
        self.activation = activation
        self.activation_at_use = activation_at_use
        self.normalize = normalize
        self.l1_penalty = l1_penalty
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn the filters from segments of the windows of all domains.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows of all domains, as `covshift.signals.cut_windows` makes them. Of a Dask array,
            and of a memory map of more than 256 MB, only the windows that segments are drawn from
            are read and checked, a few at a time.
        sample_domain : array-like of shape (n_windows,), default=None
            Domain of each window; checked and without effect.
        """
        with all_or_nothing(self):
            rows = open_rows(self, X, reset=True, look=False)
            self._check_parameters()
            sample_domain, label_mask = rows.bring_home(sample_domain, label_mask)
            domains = check_fit_domains(sample_domain, label_mask, rows.shape[0])
            random_state = check_random_state(self.random_state)
            segments = draw_segments(
                rows, self.segment_length_, self.n_channels, self.n_segments, random_state
            )
            # Of rows in parts, only drawn values are read.
            check_array(segments, input_name="X")
            check_magnitude(segments)
            self._learn(segments, random_state)
            self.n_segments_ = len(segments)
            self.domains_ = domains.domains
            self._n_features_out = self.n_channels * self.n_components
        if self.max_iter > 0 and not self._converged:
            warnings.warn(
                f"SegmentSparseFiltering reached max_iter={self.max_iter} before the gradient fell "
                f"below tol={self.tol}: its filters can still improve. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @documented_like(TargetLearner.transform)
    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Represent windows by the mean responses of the filters.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows.
        sample_domain : array-like of shape (n_windows,), int or str, default=None
            Checked and without effect: windows of all domains are represented alike.

        Returns
        -------
        Z : ndarray of shape (n_windows, n_channels * n_components)
            A Dask array that is yet to be computed, if X is one.
        """
        check_is_fitted(self)
        rows = open_rows(self, X, reset=False, look=False)
        return rows.map(self.transform, self._transform_rows, sample_domain)

    def _transform_rows(self, X: FloatArray, sample_domain: Any) -> FloatArray:
        has_target = bool((self.domains_ < 0).any())
        check_new_domains(sample_domain, len(X), has_target=has_target, domain_names={})
        with np.errstate(over="ignore", invalid="ignore"):
            Z = pooled_responses(
                X.reshape(len(X), self.n_channels, self.window_length_),
                self.components_.astype(X.dtype, copy=False),
                self.intercept_.astype(X.dtype, copy=False),
                self.segment_length_ if self.step is None else self.step,
                self.activation if self.activation_at_use is None else self.activation_at_use,
                self.epsilon,
                self.normalize,
            ).reshape(len(X), -1)
        if not np.isfinite(Z).all():
            raise ValueError(
                f"X holds magnitudes up to {np.abs(X).max():.1e}, for which the filters overflow: "
                "the windows of the fit were far smaller, or nearly zero. Give all in one unit."
            )
        return Z

    def _learn(self, segments: FloatArray, random_state: Any) -> None:
        """Scale and whiten segments, fit sparse filtering, and store what applies to windows."""
        scale = float(np.abs(segments).max()) or 1.0  # scaled by it, no square overflows
        segments = segments / segments.dtype.type(scale)
        length = segments.shape[1]
        mean: FloatArray = np.zeros(length)
        V: FloatArray = np.eye(length)
        if self.whiten:
            mean, V = segments.mean(axis=0, dtype=np.float64), whitening_matrix(segments)
            segments = ((segments - mean) @ V).astype(segments.dtype)
        filters = _PenalizedFilters(
            self.n_components,
            activation=self.activation,
            normalization="joint",
            epsilon=self.epsilon,
            init_scale=1.0,  # segments are whitened: responses of the start have unit variance
            max_iter=self.max_iter,
            tol=self.tol,
            n_restarts=self.n_restarts,
            random_state=random_state,
            verbose=self.verbose,
        )
        filters.l1_penalty = self.l1_penalty
        problem = filters._state_problem(segments, None, None)
        (paths,) = minimize_filters([problem], self.n_jobs)
        filters._keep_best(problem, paths)
        W = filters.components_.astype(np.float64)
        if self.activation == "abs":
            norms = filters.feature_norms_[0].astype(np.float64)
            W = W / np.where(norms > 0, norms, 1.0)[:, None]
        WV = W @ V
        self.components_ = (WV / scale).astype(segments.dtype)
        self.intercept_ = (-WV @ mean).astype(segments.dtype)
        self.loss_, self.loss_curve_ = filters.loss_, filters.loss_curve_
        self.n_iter_, self._converged = filters.n_iter_, filters._converged

    def _check_parameters(self) -> None:
        # `SparseFiltering` checks the other parameters.
        for name in ("n_components", "n_segments", "n_channels"):
            check_count(name, getattr(self, name), minimum=1)
        check_option("whiten", self.whiten, (True, False))
        check_option("normalize", self.normalize, (True, False))
        check_option("activation_at_use", self.activation_at_use, (None, *AT_USE))
        check_number("l1_penalty", self.l1_penalty, minimum=0)
        if self.n_features_in_ % self.n_channels:
            raise ValueError(
                f"X has {self.n_features_in_} columns, which cannot be {self.n_channels} channels "
                "of equal length: check n_channels."
            )
        self.window_length_ = self.n_features_in_ // self.n_channels
        if self.step is not None:
            check_count("step", self.step, minimum=1)
        if self.segment_length is None:
            self.segment_length_ = min(SEGMENT_LENGTH, self.window_length_)
            return
        check_count("segment_length", self.segment_length, minimum=1)
        if self.segment_length > self.window_length_:
            raise ValueError(
                f"segment_length={self.segment_length} is more than the {self.window_length_} "
                "samples of a window."
            )
        self.segment_length_ = self.segment_length

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _PenalizedFilters(SparseFiltering):
    """Sparse filtering with an absolute penalty on W; never stored in a model."""

    l1_penalty = 0.0

    def _l1_weight(self):
        return self.l1_penalty
