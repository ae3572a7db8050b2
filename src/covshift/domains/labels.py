"""Which labels may be read, and what stands in for those that may not."""

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from covshift.kernels.arrays import BoolArray, IntArray

Labels: TypeAlias = npt.NDArray[Any]


def known_labels(
    y: Any, label_mask: BoolArray, *, kind: Literal["class", "number", "any"]
) -> Labels:
    """Return the labels that may be read, validated; no other entry of y is looked at."""
    if hasattr(y, "to_numpy"):  # frames and series
        y = y.to_numpy()
    labels: Labels = np.asarray(y)
    if labels.ndim == 0 or len(labels) != len(label_mask):
        raise ValueError(
            f"y must hold one label per row: expected {len(label_mask)} labels, got "
            f"{len(labels) if labels.ndim else 'a single value'}."
        )
    if not label_mask.any():
        raise ValueError("No label is known: label_mask is False for every row.")
    labels = labels[label_mask]
    if labels.dtype == object:
        labels = _without_objects(labels)
    labels = column_or_1d(labels, warn=True)
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
    blanked = np.full(len(label_mask), placeholder, dtype=dtype)
    blanked[label_mask] = labels
    return blanked


def placeholder_label(labels: Labels) -> Any:
    """Return what stands for "no label" among labels of this type.

    NaN for floats, None for objects; -1 for signed integers (one below all labels, if -1 is
    one of them); the largest value of the type, or the next one, for unsigned ones; the
    empty string, or underscores if that is a label, for strings. Booleans have no spare
    value: False stands in.
    """
    kind = labels.dtype.kind
    if kind == "f":
        return np.nan
    if kind == "i":
        return -1 if -1 not in labels else int(labels.min()) - 1
    if kind == "u":
        largest = int(np.iinfo(labels.dtype).max)
        return largest if largest not in labels else largest + 1
    if kind == "b":
        return False
    if kind == "U":
        text = ""
        while text in labels:
            text += "_"
        return text
    return None


def check_no_placeholders(y: Any, classes: Labels) -> None:
    """Refuse to score rows that have no label: their placeholders would count as errors."""
    labels = np.asarray(y)
    placeholder = placeholder_label(classes)
    if classes.dtype.kind in "iuU" and placeholder not in classes and (labels == placeholder).any():
        raise ValueError(
            f"y holds {placeholder!r}, the placeholder of rows without a label: they cannot be "
            "scored. In a search, give cv=SourceOnlySplit(cv), which tests on labelled source "
            "rows only; elsewhere, drop the unlabelled rows."
        )


def _without_objects(labels: Labels) -> Labels:
    """Give labels the type they would have alone: masked rows must not decide it."""
    values = labels.tolist()
    if len({type(value) for value in values}) == 1:
        return np.asarray(values)
    return labels
