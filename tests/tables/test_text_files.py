"""Work ahead: order, errors, and an end that waits for nothing."""

import threading

import numpy as np
import pytest

from covshift.solvers.threads import map_ahead, read_ahead
from covshift.tables import TableError, read_pair, read_table, text_files


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_items", [0, 1, 20])
def test_results_come_in_the_order_of_the_items(n_threads, n_items):
    found = list(map_ahead(lambda item: item**2, range(n_items), n_threads))
    assert found == [item**2 for item in range(n_items)]
    assert list(read_ahead(range(n_items))) == list(range(n_items))


def test_an_error_comes_where_its_item_would():
    results = map_ahead(lambda item: 6 // item, [3, 2, 0, 1], 1)
    assert [next(results), next(results)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("read", [map_ahead, read_ahead], ids=["map", "read"])
def test_an_end_before_the_last_item_does_not_wait_for_work_in_progress(read):
    """The garbage collector may end the iterator in a thread that must not wait."""
    busy, may_end, closed = threading.Event(), threading.Event(), threading.Event()

    def work(item):
        if item:
            busy.set()
            assert may_end.wait(60)
        return item

    def items():
        try:
            yield from map(work, range(100))
        finally:
            closed.set()

    results = map_ahead(work, range(100), 1) if read is map_ahead else read_ahead(items())
    holder = [results]
    starter = threading.Thread(target=lambda: next(holder[0]))
    starter.start()  # the first result comes when three items wait
    assert busy.wait(60)
    starter.join(60)
    del results
    ender = threading.Thread(target=holder.clear, daemon=True)
    ender.start()
    ender.join(5)
    waited = ender.is_alive()
    may_end.set()
    ender.join(60)
    assert not waited
    if read is read_ahead:
        assert closed.wait(60)  # with the work in progress


BEGINNING = "name,size\n" + "Rome,1.5\n" * 50


RESTS = {
    "as before": b"Oslo,2\n" * 50,
    "a quote": b'"Oslo, north",2\n' * 3 + b"Bonn,3\n" * 50,
    "a line break in quotes": b'"Oslo\nnorth",2\n' + b"Bonn,3\n" * 50,
    "an unmatched quote": b"Bonn,3\n" * 5 + b'"Oslo,3\n' * 1,
    "an accent": "Köln,3\n".encode() * 50,
    "another encoding": "Köln,3\n".encode("cp1252") * 50,
    "no encoding": b"K\x81ln\xf6,3\n" * 5,
    "NUL": b"Oslo,2\n" * 20 + b"Os\0o,2\n",
    "a row too long": b"Oslo,2\n" * 50 + b"Oslo,2,3\n",
    "text among the numbers": b"Oslo,2\n" * 50 + b"Oslo,unknown\n",
    "cut in a character": b"Oslo,2\n" * 50 + "Köln".encode()[:2],
}


def outcome(path):
    """Return what is read, or the message."""
    try:
        table = read_table(path)
    except TableError as error:
        return str(error)
    return table.frame.to_dict("list"), table.schema, table.notes


@pytest.mark.parametrize("beginning", [BEGINNING, '"x",y\n' + "1,2\n" * 50])
@pytest.mark.parametrize("rest", RESTS.values(), ids=RESTS.keys())
def test_a_long_file_is_read_as_if_all_of_it_had_been_looked_at_first(
    tmp_path, monkeypatch, beginning, rest
):
    path = tmp_path / "long.csv"
    path.write_bytes(beginning.encode() + rest)
    expected = outcome(path)  # all of the file is its beginning
    monkeypatch.setattr(text_files, "SAMPLE_BYTES", 200)
    assert str(outcome(path)) == str(expected)


@pytest.fixture
def bytes_read(monkeypatch):
    """Count the bytes that are read of each file, by its name."""
    counts = {}

    def open_and_count(path, compressed):
        file = path.open("rb")
        read = file.read

        class Counted:
            tell, close = file.tell, file.close
            __enter__ = lambda self: self  # noqa: E731
            __exit__ = lambda self, *error: file.close()  # noqa: E731

            def read(self, size=-1):
                block = read(size)
                counts[path.name] = counts.get(path.name, 0) + len(block)
                return block

        return Counted()

    monkeypatch.setattr(text_files, "_open_bytes", open_and_count)
    return counts


@pytest.mark.parametrize(
    ("cells", "last"),
    [
        ("{0:.3f},Oslo,{1}", "1,Oslo,1"),
        ('"{0:.3f}","Oslo, north",{1}', "1,Oslo,1"),
        ("{0:.3f} kg,2024-05-01,{1}.0", "1,2024-05-02,1.0"),
        ("{0:.3f},Oslo,{1}", "-,Oslo,1"),
        ("{0:.3f},Oslo,{1}", " 1 ,Oslo,1"),
    ],
    ids=["plain", "quotes", "units, and classes with a point", "a placeholder", "spaces"],
)
def test_a_long_training_table_is_read_twice(tmp_path, bytes_read, cells, last):
    rng = np.random.default_rng(0)
    n_rows = 150_000
    drawn = zip(rng.normal(size=n_rows).tolist(), rng.integers(2, size=n_rows), strict=True)
    lines = [*(cells.format(*pair) for pair in drawn), last]
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("\n".join(["size,place,label", *lines, ""]))
    new.write_text("\n".join(["size,place", *(line.rpartition(",")[0] for line in lines[:50]), ""]))
    tables = read_pair(train, new, label="label")
    assert len(tables.X_train) == len(lines)
    assert set(map(str, tables.y)) == {line.rpartition(",")[2] for line in lines}
    size = train.stat().st_size
    # Its beginning, of a megabyte, is read twice more.
    assert 2 * size <= bytes_read["train.csv"] <= 2 * size + (2 << 20) + 5000


def test_an_error_closes_the_items_while_its_traceback_is_kept():
    """The traceback may be part of a cycle, which only the garbage collector would end."""
    closed = threading.Event()

    def items():
        try:
            yield from range(100)
        finally:
            closed.set()

    with pytest.raises(ZeroDivisionError) as caught:
        list(map_ahead(lambda item: 6 // item, read_ahead(items()), 2))
    assert caught.tb is not None
    assert closed.wait(60)
