"""Which columns can be learned from, and the columns of the new table in the same kinds.

Left out, unless kept by name, and always with a note:

- constant: one value, or none, in the training rows that have a label;
- empty in the new table;
- identifiers: text of which nine in ten values or more are different, in 20 rows or more; whole
  numbers that are all different and consecutive; whole numbers that are all different, or text
  whose values are, under a name like ``id``, ``customer_id``, ``uuid``, ``key``, ``row``.

A name like an identifier's alone is only noted. A column of other kind in the new table is read
as the training table's kind; if more than half of its values do not fit, it is left out.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from covshift.tables.cells import Kind, to_dates
from covshift.tables.columns import (
    column_days,
    column_kind,
    column_numbers,
    column_text,
    column_truth,
)
from covshift.tables.errors import listed
from covshift.tables.extra import pandas as pd

MIN_ROWS_TO_JUDGE = 20
SHARE_OF_DIFFERENT_TEXTS = 0.9
IDENTIFIER_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uid|uuid|guid|key|index|row|rownames|identifier)$", re.IGNORECASE
)
CAMEL_CASE_NAME = re.compile(r"[a-z](Id|ID)$")


def choose_features(train: Any, new: Any, keep: Sequence[str], notes: list[str]) -> dict[str, Kind]:
    """Return the kinds of the columns to learn from; say which are left out."""
    kinds: dict[str, Kind] = {}
    reasons: dict[str, list[str]] = {}
    named = []
    for name in train.columns:
        kind = column_kind(train[name])
        reason = _reason_to_leave_out(name, kind, train[name], new[name])
        if reason is None or (name in keep and reason != "empty in the new table"):
            kinds[name] = kind
            if reason is None and is_identifier_name(name):
                named.append(name)
        else:
            reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        notes.append(f"Left out, since {reason}: {listed(names)}.")
    if named:
        notes.append(f"Named like identifiers, but kept: {listed(named)}. Ignore them if they are.")
    return kinds


def is_identifier_name(name: str) -> bool:
    """Whether a name is one that identifiers have."""
    return bool(IDENTIFIER_NAME.search(name) or CAMEL_CASE_NAME.search(name))


def convert_column(column: Any, kind: Kind) -> tuple[Any, list[str]] | None:
    """Return a column of the new table as the training table's kind, with notes.

    None: more than half of its values do not fit.
    """
    found = column_kind(column)
    n_filled = int(column.notna().sum())
    if kind == "text":
        text = column if found == kind else column_text(column).to_pandas()
        return text.astype(pd.StringDtype("pyarrow")), []
    if found == kind:
        return column, []
    if kind == "date":
        if found != "text":
            return None
        values = to_dates(column_text(column)).to_pandas()
    else:
        values = pd.Series(column_truth(column) if kind == "boolean" else column_numbers(column))
    n_lost = n_filled - int(values.notna().sum())
    if n_lost > n_filled / 2:
        return None
    note = f"Column {listed([column.name])}: {n_lost} new values are no {kind}s: missing."
    return values, [note] if n_lost else []


def unseen_note(train: Any, new: Any) -> list[str]:
    """Return a note on categories that only the new table has, if it has some."""
    known = set(column_text(train).unique().to_pylist())
    counts = column_text(new).value_counts().to_pylist()
    unseen = {c["values"]: c["counts"] for c in counts if c["values"] not in known}
    unseen.pop(None, None)
    if not unseen:
        return []
    return [
        f"Column {listed([train.name])}: {sum(unseen.values())} new rows have values that no "
        f"training row has: {listed(sorted(unseen), 3)}."
    ]


def _reason_to_leave_out(name: str, kind: Kind, train: Any, new: Any) -> str | None:
    filled = train.dropna()
    values = _plain_values(filled, kind)
    n_different = len(np.unique(values)) if kind != "text" else len(set(values))
    if n_different == 0 or (n_different == 1 and len(filled) == len(train)):
        return "constant in the training table"
    if not new.notna().any():
        return "empty in the new table"
    if len(filled) < MIN_ROWS_TO_JUDGE or kind in ("boolean", "date"):
        return None
    all_different = n_different == len(filled)
    if kind == "text":
        different = n_different >= SHARE_OF_DIFFERENT_TEXTS * len(filled)
        return "like identifiers (nearly all texts differ)" if different else None
    if not all_different or not np.all(values == np.floor(values)):
        return None
    if values.max() - values.min() + 1 == len(values):
        return "like identifiers (whole numbers one after the other)"
    if is_identifier_name(name):
        return "like identifiers (all different, and by their names)"
    return None


def _plain_values(column: Any, kind: Kind) -> Any:
    if kind == "text":
        return [value for value in column_text(column).to_pylist() if value is not None]
    values = column_days(column) if kind == "date" else column_numbers(column)
    return values[~np.isnan(values)]
