"""Roles and units of rows: who is source, who is target, and who shares statistics with whom."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from covshift.kernels.arrays import BoolArray, IntArray

Unit: TypeAlias = int | str  # a domain by its integer, a role by its name

# Rows of which only the role is known. They match no unit, so each role's pooled
# statistics serve them.
SOME_SOURCE = int(np.iinfo(np.int64).max)
SOME_TARGET = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class FitDomains:
    """The domains of the rows of one ``fit``, validated by `check_fit_domains`."""

    sample_domain: IntArray
    label_mask: BoolArray
    given: bool

    @property
    def source(self) -> BoolArray:
        """Mask of the source rows."""
        return self.sample_domain >= 0

    @property
    def target(self) -> BoolArray:
        """Mask of the target rows."""
        return self.sample_domain < 0

    @property
    def has_target(self) -> bool:
        """Whether there is anything to adapt to."""
        return bool(self.target.any())

    @property
    def domains(self) -> IntArray:
        """Distinct domains, sorted."""
        return np.unique(self.sample_domain)


def check_fit_domains(sample_domain: Any, label_mask: Any, n_samples: int) -> FitDomains:
    """Validate what ``fit`` was given about its rows.

    Without ``sample_domain`` there is one source domain and nothing to adapt to.
    """
    given = sample_domain is not None
    if given:
        domain = check_sample_domain(sample_domain, n_samples)
    else:
        domain = np.zeros(n_samples, dtype=np.int64)
    if not (domain >= 0).any():
        raise ValueError(
            "sample_domain has no source rows: at least one entry must be >= 0 "
            "(source domains are 0, 1, ...; target domains -1, -2, ...)."
        )
    return FitDomains(domain, check_label_mask(label_mask, domain), given)


def check_new_domains(
    sample_domain: Any, n_samples: int, *, has_target: bool, domain_names: Mapping[int, str]
) -> IntArray:
    """Validate the domains of rows to transform or predict.

    ``sample_domain`` is None, one integer per row, or one integer or name for all rows.
    """
    if sample_domain is None:
        return np.full(n_samples, SOME_TARGET if has_target else SOME_SOURCE)
    if isinstance(sample_domain, str):
        numbers = {name: number for number, name in domain_names.items()}
        if sample_domain not in numbers:
            raise ValueError(
                f"sample_domain={sample_domain!r} is not a domain of this model. Names that it "
                f"learned by adapt_target: {sorted(numbers)}."
            )
        sample_domain = numbers[sample_domain]
    if _is_integer(sample_domain) and SOME_TARGET < sample_domain < SOME_SOURCE:
        return np.full(n_samples, int(sample_domain))
    return check_sample_domain(sample_domain, n_samples)


def check_sample_domain(sample_domain: Any, n_samples: int) -> IntArray:
    """Return ``sample_domain`` as one integer per row, or say what is wrong with it."""
    domain = np.asarray(sample_domain)
    if domain.ndim != 1 or len(domain) != n_samples:
        raise ValueError(
            f"sample_domain must hold one integer per row: expected shape ({n_samples},), "
            f"got {domain.shape}."
        )
    # Frames turn integer columns into floats or objects that hold whole numbers.
    whole = domain.dtype.kind in "iuf" or (domain.dtype == object and all(map(_is_integer, domain)))
    if whole:
        inside = (domain > SOME_TARGET) & (domain < SOME_SOURCE)  # false for NaN, too
        whole = bool(inside.all()) and bool((domain == domain.astype(np.int64)).all())
    if not whole:
        raise ValueError(
            "sample_domain must hold integers (>= 0 source, < 0 target), got "
            f"{np.unique(domain.astype(str))[:5].tolist()} of type {domain.dtype}. "
            "`covshift.stack_domains` makes them from named domains."
        )
    return domain.astype(np.int64)


def check_label_mask(label_mask: Any, sample_domain: IntArray) -> BoolArray:
    """Return which labels may be read: as given, or those of the source rows."""
    if label_mask is None:
        return sample_domain >= 0
    mask = np.asarray(label_mask)
    if mask.shape != sample_domain.shape:
        raise ValueError(
            f"label_mask must hold one boolean per row: expected shape {sample_domain.shape}, "
            f"got {mask.shape}."
        )
    if mask.dtype != bool:
        raise ValueError(
            f"label_mask must be boolean (True where the label is known), got {mask.dtype}."
        )
    return mask


def new_target_domain(domain: Any, known: Iterable[int], domain_names: Mapping[int, str]) -> int:
    """Return the integer of a target domain that a fitted model is about to learn.

    A name keeps the integer it has, or gets the next one below all that are ``known``.
    """
    if domain is None:
        return SOME_TARGET
    if isinstance(domain, str):
        for number, name in domain_names.items():
            if name == domain:
                return number
        return min([0, *known, *domain_names]) - 1
    if _is_integer(domain) and domain in domain_names:
        raise ValueError(f"{domain} is the target named {domain_names[domain]!r}: use its name.")
    if _is_integer(domain) and SOME_TARGET < domain < 0:
        return int(domain)
    raise ValueError(
        "domain must be a negative integer, a name, or None for the default target, "
        f"got {domain!r}."
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


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
    """Return the role of a unit: of a domain by its sign; a role is its own."""
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
