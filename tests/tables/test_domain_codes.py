"""Numbers of domains, by name."""

import pandas as pd

from covshift.tables.domain_codes import code_domains, known_numbers


def test_a_name_in_a_later_table_is_that_of_the_target():
    names = {0: "A", 1: "B", -1: "A (new)", -2: "C"}
    assert known_numbers(names) == {"A": -1, "B": 1, "A (new)": -1, "C": -2}


def test_too_many_domains_are_said():
    def notes_of(names):
        notes = []
        train, new = pd.DataFrame({"site": names}), pd.DataFrame({"site": ["new"]})
        code_domains(train, new, "site", notes)
        return notes

    assert "has 4 values in 6 training rows: too few rows" in notes_of(list("abcdda"))[0]
    assert notes_of(list("abccba")) == []


def test_without_a_domain_column_all_new_rows_are_one_target():
    sources, targets, names = code_domains([1, 2], [3], None, [])
    assert (sources.tolist(), targets.tolist()) == ([0, 0], [-1])
    assert names == {0: "training", -1: "new"}
