"""Pairs of odd files: what `adapt` says of them, and that `predict` reads the new one alike."""

import csv
import io
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.cli.user_files import assert_refused, run, succeed

N_TRAIN, N_NEW = 80, 50


def customers(n_rows, seed, moved=0.0):
    """Rows with two numbers, a text, and the label that the numbers decide."""
    rng = np.random.default_rng(seed)
    age, income = rng.normal(size=(2, n_rows))
    return pd.DataFrame(
        {
            "age": (40 + 10 * age + 5 * moved).round(1),
            "income": (3000 + 800 * income + 300 * moved).round(2),
            "city": rng.choice(["Oslo", "Rome", "Bonn"], n_rows),
            "churned": np.where(age + income + rng.normal(0, 0.3, n_rows) > 0, "yes", "no"),
        }
    )


def pair(**columns):
    """Return both tables; a function of the frame and of random numbers adds a column."""
    frames = customers(N_TRAIN, 0), customers(N_NEW, 1, 1.0)
    for seed, frame in enumerate(frames):
        for name, make in columns.items():
            frame[name] = make(frame, np.random.default_rng(seed))
    return frames[0], frames[1].drop(columns="churned")


def text(frame, above="", encoding="utf-8", **options):
    """Return a table as a text file."""
    return (above + frame.to_csv(index=False, **options)).encode(encoding)


def workbook(frame, row=1, column=1, above=(), first_sheet=()):
    """Return a table as an Excel workbook whose cells begin at this row and column."""
    book = pytest.importorskip("openpyxl").Workbook()
    sheet = book.active
    if first_sheet:
        for line in first_sheet:
            sheet.append([line])
        sheet = book.create_sheet("Data")
    for i, line in enumerate(above):
        sheet.cell(i + 1, 1, line)
        sheet.merge_cells(start_row=i + 1, start_column=1, end_row=i + 1, end_column=3)
    for i, cells in enumerate([list(frame), *frame.to_numpy(dtype=object).tolist()]):
        for j, cell in enumerate(cells):
            sheet.cell(row + i, column + j, cell)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def parquet(frame):
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def dates(frame, rng):
    return pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600, len(frame)), "D")


def mixed_dates(frame, rng):
    spellings = ("%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y")
    return [day.strftime(spellings[i % 3]) for i, day in enumerate(dates(frame, rng))]


def comma_texts(frame, rng):
    return frame["age"].map(str).str.replace(".", ",").astype(object)


def brackets(frame, rng):
    values = rng.normal(0, 2000, len(frame))
    return [f"({-v:,.2f})" if v < 0 else f"{v:,.2f}" for v in values]


def percent(frame, rng):
    shares = rng.uniform(0, 100, len(frame))
    return [f"{v:.1f}%" if i % 4 else f"{v / 100:.3f}" for i, v in enumerate(shares)]


def some_dates_with_zone(frame, rng):
    return pd.date_range("2024-01-01", periods=len(frame), freq="7h", tz="Europe/Berlin")


