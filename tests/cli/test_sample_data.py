"""`covshift sample-data`: tables that a newcomer can try the commands on."""

import csv
import shlex

import pytest

from tests.cli.user_files import run


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_three_files_fit_together(tmp_path):
    result = run("sample-data", "--out", str(tmp_path / "a folder"))
    assert result.exit_code == 0
    train, new, checked = (
        rows_of(tmp_path / "a folder" / f"{name}.csv") for name in ("train", "new", "checked")
    )
    assert (len(train), len(new), len(checked)) == (600, 300, 60)
    assert {row["plant"] for row in train}.isdisjoint(row["plant"] for row in new)
    assert "fault" not in new[0]
    unlabeled = {row["machine"]: row for row in new}
    for row in checked:
        assert row.pop("fault") in ("yes", "no")
        assert unlabeled[row["machine"]] == row


def test_the_command_it_names_is_ready_to_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = shlex.split(run("sample-data", "--out", "a folder").output.splitlines()[-1])
    assert named[:2] == ["covshift", "diagnose"]
    # `adapt` takes the same arguments, and with an adapter named it is fast.
    assert run("adapt", *named[2:], "--adapter", "standardize", "--out", "m.skops").exit_code == 0


def test_existing_files_are_kept_unless_forced(tmp_path):
    (tmp_path / "new.csv").write_text("mine")
    result = run("sample-data", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "new.csv exists" in result.output
    assert "--force" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    assert (tmp_path / "new.csv").read_text() == "mine"
    assert run("sample-data", "--out", str(tmp_path), "--force").exit_code == 0
    assert len(rows_of(tmp_path / "new.csv")) == 300


def test_the_same_tables_every_time(tmp_path):
    for name in ("a", "b"):
        run("sample-data", "--out", str(tmp_path / name))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("kind", ["a file", "below a file"])
def test_a_folder_that_cannot_be(kind, tmp_path):
    (tmp_path / "taken").write_text("")
    out = tmp_path / "taken" if kind == "a file" else tmp_path / "taken" / "below"
    result = run("sample-data", "--out", str(out))
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert "taken" in result.output
