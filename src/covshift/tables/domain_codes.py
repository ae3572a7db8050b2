"""The domain column of two tables -> the integers of the domain contract."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covshift.kernels.arrays import IntArray
from covshift.tables.cells import MISSING
from covshift.tables.columns import column_text
from covshift.tables.errors import listed

MISSING_DOMAIN = "(missing)"
NEW = " (new)"  # added to the name of a domain that is in both tables


def code_domains(
    train: Any,
    new: Any,
    domain: str | None,
    notes: list[str],
    missing: Sequence[str] = MISSING,
) -> tuple[IntArray, IntArray, dict[int, str]]:
    """Return the number the domains: sources 0, 1, ..., targets -1, -2, ... as they come."""
    sources = np.zeros(len(train), dtype=np.int64)
    targets = np.full(len(new), -1, dtype=np.int64)
    if domain is None:
        return sources, targets, {0: "training", -1: "new"}
    sources, source_names = _number(train[domain], missing)
    names = dict(enumerate(source_names))
    if len(source_names) > max(2, len(train) // 2):
        notes.append(
            f"The domain column {listed([domain])} has {len(source_names)} values in {len(train)} "
            "training rows: too few rows of each to use them as domains."
        )
    if domain not in new.columns:
        notes.append(f"The new table has no column {listed([domain])}: its rows are one domain.")
        return sources, targets, {**names, -1: _free_name("new", source_names)}
    positions, target_names = _number(new[domain], missing)
    both = [name for name in target_names if name in source_names]
    if both:
        whose = "Domain" if len(both) == 1 else "Domains"
        verb = "is" if len(both) == 1 else "are"
        first = _free_name(both[0] + NEW, source_names)
        notes.append(
            f"{whose} {listed(both)} {verb} in both tables: its new rows are a target of their "
            f"own, {listed([first])}."
        )
    for i, name in enumerate(target_names):
        new_name = name + NEW if name in both else name
        names[-1 - i] = _free_name(new_name, list(names.values()))
    return sources, -1 - positions, names


def known_numbers(domain_names: Mapping[int, str]) -> dict[str, int]:
    """Return the domain that a name in a later table stands for.

    A target before a source: rows of today are not those of the training table.
    """
    sources = {name: number for number, name in domain_names.items() if number >= 0}
    targets = {name: number for number, name in domain_names.items() if number < 0}
    returned = {
        name.removesuffix(NEW): number
        for name, number in targets.items()
        if name.endswith(NEW) and name.removesuffix(NEW) in sources
    }
    return {**sources, **returned, **targets}


def domain_texts(column: Any, missing: Sequence[str] = MISSING) -> list[str]:
    """Return a domain column of a table as names."""
    names: list[str] = column_text(column, missing).fill_null(MISSING_DOMAIN).to_pylist()
    return names


def _number(column: Any, missing: Sequence[str]) -> tuple[IntArray, list[str]]:
    """Return each row's position among the distinct values, and these, as they come."""
    encoded = column_text(column, missing).fill_null(MISSING_DOMAIN).dictionary_encode()
    positions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return positions, encoded.dictionary.to_pylist()


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += NEW
    return name
