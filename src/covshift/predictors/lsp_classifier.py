r"""Least-squares probabilistic classifier (LSPC), importance-weighted.

Rows i have weights :math:`w_i` and classes :math:`y_i`. With Gaussian bases :math:`\varphi`,

.. math::

    H = \frac{\sum_i w_i \varphi(x_i) \varphi(x_i)^\top}{\sum_i w_i}, \qquad
    h_c = \frac{\sum_{i: y_i = c} w_i \varphi(x_i)}{\sum_i w_i}, \qquad
    \theta_c = (H + \lambda I)^{-1} h_c,

    q_c(x) = \max(0, \theta_c^\top \varphi(x)), \qquad p(c \mid x) = q_c(x) / \sum_k q_k(x).

:math:`\theta_c` minimizes the weighted mean of
:math:`\frac12 (\theta_c^\top \varphi(x_i) - [y_i = c])^2`, plus
:math:`\frac\lambda2 \lVert \theta_c \rVert^2`. Where all q are zero, far from every basis, the
weighted shares of the classes stand in for p.

Rows that are alike are one row here (`covshift.kernels.distinct_rows`): ``class_weights`` (n, C)
holds the weight of each distinct row in each class.

**Cross-validation.** The sums behind H and h of a training part are those of all rows less those
of the rows left out. Each :math:`\lambda` has a Cholesky factorization of its own: for 250 bases a
tenth of the time of the eigendecomposition that would serve all of them. No matrix is larger than
rows by bases.

References
----------
M. Sugiyama, "Superfast-trainable multi-class probabilistic classifier by least-squares posterior
fitting", IEICE Transactions on Information and Systems E93-D, 2010.

H. Hachiya, M. Sugiyama, N. Ueda, "Importance-weighted least-squares probabilistic classifier for
covariate shift adaptation with application to human activity recognition", Neurocomputing 80,
2012.
"""

import reprlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import solve
from scipy.linalg.lapack import dposv
from sklearn.utils import check_array, check_random_state

from covshift.base import bandwidth_candidates, check_count, check_option, check_positive
from covshift.domains import FitDomains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.distinct_rows import merge_rows, sum_by_class
from covshift.kernels.drawn_rows import deal_folds, draw_rows
from covshift.kernels.gaussian_kernels import gaussian, squares_to_bases
from covshift.predictors._gaussian_classifier import GaussianClassifier
from covshift.row_checks import check_magnitude
from covshift.shared_docs import documented_like
from covshift.solvers.threads import one_blas_thread

# Losses (..., k) of rows from their probabilities (..., k, C) and class weights (k, C).
Criterion: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

# Share of the weight: a smaller remainder of a difference is rounding error.
NEGLIGIBLE = 1e-12


class Part(NamedTuple):
    """Some of the rows, by number, and how much of their weight is meant, (k, C)."""

    rows: IntArray
    class_weights: FloatArray


class Fold(NamedTuple):
    """Rows that one step of cross-validation removes from training, and tests on."""

    left_out: Part
    tested: Part


def fit_lsp_coefficients(
    P: FloatArray, class_weights: FloatArray, regularization: float
) -> FloatArray:
    """Return the coefficients (b, C) of the LSP classifier from basis functions (n, b)."""
    H, h = _sums(P, class_weights)
    total = class_weights.sum()
    H /= total
    H[np.diag_indices_from(H)] += regularization
    coefficients: FloatArray = solve(H, h / total, assume_a="pos")
    return coefficients


def class_probabilities(values: FloatArray, shares: FloatArray) -> FloatArray:
    r"""Probabilities (..., C) of the LSP classifier, from :math:`\theta_c^\top \varphi(x)`.

    They are made for class shares (C,).
    """
    q = np.maximum(values, 0)
    # Scaled by the largest first: a sum of tiny numbers keeps its digits.
    largest = q.max(axis=-1, keepdims=True)
    met = largest > 0
    np.divide(q, largest, out=q, where=met)
    np.copyto(q, shares, where=~met)
    q /= q.sum(axis=-1, keepdims=True)
    return q


