"""Records as plain dictionaries: what a file or a page can hold."""

from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
    """Return the numbers, texts, lists and dictionaries for a value made of records and arrays.

    A number that is not finite becomes None: JSON has no other name for it. A field that holds
    anything else (a fitted object) is left out of its record.
    """
    if value is None or isinstance(value, str | bool | int | np.bool_ | np.integer):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return [to_plain(one) for one in value.tolist()]
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in value.items() if _can_be_plain(one)}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} cannot be converted to plain types.")


def _can_be_plain(value: Any) -> bool:
    plain = (str, bool, int, float, list, tuple, dict, np.ndarray, np.generic)
    return value is None or isinstance(value, plain)
