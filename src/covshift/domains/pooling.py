"""Who shares statistics with whom."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from covshift.kernels.arrays import IntArray

Unit: TypeAlias = int | str
Pooling: TypeAlias = Literal["role", "domain", "joint"]


def pooling_units(
    sample_domain: IntArray, pooling: Pooling, min_domain_size: int
) -> dict[Unit, IntArray]:
    """Return which rows share statistics: the name of each unit, and its rows.

    "joint": one unit "all". "role": "source" and "target", as far as present. "domain":
    each domain by its integer, one with fewer than ``min_domain_size`` rows served by those
    of its role; then the roles.
    """
    if pooling == "joint":
        return {"all": np.arange(len(sample_domain))}
    masks = {"source": sample_domain >= 0, "target": sample_domain < 0}
    roles: dict[Unit, IntArray] = {
        role: np.flatnonzero(mask) for role, mask in masks.items() if mask.any()
    }
    if pooling == "role":
        return roles
    units: dict[Unit, IntArray] = {}
    for domain in np.unique(sample_domain).tolist():
        rows = np.flatnonzero(sample_domain == domain)
        units[domain] = rows if len(rows) >= min_domain_size else roles[_role(domain)]
    return units | roles


def locate_units(units: Sequence[Unit], sample_domain: IntArray) -> IntArray:
    """Return the position of each row's unit: its own, else its role's, else the source's."""
    position = {unit: index for index, unit in enumerate(units)}
    fallback = position.get("source", 0)
    located = np.zeros(len(sample_domain), dtype=np.int64)
    for domain in np.unique(sample_domain).tolist():
        unit = domain if domain in position else _role(domain)
        located[sample_domain == domain] = position.get(unit, fallback)
    return located


def _role(domain: int) -> Unit:
    return "source" if domain >= 0 else "target"
