"""Small files as people have them, what should be understood, and what pandas makes of them.

python benchmarks/odd_files.py [--out docs/results/odd-files.md]

Each file is written for this set. Its expected columns are checked by tests/benchmarks; the script
writes a table of what ``pandas.read_csv(path)`` and `covshift.tables.read_table` read.
"""

import argparse
import csv
import gzip
import io
import tempfile
import warnings
import zipfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class OddFile:
    """A file and the columns that should come out of it; ``None`` is a missing value."""

    what: str
    content: bytes
    columns: dict[str, list[Any]]
    options: dict[str, Any]


def day(text: str) -> datetime:
    """Return a date for the columns below."""
    return datetime.fromisoformat(text)


def odd(what: str, content: str | bytes, columns: dict[str, list[Any]], **options: Any) -> OddFile:
    """Return an odd file, text in UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    return OddFile(what, data, columns, options)


def column(*cells: str, name: str = "a") -> str:
    """Return a file with one column to look at, its cells in quotes, and one beside it."""
    return f"{name};b\n" + "".join(f'"{cell}";z\n' for cell in cells)


def zipped(**members: str) -> bytes:
    """Return a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, text in members.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return stream.getvalue()


PLAIN = "age,city\n30,Oslo\n40.5,Rome\n"
TRIPLE = "age,city,code\n30,Oslo,A1\n40.5,Rome,B2\n"
READ: dict[str, list[Any]] = {"age": [30.0, 40.5], "city": ["Oslo", "Rome"]}
TRIPLE_READ: dict[str, list[Any]] = {**READ, "code": ["A1", "B2"]}
PAGE = """# Odd files

covshift reads {ours} of {all} odd files as meant, without options except where the file is
ambiguous. `pandas.read_csv(path)` reads {pandas} of them; with the right options it can read most.
[Every file, and what both made of it](odd-files.csv).

"As meant": every cell of the columns examined has the intended value. Written by
`python benchmarks/odd_files.py --out docs/results/odd-files.md`.
"""
OSLO = "\u041e\u0441\u043b\u043e"  # in Cyrillic letters
MAY = [day("2024-05-31"), day("2024-06-01")]