TITLE = "Customer report\nGenerated: 01.05.2024\n\n"
COMMENTS = "# exported by LabWorks 3.1\n# 2024-05-01, site A\n"
# Its name, how it is written, columns used and features, and what is said.
PAIRS = {
    "semicolons, decimal commas, byte-order mark": (
        lambda frame: text(frame, sep=";", decimal=",", encoding="utf-8-sig"), {}, (3, 5),
        ["Cells are separated by semicolon", "decimal comma"],
    ),
    "line breaks in quotes": (
        text, {"note": lambda frame, rng: [f'one {i % 5}\ntwo, "x"' for i in range(len(frame))]},
        (4, 10), [],
    ),
    "a separator behind every row": (
        lambda frame: text(frame).replace(b"\n", b",\n"), {}, (3, 5), ["1 columns without name"],
    ),
    "a title above": (
        lambda frame: text(frame, TITLE), {}, (3, 5),
        ["Skipped 2 lines above the names of the columns ('Customer report')", "--skip-rows 0"],
    ),
    "comments above": (
        lambda frame: text(frame, COMMENTS), {}, (3, 5), ["Skipped 2 lines above"],
    ),
    "a title in merged cells": (
        lambda frame: workbook(frame, row=2, above=["Report 2024"]), {}, (3, 5),
        ["Skipped 1 line above the names of the columns ('Report 2024')"],
    ),
    "a sheet that begins elsewhere": (
        lambda frame: workbook(frame, row=4, column=2), {}, (3, 5), ["columns without name"],
    ),
    "a first sheet for the reader": (
        lambda frame: workbook(frame, first_sheet=["The data are on the second sheet.", "Jo"]), {},
        (3, 5), ["Read the sheet 'Data'; the workbook also has 'Sheet'"],
    ),
    "numbers as text in a workbook": (
        workbook, {"age": lambda frame, rng: frame["age"].map(str).astype(object)}, (3, 5), [],
    ),
    "decimal commas as text in a workbook": (
        workbook, {"age": comma_texts}, (3, 5), ["Numbers are read with a decimal comma"],
    ),
    "a workbook in an archive": (
        lambda frame: archive(**{"data/book.xlsx": workbook(frame)}), {}, (3, 5),
        ["Read 'data/book.xlsx' inside the archive"],
    ),
    "an archive with a folder and a note to the reader": (
        lambda frame: archive(**{"x/": b"", "x/table.csv": text(frame), "x/README.txt": b"Hi"}), {},
        (3, 5), ["Read 'x/table.csv' inside the archive"],
    ),
    "categories and times with zone in Parquet": (
        parquet,
        {
            "city": lambda frame, rng: frame["city"].astype("category"),
            "code": lambda frame, rng: pd.Categorical(rng.integers(1, 4, len(frame))),
            "when": some_dates_with_zone,
        },
        (5, 10), ["Used the dates in 'when' as: weekday, time of day"],
    ),
    "numbers and dates as text in Parquet": (
        parquet,
        {
            "age": lambda frame, rng: [
                "?" if i % 10 == 0 else f"{v} y" for i, v in enumerate(frame["age"])
            ],
            "visit": lambda frame, rng: dates(frame, rng).strftime("%m/%d/%Y").to_numpy(),
        },
        (4, 10),
        ["Read 'age' as numbers: the file holds them as text", "the unit 'y'", "--as age=text",
         "Read 'visit' as dates: the file holds them as text", "Read '?' as missing in 'age'"],
    ),
    "dates in two spellings": (
        text, {"visit": mixed_dates}, (3, 5),
        ["Read 'visit' as text: 26 of 80 cells are not dates as the others are", "--ignore visit"],
    ),
    "shares with and without percent": (
        text, {"rate": percent}, (4, 6), ["with the unit '%'; 20 cells have none"],
    ),
    "negative numbers in brackets": (
        text, {"balance": brackets}, (4, 6),
        ["Read numbers in brackets in 'balance' as negative", "--as balance=text"],
    ),
    "truth values in all spellings": (
        text,
        {
            "member": lambda frame, rng: rng.choice(["Yes", "No", "yes", "NO"], len(frame)),
            "flag": lambda frame, rng: rng.choice(["TRUE", "FALSE"], len(frame)),
        },
        (5, 10), ["Column 'member' has texts that differ only in case"],
    ),
    "a column without values": (
        text, {"empty": lambda frame, rng: ""}, (3, 5),
        ["Ignored 'empty': the training table has no value in it."],
    ),
    "tabs": (lambda frame: text(frame, sep="\t"), {}, (3, 5), ["separated by tab"]),
    "Windows-1252": (
        lambda frame: text(frame.rename(columns={"city": "straße"}), encoding="cp1252"), {}, (3, 5),
        ["read as Windows-1252", "--encoding"],
    ),
    "columns aligned by spaces": (
        lambda frame: frame.to_string(index=False).encode(), {}, (3, 5), ["separated by spaces"],
    ),
    "names that repeat": (
        lambda frame: text(frame.rename(columns={"income": "age"})), {}, (3, 5), ["'age (2)'"],
    ),
}  # fmt: skip


