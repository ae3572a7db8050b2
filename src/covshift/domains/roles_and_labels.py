"""Who is source, who is target, who shares statistics with whom, and which labels may be read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from covshift.kernels.array_types import BoolArray, IntArray
from covshift.row_checks import check_unmasked

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
        """Whether there are target rows to adapt to."""
        return bool(self.target.any())

    @property
    def domains(self) -> IntArray:
        """Distinct domains, sorted."""
        return np.unique(self.sample_domain)


def check_fit_domains(sample_domain: Any, label_mask: Any, n_samples: int) -> FitDomains:
    """Validate what ``fit`` was given about its rows: roles, and which labels may be read.

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
    return FitDomains(domain, _check_label_mask(label_mask, domain), given)


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
                f"learned by adapt_target: {sorted(numbers)}. Give domains of fit by their number, "
                "such as -1 for the first target."
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
            f"{sorted(set(map(str, domain.tolist())))[:5]} of type {domain.dtype}. "
            "`covshift.stack_domains` makes them from named domains."
        )
    return domain.astype(np.int64)


def _check_label_mask(label_mask: Any, sample_domain: IntArray) -> BoolArray:
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
    """Return the integer that gives a new domain the role of a target of a fitted model.

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
    """Return which rows share statistics, by domain or role: each unit's name, and its rows.

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
    """Yield sets of units, domains or roles, that share no row: positions, and each row's unit.

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


def locate_units(units: Sequence[Unit], sample_domain: IntArray) -> IntArray:
    """Return the position of each row's unit: its own, that of its role, or the source's."""
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


# --- Which labels may be read, and the placeholder for the others ---


Labels: TypeAlias = npt.NDArray[Any]


def known_labels(
    y: Any, label_mask: BoolArray, *, kind: Literal["class", "number", "any"]
) -> Labels:
    """Return the labels that may be read, validated; other entries of y are ignored."""
    if isinstance(y, np.ma.MaskedArray) and len(y) == len(label_mask):
        advice = "Say by label_mask which rows have no label."
        check_unmasked(y[label_mask], "y", advice)
    if not (isinstance(y, list | tuple) or _is_frame(y)):
        y = np.asarray(y)
    n_labels = "a single value" if getattr(y, "ndim", 1) == 0 else len(y)
    if n_labels != len(label_mask):
        raise ValueError(
            f"y must hold one label per row: expected {len(label_mask)} labels, got {n_labels}."
        )
    if not label_mask.any():
        raise ValueError("No label is known: label_mask is False for every row.")
    labels: Labels = _pick(y, label_mask)
    if _is_object(labels):
        labels = _without_objects(labels)
    if np.iscomplexobj(labels):  # scikit-learn's message shows the whole array
        raise ValueError("Complex data not supported: y must hold classes or numbers.")
    labels = column_or_1d(labels, warn=True)
    if kind == "number" and labels.dtype.kind in "USTMm":
        raise ValueError(
            f"y must hold numbers, got {labels.dtype} (first: {str(labels[0])!r}). Convert the "
            "labels, e.g. dates to days since one of them."
        )
    dtype = "numeric" if kind == "number" else None
    if kind == "number" or labels.dtype.kind in "fcO":
        labels = check_array(labels, ensure_2d=False, dtype=dtype, input_name="y")
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        raise ValueError("Input y contains NaT. Say by label_mask which rows have no label.")
    if kind == "class":
        check_classification_targets(labels)
    return labels


def encode_classes(y: Any, label_mask: BoolArray) -> tuple[Labels, IntArray]:
    """Return the classes among the known labels, and each row's class number, or -1."""
    labels = known_labels(y, label_mask, kind="class")
    classes, known_codes = np.unique(labels, return_inverse=True)
    codes = np.full(len(label_mask), -1, dtype=np.int64)
    codes[label_mask] = known_codes
    return classes, codes


def blank_labels(labels: Labels, label_mask: BoolArray) -> Labels:
    """Spread known labels over all rows; the others get a placeholder."""
    labels = as_signed(labels)
    placeholder = placeholder_label(labels)
    dtype = np.result_type(labels.dtype, np.min_scalar_type(placeholder))
    blanked = np.full(len(label_mask), placeholder, dtype=dtype)
    blanked[label_mask] = labels
    return blanked


def as_signed(labels: Labels) -> Labels:
    """Return labels of 64 bits without sign as int64: with other integers they become floats."""
    if labels.dtype != np.uint64:
        return labels
    if len(labels) and labels.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"y holds whole numbers up to {labels.max()}, and {np.iinfo(np.int64).max} is the "
            "largest that is read. Turn them into text."
        )
    return labels.astype(np.int64)


