"""What CORAL and the linear Monge map share: one role moves by x -> (x - m) A + shift."""

from numbers import Real

import numpy as np
from sklearn.utils import check_scalar

from covshift.adapters._unit_adapter import UnitAdapter, measure_stream
from covshift.base import RefitNeededError, check_option
from covshift.domains import locate_units, pick_rows, role_of
from covshift.kernels.covariance import mean_and_covariance
from covshift.streams import RowStream
from covshift.streams.moments import stream_moments

ROLES = {"source_to_target": ("source", "target"), "target_to_source": ("target", "source")}


class LinearAlignment(UnitAdapter):
    """Base: map each unit of the moving role onto the pooled rows of the other role.

    A subclass has ``_matrix(C_from, C_to)`` and ``_shift(mean_from, mean_to)``.
    """

    _statistics = ("means_", "matrices_", "shifts_", "shrinkages_")
    _without_target = "rows stay as they are"

    def _check_new_target(self):
        if self.direction == "source_to_target":
            raise RefitNeededError(
                f"{type(self).__name__} with direction='source_to_target' moved the source onto "
                "the old target: refit it on the source rows and the rows of the new target, or "
                "use direction='target_to_source'."
            )

    def _check_parameters(self):
        super()._check_parameters()
        check_option("direction", self.direction, ROLES)
        if isinstance(self.shrinkage, str) or self.shrinkage is None:
            check_option("shrinkage", self.shrinkage, ("auto", None))
        else:
            check_scalar(self.shrinkage, "shrinkage", Real, min_val=0, max_val=1)
            if np.isnan(self.shrinkage):
                raise ValueError("shrinkage must be 'auto', None or between 0 and 1, got nan.")

    def _learn(self, X, units, sample_domain):
        moving, still = ROLES[self.direction]
        own = {unit: rows for unit, rows in units.items() if role_of(unit) == moving}
        if still not in units:
            self._store({})
            return
        if isinstance(X, RowStream):  # all of them in the same passes
            moments = measure_stream(self._moments_of_stream, X, own | {still: units[still]})
            self.reference_mean_, self.reference_covariance_, _ = moments.pop(still)
            self._store({unit: self._map_from(*known) for unit, known in moments.items()})
            return
        mean, covariance, _ = mean_and_covariance(pick_rows(X, units[still]), self._intensity())
        self.reference_mean_, self.reference_covariance_ = mean, covariance
        super()._learn(X, own, sample_domain)

    def _measure(self, X):
        return self._map_from(*mean_and_covariance(X, self._intensity()))

    def _measure_stream(self, stream, codes, n_units):
        return [self._map_from(*known) for known in self._moments_of_stream(stream, codes, n_units)]

    def _moments_of_stream(self, stream, codes, n_units):
        return stream_moments(stream, stream.split(codes), n_units, self._intensity())

    def _map_from(self, mean, covariance, shrinkage):
        """What is stored of a unit with these moments."""
        matrix = self._matrix(covariance, self.reference_covariance_)
        return mean, matrix, self._shift(mean, self.reference_mean_), np.asarray(shrinkage)

    def _intensity(self):
        return {"auto": None, None: 0.0}.get(self.shrinkage, self.shrinkage)

    def _locate(self, domain):
        # The role that stays comes first, and so does a role of which nothing is known.
        return locate_units([ROLES[self.direction][1], *self.units_], domain) - 1

    def _apply(self, X, unit):
        # In double precision: large means would leave float32 few digits.
        return (X - self.means_[unit]) @ self.matrices_[unit] + self.shifts_[unit]
