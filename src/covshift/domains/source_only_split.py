"""Cross-validation that tests on labeled source rows only."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv

from covshift.domains.roles_and_labels import check_fit_domains, known_labels
from covshift.kernels.array_types import IntArray


class SourceOnlySplit(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Splitter whose test folds hold labeled source rows only.

    Target rows, and source rows without a label, stay in every training fold: they take
    part in the adaptation and cannot be scored. Without this splitter a search would score
    the placeholders of target rows.

    Parameters
    ----------
    cv : int, splitter or None, default=None
        How the labeled source rows are split, as in scikit-learn's ``check_cv``. A splitter
        by groups gets ``sample_domain`` as groups unless others are given, so
        ``SourceOnlySplit(LeaveOneGroupOut())`` leaves out one source domain at a time. Ready
        made splits are positions among the labeled source rows.

    Notes
    -----
    ``sample_domain`` arrives by metadata routing, which a search needs for the estimator
    anyway: ``sklearn.set_config(enable_metadata_routing=True)``, then
    ``GridSearchCV(model, grid, cv=SourceOnlySplit(5)).fit(X, y, sample_domain=...)``. Keep
    the search's default scoring: a scorer given by name calls ``predict`` without
    ``sample_domain``, which would take the source rows for target rows.

    **Cost**: that of the splitter on the labeled source rows, and O(n) for each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import SourceOnlySplit
    >>> X, y = np.zeros((6, 1)), np.array([0, 1, 0, 1, -1, -1])
    >>> sample_domain = np.array([0, 0, 0, 0, -1, -1])
    >>> for train, test in SourceOnlySplit(2).split(X, y, sample_domain=sample_domain):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 4 5] [2 3]
    """

    __metadata_request__split = {"sample_domain": True, "label_mask": True, "groups": True}

    def __init__(self, cv: Any = None) -> None:
        self.cv = cv

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the row numbers of each training and test fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains.
        y : array-like of shape (n_samples,), default=None
            Labels, for a splitter that balances classes; those of target rows are not read.
        groups : array-like of shape (n_samples,), default=None
            For a splitter by groups; None: ``sample_domain``.
        sample_domain : array-like of shape (n_samples,)
            Domain of each row; negative: target.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Rows whose labels are known; None: the source rows.

        Yields
        ------
        train, test : ndarray of int
            Rows to fit, those of the target among them; labeled source rows to test.
        """
        rows, cv, arguments = self._inner(X, y, groups, sample_domain, label_mask)
        always = np.setdiff1d(np.arange(len(sample_domain)), rows)
        for train, test in cv.split(*arguments):
            yield np.sort(np.concatenate([always, rows[train]])), rows[test]

    def get_n_splits(
        self,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
    ) -> int:
        """Return the number of folds; one that depends on the rows needs them.

        Parameters
        ----------
        X, y, groups, sample_domain, label_mask
            As in ``split``; None where the splitter does not need them.

        Returns
        -------
        int
        """
        if X is None and sample_domain is None:
            return int(check_cv(self.cv).get_n_splits())
        _, cv, arguments = self._inner(X, y, groups, sample_domain, label_mask)
        return int(cv.get_n_splits(*arguments))

    def _inner(
        self, X: Any, y: Any, groups: Any, sample_domain: Any, label_mask: Any
    ) -> tuple[IntArray, Any, tuple[Any, Any, Any]]:
        """Return the labeled source rows, their splitter, and its arguments."""
        if sample_domain is None:
            raise ValueError(
                "SourceOnlySplit got no sample_domain. Pass it to the search's fit, with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        n_samples = (
            len(sample_domain) if X is None else (X.shape[0] if hasattr(X, "shape") else len(X))
        )
        domains = check_fit_domains(sample_domain, label_mask, n_samples)
        testable = domains.source & domains.label_mask
        rows = np.flatnonzero(testable)
        labels = None if y is None else known_labels(y, testable, kind="any")
        cv = check_cv(self.cv, labels, classifier=_can_stratify(labels, self.cv))
        if _wants_groups(cv):
            groups = domains.sample_domain if groups is None else np.asarray(groups)
            if len(groups) != n_samples:
                raise ValueError(f"groups must hold {n_samples} entries, got {len(groups)}.")
            groups = groups[rows]
        else:
            groups = None
        # Splitters look at the number of rows only.
        return rows, cv, (np.zeros((len(rows), 1)), labels, groups)


def _can_stratify(labels: Any, cv: Any) -> bool:
    """Return whether some label is frequent enough for every fold; that of a regression is not."""
    n_folds = 5 if cv is None else cv  # scikit-learn's default
    if labels is None or not isinstance(n_folds, Integral):
        return False
    return bool(np.unique(labels, return_counts=True)[1].max() >= n_folds)


def _wants_groups(cv: Any) -> bool:
    requests = getattr(cv, "get_metadata_routing", None)
    return requests is not None and bool(requests().split.requests.get("groups"))
