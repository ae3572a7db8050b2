import csv
import json
import math
import os

import pytest

from covshift.experiments.results_table import write_table
from covshift.experiments.store import Record
from covshift.experiments.trial import Trial


def record(settings, seed=0, result=None, error=None):
    return Record(Trial("e", settings, seed), result, error, None, [], 1.5, "2026-01-01T00:00:00")


RECORDS = [
    record({"b": "SF", "a": [1, None]}, 3, {"value": 0.1 + 0.2, "nan": float("nan")}),
    record({"b": 'say "hi",\n\udce9'}, 4, {"value": -math.inf, "fine": True, "seed": "x"}),
    record({}, 5, error="ValueError: no"),
]


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv(tmp_path):
    write_table(RECORDS, tmp_path / "t.csv")
    rows = read_csv(tmp_path / "t.csv")
    assert list(rows[0]) == [
        *("experiment", "settings.a", "settings.b", "seed"),
        *("result.fine", "result.nan", "result.seed", "result.value", "error"),
    ]
    assert rows[0]["settings.a"] == "[1, null]"
    assert float(rows[0]["result.value"]) == 0.1 + 0.2
    assert math.isnan(float(rows[0]["result.nan"]))
    assert rows[1]["settings.b"] == 'say "hi",\n\\udce9'
    assert float(rows[1]["result.value"]) == -math.inf
    assert (rows[1]["result.fine"], rows[1]["result.seed"]) == ("true", "x")
    assert rows[2]["error"] == "ValueError: no"
    assert rows[2]["result.value"] == ""


def test_json(tmp_path):
    def refuse(name):
        raise AssertionError(f"{name} is not strict JSON")

    write_table(RECORDS, tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text(), parse_constant=refuse)
    assert rows[0] == {
        "experiment": "e",
        "settings": {"a": [1, None], "b": "SF"},
        "seed": 3,
        "result": {"value": 0.1 + 0.2, "nan": "NaN"},
        "error": None,
    }
    assert float(rows[1]["result"]["value"]) == -math.inf
    assert rows[2]["result"] is None


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_timings_only_when_asked_for(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_table(RECORDS, path)
    assert "2026" not in path.read_text()
    write_table(RECORDS, path, timings=True)
    assert path.read_text().count("2026-01-01T00:00:00") == 3
    assert path.read_text().count("1.5") == 3
    assert os.listdir(tmp_path) == [path.name]


def test_no_records(tmp_path):
    write_table([], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "experiment,seed,error\n"
    write_table([], tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text() == "[]\n"


def test_other_endings(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .csv or .json, got 't.xlsx'"):
        write_table(RECORDS, tmp_path / "t.xlsx")


def test_the_old_table_stays_when_the_new_one_fails(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_table(RECORDS, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]
