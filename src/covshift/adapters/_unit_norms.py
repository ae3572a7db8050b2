"""Feature norms of each pooling unit, measured once and applied to any row later."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.domains import Unit, locate_units, unit_codes
from covshift.kernels.activations import Activation
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.device_filters import normalize_on_device, squares_on_device
from covshift.kernels.filter_streams import squares_by_code
from covshift.kernels.normalization import normalize_by, root_mean_squares, stored_norms
from covshift.solvers.array_api import gather, namespace_of
from covshift.streams import RowStream
from covshift.streams.device_rows import put_beside

# Activations on a device that are measured at a time: memory there is dear.
DEVICE_ACTIVATIONS = 2**26


@dataclass(frozen=True)
class UnitNorms:
    """Root mean squares of the activations in each pooling unit.

    Attributes
    ----------
    units : names of the U units.
    root_means : (U, L).
    counts : (U,) rows over which each was measured.
    """

    units: list[Unit]
    root_means: FloatArray
    counts: IntArray

    @classmethod
    def measure(cls, F: FloatArray, units: dict[Unit, IntArray]) -> "UnitNorms":
        """Measure the norms of activations F (n, L), given the rows of each unit."""
        if not isinstance(F, np.ndarray):
            return cls.measure_on_device(F, lambda rows: rows, F.shape[1], units)
        return cls(
            units=list(units),
            root_means=np.stack([root_mean_squares(F[rows]) for rows in units.values()]),
            counts=np.array([len(rows) for rows in units.values()]),
        )

    @classmethod
    def measure_on_device(
        cls,
        X: Any,
        activate: Callable[[Any], Any],
        n_filters: int,
        units: dict[Unit, IntArray],
    ) -> "UnitNorms":
        """Measure the norms of the activations of rows X on a device, some of them at a time."""
        xp = namespace_of(X)
        step = max(1, DEVICE_ACTIVATIONS // n_filters)
        root_means = []
        for rows in units.values():
            cuts = (rows[start : start + step] for start in range(0, len(rows), step))
            parts = (gather(X, put_beside(cut, X)) for cut in cuts)
            squares = sum(squares_on_device(activate(part), xp) for part in parts)
            root_means.append(xp.astype(xp.sqrt(squares / len(rows)), X.dtype))
        counts = np.array([len(rows) for rows in units.values()])
        return cls(units=list(units), root_means=xp.stack(root_means), counts=counts)

    @classmethod
    def measure_stream(
        cls,
        stream: RowStream,
        W: FloatArray,
        activation: Activation,
        epsilon: float,
        units: dict[Unit, IntArray],
    ) -> "UnitNorms":
        """Measure the norms of the activations of filters W (L, m), in a pass over the rows."""
        squares, counts = np.zeros((len(units), len(W))), np.zeros(len(units), dtype=np.int64)
        for positions, codes in unit_codes(units, stream.shape[0]):
            arguments = (W.astype(stream.dtype)[None], activation, epsilon, len(positions))
            sums = stream.sums(squares_by_code, stream.split(codes), *arguments)
            squares[positions], counts[positions] = sums
        root_means = np.sqrt(squares / counts[:, None]).astype(stream.dtype)
        return cls(list(units), root_means, counts)

    def normalize(self, F: FloatArray, sample_domain: IntArray, norm_epsilon: float) -> FloatArray:
        """Overwrite F with its representation, each row under the norms of its unit."""
        if not isinstance(F, np.ndarray):
            unit = put_beside(locate_units(self.units, sample_domain), F)
            counts, xp = put_beside(self.counts, F), namespace_of(F)
            return normalize_on_device(F, self.root_means, counts, unit, norm_epsilon, xp)
        norms = stored_norms(self.root_means, self.counts, norm_epsilon).astype(F.dtype)
        unit = locate_units(self.units, sample_domain)
        # One unit for all rows, the usual case, needs no norms for every row.
        one_unit = (unit == unit[0]).all()
        return normalize_by(F, norms[unit[0]] if one_unit else norms[unit], norm_epsilon)

    def replace(self, new: "UnitNorms") -> "UnitNorms":
        """Return the norms with those of the units of ``new`` added or exchanged."""
        others = [index for index, name in enumerate(self.units) if name not in new.units]
        if isinstance(self.root_means, np.ndarray):
            root_means = np.vstack([self.root_means[others], new.root_means])
        else:
            xp = namespace_of(self.root_means)
            rows = put_beside(np.array(others, dtype=np.int64), self.root_means)
            kept = xp.take(self.root_means, rows, axis=0)
            root_means = xp.concat([kept, new.root_means])
        return UnitNorms(
            units=[*(self.units[index] for index in others), *new.units],
            root_means=root_means,
            counts=np.append(self.counts[others], new.counts),
        )
