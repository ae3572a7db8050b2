"""The report of two tables: columns as the files have them, and means in natural units."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from covshift import diagnose, stack_domains
from covshift.report.document import make_cell, make_column, make_document, make_section, make_table
from covshift.selection.assessment_words import say_number
from covshift.tables import read_pair
from covshift.tables.diagnosing import (
    MAX_SHOWN_DOMAINS,
    _held_out_numbers,
    _held_out_section,
    describe_tables,
    look_at_files,
)

N = 60


def animals(moved, seed):
    """Birds whose mass is written with its unit; some wings were not measured."""
    rng = np.random.default_rng(seed)
    mass = rng.normal(4200 + 900 * moved, 400, N).round()
    wing = rng.normal(190, 10, N).round(1).astype(object)
    wing[::6] = "?"
    islands = ["Anvers", "Biscoe"] if moved else ["Biscoe", "Dream"]
    return pd.DataFrame(
        {
            "mass": [f"{one:.0f} g" for one in mass],
            "wing": wing,
            "island": np.array(islands)[np.arange(N) % 2],
            "seen": pd.Timestamp("2008-03-01") + pd.to_timedelta(np.arange(N) + 400 * moved, "D"),
            "ringed": np.arange(N) % 4 == 0,
            "sex": np.where(np.arange(N) % 3, "f", "m"),
        }
    ), mass


@pytest.fixture
def pair(tmp_path):
    (train, mass), (new, new_mass) = animals(0, 0), animals(1, 1)
    train.to_csv(tmp_path / "train.csv", index=False)
    new.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)
    tables = read_pair(tmp_path / "train.csv", tmp_path / "new.csv", label="sex")
    return tables, mass, new_mass


def shown(row):
    return {key: cell["text"] if isinstance(cell, dict) else cell for key, cell in row.items()}


def test_what_the_files_look_like(pair):
    tables, mass, new_mass = pair
    section = look_at_files(tables, ["A note."])
    assert section["paragraphs"][0] == "A note."
    rows = {row["column"]: shown(row) for row in section["tables"][0]["rows"]}
    low, median, high = np.quantile(mass, [0.05, 0.5, 0.95])
    distance = max(abs((mass <= one).mean() - (new_mass <= one).mean()) for one in mass)
    assert rows["mass"] == {
        "column": "mass",
        "kind": "number (g)",
        "missing": "0",
        "missing new": "0",
        "values": f"{median:,.0f} ({low:,.0f} to {high:,.0f})",
        "values new": rows["mass"]["values new"],
        "distance": f"{distance:.2f}",
    }
    assert (rows["wing"]["kind"], rows["wing"]["missing"]) == ("number", "16.7 %")
    assert rows["island"]["values"] == "Biscoe 50 %, Dream 50 %"
    assert rows["island"]["values new"] == "Anvers 50 %, Biscoe 50 %"
    assert rows["island"]["distance"] == "0.50"
    assert rows["seen"]["kind"] == "date"
    assert rows["seen"]["values"] == "2008-03-01 to 2008-04-29"
    assert rows["seen"]["distance"] == "1.00"
    assert rows["ringed"]["values"] == "true 25 %"


def test_natural_units_beside_standard_deviations(pair):
    tables, mass, new_mass = pair
    keys = ["feature", "distance", "before", "after", "spread"]
    cell = make_cell("5.31", value=5.31)  # as a diagnosis has it
    table = make_table(
        "features",
        "Features",
        [make_column(key, key, numeric=key != "feature") for key in keys],
        [{"feature": "mass", "distance": 0.5, "before": cell, "after": cell, "spread": 1.0}],
    )
    other = make_section("holds", "What holds")
    document = make_document(
        "T", "L", sections=[make_section("moved", "Moved", tables=[table]), other]
    )
    described = describe_tables(document, tables)
    assert [one["id"] for one in described["sections"]] == ["moved", "holds", "files"]
    table = described["sections"][0]["tables"][0]
    (row,) = table["rows"]
    assert shown(row) == {
        "feature": "mass",
        "distance": 0.5,
        "before": f"{mass.mean():,.0f}",
        "after": f"{new_mass.mean():,.0f}",
        "moved": f"{(new_mass.mean() - mass.mean()) / mass.std():+.2f}",
        "spread": 1.0,
    }
    labels = [column["label"] for column in table["columns"]]
    assert labels[2:5] == ["mean, training", "mean, new", "moved by, in standard deviations"]
    assert document["sections"][0]["tables"][0]["rows"][0]["before"] is cell  # left alone


def test_a_column_without_values_and_many_texts(tmp_path):
    train = pd.DataFrame({"x": np.arange(40.0), "t": list("abcde") * 8, "y": ["p", "q"] * 20})
    train.to_csv(tmp_path / "train.csv", index=False)
    train.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    tables = read_pair(tmp_path / "train.csv", tmp_path / "new.csv", label="y", keep=["x"])
    tables = replace(tables, X_new=tables.X_new.assign(x=np.nan))
    rows = {row["column"]: shown(row) for row in look_at_files(tables)["tables"][0]["rows"]}
    assert (rows["x"]["missing new"], rows["x"]["values new"]) == ("100 %", "none")
    assert rows["x"]["distance"] is None
    assert rows["t"]["values"] == "a 20 %, b 20 %, c 20 %, 2 more"
    assert rows["t"]["distance"] == "0.00"


def test_numbers():
    assert [say_number(one) for one in (1234567.8, 0.5, -2000, 1000, 999.94, 1e20, 1e12)] == [
        "1,234,568", "0.5", "-2,000", "1,000", "999.9", "1e+20", "1e+12",
    ]  # fmt: skip


def diagnose_made(seed=0, *, noise=0.1, classes=False):
    """Two sources whose levels differ by 20, which no column says, and a target between them."""
    rng = np.random.default_rng(seed)
    X_A, X_B, X_new = (rng.standard_normal((60, 2)) for _ in range(3))
    levels = [10 * X[:, 0] + noise * rng.standard_normal(60) for X in (X_A, X_B)]
    y = [levels[0] - 10, levels[1] + 10]
    if classes:
        y = [one > 0 for one in y]
    X, y, sample_domain = stack_domains({"A": (X_A, y[0]), "B": (X_B, y[1])}, target={"C": X_new})
    task = "classification" if classes else "regression"
    return diagnose(X, y, sample_domain=sample_domain, task=task, random_state=0), y


def test_rows_left_out_are_compared_with_their_labels():
    found, y = diagnose_made()
    held_out = _held_out_numbers(found)
    np.testing.assert_allclose(np.sort(held_out.truth), np.sort(y[:120]), rtol=1e-9)
    assert 0.2 < r2_score(held_out.truth, held_out.predicted) < 0.9  # the level is not known
    assert np.bincount(held_out.domain).tolist() == [60, 60]


def test_the_section_tells_domains_with_a_level_of_their_own():
    pytest.importorskip("matplotlib")
    found, _ = diagnose_made()
    (section,) = _held_out_section(found, {0: "A", 1: "B"})
    rows = {row["domain"]: row for row in section["tables"][0]["rows"]}
    assert list(rows) == ["all", "A", "B"]
    assert rows["A"]["bias"]["value"] > 5
    assert rows["B"]["bias"]["value"] < -5
    assert abs(rows["all"]["bias"]["value"]) < 5
    assert len(section["figures"]) == 1
    assert len(rows) <= MAX_SHOWN_DOMAINS


def test_classes_have_none():
    found, _ = diagnose_made(classes=True)
    assert _held_out_numbers(found) is None
    assert _held_out_section(found, {}) == []