ODD_FILES = [
    # Layouts.
    odd("semicolons", PLAIN.replace(",", ";"), READ),
    odd("tabs", PLAIN.replace(",", "\t"), READ),
    odd("bars", PLAIN.replace(",", "|"), READ),
    odd("single spaces", PLAIN.replace(",", " "), READ),
    odd("a line sep=;", "sep=;\n" + PLAIN.replace(",", ";"), READ),
    odd("CRLF", PLAIN.replace("\n", "\r\n"), READ),
    odd("CR alone", PLAIN.replace("\n", "\r"), READ),
    odd("no line break at the end", PLAIN.rstrip("\n"), READ),
    odd("empty lines above", "\n\n" + PLAIN, READ),
    odd("rows of separators at the end", PLAIN + ",\n,\n", READ),
    odd("a separator at the end of each row", "age,city\n30,Oslo,\n40.5,Rome,\n", READ),
    odd("empty columns at the right", "age,city,,\n30,Oslo,,\n40.5,Rome,,\n", READ),
    odd("spaces around cells", "age , city\n 30 , Oslo\n40.5 ,Rome \n", READ),
    odd("R's write.csv", '"","age","city"\n"1",30,"Oslo"\n"2",40.5,"Rome"\n', READ),
    odd('R\'s write.table(sep=",")', '"age","city"\n"1",30,"Oslo"\n"2",40.5,"Rome"\n', READ),
    odd("R's write.table", '"age" "city"\n"1" 30 "Oslo"\n"2" 40.5 "Rome"\n', READ),
    odd("pandas' index", ",age,city\n0,30,Oslo\n1,40.5,Rome\n", READ),
    odd("no row of names", "30,Oslo\n40.5,Rome\n",
        {"column 1": READ["age"], "column 2": READ["city"]}, header=False),
    odd("names that repeat", "x,x\n1,2\n3,4\n", {"x": [1.0, 3.0], "x (2)": [2.0, 4.0]}),
    odd("commas and line breaks in quotes", 'a,b\n1,"x, y\nz"\n2,"w"\n', {"b": ["x, y\nz", "w"]}),
    odd("one column of words", "full name\nAda Lovelace\nAlan Turing\n",
        {"full name": ["Ada Lovelace", "Alan Turing"]}),
    odd("a title and an empty line above", "Customers of May\n\n" + TRIPLE, TRIPLE_READ),
    odd("a title in a row of cells", "Customers,,\n,,\n" + TRIPLE, TRIPLE_READ),
    odd("comments above", "# LabWorks 3.1, site A\n# exported 2024-05-31\n" + TRIPLE, TRIPLE_READ),
    odd("names of groups above", "Person,,Order,\na,b,c,d\n1,x,2,y\n3,z,4,w\n",
        {"a": [1.0, 3.0], "d": ["y", "w"]}),
    odd("lines above, named", "1,2\n" + PLAIN, READ, skip_rows=1),
    odd("columns aligned by spaces", "  age  city\n 30.0  Oslo\n 40.5  Rome\n",
        READ),
    # Encodings and containers.
    odd("UTF-8 with a mark", b"\xef\xbb\xbf" + PLAIN.encode(), READ),
    odd("UTF-16", PLAIN.encode("utf-16"), READ),
    odd("UTF-16 without mark", PLAIN.encode("utf-16-le"), READ),
    odd("Windows-1252", "a,b\n1,café\n2,10 €\n".encode("cp1252"), {"b": ["café", "10 €"]}),
    odd("Windows-1251, named", f"a,b\n1,{OSLO}\n2,x\n".encode("cp1251"), {"b": [OSLO, "x"]},
        encoding="cp1251"),
    odd("gzip", gzip.compress(PLAIN.encode(), mtime=0), READ),
    odd("a zip archive", zipped(**{"table.csv": PLAIN}), READ),
    odd("a zip archive of macOS", zipped(**{"t.csv": PLAIN, "__MACOSX/._t.csv": "x"}), READ),
    odd("a zip archive with a note to the reader",
        zipped(**{"data/t.csv": PLAIN, "data/README.txt": "Ask Jo."}), READ),
    # Missing values.
    odd("UCI's question marks", column("1", "?", "3"), {"a": [1.0, None, 3.0]}),
    odd("question marks in text", column("x", "?", "y"), {"a": ["x", None, "y"]}),
    odd("question marks with a space", "a,b\n1, ?\n2, x\n", {"b": [None, "x"]}),
    odd("a dash", column("1", "-", "3"), {"a": [1.0, None, 3.0]}),
    odd("a point, as SAS has it", column("1", ".", "3"), {"a": [1.0, None, 3.0]}),
    odd("plus and minus as results", column("+", "-", "+"), {"a": ["+", "-", "+"]}),
    odd("NA, N/A, null, #N/A", column("1", "NA", "N/A", "null", "#N/A"), {"a": [1.0] + [None] * 4}),
    odd("spaces", column("1", "   ", "3"), {"a": [1.0, None, 3.0]}),
    odd("a word in one cell of forty", column(*["1"] * 40, "unknown"), {"a": [1.0] * 40 + [None]}),
    odd("-999, not named", column("1", "-999", "3"), {"a": [1.0, -999.0, 3.0]}),
    odd("-999, named", column("1", "-999", "3"), {"a": [1.0, None, 3.0]}, missing=["-999"]),
    odd("NA for Namibia", column("NA", "DE", "FR"), {"a": ["NA", "DE", "FR"]}, present=["NA"]),
    odd("infinite numbers", column("1", "inf", "-Infinity"), {"a": [1.0, None, None]}),
    # Numbers.
    odd("decimal commas", column("1,5", "2,25"), {"a": [1.5, 2.25]}),
    odd("decimal commas and points", column("1.234,5", "7"), {"a": [1234.5, 7.0]}),
    odd("thousands by commas", 'a,b\n"1,234.5",x\n"12,000",y\n', {"a": [1234.5, 12000.0]}),
    odd("thousands by apostrophes", column("1'234.5", "7"), {"a": [1234.5, 7.0]}),
    odd("thousands by spaces", column("1 234,5", "7,5"), {"a": [1234.5, 7.5]}),
    odd("thousands by spaces, decimal points", column("1\u00a0234.5", "7.25"),
        {"a": [1234.5, 7.25]}),
    odd("negative numbers in brackets", column("(1,200.50)", "5"), {"a": [-1200.5, 5.0]}),
    odd("negative dollars in brackets", column("($5)", "$7.50", "$9"), {"a": [-5.0, 7.5, 9.0]}),
    odd("minus signs behind", column("12.50-", "5.00"), {"a": [-12.5, 5.0]}),
    odd("minus signs of typesetters", column("\u22124.5", "5"), {"a": [-4.5, 5.0]}),
    odd("kilograms", column("5 kg", "7.5kg"), {"a": [5.0, 7.5]}),
    odd("percent", column("12%", "5 %"), {"a": [12.0, 5.0]}),
    odd("dollars", column("$5", "-$1,200.50"), {"a": [5.0, -1200.5]}),
    odd("euros behind", column("5,50 €", "1.200,00 €"), {"a": [5.5, 1200.0]}),
    odd("degrees", column("21.5 °C", "19 °C"), {"a": [21.5, 19.0]}),
    odd("two units", column("5 kg", "500 g", "3 kg"), {"a": ["5 kg", "500 g", "3 kg"]}),
    odd("codes with zeros", column("007", "123"), {"a": ["007", "123"]}),
    odd("letters and numbers", column("A12", "B7"), {"a": ["A12", "B7"]}),
    odd("exponents", column("1e3", "-2.5E-1"), {"a": [1000.0, -0.25]}),
    odd("truth values", column("TRUE", "false"), {"a": [True, False]}),
    odd("the last row is text", "a,b\n" + "1,2\n" * 30 + "x,2\n" * 10,
        {"a": ["1"] * 30 + ["x"] * 10}),
    # Dates and times.
    odd("ISO dates", column("2024-05-31", "2024-06-01"), {"a": MAY}),
    odd("ISO dates with zone", column("2024-05-31T02:00:00+02:00", "2024-06-01T00:00:00Z"),
        {"a": MAY}),
    odd("US dates", column("05/31/2024", "6/1/2024"), {"a": MAY}),
    odd("European dates", column("31/05/2024", "01/06/2024"), {"a": MAY}),
    odd("German dates", column("31.05.2024", "1.6.24"), {"a": MAY}),
    odd("dates by slashes, year first", column("2024/05/31", "2024/6/1"), {"a": MAY}),
    odd("names of months", column("31-May-24", "1 June 2024"), {"a": MAY}),
    odd("month before day by name", column("May 31, 2024", "June 1, 2024"), {"a": MAY}),
    odd("dates in eight digits", column("20240531", "20240601", "20240531"), {"a": [*MAY, MAY[0]]}),
    odd("months", column("2024-05", "2024-06"), {"a": [day("2024-05-01"), day("2024-06-01")]}),
    odd("US times", column("05/31/2024 9:05 PM", "?"), {"a": [day("2024-05-31T21:05"), None]}),
    odd("times of day", column("9:05 pm", "10:30 am"),
        {"a": [day("1970-01-01T21:05"), day("1970-01-01T10:30")]}),
    odd("dates and a dash", column("2024-05-31", "-"), {"a": [MAY[0], None]}),
    odd("ISO dates and German ones", column("2024-05-31", "2024-06-01", "31.05.2024"),
        {"a": ["2024-05-31", "2024-06-01", "31.05.2024"]}),
    odd("US dates and European ones", column("31/05/2024", "05/31/2024"),
        {"a": ["31/05/2024", "05/31/2024"]}),
]  # fmt: skip

