"""The files: the page, the same as JSON, each table as CSV."""

import csv
import json
import math
import os

import pytest

from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_section,
    make_table,
)
from covshift.report.files import (
    document_json,
    document_markdown,
    table_csv,
    table_markdown,
    write_document,
)
from covshift.report.page import PageTooLargeError, render_page
from tests.report.example import SCRIPT, example_document

NAMES = {"report.html", "report.json", "report.md", "report-accuracy.csv", "report-paper.csv"}


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "new" / "out [1]"
    write_document(example_document(), folder)
    return folder


def test_writes_these_files_and_names_them(folder):
    assert set(os.listdir(folder)) == NAMES
    paths = write_document(example_document(), str(folder), "report")
    assert {path.name for path in paths} == NAMES
    assert paths[0] == folder / "report.html"
    assert set(os.listdir(folder)) == NAMES


def test_page_is_the_page(folder):
    page = (folder / "report.html").read_bytes()
    assert page == render_page(example_document()).encode()
    assert b"\r" not in page


def test_json_is_the_document_without_pictures(folder):
    data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    document = example_document()
    assert list(data) == ["title", "lead", "facts", "sections", "evidence"]
    assert data["evidence"]["radial, SF"] == document["evidence"]["radial, SF"]
    table, original = (d["sections"][0]["tables"][0] for d in (data, document))
    assert table == original
    for section in data["sections"]:
        for figure in section["figures"]:
            assert set(figure) == {"id", "caption", "alt"}
    rows = data["sections"][1]["tables"][0]["rows"]
    assert rows[0]["ours"] == 0.799
    assert rows[4]["ours"] is None  # NaN, which JSON does not have
    assert rows[5]["change"] == "-Infinity"


def test_only_figures_lose_their_pictures():
    columns = [make_column("png"), make_column("chart")]
    rows = [{"png": "a", "chart": "b"}]
    document = make_document(
        "T",
        "",
        sections=[make_section("s", "S", tables=[make_table("t", "c", columns, rows)])],
        evidence={"png": make_evidence("E", columns, rows)},
    )
    data = json.loads(document_json(document))
    assert data["sections"][0]["tables"][0]["rows"] == rows
    assert data["evidence"]["png"]["rows"] == rows


def test_csv_has_values_texts_and_marks(folder):
    rows = read_csv(folder / "report-accuracy.csv")
    assert len(rows) == 4
    assert rows[0] == {
        "data": "radial",
        "no adaptation": "0.354",
        "no adaptation [text]": "0.354 ± 0.012",
        "no adaptation [mark]": "",
        "SF": "0.799",
        "SF [text]": "0.799 ± 0.012",
        "SF [mark]": "helps",
        "PSF": "0.42",
        "PSF [text]": "0.420 ± 0.012",
        "PSF [mark]": "helps",
    }


def test_csv_keeps_all_digits_and_plain_columns_plain(folder):
    rows = read_csv(folder / "report-paper.csv")
    assert list(rows[0]) == ["cell", "paper", "ours", "change", "verdict", "note"]
    assert [row["verdict"] for row in rows[:4]] == [
        "agrees",
        "differs",
        "agrees",
        "not reproduced",
    ]
    assert float(rows[0]["change"]) == 100 * (0.799 - 0.779) / 0.779
    assert math.isnan(float(rows[4]["ours"]))
    assert float(rows[5]["change"]) == -math.inf
    assert rows[5]["cell"] == f"class {SCRIPT}"
    assert rows[5]["note"] == ""


def test_csv_quotes():
    table = make_table(
        "t", "c", [make_column("a,b")], [{"a,b": 'x "y"\nz'}, {"a,b": make_cell(value=2)}]
    )
    assert table_csv(table) == '"a,b"\n"x ""y""\nz"\n2\n'


def test_ids_of_any_text_make_safe_names(tmp_path):
    ids = [SCRIPT, "../up", "a/b", "A/B"]
    tables = [make_table(one, "c", [make_column("k")], []) for one in ids]
    document = make_document("T", "", sections=[make_section("s", "S", tables=tables)])
    write_document(document, tmp_path / "out", "x")
    assert os.listdir(tmp_path) == ["out"]
    assert set(os.listdir(tmp_path / "out")) == {
        "x.html",
        "x.json",
        "x.md",
        "x-script-alert-1-script.csv",
        "x-up.csv",
        "x-a-b.csv",
        "x-A-B-2.csv",
    }


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".", "..", "a\\b", None])
def test_name_is_no_path(name, tmp_path):
    with pytest.raises(ValueError, match="name must be the start of a file's name"):
        write_document(example_document(), tmp_path, name)
    assert os.listdir(tmp_path) == []


def test_page_too_large_keeps_the_data(tmp_path):
    with pytest.raises(PageTooLargeError):
        write_document(example_document(), tmp_path, max_bytes=1000)
    assert set(os.listdir(tmp_path)) == NAMES - {"report.html"}


def test_failed_write_leaves_the_old_file_and_no_scraps(monkeypatch, tmp_path):
    (tmp_path / "report.json").write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_document(example_document(), tmp_path)
    assert os.listdir(tmp_path) == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "old"


def test_half_a_surrogate_pair_is_a_question_mark(tmp_path):
    table = make_table("t", "c", [make_column("k")], [{"k": "a\ud800"}])
    document = make_document("T", "", sections=[make_section("s", "S", tables=[table])])
    for path in write_document(document, tmp_path):
        assert "a?" in path.read_text(encoding="utf-8")


def test_cells_stay_in_their_cells():
    columns = [make_column("a|b"), make_column("n", numeric=True, digits=2), make_column("mark")]
    rows = [
        {"a|b": "x | y\nz", "n": 0.5, "mark": make_cell(mark="helps")},
        {"a|b": "back\\slash", "n": make_cell("1.0", value=1.0, mark="harms")},
        {"a|b": make_cell("t", mark="agrees"), "n": make_cell("0", value=0, mark="unclear")},
    ]
    assert table_markdown(make_table("t", "The\ncaption", columns, rows)).splitlines() == [
        "The caption",
        "",
        "| a\\|b | n | mark |",
        "|---|---:|---|",
        "| x \\| y z | 0.50 | helps |",
        "| back\\\\slash | 1.0 ↓ |  |",
        "| t agrees | 0 |  |",
    ]


def test_a_whole_document():
    document = make_document(
        "Title",
        "Lead.",
        facts=[("seed", "0")],
        sections=[make_section("s", "Section", paragraphs=["One.", "Two."])],
    )
    assert document_markdown(document) == (
        "# Title\n\nLead.\n\n- seed: 0\n\n## Section\n\nOne.\n\nTwo.\n"
    )
    example = example_document()
    text = document_markdown(example)
    for section in example["sections"]:
        assert f"## {section['title']}" in text
