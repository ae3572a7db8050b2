"""Separators, headers and what stands above them."""

import pytest

from covshift.tables import (
    TableError,
    read_table,
    text_layout,
)


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
