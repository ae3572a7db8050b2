"""Source or target: reading and checking ``sample_domain`` and ``label_mask``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, IntArray

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
                f"sample_domain={sample_domain!r} names no domain of this model; "
                f"names it learned by adapt_target: {sorted(numbers)}."
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
    # Whole numbers stored as floats or objects are what frames make of integer columns.
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
