"""Parts shared by adapters with statistics per pooling unit: fit, units, new targets."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from covshift.base import (
    TargetLearner,
    all_or_nothing,
    check_count,
    check_magnitude,
    check_option,
    warn_nothing_to_adapt,
)
from covshift.domains import (
    Unit,
    check_fit_domains,
    check_new_domains,
    locate_units,
    pick_rows,
    pooling_units,
    role_of,
    unit_codes,
)
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.rows import validate_rows
from covshift.streams import RowStream, bring_home, is_streamed, open_rows


class UnitAdapter(TargetLearner):
    """Base of adapters that learn something of each pooling unit and apply it to its rows.

    A subclass names the attributes that hold what is learned, one entry per unit, in
    ``_statistics``, and has ``_measure(X)``, which returns them for the rows of one unit, and
    ``_apply(X, unit)``, which transforms rows by those of the unit at that position.
    """

    _statistics: tuple[str, ...] = ()
    _ragged = False  # whether shapes of statistics differ between units
    _allow_nan = False
    _squares_rows = True
    # Consequence of a fit without sample_domain, if target rows are needed.
    _without_target: str | None = None

    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn the statistics of each unit.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows of all domains. A Dask array, and a memory map of more than 256 MB, are passed
            over in blocks and never copied.
        y : None
            Never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one
            source domain.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Checked and without effect: no labels are read.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            X = self._validate_rows(X, reset=True)
            self._check_parameters()
            sample_domain, label_mask = bring_home(sample_domain), bring_home(label_mask)
            domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
            if self._without_target is not None and not domains.has_target:
                if domains.given:
                    raise ValueError(
                        "sample_domain has no target rows (negative entries) to align with. Add "
                        "the rows of the target, or leave sample_domain out."
                    )
                warn_nothing_to_adapt(self, self._without_target)
            self.domains_ = domains.domains
            self.domain_names_: dict[int, str] = {}
            self._n_features_out = X.shape[1]
            units = pooling_units(domains.sample_domain, self.pooling, self.min_domain_size)
            self._learn(X, units, domains.sample_domain)
        return self

    def _transform_rows(self, X: Any, sample_domain: Any) -> Any:
        return self._transform_located(X, self._units_of(sample_domain, X.shape[0]))

    def _learn_target(self, X: Any, unit: Unit) -> None:
        self._store(self._stored() | self._measure_units(X, {unit: np.arange(X.shape[0])}))

    def _check_parameters(self) -> None:
        check_option("pooling", self.pooling, ("role", "domain"))
        check_count("min_domain_size", self.min_domain_size, minimum=1)

    def _learn(self, X: Any, units: Mapping[Unit, IntArray], sample_domain: IntArray) -> None:
        """Store what is learned from the rows of each unit."""
        self._store(self._measure_units(X, units))

    def _measure_units(self, X: Any, units: Mapping[Unit, IntArray]) -> dict[Unit, Any]:
        """Return the statistics of each unit."""
        if not isinstance(X, RowStream):
            return {unit: self._measure(pick_rows(X, rows)) for unit, rows in units.items()}
        return measure_stream(self._measure_stream, X, units)

    def _units_of(self, sample_domain: Any, n_samples: int) -> IntArray:
        """Position of each row's unit, given the domains of rows to transform."""
        domain = check_new_domains(
            sample_domain,
            n_samples,
            has_target=bool((self.domains_ < 0).any()) or "target" in self.units_,
            domain_names=self.domain_names_,
        )
        return self._locate(domain)

    def _locate(self, domain: IntArray) -> IntArray:
        """Position of each row's unit; -1 for rows that stay as they are."""
        return locate_units(self.units_, domain)

    def _transform_located(self, X: Any, position: IntArray) -> Any:
        unit = position[0]  # validation lets no X without rows through
        if (position == unit).all():  # the usual case needs no picking of rows
            return X.copy() if unit < 0 else self._apply(X, unit).astype(X.dtype, copy=False)
        Z = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        for unit in np.unique(position).tolist():
            rows = position == unit
            Z[rows] = X[rows] if unit < 0 else self._apply(X[rows], unit)
        return Z

    @abstractmethod
    def _measure(self, X: Any) -> tuple[Any, ...]:
        """Return the statistics of the rows of one unit."""

    def _measure_stream(self, stream: RowStream, codes: IntArray, n_units: int) -> list[Any]:
        """Return the statistics of the rows of each code, in passes over a stream."""
        raise ValueError(
            f"{type(self).__name__} needs all rows at once: fit it to a sample of the rows, in "
            "memory. Its transform takes rows in blocks."
        )

    @abstractmethod
    def _apply(self, X: FloatArray, unit: int) -> FloatArray:
        """Transform rows by the statistics of the unit at that position."""

    def _complete(self, own: tuple[Any, ...], role: tuple[Any, ...]) -> tuple[Any, ...]:
        """Statistics of a unit, with gaps filled by those of its role."""
        return own

    def _store(self, learned: Mapping[Unit, tuple[Any, ...]]) -> None:
        self.units_ = list(learned)
        completed = [
            self._complete(own, learned.get(role_of(unit), own)) for unit, own in learned.items()
        ]
        for index, name in enumerate(self._statistics):
            values = [statistics[index] for statistics in completed]
            setattr(self, name, values if self._ragged or not values else np.stack(values))

    def _stored(self) -> dict[Unit, tuple[Any, ...]]:
        columns = (getattr(self, name) for name in self._statistics)
        return dict(zip(self.units_, zip(*columns, strict=True), strict=True))

    def _validate_rows(self, X: Any, *, reset: bool = False) -> Any:
        if is_streamed(X):
            squared_in = np.float64 if self._squares_rows else None
            return open_rows(self, X, reset=reset, squared_in=squared_in, allow_nan=self._allow_nan)
        X = validate_rows(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._accepts_sparse() else False,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if self._allow_nan else True,
        )
        # Statistics of float32 rows are computed in double precision.
        if self._squares_rows and X.dtype == np.float64:
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        return X

    def _accepts_sparse(self) -> bool:
        return False

    def __sklearn_is_fitted__(self):
        return hasattr(self, "units_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse()
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def measure_stream(
    measure: Callable[[RowStream, IntArray, int], list[Any]],
    stream: RowStream,
    units: Mapping[Unit, IntArray],
) -> dict[Unit, Any]:
    """Results of ``measure`` for each unit; units without common rows share passes."""
    names, found = list(units), {}
    for positions, codes in unit_codes(units, stream.shape[0]):
        measured = measure(stream, codes, len(positions))
        found.update({names[index]: one for index, one in zip(positions, measured, strict=True)})
    return {name: found[name] for name in names}


def mean_and_scale(
    X: Any, *, with_mean: bool = True, with_std: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each feature; zeros and ones where not asked for.

    Missing values are left out (NaN where all are missing); a constant feature has scale one.
    """
    if not (with_mean or with_std):
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    if not sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):  # a feature without any value: NaN
        scaler = StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
    mean = scaler.mean_ if with_mean else np.zeros(X.shape[1])
    scale = scaler.scale_ if with_std else np.ones(X.shape[1])
    return mean, scale
