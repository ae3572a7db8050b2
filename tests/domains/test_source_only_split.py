import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

from covshift import SourceOnlySplit
from tests.domains.test_labels import Explosive

# Source domains 0, 4 and 5 and target domains -1 and -2, in no order.
DOMAIN = np.array([0, -1, 4, 5, -2, 0, 4, -1, 5, 0, -1, 4, 5, -1, 0, 4, 5])
SOURCE = np.flatnonzero(DOMAIN >= 0)
X = np.arange(34.0).reshape(17, 2)
LABELS = np.where(np.arange(17) % 3 == 0, "a", "b")
Y = np.where(DOMAIN >= 0, LABELS, "")


def folds(cv, y=Y, X=X, **options):
    return list(SourceOnlySplit(cv).split(X, y, **{"sample_domain": DOMAIN, **options}))


def assert_partition(found, testable):
    """Test folds cover the testable rows once; training folds hold all the others."""
    tests = np.concatenate([test for _, test in found])
    assert sorted(tests.tolist()) == sorted(testable)
    for train, test in found:
        assert len(test)
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(DOMAIN)))


@pytest.mark.parametrize(
    "cv", [None, 2, 3, KFold(4), LeaveOneOut(), GroupKFold(2), LeaveOneGroupOut()], ids=str
)
def test_tests_on_every_source_row_once_and_trains_on_the_rest(cv):
    assert_partition(folds(cv), SOURCE)


def test_source_rows_without_a_label_stay_in_training():
    mask = DOMAIN >= 0
    mask[[0, 3]] = False
    mask[1] = True  # a target row whose label is known is still no row to test on
    found = folds(3, label_mask=mask)
    assert_partition(found, np.setdiff1d(SOURCE, [0, 3]))


def test_a_number_of_folds_is_stratified():
    y = np.where(DOMAIN < 0, "", np.where(np.arange(17) < 9, "a", "b"))  # sorted by class
    for _, test in folds(3, y=y):
        assert sorted(y[test].tolist()) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("y", [np.where(DOMAIN >= 0, np.linspace(0, 1, 17) ** 2, np.nan), None])
def test_numbers_and_no_labels_at_all_are_not_stratified(y):
    found = folds(3, y=y)
    assert_partition(found, SOURCE)
    assert [test.tolist() for _, test in found] == [part.tolist() for part in np.split(SOURCE, 3)]


def test_whole_numbers_of_a_regression_have_too_many_values_to_be_stratified():
    assert_partition(folds(3, y=np.arange(17)), SOURCE)


def test_leave_one_group_out_leaves_out_one_source_domain():
    held_out = [np.unique(DOMAIN[test]).tolist() for _, test in folds(LeaveOneGroupOut())]
    assert held_out == [[0], [4], [5]]


@pytest.mark.parametrize("as_type", [list, np.array, pd.Series])
def test_groups_that_are_given_come_first(as_type):
    groups = np.arange(17) // 9
    found = folds(LeaveOneGroupOut(), groups=as_type(groups))
    assert_partition(found, SOURCE)
    assert [np.unique(groups[test]).tolist() for _, test in found] == [[0], [1]]


def test_any_splitter_of_scikit_learn():
    assert len(folds(RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0))) == 6
    for train, test in folds(ShuffleSplit(4, test_size=3, random_state=0)):
        assert len(test) == 3
        assert set(test.tolist()) <= set(SOURCE.tolist())
        assert len(train) == 14


def test_training_rows_are_those_of_the_splitter_and_all_without_a_label_to_test():
    always = np.flatnonzero(DOMAIN < 0)
    for (train, test), (inner_train, inner_test) in zip(
        folds(TimeSeriesSplit(3)), TimeSeriesSplit(3).split(SOURCE), strict=True
    ):
        np.testing.assert_array_equal(test, SOURCE[inner_test])
        np.testing.assert_array_equal(train, np.sort([*always, *SOURCE[inner_train]]))
    for train, _ in folds(ShuffleSplit(2, train_size=4, test_size=3, random_state=0)):
        assert len(train) == 4 + len(always)


def test_groups_of_another_length_are_refused():
    for groups in (np.zeros(16), np.zeros(18)):
        with pytest.raises(ValueError, match="groups must hold 17 entries"):
            folds(LeaveOneGroupOut(), groups=groups)


@pytest.mark.parametrize(
    "make",
    [sparse.csr_array, pd.DataFrame, pl.DataFrame, np.ndarray.tolist],
    ids=["sparse", "pandas", "polars", "list"],
)
def test_rows_of_any_type(make):
    assert_partition(folds(3, X=make(X)), SOURCE)


def test_masked_labels_are_never_read():
    expected = folds(3, y=LABELS)
    for masked in (Explosive(), None, np.nan, 7, "c"):
        y = LABELS.astype(object)
        for row in np.flatnonzero(DOMAIN < 0):
            y[row] = masked
        for (train, test), (expected_train, expected_test) in zip(
            folds(3, y=y), expected, strict=True
        ):
            np.testing.assert_array_equal(train, expected_train)
            np.testing.assert_array_equal(test, expected_test)


@pytest.mark.parametrize("cv", [None, 3, LeaveOneGroupOut(), KFold(4)], ids=str)
def test_number_of_splits(cv):
    splitter = SourceOnlySplit(cv)
    assert splitter.get_n_splits(X, Y, sample_domain=DOMAIN) == len(folds(cv))


def test_number_of_splits_without_rows():
    assert SourceOnlySplit(3).get_n_splits(y=Y, sample_domain=DOMAIN) == 3


def test_without_sample_domain_the_error_names_the_setting():
    with pytest.raises(ValueError, match=r"no sample_domain.*enable_metadata_routing=True"):
        next(SourceOnlySplit(3).split(X, Y))
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        SourceOnlySplit(3).get_n_splits(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_domain": DOMAIN[:-1]}, "sample_domain must hold one integer per row"),
        ({"sample_domain": np.full(17, -1)}, "no source rows"),
        ({"label_mask": [True]}, "label_mask must hold one boolean per row"),
        ({"label_mask": DOMAIN < 0}, "No label is known"),
        ({"cv": 99}, "n_splits=99 greater than"),
    ],
    ids=str,
)
def test_bad_arguments(options, message):
    options = {"cv": 3, **options}
    with pytest.raises(ValueError, match=message):
        folds(**options)


def test_a_search_routes_the_domains_to_the_splitter():
    y = np.where(DOMAIN >= 0, "a", "")
    always_a = DummyClassifier(strategy="constant", constant="a")
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            always_a, X, y, cv=SourceOnlySplit(3), params={"sample_domain": DOMAIN}
        )
        np.testing.assert_array_equal(scores, 1.0)  # placeholders would count as errors
        with pytest.raises(ValueError, match="no sample_domain"):
            # Without params scikit-learn 1.6 fails before the splitter is asked.
            cross_val_score(always_a, X, y, cv=SourceOnlySplit(3), params={})


def test_can_be_cloned_and_shown():
    splitter = SourceOnlySplit(GroupKFold(2))
    assert clone(splitter).cv.n_splits == 2
    assert repr(splitter).startswith("SourceOnlySplit(cv=GroupKFold(n_splits=2")
