"""Which labels may be read, and the placeholder for the others."""

from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from covshift.kernels.arrays import BoolArray, IntArray
from covshift.row_checks import check_unmasked

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
    labels = column_or_1d(labels, warn=True)
    if kind == "number" and labels.dtype.kind in "USTMm":
        raise ValueError(
            f"y must hold numbers, got {labels.dtype} (first: {str(labels[0])!r}). Convert the "
            "labels, e.g. dates to days since one of them."
        )
    dtype = "numeric" if kind == "number" else None
    if kind == "number" or labels.dtype.kind in "fcO":
        labels = check_array(labels, ensure_2d=False, dtype=dtype, input_name="y")
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
    placeholder = placeholder_label(labels)
    dtype = np.result_type(labels.dtype, np.min_scalar_type(placeholder))
    if labels.dtype.kind == "u" and dtype.kind == "f":  # no integer type holds both
        dtype = np.dtype(np.int64)
    blanked = np.full(len(label_mask), placeholder, dtype=dtype)
    blanked[label_mask] = labels
    return blanked


def placeholder_label(labels: Labels) -> Any:
    """Return what stands for "no label" among labels of this type.

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
    """Return whether an object is None, NaN or the missing value of pandas."""
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


def _without_objects(labels: Labels) -> Labels:
    """Give labels the type they would have alone: masked rows must not decide it."""
    values = labels.tolist()
    for one_kind in ((bool, np.bool_), str, Real):
        if all(isinstance(value, one_kind) for value in values):
            return np.asarray(values)
    kinds = sorted({type(value).__name__ for value in values})
    if len(kinds) > 1:
        raise ValueError(
            f"Known labels are of several types: {', '.join(kinds)}. Say by label_mask which "
            "rows have no label."
        )
    return labels
