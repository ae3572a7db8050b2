"""The fuzz itself: outcomes are distinguished, and a case is the same again."""

import faulthandler
import os
import signal
import time
from types import SimpleNamespace

import children
import fuzz
import numpy as np
import pytest

import covshift.measures


def raised(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:
        return fuzz.outcome_of(error)
    return "works"


def fail(message):
    raise ValueError(message)


def test_errors_are_told_apart():
    good = np.ones((5, 2))
    assert raised(covshift.measures.mmd, good, good, kernel="x") == "clear error"
    assert raised(covshift.measures.mmd, good, np.full((5, 2), np.nan)) == "clear error"
    assert raised(lambda: 1 / 0) == "unreadable"
    assert raised(np.concatenate, [good, np.ones(3)]) == "from below"
    assert raised(dict().__getitem__, "x") == "unreadable"
    assert raised(fail, "one two three " * 500) == "unreadable"  # pages of text
    assert raised(fail, "") == "unreadable"


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"exit_code": 0}, "works"),
        ({"exit_code": 3}, "works"),
        ({"exit_code": 2, "stderr": "Usage:\n--x"}, "clear error"),
        ({"exit_code": 1, "stderr": "covshift adapt: the file is empty.\n"}, "clear error"),
        ({"exit_code": 1, "stderr": "covshift adapt: a b c (--debug shows where)\n"}, "from below"),
        ({"exit_code": 1, "stderr": "covshift adapt: 'x' (--debug shows where)\n"}, None),
        ({"exit_code": 1, "stderr": "one\ntwo\n"}, None),
        ({"exit_code": 1, "stderr": "covshift adapt: it is \x1b[31m red\n"}, None),
        ({"exit_code": 1, "stderr": "covshift adapt: a b c\n", "stdout": "x"}, None),
        ({"exit_code": 1, "stderr": "Traceback (most recent call last)\n"}, None),
        ({"exit_code": 130}, None),
    ],
)
def test_ends_of_commands_are_told_apart(result, outcome):
    ended = SimpleNamespace(**{"stdout": "", "stderr": "", "exception": None, **result})
    told = {}
    if outcome is None:
        with pytest.raises((AssertionError, ValueError)):
            fuzz.check_command(ended, set(), told)
    else:
        fuzz.check_command(ended, set(), told)
        assert told["outcome"] == outcome
        if ended.exit_code in (1, 2):
            with pytest.raises(AssertionError, match="left"):
                fuzz.check_command(ended, {"scrap"}, told)


def test_results_must_be_finite_and_complete():
    rows = np.ones((3, 2))
    fuzz.check_result(np.ones(3), rows, {})
    fuzz.check_result(np.array([np.nan] * 3), np.full((3, 2), np.nan), {})
    for result in (np.array([1, np.inf, 0]), np.ones(2)):
        with pytest.raises(AssertionError):
            fuzz.check_result(result, rows, {})


def test_every_fault_applies_to_good_input():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 3))
    unlike = [name for name, fault in fuzz.row_faults().items() if fault(rng, rows) is rows]
    assert unlike == []
    labels = np.arange(20) % 3
    for fault in fuzz.column_faults().values():
        assert fault(rng, labels) is not labels
    content = b"age,churned\n30.5,yes\nOslo,no\nRome,yes\nBonn,no\n0.5,no\n"
    for name, fault in fuzz.file_faults().items():
        assert isinstance(fault(rng, content), bytes), name


def crash():
    faulthandler.disable()  # pytest's would print all stacks
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("work", "outcome"),
    [
        (lambda: 0, 0),
        (lambda: 7, 7),
        (crash, -signal.SIGSEGV),
        (lambda: time.sleep(60), None),
    ],
    ids=["good", "status", "crash", "hang"],
)
def test_children_that_crash_or_hang(work, outcome, tmp_path):
    assert children.run_in_child(work, tmp_path / "log", limit=0.2) == outcome
