"""Least-squares probabilistic classifier."""

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from covshift.base import (
    all_or_nothing,
    bandwidth_candidates,
    check_candidates,
    check_count,
    check_magnitude,
    check_option,
)
from covshift.domains import FitDomains, check_fit_domains, check_new_domains, encode_classes
from covshift.kernels.arrays import FloatArray
from covshift.kernels.gaussian_bases import gaussian_mixture
from covshift.kernels.lspc import class_probabilities, misclassification, squared_error
from covshift.measures.samples import check_weights
from covshift.predictors._lspc_fit import choose_candidates, draw_bases
from covshift.predictors._weighted_rows import WeightedRows, check_splits
from covshift.predictors.scored_classifier import ScoredClassifier
from covshift.rows import validate_rows
from covshift.solvers.blas_threads import one_blas_thread
from covshift.streams.opening import refuse_dask

CRITERIA = {"squared_error": squared_error, "misclassification": misclassification}


class LSPClassifier(ScoredClassifier, BaseEstimator):
    r"""Least-squares probabilistic classifier (LSPC).

    .. math::

        p(c \mid x) \propto \max\Bigl(0, \sum_l \theta_{cl}
        \exp\Bigl(-\frac{\lVert x - c_l \rVert^2}{2 \sigma^2}\Bigr)\Bigr),
        \qquad \theta_c = (H + \lambda I)^{-1} h_c

    with H the weighted mean of :math:`\varphi \varphi^\top` over the labelled rows and
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
        distance between labelled rows. ``LSPClassifier.PAPER_SIGMAS`` are the paper's.
    lambdas : float or sequence of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
        Candidates for :math:`\lambda`. ``LSPClassifier.PAPER_LAMBDAS`` are the paper's.
    cv : int or iterable of (train, test), default=5
        Number of folds, or ready-made ones: positions among the rows of ``fit``, of which
        unlabelled ones are left out. Rows that are alike share a fold.
    bases : "labelled", "target" or array of shape (n_bases, n_features), default="labelled"
        Where the centres :math:`c_l` are drawn: among the labelled rows, or among the target rows
        of ``sample_domain``; or the centres themselves, all of which are taken.
    criterion : {"squared_error", "misclassification"}, default="squared_error"
        Loss of held-out rows: squared error of the probabilities (Brier score), or the weighted
        share of wrong predictions, which is Hachiya's choice and ranks candidates worse.
    random_state : int, RandomState or None, default=None
        Seed of the draws of bases and folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes of the labelled rows. Those without weight are never predicted.
    bandwidth_, regularization_ : float
        The chosen :math:`\sigma` and :math:`\lambda`.
    score_table_ : ndarray of shape (n_sigmas, n_lambdas)
        Mean losses of held-out rows; the smallest was chosen. The squared error is halved and
        lacks the constant that every candidate has. All zero, if no row can be held out.
    sigmas_, lambdas_ : ndarrays
        The candidates: rows and columns of ``score_table_``.
    bases_ : ndarray of shape (n_bases, n_features)
        Centres :math:`c_l`.
    coefficients_ : ndarray of shape (n_bases, n_classes)
        :math:`\theta`.
    class_shares_ : ndarray of shape (n_classes,)
        Weighted shares of the classes among the labelled rows.
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

    _requests = {"sample_domain": True}
    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__predict = _requests
    __metadata_request__predict_proba = _requests
    __metadata_request__predict_log_proba = _requests
    __metadata_request__score = _requests

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

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on the labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains.
        y : array-like of shape (n_samples,)
            Labels; what rows without a known label hold is never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one source
            domain.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Where the label is known; default: source rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative. Those of unlabelled rows have no effect.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            X = self._validate_rows(X, reset=True)
            if y is None:
                raise ValueError("LSPClassifier requires y to be passed, but the target y is None.")
            self._check_parameters()
            domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
            self.classes_, codes = encode_classes(y, domains.label_mask)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"The known labels are of one class, {self.classes_[0]!r}: LSPClassifier needs "
                    "at least two."
                )
            if sample_weight is None:
                weights = np.ones(X.shape[0])
            else:
                weights = check_weights(sample_weight, X.shape[0], "sample_weight")
            labelled = WeightedRows.merge(X, codes, weights, len(self.classes_))
            self._fit_labelled(X, domains, labelled)
            self.domains_ = domains.domains
        return self

    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict the most probable class of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,) or int, default=None
            Checked and without effect: rows of all domains are classified alike.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        _, probabilities = self._probabilities(X, sample_domain)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Class probabilities of rows, in the order of ``classes_``; parameters as in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        dtype, probabilities = self._probabilities(X, sample_domain)
        return probabilities.astype(dtype, copy=False)

    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Logarithms of the class probabilities; minus infinity where they are zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, sample_domain=sample_domain))

    def _fit_labelled(self, X: Any, domains: FitDomains, labelled: WeightedRows) -> None:
        rng = check_random_state(self.random_state)
        self.bases_ = draw_bases(self.bases, self.n_bases, X, domains, labelled, rng)
        if isinstance(self.cv, Integral):
            folds = labelled.deal_folds(int(self.cv), rng)
        else:
            folds = labelled.ready_made_folds(check_splits(self.cv, X.shape[0]))
        half = len(labelled.rows) // 2  # two samples that together are all distinct rows
        self.sigmas_ = bandwidth_candidates(
            self.sigmas, labelled.rows[: half or 1], labelled.rows[half:]
        )
        self.lambdas_ = check_candidates("lambdas", self.lambdas)
        # The matrices between bases are small: threads would wait for each other.
        with one_blas_thread():
            self.score_table_, self.bandwidth_, self.regularization_, self.coefficients_ = (
                choose_candidates(
                    labelled,
                    self.bases_,
                    self.sigmas_,
                    self.lambdas_,
                    folds,
                    CRITERIA[self.criterion],
                )
            )
        self.class_shares_ = labelled.class_weights.sum(axis=0) / labelled.class_weights.sum()
        if not self.coefficients_.any():
            warnings.warn(
                "LSPClassifier: no labelled row is within reach of a basis at the bandwidths "
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

    def _probabilities(self, X: Any, sample_domain: Any) -> tuple[Any, FloatArray]:
        """Precision of the rows, and their probabilities in double precision."""
        check_is_fitted(self)
        X = self._validate_rows(X)
        self._domains_of(sample_domain, X.shape[0])
        values = gaussian_mixture(
            X.astype(np.float64), self.bases_, self.coefficients_, self.bandwidth_
        )
        return X.dtype, class_probabilities(values, self.class_shares_)

    def _validate_rows(self, X: Any, *, reset: bool = False) -> Any:
        refuse_dask(self, X)
        X = validate_rows(self, X, reset=reset, dtype=(np.float64, np.float32))
        if X.dtype == np.float64:  # float32 rows are squared in double precision
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        return X

    def _domains_of(self, sample_domain: Any, n_samples: int) -> Any:
        """Domains of rows to predict, checked; None, where nothing was said."""
        if sample_domain is None:
            return None
        return check_new_domains(sample_domain, n_samples, has_target=True, domain_names={})

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coefficients_")
