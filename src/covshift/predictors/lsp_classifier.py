"""Least-squares probabilistic classifier."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from covshift.base import bandwidth_candidates, check_candidates, check_count, check_option
from covshift.domains import FitDomains
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.lspc import class_probabilities, misclassification, squared_error
from covshift.predictors._gaussian_classifier import GaussianClassifier
from covshift.predictors._lspc_fit import choose_candidates, draw_bases
from covshift.predictors._weighted_rows import WeightedRows, check_splits
from covshift.solvers.threads import one_blas_thread

CRITERIA = {"squared_error": squared_error, "misclassification": misclassification}


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

    It adapts to no target by itself: ``AdaptedClassifier(ULSIFWeights(), LSPClassifier())`` is the
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

    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Class probabilities of rows, in the order of ``classes_``; parameters as in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        dtype, probabilities = self._scores(X, sample_domain)
        return probabilities.astype(dtype, copy=False)

    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities; minus infinity where they are zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, sample_domain=sample_domain))

    def _fit_rows(self, X: Any, domains: FitDomains, codes: IntArray, weights: FloatArray) -> None:
        labeled = WeightedRows.merge(X, codes, weights, len(self.classes_))
        rng = check_random_state(self.random_state)
        self.bases_ = draw_bases(self.bases, self.n_bases, X, domains, labeled, rng)
        if isinstance(self.cv, Integral):
            folds = labeled.deal_folds(int(self.cv), rng)
        else:
            folds = labeled.ready_made_folds(check_splits(self.cv, X.shape[0]))
        half = len(labeled.rows) // 2  # two samples that together are all distinct rows
        self.sigmas_ = bandwidth_candidates(
            self.sigmas, labeled.rows[: half or 1], labeled.rows[half:]
        )
        self.lambdas_ = check_candidates("lambdas", self.lambdas)
        # The matrices between bases are small: threads would wait for each other.
        with one_blas_thread():
            self.score_table_, self.bandwidth_, self.regularization_, self.coefficients_ = (
                choose_candidates(
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
            check_candidates("sigmas", self.sigmas)
        check_candidates("lambdas", self.lambdas)
        if isinstance(self.cv, Real):
            check_count("cv", self.cv, minimum=2)
        if isinstance(self.bases, str):
            check_option("bases", self.bases, ("labelled", "target"))
        check_option("criterion", self.criterion, CRITERIA)

    def _scores_of(self, values: FloatArray) -> FloatArray:
        return class_probabilities(values, self.class_shares_)