def placeholder_label(labels: Labels) -> Any:
    """Return what stands for "no label" where labels may not be read, by the type of these.

    NaN for floats, None for objects; -1 for integers (one below all labels, if -1 is one of
    them); the empty string, or underscores if that is a label, for strings. Booleans have no
    spare value: False is used.
    """
    kind = labels.dtype.kind
    if kind == "f":
        return np.nan
    if kind in "iu":
        return -1 if kind == "u" or -1 not in labels else int(labels.min()) - 1
    if kind == "b":
        return False
    if kind == "U":
        text = ""
        while text in labels:
            text += "_"
        return text
    return None


def check_no_placeholders(y: Any, sample_domain: IntArray | None, classes: Labels | None) -> Labels:
    """Return the labels of rows to score, in the type that a fit reads them in.

    Rows that have no label are an error: their placeholders would count as wrong predictions.
    ``classes`` are those of the model; None for a regression, where a whole number may be a
    placeholder or a label, and only a batch whose target rows all hold the placeholder gives
    itself away.
    """
    labels = np.asarray(y)
    if _is_object(labels):
        missing = [one for one in labels.ravel() if is_missing(one)]
        if missing:
            raise _cannot_score(missing[0])
        labels = _without_objects(labels)
    target = np.ones(len(labels), dtype=bool) if sample_domain is None else sample_domain < 0
    if labels.shape != target.shape:
        return labels  # no labels of these rows: the score will say so
    known = labels[~target] if classes is None else np.concatenate([classes, labels[~target]])
    if known.dtype.kind not in "iuU" or not len(known) or not target.any():
        return labels
    placeholder = placeholder_label(known)
    unlabeled = labels[target] == placeholder
    if unlabeled.any() and (classes is not None or unlabeled.all()):
        raise _cannot_score(placeholder)
    return labels


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or the missing value of pandas."""
    is_nan = isinstance(label, float | np.floating) and bool(np.isnan(label))
    return label is None or is_nan or type(label).__name__ == "NAType"


def _cannot_score(placeholder: Any) -> ValueError:
    return ValueError(
        f"y holds {placeholder!r}, the placeholder of rows without a label: they cannot be "
        "scored. In a search, give cv=SourceOnlySplit(cv), which tests on labeled source "
        "rows only, and ask for no scores of training folds; elsewhere, drop those rows."
    )


def _pick(y: Any, label_mask: BoolArray) -> Labels:
    """Return the known labels as an array; the others take no part in choosing its type."""
    if _is_frame(y):
        y = _safe_indexing(y, np.flatnonzero(label_mask))
        return np.asarray(y.to_numpy())
    if isinstance(y, list | tuple):
        return np.asarray([label for label, known in zip(y, label_mask, strict=True) if known])
    known: Labels = y[label_mask]
    return known


def _is_frame(y: Any) -> bool:
    """Return whether y is a series or frame of pandas or polars."""
    return hasattr(y, "iloc") or type(y).__module__.startswith("polars.")


def _is_object(labels: Labels) -> bool:
    """Whether labels are Python's objects, or texts of any length, which scikit-learn refuses."""
    return labels.dtype == object or labels.dtype.kind == "T"


def _as_floats(numbers: Labels) -> Labels:
    """Return decimals, fractions and integers beyond 64 bits as floats, if all stay distinct."""
    floats = numbers.astype(np.float64)
    if len(np.unique(floats)) < len(set(numbers.tolist())) and (floats % 1 == 0).all():
        raise ValueError(
            f"y holds whole numbers that floats cannot represent (first: {numbers[0]}). Give "
            "class labels as texts."
        )
    return floats


def _without_objects(labels: Labels) -> Labels:
    """Give labels the type they would have alone: masked rows must not decide it."""
    values = labels.tolist()
    for one_kind in ((bool, np.bool_), str, Real):
        if all(isinstance(value, one_kind) for value in values):
            found = np.asarray(values)
            return _as_floats(found) if found.dtype == object else found
    if all(isinstance(value, Real | Decimal) for value in values):
        return _as_floats(labels)
    kinds = sorted({type(value).__name__ for value in values})
    if len(kinds) > 1:
        raise ValueError(
            f"Known labels are of several types: {', '.join(kinds)}. Say by label_mask which "
            "rows have no label."
        )
    return labels
