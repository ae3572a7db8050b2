import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import sem
from sklearn.metrics import balanced_accuracy_score, recall_score

from covshift.measures.scores import (
    mean_and_standard_error,
    percentage_change,
    unweighted_average_recall,
)
from tests.kernels.problems import FIXED

ROUNDING = 1e-12

LABELS = {
    "strings": ["anger", "fear", "joy"],
    "integers": [-1, 0, 7],
    "booleans": [False, True],
    "floats": [0.0, 1.0, 3.0],
}


def naive_uar(y_true, y_pred):
    """Mean over the true classes of hits / rows, counted one by one."""
    recalls = []
    for c in set(y_true):
        rows = hits = 0
        for truth, predicted in zip(y_true, y_pred, strict=True):
            if truth == c:
                rows += 1
                hits += predicted == c
        recalls.append(hits / rows)
    return sum(recalls) / len(recalls)


@st.composite
def predictions(draw):
    labels = st.sampled_from(draw(st.sampled_from(list(LABELS.values()))))
    pairs = draw(st.lists(st.tuples(labels, labels), min_size=1, max_size=20))
    return [truth for truth, _ in pairs], [predicted for _, predicted in pairs]


@FIXED
@given(predictions())
def test_uar_equals_the_naive_twin(labels):
    y_true, y_pred = labels
    assert unweighted_average_recall(y_true, y_pred) == pytest.approx(
        naive_uar(y_true, y_pred), abs=ROUNDING
    )


@FIXED
@given(predictions())
def test_uar_equals_scikit_learn_balanced_accuracy(labels):
    y_true, y_pred = labels
    with warnings.catch_warnings():
        # It warns of classes that are only predicted, which our rule names.
        warnings.simplefilter("ignore", UserWarning)
        expected = balanced_accuracy_score(y_true, y_pred)
    assert unweighted_average_recall(y_true, y_pred) == pytest.approx(expected, abs=ROUNDING)


@FIXED
@given(predictions(), st.randoms(use_true_random=False))
def test_uar_depends_on_neither_order_nor_names(labels, random):
    y_true, y_pred = labels
    order = random.sample(range(len(y_true)), len(y_true))
    names = {label: f"class {index}" for index, label in enumerate({*y_true, *y_pred})}
    renamed = unweighted_average_recall(
        [names[y_true[i]] for i in order], [names[y_pred[i]] for i in order]
    )
    assert renamed == pytest.approx(unweighted_average_recall(y_true, y_pred), abs=ROUNDING)


def test_uar_is_not_macro_recall_when_a_class_is_only_predicted():
    y_true, y_pred = ["a", "a", "b", "b"], ["a", "c", "b", "b"]
    assert unweighted_average_recall(y_true, y_pred) == 0.75
    assert recall_score(y_true, y_pred, average="macro", zero_division=0) == pytest.approx(0.5)


def test_uar_weighs_classes_not_rows():
    y_true = ["common"] * 99 + ["rare"]
    assert unweighted_average_recall(y_true, ["common"] * 100) == 0.5


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        ([0, 1], [0, 1, 1]),
        ([], []),
        ([0.0, np.nan], [0.0, 1.0]),
        ([0.0, 1.0], [0.0, np.nan]),
        (["a", "b"], [0, 1]),
        ([[0, 1], [1, 0]], [[0, 1], [1, 0]]),
    ],
    ids=["lengths", "empty", "NaN true", "NaN predicted", "types", "multilabel"],
)
def test_uar_refuses(y_true, y_pred):
    with pytest.raises((ValueError, TypeError)):
        unweighted_average_recall(y_true, y_pred)


ordinary = st.floats(-1e6, 1e6)


@FIXED
@given(st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=8))
def test_percentage_change_equals_its_formula_entry_by_entry(pairs):
    before, after = np.array(pairs).T
    assume((np.abs(before) > 1e-6).all())
    changes = percentage_change(before, after)
    for b, a, change in zip(before, after, changes, strict=True):
        assert change == pytest.approx((a / b - 1) * 100, rel=1e-9, abs=1e-6)
        assert percentage_change(b, a) == change


def test_percentage_change_of_numbers_and_arrays():
    assert percentage_change(0.342, 0.779) == pytest.approx(127.777777, rel=1e-6)
    assert isinstance(percentage_change(2, 3), float)
    # An unbiased MMD² below zero: more than all of the distance is gone.
    assert percentage_change(0.5, -0.0005) == pytest.approx(-100.1)
    assert percentage_change([[1.0], [2.0]], [2.0, 3.0]).tolist() == [[100, 200], [0, 50]]


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, [1.0, 0.0], [1.0, np.nan]])
def test_percentage_change_from_nothing_is_an_error(bad):
    with pytest.raises(ValueError, match="before"):
        percentage_change(bad, 1.0)


def test_percentage_change_to_nothing_known_is_an_error():
    with pytest.raises(ValueError, match="after"):
        percentage_change(1.0, [1.0, np.nan])


@FIXED
@given(st.lists(ordinary, min_size=2, max_size=30))
def test_mean_and_standard_error_equal_naive_sums_and_scipy(values):
    n = len(values)
    mean = sum(values) / n
    spread = sum((v - mean) ** 2 for v in values)
    scale = max(1.0, max(map(abs, values)))
    result = mean_and_standard_error(values)
    assert result[0] == pytest.approx(mean, abs=1e-12 * scale)
    assert result[1] == pytest.approx((spread / (n - 1) / n) ** 0.5, abs=1e-9 * scale)
    assert result[1] == pytest.approx(sem(values), rel=1e-12, abs=1e-15 * scale)


def test_one_value_has_a_mean_and_no_error():
    mean, error = mean_and_standard_error([0.7])
    assert mean == 0.7
    assert np.isnan(error)


@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0], [3.0, 4.0]], "x"])
def test_mean_and_standard_error_refuses(bad):
    with pytest.raises((ValueError, TypeError)):
        mean_and_standard_error(bad)
