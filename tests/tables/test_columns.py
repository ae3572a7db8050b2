"""The rule of numbers against a slow twin, and what decides the style of a file."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covshift.tables.columns import (
    _to_numbers,
    column_numbers,
    guess_number_style,
    to_booleans,
    to_dates,
    trim,
)
from covshift.tables.schema_detection import ColumnTypes, _choose_number_style

DIGITS = "0123456789"
DASHES = "\u2212\u2013"  # minus sign and en dash


def naive_number(text, style):
    """Read one cell, character by character; None if it is not a finite number."""
    text = text.strip()
    spaces = " '’\u00a0\u202f"  # noqa: RUF001
    decimal, groups = {"point": (".", f",{spaces}"), "comma": (",", f".{spaces}")}[style]
    if text[:1] in DASHES:
        text = f"-{text[1:]}" if text else ""
    if text[:1] == "(" and text[-1:] == ")":
        text = f"-{text[1:-1]}"
    elif text[-1:] == "-" and not {"+", "-"} & set(text[:-1]):
        text = f"-{text[:-1]}"
    sign = -1.0 if text.startswith("-") else 1.0
    text = text[1:] if text[:1] in ("+", "-") else text
    mantissa, exponent = text, "0"
    for mark in "eE":
        if mark in text:
            mantissa, _, exponent = text.partition(mark)
            unsigned = exponent[1:] if exponent[:1] in ("+", "-") else exponent
            if not unsigned or any(c not in DIGITS for c in unsigned):
                return None
            break
    whole, _, fraction = mantissa.partition(decimal)
    if any(c not in DIGITS for c in fraction):
        return None
    if not whole:
        if not fraction:
            return None
    elif any(c in groups for c in whole):
        pieces, piece = [], ""
        for c in whole:
            if c in groups:
                pieces.append(piece)
                piece = ""
            else:
                piece += c
        pieces.append(piece)
        if not 1 <= len(pieces[0]) <= 3 or any(len(p) != 3 for p in pieces[1:]):
            return None
        whole = "".join(pieces)
    if any(c not in DIGITS for c in whole):
        return None
    number = sign * float(f"{whole or 0}.{fraction or 0}e{exponent}")
    return number if math.isfinite(number) else None


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from("0123456789.,'+-eE \u00a0x()\u2212\u2013"), max_size=9), min_size=1
    ),
    st.sampled_from(["point", "comma"]),
)
def test_numbers_equal_the_slow_reading(cells, style):
    read = _to_numbers(pa.array(cells, pa.string()), style).to_pylist()
    assert read == [naive_number(cell, style) for cell in cells]


@pytest.mark.parametrize("cell", ["1.5", "1,234.5", "1'000", "-.5", "2.", "1e-3", " 7 "])
def test_the_slow_reading_reads_numbers(cell):
    """Guards the test above: a twin that reads nothing would agree with a reader of nothing."""
    expected = float(cell.replace(",", "").replace("'", ""))
    assert naive_number(cell, "point") == expected
    assert _to_numbers(pa.array([cell]), "point").to_pylist() == [expected]


def test_durations_are_read_in_days():
    durations = pd.Series(pd.to_timedelta(["1 day", "36 h", None, "-12 h"]))
    np.testing.assert_array_equal(column_numbers(durations), [1.0, 1.5, np.nan, -0.5])


def test_infinite_numbers_are_missing():
    cells = pa.array(["inf", "-Infinity", "1e999", "nan", "1"])
    assert _to_numbers(cells, "point").to_pylist() == [None, None, None, None, 1.0]


def test_dates_with_and_without_zone():
    read = to_dates(pa.array(["2024-01-01T12:00:00Z", "2024-01-01", " 2024-01-01 01:00 ", "x"]))
    assert [None if d is None else d.isoformat() for d in read.to_pylist()] == [
        "2024-01-01T12:00:00",
        "2024-01-01T00:00:00",
        "2024-01-01T01:00:00",
        None,
    ]


def test_truth_values():
    cells = pa.array(["TRUE", "false", "1", "0", "yes", None, " True "])
    assert to_booleans(cells).to_pylist() == [True, False, True, False, None, None, True]


def columns(*lists):
    made = []
    for cells in lists:
        column = ColumnTypes()
        column.look_at(pa.array(cells, pa.string()))
        made.append(column)
    return made


@pytest.mark.parametrize(
    ("lists", "separator", "style"),
    [
        ([["1,5"], ["x"]], ",", "comma"),
        ([["1,5"], ["2.5"], ["3.5"]], ",", "point"),
        ([["1,5", *["7"] * 30]], ",", "comma"),
        ([["1.5", *["7"] * 30]], ";", "point"),
        ([["12,345"]], ",", "point"),
        ([["12,345"]], ";", "comma"),
        ([["12,345"], ["1.234"]], ";", "point"),
        ([["1"], ["x"]], ";", "point"),
        ([[None]], ";", "point"),
    ],
)
def test_style_of_a_file(lists, separator, style):
    assert _choose_number_style(columns(*lists), separator) == style


def test_kinds_over_several_chunks():
    column = ColumnTypes()
    column.look_at(pa.array(["1", "2"]))
    assert column.kind("point") == "number"
    column.look_at(pa.array(["007"]))
    assert column.kind("point") == "text"
    assert column.codes
    column.look_at(pa.array(["1.5", None]))
    assert column.kind("point") == "text"
    assert column.filled == 4


def test_the_usual_style_decides_only_where_both_serve():
    assert guess_number_style([pa.array(["12,345", None])], "point") == "point"
    assert guess_number_style([pa.array(["12,345", "x"])], "comma") == "comma"
    assert guess_number_style([pa.array(["1,5", "x", "y"])], "point") == "comma"
    assert guess_number_style([], "point") == "point"


@pytest.mark.parametrize(("n_others", "kind"), [(0, "number"), (5, "number"), (6, "text")])
def test_a_few_cells_that_are_no_numbers(n_others, kind):
    (column,) = columns(["unknown"] * n_others + ["1.5"] * (100 - n_others))
    assert column.kind("point") == kind


def test_columns_of_grouped_numbers_are_not_read_in_the_other_style():
    """Each of these cells is a number with a decimal point, too."""
    assert _to_numbers(pa.array(["1.500", "2.000"]), "comma").to_pylist() == [1500, 2000]
    assert _to_numbers(pa.array(["1.500", "2.000"]), "point").to_pylist() == [1.5, 2]


@given(
    cells=st.lists(st.sampled_from(["1", "007", " 7 ", "x", "1,5", "", None, "2024-05-01"])),
    start=st.integers(0, 8),
)
@settings(deadline=None)
def test_a_slice_is_read_like_its_cells(cells, start):
    whole, copied = pa.array(cells, pa.string()), pa.array(cells[start:], pa.string())
    for read in (
        trim,
        to_booleans,
        to_dates,
        lambda part: _to_numbers(part, "point"),
        lambda part: _to_numbers(part, "comma"),
    ):
        assert read(whole.slice(start)).to_pylist() == read(copied).to_pylist()
