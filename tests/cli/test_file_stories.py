"""Files of the shapes that new users brought, and what the commands say about them."""

import re
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from covshift.persistence.model_files import is_model_file
from covshift.tables import Split, read_pair
from tests.cli.user_files import assert_refused, make_tables, run, succeed

N = 160
PAGE = Path(__file__).parents[2] / "docs" / "your-own-files.md"


def visits(start="2020-01-01", seed=0):
    """Rows of a clinic in the order of their dates."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, N))
    day = pd.Timestamp(start) + pd.to_timedelta(np.sort(rng.integers(0, 800, N)), "D")
    ill = np.where(x + y + rng.normal(0, 0.5, N) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "RowNumber": np.sort(rng.choice(5000, N, replace=False)),
            "Surname": [f"name{i}" for i in rng.integers(0, 90, N)],
            "visit": day,
            "x": x.round(3),
            "y": y.round(3),
            "stays": rng.poisson(40, N) * 7 + rng.integers(0, 7, N),
            "outcome": np.where(ill == "yes", "treated", "sent home"),
            "ill": ill,
        }
    )


@pytest.fixture
def write(tmp_path):
    def write(train, new, **options):
        paths = tmp_path / "train.csv", tmp_path / "new.csv"
        for path, frame in zip(paths, (train, new.drop(columns="ill")), strict=True):
            frame.to_csv(path, index=False, **options)
        return paths

    return write


COLUMNS = ["x", "y", "ill"]


@pytest.fixture
def adapt(tmp_path):
    """Return what the command prints about tables, as a user would see it."""

    def adapt(*paths, options=()):
        choice = ["--label", "ill", "--adapter", "none", "--out", tmp_path / "model.skops"]
        return succeed("adapt", *paths, *choice, *options)

    return adapt


def test_question_marks(write, adapt):
    """1: they are missing values; a column of numbers stays one."""
    frames = [visits(seed=seed)[COLUMNS].astype({"x": object}) for seed in (0, 1)]
    for frame in frames:
        frame.loc[::5, "x"] = "?"
    shown = adapt(*write(*frames))
    assert "columns to learn from: 2, as 3 features." in shown  # one says where x is missing
    assert "- train.csv: Read '?' as missing in 'x' (32 cells)." in shown
    assert 'If it is a value: --not-missing "?".' in shown


def test_the_header_of_r(write, adapt):
    """2: a name fewer than cells."""
    paths = write(visits()[COLUMNS], visits(seed=1)[COLUMNS])
    for path in paths:
        names, *rows = path.read_text().splitlines()
        path.write_text("\n".join([names, *(f'"{i}",{row}' for i, row in enumerate(rows))]) + "\n")
    shown = adapt(*paths)
    assert "columns to learn from: 2, as 2 features." in shown
    assert "one name fewer than the rows have cells: the first column is read as row names" in shown


@pytest.mark.parametrize("spelling", ["%Y-%m-%d", "%m/%d/%Y"])
def test_dates(write, adapt, spelling):
    """3: a date is not what separates the rows, in any spelling."""
    frames = [
        visits("2020-01-01")[["visit", *COLUMNS]],
        visits("2023-01-01", 1)[["visit", *COLUMNS]],
    ]
    paths = write(*frames, date_format=spelling)
    shown = adapt(*paths)
    assert "separates" not in shown
    assert (
        "- Used the dates in 'visit' as: time of year, weekday. A date as a number would only "
        "separate old rows from new rows. To use it nevertheless: --as visit=days.\n"
    ) in shown
    clock = succeed("diagnose", *paths, "--label", "ill", "--as", "visit=days", "--ask", "0")
    assert "mostly by 'visit' (AUC 1.00 alone)" in clock
    assert "'visit' looks like a clock" in clock
    assert "--ignore visit." in clock


def test_row_numbers_names_and_giveaways(write, adapt):
    """4: each is named, with the option to paste."""
    shown = adapt(*write(visits(), visits(seed=1)))
    assert "- Ignored 'RowNumber': it looks like a row number" in shown
    assert "--use RowNumber." in shown
    assert "- Column 'Surname' has " in shown
    assert "--ignore Surname." in shown
    assert "- Column 'outcome' alone predicts the label with balanced accuracy 1.000" in shown
    assert "--ignore outcome." in shown


def test_unseen_categories_and_one_file_without_header(write, tmp_path):
    """5 and 8: predict reports them; a file without names is read with --no-header."""
    train, new = (visits(seed=seed)[COLUMNS].assign(site="A") for seed in (0, 1))
    train.loc[::2, "site"] = "B"
    paths = write(train, new.assign(site="A"))
    model = tmp_path / "model.skops"
    options = ["--label", "ill", "--adapter", "none", "--out", model]
    succeed("adapt", *paths, *options)
    new.assign(site="Z").to_csv(paths[1], index=False)
    said = succeed("predict", model, paths[1], "--out", tmp_path / "out.csv")
    assert "Column 'site': all 160 rows have values that no training row has ('Z')" in said
    train.to_csv(paths[0], index=False, header=False)
    options = ["--label", "column 3", "--domain", "column 4", "--target-domain", "B", "--no-header"]
    said = succeed("adapt", paths[0], *options, "--adapter", "none", "--out", model)
    assert "Training rows: 80; new rows: 80; columns to learn from: 2" in said


def test_a_numeric_label(write, tmp_path):
    """6: it is refused before anything is fitted, and --bins predicts ranges."""
    paths = write(visits()[["x", "y", "stays", "ill"]], visits(seed=1)[["x", "y", "stays", "ill"]])
    options = ["--label", "stays", "--ignore", "ill", "--adapter", "none"]
    options += ["--out", tmp_path / "model.skops"]
    refused = run("adapt", *paths, *options)
    assert_refused(refused, "adapt", "'stays' is a number", "--bins 4")
    assert "is cut into 4 ranges" in succeed("adapt", *paths, *options, "--bins", 4)


def test_a_mass_in_grams(write, tmp_path):
    """7: the report shows grams, and the movement in standard deviations beside them."""
    frames = []
    for seed, mean in ((0, 4200), (1, 5100)):
        grams = np.random.default_rng(seed).normal(mean, 170, N).round()
        frames.append(visits(seed=seed)[COLUMNS].assign(mass=[f"{one:.0f} g" for one in grams]))
    page = tmp_path / "report.html"
    options = ["--label", "ill", "--ask", "0", "--time-budget", "0", "--report", page]
    succeed("diagnose", *write(*frames), *options)
    means = [frame["mass"].str.removesuffix(" g").astype(float).mean() for frame in frames]
    text = page.read_text(encoding="utf-8")
    for shown in (f">{means[0]:,.0f}<", f">{means[1]:,.0f}<", ">number (g)<"):
        assert shown in text
    assert "moved by, in standard deviations" in text


@pytest.mark.parametrize("before", ["0.75", "2021-06-01"])
def test_a_split_by_time(adapt, tmp_path, before):
    """8: one file, the later rows being the target."""
    path = tmp_path / "table.csv"
    frame = visits()[["visit", *COLUMNS]]
    frame.to_csv(path, index=False)
    shown = adapt(path, options=["--time", "visit", "--train-before", before])
    n_train = int(re.search(r"Training rows: (\d+); new rows: \d+", shown)[1])
    share = before.startswith("0")
    expected = 0.75 * N if share else (frame["visit"] < before).sum()
    assert n_train == pytest.approx(expected, abs=3 if share else 0)
    assert f"into {n_train} training rows and {N - n_train} target rows" in shown


def test_a_split_keeps_the_order_of_time(tmp_path):
    path = tmp_path / "table.csv"
    visits()[["visit", *COLUMNS]].to_csv(path, index=False)
    tables = read_pair(path, label="ill", split=Split(time="visit", train_before="0.75"))
    assert tables.X_train["visit"].max() < tables.X_new["visit"].min()


def test_a_query(adapt, tmp_path):
    """8: rows of a database, with numbers that have units and thousands separators."""
    duckdb = pytest.importorskip("duckdb")
    pay = [f"{900 + 7 * i:,} EUR" for i in np.random.default_rng(0).permutation(N)]
    frame = visits()[COLUMNS].assign(site="A", pay=pay)
    frame.loc[::2, "site"] = "B"
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    queries = [f"SELECT * FROM visits WHERE site = '{site}'" for site in "AB"]
    shown = adapt(*queries, options=["--db", path, "--ignore", "site"])
    assert "Training rows: 80; new rows: 80; columns to learn from: 3, as 3 features." in shown
    assert "as numbers with the unit 'EUR'" in shown
    absent = run("adapt", *queries, "--db", path, "--label", "il", "--out", tmp_path / "m")
    assert_refused(absent, "adapt", "no column 'il' for the label; is it 'ill'?")


# Options that spare time, not words: nothing is compared that need not be.
QUICK = {"diagnose": ["--ask", "0", "--time-budget", "0"], "adapt": ["--adapter", "standardize"]}


def write_workbook(path, frame, title):
    """Write a workbook with a title above the names, and a second sheet."""
    book = pytest.importorskip("openpyxl").Workbook()
    sheet = book.active
    if title:
        sheet.append([title])
        sheet.merge_cells("A1:F1")
    for row in [list(frame), *frame.to_numpy(dtype=object).tolist()]:
        sheet.append([one.to_pydatetime() if isinstance(one, pd.Timestamp) else one for one in row])
    book.create_sheet("About").append(["Ask Jo."])
    book.save(path)


def test_the_commands_of_the_page_from_a_workbook_to_predictions(tmp_path, monkeypatch):
    """All commands at its top, on workbooks with dates, identifiers, units and question marks."""
    monkeypatch.chdir(tmp_path)
    for name, start, seed in (("train", "2020-01-01", 0), ("new", "2023-01-01", 1)):
        rows = visits(start, seed)
        frame = pd.DataFrame(
            {
                "customer_id": [f"K{i:05d}" for i in np.random.default_rng(seed).permutation(N)],
                "visit": rows["visit"],
                "mass": [f"{70 + 9 * x:.1f} kg" for x in rows["x"]],
                "y": rows["y"].astype(object).where(np.arange(N) % 7 > 0, "?"),
                "site": np.resize(["North", "South"] if name == "train" else ["East"], N),
                "churned": rows["ill"],
            }
        )
        write_workbook(f"{name}.xlsx", frame, "Visits until 2022" if name == "train" else None)
    for name in ("checked", "today"):
        (tmp_path / f"{name}.xlsx").write_bytes((tmp_path / "new.xlsx").read_bytes())
    page = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^    covshift (\w+) +(.*?)(?: +#.*)?$", page, flags=re.MULTILINE)
    said = {}
    for command, arguments in lines:
        given = re.sub(r"(train|new|checked|today)\.csv", r"\1.xlsx", arguments).split()
        result = run(command, *given, *QUICK.get(command, []))
        assert result.exit_code == 0 or (command, result.exit_code) == ("monitor", 3), result.output
        assert result.stderr == ""
        said[command] = result.stdout
    assert list(said) == ["diagnose", "adapt", "predict", "score", "monitor", "show"]
    for words in (
        "train.xlsx: Skipped 1 line above the names of the columns ('Visits until 2022')",
        "Read '?' as missing in 'y'",
        "Read 'mass' as numbers with the unit 'kg'",
        "Ignored 'customer_id': it looks like an identifier",
        "Used the dates in 'visit' as: time of year, weekday",
    ):
        assert words in said["diagnose"]
        assert words in said["adapt"]
    predictions = pd.read_csv("predictions.csv")
    assert len(predictions) == N
    assert list(predictions)[:2] == ["customer_id", "prediction"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ">number (kg)<" in page


@pytest.mark.parametrize("suffix", [".xlsx", ".zip"])
def test_archives_are_tables_and_not_models(suffix, tmp_path):
    """A workbook begins as a model file does: with the mark of a zip archive."""
    paths = {}
    for name in ("train", "new"):
        frame = make_tables()[name]
        paths[name] = tmp_path / f"{name}{suffix}"
        if suffix == ".xlsx":
            pytest.importorskip("openpyxl")
            frame.to_excel(paths[name], index=False)
        else:
            with ZipFile(paths[name], "w") as archive:
                archive.writestr("table.csv", frame.to_csv(index=False))
    out = tmp_path / "model.skops"
    choice = ["--label", "churned", "--adapter", "standardize"]
    assert f"Model: {out}" in succeed("adapt", paths["train"], paths["new"], *choice, "--out", out)
    assert is_model_file(out)
    assert not is_model_file(paths["train"])
    out.write_bytes(out.read_bytes()[:-100])
    assert is_model_file(out)  # so that the error is about a model
