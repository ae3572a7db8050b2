"""Every feature in units of the source, for all domains alike."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import DomainTransformer, all_or_nothing
from covshift.domains import check_fit_domains


class SourceStandardScaler(DomainTransformer):
    """Standardise all rows by the means and standard deviations of the source rows.

    It adapts to nothing: what moved stays moved. It puts features on one scale before steps
    that need that, where `DomainStandardScaler` would already take out a shift.
    """

    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn means and standard deviations of the source rows."""
        with all_or_nothing(self):
            X = validate_data(self, X, dtype=(np.float64, np.float32))
            source = check_fit_domains(sample_domain, label_mask, X.shape[0]).source
            self.mean_ = X[source].mean(axis=0)
            spread = X[source].std(axis=0)
            self.scale_ = np.where(spread > 0, spread, 1.0).astype(X.dtype)
            self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Standardise rows; their domains make no difference."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))
        return ((X - self.mean_) / self.scale_).astype(X.dtype)

    def adapt_target(self, X: Any, domain: Any = None) -> Self:
        """Learn nothing: targets leave it as it is."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mean_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
