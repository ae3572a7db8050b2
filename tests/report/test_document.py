"""The dict: what is a document, and what is said of one that is not."""

import copy
import math

import numpy as np
import pytest

from covshift.report.document import (
    MARKS,
    format_number,
    full_cell,
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_figure,
    make_section,
    make_table,
    shown_text,
    sort_value,
    validate_document,
)
from covshift.report.page import unique_slugs
from tests.report.example import SCRIPT, example_document

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.fixture
def document():
    """A small document that a test may spoil."""
    return {
        "title": "Title",
        "lead": "Lead.",
        "facts": [("Date", "today")],
        "sections": [
            {
                "id": "one",
                "title": "One",
                "paragraphs": ["Text."],
                "tables": [
                    {
                        "id": "table",
                        "caption": "Caption",
                        "columns": [
                            {"key": "name", "label": "name"},
                            {"key": "score", "label": "score", "numeric": True, "help": "Mean"},
                        ],
                        "rows": [
                            {"name": "a", "score": 1},
                            {"name": "b", "score": {"value": 2.5, "evidence": "trials"}},
                        ],
                    }
                ],
                "figures": [{"id": "figure", "caption": "Caption", "alt": "Alt", "png": PNG}],
            }
        ],
        "evidence": {
            "trials": {
                "title": "Trials",
                "columns": [{"key": "seed", "label": "seed", "numeric": True}],
                "rows": [{"seed": 0}],
            }
        },
    }


def test_plain_dicts_and_the_example_are_documents(document):
    validate_document(document)
    validate_document(example_document())


def test_example_has_every_mark():
    marks = {
        cell.get("mark")
        for section in example_document()["sections"]
        for table in section["tables"]
        for row in table["rows"]
        for cell in row.values()
        if isinstance(cell, dict)
    }
    assert marks >= set(MARKS)


def test_builders_make_what_the_types_say(document):
    table = make_table(
        "table",
        "Caption",
        [make_column("name"), make_column("score", numeric=True, help="Mean")],
        [
            {"name": "a", "score": 1},
            {"name": "b", "score": make_cell(value=2.5, evidence="trials")},
        ],
    )
    built = make_document(
        "Title",
        "Lead.",
        facts=[("Date", "today")],
        sections=[
            make_section(
                "one",
                "One",
                paragraphs=["Text."],
                tables=[table],
                figures=[make_figure("figure", "Caption", "Alt", png=PNG)],
            )
        ],
        evidence={
            "trials": make_evidence("Trials", [make_column("seed", numeric=True)], [{"seed": 0}])
        },
    )
    assert (
        built["sections"][0]["tables"][0]["rows"] == (document["sections"][0]["tables"][0]["rows"])
    )
    for part in ("title", "lead", "facts"):
        assert built[part] == document[part]
    assert built["sections"][0]["figures"] == document["sections"][0]["figures"]


def place(document, *path):
    for step in path:
        document = document[step]
    return document


TABLE = ("sections", 0, "tables", 0)
ROW = (*TABLE, "rows", 1)
FIGURE = ("sections", 0, "figures", 0)
SPOILS = {
    "no title": ((), "title", "", "the title: a name must not be empty"),
    "empty id": (TABLE, "id", " ", "tables: a name must not be empty"),
    "column twice": ((*TABLE, "columns", 1), "key", "name", "'name' must be unique"),
    "unknown column": (ROW, "scores", 1, "row 1, 'scores' is not a column of the table; those are"),
    "text in numbers": (ROW, "score", "2.5", "row 1, 'score': the column is numeric"),
    "no value": (ROW, "score", {"text": "2.5 ± 1"}, "must say what it sorts by"),
    "text as value": (ROW, "score", {"value": "2.5"}, "must say what it sorts by"),
    "mark": (ROW, "name", {"text": "b", "mark": "good"}, "mark must be one of agrees"),
    "no evidence": (ROW, "score", {"value": 1, "evidence": "x"}, "refers to evidence 'x', which"),
    "no alt": (FIGURE, "alt", "", "alt: a name must not be empty"),
    "evidence chain": (
        ("evidence", "trials", "rows"),
        0,
        {"seed": {"value": 1, "evidence": "trials"}},
        "evidence 'trials' refers to evidence: only tables may",
    ),
    "evidence rows": (("evidence", "trials", "rows"), 0, {"a": 1}, "evidence 'trials', row 0, 'a'"),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_what_is_wrong_is_said_with_its_place(spoil, document):
    path, key, value, message = spoil
    place(document, *path)[key] = value
    with pytest.raises(ValueError, match=message):
        validate_document(document)


@pytest.mark.parametrize("kind", ["tables", "figures", None])
def test_ids_are_unique_in_the_whole_document(kind, document):
    other = copy.deepcopy(document["sections"][0])
    other["id"] = "two" if kind else "one"
    for each in {"tables", "figures"} - {kind}:
        other[each] = []
    document["sections"].append(other)
    with pytest.raises(ValueError, match="must be unique"):
        validate_document(document)


@pytest.mark.parametrize("pictures", [{}, {"png": PNG, "chart": {"points": [], "levels": []}}])
def test_a_figure_has_one_picture(pictures):
    with pytest.raises(ValueError, match="figure 'a' must have either png or chart"):
        make_figure("a", "Caption", "Alt", **pictures)


def test_none_as_value_is_not_the_same_as_no_value():
    assert make_cell("n/a", value=None) == {"text": "n/a", "value": None}
    assert make_cell("n/a") == {"text": "n/a"}


@pytest.mark.parametrize(
    ("cell", "digits", "text", "key"),
    [
        ("a", None, "a", "a"),
        (None, None, "", None),
        (3, 2, "3", 3),
        (0.5, 3, "0.500", 0.5),
        (0.123456, None, "0.1235", 0.123456),
        (np.float32(0.5), 1, "0.5", 0.5),
        (np.int64(7), None, "7", 7),
        (math.nan, 3, "NaN", None),
        (math.inf, 3, "∞", math.inf),
        ({"text": "n/a", "value": None}, None, "n/a", None),
        ({"text": ".78 ± .03", "value": 0.78}, None, ".78 ± .03", 0.78),
        ({"text": "high", "value": "2"}, None, "high", "2"),
        ({"value": "2"}, None, "2", "2"),
        ({"mark": "best"}, None, "", "best"),
        ({"text": "", "mark": "best"}, None, "", "best"),
    ],
)
def test_what_a_cell_shows_and_sorts_by(cell, digits, text, key):
    full, column = full_cell(cell), make_column("key", digits=digits)
    assert shown_text(full, column) == text
    assert sort_value(full) == key
    assert type(sort_value(full)) is type(key)  # a number of Python, not of NumPy


def test_numbers_keep_their_decimals():
    assert [format_number(value, 3) for value in (0.1, -2.0, 1234.5678)] == [
        "0.100",
        "-2.000",
        "1234.568",
    ]


def test_slugs_are_fit_for_anchors_and_files():
    ids = ["a b", "a-b", "A B", "a-b-2", SCRIPT, "../../etc", "é", "猫", "犬", "x" * 200, "-"]
    slugs = unique_slugs(ids)
    assert list(slugs) == ids
    assert len({slug.lower() for slug in slugs.values()}) == len(ids)
    for slug in slugs.values():
        assert slug.isascii()
        assert set(slug) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert 0 < len(slug) <= 63
        assert not slug.startswith(".")
    assert slugs["a b"] == "a-b"
    assert slugs["é"] == "e"