def write_pair(folder, write, **columns):
    paths = folder / "train.csv", folder / "new.csv"  # contents decide, not the name
    for path, frame in zip(paths, pair(**columns), strict=True):
        path.write_bytes(write(frame))
    return paths


def adapt(folder, *paths, label="churned", options=()):
    choice = ["--label", label, "--adapter", "none", "--out", folder / "model.skops", *options]
    return ["adapt", *paths, *choice]


@pytest.mark.parametrize("what", PAIRS)
def test_it_is_read_and_said(what, tmp_path):
    write, columns, (n_columns, n_features), said = PAIRS[what]
    paths = write_pair(tmp_path, write, **columns)
    shown = succeed(*adapt(tmp_path, *paths))
    sizes = f"Training rows: {N_TRAIN}; new rows: {N_NEW}; columns to learn from: {n_columns}, as "
    assert f"{sizes}{n_features} features." in shown
    for words in said:
        assert words in shown, shown
    predicted = succeed("predict", tmp_path / "model.skops", paths[1], "--out", tmp_path / "p.csv")
    assert f"Rows predicted: {N_NEW} " in predicted
    assert "no training row has" not in predicted  # read as the training table was


def test_classes_that_differ_in_case(tmp_path):
    """They are one class, in later files too, unless the user says otherwise."""
    train, new = pair()
    spellings = {"yes": [" Yes", "yes", "YES ", "yes"], "no": ["No", "no", "NO", "no"]}
    train["churned"] = [spellings[one][i % 4] for i, one in enumerate(train["churned"])]
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    for path, frame in zip(paths, (train, new), strict=True):
        frame.to_csv(path, index=False)
    shown = succeed(*adapt(tmp_path, *paths))
    assert re.search(r"^Rows of each class: (yes|no) \d+, (yes|no) \d+\.$", shown, re.MULTILINE)
    assert "as the class 'yes'. If they are different classes: --as churned=text." in shown
    score = succeed("score", tmp_path / "model.skops", paths[0])
    assert "never seen" not in score
    kept = succeed(*adapt(tmp_path, *paths, options=["--as", "churned=text"]))
    assert "as the class" not in kept
    assert "NO " in kept


def test_single_letters_are_different_classes(tmp_path):
    train, new = pair()
    train["churned"] = np.where(train["churned"] == "yes", "A", "a")
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    for path, frame in zip(paths, (train, new), strict=True):
        frame.to_csv(path, index=False)
    assert "as the class" not in succeed(*adapt(tmp_path, *paths))