STORIES = """
## Messages for eight files

Files of the shapes that new users brought, and what the commands print (`tests/cli/test_file_stories.py`
runs them on small files of the same shape; `tests/cli/test_odd_pairs.py` has more pairs).

| file | message |
|---|---|
| `?` for missing | Read '?' as missing in 'x' (32 cells). If it is a value: --not-missing "?". |
| R's `write.table(sep=",")` | The first row has one name fewer than the rows have cells: the first column is read as row names, as R writes them. If they are not, name all columns. |
| ISO and US dates | Used the dates in 'visit' as: time of year, weekday. A date as a number would only separate old rows from new rows. To use it nevertheless: --as visit=days. |
| a date used as a number | A classifier separates training rows from new rows with AUC 1.00, mostly by 'visit' (AUC 1.00 alone); without it the AUC is ... 'visit' looks like a clock: the new rows lie beyond the training rows because they are later. To leave it out: --ignore visit. |
| `RowNumber`, `Surname` | Ignored 'RowNumber': it looks like a row number (whole numbers that increase from row to row). To use it: --use RowNumber. Column 'Surname' has ... different texts: the 30 most frequent are used, the others are one category. To leave it out: --ignore Surname. |
| a column that gives the label away | Column 'outcome' alone predicts the label with balanced accuracy 1.000 on held-out rows. If it is known only after the outcome: --ignore outcome. |
| unseen categories, in `predict` | Column 'site': all 160 rows have values that no training row has ('Z'); they have no effect there. |
| a numeric label | The label 'stays' is a number (... different values in 160 rows, ...), not a class. Use --task regression to predict the number, --bins 4 to predict four ranges of it, or name another column with --label. |
"""  # noqa: E501


