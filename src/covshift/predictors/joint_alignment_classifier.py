r"""Joint alignment: a kernel classifier whose scores agree between source and target.

Rows i of source and target have weights :math:`w_i`; labeled ones have an indicator
:math:`y_i \in \{0, 1\}^C` of their class. With :math:`\bar y` the weighted class shares of the
labeled rows and the Gaussian kernel k, the scores are

.. math::

    f(x) = \bar y + g(x), \qquad g(x) = \sum_i \alpha_i k(x_i, x),

    \min_\alpha \; \sum_{i \text{ labeled}} w_i \lVert y_i - f(x_i) \rVert^2
    + \eta \operatorname{tr}(\alpha^\top K \alpha)
    + \lambda \operatorname{tr}(g^\top M g) + \gamma \operatorname{tr}(g^\top L g).

**Alignment.** The squared distance between the mean scores of source S and target T is
:math:`\lVert e_0^\top g \rVert^2` with :math:`e_{0i} = w_i / w(S)` for source rows and
:math:`-w_i / w(T)` for target rows. :math:`e_c` is the same over the rows of class c alone, where
rows without a label have the class of the highest score, a pseudo-label. With each vector at
length one,

.. math::

    M = (1 - \mu) \frac{e_0 e_0^\top}{\lVert e_0 \rVert^2}
    + \mu \sum_c \frac{e_c e_c^\top}{\lVert e_c \rVert^2}.

So every part has Frobenius norm one, and is the squared distance of means times a number of rows
:math:`1 / \lVert e \rVert^2`, that is :math:`n_S n_T / (n_S + n_T)` for equal weights: it grows
with the rows as the first sum does, and a class of a few rows counts for a few rows. (The papers
divide the sum of all parts by its norm. There a pseudo-class of one row outweighs all others.) A
class without rows on one side has no part.

**Graph.** :math:`L = D^{-1/2} (D - W) D^{-1/2}` with :math:`W_{ij} = k(x_i, x_j)` if one of the
rows is among the p nearest neighbors of the other, and :math:`D_{ii} = \sum_j W_{ij}`.

**Solution.** With E diagonal, :math:`E_{ii} = w_i` for labeled rows and 0 for others, the gradient
vanishes for

.. math::

    \bigl((E + \gamma L + \lambda M) K + \eta I\bigr) \, \alpha = E (Y - \bar y).

:math:`\lambda M = U U^\top` has a rank of at most C + 1, and it is all that changes from one set of
pseudo-labels to the next. So :math:`B = (E + \gamma L) K + \eta I` is factorized once:

.. math::

    \alpha = \alpha_0 - V (I + U^\top K V)^{-1} U^\top K \alpha_0, \qquad
    \alpha_0 = B^{-1} E (Y - \bar y), \qquad V = B^{-1} U.

The first pseudo-labels come from the model without class-wise parts.

**Rows.** Of rows with many features, x stands for their first principal components, at unit length.
In many dimensions all rows are about as far from each other, so that neighbors and kernels say
little; and the length of a row says how unusual it is rather than what it is. In few dimensions the
length is part of the position.

**Many rows.** With Nyström features, :math:`K \approx \Phi \Phi^\top`
(`covshift.kernels.gaussian_kernels`), :math:`g = \Phi \theta`, and the same lines hold with
:math:`\Phi` in place of K and :math:`(\Phi^\top (E + \gamma L) \Phi + \eta I)^{-1} \Phi^\top` in
place of :math:`B^{-1}`.

**Probabilities** are :math:`\operatorname{softmax}(a f(x))`. The slope a is the most likely one for
leave-one-out scores of the labeled rows. These need no other fit: pseudo-labels fixed, the
scores are linear in Y, :math:`g = S (Y - \bar y)`, and without the loss of row i its residual is
:math:`(y_i - f(x_i)) / (1 - S_{ii})`.

References
----------
M. Long, J. Wang, G. Ding, S. J. Pan, P. S. Yu, "Adaptation regularization: a general framework for
transfer learning", IEEE Transactions on Knowledge and Data Engineering 26 (5), 2014.

J. Wang, W. Feng, Y. Chen, H. Yu, M. Huang, P. S. Yu, "Visual domain adaptation with manifold
embedded distribution alignment", ACM Multimedia 2018.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh, lu_factor, lu_solve, solve
from scipy.special import log_softmax, softmax
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import check_random_state

from covshift.base import check_count, check_number, check_option, warn_nothing_to_adapt
from covshift.domains import FitDomains
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.distinct_rows import merge_rows
from covshift.kernels.drawn_rows import draw_rows
from covshift.kernels.gaussian_kernels import (
    gaussian,
    nystrom_features,
    nystrom_root,
    squares_to_bases,
)
from covshift.kernels.probabilities import fit_scaling
from covshift.measures import median_bandwidth
from covshift.predictors._gaussian_classifier import GaussianClassifier
from covshift.shared_docs import documented_like

EXACT_ROWS = 2000  # distinct rows up to which "auto" solves for a coefficient of each
AUTO_LANDMARKS = 1000  # above; a fit then takes about as long as an exact one of 2,000 rows
MEDIAN_ROWS = 500  # rows for the median distance, which gives the bandwidth
SMALLEST_VARIANCE = 1e-12  # relative variance below which an axis is rounding error
LARGEST_LEVERAGE = 1 - 1e-10  # a row above this decides its score by its own label


class Entries(NamedTuple):
    """Distinct rows (n, m) of a role and a known class, sorted, with the weight of their copies.

    So weighing a row by 2 is the same as having it twice, in the graph and in the bandwidth too.
    """

    rows: FloatArray
    target: BoolArray
    codes: IntArray  # -1: no label
    weights: FloatArray

    @property
    def labeled(self) -> BoolArray:
        """Mask of the rows with a known label."""
        return self.codes >= 0


def _merge_entries(
    X: FloatArray, target: BoolArray, codes: IntArray, weights: FloatArray
) -> Entries:
    """Merge equal rows of the same role and class; drop those without weight."""
    used = weights > 0
    # Equal rows of another role or class stay apart: they have other parts in the alignment.
    keys = np.column_stack([X[used], target[used], codes[used]])
    merged, number = merge_rows(keys)
    totals = np.zeros(len(merged))
    np.add.at(totals, number, weights[used])
    return Entries(merged[:, :-2], merged[:, -2] > 0, merged[:, -1].astype(np.int64), totals)


def _unit_length(rows: FloatArray) -> FloatArray:
    """Return the rows divided by their length; zero rows stay zero."""
    # In units of the largest value first: squares of tiny ones would underflow.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: FloatArray = scaled / np.where(lengths > 0, lengths, 1)
    return unit


def _principal_axes(rows: FloatArray, n_components: int) -> FloatArray:
    """Return the axes (m, k) of largest variance of centered rows (n, m)."""
    n, m = rows.shape
    # The smaller of the two products has the same eigenvalues other than zero: (m, m) for few
    # features, (n, n) for few rows.
    if m <= n:
        axes: FloatArray = eigh(rows.T @ rows, subset_by_index=[m - n_components, m - 1])[1]
        return axes
    n_components = min(n_components, n)
    values, vectors = eigh(rows @ rows.T, subset_by_index=[n - n_components, n - 1])
    kept = values > SMALLEST_VARIANCE * max(values[-1], np.finfo(np.float64).tiny)
    # At least one axis, of zeros if all rows are the same.
    scaled = vectors[:, kept] / np.sqrt(values[kept]) if kept.any() else np.zeros((n, 1))
    axes = rows.T @ scaled
    return axes / np.maximum(np.linalg.norm(axes, axis=0), np.finfo(np.float64).tiny)


class Design(NamedTuple):
    """Functions of the rows, and how to fit them.

    ``functions`` (n, q) are K or the Nyström features. ``fit`` returns the coefficients (q, k) for
    right-hand sides (n, k) of the equations without alignment.
    """

    functions: FloatArray
    fit: Callable[[FloatArray], FloatArray]


def _exact_design(K: FloatArray, loss: Any, ridge: float) -> Design:
    r""":math:`K` and :math:`B^{-1}`, for the sparse matrix ``loss`` :math:`E + \gamma L`."""
    B = np.asarray(loss @ K)
    B[np.diag_indices_from(B)] += ridge
    # B is a product of symmetric matrices, which is not symmetric itself: LU, not Cholesky's
    # factors.
    factors = lu_factor(B, overwrite_a=True, check_finite=False)
    return Design(K, lambda R: lu_solve(factors, R, check_finite=False))


def _low_rank_design(Phi: FloatArray, loss: Any, ridge: float) -> Design:
    r""":math:`\Phi` and :math:`(\Phi^\top (E + \gamma L) \Phi + \eta I)^{-1} \Phi^\top`."""
    H = Phi.T @ (loss @ Phi)
    H[np.diag_indices_from(H)] += ridge
    factors = cho_factor(H, overwrite_a=True, check_finite=False)
    return Design(Phi, lambda R: cho_solve(factors, Phi.T @ R, check_finite=False))


def _graph_laplacian(rows: FloatArray, n_neighbors: int, bandwidth: float) -> Any:
    """L (n, n), sparse, of the symmetric graph of nearest neighbors."""
    n = len(rows)
    if n < 2:
        return sparse.csr_array((n, n))
    graph = kneighbors_graph(rows, min(n_neighbors, n - 1), mode="distance", include_self=False)
    graph.data = gaussian(np.square(graph.data), bandwidth)
    # Being a neighbor is not mutual; an edge is there if either row is a neighbor of the other.
    W = sparse.csr_array(graph.maximum(graph.T))
    degrees = np.asarray(W.sum(axis=1)).ravel()
    met = degrees > 0  # the weights of a row far from all others may underflow
    scale = np.zeros(n)
    scale[met] = 1 / np.sqrt(degrees[met])
    D = sparse.diags_array(scale)
    return sparse.csr_array(sparse.diags_array(met.astype(np.float64)) - D @ W @ D)


def _mean_differences(
    target: BoolArray, classes: IntArray | None, weights: FloatArray, n_classes: int
) -> FloatArray:
    r""":math:`e / \lVert e \rVert` (n, parts): of all rows, or of each class with both sides."""
    groups = [np.ones(len(target), dtype=bool)]
    if classes is not None:
        groups = [classes == code for code in range(n_classes)]
    columns = []
    for group in groups:
        sides = [group & ~target, group & target]
        if all(side.any() for side in sides):
            e = np.zeros(len(target))
            for side, sign in zip(sides, (1, -1), strict=True):
                # With these entries, a product with e is the mean over the source less that over
                # the target.
                e[side] = sign * weights[side] / weights[side].sum()
            columns.append(e / np.linalg.norm(e))
    return np.column_stack(columns) if columns else np.zeros((len(target), 0))


class Aligned(NamedTuple):
    r"""Coefficients (q, C), and V with :math:`(I + U^\top K V)^{-1} U^\top K` for leverages."""

    coefficients: FloatArray
    V: FloatArray
    correction: FloatArray


def align(design: Design, start: FloatArray, U: FloatArray) -> Aligned:
    """Return the classifier's coefficients with joint alignment, from those without (q, C)."""
    V = design.fit(U)
    UK = U.T @ design.functions
    correction = solve(np.eye(U.shape[1]) + UK @ V, UK)
    # Woodbury's identity: a term of low rank is added to an inverse without factorizing again, so
    # that a round of pseudo-labels costs little beside the first.
    return Aligned(start - V @ (correction @ start), V, correction)


