"""The history of batches: whole lines, none twice, whatever happens to who writes them."""

import json

import pytest

from covshift.tables import TableError
from covshift.tables.monitoring_history import append_history, batch_key, read_history


def batch(name, digest="d", model="m", **more):
    key = batch_key(name, digest, model)
    found = {"rows": 10, "moved": False, "what_moved": [], "features": []}
    return {
        "kind": "batch", "key": key, "name": name, "digest": digest, "model": model, **found, **more
    }  # fmt: skip


def labels(of, text="l", **more):
    key = batch_key(of["key"], text)
    return {"kind": "labels", "key": key, "of": of["key"], "n_labels": 1, **more}


def names(path):
    return [one["name"] for one in read_history(path).batches]


def test_lines_are_written_once(tmp_path):
    path = tmp_path / "history.jsonl"
    assert read_history(path) == ([], [])
    assert append_history(path, [batch("a"), batch("b"), batch("a")]) == [True, True, False]
    assert append_history(path, [batch("b"), batch("b", "other contents")]) == [False, True]
    assert names(path) == ["a", "b", "b"]
    assert len(path.read_text().splitlines()) == 3


def test_labels_that_arrive_later_belong_to_their_batch(tmp_path):
    path = tmp_path / "history.jsonl"
    first, second = batch("a"), batch("b")
    append_history(path, [first, second, labels(first, n_labels=5, covered=False)])
    append_history(path, [labels(first, "more", n_labels=9, covered=True), labels(batch("gone"))])
    found = read_history(path).batches
    assert [one.get("n_labels") for one in found] == [9, None]
    assert found[0]["covered"] is True


def test_the_last_line_about_a_period_or_a_batch_counts(tmp_path):
    path = tmp_path / "history.jsonl"
    append_history(path, [batch("w", "half", period="2024-W02", rows=3)])
    append_history(path, [batch("w", "old", period="2024-W01", rows=7)])
    append_history(path, [batch("w", "whole", period="2024-W02", rows=9)])
    assert [one["rows"] for one in read_history(path).batches] == [7, 9]
    append_history(path, [batch("x", rows=1), batch("x", model="updated", rows=2)])
    assert [one["rows"] for one in read_history(path).batches] == [9, 7, 2]


@pytest.mark.parametrize("n_bytes", [1, 10, 40, -2])
def test_a_torn_last_line_is_ignored_and_then_replaced(tmp_path, n_bytes):
    path = tmp_path / "history.jsonl"
    append_history(path, [batch("a"), batch("b")])
    kept, torn = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(kept + torn[:n_bytes])
    found = read_history(path)
    assert [one["name"] for one in found.batches] == ["a"]
    assert "the last line, which was not written completely" in found.notes[0]
    assert append_history(path, [batch("b"), batch("c")]) == [True, True]
    assert names(path) == ["a", "b", "c"]
    assert read_history(path).notes == []


SCORE = {"value": 0.9, "low": 0.8, "high": 1.0}


@pytest.mark.parametrize(
    "damage",
    [
        *({"kind": value} for value in ([], {}, None)),
        *({"rows": value} for value in (None, "x", [], -1, True)),
        *({"moved": value} for value in (None, "yes", 1)),
        *({"what_moved": value} for value in (None, "features", [1])),
        *({"features": value} for value in (None, {}, [None], [{"feature": 1}])),
        *({"estimate": value} for value in ("x", 1, {}, SCORE | {"low": None})),
        *({"reference": value} for value in ("x", [], True)),
        *({"period": value} for value in (1, [])),
    ],
    ids=repr,
)
def test_a_line_with_fields_of_other_types_is_ignored(tmp_path, damage):
    """They ended `covshift monitor` with a message about a type of Python."""
    path = tmp_path / "history.jsonl"
    whole = batch(
        "b", estimate=SCORE, reference=0.5, period="2024", features=["x", {"feature": "y"}]
    )
    append_history(path, [whole])
    line = {"covshift_history": 1, **batch("a"), **damage}
    path.write_text(json.dumps(line) + "\n" + path.read_text())
    assert names(path) == ["b"]
    assert read_history(path).notes == ["history.jsonl: ignored 1 damaged lines of the history."]


def test_labels_of_other_types_are_ignored(tmp_path):
    path = tmp_path / "history.jsonl"
    one = batch("a")
    damages = ({"n_labels": None}, {"observed": 0.5}, {"updated": []}, {"covered": "yes"})
    lines = [{"covshift_history": 1, **labels(one), **damage} for damage in damages]
    append_history(path, [one])
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
    assert "n_labels" not in read_history(path).batches[0]
    assert "ignored 4 damaged lines" in read_history(path).notes[0]


def test_a_file_of_deep_brackets_is_not_a_history(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(TableError, match="is not a history of covshift monitor"):
        read_history(path)


def test_a_torn_first_line_is_replaced(tmp_path):
    path = tmp_path / "history.jsonl"
    append_history(path, [batch("a")])
    path.write_bytes(path.read_bytes()[:30])
    append_history(path, [batch("a")])
    assert names(path) == ["a"]


def test_a_whole_line_without_its_line_break_counts(tmp_path):
    path = tmp_path / "history.jsonl"
    append_history(path, [batch("a"), batch("b")])
    path.write_bytes(path.read_bytes()[:-1])
    assert append_history(path, [batch("b"), batch("c")]) == [False, True]
    assert names(path) == ["a", "b", "c"]
    assert len(path.read_text().splitlines()) == 3


def test_damaged_lines_are_ignored_and_kept(tmp_path):
    path = tmp_path / "history.jsonl"
    append_history(path, [batch("a")])
    damaged = ['{"covshift_history": 1', "[]", '{"covshift_history": 1, "kind": "batch"}']
    path.write_text(path.read_text() + "\n".join([*damaged, "", ""]))
    append_history(path, [batch("b")])
    found = read_history(path)
    assert [one["name"] for one in found.batches] == ["a", "b"]
    assert found.notes == ["history.jsonl: ignored 3 damaged lines of the history."]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "no line break", '{"other": 1}\n', "{}"])
def test_other_files_are_not_touched(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(TableError, match="is not a history of covshift monitor"):
        append_history(path, [batch("a")])
    with pytest.raises(TableError, match="is not a history of covshift monitor"):
        read_history(path)
    assert path.read_text() == text


def test_numbers_that_json_has_not_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        append_history(tmp_path / "history.jsonl", [batch("a", rows=float("nan"))])
