"""Separators, headers and what stands above them."""

import pytest

from covshift.tables import TableError, read_table, text_layout
from covshift.tables.text_layout import GivenLayout, _numbered_rows, find_layout


@pytest.mark.parametrize(
    "text",
    [
        'age,city\n"1",30,"Oslo"\n"2",40.5,"Rome"\n',  # R's write.table(sep = ",")
        '"age" "city"\n"1" 30 "Oslo"\n"2" 40.5 "Rome"\n',  # R's write.table
        "age city\n30 Oslo\n40.5 Rome\n",  # R's write.table(row.names = FALSE, quote = FALSE)
        "age,city\n30,Oslo,\n40.5,Rome,\n",  # every row ends in a separator
    ],
)
def test_headers_with_one_cell_fewer(write, text):
    frame = read_table(write(text)).frame
    assert frame.to_dict("list") == {"age": [30.0, 40.5], "city": ["Oslo", "Rome"]}


def test_words_in_one_column_are_not_cut(write):
    frame = read_table(write("full name\nAda Lovelace\nAlan Turing\n")).frame
    assert frame["full name"].tolist() == ["Ada Lovelace", "Alan Turing"]


def test_a_file_without_header(write):
    frame = read_table(write("30,Oslo\n40.5,Rome\n"), header=False).frame
    assert frame.to_dict("list") == {"column 1": [30.0, 40.5], "column 2": ["Oslo", "Rome"]}
    with pytest.raises(TableError, match="--no-header"):
        read_table(write("1,2.5\n3,4\n"))


def test_the_separator_of_a_single_row():
    assert text_layout._best_separator("a;b\n", True) == ";"
    assert text_layout._best_separator("a\n", True) is None


def layout_of(text, complete=True, **given):
    return find_layout(text, GivenLayout(**given), complete=complete)


def test_a_first_row_is_one_of_names_unless_told_otherwise():
    assert layout_of("a,b\n1,2\n").names == ("a", "b")
    assert layout_of("a,b\n1,2\n", header=False).names == ("", "")
    with pytest.raises(TableError, match="--no-header"):
        layout_of("1.5,2.25\n3,4\n")


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["1,2,", "3,4,"], ("a", "b", "")),  # every row ends in a separator
        (["1,2,5", "3,4,6"], None),  # row names
        (["1,2,", "3,4,6"], None),
    ],
)
def test_a_name_fewer_than_cells_is_one_of_row_names_or_of_nothing(rows, names):
    found = layout_of("\n".join(["a,b", *rows, ""]))
    assert (found.names == names) if names else "row names" in found.notes[-1]


def test_names_that_repeat_are_not_those_below_a_title():
    assert layout_of("Report\na,a,b\n1,2,3\n4,5,6\n").names == ("Report",)
    found = layout_of("Report\na,c,b\n1,2,3\n4,5,6\n")
    assert found.names == ("a", "c", "b")
    assert "Skipped 1 line above" in found.notes[0]


def test_a_comment_with_separators_may_stand_above():
    found = layout_of("# one, two, three, four, five\na,b,c\n1,2,3\n4,5,6\n")
    assert found.names == ("a", "b", "c")


def test_the_last_row_of_a_beginning_is_left_out():
    """It may be cut; a text of one row alone stays."""
    assert [row for row, _ in _numbered_rows("a,b\n1,2\n3,", ",", False)] == [
        ["a", "b"],
        ["1", "2"],
    ]
    assert [row for row, _ in _numbered_rows("a,b\n1,2\n3,", ",", True)][-1] == ["3", ""]
    assert _numbered_rows("a,", ",", False) == [(["a", ""], 1)]
