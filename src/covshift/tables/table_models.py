"""Models of frames with mixed columns: encoder, adapted model, and target rows kept for later.

`TableClassifier` and `TableRegressor` are what ``covshift adapt`` saves; `TableEstimator` holds
what they share.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from unicodedata import normalize

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from covshift.base import (
    DomainRequests,
    ScoredClassifier,
    ScoredRegressor,
    all_or_nothing,
    check_count,
)
from covshift.domains import (
    check_fit_domains,
    check_new_domains,
    new_target_domain,
)
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.predictors.adapted import AdaptedEstimator, estimator_has
from covshift.predictors.adapter_steps import does_adapt, uses_target_rows
from covshift.predictors.held_out_rows import HeldOutRows
from covshift.predictors.objectives import ACCURACY, BALANCED_ACCURACY, R2
from covshift.predictors.prediction_sets import PredictionIntervals, PredictionSets
from covshift.registry import NO_ADAPTATION
from covshift.row_checks import check_magnitude
from covshift.shared_docs import documented_like
from covshift.tables.encoder import TableEncoder, take_any_column
from covshift.tables.matching import NEW, MatchedTables
from covshift.tables.monitoring_words import OF_CLASSES_ONLY
from covshift.tables.schema import TableSchema
from covshift.tables.text_layout import plain_name

if TYPE_CHECKING:
    from covshift.selection.performance_estimate import PerformanceEstimate

TARGET = np.iinfo(np.int64).min  # stands for the domain of rows that no column names


def known_numbers(domain_names: Mapping[int, str]) -> dict[str, int]:
    """Return the numbers by which a table model knows names of domains in a later table.

    A target comes before a source: new rows of a domain may differ from its training rows.
    """
    named = [(number, normalize("NFC", name)) for number, name in domain_names.items()]
    sources = {name: number for number, name in named if number >= 0}
    targets = {name: number for number, name in named if number < 0}
    returned = {
        name.removesuffix(NEW): number
        for name, number in targets.items()
        if name.endswith(NEW) and name.removesuffix(NEW) in sources
    }
    return {**sources, **returned, **targets}


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
        """Whether the model adapts to the target; True where this is unknown."""
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
        numbers = [known.get(normalize("NFC", str(name)), unknown) for name in names]
        return np.array(numbers, dtype=np.int64)

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

    def _promise(self, method: str, X: Any, alpha: float, sample_domain: Any, X_target: Any) -> Any:
        """Return the sets or intervals of frames that a method of the estimator predicts."""
        estimator, Z, domain = self.unwrap(X, sample_domain)
        Z_target = None if X_target is None else self.encode(X_target)
        return getattr(estimator, method)(Z, alpha, sample_domain=domain, X_target=Z_target)

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models saved by version 0.1 have no plain model and forgot their domain column. Later ones
        # have names as their files wrote them, whose accents may stand apart.
        state = {"domain_": None, "plain_estimator_": None, **state}
        for name in ("label_", "domain_"):
            if state.get(name) is not None:
                state[name] = plain_name(state[name])
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reference_domain_")

    def __sklearn_tags__(self) -> Any:
        return take_any_column(super().__sklearn_tags__())


class TableClassifier(ScoredClassifier, TableEstimator):
    """Classifier of frames with mixed columns; what ``covshift adapt`` saves.

    Parameters
    ----------
    estimator : AdaptedClassifier, AutoAdaptedClassifier or None, default=None
        Model of the encoded rows; None: an `AutoAdaptedClassifier`.
    encoder : TableEncoder or None, default=None
        How columns become features; None: a `TableEncoder` as it comes.
    max_reference_rows : int, default=1000
        Encoded rows of each target that are kept in the model, drawn at random, for later
        batches to be compared with (`covshift.tables.monitor_batch`). 0: none.
    random_state : int, RandomState or None, default=0
        Which rows are kept.

    Attributes
    ----------
    encoder_, estimator_ : the fitted parts.
    classes_ : ndarray of shape (n_classes,)
    label_ : str or None
        Name of the label column, from ``fit_tables``.
    label_edges_ : list
        Where a numeric label was cut into the ranges that are the classes; empty: it was not.
    domain_ : str or None
        Name of the domain column, from ``fit_tables``.
    decimal_ : {".", ","}
        Decimal sign of the training file, from ``fit_tables``.
    label_spelling_ : str
        Unit of a numeric label that is cut into ranges, as in `TableSchema`; empty: none.
    objective_ : str, callable or None
        Objective that ``predict`` maximizes; None: the estimator decides in its own way.
    plain_ : TableClassifier or None
        The plain model beside the adapted one: for an `AutoAdaptedClassifier` its ``plain_``, for
        an `AdaptedClassifier` the same estimator without adaptation (a logistic regression, if
        the estimator uses target rows itself). None in models saved by version 0.1.
    domains_, domain_names_ : domains known, and integer -> name.
    reference_ : ndarray of shape (n_kept, n_features)
        Encoded target rows that were kept, and ``reference_domain_``, the domain of each.
    feature_names_in_, n_features_in_
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from covshift import AdaptedClassifier, DomainStandardScaler
    >>> from covshift.tables import TableClassifier, match_tables
    >>> rng = np.random.default_rng(0)
    >>> train = pd.DataFrame({"age": rng.normal(40, 9, 200), "city": ["Oslo", "Rome"] * 100})
    >>> train["ill"] = np.where(train["age"] > 40, "yes", "no")
    >>> new = pd.DataFrame({"age": rng.normal(60, 9, 100), "city": ["Rome", "Oslo"] * 50})
    >>> model = TableClassifier(AdaptedClassifier(DomainStandardScaler()))
    >>> model = model.fit_tables(match_tables(train, new, label="ill"))
    >>> model.predict(pd.DataFrame({"city": ["Rome", "Rome"], "age": [50, 70]})).tolist()
    ['no', 'yes']
    """

    @property
    def classes_(self) -> Any:
        """Classes, in the order of the columns of ``predict_proba``."""
        return self.estimator_.classes_

    @available_if(estimator_has("decide"))
    def decide(self, P: Any) -> Any:
        """Return the classes that ``predict`` chooses for rows with these probabilities."""
        return self.estimator_.decide(P)

    @available_if(estimator_has("predict_proba"))
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the class probabilities of rows; parameters as in ``predict``."""
        Z = self.encode(X)
        domain = self._domains_of(sample_domain, len(Z))
        probabilities: FloatArray = self.estimator_.predict_proba(Z, sample_domain=domain)
        return probabilities

    @available_if(estimator_has("predict_set"))
    def predict_set(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionSets:
        """Predict sets of classes of frames; parameters as in `AdaptedClassifier`."""
        sets: PredictionSets = self._promise("predict_set", X, alpha, sample_domain, X_target)
        return sets

    def _keep_label_facts(self, tables: MatchedTables) -> None:
        self.label_edges_ = list(tables.label_edges)

    @staticmethod
    def _default_estimator() -> Any:
        # Here: a model from a file, which has its estimator, is read without the automatic choice.
        from covshift.selection import AutoAdaptedClassifier

        return AutoAdaptedClassifier(random_state=0)


@documented_like(TableClassifier)
class TableRegressor(ScoredRegressor, TableEstimator):
    """Regressor of frames with mixed columns; what ``covshift adapt --task regression`` saves.

    Parameters
    ----------
    estimator : AdaptedRegressor, AutoAdaptedRegressor or None, default=None
        Model of the encoded rows; None: an `AutoAdaptedRegressor`.

    Attributes
    ----------
    label_range_ : list of two floats, or empty
        Smallest and largest label of the training table, from ``fit_tables``.
    label_spelling_ : str
        Unit of the label, as in `TableSchema`; empty: none.
    encoder_, estimator_, label_, domain_, decimal_, domains_, domain_names_
        As in `TableClassifier`; so are ``reference_`` and ``reference_domain_``.
    objective_ : str or callable
        Objective of the choice of a model; named adapters minimize squared errors: "r2".
    plain_ : TableRegressor
        The plain model beside the adapted one: that of an automatic choice, or the same estimator
        without adaptation.
    feature_names_in_, n_features_in_
        Columns.

    Notes
    -----
    **Cost**: that of the encoder and of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from covshift import AdaptedRegressor, DomainStandardScaler
    >>> from covshift.tables import TableRegressor, match_tables
    >>> rng = np.random.default_rng(0)
    >>> train = pd.DataFrame({"area": rng.normal(80, 9, 200), "city": ["Oslo", "Rome"] * 100})
    >>> train["price"] = 3 * train["area"] + 20
    >>> new = pd.DataFrame({"area": rng.normal(800, 90, 100), "city": ["Rome", "Oslo"] * 50})
    >>> model = TableRegressor(AdaptedRegressor(DomainStandardScaler()))
    >>> model = model.fit_tables(match_tables(train, new, label="price", task="regression"))
    >>> flats = pd.DataFrame({"city": ["Rome", "Rome"], "area": [800, 1000]})
    >>> model.predict(flats).round().tolist()
    [264.0, 315.0]
    """

    label_range_: list[float] = []

    @property
    def objective_(self) -> Any:
        """Objective of the choice of a model; named adapters minimize squared errors."""
        return super().objective_ or R2

    def predict_interval(
        self, X: Any, alpha: float = 0.1, *, sample_domain: Any = None, X_target: Any = None
    ) -> PredictionIntervals:
        """Predict intervals of frames; parameters as in `AdaptedRegressor`."""
        found: PredictionIntervals
        found = self._promise("predict_interval", X, alpha, sample_domain, X_target)
        return found

    def _keep_label_facts(self, tables: MatchedTables) -> None:
        self.label_range_ = [float(np.min(tables.y)), float(np.max(tables.y))]

    @staticmethod
    def _default_estimator() -> Any:
        # Here: a model from a file, which has its estimator, is read without the automatic choice.
        from covshift.selection import AutoAdaptedRegressor

        return AutoAdaptedRegressor(random_state=0)


class Predictions(NamedTuple):
    """Predicted classes of rows, as numbers, and what is known of each class (None: nothing)."""

    codes: IntArray
    outputs: FloatArray | None


def predict_encoded(model: TableClassifier, Z: FloatArray, domain: IntArray) -> Predictions:
    """Predict encoded rows by a table model; ``domain``: `TARGET` where a row's is not named."""
    where = None if (domain == TARGET).all() else domain
    estimator = model.estimator_
    classes = estimator.predict(Z, sample_domain=where)
    if not hasattr(model, "classes_"):  # a regressor: predictions are numbers
        return Predictions(np.zeros(len(Z), dtype=np.int64), np.reshape(classes, (len(Z), 1)))
    codes = np.searchsorted(model.classes_, classes)
    method = next(
        (one for one in ("predict_proba", "decision_function") if hasattr(estimator, one)), None
    )
    if method is None:
        return Predictions(codes, None)
    outputs = np.asarray(getattr(estimator, method)(Z, sample_domain=where))
    outputs = outputs.reshape(len(Z), -1)
    # With two classes the second column says what the first does.
    return Predictions(codes, outputs[:, :1] if outputs.shape[1] == 2 else outputs)


def objective_of(model: TableClassifier) -> str:
    """Return the objective of a table model's scores; for numbers, just "score"."""
    if is_regressor(model):
        return "score"
    return BALANCED_ACCURACY if model.objective_ == BALANCED_ACCURACY else ACCURACY


def estimate_score(
    model: TableClassifier, Z: FloatArray, domain: IntArray, y_known: Any = None
) -> "PerformanceEstimate":
    """Return a table model's expected score of encoded rows (`covshift.estimate_performance`).

    ``domain``: `TARGET` for rows whose domain is not named; ``y_known``: None where no label is.

    Raises
    ------
    ValueError
        If the model keeps no held-out rows, or predicts numbers.
    """
    from covshift.selection.performance_estimate import estimate_performance

    if is_regressor(model):
        raise ValueError(OF_CLASSES_ONLY)
    where = None if (domain == TARGET).all() else domain
    return estimate_performance(
        model.estimator_, Z, sample_domain=where, objective=objective_of(model), y_known=y_known
    )