def read_ours(file: OddFile, path: Path) -> tuple[Any, list[str]]:
    """Return the frame and the notes of `read_table`."""
    from covshift.tables import Intake, read_table

    path.write_bytes(file.content)
    intake = Intake(file.options.get("missing", ()), file.options.get("present", ()))
    layout = {
        name: file.options[name]
        for name in ("header", "skip_rows", "encoding")
        if name in file.options
    }
    table = read_table(path, intake=intake, **layout)
    return table.frame, table.notes


def plain(values: Any) -> list[Any]:
    """Return a column as values of Python, ``None`` where missing."""
    listed = [None if pd.isna(value) else value for value in values.tolist()]
    return [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in listed]


def is_understood(file: OddFile, frame: Any) -> bool:
    """Return whether all expected columns are there with the values expected."""
    return all(
        name in frame.columns and plain(frame[name]) == values
        for name, values in file.columns.items()
    )


def shown(frame: Any) -> str:
    """Return the columns of a frame and their types, for the table.

    Names that hold control characters are shown with escapes: a page of text has no NUL bytes.
    """
    kinds = {"f": "number", "i": "number", "u": "number", "b": "boolean", "M": "date"}
    return ", ".join(
        f"{name if str(name).isprintable() else repr(name)}: "
        f"{kinds.get(getattr(column.dtype, 'kind', 'O'), 'text')}"
        + (" (with missing)" if column.isna().any() else "")
        for name, column in list(frame.items())[:4]
    )


def read_pandas(file: OddFile, path: Path) -> tuple[Any, str]:
    """Return what ``pandas.read_csv`` makes of a file, as it comes: a frame, or its error."""
    path.write_bytes(file.content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame = pd.read_csv(path)
        except Exception as error:
            return None, f"{type(error).__name__}"
    return frame, shown(frame)


def write_table() -> tuple[str, str]:
    """Return the page in Markdown, and the table of all files as CSV."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["file", "pandas.read_csv", "as meant", "covshift", "as meant by covshift"])
    n_ours = n_pandas = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in ODD_FILES:
            path = Path(folder, "table.csv")
            theirs, words = read_pandas(file, path)
            ours, _ = read_ours(file, path)
            good = theirs is not None and is_understood(file, theirs)
            n_pandas += good
            n_ours += is_understood(file, ours)
            mark = "yes" if is_understood(file, ours) else "no"
            table.writerow([file.what, words, "yes" if good else "no", shown(ours), mark])
    page = PAGE.format(ours=n_ours, pandas=n_pandas, all=len(ODD_FILES)) + STORIES
    return page, out.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="The page; the table is written beside it.")
    arguments = parser.parse_args()
    page, table = write_table()
    if arguments.out is None:
        print(page + table)
    else:
        arguments.out.write_text(page, encoding="utf-8")
        arguments.out.with_suffix(".csv").write_text(table, encoding="utf-8")
