"""Who shares statistics with whom."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from covshift.kernels.arrays import IntArray

Unit: TypeAlias = int | str


def pooling_units(
    sample_domain: IntArray, pooling: str, min_domain_size: int
) -> dict[Unit, IntArray]:
    """Return which rows share statistics: the name of each unit, and its rows.

    "joint": one unit "all". "role": "source" and "target", as far as present. "domain":
    each domain of at least ``min_domain_size`` rows by its integer, then the roles, which
    also serve the smaller domains.
    """
    if pooling == "joint":
        return {"all": np.arange(len(sample_domain))}
    masks = {"source": sample_domain >= 0, "target": sample_domain < 0}
    roles: dict[Unit, IntArray] = {
        role: np.flatnonzero(mask) for role, mask in masks.items() if mask.any()
    }
    if pooling == "role":
        return roles
    domains, counts = np.unique(sample_domain, return_counts=True)
    rows = np.split(np.argsort(sample_domain, kind="stable"), np.cumsum(counts)[:-1])
    units: dict[Unit, IntArray] = {
        domain: own
        for domain, own in zip(domains.tolist(), rows, strict=True)
        if len(own) >= min_domain_size
    }
    return units | roles


def role_of(unit: Unit) -> str:
    """Role of a unit: of a domain by its sign; a role is its own."""
    if isinstance(unit, str):
        return unit
    return "source" if unit >= 0 else "target"


def unit_codes(units: Mapping[Unit, IntArray], n_rows: int) -> Iterator[tuple[list[int], Any]]:
    """Yield sets of units that share no row: their positions, and which of them each row is in.

    Domains are one such set and the roles, to which their rows belong as well, another. A row
    that is in none of a set has the number of its units as code.
    """
    names = list(units)
    domains = [index for index, name in enumerate(names) if not isinstance(name, str)]
    roles = [index for index, name in enumerate(names) if isinstance(name, str)]
    for positions in (domains, roles):
        if positions:
            codes = np.full(n_rows, len(positions), dtype=np.int32)
            for code, index in enumerate(positions):
                codes[units[names[index]]] = code
            yield positions, codes


def pick_rows(X: Any, rows: IntArray) -> Any:
    """Return those rows of X, whose numbers ascend; without a copy if they are all in a run."""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    return X[start:stop] if stop - start == len(rows) else X[rows]


def locate_units(units: Sequence[Unit], sample_domain: IntArray) -> IntArray:
    """Return the position of each row's unit: its own, else its role's, else the source's."""
    position = {unit: index for index, unit in enumerate(units)}
    fallback = position.get("source", 0)
    if len(sample_domain) and (sample_domain == sample_domain[0]).all():
        # The usual case when predicting, which needs no sorting.
        domains, row_domain = sample_domain[:1], np.zeros(len(sample_domain), dtype=np.intp)
    else:
        domains, row_domain = np.unique(sample_domain, return_inverse=True)
    located = [
        position.get(domain, position.get(_role(domain), fallback)) for domain in domains.tolist()
    ]
    return np.array(located, dtype=np.int64)[row_domain]


def _role(domain: int) -> Unit:
    return "source" if domain >= 0 else "target"
