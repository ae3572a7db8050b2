"""Two ways to the same rows, and to the same features, held against each other."""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from covshift.solvers.threads import map_ahead, read_ahead
from covshift.tables import TableEncoder, TableError, TableSchema, open_table
from covshift.tables.columns import READ_TYPES, to_frame
from covshift.tables.text_files import TextBatches, TextFile
from covshift.tables.text_layout import GivenLayout

NUMBERS = ["1", "-2.5", "1e3", " 7 ", "1,5", "007", "inf", "-1e400"]
DATES = ["2024-05-01", "2024-05-01T10:00:00Z", "1969-12-31 23:59:59.5", "01/02/2024"]
WORDS = ["x", " x", "x ", "é", "New York", "True", "false", "0", "", "  ", "NA", "(other)"]
KINDS = {"a": "number", "b": "text", "c": "date", "d": "boolean"}
USUAL = {
    "a": ["1", "2.5", "-3", ""],
    "b": ["x", "y", "é", ""],
    "c": DATES[:1],
    "d": ["true", "0", ""],
}
cells = {
    name: st.one_of(*[st.sampled_from(usual)] * 8, st.sampled_from(NUMBERS + DATES + WORDS))
    for name, usual in USUAL.items()
}
rows = st.lists(st.tuples(*cells.values()).map(";".join), min_size=1, max_size=40)
ragged = st.sampled_from(["1;2", "", "1;2;3;4;5"])
line_ends = st.sampled_from(["\n", "\n", "\r\n", "\r"])


def written(folder, lines):
    path = Path(folder, "table.csv")
    path.write_bytes("".join(["a;b;c;d\n", *lines]).encode())
    return path


def outcome(batches):
    """Return the rows, or None where they are refused."""
    try:
        return [row for batch in batches for row in batch.to_pylist()]
    except TableError:
        return None


@settings(max_examples=150, deadline=None, database=None)
@example(lines=[(["1;x;2024-05-01;true"] * 3, "\r")], last="", chunk_bytes=20)
@given(
    lines=st.lists(st.tuples(st.one_of(rows, ragged.map(lambda row: [row])), line_ends)),
    last=st.sampled_from(["", "1;x;2024-05-01;true"]),
    chunk_bytes=st.integers(20, 400),
)
def test_blocks_are_the_stream(lines, last, chunk_bytes):
    text = [row + end for group, end in lines for row in group]
    with tempfile.TemporaryDirectory() as folder:
        source = TextBatches(written(folder, [*text, last]), False, GivenLayout(";"), 1)
        source.chunk_bytes = chunk_bytes
        types = {name: READ_TYPES[kind] for name, kind in KINDS.items()}
        for wanted in (types, {}):
            assert outcome(source._read_blocks(wanted)) == outcome(source._read_stream(wanted))


@pytest.mark.parametrize("ragged_row", ["1;2", "1;2;3;4;5"])
def test_a_refused_file_is_closed_while_its_error_is_kept(tmp_path, ragged_row, monkeypatch):
    path = written(tmp_path, ["1;x;;true\n"] * 20 + [f"{ragged_row}\n"] + ["1;x;;true\n"] * 200)
    source = TextBatches(path, False, GivenLayout(";"), 1)
    source.chunk_bytes = 20
    opened, open_file = [], TextFile.open
    monkeypatch.setattr(
        TextFile, "open", lambda *given: opened.append(open_file(*given)) or opened[-1]
    )
    with pytest.raises(TableError) as caught:
        list(source.read({}))
    assert caught.tb is not None
    end = time.monotonic() + 60
    while not all(stream.closed for stream in opened) and time.monotonic() < end:
        time.sleep(0.001)  # a thread that still reads closes its stream afterward
    assert [stream.closed for stream in opened] == [True, True]


@settings(max_examples=150, deadline=None, database=None)
@example(
    train=["1;True;2024-05-01;true"],
    new=["1;1;2024-05-01;true"],
    kinds=["number", "boolean", "date", "text"],
)
@given(train=rows, new=rows, kinds=st.permutations(list(KINDS.values())))
def test_batches_give_the_features_of_frames(train, new, kinds):
    """Also where the columns of the batch are of other kinds than the encoder's."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, [f"{row}\n" for row in (*train, "1;x;2024-05-01;true")])
        reader = open_table(path, schema=TableSchema(KINDS), separator=";")
        frame = next(iter(reader))
        encoder = TableEncoder(min_frequency=1, max_categories=3).fit(frame)
        path = written(folder, [f"{row}\n" for row in (*new, "1;x;2024-05-01;true")])
        for schema in (KINDS, dict(zip(KINDS, kinds, strict=True))):
            reader = open_table(path, schema=TableSchema(schema), separator=";")
            for batch, again in zip(reader.batches(), reader.batches(), strict=True):
                features = encoder.transform(batch)
                np.testing.assert_array_equal(features, encoder.transform(to_frame(again)))
                np.testing.assert_array_equal(features[3:], encoder.transform(batch.slice(3)))


@pytest.mark.parametrize("dictionary", [["x", None], ["x", " "], ["x", "y"]])
def test_categories_of_a_typed_file_are_read_as_text(tmp_path, dictionary):
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 1], pa.int32()), pa.array(dictionary, pa.string())
    )
    batch = pa.record_batch([column], names=["b"])
    with pa.ipc.new_file(str(tmp_path / "table.arrow"), batch.schema) as file:
        file.write_batch(batch)
    reader = open_table(tmp_path / "table.arrow", schema=TableSchema({"b": "text"}))
    second = dictionary[1] if dictionary[1] == "y" else None
    for batch in reader.batches():
        shown = [None if text is None else str(text) for text in batch.column("b").to_pylist()]
        assert shown == ["x", second, None, second]
    assert reader.empty_names == []


def test_batches_of_other_types_go_through_frames():
    frame_types = pa.record_batch([pa.array([1, 2]), pa.array(["x", "y"])], names=["a", "b"])
    encoder = TableEncoder(min_frequency=1).fit(frame_types.to_pandas())
    expected = encoder.transform(frame_types.to_pandas())
    np.testing.assert_array_equal(encoder.transform(frame_types), expected)


def test_results_come_in_order_and_errors_in_their_place():
    assert list(map_ahead(lambda x: 2 * x, range(50), 3)) == list(range(0, 100, 2))
    assert list(read_ahead(range(50))) == list(range(50))
    seen = []
    with pytest.raises(ZeroDivisionError):
        seen.extend(map_ahead(lambda x: 1 / (5 - x), read_ahead(range(50)), 2))
    assert len(seen) == 5


def test_reading_can_stop_early(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1.5,x\n" * 1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frames = iter(open_table(path, schema=TableSchema({"a": "number"}), chunk_bytes=1))
        assert len(next(frames)) > 100_000
        del frames
