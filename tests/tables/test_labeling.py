"""Labeling rows one by one: the file, what comes next, what is taken back."""

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.tables import TableClassifier, TableError, labeling, match_tables
from covshift.tables.label_files import read_new_labels
from covshift.tables.labeling import LabelingSession
from covshift.tables.monitoring_series import monitor_series
from tests.tables.test_monitoring_series import rows, say_estimate, write


@pytest.fixture(autouse=True)
def estimated(monkeypatch):
    monkeypatch.setattr(labeling, "estimate_score", say_estimate)


@pytest.fixture(scope="module")
def tables():
    return match_tables(rows(200), rows(150, seed=1).drop(columns="label"), label="label")


@pytest.fixture(scope="module")
def model(tables):
    return TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(tables)


@pytest.fixture
def new(tmp_path):
    return write(tmp_path / "new.csv", rows(150, seed=1))  # with labels, which are not shown


def start(model, new, n_rows=6, name="labels.csv", **options):
    return LabelingSession(model, new, new.parent / name, n_rows=n_rows, **options)


def test_labels_are_in_the_file_as_they_are_given(model, tables, new):
    session = start(model, new)
    out = session.out
    assert out.read_text() == "row_to_label,label\n"
    state = session.state()
    frame = rows(150, seed=1)
    for number, row in enumerate(session.rows):
        assert state["given"] == number
        shown = state["row"]
        assert shown["number"] == row
        assert [name for name, _ in shown["cells"]] == ["a", "b"]
        assert float(shown["cells"][0][1]) == pytest.approx(frame["a"][row - 1])
        assert shown["predicted"] == model.predict(frame[row - 1 : row])[0]
        assert sum(shown["probabilities"]) == pytest.approx(1, abs=1e-3)
        state = session.give(row, number % 2)
        assert out.read_text().splitlines()[-1] == f"{row},{['no', 'yes'][number % 2]}"
    assert state["row"] is None
    assert [one["labels"] for one in state["trail"]] == list(range(7))
    read = read_new_labels(tables, out)
    assert (read.rows + 1).tolist() == session.rows
    assert read.labels.tolist() == ["no", "yes"] * 3


def test_monitor_reads_the_file(model, new, monkeypatch):
    session = start(model, new)
    for row in session.rows:
        session.give(row, 0)
    monkeypatch.setattr("covshift.tables.table_models.estimate_score", say_estimate)
    (one,) = monitor_series(model, [new], labels=session.out)["batches"]
    assert one["n_labels"] == 6


def test_a_second_session_goes_on(model, new):
    first = start(model, new)
    for row in first.rows[:3]:
        first.give(row, 1)
    again = start(model, new)
    assert again.state()["given"] == 3
    assert again.state()["row"]["number"] == first.rows[3]
    more = start(model, new, 9)
    assert more.rows[:6] == first.rows
    assert start(model, new, seed=1, name="other.csv").rows != first.rows


def test_the_last_step_is_taken_back(model, new):
    session = start(model, new)
    first, second, third = session.rows[:3]
    session.give(first, 0)
    session.skip(second)
    assert session.state()["row"]["number"] == third
    assert session.undo()["row"]["number"] == second
    assert session.undo()["row"]["number"] == first
    assert session.out.read_text() == "row_to_label,label\n"
    assert session.undo()["given"] == 0  # nothing is left
    session.give(first, 0)
    again = start(model, new)
    assert again.undo()["row"]["number"] == first
    assert again.state()["trail"][-1]["labels"] == 0


def test_skipped_rows_come_back_in_the_next_session(model, new):
    session = start(model, new, 2)
    session.skip(session.rows[0])
    session.give(session.rows[1], 0)
    assert session.state()["row"] is None
    assert start(model, new, 2).state()["row"]["number"] == session.rows[0]


def test_a_row_keeps_its_first_label_and_others_are_refused(model, new):
    session = start(model, new)
    row = session.rows[0]
    session.give(row, 0)
    session.give(row, 1)
    assert session.out.read_text() == f"row_to_label,label\n{row},no\n"
    with pytest.raises(ValueError, match="not one of the rows"):
        session.give(10**6, 0)
    with pytest.raises(ValueError, match="no class number 2"):
        session.give(session.rows[1], 2)


