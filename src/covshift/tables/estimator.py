"""Parts shared by `TableClassifier` and `TableRegressor`: encoder, adapted model, rows kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from covshift.base import DomainRequests, all_or_nothing, check_count
from covshift.domains import check_fit_domains, check_new_domains, new_target_domain
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.predictors.adapted_estimator import AdaptedEstimator
from covshift.predictors.fitting import does_adapt, uses_target_rows
from covshift.predictors.held_out import HeldOutRows
from covshift.registry import NO_ADAPTATION
from covshift.row_checks import check_magnitude
from covshift.tables.domain_codes import known_numbers
from covshift.tables.encoder import TableEncoder
from covshift.tables.matching import MatchedTables
from covshift.tables.schema import TableSchema


@contextmanager
def _telling(estimator: Any, progress: Callable[[str, float], object] | None) -> Iterator[None]:
    """Let an automatic choice tell a callable what it prints with ``verbose``."""
    if progress is None or not hasattr(estimator, "_print"):
        yield
        return

    def tell(name: str, number: int, total: int) -> None:
        # Candidates are fitted once before the first score, and once after the last.
        progress(f"score {number + 1} of {total} ({name})", (number + 1) / (total + 2))

    verbose, estimator.verbose = estimator.verbose, 1
    estimator._print = tell  # type: ignore[method-assign]
    try:
        yield
    finally:
        estimator.verbose = verbose
        del estimator._print


class TableEstimator(DomainRequests, BaseEstimator):
    """Base of the models of frames with mixed columns: they encode, adapt and predict.

    A subclass says what learns by default (``_default_estimator``), and what its labels are.
    """

    # For labels that are not plain classes; models of earlier versions have none of these.
    label_edges_: Sequence[float] = ()
    label_spelling_ = ""

    def __init__(
        self,
        estimator: Any = None,
        encoder: Any = None,
        *,
        max_reference_rows: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.encoder = encoder
        self.max_reference_rows = max_reference_rows
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_domain: Any = None,
        label_mask: Any = None,
        domain_names: Mapping[int, str] | None = None,
        schema: TableSchema | None = None,
        progress: Callable[[str, float], object] | None = None,
    ) -> Self:
        """Learn the encoding from source rows, then the model from all rows.

        Parameters
        ----------
        X : frame of shape (n_samples, n_columns)
            Rows of all domains.
        y : array-like of shape (n_samples,)
            Labels; those of target rows are not read, unless ``label_mask`` says so.
        sample_domain, label_mask
            As in `covshift.AdaptedClassifier`.
        domain_names : mapping of int to str, default=None
            Names of the domains, by which rows may be predicted.
        schema : TableSchema or None, default=None
            How cells are read that are still text, as in `TableEncoder`.
        progress : callable or None, default=None
            Gets what an automatic choice does, and the share of the work done.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            check_count("max_reference_rows", self.max_reference_rows, minimum=0)
            encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
            self.encoder_ = encoder.fit(X, sample_domain=sample_domain, schema=schema)
            Z = self._encode(X)
            estimator = clone(self._base_estimator())
            with _telling(estimator, progress):
                estimator.fit(Z, y, sample_domain=sample_domain, label_mask=label_mask)
            self.estimator_ = estimator
            self.plain_estimator_ = self._fit_plain(Z, y, sample_domain, label_mask)
            domains = check_fit_domains(sample_domain, label_mask, len(Z))
            self.feature_names_in_ = encoder.feature_names_in_
            self.n_features_in_ = encoder.n_features_in_
            self.label_: str | None = None
            self.domain_: str | None = None
            self.decimal_ = "."
            self.domains_ = domains.domains
            self.domain_names_ = dict(domain_names or {})
            rows = domains.target if domains.has_target else domains.source
            self.reference_ = np.empty((0, Z.shape[1]))
            self.reference_domain_ = np.empty(0, dtype=np.int64)
            self._keep(Z[rows], domains.sample_domain[rows])
        return self

    def fit_tables(
        self, tables: MatchedTables, progress: Callable[[str, float], object] | None = None
    ) -> Self:
        """Fit to two matched tables, and remember names and decimal sign for later files.

        Parameters
        ----------
        tables : MatchedTables
            From `covshift.tables.match_tables` or `covshift.tables.read_pair`.
        progress : callable or None, default=None
            As in ``fit``.

        Returns
        -------
        self : object
        """
        stacked = tables.stack()
        with all_or_nothing(self):
            self.fit(
                stacked.X,
                stacked.y,
                sample_domain=stacked.sample_domain,
                label_mask=tables.label_mask,
                domain_names=stacked.domain_names,
                schema=tables.schema,
                progress=progress,
            )
            self.label_, self.domain_ = tables.label, tables.domain
            self.decimal_ = tables.decimal
            self.label_spelling_ = tables.spellings.get(tables.label, "")
            self._keep_label_facts(tables)
        return self

    def _keep_label_facts(self, tables: MatchedTables) -> None:
        """Keep what a subclass needs to know about the labels of the training table."""

    @property
    def schema_(self) -> TableSchema:
        """Columns and kinds: how later files are read."""
        encoder = self.encoder_
        spellings, missing = dict(encoder.spellings_), tuple(encoder.missing_)
        return TableSchema(dict(encoder.kinds_), self.decimal_, spellings, missing)

    @property
    def objective_(self) -> Any:
        """Objective that ``predict`` maximizes; None: the estimator decides in its own way."""
        estimator = self.estimator_
        return getattr(estimator, "objective_", getattr(estimator, "objective", None))

    @property
    def plain_(self) -> Self | None:
        """The plain model beside the adapted one; None if an old file has none."""
        check_is_fitted(self)
        estimator = getattr(self.estimator_, "plain_", self.plain_estimator_)
        if estimator is None:
            return None
        plain = copy(self)
        plain.estimator_, plain.plain_estimator_ = estimator, None
        return plain

    @property
    def adapts_(self) -> bool:
        """Whether the model does anything about the target; where nothing is known of it: yes."""
        if hasattr(self.estimator_, "members_"):  # made by an automatic choice
            return any(member.candidate.adapts for member in self.estimator_.members_)
        if isinstance(self.estimator_, AdaptedEstimator):
            return does_adapt(self.estimator_.adapter_, self.estimator_.estimator_)
        return True

    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict rows, each as a row of its domain.

        Parameters
        ----------
        X : frame with the columns of the fit, in any order
            Rows.
        sample_domain : array-like of int or str, int, str or None, default=None
            Domain of each row, or the one of all rows, by number or by name
            (``domain_numbers``). None: the target.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        Z = self.encode(X)
        domain = self._domains_of(sample_domain, len(Z))
        return self.estimator_.predict(Z, sample_domain=domain)

    def encode(self, X: Any) -> FloatArray:
        """Return the features of rows, as the model inside gets them."""
        check_is_fitted(self)
        return self._encode(X)

    @property
    def held_out_(self) -> HeldOutRows | None:
        """Encoded source rows that the model inside keeps; None: it has none."""
        check_is_fitted(self)
        found: HeldOutRows | None = getattr(self.estimator_, "held_out_", None)
        return found

    def unwrap(self, X: Any, sample_domain: Any = None) -> tuple[Any, FloatArray, Any]:
        """Return the model inside, and rows and domains as its methods take them."""
        Z = self.encode(X)
        return self.estimator_, Z, self._domains_of(sample_domain, len(Z))

    def domain_numbers(self, names: Sequence[str]) -> IntArray:
        """Return the domains of rows by their names.

        A name that is a target's stands for it, also where it was a source in training and is
        ``A (new)`` since; else it is the source of that name. One that the model does not know is
        a target without statistics of its own.

        Parameters
        ----------
        names : sequence of str
            One per row.

        Returns
        -------
        ndarray of int
        """
        check_is_fitted(self)
        known = known_numbers(self.domain_names_)
        unknown = int(min([0, *self.domains_, *self.domain_names_])) - 1
        return np.array([known.get(str(name), unknown) for name in names], dtype=np.int64)

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target without the training rows, if the adapter can.

        Parameters
        ----------
        X : frame
            Rows of the new target.
        domain : int, str or None, default=None
            Its number or name; None: it becomes the target of rows without ``sample_domain``,
            and batches are compared with it alone from now on.

        Returns
        -------
        self : object
        """
        Z = self.encode(X)
        with all_or_nothing(self):
            number = new_target_domain(domain, self.domains_.tolist(), self.domain_names_)
            if self.adapts_:
                # By number: the inner model has no names.
                self.estimator_.adapt_target(Z, domain=None if domain is None else number)
            if domain is None:
                number = int(min([0, *self.domains_, *self.domain_names_])) - 1
                self._drop_reference(np.ones(len(self.reference_domain_), dtype=bool))
            else:
                self._drop_reference(self.reference_domain_ == number)
            self.domains_ = np.union1d(self.domains_, number)
            if isinstance(domain, str):
                self.domain_names_ = {**self.domain_names_, number: domain}
            self._keep(Z, np.full(len(Z), number))
        return self

    def _fit_plain(self, Z: FloatArray, y: Any, sample_domain: Any, label_mask: Any) -> Any:
        """Return the fitted plain model of a named adapter; an automatic choice has its own."""
        if not isinstance(self.estimator_, AdaptedEstimator):
            return None
        if not self.adapts_:
            return self.estimator_
        plain = clone(self._base_estimator()).set_params(adapter=NO_ADAPTATION)
        if uses_target_rows(plain.estimator):  # it adapts by itself; the plain model must not
            plain.set_params(estimator=None)
        return plain.fit(Z, y, sample_domain=sample_domain, label_mask=label_mask)

    def _encode(self, X: Any) -> FloatArray:
        features: FloatArray = self.encoder_.transform(X)
        # Here, where columns have names: the model inside would refuse them without.
        check_magnitude(features, self.encoder_.get_feature_names_out())
        return features

    def _keep(self, Z: FloatArray, domain: IntArray) -> None:
        """Add rows to those that later batches are compared with."""
        rng = check_random_state(self.random_state)
        kept = np.sort(rng.permutation(len(Z))[: self.max_reference_rows])
        self.reference_ = np.concatenate([self.reference_, Z[kept]])
        self.reference_domain_ = np.concatenate([self.reference_domain_, domain[kept]])

    def _drop_reference(self, rows: Any) -> None:
        self.reference_ = self.reference_[~rows]
        self.reference_domain_ = self.reference_domain_[~rows]

    def _domains_of(self, sample_domain: Any, n_samples: int) -> Any:
        if sample_domain is None:
            return None
        values = np.asarray(sample_domain)
        if values.ndim == 1 and len(values) and all(isinstance(one, str) for one in values):
            sample_domain = self.domain_numbers(values.tolist())
        return check_new_domains(
            sample_domain, n_samples, has_target=True, domain_names=self.domain_names_
        )

    def _base_estimator(self) -> Any:
        return self._default_estimator() if self.estimator is None else self.estimator

    @staticmethod
    def _default_estimator() -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reference_domain_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
