import threading
import warnings

import pytest

from covshift.experiments.recorded_warnings import MAX_KINDS, OTHERS, recorded_warnings


def test_counts_each_kind_and_restores_what_was():
    before = warnings.showwarning, list(warnings.filters)
    with recorded_warnings() as counts:
        for _ in range(3):
            warnings.warn("same", UserWarning, stacklevel=1)
        warnings.warn("same", RuntimeWarning, stacklevel=1)
    assert counts == {("UserWarning", "same"): 3, ("RuntimeWarning", "same"): 1}
    assert (warnings.showwarning, list(warnings.filters)) == before
    with pytest.warns(UserWarning, match="seen"):  # and they come through again
        warnings.warn("seen", UserWarning, stacklevel=1)


def test_blocks_in_several_threads_keep_their_own():
    before = warnings.showwarning, list(warnings.filters)
    both = threading.Barrier(2, timeout=10)
    found = {}

    def task(name, first_out):
        with recorded_warnings() as counts:
            both.wait()
            for _ in range(50):
                warnings.warn(name, UserWarning, stacklevel=1)
            both.wait()
            if not first_out:
                leaver.join(10)
                warnings.warn("late", UserWarning, stacklevel=1)
        found[name] = counts

    leaver = threading.Thread(target=task, args=("a", True))
    stayer = threading.Thread(target=task, args=("b", False))
    for thread in (leaver, stayer):
        thread.start()
    for thread in (leaver, stayer):
        thread.join(10)
    assert found["a"] == {("UserWarning", "a"): 50}
    assert found["b"] == {("UserWarning", "b"): 50, ("UserWarning", "late"): 1}
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_threads_of_a_task_count_for_it():
    with recorded_warnings() as counts:
        thread = threading.Thread(target=warnings.warn, args=("inner",))
        thread.start()
        thread.join(10)
    assert counts == {("UserWarning", "inner"): 1}


def test_the_list_stays_short():
    with recorded_warnings() as counts:
        for number in range(100):
            warnings.warn(f"{number} " * 1000, UserWarning, stacklevel=1)
    assert len(counts) == MAX_KINDS + 1
    assert counts[OTHERS] == 100 - MAX_KINDS
    assert max(len(message) for _, message in counts) <= 300
