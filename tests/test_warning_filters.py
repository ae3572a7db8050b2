"""Work in threads leaves the filters of warnings alone, which belong to the whole process."""

import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.exceptions import VisibleDeprecationWarning
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, AutoAdaptedClassifier, DomainStandardScaler, load, save
from covshift.measures import classifier_two_sample_test, ks_test
from covshift.tables.file_pairs import _rows_auc
from covshift.tables.monitoring_batch import _compare
from covshift.warning_filters import ignored_warnings, recorded_warnings
from tests.persistence.test_hostile_files import edit_schema
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
A, B = np.random.RandomState(0).standard_normal((2, 60, 3))


def in_thread(work):
    """Return what some work returns in a thread of its own, or raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def warn(category=RuntimeWarning, text="one two"):
    warnings.warn(text, category, stacklevel=1)


def test_the_main_thread_ignores_what_is_named_and_nothing_else():
    with ignored_warnings(RuntimeWarning, FutureWarning, message="one"):
        warn()
        warn(FutureWarning)
        with pytest.raises(RuntimeWarning, match="two"):  # warnings are errors in tests
            warn(text="two one")
        with pytest.raises(DeprecationWarning):
            warn(DeprecationWarning)
    with pytest.raises(RuntimeWarning):
        warn()


def test_other_threads_change_no_filters():
    before = list(warnings.filters)

    def work():
        with ignored_warnings(RuntimeWarning):
            assert warnings.filters == before
            with pytest.raises(RuntimeWarning):
                warn()

    in_thread(work)
    assert warnings.filters == before


def test_overlapping_threads_leave_nothing_behind():
    """The order that harms: the first to enter leaves first, the second puts its filter back."""
    before, entered, left = list(warnings.filters), threading.Event(), threading.Event()

    def second():
        with ignored_warnings(RuntimeWarning):
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=second)
    with ignored_warnings(FutureWarning):
        thread.start()
        entered.wait(10)
    left.set()
    thread.join()
    assert warnings.filters == before


@pytest.fixture
def older_file(tmp_path):
    """A model file whose parts were written by another version of scikit-learn."""
    path = tmp_path / "model.skops"
    save(AdaptedClassifier(DomainStandardScaler()).fit(X, Y, sample_domain=SAMPLE_DOMAIN), path)

    def grow_older(schema):
        estimator = schema["content"]["content"]["estimator_"]["content"]["content"]
        estimator["_sklearn_version"]["content"] = '"1.5.0"'

    edit_schema(path, grow_older)
    return path


@pytest.mark.parametrize(
    "work",
    [
        lambda path: load(path),
        lambda path: ks_test(A, B),
        lambda path: classifier_two_sample_test(A, B, random_state=0),
        lambda path: _compare(A, B, ["a", "b", "c"], np.random.RandomState(0)),
        lambda path: _rows_auc(A, B, 0),
    ],
    ids=["load", "ks_test", "classifier_two_sample_test", "monitoring", "moved_columns"],
)
def test_no_function_of_ours_catches_warnings_in_a_thread(work, older_file, monkeypatch):
    """The caller's module shows who enters ``catch_warnings`` outside the main thread."""
    callers, enter = [], warnings.catch_warnings.__enter__

    def spy(self):
        if threading.current_thread() is not threading.main_thread():
            callers.append(sys._getframe(1).f_globals["__name__"])
        return enter(self)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", spy)
    in_thread(lambda: work(older_file))
    assert not [name for name in callers if name.startswith("covshift")]


def test_loading_in_threads_leaves_no_filter_behind(older_file):
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(load, [older_file] * 40))
    assert warnings.filters == before
    assert len({tuple(model.predict(X_NEW)) for model in models}) == 1


def test_the_main_thread_records_all_warnings():
    with recorded_warnings() as caught:
        warn()
        warn(DeprecationWarning)
    assert [one.category for one in caught] == [RuntimeWarning, DeprecationWarning]
    assert in_thread(lambda: record()) == []


def record():
    with recorded_warnings() as caught:
        pass
    return list(caught)


def test_automatic_fits_in_threads_leave_warnings_as_they_were():
    """Overlapping fits once left the function that shows warnings pointing to a dead list."""
    before = warnings._showwarnmsg_impl, own_filters()
    candidates = [(None, LogisticRegression()), ("standardize", LogisticRegression())]

    def fit(seed):
        model = AutoAdaptedClassifier(candidates=candidates, max_rows=50, random_state=seed)
        return model.fit(X, Y, sample_domain=SAMPLE_DOMAIN).chosen_

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fit, range(24)))
    assert len(found) == 24
    assert (warnings._showwarnmsg_impl, own_filters()) == before


def own_filters():
    """The filters of warnings but one, which scikit-learn's own fits in threads may leave behind.

    `sklearn.utils.multiclass.type_of_target` sets it for a moment, and two threads that do so
    restore each other's list. `sklearn.utils.parallel` sets all filters once more, their texts
    compiled to patterns: the same filters, so texts are compared.
    """
    return [
        tuple(getattr(part, "pattern", part) for part in one)
        for one in warnings.filters
        if one[2] is not VisibleDeprecationWarning
    ]
