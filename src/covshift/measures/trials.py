"""Numbers per trial, and the groups that trials repeat: what the paired tests share."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from covshift.kernels.arrays import FloatArray

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

# Numbers held at once when clusters are flipped or drawn: eight megabytes.
BLOCK_ENTRIES = 2**20


def check_alternative(alternative: str) -> None:
    """Raise an error unless it is one of the three."""
    if alternative not in get_args(Alternative):
        raise ValueError(
            f"alternative must be one of {get_args(Alternative)}, got {alternative!r}."
        )


def check_trial_values(values: Any, name: str) -> FloatArray:
    """Return one finite number per trial, shape (n,)."""
    array: FloatArray = column_or_1d(
        check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    )
    return array


def check_trial_labels(labels: Any, name: str) -> Any:
    """Return one class or group per trial, of any type but with none missing, shape (n,)."""
    array = column_or_1d(check_array(labels, dtype=None, ensure_2d=False, input_name=name))
    if array.dtype.kind == "O" and any(label is None for label in array):
        raise ValueError(f"{name} has missing entries (None).")
    return array


def cluster_means(values: Any, groups: Any) -> FloatArray:
    """Return the mean value of each group, shape (G,), with G at least two."""
    numbers = check_trial_values(values, "differences")
    labels = check_trial_labels(groups, "groups")
    check_consistent_length(numbers, labels)
    names, members = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "There is only one group: a statement about groups needs at least two of them, "
            "whatever the number of trials."
        )
    # Summed and listed by size, not by row or name: seeded results depend on neither.
    order = np.argsort(numbers)
    numbers, members = numbers[order], members[order]
    means: FloatArray = np.bincount(members, weights=numbers) / np.bincount(members)
    return means[np.lexsort((means, np.abs(means)))]


def block_sizes(n_rows: int, n_clusters: int) -> Iterator[int]:
    """Yield the rows of each block: at most ``BLOCK_ENTRIES`` entries, at least one row."""
    most = max(1, BLOCK_ENTRIES // n_clusters)
    for start in range(0, n_rows, most):
        yield min(most, n_rows - start)
