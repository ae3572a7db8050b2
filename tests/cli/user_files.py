"""Tables of customers whose sites differ, laid out as various programs write them."""

import csv

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from covshift.cli import build_app


def customers(n_rows, site, moved, rng):
    """Rows of a site, moved by so much; who churns is where a site's rows are above their mean."""
    age = rng.normal(40 + 15 * moved, 10, n_rows)
    income = rng.normal(3000 + 2000 * moved, 800, n_rows)
    score = (age - 40 - 15 * moved) / 10 + (income - 3000 - 2000 * moved) / 800
    days = rng.integers(900, size=n_rows)
    return pd.DataFrame(
        {
            "customer_id": [f"K{number:05d}" for number in rng.integers(10**5, size=n_rows)],
            "age": age.round(1),
            "income": income.round(2),
            "city": rng.choice(["Oslo", "Rome", "Bonn, old town"], n_rows),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D"),
            "site": site,
            "churned": np.where(score + rng.normal(0, 0.3, n_rows) > 0, "yes", "no"),
        }
    )


def make_tables(seed=0):
    """Training rows of two sites, rows of a third, and later rows of it and of a fourth."""
    rng = np.random.default_rng(seed)
    train = [customers(100, "A", 0, rng), customers(100, "B", 0.2, rng)]
    return {
        "train": pd.concat(train, ignore_index=True),
        "new": customers(120, "C", 1, rng).drop(columns="churned"),
        "labeled": customers(120, "C", 1, rng),
        "later": customers(120, "D", 2, rng),
    }


def as_pandas(frame, path):
    frame.to_csv(path)  # with its index, which most people forget to leave out


def as_r(frame, path):
    """As R's write.csv: quoted text, quoted row names from "1", NA without quotes."""
    quoted = frame.set_axis(range(1, len(frame) + 1)).copy()
    quoted.index = quoted.index.astype(str)
    quoted["since"] = quoted["since"].dt.strftime("%Y-%m-%d")
    quoted.to_csv(path, quoting=csv.QUOTE_NONNUMERIC, na_rep="NA", index_label="")


def as_spreadsheet(frame, path):
    """As a spreadsheet program of half of Europe: semicolons, decimal commas, a mark, CRLF."""
    shown = frame.copy()
    for name in ("age", "income"):
        texts = shown[name].map(lambda value: f"{value:,.2f}")
        shown[name] = texts.str.translate(str.maketrans(",.", ".,"))
    shown["since"] = shown["since"].dt.strftime("%Y-%m-%d")
    shown.to_csv(path, sep=";", index=False, encoding="utf-8-sig", lineterminator="\r\n")


def as_parquet(frame, path):
    frame.to_parquet(path)


LAYOUTS = {"pandas": as_pandas, "R": as_r, "spreadsheet": as_spreadsheet, "parquet": as_parquet}


def write_tables(folder, layout="pandas", seed=0):
    """Write the four tables; return their paths by name."""
    paths = {}
    for name, frame in make_tables(seed).items():
        paths[name] = folder / f"{name}.csv"  # contents decide, not the name
        LAYOUTS[layout](frame, paths[name])
    return paths


def run(*arguments):
    """Return the output of a command, and how it ends."""
    return CliRunner().invoke(build_app(), [str(one) for one in arguments])


def succeed(*arguments, code=0):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr == "", result.stderr
    return result.stdout


def assert_one_line(result, *words):
    """One line on standard error that has these words, and nothing else."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def assert_refused(result, command, *words):
    """One line on standard error that names the command, and nothing else."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"covshift {command}: ")
    assert line.isprintable()
    assert "Traceback" not in line
    for word in words:
        assert word in line, line
