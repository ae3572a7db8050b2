"""Archives, workbooks and queries are read as the tables in them."""

import datetime
import zipfile

import pandas as pd
import pytest

from covshift.tables import TableError, read_table
from covshift.tables.file_formats import _shown, query_file, split_part

TEXT = "age,city\n30,Oslo\n40.5,Rome\n"
READ = {"age": [30.0, 40.5], "city": ["Oslo", "Rome"]}


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return path


def test_a_zip_with_one_table(tmp_path):
    members = {"folder/table.csv": TEXT, "__MACOSX/._table.csv": "x"}
    table = read_table(archive(tmp_path / "table.zip", **members))
    assert table.frame.to_dict("list") == READ
    assert table.notes == ["Read 'folder/table.csv' inside the archive."]


def test_a_zip_with_a_parquet_file(tmp_path):
    pd.DataFrame(READ).to_parquet(tmp_path / "table.parquet")
    content = (tmp_path / "table.parquet").read_bytes()
    path = archive(tmp_path / "table.zip", table=content)
    assert read_table(path).frame.to_dict("list") == READ


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.csv": TEXT, "b.csv": TEXT}, "holds 2 files \\('a.csv', 'b.csv'\\)"),
        ({}, "holds no file"),
        ({"a.csv": "a,b\n1,2\n1,2,3,4\n"}, "table.zip: row 3 has 4 cells"),
        ({"a.csv": ""}, "table.zip is empty"),
        ({"a.pdf": "%PDF-1.7"}, "table.zip is a PDF"),
    ],
)
def test_zips_that_are_refused(tmp_path, members, message):
    with pytest.raises(TableError, match=message) as raised:
        read_table(archive(tmp_path / "table.zip", **members))
    assert "covshift-" not in str(raised.value)


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "People"
    sheet.append([])
    sheet.append(["id", "visit", "age", "weight", "smoker", "time"])
    for i in range(30):
        age = "?" if i % 7 == 0 else 30 + i
        day = datetime.datetime(2024, 5, 1) + datetime.timedelta(days=i)
        sheet.append([i + 1, day, age, 70.5 + i, i % 2 == 0, datetime.time(9, i)])
    book.create_sheet("Notes").append(["a", "b"])
    book["Notes"].append([1, 2])
    path = tmp_path / "people.xlsx"
    book.save(path)
    return path


def test_a_workbook(workbook):
    table = read_table(workbook)
    assert dict(table.schema.kinds) == {
        "id": "number", "visit": "date", "age": "number", "weight": "number",
        "smoker": "boolean", "time": "date",
    }  # fmt: skip
    assert table.frame["age"].isna().sum() == 5
    assert table.frame["visit"].iloc[1] == pd.Timestamp("2024-05-02")
    assert table.notes[0] == (
        "Read the sheet 'People'; the workbook also has 'Notes'. To read another one: FILE#SHEET."
    )


def test_whole_numbers_of_a_workbook_are_shown_as_such_while_they_are_exact():
    """From 2 ** 53 on, a number with a point may stand for another whole number."""
    numbers = [7.0, -(2.0**53) + 1, 2.0**53, 0.5, 7]
    shown = ["7", "-9007199254740991", "9007199254740992,0", "0,5", "7"]
    assert [_shown(number, ",") for number in numbers] == shown


def test_a_sheet_by_name(workbook):
    assert list(read_table(f"{workbook}#Notes").frame) == ["a", "b"]
    with pytest.raises(TableError, match="has no sheet 'Other'; it has 'People', 'Notes'"):
        read_table(f"{workbook}#Other")
    assert split_part(workbook) == (workbook, None)


def test_a_damaged_workbook(tmp_path):
    pytest.importorskip("openpyxl")
    path = archive(tmp_path / "book.xlsx", **{"[Content_Types].xml": "x", "xl/workbook.xml": "x"})
    with pytest.raises(TableError, match="is damaged, or is not a complete workbook"):
        read_table(path)


def test_queries(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (age DOUBLE, city VARCHAR)")
        connection.execute("INSERT INTO people VALUES (30, 'Oslo'), (40.5, 'Rome')")
    assert read_table(query_file(path, "SELECT * FROM people")).frame.to_dict("list") == READ
    assert read_table(query_file(path, "people")).frame.to_dict("list") == READ
    with pytest.raises(TableError, match="the query fails"):
        query_file(path, "SELECT * FROM absent")
    with pytest.raises(TableError, match="no such file"):
        query_file(tmp_path / "absent.duckdb", "people")
