"""Parts shared by the classifiers of Gaussian kernels: checks of rows and labels, predictions."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from covshift.base import ScoredClassifier, all_or_nothing
from covshift.domains import FitDomains, check_fit_domains, check_new_domains, encode_classes
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.gaussian_kernels import gaussian_mixture
from covshift.measures.sample_checks import check_weights
from covshift.row_checks import check_magnitude, refuse_dask, validate_rows


class GaussianClassifier(ScoredClassifier, BaseEstimator):
    """Base of `LSPClassifier` and `JointAlignmentClassifier`.

    A subclass has ``_check_parameters()``; ``_fit_rows(X, domains, codes, weights)``, which sets
    ``bases_``, ``coefficients_`` and ``bandwidth_`` from the class of each row (-1: unknown) and
    its weight; and ``_scores_of(values)``, scores (n, C) from sums of kernels at the rows.
    """

    bases_: FloatArray
    coefficients_: FloatArray
    bandwidth_: float

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on the labeled rows, and on those of the target where the method uses them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains.
        y, sample_domain, label_mask
            As in `AdaptedClassifier.fit`; a method that uses no target rows misses none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative. Those of rows without a label count where the
            method uses such rows, and have no effect elsewhere.

        Returns
        -------
        self : object
        """
        name = type(self).__name__
        with all_or_nothing(self):
            X = self._validate_rows(X, reset=True)
            if y is None:
                raise ValueError(f"{name} requires y to be passed, but the target y is None.")
            self._check_parameters()
            domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
            self.classes_, codes = encode_classes(y, domains.label_mask)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"The known labels are of one class, {self.classes_[0]!r}: {name} needs at "
                    "least two."
                )
            if sample_weight is None:
                weights = np.ones(X.shape[0])
            else:
                weights = check_weights(sample_weight, X.shape[0], "sample_weight")
            if not weights[domains.label_mask].any():
                raise ValueError(
                    "sample_weight is zero for every labeled row: none is left to fit."
                )
            self._fit_rows(X, domains, codes, weights)
            self.domains_ = domains.domains
        return self

    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict the class of the highest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, of the fit or new ones.
        sample_domain : array-like of shape (n_samples,) or int, default=None
            Checked and without effect: rows of all domains are classified alike.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        _, scores = self._scores(X, sample_domain)
        return self.classes_[scores.argmax(axis=1)]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error for a parameter that makes no sense."""

    @abstractmethod
    def _fit_rows(self, X: Any, domains: FitDomains, codes: IntArray, weights: FloatArray) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _scores_of(self, values: FloatArray) -> FloatArray:
        """Return the scores or probabilities (n, C) of rows, from their sums of kernels (n, C)."""

    def _represent(self, X: Any) -> FloatArray:
        """Return the rows as the kernel sees them, in double precision."""
        rows: FloatArray = X.astype(np.float64)
        return rows

    def _scores(self, X: Any, sample_domain: Any) -> tuple[Any, FloatArray]:
        """Precision of the rows, and their scores (n, C) in double precision."""
        check_is_fitted(self)
        X = self._validate_rows(X)
        self._domains_of(sample_domain, X.shape[0])
        rows = self._represent(X)
        values = gaussian_mixture(rows, self.bases_, self.coefficients_, self.bandwidth_)
        return X.dtype, self._scores_of(values)

    def _validate_rows(self, X: Any, *, reset: bool = False) -> Any:
        refuse_dask(self, X)
        X = validate_rows(self, X, reset=reset, dtype=(np.float64, np.float32))
        if X.dtype == np.float64:  # float32 rows are squared in double precision
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        return X

    def _domains_of(self, sample_domain: Any, n_samples: int) -> Any:
        """Return the checked domains of rows to predict, or None."""
        if sample_domain is None:
            return None
        return check_new_domains(sample_domain, n_samples, has_target=True, domain_names={})

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coefficients_")