def test_labels_in_some_rows_or_of_one_class(tmp_path):
    train, new = pair()
    new.to_csv(tmp_path / "new.csv", index=False)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    train.assign(churned=train["churned"].where(np.arange(N_TRAIN) % 3 > 0)).to_csv(
        paths[0], index=False
    )
    assert "27 of 80 training rows have no label" in succeed(*adapt(tmp_path, *paths))
    train.assign(churned="no").to_csv(paths[0], index=False)
    assert_refused(run(*adapt(tmp_path, *paths)), "adapt", "one class only, 'no'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda frame: frame.to_json(orient="records"), ["is JSON", "CSV"]),
        (lambda frame: frame.to_json(orient="records", lines=True), ["is JSON"]),
        (lambda frame: "% UCI\n@relation customers\n@attribute age numeric\n", ["ARFF", "CSV"]),
        (lambda frame: frame.to_csv(index=False) + "Total rows: 80\n",
         ["row 82 has 1 cells", "remove the line"]),
        (lambda frame: frame.to_csv(index=False, quotechar="'", quoting=csv.QUOTE_NONNUMERIC),
         ["no column 'churned'"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_to_do(content, words, tmp_path):
    train, new = pair()
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    paths[0].write_text(content(train))
    new.to_csv(paths[1], index=False)
    assert_refused(run(*adapt(tmp_path, *paths)), "adapt", *words)


def test_one_of_several_tables_in_an_archive(tmp_path):
    train, new = pair()
    path = tmp_path / "both.zip"
    path.write_bytes(archive(**{"train.csv": text(train), "new.csv": text(new)}))
    refused = run(*adapt(tmp_path, path, path))
    assert_refused(refused, "adapt", "holds 2 files ('train.csv', 'new.csv')", "FILE#NAME")
    shown = succeed(*adapt(tmp_path, f"{path}#train.csv", f"{path}#new.csv"))
    assert "Training rows: 80; new rows: 50" in shown
    refused = run(*adapt(tmp_path, f"{path}#old.csv", f"{path}#new.csv"))
    assert_refused(refused, "adapt", "has no file 'old.csv'; it has 'train.csv', 'new.csv'")


@pytest.mark.slow
def test_a_wide_table(tmp_path):
    """Two thousand columns are matched, and pandas has nothing to say about them."""
    rng = np.random.default_rng(0)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    for path, frame in zip(paths, pair(), strict=True):
        names = [f"g{i}" for i in range(2000)]
        wide = pd.DataFrame(rng.normal(size=(len(frame), 2000)).round(3), columns=names)
        pd.concat([frame, wide], axis=1).to_csv(path, index=False)
    shown = succeed(*adapt(tmp_path, *paths))
    assert "columns to learn from: 2003, as 2005 features." in shown
    assert not re.search(r"^- ", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--encoding", "latin-99"], ["'latin-99' is not an encoding"]),
        (["--encoding", "base64"], ["'base64' is not an encoding"]),
        (["--encoding", "ascii"], ["is not valid ASCII; give another --encoding"]),
        (["--skip-rows", "-1"], ["--skip-rows must be 0 or more"]),
    ],
)
def test_options_that_do_not_fit(options, words, tmp_path):
    paths = write_pair(tmp_path, lambda frame: text(frame.rename(columns={"age": "âge"})))
    assert_refused(run(*adapt(tmp_path, *paths, options=options)), "adapt", *words)


def test_the_user_says_where_the_names_are(tmp_path):
    paths = write_pair(tmp_path, lambda frame: text(frame, "age,income,city,churned (old names)\n"))
    options = ["--skip-rows", "1"]
    assert "columns to learn from: 3" in succeed(*adapt(tmp_path, *paths, options=options))
    out = ["--out", tmp_path / "p.csv", *options]
    assert "Rows predicted: 50" in succeed("predict", tmp_path / "model.skops", paths[1], *out)


def test_many_classes_are_counted_though_few_are_named(tmp_path):
    values = np.random.default_rng(0).normal(size=600)
    rows = pd.DataFrame({"x": values, "kind": [f"k{i % 120}" for i in range(600)]})
    rows.to_csv(tmp_path / "train.csv", index=False)
    rows[["x"]].assign(x=rows["x"] + 0.5).to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.skops"
    printed = succeed(
        "adapt", tmp_path / "train.csv", tmp_path / "new.csv", "--label", "kind",
        "--adapter", "none", "--out", model,
    )  # fmt: skip
    assert "k11 5 and 108 more." in printed
    shown = succeed("show", model)
    assert "(108 more; --json shows more)" in shown
    assert re.search(r"^classes: .* and 108 more$", shown, re.MULTILINE)


def test_labels_that_are_no_class_of_the_model_are_refused(tmp_path):
    """An accuracy of 0 would be said of a good model."""
    train, new = pair()
    train.to_csv(tmp_path / "train.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.skops"
    succeed(
        "adapt", tmp_path / "train.csv", tmp_path / "new.csv", "--label", "churned",
        "--adapter", "none", "--out", model,
    )  # fmt: skip
    coded = train.assign(churned=(train["churned"] == "yes").astype(int))
    coded.to_csv(tmp_path / "coded.csv", index=False)
    result = run("score", model, tmp_path / "coded.csv")
    assert_refused(result, "score", "the file has '0', '1', the model 'no', 'yes'", "--label")
