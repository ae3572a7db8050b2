"""Files as users have them: what is read, what is refused, and what is said."""

import gzip
import os
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from covshift.tables import TableError, TableSchema, open_table, read_pair, read_table
from covshift.tables.dates import DAYS
from covshift.tables.diagnosing import diagnose_tables
from covshift.tables.label_files import rows_to_label
from covshift.tables.reading import default_rows, sample_frames
from covshift.tables.text_files import BLOCK_BYTES, Examination
from tests.tables.test_arrow_files import make_frame, write_folder


def values(table):
    """Columns as lists, missing values as None."""
    return {
        name: [None if pd.isna(value) else value for value in column]
        for name, column in table.frame.items()
    }


PLAIN = "age,city\n30,Oslo\n40.5,Rome\n"


READ = {"age": [30.0, 40.5], "city": ["Oslo", "Rome"]}


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.rstrip("\n"),
        "\n\n" + PLAIN,
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "|"),
        "sep=;\n" + PLAIN.replace(",", ";"),
        '"age","city"\n"30","Oslo"\n"40.5","Rome"\n',
        " age , city \n 30 , Oslo\n40.5,  Rome \n",
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        PLAIN.encode("utf-32"),
        gzip.compress(PLAIN.encode(), mtime=0),
        gzip.compress(PLAIN.encode("utf-16"), mtime=0),
        '"","age","city"\n"1",30,"Oslo"\n"2",40.5,"Rome"\n',  # R's write.csv
        ",age,city\n0,30,Oslo\n1,40.5,Rome\n",  # pandas' to_csv
        "Unnamed: 0,age,city\n0,30,Oslo\n1,40.5,Rome\n",  # the same, read and written again
        "age,city,,\n30,Oslo,,\n40.5,Rome,,\n,,,\n,,,\n",  # a spreadsheet's used range
    ],
    ids=lambda content: repr(content)[:40],
)
def test_one_table_in_many_layouts(write, content):
    assert values(read_table(write(content))) == READ


def test_gzip_is_told_by_content(write):
    assert values(read_table(write(gzip.compress(PLAIN.encode(), mtime=0), "table.csv"))) == READ
    assert values(read_table(write(PLAIN, "table.csv.gz"))) == READ


def test_quoted_cells_hold_anything(write):
    path = write('a,b\n1,"two\nlines, and ""quotes"""\n2,x\n')
    assert values(read_table(path))["b"] == ['two\nlines, and "quotes"', "x"]


def test_missing_values(write):
    path = write("a,b\n1,x\nNA,NULL\n#N/A,\n , NaN \n2,none\n")
    assert values(read_table(path)) == {
        "a": [1.0, None, None, None, 2.0],
        "b": ["x", None, None, None, "none"],
    }


def test_other_encodings_are_reported(write):
    table = read_table(write("a,b\n1,café\n2,10 €\n".encode("cp1252")))
    assert values(table)["b"] == ["café", "10 €"]
    other = "If it is another encoding: --encoding NAME, such as cp1251."
    assert table.notes == [f"The text is not UTF-8: it is read as Windows-1252. {other}"]
    latin = read_table(write("a,b\n1,é\x81\n".encode("latin-1")))
    assert latin.notes == [f"The text is not UTF-8: it is read as Latin-1. {other}"]


