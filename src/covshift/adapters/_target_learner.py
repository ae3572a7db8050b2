"""What adapters that can learn a new target share: ``transform`` and ``adapt_target``."""

from abc import abstractmethod
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from covshift.base import DomainTransformer, all_or_nothing, register_target
from covshift.domains import Unit
from covshift.streams import is_streamed, map_rows


class TargetLearner(DomainTransformer):
    """Base of adapters that keep statistics of domains and can learn those of a new one.

    A subclass has ``_validate_rows(X)``, ``_transform_rows(X, sample_domain)`` and
    ``_learn_target(X, unit)``; what cannot be done with rows in blocks, or with a new target, it
    refuses in ``_check_streamed()`` and ``_check_new_target()``.
    """

    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Transform rows, each by the statistics of its domain or role.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows; sparse ones where the fit takes them.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Domain of each row, or the one of all rows. None: the target (the source, if the
            fit saw no target). A domain that the fit did not see uses its role's statistics.
        allow_source : bool, default=False
            Accepted for SKADA's pipelines and without effect: rows that ``sample_domain``
            calls source are always transformed as source rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features_out)
            A Dask array of blocks yet to be computed, if X is one; a tensor on the device of the
            fit, if that was one.
        """
        check_is_fitted(self)
        if is_streamed(X):
            self._check_streamed()
            return map_rows(self, "transform", X, sample_domain=sample_domain)
        return self._transform_rows(self._validate_rows(X), sample_domain)

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn the statistics of a new target domain, without the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the new target, at least ``min_domain_size`` of them.
        domain : int, str or None, default=None
            A negative integer or a name, by which ``transform`` will know it; None: it
            becomes the target of rows without ``sample_domain``, and of target domains that
            have no statistics of their own.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._check_new_target()
        X = self._validate_rows(X)
        with all_or_nothing(self):
            self._learn_target(X, register_target(self, domain, X.shape[0]))
        return self

    def _check_streamed(self) -> None:
        """Raise an error where rows in blocks cannot be transformed."""

    def _check_new_target(self) -> None:
        """Raise an error where a new target cannot be learned."""

    @abstractmethod
    def _validate_rows(self, X: Any) -> Any:
        """Return rows, checked."""

    @abstractmethod
    def _transform_rows(self, X: Any, sample_domain: Any) -> Any:
        """Transform checked rows."""

    @abstractmethod
    def _learn_target(self, X: Any, unit: Unit) -> None:
        """Store the statistics of checked rows as those of a unit."""
