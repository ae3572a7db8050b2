"""Every feature in units of the source, for all domains alike."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from covshift.base import (
    DomainTransformer,
    TargetLearner,
    UnitAdapter,
    all_or_nothing,
    register_target,
)
from covshift.domains import Unit, check_fit_domains, check_new_domains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import feature_scales
from covshift.shared_docs import documented_like
from covshift.streams import OpenRows, RowStream, open_rows
from covshift.streams.moments import stream_scales
from covshift.streams.rows import Units


def _scales_of(X: FloatArray, unit: Unit) -> tuple[FloatArray, FloatArray]:
    means = X.mean(axis=0, dtype=np.float64)  # of many rows, float32 would lose digits
    return means.astype(X.dtype), feature_scales(X).astype(X.dtype)


def _scales_of_stream(
    stream: RowStream, codes: IntArray, n_units: int
) -> list[tuple[FloatArray, FloatArray]]:
    return stream_scales(stream, stream.split(codes), n_units, with_mean=True, with_std=True)


class SourceStandardScaler(DomainTransformer):
    r"""Standardize all rows by the means and standard deviations of the source rows.

    .. math:: z = (x - \bar x_{\text{source}}) / s_{\text{source}}

    It adapts to nothing: a shift between domains stays. It puts features on one scale before steps
    that need that, where `DomainStandardScaler` would already remove a shift.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Means and standard deviations of the source rows; 1 for a constant feature.
    domains_, domain_names_
        As in `DomainStandardScaler`.

    Notes
    -----
    **Assumption**: none. **Cost**: O(n m) time for n rows with m features.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import SourceStandardScaler
    >>> X, sample_domain = np.array([[0.0], [2.0], [10.0], [30.0]]), [0, 0, -1, -1]
    >>> scaler = SourceStandardScaler().fit(X, sample_domain=sample_domain)
    >>> scaler.transform(X, sample_domain=sample_domain).ravel()
    array([-1.,  1.,  9., 29.])
    """

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn means and standard deviations of the source rows."""
        with all_or_nothing(self):
            rows = self._open(X, reset=True)
            sample_domain, label_mask = rows.bring_home(sample_domain, label_mask)
            domains = check_fit_domains(sample_domain, label_mask, rows.shape[0])
            source: Units = {"source": np.flatnonzero(domains.source)}
            self.mean_, self.scale_ = rows.measure(source, _scales_of, _scales_of_stream)["source"]
            self._n_features_out = rows.shape[1]
            self.domains_: IntArray = domains.domains
            self.domain_names_: dict[int, str] = {}
        return self

    def _open(self, X: Any, *, reset: bool = False, look: bool = True) -> OpenRows:
        return open_rows(self, X, reset=reset, look=look, squared_in=np.float64)

    @documented_like(TargetLearner.transform)
    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Standardize rows; their domains make no difference.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Checked, and without effect.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = self._open(X, look=False)
        return rows.map(self.transform, self._transform_rows, sample_domain)

    def _transform_rows(self, X: FloatArray, sample_domain: Any) -> FloatArray:
        if sample_domain is not None:
            check_new_domains(
                sample_domain, X.shape[0], has_target=True, domain_names=self.domain_names_
            )
        Z: FloatArray = ((X - self.mean_) / self.scale_).astype(X.dtype)
        return Z

    @documented_like(TargetLearner.adapt_target)
    def adapt_target(self, X: Any, domain: Any = None) -> Self:
        """Learn the name of a new target, and nothing else: its rows do not change the scale."""
        check_is_fitted(self)
        self._open(X)
        with all_or_nothing(self):
            register_target(self, domain)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved by earlier versions do not know their domains.
        known = {} if "mean_" not in state else {"domains_": np.array([0]), "domain_names_": {}}
        super().__setstate__(known | state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mean_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