def test_an_accent_in_the_last_row_decides_the_encoding(write):
    text = "a,b\n" + "1,plain\n" * 600_000 + "2,é\n"
    assert read_table(write(text)).frame["b"].iloc[-1] == "é"
    assert read_table(write(text.encode("cp1252"))).frame["b"].iloc[-1] == "é"


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("a;b\n1,5;x\n-2,25;y\n", [1.5, -2.25], "decimal comma"),
        ("a;b\n1.234,5;x\n7;y\n", [1234.5, 7.0], "decimal comma"),
        ("a;b\n1 234,5;x\n7;y\n", [1234.5, 7.0], "decimal comma"),
        ('a,b\n"1,5",x\n"2,25",y\n', [1.5, 2.25], "decimal comma"),
        ('a,b\n"1,234.5",x\n7,y\n', [1234.5, 7.0], "separators of thousands"),
        ('a,b\n"1,234",x\n"12,000",y\n', [1234.0, 12000.0], "separators of thousands"),
        ("a;b\n1,234;x\n12,000;y\n", [1.234, 12.0], "decimal comma"),
        ("a;b\n1'234.5;x\n7;y\n", [1234.5, 7.0], None),
        ("a;c\n1.234;0,5\n2.345;0,7\n", [1234.0, 2345.0], "decimal comma"),
        ("a;c\n1.234;0.5\n2.345;0.7\n", [1.234, 2.345], None),
        ("x\n1,5\n2,5\n", [1.5, 2.5], "decimal comma"),
        ("a,b\n+1e3,x\n.5,y\n", [1000.0, 0.5], None),
        ("a,b\ninf,x\n1,y\n", [None, 1.0], None),
    ],
)
def test_numbers_of_both_styles(write, text, expected, note):
    table = read_table(write(text))
    assert next(iter(values(table).values())) == expected
    said = [n for n in table.notes if "decimal comma" in n or "thousands" in n]
    assert (len(said) == 1 and note in said[0]) if note else not said


def test_the_decimal_sign_can_be_given(write):
    path = write('a,b\n"1,234",x\n"12,000",y\n')
    assert values(read_table(path, decimal=","))["a"] == [1.234, 12.0]
    with pytest.raises(ValueError, match="decimal must be one of"):
        read_table(path, decimal="x")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2"], "number"),
        (["007", "123"], "text"),
        (["0", "0.5"], "number"),
        (["1.2.3", "4.5.6"], "text"),
        (["1,2,3", "1"], "text"),
        (["12%", "5%"], "number"),
        (["true", "FALSE"], "boolean"),
        (["yes", "no"], "text"),
        (["2024-01-02", "2024-02-29"], "date"),
        (["2024-01-02T10:00:00Z", "2024-01-02 10:00:00+02:00"], "date"),
        (["2024-01-02", "2024-02-30"], "text"),
        (["01/02/2024", "02/02/2024"], "date"),
        (["1", "x"], "text"),
        (["NA", ""], "text"),
    ],
)
def test_kinds(write, cells, kind):
    path = write("a;b\n" + "".join(f'"{cell}";z\n' for cell in cells))
    assert read_table(path).schema.kinds["a"] == kind


def test_the_last_row_decides_the_kind_too(write):
    path = write("a,b\n" + "1,2\n" * 400_000 + "x,2\n" * 30_000)
    reader = open_table(path, chunk_bytes=1)
    frames = list(reader)
    assert len(frames) > 1
    assert reader.schema.kinds == {"a": "text", "b": "number"}
    assert {str(frame["a"].dtype) for frame in frames} == {"string"}
    assert frames[-1]["a"].iloc[-1] == "x"


def test_repeated_and_absent_names(write):
    table = read_table(write("x,x,x (2),\n1,2,3,4\n"))
    assert list(table.frame) == ["x", "x (3)", "x (2)", "column 4"]
    assert table.notes == ["Column names that repeat got a number: 'x (3)'."]
    assert list(read_table(write("x,x,x\n1,2,3\n")).frame) == ["x", "x (2)", "x (3)"]


def test_empty_rows_stay_but_at_the_end(write):
    table = read_table(write("a,b\n1,2\n,\n3,4\n,\n,\n"))
    assert values(table)["a"] == [1.0, None, 3.0]
    assert "2 empty rows at the end are left out." in table.notes


def test_names_that_are_numbers(write):
    assert list(read_table(write("0,1,2\n5,6,7\n")).frame) == ["0", "1", "2"]
    assert list(read_table(write("2019,2020\n5,6\n")).frame) == ["2019", "2020"]


XLSX = ["[Content_Types].xml", "xl/workbook.xml"]


