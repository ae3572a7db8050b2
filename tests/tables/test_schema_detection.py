"""Kinds of columns: what they are recognized as, what is said about it, how it is overruled."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from covshift.tables import (
    Intake,
    TableError,
    open_table,
    read_table,
)
from covshift.tables.columns import column_numbers
from covshift.tables.schema_detection import FIRST_CELLS, ColumnTypes

N = 120


rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("cells", "spellings"),
    [
        (["red", "blue"] * 60, set()),
        (["2024-01-05", "red", "blue"] * 40, set()),  # too few to be a column of dates
        (["red"] * FIRST_CELLS + ["2024-01-05"] * 2 * FIRST_CELLS, set()),  # the first decide
        (["2024-01-05", "2024-02-29"] * 60, {"", "ymd"}),
    ],
)
def test_spellings_of_dates_are_counted_where_most_cells_are_dates(cells, spellings):
    """Each spelling that is counted costs a pass over the cells."""
    column = ColumnTypes((), (), ())
    column.look_at(pa.array(cells))
    assert set(column.dates) == spellings


def read_cells(write, cells, intake=None):
    path = write("a;b\n" + "".join(f'"{cell}";z\n' for cell in cells))
    table = read_table(path, intake=intake)
    schema = table.schema
    return schema.kinds["a"], schema.spellings.get("a", ""), table.frame["a"].tolist(), table.notes


@pytest.mark.parametrize(
    ("cells", "kind", "spelling", "first"),
    [
        (["5 kg", "7.5kg", "1,200 kg"], "number", "kg", 5.0),
        (["$5", "-$7.50", "$1,200"], "number", "$", 5.0),
        (["12 %", "5%"], "number", "%", 12.0),
        (["21.5 °C", "19 °C"], "number", "°C", 21.5),
        (["EUR 5", "EUR 1,200.50"], "number", "EUR", 5.0),
        (["5 kg", "500 g", "3 kg"], "text", "", "5 kg"),
        (["A12", "B7"], "text", "", "A12"),
        (["1st", "2nd", "3rd"], "text", "", "1st"),
        (["5", "?", "7"], "number", "", 5.0),
        (["5", "-", "."], "number", "", 5.0),
        (["+", "-", "+"], "text", "", "+"),
        (["05/31/2024", "12/01/2024"], "date", "mdy", pd.Timestamp("2024-05-31")),
        (["31/05/2024", "01/12/2024"], "date", "dmy", pd.Timestamp("2024-05-31")),
        (["01.05.2024", "02.05.2024"], "date", "dmy", pd.Timestamp("2024-05-01")),
        (["2024/05/31", "2024/6/1"], "date", "ymd", pd.Timestamp("2024-05-31")),
        (["31-May-24", "1 June 2024"], "date", "dby", pd.Timestamp("2024-05-31")),
        (["May 31, 2024", "June 1, 2024"], "date", "bdy", pd.Timestamp("2024-05-31")),
        (["20240531", "20240601", "20231231"], "date", "packed", pd.Timestamp("2024-05-31")),
        (["20240531", "20240601", "20249999"], "number", "", 20240531.0),
        (["2024-05", "2024-06"], "date", "month", pd.Timestamp("2024-05-01")),
        (["9:05 pm", "10:30 am"], "date", "time", pd.Timestamp("1970-01-01 21:05")),
        (["9:05 pm", "13:30 pm"], "text", "", "9:05 pm"),
        (["9:05 pm", "0:30 am"], "text", "", "9:05 pm"),
        (["05/31/2024 9:05 PM", "?"], "date", "mdy", pd.Timestamp("2024-05-31 21:05")),
        (["2024-05-31", "-", "2024-06-01"], "date", "", pd.Timestamp("2024-05-31")),
        (["31/05/2024", "05/31/2024"], "text", "", "31/05/2024"),
        (["3 Foo 2024", "4 Bar 2024"], "text", "", "3 Foo 2024"),
    ],
)
def test_what_cells_are(write, cells, kind, spelling, first):
    found, how, values, _ = read_cells(write, cells)
    assert (found, how, values[0]) == (kind, spelling, first)


def test_markers_are_missing_and_said(write):
    kind, _, values, notes = read_cells(write, ["1", "?", "3"])
    assert kind == "number"
    assert np.isnan(values[1])
    assert notes[-1] == (
        "Read '?' as missing in 'a' (1 cells). If it is a value: --not-missing \"?\"."
    )
    assert read_cells(write, ["1", "?", "3"], Intake(present=["?"]))[0] == "text"
    assert read_cells(write, ["x", "?", "y"])[2][1] is pd.NA
    assert read_cells(write, ["x", "?", "y"], Intake(present=["?"]))[2][1] == "?"
    assert read_cells(write, ["DE", "NA", "FR"], Intake(present=["NA"]))[2] == ["DE", "NA", "FR"]


def test_numbers_that_are_named_as_missing(write, tmp_path):
    kind, _, values, _ = read_cells(write, ["1", "-999", "-999.0", "3"], Intake(["-999"]))
    assert kind == "number"
    assert np.isnan(values[1:3]).all()
    frame = pd.DataFrame({"a": [1, -999, 3], "b": ["x", "y", "z"]})
    frame.to_parquet(tmp_path / "table")
    read = read_table(tmp_path / "table", intake=Intake(["-999"])).frame
    assert read["a"].isna().tolist() == [False, True, False]
    assert read_table(tmp_path / "table").frame["a"].notna().all()


def test_a_column_that_is_nearly_numbers_names_what_is_not(write):
    *_, notes = read_cells(write, ["1.5"] * 16 + ["unknown"] * 4)
    assert notes[-1] == (
        "Read 'a' as text: 4 of 20 cells are not numbers (most often 'unknown'). If these are "
        "missing: --missing unknown, or --as a=number."
    )
    for intake in (Intake(["unknown"]), Intake(kinds={"a": "number"})):
        kind, _, values, _ = read_cells(write, ["1.5"] * 16 + ["unknown"] * 4, intake)
        assert kind == "number"
        assert np.isnan(values).sum() == 4


def test_several_units_are_said(write):
    *_, notes = read_cells(write, ["5 kg", "500 g", "3 kg"])
    assert notes[-1] == (
        "Read 'a' as text: its numbers have several units ('kg', 'g'). Convert them to one unit."
    )


def test_which_comes_first_is_said_where_nothing_shows_it(write):
    _, spelling, _, notes = read_cells(write, ["01/02/2024", "03/04/2024"])
    assert spelling == "mdy"
    assert notes[-1].endswith("If it is the other: --as a=date:dmy.")
    intake = Intake(kinds={"a": "date:dmy"})
    _, spelling, values, notes = read_cells(write, ["01/02/2024", "03/04/2024"], intake)
    assert values[0] == pd.Timestamp("2024-02-01")
    assert "--as" not in "".join(notes)


@pytest.mark.parametrize("kind", ["integer", "date:xyz", "days:xyz"])
def test_kinds_that_are_not(write, kind):
    with pytest.raises(TableError, match="cannot be read as"):
        read_cells(write, ["1", "2"], Intake(kinds={"a": kind}))
    with pytest.raises(TableError, match="which --as names"):
        read_cells(write, ["1", "2"], Intake(kinds={"c": "text"}))


def test_text_of_arrow_is_read_as_numbers():
    given = pa.array(["1.5", "much", None])
    np.testing.assert_array_equal(column_numbers(given), [1.5, np.nan, np.nan])
    np.testing.assert_array_equal(column_numbers(pa.array([3, None])), [3.0, np.nan])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_text_that_is_read_as_numbers_is_told_where_the_file_has_types(ending, tmp_path):
    frame, path = pd.DataFrame({"a": ["1", "2", "3"] * 10}), tmp_path / f"a.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    notes = " ".join(open_table(path).notes)
    assert ("Read 'a' as numbers: the file holds them as text" in notes) == (ending == "parquet")