def _cross_validation_scores(
    P: FloatArray,
    class_weights: FloatArray,
    folds: Iterable[Fold],
    regularizations: FloatArray,
    criterion: Criterion,
) -> FloatArray:
    r"""Return weighted mean loss on held-out rows, one for each :math:`\lambda`; less is better."""
    H, h = _sums(P, class_weights)
    class_totals = class_weights.sum(axis=0)
    losses, tested_weight = np.zeros(len(regularizations)), 0.0
    for left_out, tested in folds:
        H_out, h_out = _sums(P[left_out.rows], left_out.class_weights)
        kept = np.maximum(class_totals - left_out.class_weights.sum(axis=0), 0)
        total = kept.sum()
        if total <= NEGLIGIBLE * class_totals.sum() or not tested.class_weights.any():
            continue  # nothing to learn from, or nothing to test on
        theta = _solve_ridges((H - H_out) / total, (h - h_out) / total, regularizations)
        p = class_probabilities(P[tested.rows] @ theta, kept / total)
        losses += criterion(p, tested.class_weights).sum(axis=-1)
        losses[np.isnan(theta).any(axis=(1, 2))] = np.inf
        tested_weight += tested.class_weights.sum()
    return losses / tested_weight if tested_weight > 0 else losses


def _misclassification(p: FloatArray, class_weights: FloatArray) -> FloatArray:
    """Weight of the classes that are not the most probable one."""
    correct = class_weights[np.arange(len(class_weights)), p.argmax(axis=-1)]
    losses: FloatArray = class_weights.sum(axis=1) - correct
    return losses


def _squared_error(p: FloatArray, class_weights: FloatArray) -> FloatArray:
    r"""Return the squared distance of p to the true class (Brier score), less a constant, halved.

    :math:`\frac12 \sum_c p_c^2 - p_y`, times the weight.
    """
    weights = class_weights.sum(axis=1)
    losses: FloatArray = weights * np.square(p).sum(axis=-1) / 2 - (class_weights * p).sum(axis=-1)
    return losses