def _leverages(design: Design, aligned: Aligned, entries: Entries) -> FloatArray:
    r""":math:`S_{ii}` of the labeled rows."""
    labeled = np.flatnonzero(entries.labeled)
    indicators = np.zeros((len(entries.rows), len(labeled)))
    indicators[labeled, np.arange(len(labeled))] = entries.weights[labeled]
    T = design.fit(indicators)
    # Coefficients that each label alone would have; the functions times these are columns of S.
    T -= aligned.V @ (aligned.correction @ T)
    found: FloatArray = np.einsum("ij,ji->i", design.functions[labeled], T)
    return np.clip(found, 0, LARGEST_LEVERAGE)


class JointAlignmentClassifier(GaussianClassifier):
    r"""Kernel classifier whose scores agree between source and target, class by class.

    .. math::

        \min_f \; \sum_{i \text{ labeled}} w_i \lVert y_i - f(x_i) \rVert^2
        + \eta \lVert f \rVert_K^2 + \lambda \Bigl((1 - \mu) \, d_0^2 + \mu \sum_c d_c^2\Bigr)
        + \gamma \operatorname{tr}(f^\top L f)

    with :math:`d_0` the distance between the mean scores of source and target, :math:`d_c` that
    within class c, each in units that make it a sum over rows, and L the normalized Laplacian of
    the graph of nearest neighbors. Target rows have pseudo-labels, which are predicted again for a
    few rounds. This is the family of ARTL and MEDA; the module has the whole formula.

    It uses the rows of the target by itself. An adapter aligns features, this classifier aligns
    scores: ``AdaptedClassifier("standardize", JointAlignmentClassifier())`` does both. With
    ``alignment_weight=0, graph_weight=0`` it is kernel ridge regression on the labeled rows.

    **Assumption**: a classifier of the source is right about most target rows of every class, so
    that pseudo-labels improve from round to round; with the graph, neighbors are of one class. It
    harms where most pseudo-labels of a class are wrong, or class proportions differ much. Scale
    the features first if their units differ.

    Parameters
    ----------
    alignment_weight : float, default=10.0
        :math:`\lambda`. The papers: 10.
    class_alignment : float, default=0.5
        :math:`\mu`, the part of the alignment that is within classes, from 0 to 1.
    graph_weight : float, default=1.0
        :math:`\gamma`; 0: no graph. The papers: 1.
    ridge : float, default=0.1
        :math:`\eta`. The papers: 0.1.
    n_neighbors : int, default=10
        Neighbors of a row in the graph. The papers: 10.
    bandwidth : None or float, default=None
        Width of the Gaussian kernel :math:`\exp(-\lVert x - x' \rVert^2 / 2 \sigma^2)`. None: the
        median distance between rows.
    n_components : int or None, default=40
        Principal components of all rows that rows are projected on first, if there are more
        features. None: never. MEDA's manifold features have 40 dimensions, too.
    unit_rows : "auto" or bool, default="auto"
        Whether rows are divided by their length before the kernel. "auto": if they are projected.
    max_rounds : int, default=10
        Largest number of rounds of pseudo-labels; it ends earlier if these repeat. The papers: 10.
    n_landmarks : "auto", int or None, default="auto"
        Number of rows, drawn at random, onto which the kernel is projected. None: the kernel is
        exact. "auto": exact up to 2,000 distinct rows, else 1,000.
    random_state : int, RandomState or None, default=None
        Seed of the draw of landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes of the labeled rows. Those without weight are never predicted.
    bases_ : ndarray of shape (n_bases, n_components) or (n_bases, n_features)
        Rows that the kernels are centered at, projected and at unit length.
    coefficients_ : ndarray of shape (n_bases, n_classes)
        :math:`\alpha`.
    class_shares_ : ndarray of shape (n_classes,)
        Weighted shares of the classes among the labeled rows: the scores far from all rows.
    bandwidth_, slope_ : float
        Width of the kernel, and the slope of the scores in the probabilities.
    center_, components_ : ndarrays of shape (n_features,), (n_components, n_features), or None
        What rows are projected on; None: they are not projected.
    unit_rows_ : bool
        Whether rows are divided by their length.
    n_rounds_ : int
        Rounds of pseudo-labels.
    domains_ : ndarray
        Domains of the fit.

    Notes
    -----
    Several source domains are pooled, and so are several target domains. Weighing a row by 2 is the
    same as having it twice, in the target too. Weights are not scaled: those of mean one leave the
    balance of the terms as it is.

    Probabilities are calibrated by leaving out labeled rows of the source, and are too high where
    the shift costs accuracy.

    **Cost**: with n distinct rows of all domains O(n² m + n³) time and O(n²) memory; with r
    landmarks O(n r (m + r) + r³) time and O(n r) memory, and O(n² m) time for the graph above 15
    features. 600 source rows and 300 target rows of 10 classes take 0.15 s.
    ``predict`` takes O(m + C) for each of the n or r bases and each row.

    References
    ----------
    M. Long, J. Wang, G. Ding, S. J. Pan, P. S. Yu, "Adaptation regularization: a general framework
    for transfer learning", IEEE Transactions on Knowledge and Data Engineering 26 (5), 2014.

    J. Wang, W. Feng, Y. Chen, H. Yu, M. Huang, P. S. Yu, "Visual domain adaptation with manifold
    embedded distribution alignment", ACM Multimedia 2018.

    Examples
    --------
    >>> from covshift import AdaptedClassifier, JointAlignmentClassifier, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier("none", JointAlignmentClassifier())
    >>> model = model.fit(X, y, sample_domain=sample_domain)
    >>> bool(model.score(data.X_test, data.y_test) > 0.9)
    True
    """

    __metadata_request__decision_function = {"sample_domain": True}

    def __init__(
        self,
        *,
        alignment_weight=10.0,
        class_alignment=0.5,
        graph_weight=1.0,
        ridge=0.1,
        n_neighbors=10,
        bandwidth=None,
        n_components=40,
        unit_rows="auto",
        max_rounds=10,
        n_landmarks="auto",
        random_state=None,
    ):
        self.alignment_weight = alignment_weight
        self.class_alignment = class_alignment
        self.graph_weight = graph_weight
        self.ridge = ridge
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.unit_rows = unit_rows
        self.max_rounds = max_rounds
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @property
    def uses_target_rows(self) -> bool:
        """Whether rows without a label change the fit: predictors then hand over all rows."""
        return self.alignment_weight > 0 or self.graph_weight > 0

    @documented_like(GaussianClassifier.predict)
    def decision_function(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the scores f(x) of rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second less that of the first.
        """
        dtype, scores = self._scores(X, sample_domain)
        if len(self.classes_) == 2:
            scores = scores[:, 1] - scores[:, 0]
        return scores.astype(dtype, copy=False)

    @documented_like(GaussianClassifier.predict)
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the class probabilities of rows, in the order of ``classes_``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        dtype, scores = self._scores(X, sample_domain)
        p: FloatArray = softmax(self.slope_ * scores, axis=1)
        return p.astype(dtype, copy=False)

    @documented_like(predict_proba)
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities."""
        dtype, scores = self._scores(X, sample_domain)
        log_p: FloatArray = log_softmax(self.slope_ * scores, axis=1)
        return log_p.astype(dtype, copy=False)

    def _fit_rows(self, X: Any, domains: FitDomains, codes: IntArray, weights: FloatArray) -> None:
        self._check_target(domains, weights)
        if not self.uses_target_rows:
            weights = np.where(domains.label_mask, weights, 0)
        self._fit_entries(_merge_entries(X, domains.target, codes, weights))

    def _fit_entries(self, entries: Entries) -> None:
        entries = entries._replace(rows=self._fit_projection(entries.rows))
        labeled, codes = entries.labeled, entries.codes
        n_classes = len(self.classes_)
        sums = np.bincount(codes[labeled], entries.weights[labeled], minlength=n_classes)
        self.class_shares_ = sums / sums.sum()
        half = len(entries.rows) // 2  # two samples that together are all rows
        self.bandwidth_ = (
            median_bandwidth(entries.rows[: half or 1], entries.rows[half:], max_rows=MEDIAN_ROWS)
            if self.bandwidth is None
            else float(self.bandwidth)
        )
        design, root = self._make_design(entries)
        residuals = np.zeros((len(entries.rows), n_classes))
        residuals[labeled] = np.eye(n_classes)[codes[labeled]] - self.class_shares_
        start = design.fit(residuals * entries.weights[:, None])
        aligned = self._align(design, start, entries)
        self.coefficients_ = aligned.coefficients if root is None else root @ aligned.coefficients
        self.slope_ = self._calibrate(design, aligned, entries, residuals[labeled])

    def _fit_projection(self, rows: FloatArray) -> FloatArray:
        """Find the principal axes; return the rows as the kernel sees them."""
        projected = self.n_components is not None and rows.shape[1] > self.n_components
        self.unit_rows_ = projected if self.unit_rows == "auto" else bool(self.unit_rows)
        self.center_: FloatArray | None = None
        self.components_: FloatArray | None = None
        if projected:
            center = rows.mean(axis=0)
            self.components_ = _principal_axes(rows - center, self.n_components).T.copy()
            self.center_ = center
        return self._represent(rows)

    def _make_design(self, entries: Entries) -> tuple[Design, FloatArray | None]:
        """Set the bases; the design, and what turns its coefficients into those of the bases."""
        loss = sparse.csr_array(sparse.diags_array(np.where(entries.labeled, entries.weights, 0.0)))
        if self.graph_weight > 0:
            laplacian = _graph_laplacian(entries.rows, self.n_neighbors, self.bandwidth_)
            loss = loss + self.graph_weight * laplacian
        n_landmarks = self.n_landmarks
        if n_landmarks == "auto":
            n_landmarks = None if len(entries.rows) <= EXACT_ROWS else AUTO_LANDMARKS
        if n_landmarks is None:
            self.bases_ = entries.rows
            K = gaussian(squares_to_bases(entries.rows, entries.rows), self.bandwidth_)
            return _exact_design(K, loss, self.ridge), None
        rng = check_random_state(self.random_state)
        # Of the target's rows and of every class about their share.
        drawn = draw_rows(np.where(entries.target, -2, entries.codes), n_landmarks, rng)
        self.bases_ = entries.rows[drawn]
        root = nystrom_root(self.bases_, self.bandwidth_)
        Phi = nystrom_features(entries.rows, self.bases_, root, self.bandwidth_)
        return _low_rank_design(Phi, loss, self.ridge), root

    def _align(self, design: Design, start: FloatArray, entries: Entries) -> Aligned:
        """Return the rounds of pseudo-labels and coefficients, until pseudo-labels repeat."""
        n_classes, target, weights = len(self.classes_), entries.target, entries.weights
        marginal = _mean_differences(target, None, weights, n_classes)
        marginal *= np.sqrt(self.alignment_weight * (1 - self.class_alignment))
        aligned = align(design, start, marginal)
        by_class = np.sqrt(self.alignment_weight * self.class_alignment)
        before, self.n_rounds_ = None, 0
        while by_class > 0 and target.any() and self.n_rounds_ < self.max_rounds:
            scores = design.functions @ aligned.coefficients + self.class_shares_
            classes = np.where(entries.labeled, entries.codes, scores.argmax(axis=1))
            if before is not None and np.array_equal(classes, before):
                break
            conditional = by_class * _mean_differences(target, classes, weights, n_classes)
            aligned = align(design, start, np.column_stack([marginal, conditional]))
            before, self.n_rounds_ = classes, self.n_rounds_ + 1
        return aligned

    def _calibrate(
        self, design: Design, aligned: Aligned, entries: Entries, residuals: FloatArray
    ) -> float:
        """Slope of the probabilities, from scores of labeled rows that are left out in turn."""
        labeled = entries.labeled
        errors = residuals - design.functions[labeled] @ aligned.coefficients
        errors /= 1 - _leverages(design, aligned, entries)[:, None]
        scores = residuals - errors + self.class_shares_
        codes, weights = entries.codes[labeled], entries.weights[labeled]
        return fit_scaling(scores, codes, weights, with_offsets=False).slope

    def _check_parameters(self) -> None:
        for name in ("alignment_weight", "graph_weight"):
            check_number(name, getattr(self, name), minimum=0)
        check_number("class_alignment", self.class_alignment, minimum=0, maximum=1)
        check_number("ridge", self.ridge, minimum=0, closed="neither")
        check_count("n_neighbors", self.n_neighbors, minimum=1)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, minimum=0, closed="neither")
        if self.n_components is not None:
            check_count("n_components", self.n_components, minimum=1)
        if not isinstance(self.unit_rows, bool | np.bool_):
            check_option("unit_rows", self.unit_rows, ("auto", True, False))
        check_count("max_rounds", self.max_rounds, minimum=1)
        if isinstance(self.n_landmarks, str):
            check_option("n_landmarks", self.n_landmarks, ("auto",))
        elif self.n_landmarks is not None:
            check_count("n_landmarks", self.n_landmarks, minimum=1)

    def _check_target(self, domains: FitDomains, weights: FloatArray) -> None:
        """Refuse or warn where scores should be aligned and there is nothing to align to."""
        if self.alignment_weight == 0 or weights[domains.target].any():
            return
        if domains.given:
            raise ValueError(
                "sample_domain has no target rows (negative entries) of a weight above zero to "
                "align to. Add the rows of the target, or set alignment_weight=0."
            )
        warn_nothing_to_adapt(self, "it is fitted on the source alone")

    def _represent(self, X: Any) -> FloatArray:
        rows = super()._represent(X)
        if self.center_ is not None and self.components_ is not None:
            rows = (rows - self.center_) @ self.components_.T
        return _unit_length(rows) if self.unit_rows_ else rows

    def _scores_of(self, values: FloatArray) -> FloatArray:
        return values + self.class_shares_
