"""Rows drawn from a stream, where all of them are more than a method can use."""

import warnings
from typing import Any

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.streams.kinds import sample_rows
from covshift.streams.opening import open_stream

# Rows brought into memory for methods that need them there, as double precision.
IN_MEMORY_BYTES = 2**28


class SampledRowsWarning(UserWarning):
    """Something was learned from a sample of the rows, which is said with its error."""


def draw_in_memory(
    X: Any, y: Any, sample_domain: Any, label_mask: Any, *, what: str
) -> tuple[Any, Any, Any, Any, IntArray]:
    """Bring as many rows as fit, with what is known of them, into memory; and their numbers.

    Of source rows and of target rows alike as many as are there, up to half of the room each.
    """
    stream = open_stream(X)
    n_rows, n_features = stream.shape
    given = {"y": y, "sample_domain": sample_domain, "label_mask": label_mask}
    for name, values in given.items():
        if values is not None and np.shape(values)[:1] != (n_rows,):
            raise ValueError(
                f"{name} must hold one entry per row: expected {n_rows}, got "
                f"{np.shape(values)[:1] or 'a single value'}."
            )
    limit = max(2, IN_MEMORY_BYTES // (n_features * 8))
    source = np.ones(n_rows, bool) if sample_domain is None else np.asarray(sample_domain) >= 0
    n_target = int((~source).sum())
    drawn = [sample_rows(source, max(limit // 2, limit - n_target))]
    drawn.append(sample_rows(~source, limit - len(drawn[0])))
    rows = np.union1d(*drawn)
    if len(rows) < n_rows:
        thinned = [len(own) for own, n in zip(drawn, (n_rows - n_target, n_target), strict=True)
                   if len(own) < n]  # fmt: skip
        error = np.sqrt(np.log(2 / 0.05) / (2 * min(thinned)))
        warn_sampled(
            what, len(rows), n_rows,
            f"the share of any kind of row is within {error:.4f} of that among all rows of its "
            "role, with probability .95",
        )  # fmt: skip
    picked = [None if values is None else np.asarray(values)[rows] for values in given.values()]
    return stream.pick(rows), picked[0], picked[1], picked[2], rows


def warn_sampled(what: str, n_drawn: int, n_rows: int, error: str) -> None:
    """Warn that ``what`` was learned from a sample, with its size and error."""
    warnings.warn(
        f"{what} from {n_drawn:,} of {n_rows:,} rows, drawn at random: {error}.",
        SampledRowsWarning,
        stacklevel=5,
    )
