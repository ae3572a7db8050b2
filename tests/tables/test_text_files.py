"""Work ahead: order, errors, and an end that waits for nothing."""

import threading

import pytest

from covshift.tables.text_files import map_ahead, read_ahead


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