def test_a_line_cut_short_by_a_kill_is_dropped(model, new):
    session = start(model, new)
    session.give(session.rows[0], 0)
    with session.out.open("a") as file:
        file.write(f"{session.rows[1]},ye")
    again = start(model, new)
    assert again.state()["given"] == 1
    again.give(session.rows[1], 1)
    assert session.out.read_text().splitlines()[1:] == [
        f"{session.rows[0]},no",
        f"{session.rows[1]},yes",
    ]


def test_labels_of_other_rows_in_the_file_stay(model, new):
    out = new.parent / "labels.csv"
    session = start(model, new)
    other = next(row for row in range(1, 151) if row not in session.rows)
    out.write_text(f"row_to_label,label\n{other},yes\n")
    session = start(model, new)
    session.give(session.rows[0], 0)
    session.undo()
    session.undo()
    assert out.read_text() == f"row_to_label,label\n{other},yes\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "is another file"),
        ("something", "is another file"),
        ("row_to_label,label\n1,maybe\n", "is not a number of a row and one of 'no', 'yes'"),
        ("row_to_label,label\nx,yes\n", "is not a number of a row"),
        ("row_to_label,label\n007,yes\n", "is not a number of a row"),
        ("row_to_label,label\n\N{ARABIC-INDIC DIGIT SEVEN},yes\n", "is not a number of a row"),
        (f"row_to_label,label\n{'9' * 5000},yes\n", "is not a number of a row"),
        ("row_to_label,label\n0,yes\n", "row 0 is not a row of new.csv, whose last is 150"),
        ("row_to_label,label\n151,yes\n", "row 151 is not a row of new.csv, whose last is 150"),
        ("row_to_label,label\n3,yes\n4,no\n3,no\n", "row 3 has two labels, 'yes', 'no': remove"),
    ],
)
def test_files_that_cannot_be_gone_on_with_are_not_touched(model, new, text, words):
    out = new.parent / "labels.csv"
    out.write_text(text)
    with pytest.raises(TableError, match=words):
        start(model, new)
    assert out.read_text() == text


def test_a_label_that_is_in_the_file_twice_counts_once(model, new):
    (new.parent / "labels.csv").write_text("row_to_label,label\n3,yes\n3,yes\n")
    assert start(model, new).labels == {3: "yes"}


def test_labels_as_a_spreadsheet_writes_them(model, new):
    out = new.parent / "labels.csv"
    out.write_text('"row_to_label","label"\n"3","Yes"\n"4","no"\n')
    session = start(model, new, 150)
    assert session.labels == {3: "yes", 4: "no"}
    session.undo()
    assert out.read_text() == '"row_to_label","label"\n"3","Yes"\n'
    session.undo()
    assert out.read_text() == '"row_to_label","label"\n'


def test_models_whose_labels_are_ranges_are_refused(new):
    frame = rows(100).drop(columns="label")
    tables = match_tables(frame.assign(z=np.arange(100.0)), frame, label="z", bins=2)
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(tables)
    with pytest.raises(TableError, match="--bins"):
        start(model, new)


def test_a_table_with_fewer_rows_than_asked_for(model, tmp_path):
    new = write(tmp_path / "new.csv", pd.DataFrame({"a": [1.0, 2], "b": [0.0, 1]}))
    assert sorted(start(model, new, 20).rows) == [1, 2]


def test_cells_are_those_of_their_row_wherever_the_file_is_cut(tmp_path):
    path = tmp_path / "table.csv"
    n_rows = 200_000  # more than one part
    path.write_text("a,label\n" + "".join(f"{1.5 * row},\n" for row in range(1, n_rows + 1)))
    numbers = [1, 3, 150_000, n_rows]
    found = labeling._read_cells(path, numbers, "label", {})
    assert {row: float(cells[0][1]) for row, cells in found.items()} == {
        row: 1.5 * row for row in numbers
    }
