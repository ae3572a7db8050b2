"""Text and sort value of cells."""

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, cast

from covshift.report.document import Cell, Column, FullCell, Number, is_number


def full_cell(cell: Cell) -> FullCell:
    """Return any kind of cell as a dict."""
    if cell is None:
        return {}
    if isinstance(cell, Mapping):
        return cast(FullCell, cell)
    if isinstance(cell, str):
        return {"text": cell}
    return {"value": cell}


def shown_text(cell: FullCell, column: Column) -> str:
    """Return the text of a cell, or its value as text, or nothing."""
    if "text" in cell:
        return cell["text"]
    value = cell.get("value")
    if value is None:
        return ""
    return value if isinstance(value, str) else format_number(value, column.get("digits"))


def sort_value(cell: FullCell) -> Number | str | None:
    """Return what a cell sorts by; None, which sorts last, for NaN as well."""
    value: Any = cell["value"] if "value" in cell else cell.get("text") or cell.get("mark")
    if is_number(value):
        value = plain_number(value)
        return None if math.isnan(value) else value
    return cast(str | None, value)


def plain_number(value: Number) -> Number:
    """Return a number of NumPy as one of Python."""
    return int(value) if isinstance(value, Integral) else float(value)


def format_number(value: Number, digits: int | None = None) -> str:
    """Return a number as shown: whole ones whole, others with ``digits`` decimals.

    Parameters
    ----------
    value : number
        Number.
    digits : int, optional
        Decimals; four significant digits by default.

    Returns
    -------
    str

    Examples
    --------
    >>> format_number(1200), format_number(0.5, digits=3), format_number(0.000123456)
    ('1200', '0.500', '0.0001235')
    >>> format_number(float("nan")), format_number(float("-inf"))
    ('NaN', '-∞')
    """
    number = plain_number(value)
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return f"{number:.4g}" if digits is None else f"{number:.{digits}f}"