def _sums(P: FloatArray, class_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted sums of the outer products (b, b) and, by class, of the basis functions (b, C)."""
    scaled = P * np.sqrt(class_weights.sum(axis=1))[:, None]
    return scaled.T @ scaled, P.T @ class_weights  # with itself: half the work


def _solve_ridges(H: FloatArray, h: FloatArray, regularizations: FloatArray) -> FloatArray:
    r""":math:`(H + \lambda I)^{-1} h` for each :math:`\lambda`, (l, b, C).

    NaN where :math:`\lambda` is lost in the rounding of H.
    """
    theta = np.empty((len(regularizations), *h.shape))
    diagonal = np.diagonal(H).copy()
    for k, regularization in enumerate(regularizations):
        np.fill_diagonal(H, diagonal + regularization)
        _, theta[k], failed = dposv(H, h)
        if failed:
            theta[k] = np.nan
    return theta


# --- Labeled rows with their weights, and the folds that cross-validation makes of them ---

Split = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class WeightedRows:
    """Distinct rows (m, d), sorted, and their weight in each class (m, C).

    They come from the rows ``used`` of a ``fit``: labeled, and of a weight above zero; each of
    which has a ``number`` among the distinct rows.
    """

    rows: FloatArray
    class_weights: FloatArray
    used: IntArray
    number: IntArray
    codes: IntArray
    weights: FloatArray

    @classmethod
    def merge(
        cls, X: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int
    ) -> "WeightedRows":
        """Merge rows of ``fit`` that are alike; those of code -1 have no label."""
        used = np.flatnonzero((codes >= 0) & (weights > 0))
        codes, weights = codes[used], weights[used]
        # Only ratios of weights matter. By a power of two no digit changes, nothing overflows.
        weights = np.ldexp(weights, -np.frexp(weights.max())[1])
        rows, number = merge_rows(X[used].astype(np.float64))
        table = sum_by_class(number, codes, weights, (len(rows), n_classes))
        return cls(rows, table, used, number, codes, weights)

    @property
    def strata(self) -> IntArray:
        """Class of the most weight of each distinct row."""
        return self.class_weights.argmax(axis=1)

    def deal_folds(self, n_folds: int, rng: np.random.RandomState) -> list[Fold]:
        """Return folds of distinct rows, stratified by class; none for a single row."""
        n_folds = min(n_folds, len(self.rows))
        if n_folds < 2:
            return []
        fold_of = deal_folds(self.strata, n_folds, rng)
        parts = [self._part(np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
        return [Fold(left_out=part, tested=part) for part in parts]

    def ready_made_folds(self, splits: Iterable[Split]) -> list[Fold]:
        """Return folds from positions among the rows of ``fit``; those not used are left out."""
        folds = []
        for train, test in splits:
            left_out = self.class_weights - self._count(train)
            tested = self._count(test)
            folds.append(Fold(*(_nonzero_part(table) for table in (left_out, tested))))
        return folds

    def _part(self, rows: IntArray) -> Part:
        return Part(rows, self.class_weights[rows])

    def _count(self, positions: IntArray) -> FloatArray:
        """Weight (m, C) of rows of ``fit``, given by position, as often as they are given."""
        times = np.bincount(positions, minlength=self.used[-1] + 1)[self.used]
        return sum_by_class(self.number, self.codes, times * self.weights, self.class_weights.shape)


def _check_splits(cv: Any, n_samples: int) -> list[Split]:
    """Return ready-made splits as pairs of positions, or say what is wrong with them."""
    try:
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv]
    except (TypeError, ValueError):
        splits = []
    for part in (positions for split in splits for positions in split):
        valid = part.ndim == 1 and part.dtype.kind in "iu" and len(part)
        if not valid or part.min() < 0 or part.max() >= n_samples:
            splits = []
            break
    if not splits:
        raise ValueError(
            "cv must be a number of folds or pairs of arrays (train, test), which hold positions "
            f"among the {n_samples} rows of fit, got {reprlib.repr(cv)}. A splitter makes them: "
            "cv=list(splitter.split(X, y))."
        )
    return splits


def _nonzero_part(table: FloatArray) -> Part:
    rows = np.flatnonzero(table.any(axis=1))
    return Part(rows, table[rows])


# --- Drawing bases, choosing candidates ---


class Chosen(NamedTuple):
    """The scores of all candidates, and what the best of them led to."""

    score_table: FloatArray
    bandwidth: float
    regularization: float
    coefficients: FloatArray


def _choose_candidates(
    labeled: WeightedRows,
    bases: FloatArray,
    sigmas: FloatArray,
    lambdas: FloatArray,
    folds: list[Fold],
    criterion: Criterion,
) -> Chosen:
    """Score every pair of candidates by cross-validation and fit the best one on all rows."""
    squares = squares_to_bases(labeled.rows, bases)
    class_weights = labeled.class_weights
    table = np.stack(
        [
            _cross_validation_scores(
                gaussian(squares, sigma), class_weights, folds, lambdas, criterion
            )
            for sigma in sigmas
        ]
    )
    row, column = np.unravel_index(table.argmin(), table.shape)
    sigma, regularization = float(sigmas[row]), float(lambdas[column])
    coefficients = fit_lsp_coefficients(gaussian(squares, sigma), class_weights, regularization)
    return Chosen(table, sigma, regularization, coefficients)


def _draw_bases(
    bases: Any,
    n_bases: int,
    X: Any,
    domains: FitDomains,
    labeled: WeightedRows,
    rng: np.random.RandomState,
) -> FloatArray:
    """Return centers drawn from distinct rows, or those given, checked."""
    if not isinstance(bases, str):
        return _check_centers(bases, X.shape[1])
    if bases == "labelled":
        rows, strata = labeled.rows, labeled.strata
    elif domains.has_target:
        rows, _ = merge_rows(X[domains.target].astype(np.float64))
        strata = np.zeros(len(rows), dtype=np.int64)
    else:
        raise ValueError(
            "bases='target' needs target rows (negative entries of sample_domain), and fit got "
            "none. Inside AdaptedClassifier, which hands over labeled rows only, give the target "
            "rows themselves: bases=X_target."
        )
    return rows[draw_rows(strata, n_bases, rng)]


def _check_centers(bases: Any, n_features: int) -> FloatArray:
    if np.ndim(bases) != 2:
        raise ValueError(
            "bases must be 'labelled', 'target' or an array of centers, rows by features, got "
            f"{bases!r}."
        )
    centers: FloatArray = check_array(bases, dtype=np.float64, input_name="bases")
    if centers.shape[1] != n_features:
        raise ValueError(f"bases has {centers.shape[1]} features, but X has {n_features}.")
    check_magnitude(centers)
    return centers


CRITERIA = {"squared_error": _squared_error, "misclassification": _misclassification}


class LSPClassifier(GaussianClassifier):
    r"""Least-squares probabilistic classifier (LSPC).

    .. math::

        p(c \mid x) \propto \max\Bigl(0, \sum_l \theta_{cl}
        \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)\Bigr),
        \qquad \theta_c = (H + \lambda I)^{-1} h_c

    with H the weighted mean of :math:`\varphi \varphi^\top` over the labeled rows and
    :math:`h_c` that of :math:`\varphi` times whether the row is of class c. The bandwidth
    :math:`\sigma` and :math:`\lambda` with the smallest weighted cross-validation loss are taken.
    Far from every basis the probabilities are the weighted shares of the classes.

    It does not adapt by itself: ``AdaptedClassifier(ULSIFWeights(), LSPClassifier())`` is the
    importance-weighted LSPC, whose cross-validation is weighted too.

    **Assumption**: class probabilities vary smoothly, over distances of about :math:`\sigma`, the
    same everywhere. Scale the features first if their units differ.

    Parameters
    ----------
    n_bases : int, default=100
        Number of Gaussians; all distinct rows, if there are fewer. The paper: 250.
    sigmas : None, float or sequence of float, default=None
        Candidates for :math:`\sigma`. None: multiples .25, .5, .75, 1, 1.5 and 2 of the median
        distance between labeled rows. ``LSPClassifier.PAPER_SIGMAS`` are the paper's.
    lambdas : float or sequence of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        Candidates for :math:`\lambda`. ``LSPClassifier.PAPER_LAMBDAS`` are the paper's.
    cv : int or iterable of (train, test), default=5
        Number of folds, or ready-made ones: positions among the rows of ``fit``, of which
        unlabeled ones are left out. Rows that are alike share a fold.
    bases : "labelled", "target" or array of shape (n_bases, n_features), default="labelled"
        Where the centers :math:`c_l` are drawn: among the labeled rows, or among the target rows
        of ``sample_domain``; or the centers themselves, all of which are taken.
    criterion : {"squared_error", "misclassification"}, default="squared_error"
        Loss of held-out rows: squared error of the probabilities (Brier score), or the weighted
        share of wrong predictions, which is Hachiya's choice and ranks candidates worse.
    random_state : int, RandomState or None, default=None
        Seed of the draws of bases and folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes of the labeled rows. Those without weight are never predicted.
    bandwidth_, regularization_ : float
        The chosen :math:`\sigma` and :math:`\lambda`.
    score_table_ : ndarray of shape (n_sigmas, n_lambdas)
        Mean losses of held-out rows; the smallest was chosen. The squared error is halved and
        lacks the constant that every candidate has. All zero, if no row can be held out.
    sigmas_, lambdas_ : ndarrays
        The candidates: rows and columns of ``score_table_``.
    bases_ : ndarray of shape (n_bases, n_features)
        Centers :math:`c_l`.
    coefficients_ : ndarray of shape (n_bases, n_classes)
        :math:`\theta`.
    class_shares_ : ndarray of shape (n_classes,)
        Weighted shares of the classes among the labeled rows.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    Weighing a row by 2 is the same as having it twice, and by 0 the same as leaving it out, in
    cross-validation and in the draw of bases too: both are made among distinct rows.

    **Cost**: with b bases, C classes, s bandwidths, l penalties and f folds O(n b m + s (n b²
    + f b³ + l n b C)) time and O(n b) memory; ``predict_proba`` O(n b (m + C)).

    References
    ----------
    M. Sugiyama, "Superfast-trainable multi-class probabilistic classifier by least-squares
    posterior fitting", IEICE Transactions on Information and Systems E93-D, 2010.

    H. Hachiya, M. Sugiyama, N. Ueda, "Importance-weighted least-squares probabilistic classifier
    for covariate shift adaptation with application to human activity recognition",
    Neurocomputing 80, 2012.

    Examples
    --------
    >>> from covshift import AdaptedClassifier, LSPClassifier, RuLSIFWeights, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(RuLSIFWeights(random_state=0), LSPClassifier(random_state=0))
    >>> model = model.fit(X, y, sample_domain=sample_domain)
    >>> bool(model.score(data.X_test, data.y_test) > 0.9)
    True
    """

    PAPER_SIGMAS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
    PAPER_LAMBDAS = (0.1, 0.17, 0.32, 0.56, 1.0)

    def __init__(
        self,
        *,
        n_bases=100,
        sigmas=None,
        lambdas=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        cv=5,
        bases="labelled",
        criterion="squared_error",
        random_state=None,
    ):
        self.n_bases = n_bases
        self.sigmas = sigmas
        self.lambdas = lambdas
        self.cv = cv
        self.bases = bases
        self.criterion = criterion
        self.random_state = random_state

    @documented_like(GaussianClassifier.predict)
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the class probabilities of rows, in the order of ``classes_``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        dtype, probabilities = self._scores(X, sample_domain)
        return probabilities.astype(dtype, copy=False)

    @documented_like(predict_proba)
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities; minus infinity where they are zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, sample_domain=sample_domain))

    def _fit_rows(self, X: Any, domains: FitDomains, codes: IntArray, weights: FloatArray) -> None:
        labeled = WeightedRows.merge(X, codes, weights, len(self.classes_))
        rng = check_random_state(self.random_state)
        self.bases_ = _draw_bases(self.bases, self.n_bases, X, domains, labeled, rng)
        if isinstance(self.cv, Integral):
            folds = labeled.deal_folds(int(self.cv), rng)
        else:
            folds = labeled.ready_made_folds(_check_splits(self.cv, X.shape[0]))
        half = len(labeled.rows) // 2  # two samples that together are all distinct rows
        self.sigmas_ = bandwidth_candidates(
            self.sigmas, labeled.rows[: half or 1], labeled.rows[half:]
        )
        self.lambdas_ = check_positive("lambdas", self.lambdas)
        # The matrices between bases are small: threads would wait for each other.
        with one_blas_thread():
            self.score_table_, self.bandwidth_, self.regularization_, self.coefficients_ = (
                _choose_candidates(
                    labeled,
                    self.bases_,
                    self.sigmas_,
                    self.lambdas_,
                    folds,
                    CRITERIA[self.criterion],
                )
            )
        self.class_shares_ = labeled.class_weights.sum(axis=0) / labeled.class_weights.sum()
        if not self.coefficients_.any():
            warnings.warn(
                "LSPClassifier: no labeled row is within reach of a basis at the bandwidths "
                f"{self.sigmas_.tolist()}, so that every prediction is the most frequent class. "
                "Give larger sigmas, or other bases.",
                UserWarning,
                stacklevel=4,
            )

    def _check_parameters(self) -> None:
        check_count("n_bases", self.n_bases, minimum=1)
        if self.sigmas is not None:
            check_positive("sigmas", self.sigmas)
        check_positive("lambdas", self.lambdas)
        if isinstance(self.cv, Real):
            check_count("cv", self.cv, minimum=2)
        if isinstance(self.bases, str):
            check_option("bases", self.bases, ("labelled", "target"))
        check_option("criterion", self.criterion, CRITERIA)

    def _scores_of(self, values: FloatArray) -> FloatArray:
        return class_probabilities(values, self.class_shares_)