def archive(path, names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\n\n", "no names of columns"),
        (b"a,b\n", "no rows below"),
        (b"a,b", "no rows below"),
        (b"a,b\n\n\n", "no rows below"),
        (b"a,b\n,\n,\n", "no rows below"),
        (b"1,2.5\n3,4\n", "add a row of names"),
        (b"a,b\n1,2\n1,2,3\n", "row 3 has 3 cells where the first row has 2"),
        (b"a,b\n1,2\n1\n", "row 3 has 1 cells where the first row has 2"),
        (b'a,b\n1,"x\n2,y\n3,z\n', "a quote is opened and not closed"),
        (b"a,b\n1,\0\n", "bytes that text files do not have"),
        (b"a,b\n1,\x01\xff\n", "bytes that text files do not have"),
        (b"\xff\xfea,b\n1", "declares UTF-16"),
        (b"<!DOCTYPE html><html></html>", "is a page"),
        (b"\xef\xbb\xbf <HTML><table>", "is a page"),
        (b"%PDF-1.7", "is a PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "old spreadsheet"),
        (b"BZh91AY", "bzip2"),
        (b"\x80\x04\x95", "pickle, which is never loaded"),
        (gzip.compress(b"%PDF-1.7", mtime=0), "is a PDF"),
        (gzip.compress(b"PAR1PAR1", mtime=0), "decompress it first"),
        (gzip.compress(bytes(range(32, 127)) * 3, mtime=0)[:40], "damaged or cut short"),
        (b"\x1f\x8bnonsense", "damaged or cut short"),
        (b"PAR1nonsensePAR1", "not a complete Parquet file"),
        (b"PAR1", "not a complete Parquet file"),
        (b"ARROW1nonsense", "not a complete Arrow file"),
        (b"\xff\xff\xff\xffnonsense", "not a complete Arrow file"),
        (b"PK\x03\x04nonsense", "zip archive"),
        (b"a" * 2_000_000, "first row does not end"),
        (b"a,b\n1," + b"x" * 20_000_000 + b"\n", "a row is longer than 4 MiB"),
        (",".join(f"x{i}" for i in range(20_001)).encode() + b"\n", "20000 at most"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_refused(write, content, message):
    path = write(content)
    with pytest.raises(TableError, match=message) as raised:
        read_table(path)
    text = str(raised.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < 500


@pytest.mark.parametrize(
    ("names", "message"),
    [(XLSX, "workbook"), (["content.xml"], "ods"), (["a.csv"], "no rows below")],
)
def test_archives(write, tmp_path, names, message):
    path = write(archive(tmp_path / "made.zip", names))
    with pytest.raises(TableError, match=message):
        read_table(path)


def test_what_is_no_file(tmp_path, write):
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="not a regular file"):
        read_table(tmp_path / "pipe")
    with pytest.raises(TableError, match="no such file") as raised:
        read_table(tmp_path / "a\nb.csv")
    assert "\n" not in str(raised.value)
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / ("x" * 300))
    with pytest.raises(TableError, match="cannot be read"):
        read_table("a\0b.csv")


def test_a_file_that_may_not_be_opened(write, monkeypatch):
    path = write(PLAIN)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may open anything

        def refuse(*_args, **_options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(TableError, match="check its permissions"):
        read_table(path)


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n"])
def test_separators_that_cannot_be(write, separator):
    with pytest.raises(TableError, match="separator must be one character"):
        read_table(write(PLAIN), separator=separator)


def test_the_separator_can_be_given(write):
    path = write("a b,c\n1 2,3\n")
    assert list(read_table(path, separator=" ").frame) == ["a", "b,c"]


FRAME = pd.DataFrame(
    {
        "whole": pd.array([1, None, 3], dtype="Int64"),
        "real": [0.5, np.inf, np.nan],
        "flag": pd.array([True, None, False], dtype="boolean"),
        "word": ["a", " b ", None],
        "kind": pd.Categorical(["u", "v", None]),
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
    }
)


@pytest.mark.parametrize("form", ["parquet", "feather", "stream"])
def test_typed_files(tmp_path, form):
    path = tmp_path / "table"
    if form == "parquet":
        FRAME.to_parquet(path, index=False)
    elif form == "feather":
        FRAME.to_feather(path)
    else:
        table = pa.Table.from_pandas(FRAME)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    table = read_table(path)
    assert dict(table.schema.kinds) == {
        "whole": "number",
        "real": "number",
        "flag": "boolean",
        "word": "text",
        "kind": "text",
        "day": "date",
    }
    read = values(table)
    assert read["whole"] == [1.0, None, 3.0]
    assert read["real"] == [0.5, None, None]
    assert read["flag"] == [True, None, False]
    assert read["word"] == ["a", "b", None]
    assert read["kind"] == ["u", "v", None]
    assert read["day"] == [pd.Timestamp("2024-01-01"), None, pd.Timestamp("2024-01-03")]


def test_parquet_with_nested_columns_and_an_index(tmp_path):
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame({"x": [1.0, 2.0], "l": [[1], [2]]}, index=[5, 7])
    frame.to_parquet(path)
    table = read_table(path)
    assert list(table.frame) == ["x"]
    assert table.notes == [
        "Ignored 'l': lists, records, bytes, times of day or durations cannot be used.",
        "Ignored '__index_level_0__': it holds row names.",
    ]


@pytest.mark.parametrize("share", [0.3, 0.7, 0.97])
def test_a_file_cut_short(tmp_path, share):
    for name, write_frame in {"a.parquet": FRAME.to_parquet, "a.arrow": FRAME.to_feather}.items():
        path = tmp_path / name
        write_frame(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(TableError, match="damaged, or is not a complete"):
            read_table(path)


SCHEMA = TableSchema({"age": "number", "code": "text", "day": "date", "flag": "boolean"})


def test_a_schema_fixes_columns_and_kinds(write):
    path = write(
        "extra,flag,code,age,day\n"
        "x,true,01,30,2024-01-01\n"
        "y,1,02,old,yesterday\n"
        'z,maybe,1.0,"1,234",2024-01-02\n'
    )
    reader = open_table(path, schema=SCHEMA)
    (frame,) = reader
    assert list(frame) == ["age", "code", "day", "flag"]
    assert frame["code"].tolist() == ["01", "02", "1.0"]
    assert frame["age"].isna().tolist() == [False, True, False]
    assert frame["age"].iloc[2] == 1234.0
    assert frame["day"].isna().tolist() == [False, True, False]
    assert frame["flag"].isna().tolist() == [False, False, True]
    assert reader.other_names == ["extra"]
    assert reader.notes == [
        "Column 'age': 1 cells are not numbers (first: 'old') and are read as missing.",
        "Column 'day': 1 cells are not dates (first: 'yesterday') and are read as missing.",
        "Column 'flag': 1 cells are not booleans (first: 'maybe') and are read as missing.",
    ]


def test_a_schema_and_decimal_commas(write):
    path = write("age;code;day;flag\n1,5;a;2024-01-01;true\n2,5;b;2024-01-01;true\n")
    assert read_table(path, schema=SCHEMA).frame["age"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n12,345;x\n1,000;y\n",
        'a,b\n"12,345",x\n"1,000",y\n',
        "a;b\n1.234;0,5\n2.345;0,7\n",
        "a;b\n1.234;0.5\n2.345;0.7\n",
    ],
)
def test_a_table_read_with_its_own_schema_is_the_same(write, text):
    """Ambiguous cells are read as in training."""
    table = read_table(write(text))
    again = read_table(write(text), schema=TableSchema.from_dict(table.schema.to_dict()))
    pd.testing.assert_frame_equal(again.frame, table.frame)
    first_row = "".join(text.splitlines(keepends=True)[:2])
    pd.testing.assert_frame_equal(
        read_table(write(first_row), schema=table.schema).frame, table.frame.iloc[:1]
    )


def test_a_few_cells_that_are_no_numbers(write):
    table = read_table(write("a,b\n" + "1.5,x\n" * 40 + "unknown,y\n"))
    assert table.frame["a"].isna().sum() == 1
    assert table.notes == [
        "Column 'a': 1 cells are not numbers (first: 'unknown') and are read as missing."
    ]


def test_a_schema_and_columns_that_are_absent(write):
    path = write("age,cod\n1,a\n")
    with pytest.raises(TableError, match=r"has no column 'code', 'day', 'flag'; it has 'cod'"):
        read_table(path, schema=SCHEMA)
    assert list(read_table(path, schema=SCHEMA, allow_absent=True).frame) == ["age"]
    with pytest.raises(TableError, match="none of the columns"):
        read_table(write("u,v\n1,a\n"), schema=SCHEMA, allow_absent=True)


def test_a_schema_and_a_typed_file(tmp_path):
    path = tmp_path / "new.parquet"
    pd.DataFrame(
        {"age": ["1", "x"], "code": [1.0, 2.5], "day": ["2024-01-01", ""], "flag": [1, 0]}
    ).to_parquet(path)
    frame = read_table(path, schema=SCHEMA).frame
    assert frame["age"].tolist()[0] == 1.0
    assert frame["age"].isna().tolist() == [False, True]
    assert frame["code"].tolist() == ["1", "2.5"]
    assert frame["day"].isna().tolist() == [False, True]
    assert frame["flag"].tolist() == [True, False]
    nested = tmp_path / "nested.parquet"
    pd.DataFrame({"age": [[1]]}).to_parquet(nested)
    with pytest.raises(TableError, match="write plain values"):
        read_table(nested, schema=TableSchema({"age": "number"}))


def test_a_bad_cell_late_in_the_file_loses_no_row(write):
    """Typed reading gives up at that chunk; those before it were given already."""
    rows = [f"{i},{i / 2},2024-01-01\n" for i in range(150_000)]
    rows[140_000] = "140000,n.a.,2024-01-01\n"
    path = write("i,x,d\n" + "".join(rows))
    schema = TableSchema({"i": "number", "x": "number", "d": "date"})
    reader = open_table(path, schema=schema, chunk_bytes=1)
    frame = pd.concat(list(reader), ignore_index=True)
    np.testing.assert_array_equal(frame["i"], np.arange(150_000))
    assert np.flatnonzero(frame["x"].isna()).tolist() == [140_000]
    assert reader.notes == [
        "Column 'x': 1 cells are not numbers (first: 'n.a.') and are read as missing."
    ]


def test_a_reader_can_be_read_twice(write):
    reader = open_table(write("a,b\n1,x\n,\n"))
    assert [len(frame) for frame in reader] == [len(frame) for frame in reader] == [1]
    assert reader.n_rows == 1
    assert len(reader.notes) == 1


def test_schemas_are_checked():
    with pytest.raises(TableError, match="one of number, boolean, date, text"):
        TableSchema({"a": "color"})
    with pytest.raises(TableError, match="decimal sign"):
        TableSchema({"a": "text"}, decimal="x")
    for data in ({}, None, {"columns": 3}, {"columns": [1]}, {"columns": [["a"]]}):
        with pytest.raises(TableError, match="not a schema of a table"):
            TableSchema.from_dict(data)
    assert list(SCHEMA.without(["age", "day"]).kinds) == ["code", "flag"]


def test_names_of_cells_cannot_break_a_message(write):
    with pytest.raises(TableError) as raised:
        read_table(write('a,b\n1,2\n"x\ny\x1b[31m",2,' + "z" * 9999 + "\n"))
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("kinds", [{"a": "date"}, {"a": "number"}], ids=str)
def test_a_schema_refuses_an_unknown_spelling_of_dates(kinds):
    spelling = "ydm" if kinds["a"] == "date" else f"{DAYS} ydm"
    with pytest.raises(TableError, match=r"Dates of column 'a' are spelled in one of .*got 'ydm'"):
        TableSchema(kinds, spellings={"a": spelling})
    TableSchema({"a": "number"}, spellings={"a": "kg"})  # a unit


def test_standard_input_is_not_read():
    with pytest.raises(TableError, match="standard input is not read; save the table to a file"):
        open_table("-")


@pytest.mark.parametrize(("row", "advice"), [("1", "complete it"), ("1,2,3", "in quotes")])
def test_what_to_do_about_a_row_of_another_length(tmp_path, row, advice):
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n1,x\n{row}\n" + "2,x\n" * 50)
    with pytest.raises(TableError, match=advice):
        list(open_table(path, schema=TableSchema({"a": "number", "b": "text"})))


def test_a_character_cut_at_the_end_of_the_last_piece_is_noticed(tmp_path):
    last = b"1" * (BLOCK_BYTES - 1) + b"\xc3"
    for block in (last, b"1" * BLOCK_BYTES + last):
        with pytest.raises(UnicodeDecodeError):
            Examination(tmp_path, "utf-8").look(block, final=True)
    examination = Examination(tmp_path, "utf-8")
    examination.look(last, final=False)
    examination.look(b"\xa9", final=True)


def test_a_sample_is_drawn_while_reading(tmp_path):
    path = tmp_path / "rows.csv"
    frame = make_frame(50_000)
    frame.to_csv(path, index=False)
    table = read_table(path, max_rows=1000)
    assert len(table.frame) == 1000
    assert table.frame["number"].tolist() == table.rows.tolist()  # in their order
    assert (np.diff(table.rows) > 0).all()
    # Uniform over the file: the mean of 1000 of its numbers has a standard error of 456.
    assert abs(table.rows.mean() - 25_000) < 4 * 456
    (note,) = [note for note in table.notes if "drawn at random" in note]
    assert note.startswith("1,000 of 50,000 rows are used")
    assert "within 0.0429" in note
    again = read_table(path, max_rows=1000)
    assert again.rows.tolist() == table.rows.tolist()


def test_every_row_is_equally_likely():
    counts = np.zeros(40)

    class Reader(list):
        """Three frames."""

    frames = Reader(pd.DataFrame({"x": np.arange(a, b)}) for a, b in ((0, 5), (5, 30), (30, 40)))
    for seed in range(2000):
        frame, rows = sample_frames(frames, 4, seed=seed)
        assert frame["x"].tolist() == rows.tolist()
        counts[rows] += 1
    expected = 2000 * 4 / 40
    assert ((counts - expected) ** 2 / expected).sum() < 72  # chi-squared of 39, p = .001


def test_a_table_that_fits_is_not_sampled(tmp_path):
    path = tmp_path / "rows.csv"
    make_frame(100).to_csv(path, index=False)
    assert read_table(path, max_rows=100).rows is None
    assert default_rows(17) == 1_176_470
    with pytest.raises(ValueError, match="max_rows"):
        read_table(path, max_rows=0)


def test_rows_of_a_sampled_pair_keep_their_numbers(tmp_path):
    train = write_folder(tmp_path / "train", make_frame(3000))
    new = make_frame(4000, seed=1).drop(columns="ill")
    new[["a", "b"]] += 5
    new = write_folder(tmp_path / "new", new)
    lines = []
    tables = read_pair(train, new, label="ill", domain="site", keep=["number"], max_rows=300,
                       progress=lambda *told: lines.append(told))  # fmt: skip
    assert tables.X_train["number"].tolist() == tables.train_rows.tolist()
    assert tables.X_new["number"].tolist() == tables.new_rows.tolist()
    assert lines[-1] == ("reading new: 4,000 rows", 1.0)
    assert any("300 of 4,000 rows are used" in note for note in tables.notes)
    found = diagnose_tables(tables, max_rows=60, time_budget=0.0)
    rows = rows_to_label(found, tables, 5)
    assert set(rows) <= set((tables.new_rows + 1).tolist())
