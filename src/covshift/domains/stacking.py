"""Putting source and target rows together, and taking them apart again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from covshift.domains.roles_and_labels import (
    Labels,
    as_signed,
    blank_labels,
    check_sample_domain,
    known_labels,
)
from covshift.kernels.array_types import IntArray
from covshift.row_checks import check_readable


@dataclass(frozen=True)
class StackedDomains:
    """Rows of all domains; unpacks as ``X, y, sample_domain``.

    Attributes
    ----------
    X : array, frame or sparse matrix of shape (n_samples, n_features)
        Rows of all domains, sources first, in the order given.
    y : ndarray of shape (n_samples,) or None
        Labels; target rows hold a placeholder (see `placeholder_label`).
    sample_domain : ndarray of int of shape (n_samples,)
        Domain of each row, ``>= 0`` source, ``< 0`` target.
    domain_names : dict
        Integer -> name.
    """

    X: Any
    y: Labels | None
    sample_domain: IntArray
    domain_names: dict[int, str]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.sample_domain))


def stack_domains(
    X_source: Any, y_source: Any = None, X_target: Any = None, *, target: Any = None
) -> StackedDomains:
    """Stack source and target rows for ``fit``.

    Two forms: ``stack_domains(X_source, y_source, X_target)``, and for several domains
    ``stack_domains({"site A": (X, y), ...}, target={"site C": X, ...})``.

    Parameters
    ----------
    X_source : array, frame or sparse matrix; or mapping of name to (X, y)
        Source rows.
    y_source : array-like or None
        Labels of the source rows; None: there are none.
    X_target : array, frame or sparse matrix
        Target rows.
    target : mapping of name to X
        Target domains of the second form.

    Returns
    -------
    StackedDomains
        Unpacks as ``X, y, sample_domain``. Sources are 0, 1, ..., targets -1, -2, ... in the
        order given. Target rows get a placeholder label that is not a class where the type of
        the labels has room for one: NaN, None, -1, the empty string.

    Notes
    -----
    **Cost**: O(n m) time, and memory for one copy of the rows.

    Examples
    --------
    >>> from covshift import stack_domains
    >>> X, y, sample_domain = stack_domains([[0.0], [1.0]], ["a", "b"], [[5.0]])
    >>> y.tolist(), sample_domain.tolist()
    (['a', 'b', ''], [0, 0, -1])
    """
    if isinstance(X_source, Mapping):
        if y_source is not None or X_target is not None or not isinstance(target, Mapping):
            raise TypeError(
                "With a mapping of source domains, give the targets as a mapping too: "
                "stack_domains({'site A': (X, y)}, target={'site C': X})."
            )
        sources = {name: _check_pair(name, pair) for name, pair in X_source.items()}
        targets = dict(target)
    else:
        if X_target is None or target is not None:
            raise TypeError(
                "Give source rows, their labels and target rows: "
                "stack_domains(X_source, y_source, X_target)."
            )
        sources, targets = {"source": (X_source, y_source)}, {"target": X_target}
    if not sources or not targets:
        raise ValueError("stack_domains needs at least one source and one target domain.")

    names = [*sources, *targets]
    blocks = [X for X, _ in sources.values()] + list(targets.values())
    blocks = [_check_block(name, X) for name, X in zip(names, blocks, strict=True)]
    numbers = [*range(len(sources)), *range(-1, -len(targets) - 1, -1)]
    sample_domain = np.repeat(np.array(numbers, dtype=np.int64), [X.shape[0] for X in blocks])
    labels = _stack_labels(
        {name: (X.shape[0], y) for X, (name, (_, y)) in zip(blocks, sources.items(), strict=False)}
    )
    if labels is not None:
        labels = blank_labels(labels, sample_domain >= 0)
    domain_names = {number: str(name) for number, name in zip(numbers, names, strict=True)}
    return StackedDomains(_stack_rows(names, blocks), labels, sample_domain, domain_names)


def split_domains(X: Any, y: Any, sample_domain: Any) -> tuple[Any, Labels | None, Any]:
    """Split stacked rows into domains: the inverse of `stack_domains`.

    Parameters
    ----------
    X : array, frame or sparse matrix of shape (n_samples, n_features)
        Rows of all domains.
    y : array-like of shape (n_samples,) or None
        Labels.
    sample_domain : array-like of shape (n_samples,)
        Domain of each row: an integer, ``>= 0`` source, ``< 0`` target.

    Returns
    -------
    X_source, y_source, X_target
        Source rows, their labels (None without labels), and target rows.

    Notes
    -----
    **Cost**: O(n m) time, and memory for one copy of the rows.

    Examples
    --------
    >>> from covshift import split_domains, stack_domains
    >>> X, y, sample_domain = stack_domains([[1.0], [2.0]], ["a", "b"], [[3.0]])
    >>> X_source, y_source, X_target = split_domains(X, y, sample_domain)
    >>> y_source.tolist(), X_target.tolist()
    (['a', 'b'], [[3.0]])
    """
    if not hasattr(X, "columns"):
        check_readable(X)
    domain = check_sample_domain(sample_domain, X.shape[0])
    source, target = np.flatnonzero(domain >= 0), np.flatnonzero(domain < 0)
    y_source = None if y is None else np.asarray(y)[source]
    return _safe_indexing(X, source), y_source, _safe_indexing(X, target)


def _check_pair(name: Any, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"Source domain {name!r} must be a pair (X, y), got {type(pair).__name__}.")
    return pair


def _check_block(name: Any, X: Any) -> Any:
    if not hasattr(X, "columns"):
        try:
            check_readable(X)
        except ValueError as error:
            raise ValueError(f"Rows of domain {name!r}: {error}") from None
    block = X if hasattr(X, "shape") else np.asarray(X)
    if len(block.shape) != 2:
        raise ValueError(
            f"The rows of domain {name!r} must be 2-dimensional, got shape {tuple(block.shape)}."
        )
    if block.shape[0] == 0:
        raise ValueError(f"Domain {name!r} has no rows.")
    return block


def _stack_labels(domains: Mapping[Any, tuple[int, Any]]) -> Labels | None:
    """Concatenate the labels of the source domains, all of which have some, or none."""
    missing = [name for name, (_, y) in domains.items() if y is None]
    if len(missing) == len(domains):
        return None
    if missing:
        raise ValueError(
            f"Source domains without labels: {missing}. Give labels for all, or move those "
            "domains to the targets."
        )
    labels = []
    for name, (n_rows, y) in domains.items():
        try:
            labels.append(as_signed(known_labels(y, np.ones(n_rows, dtype=bool), kind="any")))
        except ValueError as error:
            raise ValueError(f"Labels of domain {name!r}: {error}") from None
    kinds = {block.dtype.kind for block in labels}
    if len(kinds) > 1 and not kinds <= set("iuf"):
        raise ValueError(
            "Labels of the source domains are of different types: "
            f"{[str(block.dtype) for block in labels]}."
        )
    return np.concatenate(labels)


def _stack_rows(names: Sequence[Any], blocks: Sequence[Any]) -> Any:
    if len({X.shape[1] for X in blocks}) > 1:
        widths = ", ".join(f"{name!r}: {X.shape[1]}" for name, X in zip(names, blocks, strict=True))
        raise ValueError(f"Domains differ in their number of features: {widths}.")
    if any(hasattr(X, "columns") for X in blocks):
        return _stack_frames(names, blocks)
    if any(sparse.issparse(X) for X in blocks):
        return sparse.vstack([sparse.csr_array(X) for X in blocks], format="csr")
    return np.concatenate([np.asarray(X) for X in blocks])


def _stack_frames(names: Sequence[Any], frames: Sequence[Any]) -> Any:
    """Stack pandas or polars frames, columns matched by name, in the order of the first."""
    kinds = {type(frame).__module__.partition(".")[0] for frame in frames}
    if kinds not in ({"pandas"}, {"polars"}):
        raise TypeError(
            f"Rows are of different kinds, {sorted(kinds)}: give all domains as pandas frames, "
            "all as polars frames, or all as arrays."
        )
    columns = list(frames[0].columns)
    for name, frame in zip(names, frames, strict=True):
        if set(frame.columns) != set(columns):
            unmatched = sorted(map(str, set(frame.columns) ^ set(columns)))
            raise ValueError(
                f"Columns of domain {name!r} do not match those of {names[0]!r}: {unmatched} "
                "are in one of them only."
            )
    if len(set(columns)) == len(columns):
        ordered = [frame[columns] for frame in frames]
    elif all(list(frame.columns) == columns for frame in frames):
        ordered = list(frames)
    else:
        raise ValueError("Columns with repeated names must stand in the same order everywhere.")
    if kinds == {"pandas"}:
        import pandas as pd

        return pd.concat(ordered, ignore_index=True)
    import polars as pl

    return pl.concat(ordered, how="vertical_relaxed")
