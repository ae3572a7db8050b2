"""The support of a source that may be small."""

from covshift.kernels.arrays import FloatArray
from covshift.measures import SourceSupport


def fit_support(X_source: FloatArray) -> SourceSupport | None:
    """The support of source rows (n, d), with fewer neighbours where there are few rows.

    None for a single row, which has no distance to others.
    """
    if len(X_source) < 2:
        return None
    neighbors = SourceSupport().n_neighbors
    return SourceSupport(n_neighbors=min(neighbors, len(X_source) - 1)).fit(X_source)
